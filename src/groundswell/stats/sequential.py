"""Intervals that stay valid however often you look: stop when one is narrow enough, and it still covers.

`Betting` is for a width that is chosen beforehand, `anytime` and `Running` for none. The values are between 0 and 1 (a
leak or none; the share of secrets that leaked in a block). Their mean, given the earlier values, is always the same p.

**Without a chosen width.** For any q, a value x of mean p multiplies a bet on q against p by

    (q/p)^x ((1-q)/(1-p))^(1-x)  <=  x q/p + (1-x) (1-q)/(1-p),

because a weighted geometric mean is at most the arithmetic one. The right side has mean 1. So the bet, and any mixture
of bets over q, does not grow on average, and by Ville's inequality it reaches 1/alpha with probability at most alpha.
Mixed over q by Beta(1/2, 1/2), the bets have the closed form of `anytime`, which depends only on the sum S of the
values and F = n - S: H. Robbins, Statistical methods related to the law of the iterated logarithm, Ann. Math. Stat. 41
(1970) 1397-1409. The values of p that the bet has not refuted form an interval.

**With a chosen width.** For every candidate m of the mean, one capital is bet on a mean above m and another on a mean
below. A bet of b multiplies the first by 1 + b (x - m), which has mean 1 if m is right: I. Waudby-Smith, A. Ramdas,
Estimating means of bounded random variables by betting, J. R. Stat. Soc. B 86 (2024) 1-27. If a capital reaches 2/alpha
times its start, m is refuted. Bets may be anything that depends only on earlier values, such as the variance so far.
These bets have the greatest chance to reach the goal by a deadline: S. Browne, Reaching goals by a deadline, Adv. Appl.
Probab. 31 (1999) 551-577. The deadline is the number of values after which the chosen width is expected (`expected_n`).
Bets whose capital grows fastest (Kelly's) need nearly twice as many values as a sample size fixed beforehand, because
most of their capitals end far above the goal.

Candidates lie on a grid. The lower end of the interval is the last of the candidates that are all refuted, from 0 up.
If p lies between two candidates, the bet that the mean is above the upper one does not grow on average either. So the
grid widens the interval a little, and does not make it miss.

Correlated values, such as those of conversations about the same words, violate the assumption about the mean. Use the
mean of each group of correlated values as one value.
"""

from __future__ import annotations

from math import ceil, exp, log, log1p

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, ndtri  # type: ignore[import-untyped]

from groundswell.stats.rates import Interval

PRIOR = 0.5
FARTHEST = -700.0
STEPS = 100
HALVINGS = 40
GRID = 50
"""Number of candidates in an interval of the chosen width."""
GOAL = 1.3
"""Bets aim at this multiple of the goal, since they approach what they aim at ever more slowly."""
STAKE = 0.85
"""Largest share of a capital that one bet can lose."""
KELLY = 1.2
"""Largest bet, as a multiple of the one that grows fastest. Twice as much would not grow at all."""
LEAST = 0.036
"""A capital below this share of the goal is bet as if it had this share. Larger bets would lose it soon."""
AHEAD = 0.1
"""The deadline is never nearer than this share of all values."""
WEIGHT = 2.0
"""Number of values that the variance expected beforehand counts for."""
Floats = NDArray[np.float64]


def anytime(total: float, n: float, level: float = 0.95) -> Interval:
    """The interval of the mean of n values with this total, valid at any time."""
    _check(total, n, level)
    total = min(float(total), float(n))
    room = float(betaln(PRIOR + total, PRIOR + n - total) - betaln(PRIOR, PRIOR)) + log1p(-level)
    return Interval(_below(total, n, room), 1.0 - _below(n - total, n, room))


def _below(total: float, n: float, room: float) -> float:
    """The lower root of room - total log p - (n - total) log(1 - p), by Newton's method on t = log(p / (1 - p)).

    In t it is room - total t + n log(1 + e^t), which is convex and never below its left asymptote. So Newton's method,
    started at the root of the asymptote, approaches the root from the left and never passes it.
    """
    if total <= 0:
        return 0.0
    t = max(FARTHEST, room / total)
    for _ in range(STEPS):
        share = exp(t) / (1 + exp(t)) if t < 0 else 1 / (1 + exp(-t))
        height = room - total * t + n * (log1p(exp(t)) if t < 0 else t + log1p(exp(-t)))
        slope = n * share - total
        if slope >= 0 or height <= 0:
            break
        step = -height / slope
        t += step
        if step < 1e-12 * (1 + abs(t)):
            break
    return min(1 / (1 + exp(-t)), total / n)


class Running(msgspec.Struct, frozen=True):
    """Sum and number of the values so far. `add` returns a new one."""

    total: float = 0.0
    n: int = 0
    level: float = 0.95

    def add(self, value: float) -> Running:
        """Add one value between 0 and 1."""
        _check_value(value)
        return Running(self.total + value, self.n + 1, self.level)

    @property
    def mean(self) -> float | None:
        """The mean so far; None without values."""
        return self.total / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """The interval of the mean."""
        return anytime(self.total, self.n, self.level)

    @property
    def width(self) -> float:
        """The width of the interval."""
        low, high = self.interval
        return high - low


class Betting:
    """The interval of a mean that is to become `aim` wide. It depends on the order of the values.

    `variance` is the variance expected beforehand. A wrong one costs values, not validity.
    """

    def __init__(self, aim: float, level: float = 0.95, variance: float = 0.25) -> None:
        _check_width(aim)
        _check_level(level)
        self.aim = aim
        self.level = level
        self._prior = variance
        self.n = 0.0
        """Number of values. A value of weight 0.5 counts for half."""
        self._total = self._squares = 0.0
        many = ceil(GRID / aim)
        self._means: Floats = np.arange(1, many) / many
        """The candidates that are left."""
        self._above = np.full(many - 1, log((1 - level) / 2))
        """For each candidate, the logarithm of the capital bet on a mean above it, as a share of the goal."""
        self._below = self._above.copy()
        self._low, self._high = 0.0, 1.0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Add a value between 0 and 1. The mean of an incomplete group has less weight, which must not depend on it."""
        _check_value(value)
        if not 0 < weight <= 1:
            raise ValueError(f"weight {weight}: must be above 0 and at most 1")
        variance, expected = self._variance, self._expected()
        scale = (variance * max(expected - self.n, AHEAD * max(expected, self.n))) ** 0.5
        most = KELLY * _reach(self._guess, self.aim) / variance
        gain = value - self._means
        for capital, won, risk in ((self._above, gain, self._means), (self._below, -gain, 1 - self._means)):
            bets = np.minimum(np.minimum(_bets(capital) / scale, most), STAKE / risk)
            capital += np.where(capital < 0, np.log1p(weight * bets * won), 0.0)
        self.n += weight
        self._total += weight * value
        self._squares += weight * value * value
        self._trim()

    def _trim(self) -> None:
        """Drop the candidates that are refuted, from both ends."""
        low = int(np.argmin(np.append(self._above >= 0, False)))
        high = int(np.argmin(np.append(self._below[::-1] >= 0, False)))
        end = max(low, len(self._means) - high)
        self._low = float(self._means[low - 1]) if low else self._low
        self._high = float(self._means[end]) if end < len(self._means) else self._high
        self._means, self._above, self._below = (each[low:end] for each in (self._means, self._above, self._below))

    @property
    def mean(self) -> float | None:
        """The mean so far; None without values."""
        return self._total / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """The interval of the mean."""
        mean = self._low if self.mean is None else self.mean
        return Interval(min(self._low, mean), max(self._high, mean))

    @property
    def width(self) -> float:
        """The width of the interval."""
        low, high = self.interval
        return high - low

    @property
    def more(self) -> int:
        """How many more values are expected to be needed: 0 if the interval is narrow enough, and else at least 1."""
        return 0 if self.width <= self.aim + 1e-9 else max(1, ceil(self._expected() - self.n))

    @property
    def _variance(self) -> float:
        spread = max(0.0, self._squares - self._total**2 / self.n) if self.n else 0.0
        return (spread + WEIGHT * self._prior) / (self.n + WEIGHT)

    @property
    def _guess(self) -> float:
        """The mean so far, a little nearer to 0.5."""
        return (self._total + 0.5) / (self.n + 1)

    def _expected(self) -> float:
        return _expected(self._guess, self._variance, self.aim, self.level)


def _bets(capital: Floats) -> Floats:
    """Browne's bets, if the sum of the values until the deadline has a standard deviation of 1."""
    share = np.clip(np.exp(capital) / GOAL, LEAST, 0.999)
    bets: Floats = np.exp(-(ndtri(share) ** 2) / 2) / ((2 * np.pi) ** 0.5 * share)
    return bets


def expected_n(mean: float, width: float, level: float = 0.95, variance: float | None = None) -> int:
    """About how many values `Betting` needs to become so wide. Without a variance, the values are 0 and 1."""
    if not 0 <= mean <= 1:
        raise ValueError(f"mean {mean}: must be between 0 and 1")
    _check_width(width)
    _check_level(level)
    return ceil(_expected(mean, mean * (1 - mean) if variance is None else variance, width, level))


def expected_width(mean: float, n: float, level: float = 0.95, variance: float | None = None) -> float:
    """About how wide `Betting` becomes with n values, if it aims at that width."""
    wide, narrow = 1.0, 0.0
    for _ in range(HALVINGS):
        middle = (wide + narrow) / 2
        wide, narrow = (middle, narrow) if expected_n(mean, middle, level, variance) <= n else (wide, middle)
    return wide


def _expected(mean: float, variance: float, width: float, level: float) -> float:
    """The sample size of a normal interval, plus the number of values needed if all are 0 (bench/stopping.py)."""
    z = float(ndtri((1 + level) / 2))
    if_none = log(2 / (1 - level)) / log1p(STAKE * width / max(1e-9, 1 - width))
    return z * z * variance / _reach(mean, width) ** 2 + if_none


def _reach(mean: float, width: float) -> float:
    """How far the farther end of the interval is from the mean. An end that is 0 or 1 is nearer."""
    return max(width / 2, width - min(mean, 1 - mean))


def _check_width(width: float) -> None:
    if not 0 < width <= 1:
        raise ValueError(f"width {width}: must be above 0 and at most 1")


def _check(total: float, n: float, level: float) -> None:
    # Sums of fractions have rounding errors.
    if not 0 <= total <= n + 1e-9 * n:
        raise ValueError(f"total {total} of {n} values: must be between 0 and {n}")
    _check_level(level)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level {level}: must be between 0 and 1")


def _check_value(value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"value {value}: must be between 0 and 1")
