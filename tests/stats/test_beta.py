"""The incomplete beta function is scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats  # type: ignore[import-untyped]

from groundswell.stats.beta import at_least, log_beta, point_below, share_below

SIZES = st.floats(0.01, 1e5)


@given(st.floats(0, 1, allow_subnormal=False), SIZES, SIZES)
def test_the_share_is_that_of_scipy(x: float, a: float, b: float) -> None:
    assert share_below(x, a, b) == pytest.approx(float(special.betainc(a, b, x)), rel=1e-6, abs=1e-9)


@given(st.floats(0.001, 0.999), SIZES, SIZES)
def test_what_is_not_below_is_above(x: float, a: float, b: float) -> None:
    assert share_below(x, a, b) + share_below(1 - x, b, a) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("k", "n", "p"), [(0, 5, 0.2), (6, 5, 0.2), (5, 5, 0.2), (3, 7, 0.0), (3, 7, 1.0), (40, 99, 0.3)]
)
def test_tails_of_the_binomial(k: int, n: int, p: float) -> None:
    assert at_least(k, n, p) == pytest.approx(float(stats.binom.sf(k - 1, n, p)), abs=1e-12)


def test_small_tails_are_not_lost() -> None:
    assert at_least(990, 1000, 0.5) == pytest.approx(float(stats.binom.sf(989, 1000, 0.5)), rel=1e-9)
    assert log_beta(300.5, 4) == pytest.approx(float(special.betaln(300.5, 4)))


@given(st.floats(1e-4, 1 - 1e-4), st.floats(0.5, 1e4), st.floats(0.5, 1e4))
def test_the_point_below_which_a_share_lies_is_that_of_scipy(share: float, a: float, b: float) -> None:
    assert point_below(share, a, b) == pytest.approx(float(special.betaincinv(a, b, share)), rel=1e-7, abs=1e-12)


def test_points_far_out_are_found() -> None:
    assert point_below(0.025, 1, 10**9) == pytest.approx(0.025 / 10**9, rel=0.02)
    assert 1 - point_below(0.975, 10**6, 0.01) == pytest.approx(0, abs=1e-12)
    assert point_below(1e-6, 0.05, 3) == pytest.approx(float(special.betaincinv(0.05, 3, 1e-6)), rel=1e-6)
