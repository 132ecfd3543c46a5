"""Populations evaluated: in their order, each prompt once, and nothing made up where something is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell import Chat
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig
from groundswell.experiments.prompt_evolution.documented import AsyncEvaluationPipeline, Evaluated
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Sizes, generated
from tests.experiments.prompt_evolution.stage import PATIENCE, Deaf, Emulated

PROBLEMS = generated(sizes=Sizes(10, 5, 5), seed=7)
CONFIG = AsyncEvolutionConfig(model="any", problems=PROBLEMS)
SHORT, LONG = "Solve it.", "Solve it step by step."
Work = Callable[[AsyncEvaluationPipeline], Coroutine[Any, Any, Any]]


def worked(store: Path, work: Work, script: Emulated, config: AsyncEvolutionConfig = CONFIG) -> Any:
    async def main() -> Any:
        async with AsyncEvaluationPipeline(config, store=store, script=script, options=PATIENCE) as pipeline:
            return await work(pipeline)

    return asyncio.run(main())


def evaluated(store: Path, prompts: Sequence[str | Genome], script: Emulated, **how: Any) -> list[Evaluated]:
    found: list[Evaluated] = worked(store, lambda pipeline: pipeline.evaluate_population(prompts), script, **how)
    return found


def test_a_population_in_its_order(tmp_path: Path) -> None:
    model = Emulated(1)
    found = evaluated(tmp_path / "runs.db", [LONG, SHORT, Genome.of(LONG)], model)
    assert [each.genome.text for each in found] == [LONG, SHORT, LONG]
    assert found[0] == found[2]
    assert len(model.asked) == 2 * len(PROBLEMS.train), "equal prompts are asked once"
    for each in found:
        assert each.accuracy == sum(filter(None, each.scores)) / 10 == each.fitness
        assert (each.missing, each.why, len(each.scores)) == (0, "", 10)
        assert each.tokens > 0
    alone = worked(tmp_path / "alone.db", lambda pipeline: pipeline.evaluate_genome(LONG), Emulated())
    assert alone == found[0]


def test_problems_of_ones_own(tmp_path: Path) -> None:
    async def work(pipeline: AsyncEvaluationPipeline) -> None:
        some = await pipeline.evaluate_genome(LONG, PROBLEMS.train[:3])
        more = await pipeline.evaluate_genome(LONG, [*PROBLEMS.test, *PROBLEMS.train[:3]])
        assert more.scores[5:] == some.scores

    model = Emulated()
    worked(tmp_path / "runs.db", work, model)
    assert len(model.asked) == 8


class Gate(Emulated):
    """One that answers nothing before it was asked so much."""

    def __init__(self, enough: int) -> None:
        super().__init__()
        self._enough = enough
        self._open = asyncio.Event()

    async def __call__(self, request: Any) -> Any:
        assert isinstance(request, Chat)
        if len(self.asked) + 1 == self._enough:
            self._open.set()
        reply = await super().__call__(request)
        await self._open.wait()
        return reply


def test_nobody_waits_for_another(tmp_path: Path) -> None:
    """More than a batch of genomes, and more than a block of problems: all are asked before there is one reply."""
    config = msgspec.structs.replace(CONFIG, genome_batch_size=4, async_batch_size=3, max_concurrent_requests=30)
    prompts = [f"Solve number {number}." for number in range(6)]
    gate = Gate(len(prompts) * len(PROBLEMS.train))
    found = asyncio.run(asyncio.wait_for(_evaluated(tmp_path / "runs.db", prompts, gate, config), 20))
    assert [each.missing for each in found] == [0] * len(prompts)


async def _evaluated(store: Path, prompts: list[str], gate: Gate, config: AsyncEvolutionConfig) -> list[Evaluated]:
    async with AsyncEvaluationPipeline(config, store=store, script=gate) as pipeline:
        return await pipeline.evaluate_population(prompts)


@pytest.mark.parametrize(("deaf", "missing"), [(1, 1), (3, 3)], ids=["a little", "too much"])
def test_what_is_missing(tmp_path: Path, deaf: int, missing: int) -> None:
    class Choosy(Deaf):
        def answer(self, request: Chat) -> Any:
            hears = all(each.question != request.messages[-1].content for each in PROBLEMS.train[:deaf])
            return Emulated.answer(self, request) if hears else super().answer(request)

    (found,) = evaluated(tmp_path / "runs.db", [LONG], Choosy(""))
    assert (found.missing, found.scores[:deaf]) == (missing, (None,) * deaf)
    assert found.why == "it does not hear this"
    there = [score for score in found.scores if score is not None]
    assert found.accuracy == found.fitness == (sum(there) / len(there) if deaf == 1 else None)


def test_fitness_of_several_parts_looks_at_the_others(tmp_path: Path) -> None:
    config = msgspec.structs.replace(CONFIG, fitness="composite")
    together = evaluated(tmp_path / "runs.db", [LONG, LONG + " Take care."], Emulated(), config=config)
    (alone,) = evaluated(tmp_path / "runs.db", [LONG], Emulated(), config=config)
    assert together[0].accuracy == alone.accuracy
    assert together[0].fitness is not None
    assert alone.fitness is not None
    assert together[0].fitness < alone.fitness
