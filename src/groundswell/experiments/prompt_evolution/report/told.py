"""What a report is made of: the analysis, and the trials on validation and the sealed test behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import RunError
from groundswell.experiments.prompt_evolution.analysis import Analysis, Tested, mean_of
from groundswell.experiments.prompt_evolution.examining import called
from groundswell.experiments.prompt_evolution.racing import Scores
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.prompt_evolution.solving import Solved
from groundswell.store.results import TrialResult


class Tried(NamedTuple):
    """What one model made of a problem with the evolved prompt."""

    model: str
    solved: Solved


class Fault(NamedTuple):
    """Trials that are missing: in which part of the run, and what kind of fault it was."""

    part: str
    kind: str


class Told(msgspec.Struct, frozen=True):
    """Everything that a report tells."""

    record: RunRecord
    settings: Evolution
    analysis: Analysis
    summary: Summary
    replies: Mapping[int, Sequence[Tried]] = {}
    """What models made of the problems of the sealed test with the evolved prompt, by the problems' numbers."""
    validated: Mapping[str, Sequence[float | None]] = {}
    """The scores on the validation set of those who went to the sealed test, as far as they are stored."""
    faults: Mapping[Fault, int] = {}
    examples: Mapping[Fault, str] = {}
    about: Sequence[tuple[str, str]] = ()
    """More of what was run, each with its name."""

    @property
    def title(self) -> str:
        """What the run is called."""
        return self.record.title

    @property
    def evolved(self) -> Tested:
        """The evolved prompt on the sealed test."""
        return named(self.analysis, self.analysis.evolution.name)


def told_of(record: RunRecord, results: Iterable[TrialResult], about: Sequence[tuple[str, str]] = ()) -> Told:
    """What the store has of an evolution. Its trials are read once, and few of them are kept."""
    if record.analysis is None:
        raise RunError(f"run {record.title!r} has no figures yet: resume it first")
    settings = msgspec.json.decode(record.settings or "{}", type=Evolution)
    analysis = msgspec.json.decode(record.analysis, type=Analysis)
    read = _Reading(settings, analysis)
    for each in results:
        read.take(each)
    return Told(
        record,
        settings,
        analysis,
        summarise(record),
        read.replies,
        read.validated(),
        dict(read.faults),
        read.examples,
        about,
    )


def named(analysis: Analysis, name: str) -> Tested:
    """Somebody on the sealed test, by name."""
    return next(each for each in analysis.tested if each.name == name)


class _Reading:
    """The trials that a report shows something of."""

    def __init__(self, settings: Evolution, analysis: Analysis) -> None:
        self.replies: dict[int, list[Tried]] = {}
        self.faults = Counter[Fault]()
        self.examples: dict[Fault, str] = {}
        self._models = settings.models
        self._evolved = called(named(analysis, analysis.evolution.name).genome, "test")
        self._validating = {called(each.genome, "validation") for each in analysis.tested}
        self._names = {each.name: called(each.genome, "validation") for each in analysis.tested}
        self._problems = len(settings.problems.validation)
        self._scores: dict[tuple[str, int], list[float]] = {}

    def take(self, trial: TrialResult) -> None:
        """Keep what is needed of a trial."""
        part, _, rest = trial.key.partition("/")
        if trial.fault is not None:
            fault = Fault(_part(part), trial.fault.kind.value)
            self.faults[fault] += 1
            self.examples.setdefault(fault, trial.fault.message)
        digest, _, place = rest.partition("/")
        name = f"{part}/{digest}"
        if name != self._evolved and name not in self._validating:
            return
        number, _, model = place.partition("/")
        solved: Solved | None = trial.result(Solved)
        if solved is None or not number.isdecimal():
            return
        if name == self._evolved:
            self.replies.setdefault(int(number), []).append(Tried(self._models[int(model or 0)], solved))
        else:
            self._scores.setdefault((name, int(number)), []).append(solved.score)

    def validated(self) -> dict[str, Scores]:
        """Scores by problem; missing where one of the models is."""
        return {
            who: [self._score(name, number) for number in range(self._problems)] for who, name in self._names.items()
        }

    def _score(self, name: str, number: int) -> float | None:
        found = self._scores.get((name, number), [])
        return mean_of(found) if len(found) == len(self._models) else None


def _part(part: str) -> str:
    """Which part of a run a trial belongs to: its key begins with a set of problems, or with the search it is of."""
    return {"train": "training", "validation": "validation", "test": "sealed test"}.get(part, "writing prompts")
