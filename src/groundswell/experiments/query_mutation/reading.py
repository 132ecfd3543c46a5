"""Read runs for reports: the stored analysis, and the episodes of the evaluation rebuilt from stored steps.

Sends no requests. Several runs that differ only in their seed are pooled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.query_mutation.analysis import Analysis, Curve, Ended, Guess, Uses
from groundswell.experiments.query_mutation.checks import Change
from groundswell.experiments.query_mutation.episode import End, Episode, Transition, action_of, advance
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.figures import analysed
from groundswell.experiments.query_mutation.guessing import Guessing, Said
from groundswell.experiments.query_mutation.playing import unpacked
from groundswell.experiments.query_mutation.stepping import Encode, Encoded, Step, Stepped
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.usefulness import OrdinaryAnswer, OrdinaryQuery, OrdinaryReply
from groundswell.experiments.query_mutation.verdict import UNTRAINED
from groundswell.program.request import Fault
from groundswell.store.journal import Store
from groundswell.store.results import TrialResult

STEP, ENCODE = "query_mutation/step@", "query_mutation/encode@"
ORDINARY, GUESS = "query_mutation/ordinary@", "query_mutation/guess@"
EVALUATION = "eval"
WHOLE_STEP = "whole step"
"""The failed part of a step that has no result."""
Stored = tuple[RunRecord, Iterable[TrialResult]]
"""A stored run and its trials."""


class Query(NamedTuple):
    """One step of an episode: the reworded query, the response and its score.

    `failed` maps the parts of the step that failed to the reasons.
    """

    mutator: str
    query: str
    response: str
    score: float
    refused: bool
    gained: float
    drift: float
    reward: float
    usable: bool
    failed: Mapping[str, str]


class Attempt(NamedTuple):
    """One episode of an evaluation, by one learner or baseline. `number` is the same for all methods."""

    run: str
    key: str
    """Prefix of the keys of its trials."""
    method: str
    learner: int
    number: int
    guard: str
    secret: str
    goal: str
    end: End
    best: float
    queries: tuple[Query, ...]
    guess: Guess | None = None

    @property
    def total(self) -> float:
        """Sum of the rewards."""
        return sum(each.reward for each in self.queries)

    @property
    def ended(self) -> Ended:
        """The episode in the form that the statistics use."""
        many = sum(each.usable for each in self.queries)
        who = self.method, self.learner, self.number
        return Ended(*who, self.guard, self.secret, self.goal, self.end, self.best, many, self.total, self.guess)


class Failure(NamedTuple):
    """A kind of failure: the method (with the prefix `eval/` in the evaluation), the part of the step, and the kind."""

    who: str
    part: str
    kind: str


class Settings(msgspec.Struct, frozen=True):
    """The settings that a report needs; a subset of those of both drivers."""

    task: Task = msgspec.field(default_factory=Task)
    evaluation: Evaluation = msgspec.field(default_factory=Evaluation)
    baselines: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportData:
    """The data of a report."""

    records: Sequence[RunRecord]
    summaries: Sequence[Summary]
    analysis: Analysis
    settings: Settings
    attempts: Sequence[Attempt]
    """The finished episodes of the evaluation."""
    failures: Mapping[Failure, int]
    """Number of failed steps by kind of failure."""
    failure_messages: Mapping[Failure, str]
    """One example message per kind of failure."""
    step_counts: Mapping[str, int]
    """Number of steps by method; those of the evaluation have the prefix `eval/`."""
    stored_settings: Mapping[str, Any]
    """The settings as the runs store them."""
    held: Store | None = None
    change: Change | None = None
    """The change since an earlier run."""
    answers: Sequence[OrdinaryAnswer] = ()
    """The replies to ordinary queries."""

    def held_out(self, guard: str) -> bool:
        """Whether this guard was held out from training."""
        return guard not in self.settings.evaluation.used(self.settings.task)


def read_runs(stored: Sequence[Stored], held: Store | None = None) -> ReportData:
    """Read a training or an evaluation, or several that differ only in their seed."""
    if not stored:
        raise SettingsError("runs: a report needs at least one run")
    records = [record for record, _ in stored]
    given = _shared_settings(records)
    settings = msgspec.convert(given, Settings)
    found = [_analysis(record) for record in records]
    runs = [StoredSteps(record.id, _evaluated_task(settings), trials) for record, trials in stored]
    attempts = _pooled([run.attempts for run in runs])
    answers = [each for run in runs for each in run.answers]
    whole = found[0] if len(found) == 1 else _pooled_analysis(found, attempts, settings, answers)
    return ReportData(
        records,
        [summarise(record) for record in records],
        whole,
        settings,
        attempts,
        _without_abandoned(sum((run.failures for run in runs), Counter[Failure]()), whole.curves),
        {what: why for run in reversed(runs) for what, why in run.messages.items()},
        sum((run.step_counts for run in runs), _training_steps(whole.curves)),
        given,
        held,
        answers=answers,
    )


def _shared_settings(records: Sequence[RunRecord]) -> dict[str, Any]:
    """The settings of all runs. An error names a setting that differs."""
    first, *rest = (msgspec.json.decode(record.settings or "{}", type=dict[str, Any]) for record in records)
    for record, other in zip(records[1:], rest, strict=True):
        for name in sorted({*first, *other}):
            if first.get(name) != other.get(name):
                raise SettingsError(
                    f"run {record.title!r}: {name} is not the same as in run {records[0].title!r}; only runs "
                    f"that differ in nothing but the seed can share a report",
                    field=name,
                )
        if [each.seed for each in records].count(record.seed) > 1:
            raise SettingsError(
                f"run {record.title!r} has the same seed as another run and adds no data; remove it", field="seed"
            )
    return first


def _analysis(record: RunRecord) -> Analysis:
    if record.analysis is None:
        raise RunError(f"Run {record.title!r} is not complete and has no results yet. Resume it first.")
    return msgspec.json.decode(record.analysis, type=Analysis)


def _evaluated_task(settings: Settings) -> Task:
    """The task of the evaluation: with the held-out guards and secrets."""
    return settings.evaluation.task(settings.task)


def _training_steps(curves: Sequence[Curve]) -> Counter[str]:
    """Number of training steps by kind of learner."""
    found = Counter[str]()
    for curve in curves:
        found[curve.learner] += sum(point.usable + point.masked for point in curve.points)
    return found


def _without_abandoned(failures: Mapping[Failure, int], curves: Sequence[Curve]) -> dict[Failure, int]:
    """The failures without those of learners that were trained again later: their curves have no masked steps."""
    masked = {curve.learner for curve in curves if any(point.masked for point in curve.points)}
    clean = {curve.learner for curve in curves} - masked
    return {what: many for what, many in failures.items() if what.who not in clean}


def _pooled(runs: Sequence[Sequence[Attempt]]) -> list[Attempt]:
    """The episodes of all runs. Learners and episodes are numbered consecutively; every run draws its own episodes."""
    every: list[Attempt] = []
    learners, numbers = Counter[str](), 0
    for own in runs:
        every += [
            each._replace(learner=each.learner + learners[each.method], number=each.number + numbers) for each in own
        ]
        for method in {each.method for each in own if each.method not in UNTRAINED}:
            learners[method] += 1 + max(each.learner for each in own if each.method == method)
        numbers += 1 + max((each.number for each in own), default=-1)
    return every


def _pooled_analysis(
    found: Sequence[Analysis], attempts: Sequence[Attempt], settings: Settings, answers: Sequence[OrdinaryAnswer]
) -> Analysis:
    curves: list[Curve] = []
    for each in found:
        begun = Counter(curve.learner for curve in curves)
        curves += [msgspec.structs.replace(one, number=one.number + begun[one.learner]) for one in each.curves]
    ended, met = [each.ended for each in attempts], settings.evaluation.used(settings.task)
    return analysed(curves, ended, uses_of(attempts), settings.task, answers, met=met)


class _Failing(msgspec.Struct):
    """The part of a step's result that says whether it failed."""

    failed: dict[str, str] = {}


_failing = msgspec.json.Decoder(_Failing)


class StoredSteps:
    """Reads the trials of a run: rebuilds the episodes of the evaluation, and counts failures.

    A run that was scored again, or got new attempts at missing trials, may contain steps of abandoned episodes, chosen
    by an earlier policy. Of several steps at the same position of an episode, the latest one counts that continues
    from the state of the episode. If it failed and was repeated, the first repetition that worked counts.
    """

    def __init__(self, run: str, task: Task, trials: Iterable[TrialResult]) -> None:
        self._run, self._task = run, task
        self._guards = {guard.name: at for at, guard in enumerate(task.guards)}
        self._encoded: dict[str, bytes] = {}
        self._failing_training: dict[str, tuple[str, TrialResult]] = {}
        self._evaluation: dict[tuple[str, str], dict[int, list[TrialResult]]] = {}
        self._guesses: dict[tuple[str, str], list[TrialResult]] = {}
        self.failures = Counter[Failure]()
        self.messages: dict[Failure, str] = {}
        self.step_counts = Counter[str]()
        """Steps of the evaluation; those of the training are in the curves."""
        self._ordinary: dict[tuple[int, ...], OrdinaryAnswer] = {}
        for trial in trials:
            self._take(trial)
        self.answers = [self._ordinary[place] for place in sorted(self._ordinary)]
        """The replies to ordinary queries."""
        for name, trial in self._failing_training.values():
            self._count_failures(trial, name)
        rebuilt = [self._rebuilt(*who, steps) for who, steps in self._evaluation.items()]
        self.attempts = [each for each in rebuilt if each is not None]
        """The finished episodes, in the order in which they began."""

    def _take(self, trial: TrialResult) -> None:
        if trial.program.startswith(ENCODE) and (found := trial.result(Encoded)) is not None:
            self._encoded |= unpacked(trial.spec(Encode).texts, found)
        elif trial.program.startswith(ORDINARY) and trial.status != "unfinished":
            why = "" if trial.fault is None else trial.fault.message
            spec, reply = trial.spec(OrdinaryQuery), trial.result(OrdinaryReply)
            order = tuple(map(int, trial.key.split("/")[1:]))
            self._ordinary[order] = OrdinaryAnswer(self._run, trial.key, spec, reply, why)
        elif trial.program.startswith(GUESS) and trial.status != "unfinished":
            _, name, number, *_ = trial.key.split("/")
            self._guesses.setdefault((name, number), []).append(trial)
        elif trial.program.startswith(STEP) and trial.status != "unfinished":
            first, second, third, step, *_ = trial.key.split("/")  # and a hash of what was tried
            place = f"{first}/{second}/{third}/{step}"
            if first == EVALUATION:
                self._evaluation.setdefault((second, third), {}).setdefault(int(step), []).append(trial)
            elif any(_failures(trial)):  # a training may have millions of steps: only failed ones are kept
                self._failing_training[place] = first, trial
            else:
                self._failing_training.pop(place, None)

    def _count_failures(self, trial: TrialResult, name: str) -> None:
        """Count the failures of a step by kind of learner."""
        for part, kind, why in _failures(trial):
            what = Failure(name.rpartition(".")[0], part, kind)
            self.failures[what] += 1
            self.messages.setdefault(what, why)

    def _rebuilt(self, name: str, number: str, steps: Mapping[int, Sequence[TrialResult]]) -> Attempt | None:
        """The episode, if it is finished."""
        spec = steps[0][-1].spec(Step)
        episode = Episode(0, self._guards[spec.guard.name], spec.secret, spec.goal, spec.goal, self._encoded[spec.goal])
        queries: list[Query] = []
        while not episode.end and (tries := _next(steps.get(len(queries), ()), episode)):
            tried = list(self._tried(tries, episode, f"{EVALUATION}/{name}"))
            trial, after = tried[-1]
            queries.append(_query(trial.spec(Step), trial.result(Stepped), after, trial.fault))
            episode = after.episode
        return self._attempt(name, int(number), episode, queries) if episode.end else None

    def _tried(
        self, tries: Sequence[TrialResult], episode: Episode, who: str
    ) -> Iterator[tuple[TrialResult, Transition]]:
        """A step and its repetitions, up to the first that worked."""
        for trial in tries:
            self.step_counts[who.rpartition(".")[0]] += 1
            self._count_failures(trial, who)
            action = action_of(self._task, trial.spec(Step).mutator)
            after = advance(self._task, episode, action, trial.result(Stepped), self._encoded)
            yield trial, after
            if after.usable:
                return

    def _attempt(self, name: str, number: int, episode: Episode, queries: Sequence[Query]) -> Attempt:
        method, _, learner = name.rpartition(".")
        guard = self._task.guards[episode.guard].name
        whose = self._run, f"{EVALUATION}/{name}/{number}", method, int(learner), number
        found = episode.secret, episode.goal, episode.end, episode.best, tuple(queries)
        return Attempt(*whose, guard, *found, self._guess(name, number, episode))

    def _guess(self, name: str, number: int, episode: Episode) -> Guess | None:
        """The guess from this transcript. That from an abandoned episode does not count."""
        for trial in reversed(self._guesses.get((name, str(number)), ())):
            spec = trial.spec(Guessing)
            if spec.talk == episode.talk and episode.end != "fault":
                said = trial.result(Said)
                return Guess(None if said is None else said.guess, spec.decoy)
        return None


def _next(found: Sequence[TrialResult], episode: Episode) -> list[TrialResult]:
    """The latest step that continues from this state, and its repetitions in order."""
    whose = (trial for trial in reversed(found) if _continues(trial.spec(Step), episode))
    if (latest := next(whose, None)) is None:
        return []
    key = _without_repetition(latest.key)
    return sorted((trial for trial in found if _without_repetition(trial.key) == key), key=lambda trial: trial.key)


def _continues(spec: Step, episode: Episode) -> bool:
    return (spec.query, spec.talk) == (episode.query, episode.talk)


def _without_repetition(key: str) -> str:
    """The key of the first try of a step."""
    return key.partition("/again")[0]


def _failures(trial: TrialResult) -> Iterator[tuple[str, str, str]]:
    """The failures of a step: part, kind and message."""
    if trial.fault is not None:
        yield WHOLE_STEP, str(trial.fault.kind), trial.fault.message
    elif trial.result_json is not None:
        for part, why in _failing.decode(trial.result_json).failed.items():
            yield part, kind_of(why), why


def _query(spec: Step, stepped: Stepped | None, after: Transition, fault: Fault | None) -> Query:
    worth = after.gained, after.drift, after.reward, after.usable
    if stepped is None:
        failed = {} if fault is None else {WHOLE_STEP: f"{fault.kind}: {fault.message}"}
        return Query(spec.mutator, spec.query, "", 0.0, False, *worth, failed)
    return Query(spec.mutator, stepped.query, stepped.response, stepped.score, stepped.refused, *worth, stepped.failed)


def kind_of(why: str) -> str:
    """The kind of a failure: the first word of its message, if a colon follows."""
    kind, colon, _ = why.partition(": ")
    return kind if colon and kind.replace("_", "").isalpha() else "other"


def uses_of(attempts: Iterable[Attempt]) -> list[Uses]:
    """The results of each mutation against each guard."""
    found: dict[tuple[str, str, str], list[Query]] = {}
    leaks = Counter[tuple[str, str, str]]()
    for each in attempts:
        for query in each.queries:
            if query.usable:
                found.setdefault((each.method, each.guard, query.mutator), []).append(query)
        if each.end == "leak":
            leaks[each.method, each.guard, each.queries[-1].mutator] += 1
    return [Uses(*key, len(some), sum(each.gained for each in some), leaks[key]) for key, some in sorted(found.items())]
