"""What a report is made of: figures, and the episodes behind them. Runs that differ in seed alone are pooled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.query_mutation.analysis import Analysis, Curve
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.figures import analysed
from groundswell.experiments.query_mutation.report.reading import Attempt, Failed, Reading, uses_of
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.verdict import UNTRAINED
from groundswell.store.results import TrialResult

Stored = tuple[RunRecord, Iterable[TrialResult]]
"""A run and its trials, as the store has them."""


class Settings(msgspec.Struct, frozen=True):
    """As much of a run's settings as a report needs: whichever driver they are of."""

    task: Task = msgspec.field(default_factory=Task)
    evaluation: Evaluation = msgspec.field(default_factory=Evaluation)


class Told(msgspec.Struct, frozen=True):
    """Everything that a report tells."""

    title: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    analysis: Analysis
    summaries: tuple[Summary, ...]
    settings: Settings
    attempts: Sequence[Attempt]
    failed: Mapping[Failed, int] = {}
    """How many steps failed, of whom and why; `eval/` stands before those of the evaluation."""
    examples: Mapping[Failed, str] = {}
    steps: Mapping[str, int] = {}
    """How many steps each made."""
    chosen: Mapping[str, Any] = {}
    """The settings as they were given; what is not there was left at its default."""
    about: Sequence[tuple[str, str]] = ()
    """More of what was run, each with its name."""


def told_of(stored: Sequence[Stored], title: str = "", about: Sequence[tuple[str, str]] = ()) -> Told:
    """What the store has of a training, or of several that differ in their seed alone."""
    if not stored:
        raise SettingsError("runs: at least one is needed for a report")
    records = [record for record, _ in stored]
    chosen = _alike(records)
    settings = msgspec.convert(chosen, Settings)
    found = [_analysis(record) for record in records]
    readings = [_read(each, settings) for each in stored]
    attempts = _pooled(found, readings)
    whole = found[0] if len(found) == 1 else _together(found, attempts, settings.task)
    return Told(
        title or " and ".join(record.title for record in records),
        tuple(record.id for record in records),
        tuple(record.seed for record in records),
        whole,
        tuple(summarise(record) for record in records),
        settings,
        attempts,
        _of_curves(whole.curves, sum((each.failed for each in readings), Counter[Failed]())),
        {what: why for each in reversed(readings) for what, why in each.examples.items()},
        sum((each.steps for each in readings), _steps(whole.curves)),
        chosen,
        about,
    )


def _alike(records: Sequence[RunRecord]) -> dict[str, Any]:
    """The settings that all runs have; an error says in what they differ."""
    first, *rest = (msgspec.json.decode(record.settings or "{}", type=dict[str, Any]) for record in records)
    for record, other in zip(records[1:], rest, strict=True):
        for name in sorted({*first, *other}):
            if first.get(name) != other.get(name):
                raise SettingsError(
                    f"run {record.title!r}: {name} differs from that of {records[0].title!r}; only runs that differ in "
                    "their seed alone can be reported together",
                    field=name,
                )
        if [each.seed for each in records].count(record.seed) > 1:
            raise SettingsError(
                f"run {record.title!r}: has the seed of another one, so it says nothing new; leave it out", field="seed"
            )
    return first


def _analysis(record: RunRecord) -> Analysis:
    if record.analysis is None:
        raise RunError(f"run {record.title!r} has no figures yet: resume it first")
    return msgspec.json.decode(record.analysis, type=Analysis)


def _read(stored: Stored, settings: Settings) -> Reading:
    record, trials = stored
    task, evaluation = settings.task, settings.evaluation
    tried = msgspec.structs.replace(task, guards=(*task.guards, *evaluation.guards), secrets=evaluation.secrets)
    return Reading(record.id, tried, trials)


def _steps(curves: Sequence[Curve]) -> Counter[str]:
    """How many steps learners of each kind made."""
    found = Counter[str]()
    for curve in curves:
        found[curve.learner] += sum(point.usable + point.masked for point in curve.points)
    return found


def _of_curves(curves: Sequence[Curve], failed: Mapping[Failed, int]) -> dict[Failed, int]:
    """What failed, without what learners left behind that were taught anew: their curves say whether any was masked."""
    clean = {curve.learner for curve in curves} - {
        curve.learner for curve in curves if any(point.masked for point in curve.points)
    }
    return {what: many for what, many in failed.items() if what.who not in clean}


def _pooled(found: Sequence[Analysis], readings: Sequence[Reading]) -> list[Attempt]:
    """The episodes of all runs. Learners are numbered on; so are episodes, which every run draws for itself."""
    every: list[Attempt] = []
    learners, numbers = Counter[str](), 0
    for reading in readings:
        own = reading.attempts
        every += [
            each._replace(learner=each.learner + learners[each.method], number=each.number + numbers) for each in own
        ]
        for method in {each.method for each in own if each.method not in UNTRAINED}:
            learners[method] += 1 + max(each.learner for each in own if each.method == method)
        numbers += 1 + max((each.number for each in own), default=-1)
    return every


def _together(found: Sequence[Analysis], attempts: Sequence[Attempt], task: Task) -> Analysis:
    curves: list[Curve] = []
    for each in found:
        begun = Counter(curve.learner for curve in curves)
        curves += [msgspec.structs.replace(one, number=one.number + begun[one.learner]) for one in each.curves]
    return analysed(curves, [each.ended for each in attempts], uses_of(attempts), task)
