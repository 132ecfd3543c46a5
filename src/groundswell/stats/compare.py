"""Comparisons: whether two rates differ, whether two findings go together, whether a label matters; many at once.

`bearing` gives the labels of people to others. It assumes only that any of them could as well have had the label of
another: values may be correlated in any way, among those of a person and of those who were together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, combinations
from math import comb, exp, inf, isfinite, log, sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, chdtrc, gammaln, softmax  # type: ignore[import-untyped]

from groundswell.stats.rates import Interval, Paired, Rate, apart, quantile, wilson

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MANY = 100_000
"""From so many rows on, an odds ratio, its interval and p are Mantel and Haenszel's: exact ones say the same."""
FARTHEST = 60.0
"""No odds ratio is looked for beyond e to this power."""
FEWEST = 5
"""Of fewer people, no arrangement is rare enough to mean anything."""
ALL = 5_000
"""Up to so many different arrangements of labels are gone through one by one."""
MOST = 9_999
STOP = 50
"""Drawing ends when so many arrangements did as well as the real one: the p-value is not small then."""
FIRST = 500
ROOM = 20_000_000
"""Fewer are drawn where people and labels are so many that it would take long."""


def mcnemar(paired: Paired, effect: float = 1.0) -> float:
    """The exact two-sided p of two rates on the same rows.

    Q. McNemar, Note on the sampling error of the difference between correlated proportions or percentages,
    Psychometrika 12 (1947) 153-157: of the rows in which the two differ, either should be ahead in half.
    Where rows hang together, so that so many of them (the design effect) are worth one, they count for as many as they
    are worth: M. Eliasziw and A. Donner, Application of the McNemar test to non-independent matched pair data,
    Statistics in Medicine 10 (1991) 1981-1991.
    """
    more, fewer = max(paired.first, paired.second) / effect, min(paired.first, paired.second) / effect
    return min(1.0, 2 * float(betainc(more, fewer + 1, 0.5))) if more else 1.0


def fisher(one: Rate, other: Rate) -> float:
    """The exact two-sided p of two independent rates: R. A. Fisher, J. R. Stat. Soc. 98 (1935) 39-82."""
    from scipy.stats import fisher_exact  # type: ignore[import-untyped]  # which takes a second

    if not one.n or not other.n:
        return 1.0
    return float(fisher_exact([[one.passed, one.n - one.passed], [other.passed, other.n - other.passed]]).pvalue)


def difference(one: Rate, other: Rate, level: float = 0.95) -> Interval:
    """Where the rate of one less that of the other lies, for independent rates.

    The tenth method of R. G. Newcombe, Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17 (1998) 873-890: Wilson's intervals of both, put together.
    """
    a, b = wilson(*one, level), wilson(*other, level)
    if one.value is None or other.value is None:
        return Interval(-1.0, 1.0)
    return apart(one.value, a, other.value, b)


class Association(msgspec.Struct, frozen=True):
    """How two findings on the same rows go together: an odds ratio above 1 if the one comes with the other.

    None where there is no such figure: no odds ratio if the one finding is the same in all rows, none above all
    bounds, and an interval that is open on that side.
    """

    odds_ratio: float | None
    low: float | None
    high: float | None
    p: float


def association(tables: Paired | Sequence[Paired], level: float = 0.95) -> Association:
    """The conditional odds ratio of a 2x2 table, or the common one of several, with its exact interval and p.

    J. Cornfield, A statistical problem arising from retrospective studies, Proc. 3rd Berkeley Symp. 4 (1956) 135-148;
    of several tables, J. J. Gart, Point and interval estimation of the common odds ratio, Biometrika 57 (1970) 471-475.
    Findings are looked at within each table: that they are frequent in one and rare in another makes them go together
    in the sum of both, and says nothing of either.
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
    """Whether either finding differs among the rows."""
    both, first, second, neither = paired
    return bool(both + first and second + neither and both + second and first + neither)


def _conditional(strata: Sequence[Paired], level: float) -> tuple[tuple[float, float, float], float]:
    """By Fisher's noncentral hypergeometric distribution of the sum of `both`, given the margins of every table."""
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
    # Equally likely ones go together, up to rounding, as in scipy.
    p = float(null[null <= null[total - lowest] * (1 + 1e-7)].sum())
    return (middle, low, high), min(1.0, p)


def _sums(strata: Sequence[Paired]) -> tuple[int, Floats, float]:
    """The least sum of `both`, and the logarithm of in how many ways it and each one above can come about.

    Ways are weighed by odds to that power near what was found, so that those that matter do not vanish in rounding.
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


def log_ways(n: int, k: Ints) -> Floats:
    """The logarithm of in how many ways k of n can be chosen."""
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
    """For the chance of a single false finding among all: S. Holm, Scand. J. Stat. 6 (1979) 65-70."""
    order = _ascending(ps)
    raised = ((len(ps) - rank) * ps[i] for rank, i in enumerate(order))
    return _back(order, [min(1.0, p) for p in accumulate(raised, max)])


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """For the share of false ones among findings: Y. Benjamini, Y. Hochberg, J. R. Stat. Soc. B 57 (1995) 289-300."""
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
    """The p-value of no bearing: rows of totals and counts of each person's values, and the label of each.

    Values may have several columns, such as one for every option of a choice: their means are then compared together,
    each by its own scale. Exact where all arrangements can be tried. Else they are drawn, by a fixed seed, and no more
    than it takes (J. Besag, P. Clifford, Sequential Monte Carlo p-values, Biometrika 78 (1991) 301-304). None where
    there is nothing to compare.
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
        every = np.array(list(_arrangements(sizes.tolist())), dtype=np.int64)
        return float((_apart(centred, counts, every, len(sizes)) >= found).mean())
    return _drawn(centred, counts, numbers, found)


def _drawn(centred: Floats, counts: Ints, numbers: Ints, found: float) -> float:
    """The share of drawn arrangements, the real one among them, that are as far apart as the real one."""
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
    """How far apart the means of groups are, for each arrangement: their sum of squares."""
    apart = np.zeros(len(arrangements))
    for group in range(groups):
        mine = (arrangements == group).astype(float)
        n = mine @ counts
        apart += ((mine @ centred) ** 2).sum(axis=1) / np.maximum(n, 1)
    return apart


def _ways(sizes: Sequence[int]) -> int:
    """How many different arrangements there are of labels that so many people have."""
    ways, left = 1, sum(sizes)
    for size in sizes:
        ways *= comb(left, size)
        left -= size
    return ways


def _arrangements(sizes: Sequence[int]) -> Iterator[list[int]]:
    """All of them: for each group in turn, who of those left has its label."""
    labels = [0] * sum(sizes)

    def fill(group: int, left: list[int]) -> Iterator[list[int]]:
        if group == len(sizes):
            yield list(labels)
            return
        for chosen in combinations(left, sizes[group]):
            for place in chosen:
                labels[place] = group
            yield from fill(group + 1, [place for place in left if place not in set(chosen)])

    yield from fill(0, list(range(len(labels))))
