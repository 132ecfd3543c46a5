"""Evaluate genomes on problems. All searches of a run share the results, so no prompt is evaluated twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
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
    feedback: str = ""
    """What the metric says about the reply."""
    given: bool = False
    """Whether no score was asked for, for example because the prompt contains the problem as an example."""
    cut: bool = False
    """Whether the reply of a model was cut off at the maximum number of tokens."""


def lacks(cells: Sequence[Cell]) -> bool:
    """Whether too many problems are missing to compare the rest."""
    scored = [cell.score for cell in cells if not cell.given]
    return not scored or sum(score is None for score in scored) > MOST_MISSING * len(scored)


class Examiner:
    """Evaluates genomes on the problems of a run."""

    def __init__(self, run: Run, settings: Evolution, costs: Costs) -> None:
        self.costs = costs
        self.cut = 0
        """Replies so far that were cut off at the token limit."""
        self._run = run
        self._settings = settings
        self._outage = Outage(run, settings.shape.window * settings.shape.block, called="problem")
        self._cells: dict[tuple[str, int], asyncio.Future[Cell]] = {}

    def problems(self, part: Part) -> Sequence[Problem]:
        """The problems of a set."""
        found: Sequence[Problem] = getattr(self._settings.problems, part)
        return found

    async def met(self, genome: Genome, part: Part, numbers: Iterable[int]) -> list[Cell]:
        """Evaluate a genome on these problems of a set."""
        name = called(genome, part)
        return list(await asyncio.gather(*(self._cell(name, genome, part, number) for number in numbers)))

    async def all(self, genome: Genome, part: Part) -> list[Cell]:
        """Evaluate a genome on all problems of a set."""
        return await self.met(genome, part, range(len(self.problems(part))))

    def cell(self, genome: Genome, part: Part, number: int) -> Cell:
        """The result on a problem that is evaluated already."""
        return self._cells[called(genome, part), number].result()

    def spent(self, genome: Genome, part: Part, numbers: Iterable[int]) -> Spent:
        """Requests and cost of these problems, which must be evaluated already."""
        name, found = called(genome, part), Spent()
        for number in numbers:
            cell = self._cells[name, number].result()
            if not cell.given:
                found = found.and_(Spent(len(self._settings.models), cell.usd)).and_(cell.judged)
        return found

    def _cell(self, name: str, genome: Genome, part: Part, number: int) -> asyncio.Future[Cell]:
        found = self._cells.get((name, number))
        if found is None:
            problem = self.problems(part)[number]
            if genome.examples and any(problem.question in example for example in genome.examples):
                found = asyncio.get_running_loop().create_future()
                found.set_result(Cell(None, given=True))
            else:
                found = asyncio.ensure_future(self.tried(f"{name}/{number}", genome.text, problem))
            self._cells[name, number] = found
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
        self.cut += sum(each.cut for each in found)
        return Cell(
            sum(each.score for each in found) / n,
            sum(each.input_tokens for each in found) / n,
            sum(each.output_tokens for each in found) / n,
            min(found, key=lambda each: each.score).said,
            usd=usd,
            each=tuple(each.score for each in found),
            judged=judged,
            feedback=next((each.feedback for each in found if each.feedback and each.score < 1), ""),
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
