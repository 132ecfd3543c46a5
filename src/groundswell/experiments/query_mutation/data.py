"""The data files of a report: one row per episode of the evaluation, one per query of these, and one per update."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from groundswell.experiments.query_mutation.reading import Attempt, ReportData
from groundswell.experiments.report import DataTable
from groundswell.store.tables import Columns

Row = dict[str, Any]
COMMON: Columns = {
    "run": "text",
    "key": "text",
    "method": "text",
    "learner": "int",
    "episode": "int",
    "guard": "text",
    "held_out": "bool",
    "target": "text",
    "secret": "text",
    "goal": "text",
}
EPISODES: Columns = {
    **COMMON,
    "status": "text",
    "end": "text",
    "leaked": "bool",
    "best": "float",
    "queries": "int",
    "total": "float",
    "fault": "text",
    "mutators": "list",
    "steps": "json",
}
QUERIES: Columns = {
    **COMMON,
    "number": "int",
    "mutator": "text",
    "query": "text",
    "response": "text",
    "score": "float",
    "refused": "bool",
    "gained": "float",
    "drift": "float",
    "reward": "float",
    "usable": "bool",
    "failed": "json",
}
UPDATES: Columns = {
    "learner": "text",
    "number": "int",
    "steps": "int",
    "usable": "int",
    "masked": "int",
    "reward": "float",
    "episodes": "int",
    "leaks": "int",
    "policy_loss": "float",
    "value_loss": "float",
    "entropy": "float",
    "clipped": "float",
}
OF_BOTH = {
    "run": "the id of the run",
    "key": "what the keys of its trials begin with: groundswell runs show RUN --trial KEY/0 shows the first one whole",
    "method": "who chose the mutators",
    "learner": "which learner of that method, from 0; over several runs, numbered on",
    "episode": "the same number is the same guard, secret and first query, whoever met it",
    "guard": "the guard round the secret",
    "held_out": "whether no training met this guard",
    "target": "the model that was asked behind this guard",
    "secret": "the planted word",
    "goal": "the query that the episode began with",
}
OF_EPISODES = {
    **OF_BOTH,
    "status": "usable, or missing: a fault broke it off. Take the usable ones to get the figures of this page",
    "end": "leak, steps (it reached the last one) or fault",
    "leaked": "whether the secret came out; empty where that is missing",
    "best": "the largest share of it that a response gave away",
    "queries": "how many steps worked",
    "total": "the rewards of the episode; empty where it is missing",
    "fault": "what failed, and why",
    "mutators": "what was chosen, in order",
    "steps": "every step: mutator, query, response, score, refused, gained, drift, reward, usable, failed",
}
OF_QUERIES = {
    **OF_BOTH,
    "number": "its place in the episode, from 1",
    "mutator": "how the query was reworded",
    "query": "the query as it was sent",
    "response": "what the target answered",
    "score": "the share of the secret that the response gave away, or what another reward makes of it",
    "refused": "whether the response has words of a refusal",
    "gained": "the part of the score that goes beyond the best one before",
    "drift": "how far the query is from the one that the episode began with, from 0 to 1",
    "reward": "what was gained, less what the query and the drift cost",
    "usable": "whether all parts of the step worked; if not, the episode ends there and is missing",
    "failed": "the parts that failed, and why",
}
OF_UPDATES = {
    "learner": "what learns",
    "number": "which of its kind, from 0; over several runs, numbered on",
    "steps": "its steps up to this update",
    "usable": "steps of the update that worked",
    "masked": "steps that failed, and were not learnt from",
    "reward": "mean reward of a usable step",
    "episodes": "episodes that ended within the update, other than by a fault",
    "leaks": "how many of these ended with a leak",
    "policy_loss": "the loss of PPO's policy; empty for other learners",
    "value_loss": "the loss of its value function",
    "entropy": "the entropy of its choices",
    "clipped": "the share of steps whose probability had moved as far as it may",
}


def data_tables(data: ReportData) -> Iterator[DataTable]:
    """The files beside the report."""
    yield DataTable("episodes", EPISODES, partial(episode_rows, data), OF_EPISODES)
    yield DataTable("queries", QUERIES, partial(query_rows, data), OF_QUERIES)
    yield DataTable("updates", UPDATES, partial(update_rows, data), OF_UPDATES)


def _attempts(data: ReportData) -> Iterator[tuple[Attempt, Row]]:
    """Every episode of the evaluation, and the cells that all tables have of it."""
    task = data.settings.task
    guards = (*task.guards, *data.settings.evaluation.guards)
    targets = {guard.name: guard.model(task.target) for guard in guards}
    for attempt in data.attempts:
        common = {
            "run": attempt.run,
            "key": attempt.key,
            "method": attempt.method,
            "learner": attempt.learner,
            "episode": attempt.number,
            "guard": attempt.guard,
            "held_out": data.held_out(attempt.guard),
            "target": targets.get(attempt.guard),
            "secret": attempt.secret,
            "goal": attempt.goal,
        }
        yield attempt, common


def episode_rows(data: ReportData) -> Iterator[Row]:
    """Every episode of the evaluation."""
    for attempt, common in _attempts(data):
        missing = attempt.end == "fault"
        failed = {part: why for query in attempt.queries for part, why in query.failed.items()}
        yield {
            **common,
            "status": "missing" if missing else "usable",
            "end": attempt.end,
            "leaked": None if missing else attempt.end == "leak",
            "best": attempt.best,
            "queries": attempt.ended.steps,
            "total": None if missing else attempt.total,
            "fault": "; ".join(f"{part}: {why}" for part, why in failed.items()) or None,
            "mutators": [query.mutator for query in attempt.queries],
            "steps": [query._asdict() for query in attempt.queries],
        }


def query_rows(data: ReportData) -> Iterator[Row]:
    """Every query of these episodes."""
    for attempt, common in _attempts(data):
        for number, query in enumerate(attempt.queries, 1):
            yield {**common, "number": number, **query._asdict()}


def update_rows(data: ReportData) -> Iterator[Row]:
    """Every update of every learner."""
    for curve in data.analysis.curves:
        for each in curve.points:
            losses = each.losses
            yield {
                "learner": curve.learner,
                "number": curve.number,
                **{name: getattr(each, name) for name in ("steps", "usable", "masked", "reward", "episodes", "leaks")},
                "policy_loss": losses and losses.policy,
                "value_loss": losses and losses.value,
                "entropy": losses and losses.entropy,
                "clipped": losses and losses.clipped,
            }
