"""An episode as text: what an environment shows of it. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from groundswell.experiments.query_mutation.episode import End, Episode
from groundswell.experiments.query_mutation.task import Task
from groundswell.shown.words import visible

WIDTH = 100
ENDS: Mapping[End, str] = {
    "": "",
    "leak": "The secret is out.",
    "steps": "That was the last step.",
    "fault": "The step failed: the episode is broken off here, and nothing is learnt from it.",
}


def shown(task: Task, episode: Episode, info: Mapping[str, Any]) -> str:
    """The last exchange of an episode; before the first, what it is about."""
    lines = [f"guard {info['guard']}, step {episode.step} of {task.max_steps}"]
    lines += _field("goal", episode.goal)
    if "response" in info:
        lines += _field(info["mutator"], info["query"])
        lines += _field("response", info["response"])
        lines.append(f"score {info['score']:.2f} (best {episode.best:.2f}), drift {info['drift']:.2f}")
    lines += [f"failed: {part}: {why}" for part, why in info.get("failed", {}).items()]
    lines += [said] if (said := ENDS[episode.end]) else []
    return visible("\n".join(lines) + "\n")


def _field(name: str, text: str) -> list[str]:
    return textwrap.wrap(f"{name}: {text}", WIDTH, subsequent_indent="  ")
