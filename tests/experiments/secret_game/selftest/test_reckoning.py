"""How often intervals hold, reckoned; and that those which do not are found out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.secret_game.selftest import reckoning
from groundswell.experiments.secret_game.selftest.reckoning import (
    betting,
    block_means,
    checks,
    coverage,
    covered,
    fixed_sample,
    in_twos,
    likelihood,
    watched,
)
from groundswell.stats.rates import Interval, wilson


@pytest.mark.slow
def test_what_reports_have_holds() -> None:
    found = list(checks())
    assert [check.name for check in found if not check.passed] == []
    assert len(found) == 7


@pytest.mark.parametrize(
    ("level", "passed"), [(0.95, True), (0.9, False), (0.8, False), (0.999, False)], ids=["right", "90", "80", "wide"]
)
def test_intervals_that_are_too_narrow_or_too_wide_are_found_out(level: float, passed: bool) -> None:
    found = [coverage(lambda count: wilson(count[0], 200, level), (p, 1 - p), 200, p) for p in (0.1, 0.3, 0.5)]
    assert covered("a rate", 200, found).passed is passed


def test_exact_ones_may_not_fall_short_at_any_rate() -> None:
    assert covered("a rate", 60, [0.94, 0.97], least=0.95).passed is False
    assert covered("a rate", 60, [0.96, 0.97], least=0.95).passed is True


@pytest.mark.slow
def test_an_interval_that_is_watched_must_be_made_for_it() -> None:
    assert [check.passed for check in watched(betting, 100)] == [True, True]
    usual, _ = watched(fixed_sample, 100)
    assert usual.passed is False
    assert [check.passed for check in watched(too_narrow, 100)] == [False, False]


def too_narrow(values: Sequence[float]) -> Iterator[Interval]:
    for low, high in betting(values):
        middle = (low + high) / 2
        yield Interval(middle - 0.02, middle + 0.02)


def test_words_leak_at_the_rate_that_intervals_are_to_hold() -> None:
    means = [fmean(block_means(Random(number))) for number in range(300)]
    assert fmean(means) == pytest.approx(reckoning.WATCHED, abs=0.015)


@given(st.floats(0.05, 0.95), st.integers(1, 12))
def test_chances_of_all_counts_add_up(rate: float, n: int) -> None:
    whole = Interval(-1.0, 2.0)
    assert coverage(lambda _: whole, (rate, 1 - rate), n, rate) == pytest.approx(1, abs=1e-6)
    assert coverage(lambda _: whole, in_twos(rate), n, rate) == pytest.approx(1, abs=1e-6)
    assert coverage(lambda _: Interval(2.0, 3.0), (rate, 1 - rate), n, rate) == 0


@given(st.floats(0.01, 0.99))
def test_two_that_hang_together_have_the_rate_and_the_correlation(rate: float) -> None:
    both, one, none = in_twos(rate)
    assert both + one / 2 == pytest.approx(rate)
    assert both + one + none == pytest.approx(1)
    assert (both - rate**2) / (rate * (1 - rate)) == pytest.approx(reckoning.TOGETHER)


def test_likelihood_is_the_multinomial() -> None:
    assert likelihood((2, 1, 0), (0.5, 0.3, 0.2)) == pytest.approx(3 * 0.25 * 0.3)
