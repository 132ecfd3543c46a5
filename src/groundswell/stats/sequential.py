"""An interval that may be looked at after every trial: stop when it is narrow enough, and it still covers.

The values are between 0 and 1 (a leak or none; the share of the two secrets that leaked) and their mean, given what
came before, is always the same p. For any q, a value x of mean p multiplies a bet on q against p by

    (q/p)^x ((1-q)/(1-p))^(1-x)  <=  x q/p + (1-x) (1-q)/(1-p),

the weighted geometric mean being at most the arithmetic one, and the right side is 1 in the mean. So the bet, and any
mixture of bets over q, grows on average not at all, and by Ville's inequality it ever reaches 1/alpha with probability
alpha at most. Mixed over q by Beta(1/2, 1/2), the bets have the closed form below, in the sum S of the values and
F = n - S alone: H. Robbins, Statistical methods related to the law of the iterated logarithm, Ann. Math. Stat. 41
(1970) 1397-1409. The p that the bet has not refuted by now are an interval.

Values that hang together, such as those of talks about the same words, do not have that mean given what came before.
Divided by their design effect, sum and number are those of about as many values that do.

Values that vary less than yes or no, such as shares of two secrets that leak apart, are covered more often than said.

Who knows beforehand how narrow the interval is to be bets better: on q = p + aim/2 against every p below the mean, and
on q = p - aim/2 against every p above it, each at half of alpha. These bets grow fastest just where an interval of that
width has its ends, so that about half as many values do: A. Wald, Sequential tests of statistical hypotheses, Ann.
Math. Stat. 16 (1945) 117-186. `aim` says that; such an interval never gets much narrower than half of it.

The intersection of all intervals so far would be valid too and a little narrower. It is not taken: this interval
follows from sum and number alone, whatever the order, and always holds the mean.
"""

from __future__ import annotations

from math import ceil, exp, inf, log, log1p

import msgspec
from scipy.special import betaln  # type: ignore[import-untyped]

from groundswell.stats.rates import Interval

PRIOR = 0.5
FARTHEST = -700.0
STEPS = 100
HALVINGS = 40
MOST = 10**12


def anytime(total: float, n: float, level: float = 0.95, aim: float | None = None) -> Interval:
    """Where the mean of n values with this total lies, whenever one looks; narrowest at the width that is aimed at."""
    _check(total, n, level)
    total = min(float(total), float(n))
    if aim is not None:
        _check_width(aim)
        room = log(2 / (1 - level))
        return Interval(_refuted(total, n, room, aim / 2), 1.0 - _refuted(n - total, n, room, aim / 2))
    room = float(betaln(PRIOR + total, PRIOR + n - total) - betaln(PRIOR, PRIOR)) + log1p(-level)
    return Interval(_below(total, n, room), 1.0 - _below(n - total, n, room))


def _below(total: float, n: float, room: float) -> float:
    """The lower root of room - total log p - (n - total) log(1 - p), by Newton on t = log(p / (1 - p)).

    In t it is room - total t + n log(1 + e^t): convex, and never under its left asymptote, so that Newton from where
    the asymptote is 0 goes up to the root and never past it.
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


def _refuted(total: float, n: float, room: float, ahead: float) -> float:
    """Up to where bets on what lies so far ahead have won: the more, the lower the mean that they were against."""
    if total <= 0:
        return 0.0
    low, high = 0.0, total / n
    for _ in range(HALVINGS):
        p = (low + high) / 2
        low, high = (p, high) if p <= 0 or _won(total, n - total, p, min(1.0, p + ahead)) >= room else (low, p)
    return low


def _won(total: float, rest: float, p: float, q: float) -> float:
    """The logarithm of what a bet on q against p has become."""
    if rest <= 0:
        return total * log(q / p)
    return total * log(q / p) + rest * (log1p(-q) - log1p(-p)) if q < 1 else -inf


class Running(msgspec.Struct, frozen=True):
    """What came so far. Adding gives a new one."""

    total: float = 0.0
    n: int = 0
    level: float = 0.95
    aim: float | None = None

    def add(self, value: float) -> Running:
        """With one more value between 0 and 1."""
        if not 0 <= value <= 1:
            raise ValueError(f"value {value}: must be between 0 and 1")
        return Running(self.total + value, self.n + 1, self.level, self.aim)

    @property
    def mean(self) -> float | None:
        """The mean so far; None of nothing."""
        return self.total / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """Where the mean lies."""
        return anytime(self.total, self.n, self.level, self.aim)

    @property
    def width(self) -> float:
        """How wide the interval is."""
        low, high = self.interval
        return high - low


def expected_n(rate: float, width: float, level: float = 0.95) -> int:
    """About how many values it takes until an interval that aims at this width has it."""
    if not 0 <= rate <= 1:
        raise ValueError(f"rate {rate}: must be between 0 and 1")
    _check_width(width)
    few, enough = 0, 1
    while Running(rate * enough, enough, level, width).width > width:
        if enough > MOST:
            raise ValueError(f"width {width}: so narrow takes more than {MOST:,} values")
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = ceil((few + enough) / 2)
        narrow = Running(rate * middle, middle, level, width).width <= width
        few, enough = (few, middle) if narrow else (middle, enough)
    return enough


def _check_width(width: float) -> None:
    if not 0 < width <= 1:
        raise ValueError(f"width {width}: must be above 0 and at most 1")


def _check(total: float, n: float, level: float) -> None:
    # Sums of fractions are off by rounding.
    if not 0 <= total <= n + 1e-9 * n:
        raise ValueError(f"total {total} of {n} values: must be between 0 and {n}")
    if not 0 < level < 1:
        raise ValueError(f"level {level}: must be between 0 and 1")
