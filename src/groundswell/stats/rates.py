"""Rates of things that happened or did not, with confidence intervals; and the difference of two on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import NamedTuple

FEW = 100
"""Up to so many, an interval is exact. Above, Wilson's is as good and not too wide."""
HALVINGS = 60

_Below = Callable[[float], bool]


class Interval(NamedTuple):
    """Where a figure lies, as far as the data can tell."""

    low: float
    high: float


class Rate(NamedTuple):
    """So many of n passed."""

    passed: int
    n: int

    @property
    def value(self) -> float | None:
        """The share that passed; None of nothing."""
        return self.passed / self.n if self.n else None

    def interval(self, level: float = 0.95) -> Interval:
        """A confidence interval: exact for few, and where none or all passed; Wilson's otherwise."""
        if self.n <= FEW or self.passed in (0, self.n):
            return exact(self.passed, self.n, level)
        return wilson(self.passed, self.n, level)


def wilson(passed: int, n: int, level: float = 0.95) -> Interval:
    """The score interval: E. B. Wilson, Probable inference, J. Am. Stat. Assoc. 22 (1927) 209-212."""
    _check(passed, n, level)
    if n == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, more = passed / n, z * z / n
    middle = (share + more / 2) / (1 + more)
    half = z * sqrt(share * (1 - share) / n + more / (4 * n)) / (1 + more)
    return Interval(max(0.0, middle - half) if passed else 0.0, min(1.0, middle + half) if passed < n else 1.0)


def exact(passed: int, n: int, level: float = 0.95) -> Interval:
    """The interval that covers at least as often as it says.

    C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934) 404-413.
    """
    _check(passed, n, level)
    tail = (1 - level) / 2
    low = 0.0 if passed == 0 else _bisected(lambda p: _at_least(passed, n, p) < tail)
    high = 1.0 if passed == n else 1.0 - _bisected(lambda p: _at_least(n - passed, n, p) < tail)
    return Interval(low, high)


def _bisected(below: _Below) -> float:
    """The probability up to which something holds."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def _at_least(k: int, n: int, p: float) -> float:
    """The probability that k or more of n happen, each with probability p strictly between 0 and 1."""
    if not 0 < p < 1:
        return float(p >= 1)
    yes, no = log(p), log1p(-p)
    whole = lgamma(n + 1)
    return sum(exp(whole - lgamma(i + 1) - lgamma(n - i + 1) + i * yes + (n - i) * no) for i in range(k, n + 1))


class Paired(NamedTuple):
    """Two yes-or-no findings on the same rows: how often both, only the first, only the second, neither."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def n(self) -> int:
        """How many rows."""
        return sum(self)

    @property
    def difference(self) -> float | None:
        """The rate of the first less that of the second; None of nothing."""
        return (self.first - self.second) / self.n if self.n else None

    def interval(self, level: float = 0.95) -> Interval:
        """Where the difference lies.

        The tenth method of R. G. Newcombe, Improved confidence intervals for the difference between binomial
        proportions based on paired data, Statistics in Medicine 17 (1998) 2635-2650: Wilson's intervals of both
        rates, put together by how the two findings hang together.
        """
        if self.n == 0:
            return Interval(-1.0, 1.0)
        n = self.n
        one, two = self.both + self.first, self.both + self.second
        a, b = wilson(one, n, level), wilson(two, n, level)
        down_a, up_a = one / n - a.low, a.high - one / n
        down_b, up_b = two / n - b.low, b.high - two / n
        phi, middle = self._correlation(), (one - two) / n
        low = middle - sqrt(max(0.0, down_a**2 - 2 * phi * down_a * up_b + up_b**2))
        high = middle + sqrt(max(0.0, down_b**2 - 2 * phi * down_b * up_a + up_a**2))
        return Interval(max(-1.0, low), min(1.0, high))

    def _correlation(self) -> float:
        """Pearson's phi of the two, drawn towards 0 as the method has it."""
        both, first, second, neither = self
        below = (both + first) * (second + neither) * (both + second) * (first + neither)
        if not below:
            return 0.0
        above = both * neither - first * second
        corrected = above if above < 0 else max(0.0, above - self.n / 2)
        return corrected / sqrt(below)


def _check(passed: int, n: int, level: float) -> None:
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n}: no more can pass than there are")
    if not 0 < level < 1:
        raise ValueError(f"level {level}: must be between 0 and 1")
