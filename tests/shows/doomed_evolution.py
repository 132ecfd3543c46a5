"""An evolution in a process of its own, which kills itself at a moment of its choice.

`python -m tests.shows.doomed_evolution WAY MOMENT NUMBER`: asks travel `live` or by `batch`. At the NUMBER-th time,
`born` dies just before a genome is taken in, `tested` when somebody is about to meet the sealed test; `never` does not.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from itertools import count
from typing import Any, cast

import groundswell
from groundswell import RunOptions
from groundswell.engine.records import Via
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.examining import Cell, Examiner, Part
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Sizes, generated
from groundswell.experiments.prompt_evolution.searching import Birth, Search
from groundswell.experiments.prompt_evolution.settings import Evolution, Rules

NAME, STORE, CAP, SEED = "r", "runs.db", 16, 1
SETTLES = 5
"""Seconds after which an order that was on its way when the process was killed has come, or will not come any more."""
SETTINGS = Evolution(
    models=("openai/gpt-4o-mini",),
    problems=generated(sizes=Sizes(12, 6, 10), seed=7),
    population_size=5,
    max_generations=4,
    genome_batch_size=4,
    rules=Rules(block=4),
    finalists=3,
    baselines=("random",),
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def doom(moment: str, number: int) -> None:
    """See to it that this process dies then."""
    calls, fold, met = count(1), Search._fold, Examiner.met

    def folding(search: Search, birth: Birth) -> None:
        if next(calls) == number:
            die()
        fold(search, birth)

    async def meeting(examiner: Examiner, genome: Genome, part: Part, numbers: Iterable[int]) -> list[Cell]:
        if part == "test" and next(calls) == number:
            die()
        return await met(examiner, genome, part, numbers)

    if moment == "born":
        Search._fold = folding  # type: ignore[assignment, method-assign]
    elif moment == "tested":
        Examiner.met = meeting  # type: ignore[assignment, method-assign]


async def session(way: str) -> None:
    """Evolve, or go on where the last session died."""
    how: dict[str, Any] = {"max_concurrent": CAP, "options": RunOptions(via=cast(Via, way))}
    if way == "batch":
        how["account"] = ["openai.batch_poll=0.1", f"openai.batch_patience={SETTLES}"]
    async with groundswell.open(STORE, **how) as engine:
        await engine.drive(evolve, SETTINGS, name=NAME, seed=SEED)


if __name__ == "__main__":
    doom(sys.argv[2], int(sys.argv[3]))
    asyncio.run(session(sys.argv[1]))
