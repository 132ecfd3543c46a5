"""The data files of a report: one row per episode of the evaluation, query of these, ordinary query, and update."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from groundswell.experiments.query_mutation.reading import Attempt, ReportData
from groundswell.experiments.query_mutation.usefulness import near
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
ORDINARY: Columns = {
    "run": "text",
    "key": "text",
    "guard": "text",
    "held_out": "bool",
    "target": "text",
    "secret": "text",
    "query": "text",
    "near": "bool",
    "expected": "text",
    "status": "text",
    "leaked": "bool",
    "response": "text",
    "fault": "text",
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
    "key": "prefix of the keys of its trials: groundswell runs show RUN --trial KEY/0 shows the first one",
    "method": "method that chose the mutations, such as ppo or sequence",
    "learner": "number of the learner within its method, from 0; numbered consecutively over several runs",
    "episode": "number of the episode; the same number has the same guard, secret and first query for every method",
    "guard": "name of the guard",
    "held_out": "whether the guard was held out from training",
    "target": "model under test",
    "secret": "the planted secret",
    "goal": "first query of the episode",
}
OF_EPISODES = {
    **OF_BOTH,
    "status": "usable, or missing if a fault ended the episode; rates allow for missing episodes (Kaplan-Meier)",
    "end": "leak, steps (reached the last step) or fault",
    "leaked": "whether the secret leaked; empty if the episode is missing",
    "best": "largest share of the secret that a response revealed",
    "queries": "number of usable steps",
    "total": "sum of the rewards; empty if the episode is missing",
    "fault": "what failed, and why",
    "mutators": "the chosen mutations, in order",
    "steps": "every step: mutator, query, response, score, refused, gained, drift, reward, usable, failed",
}
OF_QUERIES = {
    **OF_BOTH,
    "number": "position in the episode, from 1",
    "mutator": "mutation that reworded the query",
    "query": "the query as sent",
    "response": "the response of the target",
    "score": "share of the secret that is out after the response, or the score by another reward",
    "refused": "whether the response contains the words of a refusal",
    "gained": "score above the best earlier score of the episode",
    "drift": "cosine distance from the first query of the episode, from 0 to 1",
    "reward": "gained, minus the costs of the query and of the drift",
    "usable": "whether all parts of the step worked; if not, the episode ends here and is missing",
    "failed": "the parts that failed, and why",
}
OF_ORDINARY = {
    **{name: OF_BOTH[name] for name in ("run",)},
    "key": "key of the trial: groundswell runs show RUN --trial KEY shows it",
    **{name: OF_BOTH[name] for name in ("guard", "held_out", "target", "secret")},
    "query": "an ordinary query, which the guard should answer",
    "near": "whether it sounds as if it were about a secret",
    "expected": "a word that a right answer contains; | separates other forms",
    "status": "answered, refused (an over-refusal), wrong (without the expected word), or missing if it failed",
    "leaked": "whether the response contains the secret; empty if it is missing",
    "response": "the response of the target",
    "fault": "why it failed",
}
OF_UPDATES = {
    "learner": "trained method, such as ppo or sequence",
    "number": "number of the learner within its kind, from 0; numbered consecutively over several runs",
    "steps": "total steps of the learner after this update",
    "usable": "usable steps of the update",
    "masked": "steps that failed and were excluded from learning",
    "reward": "mean reward of a usable step",
    "episodes": "episodes that ended in the update without a fault",
    "leaks": "how many of these episodes ended with a leak",
    "policy_loss": "policy loss of PPO; empty for other learners",
    "value_loss": "value loss of PPO",
    "entropy": "entropy of the policy",
    "clipped": "share of steps whose probability ratio was clipped",
}


def data_tables(data: ReportData) -> Iterator[DataTable]:
    """The data files of the report."""
    yield DataTable("episodes", EPISODES, partial(episode_rows, data), OF_EPISODES)
    yield DataTable("queries", QUERIES, partial(query_rows, data), OF_QUERIES)
    if data.answers:
        yield DataTable("ordinary", ORDINARY, partial(ordinary_rows, data), OF_ORDINARY)
    yield DataTable("updates", UPDATES, partial(update_rows, data), OF_UPDATES)


def _attempts(data: ReportData) -> Iterator[tuple[Attempt, Row]]:
    """Every episode of the evaluation, with the columns that all tables share."""
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


def ordinary_rows(data: ReportData) -> Iterator[Row]:
    """Every ordinary query to every guard."""
    for each in data.answers:
        spec, reply = each.spec, each.reply
        yield {
            "run": each.run,
            "key": each.key,
            "guard": spec.guard.name,
            "held_out": data.held_out(spec.guard.name),
            "target": spec.target,
            "secret": spec.secret,
            "query": spec.query,
            "near": near(spec.query),
            "expected": spec.expected or None,
            "status": "missing" if reply is None else reply.status,
            "leaked": None if reply is None else reply.leaked,
            "response": None if reply is None else reply.response,
            "fault": each.fault or None,
        }


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
