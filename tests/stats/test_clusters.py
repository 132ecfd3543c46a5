"""Values in clusters: how many independent ones they are worth, and that intervals then cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from groundswell.stats.clusters import Clusters, ClusterTotals
from groundswell.stats.compare import mcnemar
from groundswell.stats.rates import FEW, Paired, Rate, worth

VALUES = st.lists(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=6), min_size=2, max_size=30)


def gathered(clusters: Sequence[Sequence[float]]) -> Clusters:
    found = Clusters()
    for number, values in enumerate(clusters):
        found.add(number, *values)
    return found


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-5, 5)), max_size=6), min_size=2, max_size=9))
def test_totals_have_the_covariance_of_sums_of_clusters(clusters: list[list[tuple[str, float]]]) -> None:
    found = ClusterTotals[str]()
    clusters = [[("a", 0.0), *each] for each in clusters]
    for number, each in enumerate(clusters):
        for key, amount in each:
            found.add(number, key, amount)
    sums = np.array([[sum(amount for key, amount in each if key == name) for name in found.keys] for each in clusters])
    assert found.totals == pytest.approx(sums.sum(axis=0))
    weights = np.arange(2.0 * len(found.keys)).reshape(-1, 2) - 1
    wanted = np.cov(sums @ weights, rowvar=False) * len(clusters)
    assert found.covariance(weights) == pytest.approx(wanted, abs=1e-6)


@given(VALUES)
def test_the_effect_is_that_of_cluster_robust_errors(clusters: list[list[float]]) -> None:
    """A regression on nothing but a constant, with and without errors that know of clusters, says the same."""
    values = np.array([value for each in clusters for value in each])
    found = gathered(clusters)
    assert (found.n, found.count) == (len(values), len(clusters))
    assert found.total == pytest.approx(values.sum())
    if np.ptp(values) == 0:
        assert found.effect is None
        return
    groups = np.repeat(np.arange(len(clusters)), [len(each) for each in clusters])
    ones = np.ones(len(values))
    robust = sm.OLS(values, ones).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False, "df_correction": False}
    )
    k = len(clusters)
    expected = robust.bse[0] ** 2 * k / (k - 1) / (values.var(ddof=1) / len(values))
    assert found.effect == pytest.approx(expected, abs=1e-9)


def test_single_values_are_worth_themselves_and_copies_are_worth_one() -> None:
    assert gathered([[1], [0], [0], [1], [0]]).effect == pytest.approx(1)
    copies = gathered([[1, 1, 1], [0, 0, 0]] * 50).effect
    assert copies == pytest.approx(3, rel=0.02)
    assert gathered([[1, 0, 1]]).effect is None
    assert Clusters().effect is None


def test_values_of_a_cluster_may_come_in_parts() -> None:
    parts = Clusters()
    for cluster, value in ((0, 1), (0, 0), (1, 1), (1, 1), (2, 0), (2, 1)):
        parts.add(cluster, value)
    assert parts.effect == gathered([[1, 0], [1, 1], [0, 1]]).effect


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_independent_values_have_the_usual_interval(rate: tuple[int, int]) -> None:
    passed, n = rate
    assert worth(passed / n, n) == pytest.approx(Rate(passed, n).interval(), abs=1e-9)


def test_an_interval_is_wider_where_values_are_worth_less() -> None:
    for share in (0.0, 0.1, 0.5, 1.0):
        widths = [high - low for low, high in (worth(share, n) for n in (400.0, FEW + 0.5, 60.3, 7.7, 0.4, 0.0))]
        assert widths == sorted(widths)
        assert widths[-1] == 1


@given(st.tuples(*[st.integers(0, 60)] * 4).filter(any), st.floats(1, 8))
def test_a_difference_is_less_sure_where_rows_are_worth_less(counts: tuple[int, int, int, int], effect: float) -> None:
    table = Paired(*counts)
    low, high = table.interval()
    wider = table.interval(effect=effect)
    assert wider.low <= low + 1e-9
    assert high <= wider.high + 1e-9
    assert mcnemar(table, effect) >= mcnemar(table) - 1e-9
    assert mcnemar(table, 1.0) == mcnemar(table)


def test_twice_the_rows_at_an_effect_of_two_say_what_half_of_them_say() -> None:
    half, whole = Paired(10, 14, 5, 40), Paired(20, 28, 10, 80)
    assert whole.interval(effect=2) == pytest.approx(half.interval())
    assert mcnemar(whole, 2) == pytest.approx(mcnemar(half))


@pytest.mark.sampled
@pytest.mark.parametrize(("p", "spread"), [(0.3, 0.0), (0.3, 1.0), (0.3, 2.0), (0.1, 1.0)])
def test_rates_cover_although_words_differ_and_plain_intervals_do_not(p: float, spread: float) -> None:
    """25 blocks of 12 sides, as of a model with three opponents: two words in each, six sides to a word."""
    random, runs, covered, plain = np.random.default_rng(7), 600, 0, 0
    logits = np.log(p / (1 - p)) + spread * random.normal(size=(runs, 25, 2))
    shares = 1 / (1 + np.exp(-logits))
    truth = float((1 / (1 + np.exp(-np.log(p / (1 - p)) - spread * random.normal(size=200_000)))).mean())
    for blocks in random.binomial(6, shares):
        found = Clusters()
        for number, (one, other) in enumerate(blocks):
            found.add(number, *[1] * int(one + other), *[0] * int(12 - one - other))
        low, high = worth(found.total / found.n, found.n / max(1.0, found.effect or 1.0))
        covered += low <= truth <= high
        low, high = Rate(round(found.total), found.n).interval()
        plain += low <= truth <= high
    assert covered / runs >= 0.92
    if spread >= 1 and p == 0.3:
        assert plain / runs < 0.90
