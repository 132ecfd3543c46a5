"""Studies from their options, as a request would give them."""

from __future__ import annotations

from typing import Any

from groundswell.experiments.experiment import Context
from groundswell.experiments.options import collect
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.experiment import experiment
from tests.experiments.simulations.stage import MODEL

PLAN: dict[str, Any] = {"id": "plan", "text": "Shall it be {frame}?", "type": "choice", "options": ["yes", "no"]}
SURE: dict[str, Any] = {"id": "sure", "text": "How sure?", "type": "scale"}
FRAMES: dict[str, Any] = {"frame": {"gain": "saving lives", "loss": "not letting die"}}


def people(count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"e{at:03}", "name": f"Person {at}", "attributes": {"urban": at % 3 == 0, "age": at}}
        for at in range(count)
    ]


def study(**options: Any) -> Batch:
    """The settings that these options give. Factors that no text names are put into the context."""
    command = experiment.command("study")
    said = {"entities": people(12), "questions": [PLAN, SURE], "factors": FRAMES, "model": [MODEL], **options}
    said = {name: value for name, value in said.items() if value is not None}
    unnamed = [f"{{{factor}}}" for factor in said.get("factors", {}) if f"{{{factor}}}" not in str(said)]
    said |= {"context": " ".join([said.get("context", ""), *unnamed]).strip()} if unnamed else {}
    given = collect(command.fields, said, what="study", text=False)
    made = command.ready(given, Context(store="gone.db", origin="request")).settings
    assert isinstance(made, Batch)
    return made
