"""Episodes as the store has them: played again from the trials of a run, step by step, asking nobody anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from groundswell.experiments.query_mutation.analysis import Ended, Uses
from groundswell.experiments.query_mutation.episode import End, Episode, Transition, action_of, advance
from groundswell.experiments.query_mutation.playing import unpacked
from groundswell.experiments.query_mutation.stepping import Encode, Encoded, Step, Stepped
from groundswell.experiments.query_mutation.task import Task
from groundswell.program.request import Fault
from groundswell.store.results import TrialResult

STEP, ENCODE = "query_mutation/step@", "query_mutation/encode@"
EVALUATION = "eval"
MISSING = "whole step"
"""What failed where a step came to nothing at all."""


class Made(NamedTuple):
    """One step: what was done, what came of it, and what that was worth. `failed`: which parts did, and why."""

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
    """One episode of an evaluation, whole. `number` is the same for all who met it."""

    run: str
    key: str
    """What the keys of its trials begin with."""
    method: str
    learner: int
    number: int
    guard: str
    secret: str
    goal: str
    end: End
    best: float
    steps: tuple[Made, ...]

    @property
    def total(self) -> float:
        """The rewards of the episode."""
        return sum(each.reward for each in self.steps)

    @property
    def ended(self) -> Ended:
        """As statistics have it."""
        many = sum(each.usable for each in self.steps)
        who = self.method, self.learner, self.number
        return Ended(*who, self.guard, self.secret, self.goal, self.end, self.best, many, self.total)


class Failed(NamedTuple):
    """Steps that were not learnt from, or that broke an episode off: whose, which part of them, and of what kind."""

    who: str
    part: str
    kind: str


class _Failing(msgspec.Struct):
    """As much of a step's result as says whether it failed."""

    failed: dict[str, str] = {}


_failing = msgspec.json.Decoder(_Failing)


class Reading:
    """Reads the trials of a run; keeps the episodes of its evaluation, and counts what failed.

    A run that was scored anew, or got new attempts at what was missing, may hold steps of a way that was given up: what
    was learnt was other then, and so was what was tried. Of several steps at a place the last that was begun counts, if
    it goes on from where the episode stood.
    """

    def __init__(self, run: str, task: Task, trials: Iterable[TrialResult]) -> None:
        self._run, self._task = run, task
        self._places = {guard.name: at for at, guard in enumerate(task.guards)}
        self._encoded: dict[str, bytes] = {}
        self._learning: dict[str, tuple[str, TrialResult]] = {}
        self._tried: dict[tuple[str, str], dict[int, list[TrialResult]]] = {}
        self.failed = Counter[Failed]()
        self.examples: dict[Failed, str] = {}
        self.steps = Counter[str]()
        """Those of the evaluation; a learner's curve has its own."""
        for trial in trials:
            self._take(trial)
        for name, trial in self._learning.values():
            self._count(trial, name)
        played = [self._played(*who, steps) for who, steps in self._tried.items()]
        self.attempts = [each for each in played if each is not None]
        """The episodes that have ended, in the order in which they were begun."""

    def _take(self, trial: TrialResult) -> None:
        if trial.program.startswith(ENCODE) and (found := trial.result(Encoded)) is not None:
            self._encoded |= unpacked(trial.spec(Encode).texts, found)
        elif trial.program.startswith(STEP) and trial.status != "unfinished":
            first, second, third, step, *_ = trial.key.split("/")  # and what was tried in it
            if first == EVALUATION:
                self._tried.setdefault((second, third), {}).setdefault(int(step), []).append(trial)
            elif any(_failures(trial)):  # of the steps of a learner, of which there may be millions, only these
                self._learning[f"{first}/{second}/{third}/{step}"] = first, trial
            else:
                self._learning.pop(f"{first}/{second}/{third}/{step}", None)

    def _count(self, trial: TrialResult, name: str) -> None:
        """In what a step failed; learners of a kind are counted together."""
        for part, kind, why in _failures(trial):
            what = Failed(name.rpartition(".")[0], part, kind)
            self.failed[what] += 1
            self.examples.setdefault(what, why)

    def _played(self, name: str, number: str, steps: Mapping[int, Sequence[TrialResult]]) -> Attempt | None:
        """An episode, if it came to an end."""
        spec = steps[0][-1].spec(Step)
        place = self._places[spec.guard.name]
        episode = Episode(0, place, spec.secret, spec.goal, spec.goal, self._encoded[spec.goal])
        made: list[Made] = []
        while not episode.end and (trial := _next(steps.get(len(made), ()), episode)) is not None:
            self.steps[f"{EVALUATION}/{name.rpartition('.')[0]}"] += 1
            self._count(trial, f"{EVALUATION}/{name}")
            spec, stepped = trial.spec(Step), trial.result(Stepped)
            after = advance(self._task, episode, action_of(self._task, spec.mutator), stepped, self._encoded)
            made.append(_made(spec, stepped, after, trial.fault))
            episode = after.episode
        return self._attempt(name, int(number), episode, made) if episode.end else None

    def _attempt(self, name: str, number: int, episode: Episode, made: list[Made]) -> Attempt:
        method, _, learner = name.rpartition(".")
        guard = self._task.guards[episode.guard].name
        whose = self._run, f"{EVALUATION}/{name}/{number}", method, int(learner), number
        return Attempt(*whose, guard, episode.secret, episode.goal, episode.end, episode.best, tuple(made))


def _next(found: Sequence[TrialResult], episode: Episode) -> TrialResult | None:
    """The step that goes on from there."""
    return next((trial for trial in reversed(found) if trial.spec(Step).query == episode.query), None)


def _failures(trial: TrialResult) -> Iterator[tuple[str, str, str]]:
    """What failed in a step: which part, of what kind, and why."""
    if trial.fault is not None:
        yield MISSING, str(trial.fault.kind), trial.fault.message
    elif trial.result_json is not None:
        for part, why in _failing.decode(trial.result_json).failed.items():
            yield part, kind_of(why), why


def _made(spec: Step, stepped: Stepped | None, after: Transition, fault: Fault | None) -> Made:
    worth = after.gained, after.drift, after.reward, after.usable
    if stepped is None:
        failed = {} if fault is None else {MISSING: f"{fault.kind}: {fault.message}"}
        return Made(spec.mutator, spec.query, "", 0.0, False, *worth, failed)
    return Made(spec.mutator, stepped.query, stepped.response, stepped.score, stepped.refused, *worth, stepped.failed)


def kind_of(why: str) -> str:
    """The kind of a failure: what its message begins with, if that is one word."""
    kind, colon, _ = why.partition(": ")
    return kind if colon and kind.replace("_", "").isalpha() else "other"


def uses_of(attempts: Iterable[Attempt]) -> list[Uses]:
    """What each mutator did against each guard."""
    found: dict[tuple[str, str, str], list[Made]] = {}
    leaks = Counter[tuple[str, str, str]]()
    for each in attempts:
        for made in each.steps:
            if made.usable:
                found.setdefault((each.method, each.guard, made.mutator), []).append(made)
        if each.end == "leak":
            leaks[each.method, each.guard, each.steps[-1].mutator] += 1
    return [Uses(*key, len(some), sum(each.gained for each in some), leaks[key]) for key, some in sorted(found.items())]
