"""How often intervals cover: summed over all that can come out, and in simulations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats  # type: ignore[import-untyped]

from groundswell.stats.rates import FEW, Interval, Rate, Twice, exact, wilson

Floats = NDArray[np.float64]
RATES = (0.02, 0.1, 0.3, 0.5)


@cache
def intervals(make: Callable[[int, int], Interval], n: int) -> list[Interval]:
    return [make(k, n) for k in range(n + 1)]


def covering(make: Callable[[int, int], Interval], n: int, p: float) -> NDArray[np.bool_]:
    """Whether the interval of each count holds p."""
    return np.array([low <= p <= high for low, high in intervals(make, n)])


def coverage(make: Callable[[int, int], Interval], n: int, p: float) -> float:
    return float(stats.binom.pmf(np.arange(n + 1), n, p)[covering(make, n, p)].sum())


def rate(k: int, n: int) -> Interval:
    return Rate(k, n).interval()


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("make", [wilson, exact, rate])
@pytest.mark.parametrize(("n", "p"), [(n, p) for n in (10, 60, 250) for p in RATES])
def test_a_simulation_covers_as_often_as_the_sum_says(make: Callable[[int, int], Interval], n: int, p: float) -> None:
    draws = 20_000
    counts = np.random.default_rng(n).binomial(n, p, draws)
    seen, said = float(covering(make, n, p)[counts].mean()), coverage(make, n, p)
    assert abs(seen - said) <= 4 * np.sqrt(said * (1 - said) / draws) + 1e-9


@pytest.mark.parametrize("n", [1, 7, 33, 100, 101, 300])
def test_rates_cover_as_often_as_they_say(n: int) -> None:
    """Exact intervals always; those of many on average over rates, about, and never below 90%, even at one in 200."""
    grid = np.linspace(0.005, 0.995, 60)
    found = [coverage(rate, n, p) for p in grid]
    assert min(found) >= (0.95 - 1e-9 if n <= FEW else 0.90)
    assert np.mean(found) >= 0.945


def test_wilsons_is_narrower_than_the_exact_one_and_covers_about_as_said() -> None:
    """And the plain normal interval does not, which is why none is used."""

    def plain(k: int, n: int) -> Interval:
        off = 1.96 * float(np.sqrt(k / n * (1 - k / n) / n))
        return Interval(k / n - off, k / n + off)

    grid = np.linspace(0.01, 0.99, 50)
    average = {make: float(np.mean([coverage(make, 40, p) for p in grid])) for make in (wilson, exact, plain)}
    assert abs(average[wilson] - 0.95) < 0.005
    assert average[exact] > 0.96
    assert average[plain] < 0.93


def pairs(n: int, p: float, rho: float) -> tuple[list[Twice], Floats]:
    """All that can come out of n pairs, with how likely it is."""
    both = p * p + rho * p * (1 - p)
    shares = np.maximum(0, [both, 2 * (p - both), 1 - 2 * p + both])
    found = [Twice(b, o, n - b - o) for b in range(n + 1) for o in range(n + 1 - b)]
    counts = np.array(found)
    logs = special.gammaln(n + 1) - special.gammaln(counts + 1).sum(axis=1) + special.xlogy(counts, shares).sum(axis=1)
    likely: Floats = np.exp(logs)
    return found, likely


@pytest.mark.sampled
@pytest.mark.parametrize("n", [8, 40])
def test_few_pairs_cover_at_least_as_often_as_they_say_however_they_hang_together(n: int) -> None:
    made = {twice: twice.interval() for twice in pairs(n, 0.5, 0)[0]}
    for p in (0.03, 0.2, 0.5):
        for rho in (0.0, 0.4, 1.0):
            found, likely = pairs(n, p, rho)
            covered = np.array([made[twice].low <= p <= made[twice].high for twice in found])
            assert float(likely[covered].sum()) >= 0.95, (p, rho)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("p", [0.05, 0.3])
def test_many_pairs_cover_as_often_as_they_say_and_wilsons_of_single_ones_does_not(p: float, rho: float) -> None:
    n, draws = 400, 1500
    both = p * p + rho * p * (1 - p)
    drawn = np.random.default_rng(3).multinomial(n, [both, 2 * (p - both), 1 - 2 * p + both], draws)
    found = [Twice(*map(int, counts)) for counts in drawn]
    ours = np.mean([low <= p <= high for low, high in (each.interval() for each in found)])
    single = np.mean([low <= p <= high for low, high in (wilson(2 * e.both + e.one, 2 * n) for e in found)])
    error = np.sqrt(0.95 * 0.05 / draws)
    assert ours >= 0.945 - 4 * error
    if rho >= 0.3:
        assert single < 0.95 - 4 * error
