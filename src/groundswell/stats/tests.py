"""Tests of whether two rates differ, and of whether two findings go together."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite, sqrt
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
"""From so many rows on, an odds ratio and its interval are Woolf's: the exact ones take long and say the same."""
FARTHEST = 60.0
"""No odds ratio is looked for beyond e to this power."""


def mcnemar(paired: Paired) -> float:
    """The exact two-sided p of two rates on the same rows.

    Q. McNemar, Note on the sampling error of the difference between correlated proportions or percentages,
    Psychometrika 12 (1947) 153-157: of the rows in which the two differ, either should be ahead in half.
    """
    differ = paired.first + paired.second
    return min(1.0, 2 * at_least(max(paired.first, paired.second), differ, 0.5))


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


def association(paired: Paired, level: float = 0.95) -> Association:
    """The conditional odds ratio of a 2x2 table with its exact interval, and Fisher's exact p.

    J. Cornfield, A statistical problem arising from retrospective studies, Proc. 3rd Berkeley Symp. 4 (1956) 135-148.
    """
    both, first, second, neither = paired
    if not (both + first and second + neither and both + second and first + neither):
        return Association(None, None, None, 1.0)
    p = _fisher(((both, first), (second, neither)))
    found = _woolf(paired, level) if paired.n >= MANY and min(paired) > 0 else _conditional(paired, level)
    ratio, low, high = (each if isfinite(each) else None for each in found)
    return Association(ratio, low, high, p)


def _conditional(paired: Paired, level: float) -> tuple[float, float, float]:
    """By Fisher's noncentral hypergeometric distribution, as in scipy, which takes seconds for ten thousand rows."""
    import numpy as np
    from scipy import optimize, special  # type: ignore[import-untyped]

    both, first, second, neither = paired
    counts = np.arange(max(0, both - neither), both + min(first, second) + 1)
    ways = log_ways(both + first, counts) + log_ways(second + neither, both + second - counts)

    def shares(theta: float) -> NDArray[np.float64]:
        found: NDArray[np.float64] = special.softmax(ways + theta * (counts - both))
        return found

    def odds(off: Callable[[float], float]) -> float:
        return exp(optimize.brentq(off, -FARTHEST, FARTHEST, xtol=1e-10))

    tail = (1 - level) / 2
    lowest, highest = both == counts[0], both == counts[-1]
    middle = 0.0 if lowest else inf if highest else odds(lambda t: float(shares(t) @ (counts - both)))
    low = 0.0 if lowest else odds(lambda t: float(shares(t)[counts >= both].sum()) - tail)
    high = inf if highest else odds(lambda t: tail - float(shares(t)[counts <= both].sum()))
    return middle, low, high


def log_ways(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    """The logarithm of in how many ways k of n can be chosen."""
    from scipy.special import gammaln  # type: ignore[import-untyped]

    found: NDArray[np.float64] = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return found


def _woolf(paired: Paired, level: float) -> tuple[float, float, float]:
    """B. Woolf, On estimating the relation between blood group and disease, Ann. Hum. Genet. 19 (1955) 251-253."""
    ratio = paired.both * paired.neither / (paired.first * paired.second)
    off = exp(quantile(level) * sqrt(sum(1 / count for count in paired)))
    return ratio, ratio / off, ratio * off


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
