"""Correlated values: the design effect of clusters, and means of values that people gave in groups.

A company is a group of people who took part together. The same people are in many companies, and members of a company
influence each other. So two values are correlated if the same person gave them, if they were given in the same company,
or if somebody who influences others was present both times. The variances of `mean`, `share` and `difference` account
for all three.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import sqrt
from typing import Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]

from groundswell.stats.rates import Interval, Paired, apart, quantile, score, worth

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ENOUGH = 5
"""The fewest people and companies for a variance. With fewer, an estimate of it is mostly chance."""
NOTHING = "there are no values"
FEW_PEOPLE = f"fewer than {ENOUGH} entities"
FEW_COMPANIES = f"fewer than {ENOUGH} combinations of entities"
ALL_SAME = "all values are the same"
ALWAYS_THERE = "one entity took part every time"


class Clusters:
    """Values added cluster by cluster. Only sums are kept, so memory does not grow."""

    def __init__(self) -> None:
        self.n = 0
        self.total = 0.0
        self.count = 0
        """Number of clusters."""
        self._squares = 0.0
        self._at: int | None = None
        self._open_total, self._open_n = 0.0, 0
        self._totals = self._mixed = self._sizes = 0.0

    def add(self, cluster: int, *values: float) -> None:
        """Add values of a cluster. All values of one cluster must be added consecutively."""
        if cluster != self._at:
            self._totals, self._mixed, self._sizes = self._sums()
            self._at, self._open_total, self._open_n = cluster, 0.0, 0
            self.count += 1
        total, n = sum(values), len(values)
        self.n += n
        self.total += total
        self._squares += sum(value * value for value in values) if n > 1 else total * total
        self._open_total += total
        self._open_n += n

    @property
    def effect(self) -> float | None:
        """The design effect: how many of these values carry as much information as one independent value.

        The variance of the mean from the differences between clusters, divided by the variance of independent values:
        L. Kish, Survey Sampling (1965), chapter 5, with the variance of a ratio, since clusters may differ in size.
        None with fewer than two clusters, or if all values are equal.
        """
        spread = self._squares - self.total * self.total / self.n if self.n else 0.0
        if self.count < 2 or spread <= 1e-9 * self.n:
            return None
        mean = self.total / self.n
        totals, mixed, sizes = self._sums()
        between = totals - 2 * mean * mixed + mean * mean * sizes
        return between * self.count / (self.count - 1) / (spread * self.n / (self.n - 1))

    def _sums(self) -> tuple[float, float, float]:
        """Over clusters: the squares of their totals, totals times sizes, squares of sizes."""
        total, n = self._open_total, self._open_n
        return self._totals + total * total, self._mixed + total * n, self._sizes + n * n


K = TypeVar("K", bound=Hashable)


class ClusterTotals(Generic[K]):
    """Totals of several values, added cluster by cluster, and the covariance of weighted sums of them.

    Only sums and products are kept, so memory grows with the number of values, not with the number of clusters.
    """

    def __init__(self) -> None:
        self.count = 0
        """Number of clusters."""
        self.keys: dict[K, int] = {}
        """The values by key, with their positions."""
        self._at: int | None = None
        self._open: dict[int, float] = {}
        self._totals, self._products = np.zeros(0), np.zeros((0, 0))

    def add(self, cluster: int, key: K, amount: float = 1.0) -> None:
        """Add an amount to a value. Everything of one cluster must be added consecutively."""
        if cluster != self._at:
            self._close()
            self._at = cluster
            self.count += 1
        place = self.keys.setdefault(key, len(self.keys))
        self._open[place] = self._open.get(place, 0.0) + amount

    def _close(self) -> None:
        if (more := len(self.keys) - len(self._totals)) > 0:
            self._totals, self._products = np.pad(self._totals, (0, more)), np.pad(self._products, (0, more))
        places, amounts = list(self._open), np.array(list(self._open.values()))
        self._totals[places] += amounts
        self._products[np.ix_(places, places)] += np.outer(amounts, amounts)
        self._open.clear()

    @property
    def totals(self) -> Floats:
        """The total of each value, over all clusters."""
        self._close()
        return self._totals

    def covariance(self, weights: Floats) -> Floats:
        """The covariance of weighted sums of the totals, from their spread between clusters.

        `weights` has a row per value and a column per sum. There must be at least two clusters.
        """
        sums = self.totals @ weights
        spread: Floats = weights.T @ self._products @ weights - np.outer(sums, sums) / self.count
        return spread * self.count / (self.count - 1)


class Figure(msgspec.Struct, frozen=True):
    """A mean, share or difference of n values of several entities, with its interval; else `reason` says why not."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    entities: int
    reason: str = ""


class Rows(NamedTuple):
    """Values with the person and company of each, numbered from 0."""

    values: Floats
    who: Ints
    company: Ints
    links: Links

    def among(self, chosen: Bools) -> Rows:
        """A subset of the rows. Companies keep all their members."""
        return Rows(self.values[chosen], self.who[chosen], self.company[chosen], self.links)

    def of(self, values: Floats) -> Rows:
        """The same rows with other values."""
        return self._replace(values=values)


class Links(NamedTuple):
    """Memberships, one row each: company and person; then the size of each company, and the number of people."""

    company: Ints
    who: Ints
    sizes: Ints
    people: int


class Spread(NamedTuple):
    """The variance of an estimate and its degrees of freedom, or the reason why there is none."""

    variance: float = 0.0
    df: float = 1.0
    reason: str = ""


def rows(
    values: Sequence[float] | Floats,
    who: Sequence[int] | Ints,
    company: Sequence[int] | Ints,
    members: Sequence[Sequence[int]],
) -> Rows:
    """Build rows. `members` lists everybody in each company, whether they gave a value or not."""
    sizes = np.array([len(each) for each in members], dtype=np.int64)
    everybody = np.array([one for each in members for one in each], dtype=np.int64)
    many = int(everybody.max(initial=-1)) + 1
    links = Links(np.repeat(np.arange(len(members)), sizes), everybody, sizes, many)
    people, companies = np.asarray(who, dtype=np.int64), np.asarray(company, dtype=np.int64)
    return Rows(np.asarray(values, dtype=float), people, companies, links)


def mean(rows: Rows, level: float = 0.95, bounds: Interval | None = None) -> Figure:
    """The mean of values, with Student's interval, clipped to `bounds` if given."""
    if not len(rows.values):
        return _nothing(rows)
    value, spread = float(rows.values.mean()), spread_of([rows])
    return _figure(value, _student(value, spread, level, bounds), [rows], spread.reason)


def share(rows: Rows, level: float = 0.95) -> Figure:
    """The mean of values that are 0 or 1, with Wilson's interval at the effective sample size.

    The effective sample size is n over the design effect, at least 1, and the quantile is Student's t instead of the
    normal one: E. L. Korn, B. I. Graubard, Survey Methodology 24 (1998) 193-201. If everybody answered once and alone,
    the interval is Wilson's own. If all values are equal, all values of a person (or of a company, if companies are
    fewer) count as one, and the interval is exact.
    """
    if not len(rows.values):
        return _nothing(rows)
    spread = spread_of([rows])
    interval = _share(rows, spread, level)
    return _figure(float(rows.values.mean()), interval, [rows], spread.reason if interval is None else "")


def difference(one: Rows, other: Rows, level: float = 0.95, bounds: Interval | None = None) -> Figure:
    """The mean of one group's values minus that of another's. Both may have been in the same companies."""
    if not len(one.values) or not len(other.values):
        return _nothing(one, other)
    value, spread = float(one.values.mean() - other.values.mean()), spread_of([one, other])
    return _figure(value, _student(value, spread, level, bounds), [one, other], spread.reason)


def difference_of_shares(one: Rows, other: Rows, level: float = 0.95, *, shared: bool = False) -> Figure:
    """The difference of two shares, from the intervals of both and their correlation.

    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27 (2008)
    1693-1702. With `shared`, and one value of each person on both sides, the interval is that of `rates.Paired`.
    """
    return _of_two_shares(one, other, shared=shared)(level)


def p_of_shares(one: Rows, other: Rows, *, shared: bool = False) -> float | None:
    """The p-value of a difference of two shares: one minus the level at which its interval reaches zero."""
    return _p_of(_of_two_shares(one, other, shared=shared))


def sum_of_shares(sides: Sequence[Rows], weights: Sequence[float], level: float) -> tuple[Figure, float | None] | None:
    """A weighted sum of the shares of different people, from the interval of each, and its p-value.

    G. Y. Zou, W. Huang, X. Zhang, A note on confidence interval estimation for a linear function of binomial
    proportions, Computational Statistics and Data Analysis 53 (2009) 1080-1085. None if people are in several groups.
    With few people per group it has more false alarms than `combined`.
    """
    people = np.concatenate([np.unique(each.who) for each in sides])
    if len(people) > distinct(people) or any(not len(each.values) for each in sides):
        return None
    spreads = [spread_of([each]) for each in sides]
    shares = [float(each.values.mean()) for each in sides]
    value, most = sum(w * share for w, share in zip(weights, shares, strict=True)), sum(map(abs, weights)) / 2

    def found(level: float) -> Figure:
        below = above = 0.0
        for weight, share, each, spread in zip(weights, shares, sides, spreads, strict=True):
            interval = _share(each, spread, level)
            if interval is None:
                return _figure(value, None, sides, spread.reason)
            low, high = interval if weight > 0 else interval[::-1]
            below, above = below + (weight * (share - low)) ** 2, above + (weight * (high - share)) ** 2
        return _figure(value, Interval(max(-most, value - sqrt(below)), min(most, value + sqrt(above))), sides)

    return found(level), _p_of(found)


def _of_two_shares(one: Rows, other: Rows, *, shared: bool) -> Callable[[float], Figure]:
    """The difference of two shares at each level."""
    sides = [one, other]
    if not len(one.values) or not len(other.values):
        return lambda level: _nothing(*sides)
    means = [float(side.values.mean()) for side in sides]
    value, pairs = means[0] - means[1], _pairs(one, other) if shared else None
    if pairs is not None:
        return lambda level: _figure(value, pairs.interval(level), sides)
    spreads = [spread_of([one]), spread_of([other]), spread_of(sides, shared=shared)]
    rho = correlation(*spreads)

    def found(level: float) -> Figure:
        first, second = _share(one, spreads[0], level), _share(other, spreads[1], level)
        if first is None or second is None:
            return _figure(value, None, sides, spreads[0].reason if first is None else spreads[1].reason)
        return _figure(value, apart(means[0], first, means[1], second, rho), sides)

    return found


def _p_of(interval: Callable[[float], Figure]) -> float | None:
    """The p-value of a test: one minus the level at which the interval of a figure reaches zero."""
    found = interval(0.5)
    if found.low is None:
        return None
    if abs(found.value or 0.0) < 1e-12:
        return 1.0

    def misses_zero(level: float) -> bool:
        found = interval(level)
        return found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)

    least, most = 1e-12, 1.0
    for _ in range(40):
        middle = sqrt(least * most)
        least, most = (least, middle) if misses_zero(1 - middle) else (middle, most)
    return most


def combined(sides: Sequence[Rows], weights: Sequence[float], level: float, bounds: Interval) -> tuple[Figure, Spread]:
    """A weighted sum of the means of several groups, with Student's interval, and its variance.

    People and companies may be in several groups.
    """
    if any(not len(each.values) for each in sides):
        return _nothing(*sides), Spread(reason=NOTHING)
    value = sum(weight * float(each.values.mean()) for weight, each in zip(weights, sides, strict=True))
    spread = spread_of(sides, weights, shared=True)
    return _figure(value, _student(value, spread, level, bounds), sides, spread.reason), spread


def spread_of(sides: Sequence[Rows], weights: Sequence[float] = (1.0, -1.0), *, shared: bool = False) -> Spread:
    """The variance of a weighted sum of means; by default of a mean, or of the difference of two.

    With `shared`, values of the same person in several groups are correlated; otherwise as if of different people.

    The larger of two: people as clusters, and the jackknife that leaves out a person together with every company they
    were in.
    """
    if min(distinct(each.who) for each in sides) < ENOUGH:
        return Spread(reason=FEW_PEOPLE)
    if min(distinct(each.company) for each in sides) < ENOUGH:
        return Spread(reason=FEW_COMPANIES)
    scores = [
        weight * (each.values - each.values.mean()) / len(each.values)
        for weight, each in zip(weights, sides, strict=False)
    ]
    own = _by_people(sides, scores, shared=shared)
    by_person, left_out = sum(variance for variance, _ in own), jackknife(sides, scores, weights, shared=shared)
    if max(by_person, left_out or 0.0) <= 1e-24 * (1 + max(float(abs(each.values).max()) for each in sides) ** 2):
        return Spread(reason=ALL_SAME)
    if left_out is None:
        return Spread(reason=ALWAYS_THERE)
    together = distinct(np.concatenate([each.company for each in sides]))
    variance = max(by_person, left_out) * _for_influence(sides)
    return Spread(variance, min(_welch(*zip(*own, strict=True)), together - 1))


def _for_influence(sides: Sequence[Rows]) -> float:
    """By how much to enlarge a variance because people influence several answers; 1 if all of them answered alone.

    Answers in companies of the same person vary less around their mean than around the truth. The variance is divided
    by the share of answers that do not depend on a person, on average over answers. (Alone, that is done by n - 1.)
    If people gave values of several groups, their influence is in all of them and cancels.
    """
    links, who = sides[0].links, np.concatenate([np.unique(each.who) for each in sides])
    if len(who) > distinct(who) or all(_are_alone(each) for each in sides):
        return 1.0
    touched = np.zeros(links.people)
    for each in sides:
        counts = np.bincount(each.company, minlength=len(links.sizes))
        touched += np.bincount(links.who, counts[links.company], links.people) / len(each.values) / len(sides)
    touched = touched[touched > 0]
    return (1 - 1 / len(touched)) / (1 - float((touched**2).sum() / touched.sum()))


def _are_alone(rows: Rows) -> bool:
    """Whether nobody was in the company of others."""
    return int(rows.links.sizes[rows.company].max(initial=1)) == 1


def _are_independent(rows: Rows) -> bool:
    """Whether everybody gave one value, alone."""
    return _are_alone(rows) and distinct(rows.who) == len(rows.values)


def are_pairs(one: Rows, other: Rows) -> bool:
    """Whether the same people gave one value to each side, alone."""
    return _pairs(one, other) is not None


def _pairs(one: Rows, other: Rows) -> Paired | None:
    """Two values of 0 or 1 of the same people, one on each side; None if there are other values or too few people."""
    if not (_are_independent(one) and _are_independent(other)) or len(one.values) < ENOUGH:
        return None
    first, second = np.argsort(one.who), np.argsort(other.who)
    if not np.array_equal(one.who[first], other.who[second]):
        return None
    values = 2 * one.values[first] + other.values[second]
    neither, second_only, first_only, both = np.bincount(values.astype(np.int64), minlength=4).tolist()
    return Paired(both, first_only, second_only, neither)


def _strata(sides: Sequence[Rows], *, shared: bool) -> Ints:
    """For each person, a number for the groups that the person gave values of; 0 for those who gave none.

    Without `shared`, people of several groups count for the last one. Sets of groups with a single person are merged.
    """
    strata = np.zeros(sides[0].links.people, dtype=np.int64)
    for number, each in enumerate(sides, 1):
        if not shared:
            strata[each.who] = number
            continue
        mine = np.zeros(len(strata), dtype=np.int64)
        mine[each.who] = 1
        pairs = 2 * strata + mine
        strata = np.searchsorted(np.unique([0, *pairs.tolist()]), pairs)
    if shared:
        counts = np.bincount(strata)
        strata[(counts[strata] == 1) & (strata > 0)] = int(counts[1:].argmax()) + 1
    return strata


def _by_people(sides: Sequence[Rows], scores: Sequence[Floats], *, shared: bool) -> list[tuple[float, int]]:
    """The variance with people as clusters, and their number, of each group; with `shared`, of each set of groups."""
    whose = [each.who for each in sides]
    if not shared:
        return [(_by(score, who), distinct(who)) for score, who in zip(scores, whose, strict=True)]
    score, who = np.concatenate(scores), np.concatenate(whose)
    stratum = _strata(sides, shared=True)[who]
    chosen = [stratum == each for each in np.unique(stratum)]
    return [(_by(score[mine], who[mine]), distinct(who[mine])) for mine in chosen]


def jackknife(
    sides: Sequence[Rows], scores: Sequence[Floats], weights: Sequence[float] = (1.0, -1.0), *, shared: bool = False
) -> float | None:
    """The variance from leaving out each person together with every company they were in.

    J. N. Arvesen, Jackknifing U-statistics, Ann. Math. Stat. 40 (1969) 2076-2100. The part that belongs to a company is
    left out once with each of its members, so it is counted that many times (B. Efron, C. Stein, Ann. Stat. 9 (1981)
    586-596); the surplus is subtracted. None if leaving out somebody would leave no values.
    """
    links, moved = sides[0].links, [_without(each) for each in sides]
    moves = [weight * each for weight, each in zip(weights, moved, strict=False) if each is not None]
    if len(moves) < len(sides):
        return None
    strata, there = _strata(sides, shared=shared), np.zeros(len(links.sizes), dtype=np.bool_)
    for each in sides:
        there[each.company] = True
    strata[~_present(links, there)] = -1
    company = sum(np.bincount(each.company, score, len(there)) for score, each in zip(scores, sides, strict=True))
    companies = int(there.sum())
    again = float(((links.sizes - 1) * company**2).sum()) * companies / (companies - 1)
    return _stratified(np.sum(moves, axis=0), strata) - again


def _without(rows: Rows) -> Floats | None:
    """The mean without each person, minus the overall mean. None if leaving out somebody leaves no values."""
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
    """Who was in any of these companies."""
    present = np.zeros(links.people, dtype=np.bool_)
    present[links.who[there[links.company]]] = True
    return present


def _stratified(moved: Floats, strata: Ints) -> float:
    """The jackknife's sum of squares, within those who gave values of either side and those who were only present."""
    total = 0.0
    for stratum in range(int(strata.max()) + 1):
        mine = moved[strata == stratum]
        if len(mine):
            total += (len(mine) - 1) / len(mine) * float(((mine - mine.mean()) ** 2).sum())
    return total


def _by(scores: Floats, clusters: Ints) -> float:
    """The variance of a sum of scores from the sums of clusters; 0 for a single cluster."""
    count, sums = distinct(clusters), np.bincount(clusters, scores)
    return float((sums**2).sum()) * count / (count - 1) if count > 1 else 0.0


def _welch(variances: Sequence[float], people: Sequence[int]) -> float:
    """Degrees of freedom of a sum of variances: B. L. Welch, Biometrika 34 (1947) 28-35."""
    parts = sum(variance**2 / (n - 1) for variance, n in zip(variances, people, strict=True))
    return sum(variances) ** 2 / parts if parts > 0 else min(people) - 1.0


def correlation(one: Spread, other: Spread, difference: Spread) -> float:
    """The correlation of two means, from the variance of each and that of their difference; 0 where one is unknown."""
    if one.reason or other.reason or difference.reason:
        return 0.0
    both = one.variance + other.variance - difference.variance
    return max(-1.0, min(1.0, both / (2 * sqrt(one.variance * other.variance))))


def _share(rows: Rows, spread: Spread, level: float) -> Interval | None:
    value = float(rows.values.mean())
    if spread.reason == ALL_SAME:
        return worth(value, min(distinct(rows.who), distinct(rows.company)), level)
    if spread.reason:
        return None
    if _are_independent(rows):
        return score(value, len(rows.values), quantile(level))
    n = min(float(len(rows.values)), value * (1 - value) / spread.variance)
    return score(value, n, student(spread.df, level))


def _student(value: float, spread: Spread, level: float, bounds: Interval | None) -> Interval | None:
    if spread.reason:
        return None
    off = student(spread.df, level) * sqrt(spread.variance)
    low, high = value - off, value + off
    return Interval(low, high) if bounds is None else Interval(max(low, bounds.low), min(high, bounds.high))


def student(df: float, level: float) -> float:
    """The two-sided quantile of Student's distribution at that level, in standard errors."""
    return -float(stdtrit(df, (1 - level) / 2))


def student_p(value: float, variance: float, df: float) -> float:
    """The two-sided p-value of Student's test that the mean of a value with this variance is 0."""
    return 2 * float(stdtr(df, -abs(value) / sqrt(variance)))


def _figure(value: float, interval: Interval | None, sides: Sequence[Rows], reason: str = "") -> Figure:
    low, high = (None, None) if interval is None else interval
    return Figure(value, low, high, sum(len(each.values) for each in sides), _people(sides), reason)


def _nothing(*sides: Rows) -> Figure:
    return Figure(None, None, None, sum(len(each.values) for each in sides), _people(sides), NOTHING)


def _people(sides: Sequence[Rows]) -> int:
    """Number of people. Those with values in several groups count once."""
    return distinct(np.concatenate([each.who for each in sides]))


def distinct(numbers: Ints) -> int:
    """Number of distinct values."""
    return int(np.count_nonzero(np.bincount(numbers)))


def within_people(rows: Rows, first: Bools) -> Rows:
    """Rows whose mean is the average, over people, of their mean in the first condition minus that in the second.

    Every person has the same weight, however often they were asked. People in only one condition are left out. The
    values are constructed so that `mean` and `difference` of the result have the right variance: the values of a person
    add up to their difference, and companies of both conditions are clusters. Each person's own level is subtracted
    first: it cancels in the difference, and would otherwise make companies look different.
    """
    there, apart = of_people(rows, first)
    kept = np.isin(rows.who, there)
    rows, first = rows.among(kept), first[kept]
    if not len(there):
        return rows
    sides = (first, ~first)
    counts, means = [_counts(rows.among(side)) for side in sides], [_means(rows.among(side)) for side in sides]
    signs, many = np.where(first, 1.0, -1.0), np.where(first, counts[0][rows.who], counts[1][rows.who])
    own = np.where(first, means[0][rows.who], means[1][rows.who])
    middle = float(apart.mean())
    moved = ((means[0] - means[1])[rows.who] - middle) / 2
    # The factor corrects the bias of a spread around a mean of the same few values.
    within = (rows.values - own) * np.sqrt(many / np.maximum(many - 1, 1))
    return rows.of(middle + (moved + signs * within) * len(rows.values) / (len(there) * many))


def of_people(rows: Rows, first: Bools) -> tuple[Ints, Floats]:
    """The people in both conditions, and the difference of each."""
    counts = [_counts(rows.among(side)) for side in (first, ~first)]
    there = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    return there, (_means(rows.among(first)) - _means(rows.among(~first)))[there]


def _means(rows: Rows) -> Floats:
    """The mean of each person; 0 for people without values."""
    means: Floats = np.bincount(rows.who, rows.values, rows.links.people) / np.maximum(_counts(rows), 1)
    return means


def _counts(rows: Rows) -> Ints:
    return np.bincount(rows.who, minlength=rows.links.people)
