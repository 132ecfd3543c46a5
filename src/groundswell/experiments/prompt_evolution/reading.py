"""Read an evolution for its report: the analysis, and the trials of the held-out test.

A run that is not complete has no analysis. Its report shows the best prompt so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis, Gain, Tested, mean_of
from groundswell.experiments.prompt_evolution.best import Best, stored_best
from groundswell.experiments.prompt_evolution.evolving import EVOLUTION
from groundswell.experiments.prompt_evolution.examining import Part, called, model_keys
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.settings import Evolution, Shape
from groundswell.experiments.prompt_evolution.solving import Solved
from groundswell.experiments.prompt_evolution.verdict import Scores
from groundswell.program.request import Fault, Reply
from groundswell.reporting import numbers
from groundswell.store.journal import Store

NO_DIFFERENCE = "no significant difference"
NAMES = {SEED: "seed prompt", EVOLUTION: "evolved prompt", "random": "random search", "best_of_n": "best of N"}


class Solution(NamedTuple):
    """The trial of a model, a prompt and a problem: score and reply, or the fault."""

    key: str
    model: str
    solved: Solved | None = None
    fault: Fault | None = None
    reply: Reply | None = None


class SealedProblem(NamedTuple):
    """A problem of the held-out test, with the solutions of every prompt, one per model."""

    number: int
    problem: Problem
    solutions: Mapping[str, Sequence[Solution]]


@dataclass(frozen=True)
class Stored:
    """A stored evolution."""

    record: RunRecord
    settings: Evolution

    @property
    def shape(self) -> Shape | None:
        """The sizes of each search, as far as they are known."""
        return self.settings.shape

    @property
    def is_accuracy(self) -> bool:
        """Whether fitness is accuracy alone."""
        parts = self.settings.fitness
        return not (parts.consistency or parts.efficiency or parts.diversity or parts.length)

    def fitness(self, value: float | None) -> str:
        """Format a fitness: accuracy in percent, a weighted sum as a number."""
        return numbers.percent(value) if self.is_accuracy else numbers.number(value, 3)


@dataclass(frozen=True)
class Unfinished(Stored):
    """A run that is not complete, with the best prompt so far."""

    best: Best
    summary: Summary
    held: Store | None = None
    analysis: None = None


@dataclass(frozen=True)
class Evolved(Stored):
    """The data of the report."""

    analysis: Analysis
    summary: Summary
    solution: Callable[[str, str], Solution] = Solution
    """Reads a trial of the held-out test, given its key and its model."""
    validated: Mapping[str, Scores] = field(default_factory=dict)
    """The validation scores of the prompts in the held-out test, as far as they are stored."""
    held: Store | None = None

    @property
    def shape(self) -> Shape | None:
        stops = self.settings.stops
        by_budget = self.settings.max_generations is None or stops.asks is not None or stops.usd is not None
        return self.analysis.shape or (None if by_budget else self.settings.shape)  # earlier versions did not store it

    def named(self, name: str) -> Tested:
        """A prompt on the held-out test, by name."""
        return next(each for each in self.analysis.tested if each.name == name)

    @property
    def winner(self) -> Tested:
        """The evolved prompt on the held-out test."""
        return self.named(self.analysis.evolution.name)

    @property
    def deployed(self) -> Tested:
        """The prompt to deploy on the held-out test."""
        return self.analysis.deployed

    def sealed_problem(self, number: int) -> SealedProblem:
        """Read a problem of the held-out test from the store. A prompt that two searches found is read once."""
        read: dict[str, Solution] = {}
        found = {}
        for tested in self.analysis.tested:
            keys = dict(zip(_keys(self.settings, tested, "test", number), self.settings.models, strict=True))
            read |= {key: self.solution(key, model) for key, model in keys.items() if key not in read}
            found[tested.name] = [read[key] for key in keys]
        return SealedProblem(number, self.settings.problems.test[number], found)

    def problem_of(self, key: str) -> int | None:
        """The problem of a trial of the held-out test; None for other trials."""
        for number in range(len(self.settings.problems.test)) if key.startswith("test/") else ():
            if any(key in _keys(self.settings, tested, "test", number) for tested in self.analysis.tested):
                return number
        return None

    def sealed_test(self) -> Iterator[SealedProblem]:
        """All problems of the held-out test, read one by one."""
        return map(self.sealed_problem, range(len(self.settings.problems.test)))


def read_evolution(held: Store, record: RunRecord) -> Evolved | Unfinished:
    """Read an evolution from the store in one pass over its trials. Replies are read when they are shown."""
    settings, results = msgspec.json.decode(record.settings or "{}", type=Evolution), held.results(record)
    if record.analysis is None:
        best = stored_best(results.kept) or Best(genome=settings.seeds[0], found_by=SEED)
        summary = msgspec.structs.replace(summarise(record), status=held.runs.state(record))
        return Unfinished(record, settings, best, summary, held)
    analysis, first = msgspec.json.decode(record.analysis, type=Analysis), record.span[0]
    places: dict[str, int] = {}
    scores: dict[str, float] = {}
    for trial in results:
        if trial.key.startswith("test/"):
            places[trial.key] = trial.row.id - first
        elif trial.key.startswith("validation/") and (solved := trial.result(Solved)) is not None:
            scores[trial.key] = solved.score

    def solution(key: str, model: str) -> Solution:
        number = places.get(key, 0)
        for trial in results.numbered(number, number) if number else ():
            settled = [recorded.settlement for recorded in results.recorded(trial.row).values()]
            reply = next((each for each in settled if isinstance(each, Reply)), None)  # a metric may ask for more
            solved = trial.result(Solved)
            if settings.program is not msgspec.UNSET:  # what it returned need not be the reply of a model
                reply = None if solved is None else Reply(solved.said)
            return Solution(key, model, solved, trial.fault, reply)
        return Solution(key, model)

    def validated(tested: Tested, number: int) -> float | None:
        found = [scores.get(key) for key in _keys(settings, tested, "validation", number)]
        return None if None in found else mean_of(found)

    known = {
        each.name: [validated(each, number) for number in range(len(settings.problems.validation))]
        for each in analysis.tested
    }
    return Evolved(record, settings, analysis, summarise(record), solution, known, held)


def _keys(settings: Evolution, tested: Tested, part: Part, number: int) -> list[str]:
    """The trial keys of a prompt on a problem, one per model."""
    return model_keys(f"{called(tested.genome, part)}/{number}", settings.models)


def prompt_name(name: str) -> str:
    """The display name of a prompt on the held-out test."""
    return NAMES.get(name, name)


def search_name(name: str) -> str:
    """The display name of a search."""
    return name if name == EVOLUTION else prompt_name(name)


def is_same(analysis: Analysis, other: str, one: str = "") -> bool:
    """Whether two prompts are the same. `one` defaults to the evolved prompt."""
    prompts = {each.name: each.genome for each in analysis.tested}
    return prompts.get(other) == prompts[one or analysis.evolution.name]


def standing(analysis: Analysis, other: str) -> str:
    """The verdict of a comparison of the evolved prompt with another one."""
    return verdict(analysis, next(each for each in analysis.gains if each.over == other))


def verdict(analysis: Analysis, gain: Gain, one: str = "") -> str:
    """The verdict of a comparison. `one` defaults to the evolved prompt."""
    if is_same(analysis, gain.over, one):
        return "same prompt"
    return {"ahead": "better", "behind": "worse", "open": NO_DIFFERENCE}[gain.standing]


def points(value: float | None, signed: bool = True) -> str:
    """Format a difference of shares in percentage points."""
    return numbers.NONE if value is None else numbers.number(100 * value, 1, signed)


def points_between(low: float | None, high: float | None) -> str:
    """Format the interval of a difference in percentage points."""
    return numbers.NONE if low is None or high is None else f"{points(low)} to {points(high)}"
