"""Checks: what they let pass, and what not."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.checks import CHANCE, all_of, hold, most_misses, none_of, planted
from groundswell.experiments.secret_game.analysis import RateFigure
from groundswell.experiments.secret_game.figures import rate_figure
from groundswell.stats.rates import Rate


@pytest.mark.parametrize(
    ("found", "every", "none"),
    [(Rate(5, 5), True, False), (Rate(0, 5), False, True), (Rate(4, 5), False, False), (Rate(0, 0), False, False)],
    ids=["all", "none", "some", "nothing"],
)
def test_all_and_none(found: Rate, every: bool, none: bool) -> None:
    assert all_of("a", "b", found).passed is every
    assert none_of("a", "b", found).passed is none


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        (Rate(300, 1000), True),
        (Rate(330, 1000), True),
        (Rate(350, 1000), False),
        (Rate(0, 1000), False),
        (Rate(0, 0), False),
    ],
    ids=str,
)
def test_a_planted_rate(found: Rate, passed: bool) -> None:
    assert planted("a", "b", 0.3, found).passed is passed


def at_least(k: int, n: int, p: float) -> float:
    """The probability that k or more of n happen."""
    return sum(comb(n, many) * p**many * (1 - p) ** (n - many) for many in range(k, n + 1))


@given(st.integers(1, 300))
def test_more_misses_than_these_are_rarer_than_one_in_a_thousand(intervals: int) -> None:
    most = most_misses(intervals)
    assert at_least(most + 1, intervals, 0.05) < CHANCE
    assert most == 0 or at_least(most, intervals, 0.05) >= CHANCE


def figures(misses: int, of: int) -> list[RateFigure]:
    return [rate_figure(0 if at < misses else 9, 30) for at in range(of)]


@pytest.mark.parametrize(
    ("misses", "of", "passed"), [(0, 100, True), (13, 100, True), (14, 100, False), (3, 3, False), (0, 0, False)]
)
def test_few_enough_intervals_miss(misses: int, of: int, passed: bool) -> None:
    assert hold("a", "b", 0.3, figures(misses, of)).passed is passed
