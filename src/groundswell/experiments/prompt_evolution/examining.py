"""Evaluate genomes on problems. All searches of a run share the results, so no prompt is evaluated twice."""

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
"""Faults that waiting does not cure, such as a metric that raises."""
Part = Literal["train", "validation", "test"]
MOST_MISSING = 0.2
"""A genome with a larger share of missing problems has no comparable score."""


class Cell(NamedTuple):
    """A genome on a problem: the mean over the models. If a model is missing, so is the score."""

    score: float | None
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    said: str = ""
    why: str = ""
    usd: float | None = 0.0
    each: tuple[float, ...] = ()
    """The score of each model."""
    judged: Spent = Spent()
    """Requests and cost of the metric, which do not count as cost of the prompt."""
    cut: bool = False
    """Whether the reply of a model was cut off at the maximum number of tokens."""


def lacks(cells: Sequence[Cell]) -> bool:
    """Whether too many problems are missing to compare the rest."""
    return sum(cell.score is None for cell in cells) > MOST_MISSING * len(cells)


class Examiner:
    """Evaluates genomes on the problems of a run."""

    def __init__(self, run: Run, settings: Evolution, costs: Costs) -> None:
        self.costs = costs
        self._run = run
        self._settings = settings
        self._outage = Outage(run, settings.genome_batch_size * settings.rules.block, called="problem")
        self._cells: dict[tuple[str, int], asyncio.Future[Cell]] = {}

    def problems(self, part: Part) -> Sequence[Problem]:
        """The problems of a set."""
        found: Sequence[Problem] = getattr(self._settings.problems, part)
        return found

    async def met(self, genome: Genome, part: Part, numbers: range) -> list[Cell]:
        """Evaluate a genome on these problems of a set."""
        name = called(genome, part)
        return list(await asyncio.gather(*(self._cell(name, genome, part, number) for number in numbers)))

    async def all(self, genome: Genome, part: Part) -> list[Cell]:
        """Evaluate a genome on all problems of a set."""
        return await self.met(genome, part, range(len(self.problems(part))))

    def said(self, genome: Genome, part: Part) -> dict[int, str]:
        """The ends of its wrong replies, by the number of the problem."""
        name = called(genome, part)
        found = {at: self._cells.get((name, at)) for at in range(len(self.problems(part)))}
        return {at: cell.result().said for at, cell in found.items() if cell is not None and cell.done()}

    def spent(self, genome: Genome, part: Part, numbers: range) -> Spent:
        """Requests and cost of these problems, which must be evaluated already."""
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
        """Let the models solve a problem with a prompt. The key must be unique for prompt and problem."""
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
        """Combine the outcomes of all models."""
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
            cut=any(each.cut for each in found),
        )

    async def _judged(self, solved: Solved) -> Spent:
        """Requests and cost of the metric."""
        found = Spent()
        await self.costs.learn(solved.judged, judges=True)
        for judge, asked in solved.judged.items():
            paid = self.costs.of(judge, asked.input_tokens, asked.output_tokens)
            found = found.and_(Spent(asked.asks, paid))
        return found

    def close(self) -> None:
        """Cancel what is still running."""
        for each in self._cells.values():
            each.cancel()


def called(genome: Genome, part: Part) -> str:
    """The prefix of the trial keys of a genome on a set. The number of the problem follows, then that of the model."""
    return f"{part}/{blake2b(genome.text.encode(), digest_size=9).hexdigest()}"


def model_keys(key: str, models: Sequence[str]) -> list[str]:
    """The trial keys of a prompt on a problem, one per model; numbered if there are several models."""
    return [key] if len(models) == 1 else [f"{key}/{at}" for at in range(len(models))]
