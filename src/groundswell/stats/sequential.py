"""An interval that stays valid however often you look: stop when it is narrow enough, and it still covers.

The values are between 0 and 1 (a leak or none; the share of the two secrets that leaked) and their mean, given the
earlier values, is always the same p. For any q, a value x of mean p multiplies a bet on q against p by

    (q/p)^x ((1-q)/(1-p))^(1-x)  <=  x q/p + (1-x) (1-q)/(1-p),

because a weighted geometric mean is at most the arithmetic one. The right side has mean 1. So the bet, and any mixture
of bets over q, does not grow on average, and by Ville's inequality it reaches 1/alpha with probability at most alpha.
Mixed over q by Beta(1/2, 1/2), the bets have the closed form below, which depends only on the sum S of the values and
F = n - S: H. Robbins, Statistical methods related to the law of the iterated logarithm, Ann. Math. Stat. 41 (1970)
1397-1409. The values of p that the bet has not refuted form an interval.

Correlated values, such as those of conversations about the same words, violate the assumption about the mean. Dividing
sum and number by the design effect gives about the equivalent number of independent values.

Values that vary less than yes or no, such as the share of two secrets that leak independently, are covered more often
than the level states.

If the width is fixed beforehand (`aim`), other bets are better: on q = p + aim/2 against every p below the mean, and on
q = p - aim/2 against every p above it, each at half of alpha. These bets grow fastest at the ends of an interval of
that width, so about half as many values are needed: A. Wald, Sequential tests of statistical hypotheses, Ann. Math.
Stat. 16 (1945) 117-186. Such an interval never gets much narrower than half of `aim`.

The intersection of all intervals so far would also be valid and a little narrower. It is not used: this interval
depends only on sum and number, whatever the order, and always contains the mean.
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
    """The interval of the mean of n values with this total, valid at any time. It is narrowest at the width `aim`."""
    _check(total, n, level)
    total = min(float(total), float(n))
    if aim is not None:
        _check_width(aim)
        room = log(2 / (1 - level))
        return Interval(_refuted(total, n, room, aim / 2), 1.0 - _refuted(n - total, n, room, aim / 2))
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


def _refuted(total: float, n: float, room: float, ahead: float) -> float:
    """The largest mean that bets on a value `ahead` above it have refuted. Lower means are refuted more strongly."""
    if total <= 0:
        return 0.0
    low, high = 0.0, total / n
    for _ in range(HALVINGS):
        p = (low + high) / 2
        low, high = (p, high) if p <= 0 or _won(total, n - total, p, min(1.0, p + ahead)) >= room else (low, p)
    return low


def _won(total: float, rest: float, p: float, q: float) -> float:
    """The logarithm of the value of a bet on q against p."""
    if rest <= 0:
        return total * log(q / p)
    return total * log(q / p) + rest * (log1p(-q) - log1p(-p)) if q < 1 else -inf


class Running(msgspec.Struct, frozen=True):
    """Sum and number of the values so far. `add` returns a new one."""

    total: float = 0.0
    n: int = 0
    level: float = 0.95
    aim: float | None = None

    def add(self, value: float) -> Running:
        """Add one value between 0 and 1."""
        if not 0 <= value <= 1:
            raise ValueError(f"value {value}: must be between 0 and 1")
        return Running(self.total + value, self.n + 1, self.level, self.aim)

    @property
    def mean(self) -> float | None:
        """The mean so far; None without values."""
        return self.total / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """The interval of the mean."""
        return anytime(self.total, self.n, self.level, self.aim)

    @property
    def width(self) -> float:
        """The width of the interval."""
        low, high = self.interval
        return high - low


def expected_n(rate: float, width: float, level: float = 0.95) -> int:
    """The expected number of values until an interval that aims at this width reaches it."""
    if not 0 <= rate <= 1:
        raise ValueError(f"rate {rate}: must be between 0 and 1")
    _check_width(width)
    few, enough = 0, 1
    while Running(rate * enough, enough, level, width).width > width:
        if enough > MOST:
            raise ValueError(
                f"width {width}: an interval this narrow needs more than {MOST:,} values; choose a larger width"
            )
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
    # Sums of fractions have rounding errors.
    if not 0 <= total <= n + 1e-9 * n:
        raise ValueError(f"total {total} of {n} values: must be between 0 and {n}")
    if not 0 < level < 1:
        raise ValueError(f"level {level}: must be between 0 and 1")
