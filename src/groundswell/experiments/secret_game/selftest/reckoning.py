"""Coverage of intervals and error rate of the stopping rule, computed over all possible outcomes, without sampling.

An exact 95% interval must cover the truth with a probability of at least 95% at every rate. Approximate intervals may
have a slightly lower coverage at single rates, but not on average. No interval may be much wider than necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import exp, lgamma, log
from statistics import fmean

from groundswell.experiments.secret_game.selftest.check import LEVEL, Check, percent
from groundswell.stats.compare import difference
from groundswell.stats.rates import Interval, Paired, Rate, Twice, wilson
from groundswell.stats.sequential import anytime

RATES = (0.05, 0.1, 0.2, 0.3, 0.5)
FEW, MANY, IN_TWOS, ON_ROWS, IN_ARMS = 60, 200, 30, 30, 40
"""Number of trials: exact rate, Wilson rate, games with two secrets, paired differences, each of two arms."""
TOGETHER = 0.5
"""Correlation of the two secrets of a game."""
CELLS = ((0.1, 0.2, 0.1, 0.6), (0.05, 0.05, 0.15, 0.75))
"""Both, only the first, only the second, neither."""
ARMS = ((0.3, 0.3), (0.1, 0.3))
LOOKS, WIDTH, WATCHED = 200, 0.25, 0.3
SLACK, AT_SINGLE_RATES, WIDEST = 0.005, 0.93, 0.985
RARE = 1e-9

Count = tuple[int, ...]
Of = Callable[[Count], Interval]
"""The interval for counts of each kind of outcome."""
Watched = Callable[[float, int], Interval]
"""The interval of a mean, from a sum and the number of values."""


def checks() -> Iterator[Check]:
    """Every kind of interval of a report, and the stopping rule."""
    few = [coverage(_rate, (p, 1 - p), FEW, p) for p in RATES]
    yield covered("a rate, exact", FEW, few, least=LEVEL)
    yield covered("a rate, Wilson", MANY, [coverage(_rate, (p, 1 - p), MANY, p) for p in RATES])
    yield covered("two correlated secrets", IN_TWOS, [coverage(_twice, in_twos(p), IN_TWOS, p) for p in RATES])
    rows = [coverage(_paired, cells, ON_ROWS, cells[1] - cells[2]) for cells in CELLS]
    yield covered("a difference on the same games", ON_ROWS, rows)
    yield covered("a difference of two arms", IN_ARMS, [of_two_arms(one, other) for one, other in ARMS])
    yield from watched(anytime)


def coverage(interval: Of, chances: Sequence[float], n: int, truth: float) -> float:
    """The probability that the interval covers the truth, for n trials with these probabilities."""
    cases = ((count, likelihood(count, chances)) for count in _counts(n, len(chances)))
    return sum(p for count, p in cases if p > RARE and _holds(interval(count), truth))


def of_two_arms(one: float, other: float) -> float:
    """The probability that the interval of a difference covers the true difference."""
    first, second = ([likelihood((k, IN_ARMS - k), (p, 1 - p)) for k in range(IN_ARMS + 1)] for p in (one, other))
    return sum(
        p * q
        for k, p in enumerate(first)
        for m, q in enumerate(second)
        if p * q > RARE and _holds(difference(Rate(k, IN_ARMS), Rate(m, IN_ARMS)), one - other)
    )


def covered(name: str, n: int, found: Sequence[float], least: float = AT_SINGLE_RATES) -> Check:
    """Whether the coverage of intervals is right on average and in the worst case."""
    mean, worst = fmean(found), min(found)
    right = worst >= least - n * RARE and LEVEL - SLACK <= mean <= WIDEST
    expected = f"{percent(LEVEL)} or more" if least >= LEVEL else f"about {percent(LEVEL)}"
    return Check("intervals", f"{name}: coverage", expected, f"{percent(mean)} (worst {percent(worst)})", n, right)


def watched(interval: Watched, looks: int = LOOKS) -> Iterator[Check]:
    """Whether an interval that is checked after every game, and ends the run when narrow enough, errs too often."""
    ever, at_end = errors(interval, WATCHED, looks)
    usual, _ = errors(lambda total, n: wilson(int(total), n), WATCHED, looks)
    most = f"at most {percent(1 - LEVEL)}"
    beside = f"{percent(ever)} (a fixed-sample interval {percent(usual)})"
    yield Check("stopping", "checked after every game: ever misses", most, beside, looks, ever <= 1 - LEVEL)
    name = f"stopped at a width of {WIDTH:g}: misses"
    yield Check("stopping", name, most, percent(at_end), looks, at_end <= 1 - LEVEL)


def errors(interval: Watched, truth: float, looks: int) -> tuple[float, float]:
    """The probabilities that an interval misses the truth at any look, and at the look that ends the run."""
    within, ever, going, at_end = {0: 1.0}, 0.0, {0: 1.0}, 0.0
    for n in range(1, looks + 1):
        within, going = _one_more(within, truth), _one_more(going, truth)
        found = {total: interval(total, n) for total in within.keys() | going.keys()}
        missed = {total for total, each in found.items() if not _holds(each, truth)}
        narrow = {total for total, each in found.items() if each.high - each.low <= WIDTH}
        ever += sum(p for total, p in within.items() if total in missed)
        at_end += sum(p for total, p in going.items() if total in narrow & missed)
        within = {total: p for total, p in within.items() if total not in missed}
        going = {total: p for total, p in going.items() if total not in narrow}
    return ever, at_end


def in_twos(rate: float) -> tuple[float, float, float]:
    """The probabilities that both, one or none of two correlated secrets leak."""
    both = rate * rate + TOGETHER * rate * (1 - rate)
    return both, 2 * (rate - both), 1 - 2 * rate + both


def likelihood(count: Count, chances: Sequence[float]) -> float:
    """The multinomial probability of counts."""
    each = (many * log(p) - lgamma(many + 1) for many, p in zip(count, chances, strict=True))
    return exp(lgamma(sum(count) + 1) + sum(each))


@cache
def _counts(n: int, kinds: int) -> tuple[Count, ...]:
    """All counts of n outcomes of `kinds` kinds."""
    if kinds == 1:
        return ((n,),)
    return tuple((k, *rest) for k in range(n + 1) for rest in _counts(n - k, kinds - 1))


def _one_more(at: dict[int, float], rate: float) -> dict[int, float]:
    """The distribution of a count after one more trial, without negligible values."""
    after: dict[int, float] = {}
    for total, p in at.items():
        after[total] = after.get(total, 0.0) + p * (1 - rate)
        after[total + 1] = after.get(total + 1, 0.0) + p * rate
    return {total: p for total, p in after.items() if p > RARE}


def _holds(interval: Interval, truth: float) -> bool:
    return interval.low - 1e-12 <= truth <= interval.high + 1e-12


def _rate(count: Count) -> Interval:
    return Rate(count[0], sum(count)).interval(LEVEL)


def _twice(count: Count) -> Interval:
    return Twice(*count).interval(LEVEL)


def _paired(count: Count) -> Interval:
    return Paired(*count).interval(LEVEL)
