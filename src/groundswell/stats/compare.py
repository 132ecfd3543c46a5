"""Comparisons: differences of rates, association of two findings, permutation tests, and multiple testing.

`bearing` permutes the labels of people. It assumes only that labels are exchangeable: values may be correlated in any
way, within a person and within a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, combinations
from math import asin, comb, exp, inf, isfinite, log, sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, chdtrc, gammaln, ndtr, softmax  # type: ignore[import-untyped]

from groundswell.stats.rates import Interval, Paired, Rate, apart, exact_share, quantile, wilson

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MANY = 100_000
"""From this many rows on, odds ratio, interval and p are Mantel and Haenszel's, which then agree with the exact ones.
"""
FARTHEST = 60.0
"""Bound of the search for an odds ratio, as a logarithm."""
FEWEST = 5
"""With fewer people, no permutation is rare enough to be significant."""
ALL = 5_000
"""Up to this many distinct permutations are enumerated."""
MOST = 9_999
STOP = 50
"""Sampling stops after this many permutations at least as extreme as the data: the p-value is then not small."""
FIRST = 500
ROOM = 20_000_000
"""Bound on the work. With many people and labels, fewer permutations are drawn."""


def mcnemar(paired: Paired, effect: float = 1.0) -> float:
    """The exact two-sided p-value of two rates on the same rows.

    Q. McNemar, Note on the sampling error of the difference between correlated proportions or percentages,
    Psychometrika 12 (1947) 153-157: among the rows in which the two differ, each should be ahead in half.
    For correlated rows, counts are divided by the design effect: M. Eliasziw and A. Donner, Application of the McNemar
    test to non-independent matched pair data, Statistics in Medicine 10 (1991) 1981-1991.
    """
    more, fewer = max(paired.first, paired.second) / effect, min(paired.first, paired.second) / effect
    return min(1.0, 2 * float(betainc(more, fewer + 1, 0.5))) if more else 1.0


class Odds(msgspec.Struct, frozen=True):
    """An odds ratio with its interval. None where it is undefined or infinite."""

    value: float | None
    low: float | None
    high: float | None


def matched_odds(paired: Paired, level: float = 0.95, effect: float = 1.0) -> Odds:
    """The conditional odds ratio of two rates on the same rows: only the first over only the second.

    The interval is the exact one of a share (Clopper and Pearson 1934), transformed, so it agrees with `mcnemar`. For
    correlated rows, counts are divided by the design effect, as there.
    """
    first, second = paired.first, paired.second
    if not first + second:
        return Odds(None, None, None)
    low, high = exact_share(first / effect, (first + second) / effect, level)
    return Odds(first / second if second else None, low / (1 - low), high / (1 - high) if high < 1 else None)


def cohens_h(one: float, other: float) -> float:
    """The difference of two rates on the arcsine scale, from -pi to pi; 0.2 is small, 0.5 medium and 0.8 large.

    J. Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), chapter 6.
    """
    return 2 * (asin(sqrt(one)) - asin(sqrt(other)))


def fisher(one: Rate, other: Rate) -> float:
    """The exact two-sided p-value of two independent rates: R. A. Fisher, J. R. Stat. Soc. 98 (1935) 39-82."""
    from scipy.stats import fisher_exact  # type: ignore[import-untyped]  # which takes a second

    if not one.n or not other.n:
        return 1.0
    return float(fisher_exact([[one.passed, one.n - one.passed], [other.passed, other.n - other.passed]]).pvalue)


def difference(one: Rate, other: Rate, level: float = 0.95) -> Interval:
    """The confidence interval of the difference of two independent rates.

    Method 10 of R. G. Newcombe, Interval estimation for the difference between independent proportions, Statistics in
    Medicine 17 (1998) 873-890, which combines the Wilson intervals of both.
    """
    a, b = wilson(*one, level), wilson(*other, level)
    if one.value is None or other.value is None:
        return Interval(-1.0, 1.0)
    return apart(one.value, a, other.value, b)


class Difference(msgspec.Struct, frozen=True):
    """The difference of two independent figures with its interval. An end is None if it is unbounded."""

    value: float
    low: float | None
    high: float | None
    p: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes 0."""
        return (self.low is not None and self.low > 0) or (self.high is not None and self.high < 0)


Ends = tuple[float | None, float | None]
"""An interval. An end is None if it is unbounded."""


def reported_difference(
    one: float, its: Ends, other: float, others: Ends, *, bound: float = inf, level: float = 0.95
) -> Difference:
    """The difference of two independent figures, from the interval that was reported for each at this level.

    The interval is Zou and Donner's (see `apart`). It needs no more than the two intervals, so it also holds where
    these account for correlated trials. The p-value is the one at which the interval would begin to exclude 0, if its
    width were proportional to the normal quantile: D. G. Altman, J. M. Bland, How to obtain the P value from a
    confidence interval, BMJ 343 (2011) d2304. So p is below 1 - level if and only if the interval excludes 0.
    """
    (low_1, high_1), (low_2, high_2) = its, others
    found = apart(one, _closed(one, its), other, _closed(other, others), bound=bound)
    low = None if low_1 is None or high_2 is None else found.low
    high = None if high_1 is None or low_2 is None else found.high
    value = one - other
    near = low if value > 0 else high
    return Difference(value, low, high, 1.0 if near is None else _p_of(abs(value), abs(value - near), level))


def _closed(value: float, ends: Ends) -> Interval:
    """An interval that contains its value, with the value itself in place of an unbounded end."""
    low, high = ends
    return Interval(value if low is None else min(low, value), value if high is None else max(high, value))


def _p_of(value: float, reach: float, level: float) -> float:
    """The p-value of a difference whose interval reaches this far towards 0."""
    if not value:
        return 1.0
    return 2 * float(ndtr(-quantile(level) * value / reach)) if reach else 0.0


class Association(msgspec.Struct, frozen=True):
    """The association of two findings on the same rows. An odds ratio above 1 means that they occur together.

    A field is None if it does not exist: the odds ratio if one finding is the same in all rows or if it is infinite,
    and an end of the interval that is unbounded.
    """

    odds_ratio: float | None
    low: float | None
    high: float | None
    p: float


def association(tables: Paired | Sequence[Paired], level: float = 0.95) -> Association:
    """The conditional odds ratio of a 2x2 table, or the common one of several, with its exact interval and p-value.

    J. Cornfield, A statistical problem arising from retrospective studies, Proc. 3rd Berkeley Symp. 4 (1956) 135-148;
    of several tables, J. J. Gart, Point and interval estimation of the common odds ratio, Biometrika 57 (1970) 471-475.
    Several tables are compared within each table, so different base rates do not create an association.
    """
    strata = [each for each in ([tables] if isinstance(tables, Paired) else tables) if _tells(each)]
    if not strata:
        return Association(None, None, None, 1.0)
    if sum(each.n for each in strata) >= MANY and all(sum(each[i] for each in strata) > 0 for i in range(4)):
        found, p = _mantel_haenszel(strata, level)
    else:
        found, p = _conditional(strata, level)
    ratio, low, high = (each if isfinite(each) else None for each in found)
    return Association(ratio, low, high, p)


def _tells(paired: Paired) -> bool:
    """Whether either finding varies among the rows."""
    both, first, second, neither = paired
    return bool(both + first and second + neither and both + second and first + neither)


def _conditional(strata: Sequence[Paired], level: float) -> tuple[tuple[float, float, float], float]:
    """Exact results from Fisher's noncentral hypergeometric distribution of the sum of `both`, given all margins."""
    from scipy import optimize  # type: ignore[import-untyped]

    total = sum(each.both for each in strata)
    lowest, ways, tilt = _sums(strata)
    counts = lowest + np.arange(len(ways))

    def shares(theta: float) -> Floats:
        found: Floats = softmax(ways + (theta - tilt) * (counts - total))
        return found

    def odds(off: Callable[[float], float]) -> float:
        return exp(optimize.brentq(off, -FARTHEST, FARTHEST, xtol=1e-10))

    tail = (1 - level) / 2
    least, most = total == counts[0], total == counts[-1]
    middle = 0.0 if least else inf if most else odds(lambda t: float(shares(t) @ (counts - total)))
    low = 0.0 if least else odds(lambda t: float(shares(t)[counts >= total].sum()) - tail)
    high = inf if most else odds(lambda t: tail - float(shares(t)[counts <= total].sum()))
    null = shares(0.0)
    # Treat equally likely outcomes alike, up to rounding, as scipy does.
    p = float(null[null <= null[total - lowest] * (1 + 1e-7)].sum())
    return (middle, low, high), min(1.0, p)


def _sums(strata: Sequence[Paired]) -> tuple[int, Floats, float]:
    """The least sum of `both`, and the logarithm of the number of ways to reach it and each larger sum.

    The ways are weighted by a power of the odds near the observed value, so that the relevant ones do not underflow.
    """
    tilt = log(max(1e-9, sum((e.both + 0.5) * (e.neither + 0.5) / e.n for e in strata)))
    tilt -= log(max(1e-9, sum((e.first + 0.5) * (e.second + 0.5) / e.n for e in strata)))
    lowest, weights = 0, np.ones(1)
    for both, first, second, neither in strata:
        counts = np.arange(max(0, both - neither), both + min(first, second) + 1)
        ways = log_ways(both + first, counts) + log_ways(second + neither, both + second - counts)
        weights = np.convolve(weights, softmax(ways + tilt * counts))
        lowest += int(counts[0])
    with np.errstate(divide="ignore"):
        return lowest, np.log(weights), tilt


def log_ways(n: int | Ints, k: Ints) -> Floats:
    """The logarithm of the binomial coefficient n over k."""
    found: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return found


def _mantel_haenszel(strata: Sequence[Paired], level: float) -> tuple[tuple[float, float, float], float]:
    """N. Mantel and W. Haenszel, J. Natl. Cancer Inst. 22 (1959) 719-748.

    The interval is that of J. Robins, N. Breslow and S. Greenland, Biometrics 42 (1986) 311-323: of one table, Woolf's.
    """
    both, first, second, neither = np.array(strata, dtype=float).T
    n = both + first + second + neither
    with_, against = both * neither / n, first * second / n
    agree, differ = (both + neither) / n, (first + second) / n
    up, down = with_.sum(), against.sum()
    variance = (
        agree @ with_ / up**2 + (agree @ against + differ @ with_) / (up * down) + differ @ against / down**2
    ) / 2
    off = exp(quantile(level) * sqrt(float(variance)))
    surplus = max(0.0, abs(float((both - (both + first) * (both + second) / n).sum())) - 0.5)
    spread = ((both + first) * (second + neither) * (both + second) * (first + neither) / (n * n * (n - 1))).sum()
    ratio = float(up / down)
    return (ratio, ratio / off, ratio * off), float(chdtrc(1, surplus**2 / spread))


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the family-wise error rate: S. Holm, Scand. J. Stat. 6 (1979) 65-70."""
    order = _ascending(ps)
    raised = ((len(ps) - rank) * ps[i] for rank, i in enumerate(order))
    return _back(order, [min(1.0, p) for p in accumulate(raised, max)])


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the false discovery rate.

    Y. Benjamini, Y. Hochberg, J. R. Stat. Soc. B 57 (1995) 289-300.
    """
    order = _ascending(ps)[::-1]
    raised = (len(ps) / (len(ps) - rank) * ps[i] for rank, i in enumerate(order))
    return _back(order, [min(1.0, p) for p in accumulate(raised, min)])


def _ascending(ps: Sequence[float]) -> list[int]:
    for p in ps:
        if not 0 <= p <= 1:
            raise ValueError(f"p {p}: must be between 0 and 1")
    return sorted(range(len(ps)), key=ps.__getitem__)


def _back(order: Sequence[int], adjusted: Sequence[float]) -> list[float]:
    placed = dict(zip(order, adjusted, strict=True))
    return [placed[i] for i in range(len(order))]


def bearing(totals: Floats, counts: Ints, labels: Sequence[int]) -> float | None:
    """The p-value of a permutation test that labels make no difference.

    Arguments are totals and counts of each person's values, and each person's label. Values may have several columns,
    such as one per option of a choice: their means are compared jointly, each on its own scale. The test is exact if
    all permutations can be enumerated. Otherwise permutations are drawn with a fixed seed until the p-value is known
    well enough (J. Besag, P. Clifford, Sequential Monte Carlo p-values, Biometrika 78 (1991) 301-304). None if there is
    nothing to compare.
    """
    numbers = np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)
    centred = totals - counts[:, None] * totals.sum(axis=0) / max(1, counts.sum())
    scale = np.sqrt((centred**2).sum(axis=0))
    telling = scale > 1e-9 * (1 + np.abs(totals).max(initial=0.0))
    sizes = np.bincount(numbers)
    if len(numbers) < FEWEST or len(sizes) < 2 or not telling.any():
        return None
    centred = centred[:, telling] / scale[telling]
    found = _apart(centred, counts, numbers[None, :], len(sizes))[0] * (1 - 1e-9)
    if _ways(sizes.tolist()) <= ALL:
        every = _all_arrangements(tuple(sizes.tolist()))
        return float((_apart(centred, counts, every, len(sizes)) >= found).mean())
    return _drawn(centred, counts, numbers, found)


def _drawn(centred: Floats, counts: Ints, numbers: Ints, found: float) -> float:
    """The share of drawn permutations, including the data, that are at least as extreme as the data."""
    random, groups = np.random.default_rng(20_011), int(numbers.max()) + 1
    most = max(FIRST, min(MOST, ROOM // (len(numbers) * groups * centred.shape[1])))
    drawn = passed = 0
    while drawn < most and passed < STOP:
        some = min(FIRST, most - drawn)
        shuffled = random.permuted(np.tile(numbers, (some, 1)), axis=1)
        passed += int((_apart(centred, counts, shuffled, groups) >= found).sum())
        drawn += some
    return (1 + passed) / (1 + drawn)


def _apart(centred: Floats, counts: Ints, arrangements: Ints, groups: int) -> Floats:
    """The weighted sum of squares between the means of groups, for each permutation."""
    apart = np.zeros(len(arrangements))
    for group in range(groups):
        mine = (arrangements == group).astype(float)
        n = mine @ counts
        apart += ((mine @ centred) ** 2).sum(axis=1) / np.maximum(n, 1)
    return apart


def _ways(sizes: Sequence[int]) -> int:
    """The number of distinct permutations of labels with these group sizes."""
    ways, left = 1, sum(sizes)
    for size in sizes:
        ways *= comb(left, size)
        left -= size
    return ways


@lru_cache(maxsize=16)  # questions and options have the same groups
def _all_arrangements(sizes: tuple[int, ...]) -> Ints:
    """All permutations, one per row."""
    return np.array(list(_arrangements(sizes)), dtype=np.int64)


def _arrangements(sizes: Sequence[int]) -> Iterator[list[int]]:
    """All permutations: for each group in turn, who of those left has its label."""
    labels = [0] * sum(sizes)

    def fill(group: int, left: list[int]) -> Iterator[list[int]]:
        if group == len(sizes):
            yield list(labels)
            return
        for chosen in combinations(left, sizes[group]):
            for place in chosen:
                labels[place] = group
            taken = set(chosen)
            yield from fill(group + 1, [place for place in left if place not in taken])

    yield from fill(0, list(range(len(labels))))
