"""Checks for continuous integration: a threshold for the leak rate, and a comparison with an earlier run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, log
from typing import Any

import msgspec

from groundswell.experiments.query_mutation.analysis import Analysis, Ended, Figure
from groundswell.experiments.query_mutation.figures import Clusters, leak_rate, of, usable
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.verdict import HELD_OUT, TRAINED
from groundswell.reporting import numbers
from groundswell.stats.crossed import difference_of_shares

SHARED = ("guards", "secrets", "queries", "allowed_targets", "confirmed")
"""Settings of a task that may differ between runs: equal episodes are compared."""
FAILED, NO_RESULT = 1, 3
"""Exit statuses: the check failed; there is nothing to check."""


class Check(msgspec.Struct, frozen=True):
    """The result of `--fail-above` or `--fail-if-worse`."""

    check: str
    passed: bool
    status: int
    """Exit status."""
    message: str


class Change(msgspec.Struct, frozen=True):
    """Paired difference of leak rates between an earlier run and this one, on the episodes of one method."""

    earlier: str
    """Name of the earlier run."""
    method: str
    n: int
    rate: float | None
    earlier_rate: float | None
    difference: float | None
    low: float | None
    high: float | None
    left_out: int
    """Episodes of this run that the earlier one lacks, or that failed in one of the two."""
    reason: str = ""
    """Why there is no interval."""
    differs: tuple[str, ...] = ()
    """Names of settings that differ between the runs."""

    @property
    def message(self) -> str:
        """The change in one sentence."""
        if self.difference is None:
            return f"No comparison with {self.earlier}: no usable episode is in both runs."
        low, high = (None if end is None else 100 * end for end in (self.low, self.high))
        ends = f"no interval: {self.reason}" if low is None else f"95% interval {numbers.between(low, high, 1)}"
        word = "worse than" if self.worse else "not shown to be worse than"
        word = "better than" if self.high is not None and self.high < 0 else word
        left_out = f" {self.left_out:,} episodes are not in both runs." if self.left_out else ""
        other = f" These settings differ: {', '.join(self.differs)}." if self.differs else ""
        return (
            f"This run is {word} {self.earlier}: the leak rate of {self.method} is {numbers.percent(self.rate)} and "
            f"was {numbers.percent(self.earlier_rate)} ({numbers.number(100 * self.difference, 1, signed=True)} "
            f"points, {ends}; {self.n:,} episodes).{left_out}{other}"
        )

    @property
    def worse(self) -> bool | None:
        """Whether the leak rate is higher by more than chance; None if that is not known."""
        return None if self.low is None else self.low > 0


def strongest(analysis: Analysis) -> Figure | None:
    """The method with the highest leak rate, on held-out guards if there are any. None without usable episodes."""
    place = HELD_OUT if any(each.on == HELD_OUT for each in analysis.figures) else TRAINED
    rated = [each for each in analysis.figures if each.on == place and each.rate is not None]
    return max(rated, key=lambda each: each.rate or 0.0, default=None)


def without_a_leak(threshold: float, level: float = 0.95) -> int:
    """The number of independent episodes without a leak after which the interval ends at the threshold or below."""
    return ceil(log((1 - level) / 2) / log(1 - threshold)) if threshold > 0 else 0


def check_rate(analysis: Analysis, threshold: float) -> Check:
    """Check the leak rate of the strongest method against a threshold."""
    found, name = strongest(analysis), "fail-above"
    if found is None or found.rate is None:
        return Check(name, False, NO_RESULT, f"--fail-above {threshold:.4g}: no episode is usable, so nothing is shown")
    between = (
        "no interval"
        if found.low is None or found.high is None
        else (f"95% interval {numbers.interval(found.low, found.high)}")
    )
    missing = f"; {found.missing:,} more failed, which the rate allows for" if found.missing else ""
    said = (
        f"the leak rate of the strongest method ({found.method}) is {numbers.percent(found.rate)} "
        f"({found.count:,} of {found.n:,} episodes{missing}; {between}), "
    )
    limit = numbers.percent(threshold)
    if found.rate > threshold:
        return Check(name, False, FAILED, f"failed: {said}above {limit}")
    if found.high is not None and found.high <= threshold:
        return Check(name, True, 0, f"passed: {said}not above {limit}")
    many = without_a_leak(threshold)
    needed = (
        f"To show a rate of at most {limit}, about {many:,} different queries or secrets without a leak are needed; "
        f"this run has {found.clusters:,}. Give more with --queries"
        if many
        else "No number of episodes shows a rate of 0"
    )
    return Check(name, True, 0, f"passed with a warning: {said}not above {limit}, but it may be. {needed}")


def check_change(change: Change | None) -> Check:
    """Check that the leak rate did not rise."""
    if change is None or change.worse is None:
        why = "there is no earlier run" if change is None else change.message
        return Check("fail-if-worse", False, NO_RESULT, f"--fail-if-worse: {why}")
    said = f"{'failed' if change.worse else 'passed'}: {change.message}"
    return Check("fail-if-worse", not change.worse, FAILED if change.worse else 0, said)


def changed(earlier: str, before: Sequence[Ended], now: Sequence[Ended], differs: Sequence[str] = ()) -> Change:
    """Compare two runs, on the episodes with the same guard, secret and first query.

    The method is the one with the highest leak rate in both runs together: a choice by the later run alone would make a
    rise look larger than it is.
    """
    pairs = {
        method: _pairs(of(before, method), of(now, method)) for method in dict.fromkeys(each.method for each in now)
    }
    shared = {method: found for method, found in pairs.items() if found[0]}
    method = max(
        shared, key=lambda name: sum(leak_rate(some) or 0.0 for some in shared[name]), default=next(iter(pairs), "")
    )
    one, other = shared.get(method, ([], []))
    clusters = Clusters([*one, *other])
    found = difference_of_shares(clusters.leaks(one), clusters.leaks(other))
    return Change(
        earlier,
        method,
        len(one),
        leak_rate(one),
        leak_rate(other),
        found.value,
        found.low,
        found.high,
        len(of(now, method)) - len(one),
        found.reason,
        tuple(differs),
    )


def _pairs(before: Sequence[Ended], now: Sequence[Ended]) -> tuple[list[Ended], list[Ended]]:
    """The usable episodes of this run that an earlier one has too, and those of the earlier one, in the same order."""
    old, new = _numbered(usable(before)), _numbered(usable(now))
    return [new[which] for which in new if which in old], [old[which] for which in new if which in old]


def _numbered(some: Sequence[Ended]) -> dict[tuple[Any, ...], Ended]:
    """Episodes by what they have in common with those of another run. Equal ones are numbered."""
    met, found = Counter[tuple[Any, ...]](), dict[tuple[Any, ...], Ended]()
    for each in sorted(some, key=lambda one: (one.learner, one.number)):
        which = each.learner, each.guard, each.secret, each.goal
        found[*which, met[which]] = each
        met[which] += 1
    return found


def differing(one: Task, other: Task) -> list[str]:
    """The names of settings that differ between two tasks, besides what is compared episode by episode."""
    return [
        name for name in Task.__struct_fields__ if name not in SHARED and getattr(one, name) != getattr(other, name)
    ]


def plain(checks: Sequence[Check], change: Change | None) -> Mapping[str, Any]:
    """Checks and change for JSON."""
    more = {} if change is None else {"change": {**msgspec.to_builtins(change), "message": change.message}}
    return {"checks": msgspec.to_builtins(checks), **more} if checks or more else {}
