"""What a reply to a problem is worth, from 0 to 1. Register your own with `@metric("name")`.

A metric is a `def f(reply, problem)`; or, where a model is to judge, an `async def f(trial, reply, problem)`, that may
ask as any program does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.named import Named
from groundswell.experiments.prompt_evolution.answers import extracted, same_number, same_text
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.program.source import identity
from groundswell.program.tally import Tally, tallied
from groundswell.program.trial import Program, Trial, program


class Scored(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a reply is worth, and what was asked to find that out."""

    score: float
    judged: Tally = {}


class Replied(msgspec.Struct, frozen=True):
    """A reply, and the problem that it is to solve."""

    reply: str
    problem: Problem


Metric = Program[Replied, Scored]
F = TypeVar("F", bound=Callable[..., Any])
_METRICS = Named[Metric]("metric")
_PLAIN: dict[str, Callable[..., Any] | None] = {}
"""The functions of metrics that ask nobody."""


SHOWN = 40


class NoScore(Exception):
    """A metric gave something that is not from 0 to 1."""


def metric(name: str) -> Callable[[F], F]:
    """Register a `def f(reply, problem) -> float`, from 0 to 1, as a metric; see above for one that asks a model."""

    def register(function: F) -> F:
        asks = inspect.iscoroutinefunction(function)
        _PLAIN[name] = None if asks else function

        async def worth(trial: Trial, spec: Replied) -> Scored:
            judged: Tally = {}
            if asks:
                found, judged = await tallied(function(trial, spec.reply, spec.problem))
            else:
                found = function(spec.reply, spec.problem)
            return Scored(_score(name, found), judged)

        worth.__qualname__ = f"{function.__module__}.{function.__qualname__}"
        _METRICS[name] = made = program(f"prompt_evolution/metrics/{name}")(worth)
        made.source = identity(function)
        return function

    return register


def _score(name: str, found: Any) -> float:
    if not 0.0 <= (score := float(found)) <= 1.0:
        raise NoScore(f"the metric {name!r} gave {score:g}: it must be from 0 to 1")
    return score


def try_metric(given: str, problem: Problem) -> None:
    """Find out whether a metric gives scores, by a reply that is the answer. One that asks a model is not tried."""
    find_metric(given)
    function = _PLAIN[given.rpartition(":")[2]]
    if function is None:
        return
    try:
        inspect.signature(function).bind(problem.answer, problem)
    except TypeError as error:
        raise SettingsError(f"metric {given}: takes a reply and a problem: {error}", field="metric") from error
    try:
        found = function(problem.answer, problem)
    except Exception:  # noqa: BLE001  it may be made for replies of another form; those of a run will tell
        return
    try:
        _score(given, found)
    except (TypeError, ValueError, NoScore) as error:
        said = f"metric {given}: gave {str(found)[:SHOWN]!r}, and must give a number from 0 to 1"
        raise SettingsError(said, field="metric") from error


def find_metric(given: str) -> Metric:
    """A metric by its name, or `module:name`."""
    return _METRICS.find(given)


@metric("number")
def number(reply: str, problem: Problem) -> float:
    """1 if the number that the reply ends with is the right one."""
    found = extracted(reply)
    return float(found is not None and same_number(found, problem.answer))


@metric("text")
def text(reply: str, problem: Problem) -> float:
    """1 if the answer in the reply, or all of the reply, is the right text."""
    found = extracted(reply)
    return float(same_text(reply, problem.answer) or (found is not None and same_text(found, problem.answer)))


@metric("contains")
def contains(reply: str, problem: Problem) -> float:
    """1 if the right answer occurs in the reply."""
    return float(" ".join(problem.answer.casefold().split()) in " ".join(reply.casefold().split()))
