"""Coverage of intervals, computed over all possible outcomes, and error rate of the stopping rule, in simulated runs.

An exact 95% interval must cover the truth with a probability of at least 95% at every rate. Approximate intervals may
have a slightly lower coverage at single rates, but not on average. No interval may be much wider than necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import exp, lgamma, log
from random import Random
from statistics import fmean

from groundswell.experiments.checks import LEVEL, Check, percent
from groundswell.stats.compare import difference
from groundswell.stats.rates import Interval, Paired, Rate, Twice, wilson
from groundswell.stats.sequential import Betting

RATES = (0.05, 0.1, 0.2, 0.3, 0.5)
FEW, MANY, IN_TWOS, ON_ROWS, IN_ARMS = 60, 200, 30, 30, 40
"""Number of trials: exact rate, Wilson rate, games with two secrets, paired differences, each of two arms."""
TOGETHER = 0.5
"""Correlation of the two secrets of a game."""
CELLS = ((0.1, 0.2, 0.1, 0.6), (0.05, 0.05, 0.15, 0.75))
"""Both, only the first, only the second, neither."""
ARMS = ((0.3, 0.3), (0.1, 0.3))
RUNS, BLOCKS, BLOCK, WIDTH, WATCHED = 400, 50, 4, 0.25, 0.3
"""The stopping rule: simulated runs, blocks of games per run, games per block, its width, and the true rate."""
WORDS = (2.0, 14 / 3)
"""The leak rates of words have this beta distribution, with the mean WATCHED."""
SLACK, AT_SINGLE_RATES, WIDEST = 0.005, 0.93, 0.985
RARE = 1e-9

Count = tuple[int, ...]
Of = Callable[[Count], Interval]
"""The interval for counts of each kind of outcome."""
Watched = Callable[[Sequence[float]], Iterator[Interval]]
"""The intervals of a mean after each value."""


def checks() -> Iterator[Check]:
    """Every kind of interval of a report, and the stopping rule."""
    few = [coverage(_rate, (p, 1 - p), FEW, p) for p in RATES]
    yield covered("a rate, exact", FEW, few, least=LEVEL)
    yield covered("a rate, Wilson", MANY, [coverage(_rate, (p, 1 - p), MANY, p) for p in RATES])
    yield covered("two correlated secrets", IN_TWOS, [coverage(_twice, in_twos(p), IN_TWOS, p) for p in RATES])
    rows = [coverage(_paired, cells, ON_ROWS, cells[1] - cells[2]) for cells in CELLS]
    yield covered("a difference on the same games", ON_ROWS, rows)
    yield covered("a difference of two arms", IN_ARMS, [of_two_arms(one, other) for one, other in ARMS])
    yield from watched(betting)


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


def watched(intervals: Watched, runs: int = RUNS) -> Iterator[Check]:
    """Whether an interval that is checked after every block, and ends the run when narrow enough, errs too often."""
    ever, at_end = errors(intervals, runs)
    usual, _ = errors(fixed_sample, runs)
    most = f"at most {percent(1 - LEVEL)}"
    beside = f"{percent(ever)} (a fixed-sample interval {percent(usual)})"
    yield Check("stopping", "checked after every block: ever misses", most, beside, runs, ever <= 1 - LEVEL)
    name = f"stopped at a width of {WIDTH:g}: misses"
    yield Check("stopping", name, most, percent(at_end), runs, at_end <= 1 - LEVEL)


def errors(intervals: Watched, runs: int) -> tuple[float, float]:
    """The shares of runs in which an interval misses the truth at any look, and at the look that ends the run."""
    ever = at_end = 0
    for run in range(runs):
        found = list(intervals(block_means(Random(run))))
        missed = [not _holds(each, WATCHED) for each in found]
        ends = next((at for at, each in enumerate(found) if each.high - each.low <= WIDTH + 1e-9), -1)
        ever += any(missed)
        at_end += missed[ends]
    return ever / runs, at_end / runs


def block_means(random: Random) -> list[float]:
    """The share of leaks in each block of a run. The games of a block share their word."""
    rates = (random.betavariate(*WORDS) for _ in range(BLOCKS))
    return [sum(random.random() < rate for _ in range(BLOCK)) / BLOCK for rate in rates]


def betting(values: Sequence[float]) -> Iterator[Interval]:
    """The intervals of the stopping rule."""
    running = Betting(WIDTH, LEVEL, variance=0.25 / BLOCK)
    for value in values:
        running.add(value)
        yield running.interval


def fixed_sample(values: Sequence[float]) -> Iterator[Interval]:
    """Wilson's interval after every block, as if the number of blocks had been fixed."""
    leaked = 0
    for n, value in enumerate(values, 1):
        leaked += round(BLOCK * value)
        yield wilson(leaked, BLOCK * n)


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


def _holds(interval: Interval, truth: float) -> bool:
    return interval.low - 1e-12 <= truth <= interval.high + 1e-12


def _rate(count: Count) -> Interval:
    return Rate(count[0], sum(count)).interval(LEVEL)


def _twice(count: Count) -> Interval:
    return Twice(*count).interval(LEVEL)


def _paired(count: Count) -> Interval:
    return Paired(*count).interval(LEVEL)
