"""Means of values that people gave in company, where neither the people nor the companies are independent.

The same people are in many companies, and those of a company influence each other. So two values hang together if the
same person gave them, if they were given in the same company, and also if somebody was there both times who made others
answer differently. Variances here allow for all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from groundswell.stats.rates import Interval, worth

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

ENOUGH = 5
"""From so many people and companies on, how much they differ can be told. Of fewer, it is mostly chance."""
NOTHING = "there are no values"
FEW_PEOPLE = f"fewer than {ENOUGH} entities"
FEW_COMPANIES = f"fewer than {ENOUGH} combinations of entities"
ALL_SAME = "all values are the same"
ALWAYS_THERE = "one entity was there every time"


class Figure(msgspec.Struct, frozen=True):
    """A mean, share or difference of n values of so many people, and where it lies; else `reason` says why not."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    entities: int
    reason: str = ""


class Rows(NamedTuple):
    """Values, who gave each and in which company: numbers from 0 on, and a number for every two of these."""

    values: Floats
    who: Ints
    company: Ints
    cell: Ints
    links: Links

    def among(self, chosen: Bools) -> Rows:
        """Some of the rows. Companies keep their members."""
        return Rows(self.values[chosen], self.who[chosen], self.company[chosen], self.cell[chosen], self.links)

    def of(self, values: Floats) -> Rows:
        """The same rows with other values."""
        return self._replace(values=values)


class Links(NamedTuple):
    """Who was in which company, a row for each; and how many were in each company, and how many there are in all."""

    company: Ints
    who: Ints
    sizes: Ints
    people: int


class Spread(NamedTuple):
    """The variance of an estimate and its degrees of freedom; or why neither can be told."""

    variance: float = 0.0
    df: float = 0.0
    reason: str = ""


def rows(
    values: Sequence[float] | Floats,
    who: Sequence[int] | Ints,
    company: Sequence[int] | Ints,
    members: Sequence[Sequence[int]],
) -> Rows:
    """Values as they are reckoned with; `members` says who was in each company, whether they gave a value or not."""
    import numpy as np

    sizes = np.array([len(each) for each in members], dtype=np.int64)
    everybody = np.array([one for each in members for one in each], dtype=np.int64)
    many = int(everybody.max(initial=-1)) + 1
    links = Links(np.repeat(np.arange(len(members)), sizes), everybody, sizes, many)
    people, companies = np.asarray(who, dtype=np.int64), np.asarray(company, dtype=np.int64)
    _, cells = np.unique(companies * many + people, return_inverse=True)
    return Rows(np.asarray(values, dtype=float), people, companies, cells, links)


def mean(rows: Rows, level: float = 0.95, bounds: Interval | None = None) -> Figure:
    """The mean of values, with Student's interval; it does not go beyond `bounds`, if there are any."""
    if not len(rows.values):
        return _nothing(rows)
    value, spread = float(rows.values.mean()), spread_of([rows])
    return _figure(value, _student(value, spread, level, bounds), [rows], spread.reason)


def share(rows: Rows, level: float = 0.95) -> Figure:
    """The mean of values that are 0 or 1: Wilson's interval at as many independent ones as these are worth.

    That is n over the design effect, one at the least, with the quantile of Student's t in place of the normal one:
    E. L. Korn, B. I. Graubard, Survey Methodology 24 (1998) 193-201. Where all are the same, nothing tells the effect:
    then all values of a person, or of a company if they are fewer, count as one, and the interval is exact.
    """
    return _share(rows, spread_of([rows]), level) if len(rows.values) else _nothing(rows)


def difference(one: Rows, other: Rows, level: float = 0.95, bounds: Interval | None = None) -> Figure:
    """The mean of some people's values less that of others', who may have been in the same companies."""
    if not len(one.values) or not len(other.values):
        return _nothing(one, other)
    value, spread = float(one.values.mean() - other.values.mean()), spread_of([one, other])
    return _figure(value, _student(value, spread, level, bounds), [one, other], spread.reason)


def difference_of_shares(one: Rows, other: Rows, level: float = 0.95) -> Figure:
    """The same of values that are 0 or 1: from the intervals of both shares, by how the two hang together.

    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27 (2008)
    1693-1702.
    """
    if not len(one.values) or not len(other.values):
        return _nothing(one, other)
    spreads = [spread_of([one]), spread_of([other]), spread_of([one, other])]
    first, second = _share(one, spreads[0], level), _share(other, spreads[1], level)
    value = float(one.values.mean() - other.values.mean())
    if first.reason or second.reason:
        return _figure(value, None, [one, other], first.reason or second.reason)
    (low_off, high_off), (other_low, other_high), rho = _offs(first), _offs(second), _together(*spreads)
    low, high = _combined(low_off, other_high, rho), _combined(high_off, other_low, rho)
    return _figure(value, Interval(max(-1.0, value - low), min(1.0, value + high)), [one, other])


def spread_of(sides: Sequence[Rows]) -> Spread:
    """The variance of a mean, or of the difference of two.

    The largest of four: people as clusters; companies as clusters; both at once, A. C. Cameron, J. B. Gelbach, D. L.
    Miller, Robust inference with multiway clustering, J. Bus. Econ. Stat. 29 (2011) 238-249; and the jackknife over
    people, with which everything goes that was said in their presence.
    """
    import numpy as np

    people, companies = [_different(each.who) for each in sides], [_different(each.company) for each in sides]
    if min(people) < ENOUGH:
        return Spread(reason=FEW_PEOPLE)
    if min(companies) < ENOUGH:
        return Spread(reason=FEW_COMPANIES)
    scores = [(each.values - each.values.mean()) / len(each.values) for each in sides]
    own = [_by(score, each.who) for score, each in zip(scores, sides, strict=True)]
    by_both = two_way(sides, scores)
    if by_both <= 1e-24 * (1 + max(float(abs(each.values).max()) for each in sides) ** 2):
        return Spread(reason=ALL_SAME)
    left_out = jackknife(sides, scores)
    if left_out is None:
        return Spread(reason=ALWAYS_THERE)
    together = _different(np.concatenate([each.company for each in sides]))
    return Spread(max(by_both, left_out), min(_welch(own, people), together - 1))


def two_way(sides: Sequence[Rows], scores: Sequence[Floats]) -> float:
    """The variance with people and companies as clusters; at least what either of them has alone."""
    import numpy as np

    company, every = np.concatenate([each.company for each in sides]), np.concatenate(list(_signed(scores)))
    by_person = sum(_by(score, each.who) for score, each in zip(scores, sides, strict=True))
    by_company = _by(every, company)
    by_cell = sum(_by(score, each.cell) for score, each in zip(scores, sides, strict=True))
    return max(by_person, by_company, by_person + by_company - by_cell)


def jackknife(sides: Sequence[Rows], scores: Sequence[Floats]) -> float | None:
    """The variance by how much the estimate moves when a person is left out with all companies that they were in.

    J. N. Arvesen, Jackknifing U-statistics, Ann. Math. Stat. 40 (1969) 2076-2100. What is of a company alone is left
    out with each of its members and so counts that many times (B. Efron, C. Stein, Ann. Stat. 9 (1981) 586-596); all
    but one of these are taken off again. None where nothing would be left.
    """
    import numpy as np

    links, moved = sides[0].links, [_without(each) for each in sides]
    moves = [each for each in moved if each is not None]
    if len(moves) < len(sides):
        return None
    strata, there = np.zeros(links.people, dtype=np.int64), np.zeros(len(links.sizes), dtype=np.bool_)
    for number, each in enumerate(sides, 1):
        strata[each.who] = number
        there[each.company] = True
    strata[~_present(links, there)] = -1
    company = sum(
        np.bincount(each.company, score, len(there)) for score, each in zip(_signed(scores), sides, strict=True)
    )
    companies = int(there.sum())
    again = float(((links.sizes - 1) * company**2).sum()) * companies / (companies - 1)
    return _stratified(np.sum(_signed(moves), axis=0), strata) - again


def _signed(scores: Sequence[Floats]) -> Sequence[Floats]:
    """The scores of a difference: those of the second side count the other way."""
    return [scores[0], *(-each for each in scores[1:])]


def _without(rows: Rows) -> Floats | None:
    """The mean of what is left without each person, less that of all; None if nothing is left without somebody."""
    import numpy as np

    links, values = rows.links, rows.values - rows.values.mean()
    size, many = len(links.sizes), links.people
    totals, counts = np.bincount(rows.company, values, size), np.bincount(rows.company, minlength=size)
    gone = np.bincount(links.who, totals[links.company], many)
    left = len(values) - np.bincount(links.who, counts[links.company], many)
    if left.min() <= 0:
        return None
    moved: Floats = -gone / left
    return moved


def _present(links: Links, there: Bools) -> Bools:
    """Who was in any of some companies."""
    import numpy as np

    present = np.zeros(links.people, dtype=np.bool_)
    present[links.who[there[links.company]]] = True
    return present


def _stratified(moved: Floats, strata: Ints) -> float:
    """The jackknife's sum of squares, within those who gave values of either side and those who were only there."""
    total = 0.0
    for stratum in range(int(strata.max()) + 1):
        mine = moved[strata == stratum]
        if len(mine):
            total += (len(mine) - 1) / len(mine) * float(((mine - mine.mean()) ** 2).sum())
    return total


def _by(scores: Floats, clusters: Ints) -> float:
    """The variance of a sum of scores by how much the sums of clusters differ; 0 of a single cluster."""
    import numpy as np

    count, sums = _different(clusters), np.bincount(clusters, scores)
    return float((sums**2).sum()) * count / (count - 1) if count > 1 else 0.0


def _welch(variances: Sequence[float], people: Sequence[int]) -> float:
    """Degrees of freedom of a sum of variances: B. L. Welch, Biometrika 34 (1947) 28-35."""
    parts = sum(variance**2 / (n - 1) for variance, n in zip(variances, people, strict=True))
    return sum(variances) ** 2 / parts if parts > 0 else min(people) - 1.0


def _together(one: Spread, other: Spread, apart: Spread) -> float:
    """How two means hang together, from the variance of each and that of their difference."""
    if one.reason or other.reason or apart.reason:
        return 0.0
    both = one.variance + other.variance - apart.variance
    return max(-1.0, min(1.0, both / (2 * sqrt(one.variance * other.variance))))


def _combined(one: float, other: float, rho: float) -> float:
    """How far a difference may be off to one side, if its parts may be off so far."""
    return sqrt(max(0.0, one * one - 2 * rho * one * other + other * other))


def _offs(figure: Figure) -> tuple[float, float]:
    """How far the ends of an interval are from its figure."""
    assert figure.value is not None
    assert figure.low is not None
    assert figure.high is not None
    return figure.value - figure.low, figure.high - figure.value


def _share(rows: Rows, spread: Spread, level: float) -> Figure:
    value = float(rows.values.mean())
    if spread.reason == ALL_SAME:
        return _figure(value, worth(value, min(_different(rows.who), _different(rows.company)), level), [rows])
    return _figure(value, _wilson(value, len(rows.values), spread, level), [rows], spread.reason)


def _student(value: float, spread: Spread, level: float, bounds: Interval | None) -> Interval | None:
    if spread.reason:
        return None
    off = _quantile(spread.df, level) * sqrt(spread.variance)
    low, high = value - off, value + off
    return Interval(low, high) if bounds is None else Interval(max(low, bounds.low), min(high, bounds.high))


def _wilson(value: float, n: int, spread: Spread, level: float) -> Interval | None:
    if spread.reason:
        return None
    n_worth = min(float(n), value * (1 - value) / spread.variance)
    t = _quantile(spread.df, level)
    more = t * t / n_worth
    middle = (value + more / 2) / (1 + more)
    off = t * sqrt(value * (1 - value) / n_worth + more / (4 * n_worth)) / (1 + more)
    return Interval(max(0.0, middle - off), min(1.0, middle + off))


def _quantile(df: float, level: float) -> float:
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(df, (1 + level) / 2))


def _figure(value: float, interval: Interval | None, sides: Sequence[Rows], reason: str = "") -> Figure:
    low, high = (None, None) if interval is None else interval
    n, people = sum(len(each.values) for each in sides), sum(_different(each.who) for each in sides)
    return Figure(value, low, high, n, people, reason)


def _nothing(*sides: Rows) -> Figure:
    n, people = sum(len(each.values) for each in sides), sum(_different(each.who) for each in sides)
    return Figure(None, None, None, n, people, NOTHING)


def _different(numbers: Ints) -> int:
    import numpy as np

    return int(np.count_nonzero(np.bincount(numbers)))
