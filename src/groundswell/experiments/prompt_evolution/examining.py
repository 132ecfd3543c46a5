"""Genomes meet problems. Nobody asks twice: what one genome met in one search, the same prompt has met in all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple

from groundswell.engine.outcome import Outcome
from groundswell.engine.run import Run
from groundswell.experiments.outage import Outage
from groundswell.experiments.prompt_evolution.costs import Costs, Spent, added
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.prompt_evolution.solving import Attempt, Solved, solve
from groundswell.program.request import FaultKind

LASTING = (FaultKind.PROGRAM, FaultKind.CALL)
"""Faults that do not pass by waiting: a metric that raises."""
Part = Literal["train", "validation", "test"]
MOST_MISSING = 0.2
"""A genome of which more is missing has no score that could be compared."""


class Cell(NamedTuple):
    """A genome on a problem: the mean over the models. Where one of them is missing, so is the score."""

    score: float | None
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    said: str = ""
    why: str = ""
    usd: float | None = 0.0
    each: tuple[float, ...] = ()
    """What each model made of it."""
    judged: Spent = Spent()
    """What the metric took: that is spent, but it is none of the prompt's."""


def lacks(cells: Sequence[Cell]) -> bool:
    """Whether too much is missing to compare what is there."""
    return sum(cell.score is None for cell in cells) > MOST_MISSING * len(cells)


class Examiner:
    """Tries genomes on the problems of a run."""

    def __init__(self, run: Run, settings: Evolution, costs: Costs) -> None:
        self.costs = costs
        self._run = run
        self._settings = settings
        self._outage = Outage(run, settings.genome_batch_size * settings.rules.block, called="problem")
        self._cells: dict[tuple[str, int], asyncio.Future[Cell]] = {}

    def problems(self, part: Part) -> Sequence[Problem]:
        """Those of a set."""
        found: Sequence[Problem] = getattr(self._settings.problems, part)
        return found

    async def met(self, genome: Genome, part: Part, numbers: range) -> list[Cell]:
        """What a genome makes of these problems of a set."""
        name = called(genome, part)
        return list(await asyncio.gather(*(self._cell(name, genome, part, number) for number in numbers)))

    async def all(self, genome: Genome, part: Part) -> list[Cell]:
        """What it makes of all problems of a set."""
        return await self.met(genome, part, range(len(self.problems(part))))

    def said(self, genome: Genome, part: Part) -> dict[int, str]:
        """How its replies to problems ended that it has met and failed on, by the problems' numbers."""
        name = called(genome, part)
        found = {at: self._cells.get((name, at)) for at in range(len(self.problems(part)))}
        return {at: cell.result().said for at, cell in found.items() if cell is not None and cell.done()}

    def spent(self, genome: Genome, part: Part, numbers: range) -> Spent:
        """What these problems took, which it has met."""
        name, found = called(genome, part), Spent()
        for number in numbers:
            cell = self._cells[name, number].result()
            found = found.and_(Spent(len(self._settings.models), cell.usd)).and_(cell.judged)
        return found

    def _cell(self, name: str, genome: Genome, part: Part, number: int) -> asyncio.Future[Cell]:
        found = self._cells.get((name, number))
        if found is None:
            problem = self.problems(part)[number]
            work = self.tried(f"{name}/{number}", genome.text, problem)
            found = self._cells[name, number] = asyncio.ensure_future(work)
        return found

    async def tried(self, key: str, prompt: str, problem: Problem) -> Cell:
        """What the models make of a problem, told so; the key is to be another one for any other prompt or problem."""
        settings = self._settings
        keys = model_keys(key, settings.models)
        specs = [
            Attempt(model, prompt, problem, settings.metric, settings.temperature, settings.max_tokens)
            for model in settings.models
        ]
        if len(specs) == 1:
            outcomes = [await self._run.submit(solve, specs[0], key=key)]
        else:
            work = [self._run.submit(solve, spec, key=each) for each, spec in zip(keys, specs, strict=True)]
            outcomes = await asyncio.gather(*work)
        cell = await self._cell_of(outcomes)
        lasting = any(each.fault is not None and each.fault.kind in LASTING for each in outcomes)
        await self._outage.passed(cell.why or None, lasting=lasting)
        return cell

    async def _cell_of(self, outcomes: Sequence[Outcome[Solved]]) -> Cell:
        """What the models together made of a problem."""
        found = [each.unwrap() for each in outcomes if each.ok]
        usd: float | None = 0.0
        judged = Spent()
        for model, solved in zip(self._settings.models, outcomes, strict=True):
            if solved.ok:
                each = solved.unwrap()
                usd = added(usd, self.costs.of(model, each.input_tokens, each.output_tokens))
                if each.judged:
                    judged = judged.and_(await self._judged(each))
        missing = next((each.fault for each in outcomes if each.fault is not None), None)
        if missing is not None:
            return Cell(None, why=missing.message or missing.kind.value, usd=usd, judged=judged)
        n = len(found)
        return Cell(
            sum(each.score for each in found) / n,
            sum(each.input_tokens for each in found) / n,
            sum(each.output_tokens for each in found) / n,
            next((each.said for each in found if each.said), ""),
            usd=usd,
            each=tuple(each.score for each in found),
            judged=judged,
        )

    async def _judged(self, solved: Solved) -> Spent:
        """What its metric took."""
        found = Spent()
        await self.costs.learn(solved.judged, judges=True)
        for judge, asked in solved.judged.items():
            paid = self.costs.of(judge, asked.input_tokens, asked.output_tokens)
            found = found.and_(Spent(asked.asks, paid))
        return found

    def close(self) -> None:
        """Nobody waits any more."""
        for each in self._cells.values():
            each.cancel()


def called(genome: Genome, part: Part) -> str:
    """What the keys of its trials on a set begin with; the number of the problem follows, and that of the model."""
    return f"{part}/{blake2b(genome.text.encode(), digest_size=9).hexdigest()}"


def model_keys(key: str, models: Sequence[str]) -> list[str]:
    """The keys of the trials of a prompt on a problem, one for each model: numbered where there are several."""
    return [key] if len(models) == 1 else [f"{key}/{at}" for at in range(len(models))]
