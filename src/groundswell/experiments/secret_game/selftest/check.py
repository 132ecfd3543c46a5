"""Checks: what is expected, what was found, and whether the check passes. Random checks allow for chance.

Correct code fails a random check for at most one seed in a thousand: the planted rate must lie inside the 99.9%
interval, and the number of 95% intervals that miss it must not exceed the 99.9% quantile.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from scipy.special import bdtrc  # type: ignore[import-untyped]

from groundswell.experiments.secret_game.analysis import RateFigure
from groundswell.stats.rates import Rate

CHANCE = 0.001
LEVEL = 0.95


class Check(msgspec.Struct, frozen=True):
    """One line of the self-test."""

    about: str
    name: str
    expected: str
    found: str
    n: int
    passed: bool


def all_of(about: str, name: str, found: Rate) -> Check:
    """All cases must pass. The check fails if there are no cases."""
    return Check(about, name, "100%", of(found), found.n, 0 < found.n == found.passed)


def none_of(about: str, name: str, found: Rate) -> Check:
    """No case may occur. The check fails if there are no cases."""
    return Check(about, name, "0%", of(found), found.n, found.n > 0 and not found.passed)


def planted(about: str, name: str, truth: float, found: Rate) -> Check:
    """The planted rate must lie in the 99.9% interval."""
    low, high = found.interval(1 - CHANCE)
    shown = f"{percent(found.value)} (99.9%: {percent(low)} to {percent(high)})"
    return Check(about, name, percent(truth), shown, found.n, found.n > 0 and low <= truth <= high)


def hold(about: str, name: str, truth: float, found: Sequence[RateFigure]) -> Check:
    """Few enough of the intervals, each from its own repetition, miss the planted rate."""
    misses = sum(not each.low <= truth <= each.high for each in found)
    most = most_misses(len(found))
    expected = f"at most {most} of {len(found)} miss {percent(truth)}"
    return Check(about, name, expected, f"{misses} miss", len(found), bool(found) and misses <= most)


def most_misses(intervals: int) -> int:
    """Maximum number of 95% intervals that may miss: more happens with a probability below 0.001."""
    return next((many for many in range(intervals) if bdtrc(many, intervals, 1 - LEVEL) < CHANCE), intervals)


def of(rate: Rate) -> str:
    """A count and its total."""
    return f"{rate.passed:,} of {rate.n:,}"


def percent(share: float | None) -> str:
    """A percentage with up to one decimal."""
    return "none" if share is None else f"{share:.1%}".replace(".0%", "%")
