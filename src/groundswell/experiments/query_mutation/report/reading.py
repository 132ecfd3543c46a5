"""Episodes as the store has them: played again from the trials of a run, step by step, asking nobody anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from groundswell.experiments.query_mutation.analysis import Ended, Uses
from groundswell.experiments.query_mutation.episode import End, Episode, Transition, advance
from groundswell.experiments.query_mutation.playing import unpacked
from groundswell.experiments.query_mutation.stepping import Encode, Encoded, Step, Stepped
from groundswell.experiments.query_mutation.task import Task
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
    """Takes the trials of a run in; keeps its evaluation, and counts what failed."""

    def __init__(self, run: str, task: Task) -> None:
        self._run, self._task = run, task
        self._places = {guard.name: at for at, guard in enumerate(task.guards)}
        self._encoded: dict[str, bytes] = {}
        self._tried: dict[tuple[str, int], dict[int, list[TrialResult]]] = {}
        self.failed = Counter[Failed]()
        self.examples: dict[Failed, str] = {}
        self.steps = Counter[str]()

    def take(self, trials: Iterable[TrialResult]) -> None:
        """Read trials, in the order in which they were started."""
        for trial in trials:
            if trial.program.startswith(ENCODE) and (found := trial.result(Encoded)) is not None:
                self._encoded |= unpacked(trial.spec(Encode).texts, found)
            elif trial.program.startswith(STEP) and trial.status != "unfinished":
                self._step(trial)

    def _step(self, trial: TrialResult) -> None:
        first, name, number, at, *_ = trial.key.split("/")  # and what was tried
        if first == EVALUATION:
            self._count(trial, f"{first}/{name}")
            self._tried.setdefault((name, int(number)), {}).setdefault(int(at), []).append(trial)
        else:
            self._count(trial, first)

    def _count(self, trial: TrialResult, name: str) -> None:
        """Whether a step failed, and in what; learners of a kind are counted together."""
        who = name.rpartition(".")[0]
        self.steps[who] += 1
        if trial.fault is not None:
            self._fail(Failed(who, MISSING, str(trial.fault.kind)), trial.fault.message)
        elif trial.result_json is not None:
            for part, why in _failing.decode(trial.result_json).failed.items():
                self._fail(Failed(who, part, kind_of(why)), why)

    def _fail(self, what: Failed, why: str) -> None:
        self.failed[what] += 1
        self.examples.setdefault(what, why)

    def attempts(self) -> list[Attempt]:
        """The episodes that have ended, in the order in which they were begun."""
        played = ((who, self._played(steps)) for who, steps in self._tried.items())
        return [self._attempt(*who, *found) for who, found in played if found is not None and found[0].end]

    def _played(self, steps: Mapping[int, Sequence[TrialResult]]) -> tuple[Episode, list[Made]] | None:
        """An episode from its first step on.

        A step may have been tried several times, if missing ones were tried again and something else was learnt from
        them: the last one counts that tries the query as it stood then.
        """
        if not steps.get(0):
            return None
        spec = steps[0][-1].spec(Step)
        guard = self._places[spec.guard.name]
        episode = Episode(0, guard, spec.secret, spec.goal, spec.goal, self._encoded[spec.goal])
        made: list[Made] = []
        while not episode.end:
            trials = [each for each in steps.get(episode.step, ()) if each.spec(Step).query == episode.query]
            if not trials:
                break
            episode = self._advance(episode, trials[-1], made)
        return episode, made

    def _advance(self, before: Episode, trial: TrialResult, made: list[Made]) -> Episode:
        spec, stepped = trial.spec(Step), trial.result(Stepped)
        after = advance(self._task, before, self._task.mutators.index(spec.mutator), stepped, self._encoded)
        failed = {MISSING: f"{trial.fault.kind}: {trial.fault.message}"} if trial.fault is not None else {}
        made.append(_made(spec, stepped, after, failed))
        return after.episode

    def _attempt(self, name: str, number: int, episode: Episode, made: list[Made]) -> Attempt:
        method, _, learner = name.rpartition(".")
        guard = self._task.guards[episode.guard].name
        whose = self._run, f"{EVALUATION}/{name}/{number}", method, int(learner), number
        return Attempt(*whose, guard, episode.secret, episode.goal, episode.end, episode.best, tuple(made))


def _made(spec: Step, stepped: Stepped | None, after: Transition, failed: Mapping[str, str]) -> Made:
    worth = after.gained, after.drift, after.reward, after.usable
    if stepped is None:
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
