"""A check: what must be found, what was, and whether that will do. Those that chance has a part in allow for it.

A right instrument fails such a check for at most one seed in a thousand: the truth must lie inside the interval at
99.9%; and of many intervals at 95% not more may miss it than happens once in a thousand times.
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
    """It must be so in every case; no case at all proves nothing."""
    return Check(about, name, "100%", of(found), found.n, 0 < found.n == found.passed)


def none_of(about: str, name: str, found: Rate) -> Check:
    """It must never be so."""
    return Check(about, name, "0%", of(found), found.n, found.n > 0 and not found.passed)


def planted(about: str, name: str, truth: float, found: Rate) -> Check:
    """A rate that was planted must lie in the interval at 99.9%."""
    low, high = found.interval(1 - CHANCE)
    shown = f"{percent(found.value)} (99.9%: {percent(low)} to {percent(high)})"
    return Check(about, name, percent(truth), shown, found.n, found.n > 0 and low <= truth <= high)


def hold(about: str, name: str, truth: float, found: Sequence[RateFigure]) -> Check:
    """Of so many intervals, each from a repetition of its own, few enough miss the truth."""
    misses = sum(not each.low <= truth <= each.high for each in found)
    most = most_misses(len(found))
    expected = f"at most {most} of {len(found)} miss {percent(truth)}"
    return Check(about, name, expected, f"{misses} miss", len(found), bool(found) and misses <= most)


def most_misses(intervals: int) -> int:
    """So many of the intervals at 95% may miss: more is what happens less than once in a thousand times."""
    return next((many for many in range(intervals) if bdtrc(many, intervals, 1 - LEVEL) < CHANCE), intervals)


def of(rate: Rate) -> str:
    """A share, and of how many."""
    return f"{rate.passed:,} of {rate.n:,}"


def percent(share: float | None) -> str:
    """A share as a percentage, as exact as it needs to be."""
    return "none" if share is None else f"{share:.1%}".replace(".0%", "%")
