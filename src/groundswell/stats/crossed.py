"""Means of values of several trained policies on the same cases, with both as random samples.

The conclusions are about the training method and about similar cases. So an interval accounts for another training run
as well as for other cases. Cases of one cluster may be correlated. With a single policy its variation is unknown; the
conclusions then hold for that policy only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.special import stdtr  # type: ignore[import-untyped]

from groundswell.stats.clusters import ALL_SAME, ENOUGH, NOTHING, Floats, Ints, Spread, correlation, distinct, student
from groundswell.stats.rates import Interval, apart, score, worth

FEW = f"fewer than {ENOUGH} clusters"
LEAST_P = 1e-12
HALVINGS = 25


class Cells(NamedTuple):
    """Values with the policy and the cluster of each. The numbers mean the same on both sides."""

    values: Floats
    learner: Ints
    cluster: Ints


class Found(msgspec.Struct, frozen=True):
    """A mean, share or difference with its interval; else `reason` says why there is none.

    `p` is the p-value of no difference. It agrees with the interval: below 0.05 if the 95% interval excludes 0.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    learners: int
    clusters: int
    p: float | None = None
    reason: str = ""


class Parts(NamedTuple):
    """A side's parts of the variance: policies, policies within clusters, and what each cluster adds to the mean."""

    by_learner: float
    by_both: float
    learners: int
    sums: Floats


def cells(values: Sequence[float], learner: Sequence[int], cluster: Sequence[int]) -> Cells:
    """Build cells."""
    return Cells(
        np.asarray(values, dtype=float), np.asarray(learner, dtype=np.int64), np.asarray(cluster, dtype=np.int64)
    )


def mean(side: Cells, level: float = 0.95) -> Found:
    """The mean, with Student's interval."""
    return difference(side, None, level)


def difference(one: Cells, other: Cells | None, level: float = 0.95) -> Found:
    """The mean of one side minus that of the other, which has other policies on the same cases."""
    sides = [one] if other is None else [one, other]
    if any(not len(each.values) for each in sides):
        return _found(None, None, sides, NOTHING)
    value, spread = _value(sides), spread_of(sides)
    if spread.reason:
        return _found(value, None, sides, spread.reason)
    error = sqrt(spread.variance)
    off = student(spread.df, level) * error
    p = None if other is None else 2 * float(stdtr(spread.df, -abs(value / error)))
    return _found(value, Interval(value - off, value + off), sides, p=p)


def share(side: Cells, level: float = 0.95) -> Found:
    """The mean of values that are 0 or 1, with Wilson's interval at the effective sample size.

    The effective sample size is n over the design effect, and the quantile is Student's t instead of the normal one:
    E. L. Korn, B. I. Graubard, Survey Methodology 24 (1998) 193-201. If all values are equal, each cluster counts as
    one, and the interval is exact.
    """
    if not len(side.values):
        return _found(None, None, [side], NOTHING)
    spread = spread_of([side])
    if spread.reason == FEW:
        return _found(_value([side]), None, [side], FEW)
    interval = _share(side, spread.variance, 0.0 if spread.reason else student(spread.df, level), level)
    return _found(_value([side]), interval, [side])


def difference_of_shares(one: Cells, other: Cells, level: float = 0.95) -> Found:
    """The difference of two shares, from the intervals of both and their correlation.

    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27 (2008)
    1693-1702.
    """
    sides = [one, other]
    if any(not len(each.values) for each in sides):
        return _found(None, None, sides, NOTHING)
    spreads, both = [spread_of([each]) for each in sides], spread_of(sides)
    if FEW in [each.reason for each in spreads]:
        return _found(_value(sides), None, sides, FEW)
    rho = correlation(spreads[0], spreads[1], both)

    def at(level: float) -> Interval:
        if both.reason:
            return _unvaried(_value(sides), distinct(np.concatenate([each.cluster for each in sides])), level)
        t = student(both.df, level)
        first, second = (_share(each, own.variance, t, level) for each, own in zip(sides, spreads, strict=True))
        return apart(_value([one]), first, _value([other]), second, rho)

    return _found(_value(sides), at(level), sides, p=_agreeing(at))


def spread_of(sides: Sequence[Cells]) -> Spread:
    """The variance of a mean, or of the difference of two.

    Policies and clusters are crossed random effects, and each side has its own policies: the variance between clusters
    plus the variance between policies, minus what both count; at least that of either alone. Degrees of freedom:
    F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110-114. The same method is used for readers and cases in
    radiology: S. L. Hillis, Statistics in Medicine 26 (2007) 596-619.
    """
    clusters = distinct(np.concatenate([each.cluster for each in sides]))
    if clusters < ENOUGH:
        return Spread(reason=FEW)
    size = max(int(each.cluster.max()) for each in sides) + 1
    parts = [_parts(each, size, clusters) for each in sides]
    sums = parts[0].sums - parts[1].sums if len(parts) > 1 else parts[0].sums
    by_cluster = float((sums**2).sum()) * clusters / (clusters - 1)
    by_learner = sum(each.by_learner for each in parts)
    variance = max(by_cluster, by_learner, by_cluster + by_learner - sum(each.by_both for each in parts))
    if variance <= 1e-24 * (1 + max(float(abs(each.values).max()) for each in sides) ** 2):
        return Spread(reason=ALL_SAME)
    pieces = [(by_cluster, clusters - 1), *((each.by_learner, each.learners - 1) for each in parts)]
    return Spread(variance, variance**2 / sum(piece**2 / df for piece, df in pieces if df))


def _parts(side: Cells, size: int, clusters: int) -> Parts:
    there, learner = np.unique(side.learner, return_inverse=True)
    many, n = len(there), len(side.values)
    counts = np.bincount(learner)
    means = np.bincount(learner, side.values) / counts
    apart = (means - side.values.mean()) * counts / n
    scores = np.bincount(learner * size + side.cluster, (side.values - means[learner]) / n, many * size)
    table = scores.reshape(many, size)
    if many == 1:
        return Parts(0.0, 0.0, 1, table[0])
    within = float(((table - table.mean(axis=0)) ** 2).sum()) * many / (many - 1) * clusters / (clusters - 1)
    return Parts(float((apart**2).sum()) * many / (many - 1), within, many, table.sum(axis=0))


def _agreeing(at: Callable[[float], Interval]) -> float:
    """The p-value at which the interval just includes 0."""
    low, high = log(LEAST_P), 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        interval = at(1 - exp(middle))
        low, high = (middle, high) if interval.low <= 0 <= interval.high else (low, middle)
    return exp(low)


def _share(side: Cells, variance: float, t: float, level: float) -> Interval:
    """Wilson's interval with this many standard errors; the exact one over clusters if all values are equal."""
    value = _value([side])
    if not variance:
        return worth(value, distinct(side.cluster), level)
    n = min(float(len(side.values)), value * (1 - value) / variance)
    return score(value, n, t)


def _unvaried(value: float, clusters: int, level: float) -> Interval:
    """The interval of a difference that is the same in all clusters.

    At this level, a share of up to `other` of all clusters may differ from those that were seen, in any direction.
    Where one side is 1 and the other 0, the p-value is that of the sign test.
    """
    other = 1 - ((1 - level) / 2) ** (1 / clusters)
    return Interval(max(-1.0, value - other * (1 + value)), min(1.0, value + other * (1 - value)))


def _value(sides: Sequence[Cells]) -> float:
    first, *rest = (float(each.values.mean()) for each in sides)
    return first - sum(rest)


def _found(
    value: float | None, interval: Interval | None, sides: Sequence[Cells], reason: str = "", p: float | None = None
) -> Found:
    low, high = (None, None) if interval is None else interval
    n, learners = sum(len(each.values) for each in sides), sum(distinct(each.learner) for each in sides)
    clusters = distinct(np.concatenate([each.cluster for each in sides]))
    return Found(value, low, high, n, learners, clusters, p, reason)
