"""A short training on a real model within this process, from end to end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell.engine.summary import Summary
from groundswell.experiments.query_mutation.analysis import Analysis
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.guards import guards_named, held_out_guards, training_guards
from groundswell.experiments.query_mutation.task import Task, goals
from groundswell.experiments.query_mutation.training import Checkpoint, Training, train
from tests.local_model import MODEL, needs_model

SETTINGS = Training(
    task=Task(
        target=MODEL,
        mutator_model=MODEL,
        mutators=("noop", "politeness", "shorten"),
        guards=guards_named([training_guards()[0].name]),
        max_steps=2,
        max_tokens=16,
    ),
    num_processes=2,
    num_steps=2,
    num_env_steps=8,
    evaluation=Evaluation(guards=held_out_guards()[:1], episodes=1, ordinary=goals().ordinary[:2]),
)


@needs_model
@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_a_training_on_the_embedded_model(tmp_path: Path) -> None:
    async def main() -> tuple[Summary, list[str | None]]:
        async with groundswell.open(tmp_path / "runs.db") as engine:
            summary = await engine.drive(train, SETTINGS, name="r")
            return summary, [engine.stored("r").kept(f"{learner}.0") for learner in SETTINGS.learners]

    summary, kept = asyncio.run(main())
    found = msgspec.convert(summary.analysis, Analysis)
    assert summary.status == "completed"
    assert found.masked == 0
    for body in kept:
        held = msgspec.json.decode(body or "", type=Checkpoint)
        assert [point.steps for point in held.curve] == [4, 8]
        assert all(point.usable == 4 for point in held.curve)
    assert {figure.method for figure in found.figures} == {"noop", "random", *SETTINGS.learners}
    assert all(figure.missing == 0 for figure in found.figures)
