"""What the tests of evolutions share: a small one, and a model that answers out of order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import msgspec

import groundswell
from groundswell import Chat, Fault, FaultKind, Reply, Request, user
from groundswell.emulator import model
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.problems import Sizes, generated
from groundswell.experiments.prompt_evolution.settings import Evolution, Rules

SMALL = Evolution(
    models=("any",),
    problems=generated(sizes=Sizes(20, 10, 20), seed=7),
    population_size=6,
    max_generations=5,
    genome_batch_size=4,
    rules=Rules(block=5),
    finalists=3,
)
PATIENCE = groundswell.RunOptions(retry=groundswell.RetryPolicy(attempts=1))


class Emulated:
    """The emulated model, in no hurry: each reply lets others go first, as often as chance has it."""

    def __init__(self, dawdles: int = 0) -> None:
        self.asked: list[Chat] = []
        self._random = Random(dawdles)
        self._dawdles = dawdles

    async def __call__(self, request: Request) -> Reply | Fault:
        assert isinstance(request, Chat)
        self.asked.append(request)
        for _ in range(self._random.randrange(20) if self._dawdles else 0):
            await asyncio.sleep(0)
        return self.answer(request)

    def answer(self, request: Chat) -> Reply | Fault:
        return model.answer(msgspec.structs.replace(request, model="gpt-4o-mini"), seed=1, sample=0)


class Deaf(Emulated):
    """One that fails wherever a text occurs in what it is asked."""

    def __init__(self, to: str) -> None:
        super().__init__()
        self._to = to

    def answer(self, request: Chat) -> Reply | Fault:
        if any(self._to in str(message.content) for message in request.messages):
            return Fault(FaultKind.BAD_REQUEST, "it does not hear this")
        return super().answer(request)


async def evolved(store: Path, script: Any, settings: Evolution = SMALL, seed: int = 1) -> Analysis:
    async with groundswell.open(store, script=script) as engine, engine.run("evolution", seed=seed) as run:
        return await evolve(run, settings)


def hello() -> Chat:
    return Chat("any", (user("hello"),))
