"""Intervals that may be looked at after every value: they cover at all times at once, and Wilson's does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]

from groundswell.stats.rates import Interval, wilson
from groundswell.stats.sequential import PRIOR, Betting, Running, anytime, expected_n, expected_width

PATHS, LENGTH = 2000, 2000
Floats = NDArray[np.float64]
Look = Callable[[float, int], Interval]
SUMS = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.floats(0, 1).map(lambda share: share * n), st.just(n)))


def allowed(look: Look, p: float, length: int, grain: float) -> tuple[Floats, Floats]:
    """For each number of values, the least and the greatest total (in grains) whose interval holds p."""
    least, most = np.zeros(length), np.zeros(length)
    low, high = 0.0, 0.0
    for n in range(1, length + 1):
        while low < n and look(low, n).high < p:
            low += grain
        high = max(high, low)
        while high + grain <= n and look(high + grain, n).low <= p:
            high += grain
        least[n - 1], most[n - 1] = low, high
    return least, most


def ever_wrong(look: Look, values: Floats, p: float, grain: float = 1.0) -> float:
    """The share of paths (rows) on which p is outside at some time: who stops just then is always wrong."""
    totals = values.cumsum(axis=1)
    least, most = allowed(look, p, values.shape[1], grain)
    return float(((totals < least - grain / 4) | (totals > most + grain / 4)).any(axis=1).mean())


def coins(p: float, seed: int = 1) -> Floats:
    return (np.random.default_rng(seed).random((PATHS, LENGTH)) < p).astype(float)


def pair_means(p: float, together: float, seed: int = 2) -> Floats:
    """Half of how many of two leaked; that often the two do the same, and else each does as it likes."""
    random = np.random.default_rng(seed)
    first, other = (random.random((PATHS, LENGTH)) < p for _ in range(2))
    second = np.where(random.random((PATHS, LENGTH)) < together, first, other)
    return (first.astype(float) + second) / 2


@pytest.mark.sampled
@pytest.mark.parametrize("p", [0.02, 0.2, 0.5, 0.9])
def test_whoever_stops_whenever_is_wrong_once_in_twenty_at_the_most(p: float) -> None:
    wrong = ever_wrong(anytime, coins(p), p)
    assert wrong <= 0.05
    assert wrong > 0, "an interval that is never wrong is too wide"


@pytest.mark.sampled
@pytest.mark.parametrize("together", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_it_holds_for_the_means_of_pairs_however_they_hang_together(p: float, together: float) -> None:
    assert ever_wrong(anytime, pair_means(p, together), p, grain=0.5) <= 0.05


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_wilsons_interval_is_wrong_far_more_often_if_it_is_looked_at_every_time(p: float) -> None:
    assert ever_wrong(lambda total, n: wilson(int(total), n), coins(p), p) > 0.3


def test_another_level_is_kept_too() -> None:
    look = partial(anytime, level=0.8)
    wrong = ever_wrong(look, coins(0.4), 0.4)
    assert ever_wrong(anytime, coins(0.4), 0.4) < wrong <= 0.2


@given(SUMS, st.floats(0.001, 0.999), st.sampled_from([0.8, 0.95, 0.99]))
def test_it_holds_what_the_bet_has_not_refuted(sums: tuple[float, int], p: float, level: float) -> None:
    total, n = sums
    low, high = anytime(total, n, level)
    bet = special.betaln(PRIOR + total, PRIOR + n - total) - special.betaln(PRIOR, PRIOR)
    bet -= special.xlogy(total, p) + special.xlog1py(n - total, -p)
    room = float(np.log(1 / (1 - level)) - bet)
    if abs(room) > 1e-6:
        assert (low < p < high) == (room > 0)


@given(SUMS, st.sampled_from([0.8, 0.95, 0.99]))
def test_it_holds_the_mean_and_is_mirrored(sums: tuple[float, int], level: float) -> None:
    total, n = sums
    low, high = anytime(total, n, level)
    assert 0 <= low <= total / n <= high <= 1
    assert anytime(n - total, n, level) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    wider = anytime(total, n, 0.995)
    assert wider.low <= low
    assert high <= wider.high
    more = anytime(2 * total, 2 * n, level)
    assert more.high - more.low < high - low


@given(st.integers(1, 3000), st.floats(0, 1), st.floats(0, 1))
def test_a_greater_total_moves_it_up(n: int, one: float, other: float) -> None:
    less, more = anytime(min(one, other) * n, n), anytime(max(one, other) * n, n)
    assert less.low <= more.low + 1e-12
    assert less.high <= more.high + 1e-12


@pytest.mark.parametrize(
    ("total", "n"),
    [(0, 10**9), (10**9, 10**9), (5e8, 10**9), (3, 10**9), (1e-300, 10), (1e-12, 10**6), (0.3, 1), (10 - 1e-15, 10)],
)
def test_it_is_an_interval_at_the_edges_too(total: float, n: int) -> None:
    low, high = anytime(total, n)
    assert 0 <= low <= total / n <= high <= 1
    assert high - low < 1


def test_it_is_wider_than_an_interval_for_one_look_but_not_by_much() -> None:
    for k, n in ((10, 100), (300, 1000), (5000, 10000)):
        once, always = wilson(k, n), anytime(k, n)
        assert always.low < once.low < once.high < always.high
        assert always.high - always.low < 2.5 * (once.high - once.low)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=60))
def test_what_runs_is_what_its_sum_says(values: list[float]) -> None:
    running = Running()
    for value in values:
        before, running = running, running.add(value)
        assert before.n == running.n - 1
    assert running.interval == anytime(sum(values), len(values))
    assert running.width == running.interval.high - running.interval.low
    assert running.mean == (sum(values) / len(values) if values else None)


def test_sums_of_fractions_may_be_off_by_rounding() -> None:
    running = Running()
    for _ in range(1000):
        running = running.add(1 - 2**-53)
    assert running.interval.high == 1
    assert anytime(3 + 1e-12, 3).high == 1


def bet(values: Iterable[float], aim: float, variance: float = 0.25) -> Betting:
    """Bets on values until the interval is narrow enough."""
    betting = Betting(aim, variance=variance)
    for value in values:
        if not betting.more:
            break
        betting.add(value)
    return betting


def block_means(random: np.random.Generator, p: float, easy: bool) -> Floats:
    """Means of blocks of four: independent, or all four leak or none, since some words always leak."""
    means: Floats = (random.random((400, 1 if easy else 4)) < p).mean(axis=1)
    return means


@pytest.mark.slow
@pytest.mark.parametrize("easy", [False, True], ids=["independent", "words that always leak"])
@pytest.mark.parametrize("p", [0.02, 0.1, 0.22, 0.5])
def test_bets_on_blocks_are_wrong_once_in_twenty_at_the_most_when_they_stop(p: float, easy: bool) -> None:
    random = np.random.default_rng(11)
    found = [bet(block_means(random, p, easy), 0.2, 0.0625) for _ in range(200)]
    assert sum(each.more > 0 for each in found) <= 4
    # If 5% are wrong, more than 18 of 200 are with a probability of 0.2%.
    assert sum(not each.interval.low <= p <= each.interval.high for each in found) <= 18


@given(
    st.lists(st.floats(0, 1), max_size=30),
    st.floats(0, 1),
    st.floats(0.01, 1),
    st.sampled_from([0.1, 0.3, 1.0]),
    st.floats(0.001, 0.25),
)
def test_no_capital_grows_on_average_if_its_candidate_is_right(
    values: list[float], low: float, weight: float, aim: float, variance: float
) -> None:
    """For every candidate m, a value is `low m` or `1 - low (1 - m)`, with the mean m."""
    at_all = Betting(aim, variance=variance)
    for value in values:
        at_all.add(value)
    means = at_all._means
    for mean in means[:: max(1, len(means) // 5)]:
        chances = ((low * mean, 1 - mean), (1 - low * (1 - mean), mean))
        expected = sum(x * chance for x, chance in chances)
        after = [(added(at_all, float(x), weight, float(mean)), chance) for x, chance in chances]
        before = capitals(at_all, float(mean))
        for side in (0, 1):
            bets = [found[side] / before[side] for found, _ in after]
            grown = sum(each * chance for each, (_, chance) in zip(bets, after, strict=True))
            slope = (bets[1] - bets[0]) / (chances[1][0] - chances[0][0]) if chances[1][0] > chances[0][0] else 0.0
            assert grown + slope * (mean - expected) == pytest.approx(1, abs=1e-6)


def capitals(betting: Betting, mean: float) -> tuple[float, float]:
    at = int(np.argmin(np.abs(betting._means - mean)))
    return float(np.exp(betting._above[at])), float(np.exp(betting._below[at]))


def added(betting: Betting, value: float, weight: float, mean: float) -> tuple[float, float]:
    """The capitals after one more value, without dropping candidates."""
    other = copy(betting)
    other._above, other._below = betting._above.copy(), betting._below.copy()
    other._trim = lambda: None  # type: ignore[method-assign]
    other.add(value, weight)
    return capitals(other, mean)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.sampled_from([0.1, 0.3]))
def test_bets_hold_the_mean_are_mirrored_and_never_forget(values: list[float], aim: float) -> None:
    betting, mirrored, before = Betting(aim), Betting(aim), Interval(0.0, 1.0)
    for value in values:
        betting.add(value)
        mirrored.add(1 - value)
        low, high = betting.interval
        assert betting.mean is not None
        assert 0 <= low <= betting.mean <= high <= 1
        assert mirrored.interval == pytest.approx((1 - high, 1 - low), abs=1.01 * aim / 50)
        assert betting._low >= before.low
        assert betting._high <= before.high
        before = Interval(betting._low, betting._high)
        assert (betting.more == 0) == (betting.width <= aim + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.parametrize(("group", "aim"), [(1, 0.2), (4, 0.2), (4, 0.1)])
def test_bets_need_about_as_many_values_as_expected(rate: float, group: int, aim: float) -> None:
    random, variance = np.random.default_rng(5), rate * (1 - rate) / group
    runs = [(random.random((600, group)) < rate).mean(axis=1) for _ in range(40)]
    found = [bet(values, aim, 0.25 / group).n for values in runs]
    assert sum(found) / 40 == pytest.approx(expected_n(rate, aim, variance=variance), rel=0.4 if group == 1 else 0.2)


def test_bets_need_far_fewer_values_than_the_mixture() -> None:
    leaks, betting, mixture = Random(5), Betting(0.2), Running()
    while betting.more:
        value = float(leaks.random() < 0.5)
        betting.add(value)
        mixture = mixture.add(value)
    assert mixture.width > 0.25


def test_if_nothing_leaks_the_first_number_expected_is_enough() -> None:
    for aim in (0.05, 0.2, 0.5):
        betting, n = Betting(aim, variance=0.0625), expected_n(0.0, aim, variance=0.0)
        for _ in range(n):
            betting.add(0.0)
        assert betting.width <= 1.05 * aim


@given(st.floats(0, 1), st.integers(20, 5000), st.floats(0.0001, 0.25))
def test_the_expected_width_is_the_one_that_needs_so_many(mean: float, n: int, variance: float) -> None:
    width = expected_width(mean, n, variance=variance)
    enough, too_narrow = (expected_n(mean, each, variance=variance) for each in (width, 0.95 * width))
    assert width == 1 or enough <= n < too_narrow


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: anytime(-1, 3),
        lambda: anytime(4, 3),
        lambda: anytime(float("nan"), 3),
        lambda: anytime(1, 3, 1.0),
        lambda: Running().add(1.5),
        lambda: Running().add(float("nan")),
        lambda: expected_n(1.2, 0.1),
        lambda: expected_n(0.2, 0),
        lambda: Betting(0),
        lambda: Betting(0.1, 1.0),
        lambda: Betting(0.1).add(-0.1),
        lambda: Betting(0.1).add(0.5, 0),
    ],
)
def test_nonsense_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        wrong()
