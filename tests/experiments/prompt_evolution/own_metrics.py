"""A metric that a user might write: `tests.experiments.prompt_evolution.own_metrics:brief` registers it."""

from __future__ import annotations

from groundswell.experiments.prompt_evolution.metrics import metric
from groundswell.experiments.prompt_evolution.problems import Problem


@metric("brief")
def brief(reply: str, problem: Problem) -> float:
    """1 for a reply of a few words, right or not."""
    return float(len(reply.split()) <= 3)
