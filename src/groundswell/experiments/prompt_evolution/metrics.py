"""Metrics: functions that score a reply to a problem from 0 to 1. Register your own with `@metric("name")`.

A metric is a `def f(reply, problem)` that returns a score, or a score and feedback for the model that writes prompts. A
metric that asks a model is an `async def f(trial, reply, problem)` and uses `trial.ask` as any program does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.named import Named
from groundswell.experiments.prompt_evolution.answers import after_thinking, extracted, same_number, says
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.program.source import identity
from groundswell.program.tally import Tally, tallied
from groundswell.program.trial import Program, Trial, program


class Scored(msgspec.Struct, frozen=True, omit_defaults=True):
    """The score of a reply, the requests that the metric made, and what it says about the reply."""

    score: float
    judged: Tally = {}
    feedback: str = ""


class Replied(msgspec.Struct, frozen=True):
    """A reply and its problem."""

    reply: str
    problem: Problem


Metric = Program[Replied, Scored]
F = TypeVar("F", bound=Callable[..., Any])
_METRICS = Named[Metric]("metric")
_PLAIN: dict[str, Callable[..., Any] | None] = {}
"""The functions of metrics that ask no model; None for the others."""


SHOWN = 40
LONGEST_FEEDBACK = 2_000


class NoScore(Exception):
    """A metric returned a value that is not from 0 to 1."""


def metric(name: str) -> Callable[[F], F]:
    """Register a function as a metric: `def f(reply, problem) -> float`, with scores from 0 to 1.

    It may also return `(score, feedback)`. The feedback is shown to the model that writes better prompts. A metric that
    asks a model is an `async def f(trial, reply, problem)`.
    """

    def register(function: F) -> F:
        asks = inspect.iscoroutinefunction(function)
        _PLAIN[name] = None if asks else function

        async def worth(trial: Trial, spec: Replied) -> Scored:
            judged: Tally = {}
            if asks:
                found, judged = await tallied(function(trial, spec.reply, spec.problem))
            else:
                found = function(spec.reply, spec.problem)
            score, feedback = score_of(f"the metric {name!r}", found)
            return Scored(score, judged, feedback)

        worth.__qualname__ = f"{function.__module__}.{function.__qualname__}"
        _METRICS[name] = made = program(f"prompt_evolution/metrics/{name}")(worth)
        made.source = identity(function)
        return function

    return register


def score_of(whose: str, found: Any) -> tuple[float, str]:
    """The score and the feedback that a metric or a program returned."""
    found, feedback = found if isinstance(found, tuple) and len(found) == 2 else (found, "")
    if not 0.0 <= (score := float(found)) <= 1.0:
        raise NoScore(f"{whose} returned {score:g}; it must return a number from 0 to 1")
    if not isinstance(feedback, str):
        raise NoScore(f"{whose} returned feedback that is not a text: {str(feedback)[:SHOWN]!r}")
    return score, feedback[:LONGEST_FEEDBACK]


def asks_model(given: str) -> bool:
    """Whether a metric may make requests."""
    find_metric(given)
    return _PLAIN[given.rpartition(":")[2]] is None


def try_metric(given: str, problem: Problem) -> None:
    """Check that a metric returns scores, with the correct answer as the reply. Skips metrics that ask a model."""
    find_metric(given)
    function = _PLAIN[given.rpartition(":")[2]]
    if function is None:
        return
    try:
        inspect.signature(function).bind(problem.answer, problem)
    except TypeError as error:
        raise SettingsError(f"metric {given}: must take a reply and a problem: {error}", field="metric") from error
    try:
        found = function(problem.answer, problem)
    except Exception:  # noqa: BLE001  it may expect replies in another form; the run will report errors
        return
    try:
        score_of(given, found)
    except (TypeError, ValueError, NoScore) as error:
        said = f"metric {given}: returned {str(found)[:SHOWN]!r}; it must return a number from 0 to 1"
        raise SettingsError(said, field="metric") from error


def find_metric(given: str) -> Metric:
    """Find a metric by its name, or by `module:name`."""
    return _METRICS.find(given)


@metric("number")
def number(reply: str, problem: Problem) -> float:
    """1 if the final number of the reply is correct."""
    found = extracted(reply)
    return float(found is not None and same_number(found, problem.answer))


@metric("text")
def text(reply: str, problem: Problem) -> float:
    """1 if the answer in the reply, or the whole reply, is the correct text."""
    return float(says(reply, problem.answer))


@metric("contains")
def contains(reply: str, problem: Problem) -> float:
    """1 if the correct answer occurs in the reply."""
    said = after_thinking(reply).casefold()
    return float(" ".join(problem.answer.casefold().split()) in " ".join(said.split()))
