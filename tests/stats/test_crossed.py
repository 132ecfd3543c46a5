"""Means over learners and cases: against cases that can be reckoned by hand, and by how often intervals hold."""

from __future__ import annotations

from math import pi, sqrt, tan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from groundswell.stats.clusters import NOTHING, student
from groundswell.stats.crossed import FEW, Cells, cells, difference, difference_of_shares, mean, share, spread_of
from groundswell.stats.rates import exact, quantile, wilson
from tests.properties import examples


def grid(values: list[list[float]], clusters: list[int] | None = None) -> Cells:
    """Learners down, cases across; every case a cluster of its own unless something else is said."""
    across = len(values[0])
    what = clusters or list(range(across))
    flat = [value for row in values for value in row]
    return cells(flat, [at for at in range(len(values)) for _ in range(across)], what * len(values))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999, 1 - 1e-9])
def test_students_quantile_has_its_closed_forms(level: float) -> None:
    assert student(1, level) == pytest.approx(tan(pi * level / 2), rel=1e-6)
    assert student(2, level) == pytest.approx(level * sqrt(2 / (1 - level**2)), rel=1e-6)
    assert student(1e12, level) == pytest.approx(quantile(level), rel=1e-6)


@pytest.mark.parametrize(("df", "wanted"), [(5, 2.571), (23, 2.069), (120, 1.980)])
def test_students_quantile_is_that_of_the_tables(df: float, wanted: float) -> None:
    assert student(df, 0.95) == pytest.approx(wanted, abs=5e-4)


def test_one_learner_on_cases_of_their_own_is_students_interval() -> None:
    values = [0.1, 0.5, 0.2, 0.9, 0.4, 0.3]
    found = mean(grid([values]))
    off = float(stats.t.ppf(0.975, 5)) * float(np.std(values, ddof=1)) / sqrt(6)
    assert found.value == pytest.approx(0.4)
    assert found.low == pytest.approx(0.4 - off)
    assert found.high == pytest.approx(0.4 + off)
    assert (found.n, found.learners, found.clusters) == (6, 1, 6)


def test_a_difference_on_the_same_cases_is_the_paired_t_test() -> None:
    one, other = [0.9, 0.5, 0.7, 0.9, 0.4, 0.6], [0.1, 0.5, 0.2, 0.8, 0.4, 0.3]
    found, wanted = difference(grid([one]), grid([other])), stats.ttest_rel(one, other)
    assert found.p == pytest.approx(float(wanted.pvalue))
    assert found.low == pytest.approx(float(wanted.confidence_interval().low))


def test_learners_that_differ_far_more_than_cases_are_the_sample() -> None:
    levels = [0.1, 0.5, 0.9]
    found = mean(grid([[level + 0.001 * (case % 3) for case in range(30)] for level in levels]))
    off = float(stats.t.ppf(0.975, 2)) * float(np.std(levels, ddof=1)) / sqrt(3)
    assert found.high is not None
    assert found.value is not None
    assert found.high - found.value == pytest.approx(off, rel=0.01)


def test_the_variance_is_that_of_crossed_random_effects() -> None:
    """Of a balanced table, the mean squares of a two-way analysis of variance."""
    rng = np.random.default_rng(5)
    table = rng.normal(0, 1, (4, 1)) + rng.normal(0, 1, (1, 12)) + rng.normal(0, 0.5, (4, 12))
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    of_learners = 12 * float(((rows - table.mean()) ** 2).sum()) / 3
    of_cases = 4 * float(((columns - table.mean()) ** 2).sum()) / 11
    rest = float(((table - rows - columns + table.mean()) ** 2).sum()) / 33
    found = spread_of([grid(table.tolist())])
    assert found.variance == pytest.approx((of_learners + of_cases - rest) / 48)


def test_cases_of_a_cluster_that_are_all_alike_count_once() -> None:
    leaks = [1.0, 0, 1, 1, 0, 1, 0, 1, 1, 1]
    tripled = cells([each for each in leaks for _ in range(3)], [0] * 30, [at for at in range(10) for _ in range(3)])
    once, thrice = share(grid([leaks])), share(tripled)
    assert thrice.low == pytest.approx(once.low, abs=0.01)
    assert thrice.high == pytest.approx(once.high, abs=0.01)
    assert thrice.low is not None
    assert thrice.low < wilson(21, 30).low


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_what_never_varies_has_the_exact_interval_of_its_clusters(value: float) -> None:
    found = share(grid([[value] * 20] * 3, [at % 10 for at in range(20)]))
    assert (found.low, found.high) == tuple(exact(int(10 * value), 10))


def test_always_against_never_is_told_apart() -> None:
    found = difference_of_shares(grid([[1.0] * 12]), grid([[0.0] * 12]))
    assert found.value == 1
    assert found.low is not None
    assert 0.4 < found.low < 1
    assert found.p is not None
    assert found.p < 0.001
    same = difference_of_shares(grid([[1.0] * 12]), grid([[1.0] * 12]))
    assert same.value == 0
    assert same.p == pytest.approx(1)


def test_a_difference_that_never_varies_has_the_interval_of_the_clusters() -> None:
    for clusters in (6, 24):
        mixed = grid([[float(at % 2) for at in range(clusters)]])
        found = difference_of_shares(mixed, mixed)
        assert found.value == 0
        assert found.high == pytest.approx(1 - 0.025 ** (1 / clusters))
        assert found.low == pytest.approx(-(1 - 0.025 ** (1 / clusters)))
        always = difference_of_shares(grid([[1.0] * clusters]), grid([[0.0] * clusters]))
        assert always.p == pytest.approx(2 * 0.5**clusters, rel=1e-3), "the sign test"


def test_too_few_clusters_or_nothing_at_all_have_no_interval() -> None:
    few = share(grid([[1.0, 0, 1, 0]]))
    assert (few.value, few.low, few.reason) == (0.5, None, FEW)
    assert difference_of_shares(grid([[1.0, 0, 1, 0]]), grid([[1.0, 1, 1, 0]])).reason == FEW
    nothing = cells([], [], [])
    assert (mean(nothing).value, share(nothing).reason) == (None, NOTHING)
    assert difference_of_shares(nothing, grid([[1.0] * 9])).reason == NOTHING


TABLES = st.integers(1, 4).flatmap(
    lambda many: st.lists(st.lists(st.booleans(), min_size=8, max_size=8), min_size=many, max_size=many)
)


@settings(max_examples=examples(60), deadline=None)
@given(TABLES, TABLES)
def test_intervals_hold_their_figure_and_agree_with_p_and_turn_with_the_sides(
    one: list[list[bool]], other: list[list[bool]]
) -> None:
    a, b = grid([list(map(float, row)) for row in one]), grid([list(map(float, row)) for row in other])
    found, turned = difference_of_shares(a, b), difference_of_shares(b, a)
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.p is not None
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert (found.p < 0.05) == (not found.low <= 0 <= found.high) or found.p == pytest.approx(0.05, rel=1e-4)
    assert turned.low == pytest.approx(-found.high)
    assert turned.p == pytest.approx(found.p, rel=1e-4)


def drawn(rng: np.random.Generator, learners: int, spread: float, secrets: np.ndarray, easy: np.ndarray) -> Cells:
    odds = 0.5 + rng.normal(0, spread, (learners, 1)) + easy[secrets]
    leaks = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
    who = np.repeat(np.arange(learners), len(secrets))
    return Cells(leaks.astype(float).ravel(), who, np.tile(secrets, learners))


@pytest.mark.sampled
@pytest.mark.parametrize(("learners", "spread"), [(3, 0.0), (3, 0.7), (5, 0.7)])
def test_intervals_hold_about_as_often_as_they_say(learners: int, spread: float) -> None:
    rng, runs = np.random.default_rng(learners), 200
    truth = 1 / (1 + np.exp(-(0.5 + rng.normal(0, sqrt(spread**2 + 0.8**2), 200_000))))
    held = plain = 0
    for _ in range(runs):
        easy, secrets = rng.normal(0, 0.8, 24), rng.integers(0, 24, 80)
        side = drawn(rng, learners, spread, secrets, easy)
        found, naive = share(side), wilson(int(side.values.sum()), len(side.values))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth.mean() <= found.high
        plain += naive.low <= truth.mean() <= naive.high
    assert held / runs > 0.91
    assert plain / runs < 0.85, "without learners and secrets they would not"
