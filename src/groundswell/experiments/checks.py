"""Checks of a self-test: what is expected, what was found, and whether the check passes.

Random checks allow for chance. Correct code fails one for at most one seed in a thousand, or as many as `chance` says:
the planted rate must lie inside the 99.9% interval, and the number of 95% intervals that miss it must not exceed the
99.9% quantile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec
from scipy.special import bdtrc  # type: ignore[import-untyped]

from groundswell.stats.rates import Rate

CHANCE = 0.001
LEVEL = 0.95
WHOLE, QUICK = 1.0, 0.1


class Size(msgspec.Struct, frozen=True):
    """The size of a self-test: 1 is the whole test, 0.1 a tenth of it."""

    size: float = WHOLE


class Check(msgspec.Struct, frozen=True):
    """One line of a self-test."""

    about: str
    name: str
    expected: str
    found: str
    n: int
    passed: bool


class Verdict(msgspec.Struct, frozen=True):
    """The result of a self-test of this size."""

    passed: bool
    failed: int
    size: float
    checks: list[Check]

    @classmethod
    def of(cls, checks: Iterable[Check], size: float) -> Verdict:
        """All checks, and whether all of them pass."""
        found = list(checks)
        failed = sum(not check.passed for check in found)
        return cls(not failed, failed, size, found)

    @property
    def notes(self) -> list[str]:
        """What else there is to say."""
        return []


class Bounds(Protocol):
    """Anything with the two ends of an interval."""

    @property
    def low(self) -> float:
        """The lower end."""

    @property
    def high(self) -> float:
        """The upper end."""


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


def hold(about: str, name: str, truth: float, found: Sequence[Bounds]) -> Check:
    """Few enough of the intervals, each from its own repetition, miss the planted rate."""
    misses = sum(not each.low <= truth <= each.high for each in found)
    most = most_misses(len(found))
    expected = f"at most {most} of {len(found)} miss {percent(truth)}"
    return Check(about, name, expected, f"{misses} miss", len(found), bool(found) and misses <= most)


def most_misses(intervals: int, chance: float = CHANCE) -> int:
    """Maximum number of 95% intervals that may miss: more happens with a probability below `chance`."""
    return next((many for many in range(intervals) if bdtrc(many, intervals, 1 - LEVEL) < chance), intervals)


def of(rate: Rate) -> str:
    """A count and its total."""
    return f"{rate.passed:,} of {rate.n:,}"


def percent(share: float | None) -> str:
    """A percentage with up to one decimal."""
    return "none" if share is None else f"{share:.1%}".replace(".0%", "%")
