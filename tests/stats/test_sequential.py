"""Intervals that may be looked at after every value: they cover at all times at once, and Wilson's does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]

from groundswell.stats.rates import Interval, wilson
from groundswell.stats.sequential import PRIOR, Running, anytime, expected_n

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


@pytest.mark.slow
@pytest.mark.parametrize("aim", [0.05, 0.2])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5])
def test_whoever_aims_at_a_width_is_not_wrong_more_often(p: float, aim: float) -> None:
    look = partial(anytime, aim=aim)
    assert 0 < ever_wrong(look, coins(p, seed=3), p) <= 0.05
    assert ever_wrong(look, pair_means(p, 0.6, seed=4), p, grain=0.5) <= 0.05


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("width", [0.05, 0.1])
def test_aiming_saves_a_good_deal_of_what_not_aiming_takes(rate: float, width: float) -> None:
    n = expected_n(rate, width)
    assert Running(rate * n, n).width > width
    assert Running(rate * 1.6 * n, round(1.6 * n)).width > width or rate < 0.1


@given(SUMS, st.floats(0.01, 1.0))
def test_one_that_aims_holds_the_mean_and_is_mirrored(sums: tuple[float, int], aim: float) -> None:
    total, n = sums
    low, high = anytime(total, n, aim=aim)
    assert 0 <= low <= total / n <= high <= 1
    assert anytime(n - total, n, aim=aim) == pytest.approx((1 - high, 1 - low), abs=1e-9)


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


@pytest.mark.parametrize(
    ("rate", "width", "level"), [(0.1, 0.05, 0.95), (0.5, 0.1, 0.95), (0.0, 0.05, 0.95), (0.3, 0.2, 0.8), (1, 1, 0.95)]
)
def test_so_many_are_enough_and_one_fewer_is_not(rate: float, width: float, level: float) -> None:
    n = expected_n(rate, width, level)
    assert Running(rate * n, n, level, width).width <= width
    assert n == 1 or Running(rate * (n - 1), n - 1, level, width).width > width


def test_runs_that_stop_when_it_is_narrow_take_about_as_long_as_was_said() -> None:
    random, lengths = Random(5), []
    for _ in range(30):
        running = Running(aim=0.25)
        while running.width > 0.25:
            running = running.add(float(random.random() < 0.3))
        lengths.append(running.n)
    assert sum(lengths) / 30 == pytest.approx(expected_n(0.3, 0.25), rel=0.1)


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
        lambda: anytime(1, 3, aim=0),
        lambda: expected_n(0.2, 1e-9),
    ],
)
def test_nonsense_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must be|needs more than"):
        wrong()
