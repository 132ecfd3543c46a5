"""Tests of whether two rates differ, and of whether two findings go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, isfinite, log, sqrt
from typing import TYPE_CHECKING

import msgspec

from groundswell.stats.beta import at_least
from groundswell.stats.rates import Interval, Paired, Rate, quantile, wilson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDING = 1e-7
"""Tables as likely as one another differ by rounding."""
MANY = 100_000
"""From so many rows on, an odds ratio, its interval and p are Mantel and Haenszel's: exact ones say the same."""
FARTHEST = 60.0
"""No odds ratio is looked for beyond e to this power."""


def mcnemar(paired: Paired, effect: float = 1.0) -> float:
    """The exact two-sided p of two rates on the same rows.

    Q. McNemar, Note on the sampling error of the difference between correlated proportions or percentages,
    Psychometrika 12 (1947) 153-157: of the rows in which the two differ, either should be ahead in half.
    Where rows hang together, so that so many of them (the design effect) are worth one, they count for as many as they
    are worth: M. Eliasziw and A. Donner, Application of the McNemar test to non-independent matched pair data,
    Statistics in Medicine 10 (1991) 1981-1991.
    """
    differ = (paired.first + paired.second) / effect
    return min(1.0, 2 * at_least(max(paired.first, paired.second) / effect, differ, 0.5))


def fisher(one: Rate, other: Rate) -> float:
    """The exact two-sided p of two independent rates: R. A. Fisher, J. R. Stat. Soc. 98 (1935) 39-82."""
    if not one.n or not other.n:
        return 1.0
    return _fisher(((one.passed, one.n - one.passed), (other.passed, other.n - other.passed)))


def difference(one: Rate, other: Rate, level: float = 0.95) -> Interval:
    """Where the rate of one less that of the other lies, for independent rates.

    The tenth method of R. G. Newcombe, Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17 (1998) 873-890: Wilson's intervals of both, put together.
    """
    a, b = wilson(*one, level), wilson(*other, level)
    if one.value is None or other.value is None:
        return Interval(-1.0, 1.0)
    middle = one.value - other.value
    low = middle - sqrt((one.value - a.low) ** 2 + (b.high - other.value) ** 2)
    high = middle + sqrt((a.high - one.value) ** 2 + (other.value - b.low) ** 2)
    return Interval(max(-1.0, low), min(1.0, high))


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
    import numpy as np
    from scipy import optimize, special  # type: ignore[import-untyped]

    total = sum(each.both for each in strata)
    lowest, ways, tilt = _sums(strata)
    counts = lowest + np.arange(len(ways))

    def shares(theta: float) -> NDArray[np.float64]:
        found: NDArray[np.float64] = special.softmax(ways + (theta - tilt) * (counts - total))
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


def _sums(strata: Sequence[Paired]) -> tuple[int, NDArray[np.float64], float]:
    """The least sum of `both`, and the logarithm of in how many ways it and each one above can come about.

    Ways are weighed by odds to that power near what was found, so that those that matter do not vanish in rounding.
    """
    import numpy as np
    from scipy import special

    tilt = log(max(1e-9, sum((e.both + 0.5) * (e.neither + 0.5) / e.n for e in strata)))
    tilt -= log(max(1e-9, sum((e.first + 0.5) * (e.second + 0.5) / e.n for e in strata)))
    lowest, weights = 0, np.ones(1)
    for both, first, second, neither in strata:
        counts = np.arange(max(0, both - neither), both + min(first, second) + 1)
        ways = log_ways(both + first, counts) + log_ways(second + neither, both + second - counts)
        weights = np.convolve(weights, special.softmax(ways + tilt * counts))
        lowest += int(counts[0])
    with np.errstate(divide="ignore"):
        return lowest, np.log(weights), tilt


def log_ways(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    """The logarithm of in how many ways k of n can be chosen."""
    from scipy.special import gammaln  # type: ignore[import-untyped]

    found: NDArray[np.float64] = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return found


def _mantel_haenszel(strata: Sequence[Paired], level: float) -> tuple[tuple[float, float, float], float]:
    """N. Mantel and W. Haenszel, J. Natl. Cancer Inst. 22 (1959) 719-748.

    The interval is that of J. Robins, N. Breslow and S. Greenland, Biometrics 42 (1986) 311-323: of one table, Woolf's.
    """
    import numpy as np
    from scipy.special import chdtrc

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


def _fisher(table: tuple[tuple[int, int], tuple[int, int]]) -> float:
    """The chance of a table that is no likelier than this one. Of our own, since scipy.stats takes long to import."""
    import numpy as np

    (both, first), (second, neither) = table
    row, column, n = both + first, both + second, both + first + second + neither
    counts = np.arange(max(0, row + column - n), min(row, column) + 1)
    logs = log_ways(column, counts) + log_ways(n - column, row - counts)
    odds = np.exp(logs - logs.max())
    rare = logs <= logs[both - counts[0]] + ROUNDING
    return min(1.0, float(odds[rare].sum() / odds.sum()))
