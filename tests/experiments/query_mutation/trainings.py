"""Trainings for the tests of statistics and of the report: episodes made by hand, and their analysis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from groundswell.engine.records import Counters, RunRecord
from groundswell.engine.summary import Asks, Cost, Paid, RunCost, Summary, Trials
from groundswell.experiments.query_mutation.analysis import Curve, Ended, Point
from groundswell.experiments.query_mutation.episode import End
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.experiment import MutationResults
from groundswell.experiments.query_mutation.figures import analysed
from groundswell.experiments.query_mutation.guards import guards_named
from groundswell.experiments.query_mutation.learning.rules import Losses
from groundswell.experiments.query_mutation.reading import Attempt, Failure, Query, ReportData, Settings, uses_of
from groundswell.experiments.query_mutation.task import Task, goals
from groundswell.experiments.query_mutation.usefulness import OrdinaryAnswer, OrdinaryQuery, OrdinaryReply
from groundswell.experiments.report import ReportFormat
from groundswell.experiments.results import Written
from groundswell.reporting.blocks import Report
from groundswell.store.journal import Store

TASK = Task(guards=guards_named(["open", "asked", "firm"]))
MET, NEW = ("open", "firm"), ("wary", "warned")
REFUSED = OrdinaryReply("I can't help with <that>.", "refused", False)
SUMMARY = Summary(
    "run1",
    "completed",
    Trials(10, 10, 0),
    Asks(100, 0, 0, 0, 0),
    RunCost(0.5, 0),
    12.0,
    name="a run",
    models={"emulated/reworder": Paid(5, 10, 20, Cost(0.5, 0))},
)


def query(
    mutator: str = "indirect", query: str = "A query?", response: str = "No.", score: float = 0.0, failed: str = ""
) -> Query:
    """One step."""
    usable = not failed
    reward = (score - 0.02) if usable else 0.0
    return Query(
        mutator, query, response, score, not score, score, 0.0, reward, usable, {"target": failed} if failed else {}
    )


def attempt(
    method: str = "ppo", learner: int = 0, number: int = 0, guard: str = "wary", end: End = "leak", steps: int = 2
) -> Attempt:
    """One episode. Its secret is that of its number."""
    secret = goals().held_out[number % 24]
    every = [query(query=f"Question {at}?") for at in range(steps - 1)]
    last = {
        "leak": query(response=f"It is {secret}, you know.", score=1.0),
        "steps": query(),
        "fault": query(failed="timeout: took <too> long"),
    }[end]
    name = f"eval/{method}.{learner}/{number}"
    best = 1.0 if end == "leak" else 0.0
    goal = TASK.queries[number % 8]
    return Attempt("run1", name, method, learner, number, guard, secret, goal, end, best, (*every, last))


def attempts(leaks: dict[str, float], learners: int = 1, episodes: int = 24, steps: int = 2) -> list[Attempt]:
    """Methods that leak in that share of their episodes against every guard; the same ones for all learners."""
    found = []
    for method, rate in leaks.items():
        for learner in range(learners if method in ("ppo", "bandit") else 1):
            for number in range(episodes * 4):
                guard = (*MET, *NEW)[number // episodes]
                end: End = "leak" if (number * 7) % episodes < rate * episodes else "steps"
                found.append(attempt(method, learner, number, guard, end, steps))
    return found


def ended(some: Sequence[Attempt]) -> list[Ended]:
    return [each.ended for each in some]


def answers(answered: dict[str, int]) -> list[OrdinaryAnswer]:
    """Guards that answer so many of the ordinary queries, and refuse the others."""
    found = []
    for at, (name, many) in enumerate(answered.items()):
        guard = next(each for each in (*TASK.guards, *guards_named(NEW)) if each.name == name)
        for number, each in enumerate(goals().ordinary):
            spec = OrdinaryQuery(each.query, each.expected, "anchor", guard, guard.model(TASK.target))
            told = OrdinaryReply("Certainly.", "answered", False) if number < many else REFUSED
            found.append(OrdinaryAnswer("run1", f"ordinary/{at}/{number}", spec, told))
    return found


def curve(learner: str = "ppo", number: int = 0, rates: Sequence[float] = (0.2, 0.5, 0.8)) -> Curve:
    """A learner that comes along."""
    losses = Losses(0.1, 0.2, 1.5, 0.05) if learner == "ppo" else None
    points = [Point(512 * at, 510, 2, 0.1 * rate, 50, round(50 * rate), losses) for at, rate in enumerate(rates, 1)]
    return Curve(learner, number, tuple(points))


def run_record(id_: str = "run1", title: str = "A run") -> RunRecord:
    """A run as the store would hold it."""
    return RunRecord(
        1, id_, title, "completed", 7, "query-mutation/train", None, {}, {}, None, None, Counters(), None, None, False,
        1_700_000_000.0, 1_700_000_000.0,
    )  # fmt: skip


def report_data(
    some: Sequence[Attempt],
    curves: Sequence[Curve] = (curve(), curve("bandit")),
    title: str = "A run",
    answers: Sequence[OrdinaryAnswer] = (),
) -> ReportData:
    """What a report is made of, without a store."""
    failures = {Failure("ppo", "target", "timeout"): 2, Failure("eval/ppo", "target", "timeout"): 1}
    return ReportData(
        [run_record(title=title)],
        [SUMMARY],
        analysed(curves, ended(some), uses_of(some), TASK, answers),
        Settings(TASK, Evaluation(guards=guards_named(NEW))),
        some,
        failures,
        dict.fromkeys(failures, "timeout: took <too> long"),
        {"ppo": 1536, "bandit": 1536, "eval/ppo": 400},
        {"repeats": 2, "num_env_steps": 1536, "rules": {"lr": 0.01}},
        answers=answers,
    )


class Held(MutationResults):
    """The results of a training that is at hand, so that no store is needed. It has no policies."""

    def __init__(self, folder: Path, data: ReportData) -> None:
        super().__init__(folder)
        self._data = data

    def read(self, held: Any, records: Sequence[RunRecord]) -> ReportData:
        return self._data

    def write_more(self, held: Any, records: Sequence[RunRecord], found: ReportData) -> Sequence[Path]:
        return ()


def report_of(data: ReportData) -> Report:
    """The blocks of a training."""
    return Held(Path(), data).report(cast(Store, None), data.records)


def write_report(folder: Path, data: ReportData, format: ReportFormat = "html") -> Written:
    """The report of a training with all its files."""
    return Held(folder, data).write(cast(Store, None), data.records, format)
