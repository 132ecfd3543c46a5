"""What a reply to a problem is worth, from 0 to 1. Register your own with `@metric("name")`."""

from __future__ import annotations

from collections.abc import Callable

from groundswell.experiments.named import Named
from groundswell.experiments.prompt_evolution.answers import extracted, same_number, same_text
from groundswell.experiments.prompt_evolution.problems import Problem

Metric = Callable[[str, Problem], float]
_METRICS = Named[Metric]("metric")


def metric(name: str) -> Callable[[Metric], Metric]:
    """Register a `def f(reply, problem) -> float`, from 0 to 1, as a metric."""

    def register(function: Metric) -> Metric:
        _METRICS[name] = function
        return function

    return register


def find_metric(given: str) -> Metric:
    """A metric by its name, or `module:name`."""
    return _METRICS.find(given)


def measured(name: str, reply: str, problem: Problem) -> float:
    """What a reply is worth."""
    score = float(find_metric(name)(reply, problem))
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"the metric {name!r} gave {score:g}: it must be from 0 to 1")
    return score


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
