"""Populations of prompts evaluated outside an evolution: everything at once, and nothing asked twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from groundswell.engine.run import Run
from groundswell.experiments.prompt_evolution.analysis import mean_of
from groundswell.experiments.prompt_evolution.config import EvolutionConfig
from groundswell.experiments.prompt_evolution.costs import Costs, added
from groundswell.experiments.prompt_evolution.examining import Cell, Examiner, lacks
from groundswell.experiments.prompt_evolution.fitness import apart, worth
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.opening import Opened
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.program.request import canonical


class Evaluated(msgspec.Struct, frozen=True):
    """What became of a prompt. Where too much is missing it has no accuracy and no fitness; `why` says what failed."""

    genome: Genome
    fitness: float | None
    accuracy: float | None
    scores: tuple[float | None, ...]
    """By problem; None where one is missing."""
    missing: int
    tokens: float
    """Per problem, of the prompt and the reply."""
    usd: float | None
    """For all problems; None where a price is not known."""
    why: str = ""


class AsyncEvaluationPipeline(Opened):
    """Evaluates prompts as an evolution does, each on all problems: no races, and no waiting for one another.

    async with AsyncEvaluationPipeline(config, store="runs.db") as pipeline:
        found = await pipeline.evaluate_population(["Solve it.", "Solve it step by step."])
    """

    def __init__(self, config: EvolutionConfig | None = None, **how: Any) -> None:
        super().__init__(config, **how)
        self._examiner: Examiner | None = None

    async def evaluate_population(
        self, genomes: Sequence[str | Genome], problems: Sequence[Problem] | None = None
    ) -> list[Evaluated]:
        """What each is worth, in the order given; on the training problems of the configuration, unless told."""
        those = self.config.settings.problems.train if problems is None else problems
        prompts = [each if isinstance(each, Genome) else Genome.of(each) for each in genomes]
        met = await asyncio.gather(*(self._met(genome, those) for genome in prompts))
        return [
            self._evaluated(genome, cells, [other for other in prompts if other != genome])
            for genome, cells in zip(prompts, met, strict=True)
        ]

    async def evaluate_genome(self, genome: str | Genome, problems: Sequence[Problem] | None = None) -> Evaluated:
        """What one is worth."""
        (found,) = await self.evaluate_population([genome], problems)
        return found

    async def _begin(self, run: Run) -> None:
        settings, costs = self.config.settings, Costs(run)
        await costs.learn(settings.models)
        self._examiner = Examiner(run, settings, costs)

    async def _met(self, genome: Genome, problems: Sequence[Problem]) -> list[Cell]:
        return list(await asyncio.gather(*(self._cell(genome.text, problem) for problem in problems)))

    async def _cell(self, prompt: str, problem: Problem) -> Cell:
        _, examiner = self.run, self._examiner
        assert examiner is not None  # as there is a run
        settings = self.config.settings
        asked = [prompt, problem, settings.models, settings.metric, settings.temperature, settings.max_tokens]
        key = blake2b(canonical(asked), digest_size=12).hexdigest()
        return await self._once(key, lambda: examiner.tried(key, prompt, problem))

    def _evaluated(self, genome: Genome, cells: Sequence[Cell], others: Sequence[Genome]) -> Evaluated:
        there = [cell for cell in cells if cell.score is not None]
        missing, count = len(cells) - len(there), max(1, len(there))
        said = sum(cell.output_tokens for cell in there) / count
        settings = self.config.settings
        found = worth(genome, [cell.score or 0.0 for cell in there], said, settings.max_tokens, apart(genome, others))
        usd: float | None = 0.0
        for cell in cells:
            usd = added(added(usd, cell.usd), cell.judged.usd)
        fit = bool(there) and not lacks(cells)
        return Evaluated(
            genome,
            found.fitness(settings.fitness) if fit else None,
            mean_of([cell.score for cell in there]) if fit else None,
            tuple(cell.score for cell in cells),
            missing,
            said + sum(cell.input_tokens for cell in there) / count,
            usd,
            next((cell.why for cell in cells if cell.why), ""),
        )
