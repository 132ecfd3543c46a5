"""What a reply to a problem is worth, from 0 to 1. Register your own with `@metric("name")`.

A metric is a `def f(reply, problem)`; or, where a model is to judge, an `async def f(trial, reply, problem)`, that may
ask as any program does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

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


class NoScore(Exception):
    """A metric gave something that is not from 0 to 1."""


def metric(name: str) -> Callable[[F], F]:
    """Register a `def f(reply, problem) -> float`, from 0 to 1, as a metric; see above for one that asks a model."""

    def register(function: F) -> F:
        asks = inspect.iscoroutinefunction(function)

        async def worth(trial: Trial, spec: Replied) -> Scored:
            judged: Tally = {}
            if asks:
                found, judged = await tallied(function(trial, spec.reply, spec.problem))
            else:
                found = function(spec.reply, spec.problem)
            if not 0.0 <= (score := float(found)) <= 1.0:
                raise NoScore(f"the metric {name!r} gave {score:g}: it must be from 0 to 1")
            return Scored(score, judged)

        worth.__qualname__ = f"{function.__module__}.{function.__qualname__}"
        _METRICS[name] = made = program(f"prompt_evolution/metrics/{name}")(worth)
        made.source = identity(function)
        return function

    return register


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
