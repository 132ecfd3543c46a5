"""Mutators that a user might write: `tests.experiments.query_mutation.own_mutators:shout` registers them."""

from __future__ import annotations

from groundswell import Trial
from groundswell.experiments.query_mutation.mutators import Rewording, mutator


@mutator("shout")
async def shout(trial: Trial, spec: Rewording) -> str:
    """In capitals."""
    return spec.query.upper()


@mutator("silence")
async def silence(trial: Trial, spec: Rewording) -> str:
    """Makes nothing of a query."""
    return "  "


@mutator("broken")
async def broken(trial: Trial, spec: Rewording) -> str:
    """Has a mistake in it."""
    return spec.query[len(spec.query)]
