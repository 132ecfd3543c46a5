"""Rates with confidence intervals, and differences of two rates on the same rows."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from scipy.special import betainccinv, betaincinv  # type: ignore[import-untyped]

FEW = 100
"""Up to this n, intervals are exact. Above, Wilson's is as good and narrower."""


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Rate(NamedTuple):
    """A count of successes out of n."""

    passed: int
    n: int

    @property
    def value(self) -> float | None:
        """The share that passed; None if n is 0."""
        return self.passed / self.n if self.n else None

    def interval(self, level: float = 0.95) -> Interval:
        """The confidence interval: exact for small n, or if none or all passed; otherwise Wilson's."""
        if self.n <= FEW or self.passed in (0, self.n):
            return exact(self.passed, self.n, level)
        return wilson(self.passed, self.n, level)


def worth(share: float, n: float, level: float = 0.95) -> Interval:
    """The interval of a share at an effective sample size of n, which need not be an integer.

    E. L. Korn and B. I. Graubard, Confidence intervals for proportions with small expected number of positive counts,
    Survey Methodology 24 (1998) 193-201.
    """
    if n <= 0:
        return Interval(0.0, 1.0)
    return exact_share(share * n, n, level) if n <= FEW or share in (0, 1) else score(share, n, quantile(level))


def wilson(passed: int, n: int, level: float = 0.95) -> Interval:
    """The score interval: E. B. Wilson, Probable inference, J. Am. Stat. Assoc. 22 (1927) 209-212."""
    _check(passed, n, level)
    return score(passed / n, n, quantile(level)) if n else Interval(0.0, 1.0)


def exact(passed: int, n: int, level: float = 0.95) -> Interval:
    """The exact interval, whose coverage is never below its level.

    C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934) 404-413.
    """
    _check(passed, n, level)
    return exact_share(passed, n, level)


def score(share: float, n: float, z: float) -> Interval:
    """Wilson's interval of a share of n values, with z standard errors to either side."""
    more = z * z / n
    middle = (share + more / 2) / (1 + more)
    half = z * sqrt(share * (1 - share) / n + more / (4 * n)) / (1 + more)
    # Rounding must not exclude the share itself.
    return Interval(max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)))


def exact_share(passed: float, n: float, level: float) -> Interval:
    """The exact interval of counts that need not be integers."""
    tail = (1 - level) / 2
    low = 0.0 if passed <= 0 else float(betaincinv(passed, n - passed + 1, tail))
    high = 1.0 if passed >= n else float(betainccinv(passed + 1, n - passed, tail))
    return Interval(low, high)


def apart(one: float, its: Interval, other: float, others: Interval, rho: float = 0.0, bound: float = 1.0) -> Interval:
    """The interval of the difference of two figures, from the interval of each and their correlation.

    The difference of two shares is at most 1. Other figures may have another bound, or none (`inf`).

    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27 (2008)
    1693-1702. With Wilson's intervals of shares this is the tenth method of Newcombe (1998).
    """

    def reach(a: float, b: float) -> float:
        return sqrt(max(0.0, a * a - 2 * rho * a * b + b * b))

    low = one - other - reach(one - its.low, others.high - other)
    high = one - other + reach(its.high - one, other - others.low)
    return Interval(max(-bound, low), min(bound, high))


def quantile(level: float) -> float:
    """The two-sided normal quantile at that level, in standard errors."""
    return NormalDist().inv_cdf((1 + level) / 2)


class Paired(NamedTuple):
    """Two yes-or-no findings on the same rows: counts of both, only the first, only the second, neither."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(self)

    @property
    def difference(self) -> float | None:
        """The rate of the first minus that of the second; None without rows."""
        return (self.first - self.second) / self.n if self.n else None

    def interval(self, level: float = 0.95, effect: float = 1.0) -> Interval:
        """The interval of the difference. `effect` is the design effect of the rows.

        Method 10 of R. G. Newcombe, Improved confidence intervals for the difference between binomial proportions based
        on paired data, Statistics in Medicine 17 (1998) 2635-2650, which combines the Wilson intervals of both rates by
        their correlation.
        """
        if self.n == 0:
            return Interval(-1.0, 1.0)
        n = self.n / effect
        one, two = (self.both + self.first) / self.n, (self.both + self.second) / self.n
        z = quantile(level)
        return apart(one, score(one, n, z), two, score(two, n, z), self._correlation(effect))

    def _correlation(self, effect: float) -> float:
        """Pearson's phi of the two, with the method's shrinkage towards 0."""
        both, first, second, neither = (count / effect for count in self)
        below = (both + first) * (second + neither) * (both + second) * (first + neither)
        if not below:
            return 0.0
        above = both * neither - first * second
        corrected = above if above < 0 else max(0.0, above - self.n / effect / 2)
        return corrected / sqrt(below)


class Twice(NamedTuple):
    """An event that can happen to each member of a pair: pairs in which it happened to both, to one, to none."""

    both: int
    one: int
    none: int

    @property
    def n(self) -> int:
        """Number of pairs."""
        return sum(self)

    @property
    def value(self) -> float | None:
        """The share of members, two per pair, to which it happened; None without pairs."""
        return (2 * self.both + self.one) / (2 * self.n) if self.n else None

    @property
    def correlation(self) -> float | None:
        """The correlation within pairs, from 0 to 1; None if it cannot be estimated.

        The intraclass correlation by analysis of variance: R. A. Fisher, Statistical Methods for Research Workers
        (1925), chapter 7.
        """
        share = self.value
        if share is None or self.n < 2 or share in (0, 1):
            return None
        between = 2 * (self.both + self.one / 4 - self.n * share * share) / (self.n - 1)
        within = self.one / (2 * self.n)
        return (between - within) / (between + within)

    def interval(self, level: float = 0.95) -> Interval:
        """The interval of the share, at the effective sample size.

        The effective sample size of n pairs is 2n / (1 + correlation): E. L. Korn and B. I. Graubard, Confidence
        intervals for proportions with small expected number of positive counts, Survey Methodology 24 (1998) 193-201.
        A negative correlation counts as 0. If the correlation cannot be estimated, it counts as 1. As for a `Rate`,
        intervals of small samples are exact, others are Wilson's.
        """
        _check(min(self), self.n, level)
        share, together = self.value, self.correlation
        if share is None or together is None:
            return exact_share((share or 0) * self.n, self.n, level)
        worth = 2 * self.n / (1 + min(1.0, max(0.0, together)))
        return exact_share(share * worth, worth, level) if self.n <= FEW else score(share, worth, quantile(level))


def _check(passed: int, n: int, level: float) -> None:
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n}: the first must be between 0 and the second")
    if not 0 < level < 1:
        raise ValueError(f"level {level}: must be between 0 and 1")
