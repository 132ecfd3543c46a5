"""Entities, a batch of them, and how to run it on a stage without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import groundswell
from groundswell import Chat, Engine, Fault, Reply, Request, Summary
from groundswell.experiments.simulations.batch import Batch, Single
from groundswell.experiments.simulations.driving import converse, simulate
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.reading import Readings, SimulationShown
from groundswell.experiments.simulations.simulation import Rules

ANA = Entity("e-ana", "Ana Silva", "A nurse.", {"age": 41, "urban": True})
BEN = Entity("e-ben", "Ben Okoro", "A farmer.", {"age": 58, "urban": False})
CARLA = Entity("e-carla", "Carla Weiss", "A teacher.", {"age": 35, "urban": True})
DEV = Entity("e-dev", "Dev Rao", "An engineer.", {"age": 29, "urban": False})
EVERYBODY = (ANA, BEN, CARLA, DEV)
CONTEXT = "A panel discussion about bees"
MODEL = "emulated/gpt-4o-mini"
SHEET = Questionnaire(
    (
        Question("keep", "Would you keep bees?", "choice", ("yes", "no", "perhaps")),
        Question("like", "How much do you like them?", "scale", low_label="not at all", high_label="very much"),
        Question("why", "Why?"),
    )
)


def a_batch(rules: Rules | None = None, size: int = 2, simulations: int = 1, **more: Any) -> Batch:
    """A batch of the first entities, in the given order unless told otherwise."""
    entities = more.pop("entities", EVERYBODY[: max(size, 2) if simulations == 1 else len(EVERYBODY)])
    order = more.pop("order", "given")
    return Batch("Bees", CONTEXT, entities, size, simulations, rules or Rules(MODEL), order=order, **more)


Script = Callable[[Request, int], Reply | Fault]


class Cues:
    """Answers with what is next in a list, over and over, and keeps what was asked. Questions have one answer."""

    def __init__(self, *said: str | Fault | Reply, answers: str | None = None) -> None:
        self.said = said
        self.answers = answers
        self.asked: list[Chat] = []

    def __call__(self, request: Request, sample: int) -> Reply | Fault:
        assert isinstance(request, Chat)
        self.asked.append(request)
        if request.schema is not None and self.answers is not None:
            return Reply(self.answers)
        said = self.said[(len(self.asked) - 1) % len(self.said)]
        return Reply(said) if isinstance(said, str) else said


def drive(settings: Batch | Single, script: Script | None = None, **how: Any) -> tuple[Summary, list[SimulationShown]]:
    """Run a batch or a single simulation; what is said of the run, and its simulations."""

    async def work() -> tuple[Summary, list[SimulationShown]]:
        with TemporaryDirectory() as folder:
            async with groundswell.open(Path(folder) / "runs.db", script=script) as engine:
                return await driven(engine, settings, **how)

    return asyncio.run(work())


async def driven(engine: Engine, settings: Batch | Single, **how: Any) -> tuple[Summary, list[SimulationShown]]:
    """The same, on an engine that is open."""
    if isinstance(settings, Batch):
        summary = await engine.drive(simulate, settings, **how)
    else:
        summary = await engine.drive(converse, settings, **how)
    readings = Readings(engine.store)  # type: ignore[arg-type]  # it is a whole store
    return summary, list(readings.simulations(engine.store.runs.get(summary.run_id)))


def text_of(chat: Chat) -> list[str]:
    """A request as lines: role and content."""
    return [f"{message.role}: {message.content}" for message in chat.messages]
