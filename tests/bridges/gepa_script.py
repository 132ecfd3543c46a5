"""A search with GEPA, as a user writes it, on models that are functions. Every request is a line in a file.

Run as a script, it dies at the request that it is told: `python -m tests.bridges.gepa_script FOLDER REQUEST`.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gepa.api import optimize

import groundswell
from groundswell import Limits, RunOptions
from groundswell.bridges.gepa import EngineAdapter
from groundswell.experiments.prompt_evolution import Problem
from groundswell.program.request import Chat, fingerprint

HINT = "Check each digit."
PROBLEMS = [Problem(f"What is {n} + {n}?", str(2 * n)) for n in range(1, 25)]
_FENCED = re.compile(r"```\n([^`]*)\n```")


def answer(request: Chat) -> str:
    """Solve more problems the more hints the prompt has; write a prompt with one hint more."""
    text = str(request.messages[-1].content)
    if request.model == "writer":
        found = _FENCED.search(text)
        assert found is not None
        return f"```\n{found[1]} {HINT}\n```"
    number = int(text.split()[2])
    right = str(request.messages[0].content).count(HINT) > number % 4
    return f"#### {2 * number if right else 0}"


class Quiet:
    """A logger of GEPA that prints nothing."""

    def log(self, message: str) -> None:
        return


def search(folder: Path, script: Callable[[Chat], str], *, calls: int | None = None, **options: Any) -> Any:
    """Run GEPA, or continue it."""
    limits = RunOptions(limits=Limits(calls=calls))
    with groundswell.open_sync(folder / "runs.db", script=script, max_concurrent=1) as engine:
        adapter = EngineAdapter(engine.run("gepa", options=limits), "solver")
        return optimize(
            seed_candidate={"prompt": "Add the numbers."},
            trainset=PROBLEMS[:12],
            valset=PROBLEMS[12:],
            adapter=adapter,
            reflection_lm=adapter.reflection_lm("writer"),
            max_metric_calls=150,
            logger=Quiet(),
            **options,
        )


def counted(folder: Path, last: int = 0) -> Callable[[Chat], str]:
    """A script that writes down each request, and kills the process instead of answering request number `last`."""

    def script(request: Chat) -> str:
        with (folder / "requests").open("a") as file:
            file.write(fingerprint(request).hex() + "\n")
        if len(requests(folder)) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer(request)

    return script


def requests(folder: Path) -> list[str]:
    """The requests that were made so far."""
    path = folder / "requests"
    return path.read_text().split() if path.exists() else []


if __name__ == "__main__":
    search(Path(sys.argv[1]), counted(Path(sys.argv[1]), int(sys.argv[2])))
