"""Evaluate genomes on problems. All searches of a run share the results, so no prompt is evaluated twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import msgspec

from groundswell.engine.outcome import Outcome
from groundswell.engine.run import Run
from groundswell.experiments.outage import Outage
from groundswell.experiments.prompt_evolution.costs import Costs, Spent
from groundswell.experiments.prompt_evolution.genome import Genome, examples_in
from groundswell.experiments.prompt_evolution.metrics import find_metric
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.programs import find_task_program
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.prompt_evolution.solving import Attempt, Execution, Solved, execute, solve
from groundswell.program.request import FaultKind
from groundswell.program.tally import Tally
from groundswell.program.trial import Program

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
    turns: str = ""
    """What a program did, in short."""
    asks: int = 0
    """Requests of all models that are not missing."""
    missing: int = 0
    """Number of models that are missing."""


def lacks(cells: Sequence[Cell]) -> bool:
    """Whether too many problems are missing to compare the rest."""
    scored = [cell.score for cell in cells if not cell.given]
    return not scored or sum(score is None for score in scored) > MOST_MISSING * len(scored)


class Examiner:
    """Evaluates genomes on the problems of a run."""

    def __init__(self, run: Run, settings: Evolution, costs: Costs) -> None:
        self.costs = costs
        self.measured = 0
        """Number of training problems that each seed was evaluated on to measure its cost."""
        self.missing = Spent(1)
        """What a trial without a result counts as. Its replies may have been paid for."""
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
                found = found.and_(Spent(cell.asks, cell.usd)).and_(cell.judged)
            for _ in range(cell.missing):
                found = found.and_(self.missing)
        return found

    def given(self, genome: Genome, part: Part, number: int) -> bool:
        """Whether a genome contains a problem as an example."""
        question = self.problems(part)[number].question
        return any(question in example for example in examples_in(genome))

    def _cell(self, name: str, genome: Genome, part: Part, number: int) -> asyncio.Future[Cell]:
        found = self._cells.get((name, number))
        if found is None:
            if self.given(genome, part, number):
                found = asyncio.get_running_loop().create_future()
                found.set_result(Cell(None, given=True))
            else:
                problem = self.problems(part)[number]
                found = asyncio.ensure_future(self.tried(f"{name}/{number}", genome, problem))
            self._cells[name, number] = found
        return found

    async def tried(self, key: str, genome: Genome, problem: Problem) -> Cell:
        """Let the models, or the program, solve a problem. The key must be unique for genome and problem."""
        keys = model_keys(key, self._settings.models)
        tasks = [self._task(model, genome, problem) for model in self._settings.models]
        if len(tasks) == 1:
            outcomes = [await self._run.submit(*tasks[0], key=key)]
        else:
            work = [self._run.submit(*task, key=each) for each, task in zip(keys, tasks, strict=True)]
            outcomes = await asyncio.gather(*work)
        cell = await self._cell_of(outcomes)
        lasting = any(each.fault is not None and each.fault.kind in LASTING for each in outcomes)
        await self._outage.passed(cell.why or None, lasting=lasting)
        return cell

    def _task(self, model: str, genome: Genome, problem: Problem) -> tuple[Program[Any, Solved], Attempt | Execution]:
        """The program that evaluates a genome on a problem, and its spec."""
        settings = self._settings
        if settings.program is not msgspec.UNSET:
            return execute, Execution(settings.program, genome.texts, problem, model, settings.metric)
        return solve, Attempt(model, genome.text, problem, settings.metric, settings.temperature, settings.max_tokens)

    async def _cell_of(self, outcomes: Sequence[Outcome[Solved]]) -> Cell:
        """Combine the outcomes of all models."""
        found = [each.unwrap() for each in outcomes if each.ok]
        paid, judged = Spent(), Spent()
        for model, solved in zip(self._settings.models, outcomes, strict=True):
            if not solved.ok:
                continue
            each = solved.unwrap()
            if self._settings.program is not msgspec.UNSET:
                paid = paid.and_(await self._spent(each.asked))
            else:
                paid = paid.and_(Spent(1, self.costs.charge(model, each.input_tokens, each.output_tokens)))
            if each.judged:
                judged = judged.and_(await self._spent(each.judged))
        missing = next((each.fault for each in outcomes if each.fault is not None), None)
        if missing is not None:
            self.costs.total += (len(outcomes) - len(found)) * (self.missing.usd or 0.0)
            return Cell(
                None,
                why=missing.message or missing.kind.value,
                usd=paid.usd,
                judged=judged,
                asks=paid.asks,
                missing=len(outcomes) - len(found),
            )
        n, worst = len(found), min(found, key=lambda each: each.score)
        self.cut += sum(each.cut for each in found)
        return Cell(
            sum(each.score for each in found) / n,
            sum(each.input_tokens for each in found) / n,
            sum(each.output_tokens for each in found) / n,
            worst.said,
            usd=paid.usd,
            each=tuple(each.score for each in found),
            judged=judged,
            feedback=next((each.feedback for each in found if each.feedback and each.score < 1), ""),
            cut=any(each.cut for each in found),
            turns=worst.turns,
            asks=paid.asks,
        )

    async def _spent(self, tally: Tally) -> Spent:
        """Requests and cost of a metric or a program."""
        found = Spent()
        await self.costs.learn(tally, judges=True)
        for model, asked in tally.items():
            found = found.and_(Spent(asked.asks, self.costs.charge(model, asked.input_tokens, asked.output_tokens)))
        return found

    def close(self) -> None:
        """Cancel what is still running."""
        for each in self._cells.values():
            each.cancel()


def relied_on(settings: Evolution) -> tuple[Program[Any, Solved], list[Program[Any, Any]]]:
    """The program that evaluates genomes, and the user's code that it runs. Raises `SettingsError` if there is none."""
    metric = find_metric(settings.metric)
    if settings.program is msgspec.UNSET:
        return solve, [metric]
    return execute, [metric, find_task_program(settings.program)]


def called(genome: Genome, part: Part) -> str:
    """The prefix of the trial keys of a genome on a set. The number of the problem follows, then that of the model."""
    return f"{part}/{blake2b(genome.text.encode(), digest_size=9).hexdigest()}"


def model_keys(key: str, models: Sequence[str]) -> list[str]:
    """The trial keys of a prompt on a problem, one per model; numbered if there are several models."""
    return [key] if len(models) == 1 else [f"{key}/{at}" for at in range(len(models))]
