"""Tests of two rates and adjusted p-values: figures from papers and statsmodels, and what must hold of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb, pi
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from scipy.stats import contingency  # type: ignore[import-untyped]
from statsmodels.stats import contingency_tables, proportion  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from groundswell.stats import compare
from groundswell.stats.compare import (
    Association,
    Difference,
    Ends,
    association,
    benjamini_hochberg,
    cohens_h,
    difference,
    fisher,
    holm,
    matched_odds,
    mcnemar,
    reported_difference,
)
from groundswell.stats.rates import Paired, Rate, wilson
from tests.properties import examples

RATES = st.integers(1, 80).flatmap(lambda n: st.integers(0, n).map(lambda k: Rate(k, n)))
TABLES = st.tuples(*[st.integers(0, 25)] * 4).map(lambda counts: Paired(*counts))
FULL = st.tuples(*[st.integers(1, 25)] * 4).map(lambda counts: Paired(*counts))

Adjust = Callable[[Sequence[float]], list[float]]
PS = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def figures(found: Association) -> list[float]:
    return [-1.0 if each is None else each for each in msgspec.structs.astuple(found)]


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        (Rate(56, 70), Rate(48, 80), 0.0524, 0.3339),
        (Rate(9, 10), Rate(3, 10), 0.1705, 0.8090),
        (Rate(6, 7), Rate(2, 7), 0.0582, 0.8062),
        (Rate(5, 56), Rate(0, 29), -0.0381, 0.1926),
        (Rate(0, 10), Rate(0, 20), -0.1611, 0.2775),
        (Rate(0, 10), Rate(0, 10), -0.2775, 0.2775),
        (Rate(10, 10), Rate(0, 20), 0.6791, 1.0),
        (Rate(10, 10), Rate(0, 10), 0.6075, 1.0),
    ],
    ids="abcdefgh",
)
def test_differences_are_those_of_newcombes_table(one: Rate, other: Rate, low: float, high: float) -> None:
    assert difference(one, other) == pytest.approx((low, high), abs=1e-4)


@given(RATES, RATES, st.sampled_from([0.8, 0.95, 0.99]))
def test_a_difference_is_that_of_statsmodels_and_turns_around(one: Rate, other: Rate, level: float) -> None:
    low, high = difference(one, other, level)
    theirs = proportion.confint_proportions_2indep(*one, *other, method="newcomb", compare="diff", alpha=1 - level)
    assert (low, high) == pytest.approx((max(-1, theirs[0]), min(1, theirs[1])), abs=1e-9)
    assert difference(other, one, level) == pytest.approx((-high, -low), abs=1e-12)
    assert one.value is not None
    assert other.value is not None
    assert -1 <= low <= one.value - other.value <= high <= 1


def test_a_difference_from_nothing_may_be_anything() -> None:
    assert difference(Rate(0, 0), Rate(3, 9)) == (-1, 1)
    assert fisher(Rate(0, 0), Rate(3, 9)) == 1


def test_the_difference_covers_about_as_often_as_it_says() -> None:
    m, n, p, q = 30, 45, 0.25, 0.4
    likely = np.outer(stats.binom.pmf(np.arange(m + 1), m, p), stats.binom.pmf(np.arange(n + 1), n, q))
    made = [[difference(Rate(i, m), Rate(j, n)) for j in range(n + 1)] for i in range(m + 1)]
    covered = sum(
        likely[i, j] for i in range(m + 1) for j in range(n + 1) if made[i][j].low <= p - q <= made[i][j].high
    )
    assert 0.94 <= covered <= 0.97


@given(TABLES)
def test_mcnemar_is_that_of_statsmodels_and_of_either_side(paired: Paired) -> None:
    table = [[paired.both, paired.first], [paired.second, paired.neither]]
    theirs = contingency_tables.mcnemar(table, exact=True).pvalue if paired.first + paired.second else 1.0
    assert mcnemar(paired) == pytest.approx(float(theirs), abs=1e-9)
    assert mcnemar(Paired(paired.both, paired.second, paired.first, paired.neither)) == mcnemar(paired)


def coin(more: int, n: int) -> float:
    """The two-sided p of a fair coin that showed one side so often."""
    return min(1.0, float(2 * Fraction(sum(comb(n, k) for k in range(more, n + 1)), 2**n)))


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_a_test_of_a_fair_coin(first: int, second: int) -> None:
    assert mcnemar(Paired(5, first, second, 5)) == pytest.approx(coin(max(first, second), first + second))


def test_small_tails_are_not_lost() -> None:
    assert mcnemar(Paired(0, 990, 10, 0)) == pytest.approx(coin(990, 1000))
    assert mcnemar(Paired(0, 990, 10, 0)) < 1e-200


@given(st.integers(0, 30), st.integers(0, 30))
def test_rows_that_are_worth_half_count_as_half_as_many(first: int, second: int) -> None:
    twice = Paired(0, 2 * first, 2 * second, 0)
    assert mcnemar(twice, effect=2) == pytest.approx(mcnemar(Paired(0, first, second, 0)))


@given(RATES, RATES)
def test_fisher_sums_all_tables_that_are_no_likelier(one: Rate, other: Rate) -> None:
    passed = one.passed + other.passed
    possible = range(max(0, passed - other.n), min(one.n, passed) + 1)
    ways = {first: comb(one.n, first) * comb(other.n, passed - first) for first in possible}
    no_likelier = sum(each for each in ways.values() if each <= ways[one.passed])
    assert fisher(one, other) == pytest.approx(float(Fraction(no_likelier, comb(one.n + other.n, passed))))


def test_fisher_and_the_lady_who_tastes_tea() -> None:
    assert fisher(Rate(3, 4), Rate(1, 4)) == pytest.approx(34 / 70)
    assert fisher(Rate(4, 4), Rate(0, 4)) == pytest.approx(2 / 70)
    assert fisher(Rate(0, 4), Rate(4, 4)) == pytest.approx(2 / 70)


@given(FULL, st.sampled_from([0.9, 0.95]))
@settings(max_examples=examples(15))
def test_an_association_is_that_of_scipy(paired: Paired, level: float) -> None:
    table = [[paired.both, paired.first], [paired.second, paired.neither]]
    theirs = contingency.odds_ratio(table, kind="conditional")
    found = association(paired, level)
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval(level)), rel=1e-6)
    assert found.odds_ratio == pytest.approx(theirs.statistic, rel=1e-6)
    assert found.p == pytest.approx(stats.fisher_exact(table).pvalue)


@given(TABLES)
def test_an_association_is_the_same_from_either_side_and_turns_with_one(paired: Paired) -> None:
    found = association(paired)
    both, first, second, neither = paired
    other = association(Paired(both, second, first, neither))
    assert figures(other) == pytest.approx(figures(found), rel=1e-6)
    turned = association(Paired(first, both, neither, second))
    assert turned.p == pytest.approx(found.p)
    if found.odds_ratio and found.low and found.high and turned.low and turned.high:
        assert turned.odds_ratio == pytest.approx(1 / found.odds_ratio, rel=1e-6)
        assert (1 / turned.high, 1 / turned.low) == pytest.approx((found.low, found.high), rel=1e-6)
        assert found.low <= found.odds_ratio <= found.high
    assert msgspec.json.decode(msgspec.json.encode(found), type=Association) == found


@pytest.mark.parametrize(
    ("paired", "missing"),
    [
        (Paired(0, 0, 5, 5), {"odds_ratio", "low", "high"}),
        (Paired(5, 5, 0, 0), {"odds_ratio", "low", "high"}),
        (Paired(0, 0, 0, 0), {"odds_ratio", "low", "high"}),
        (Paired(5, 0, 0, 5), {"odds_ratio", "high"}),
        (Paired(0, 5, 5, 5), set()),
    ],
    ids=["first never", "first always", "nothing", "always together", "never together"],
)
def test_what_does_not_exist_is_none(paired: Paired, missing: set[str]) -> None:
    found = msgspec.structs.asdict(association(paired))
    assert {name for name, value in found.items() if value is None} == missing


def test_many_rows_are_rated_like_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the way of reckoning changes, what comes out hardly does."""
    paired = Paired(2000, 3000, 2500, 4000)
    few = association(paired)
    monkeypatch.setattr(compare, "MANY", paired.n)
    many = association(paired)
    assert few != many
    assert figures(many) == pytest.approx(figures(few), rel=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("adjust", "method"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")], ids=["holm", "bh"])
@given(ps=PS)
@settings(max_examples=examples(20))
def test_they_are_those_of_statsmodels(adjust: Adjust, method: str, ps: list[float]) -> None:
    assert adjust(ps) == pytest.approx(list(multipletests(ps, method=method)[1]), abs=1e-12)


@given(PS, st.integers())
def test_each_keeps_its_place_and_none_gets_smaller(ps: list[float], seed: int) -> None:
    places = Random(seed).sample(range(len(ps)), len(ps))
    for adjust in (holm, benjamini_hochberg):
        found = adjust(ps)
        assert adjust([ps[i] for i in places]) == [found[i] for i in places]
        assert all(p <= adjusted <= 1 for p, adjusted in zip(ps, found, strict=True))
    assert all(a >= b - 1e-12 for a, b in zip(holm(ps), benjamini_hochberg(ps), strict=True))


def test_the_example_of_benjamini_and_hochberg() -> None:
    """Fifteen hypotheses of their section 4.1: at 5%, Holm (as Bonferroni) finds three, theirs four."""
    ps = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.324,
        0.4262,
        0.5719,
        0.6528,
        0.759,
        1,
    ]
    assert sum(p <= 0.05 for p in holm(ps)) == 3
    assert sum(p <= 0.05 for p in benjamini_hochberg(ps)) == 4


def test_of_none_there_are_none() -> None:
    assert holm([]) == benjamini_hochberg([]) == []


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, p])


def test_the_odds_ratio_of_pairs_by_hand() -> None:
    """10 against 5: the odds are 2, between those of the exact interval of 10 in 15 (0.384 to 0.882)."""
    found = matched_odds(Paired(3, 10, 5, 9))
    assert found.value == 2
    assert (found.low, found.high) == pytest.approx((0.3838 / 0.6162, 0.8818 / 0.1182), abs=5e-3)
    never = matched_odds(Paired(3, 4, 0, 9))
    assert (never.value, never.high) == (None, None)
    assert matched_odds(Paired(3, 0, 0, 9)) == compare.Odds(None, None, None)


@given(TABLES, st.sampled_from([1.0, 1.7]))
def test_odds_of_pairs_agree_with_mcnemar_and_turn_with_the_sides(table: Paired, effect: float) -> None:
    found, p = matched_odds(table, effect=effect), mcnemar(table, effect)
    apart = (found.low is not None and found.low > 1) or (found.high is not None and found.high < 1)
    assert apart == (p < 0.05)
    other = matched_odds(Paired(table.both, table.second, table.first, table.neither), effect=effect)
    if found.value and other.value:
        assert found.value == pytest.approx(1 / other.value)
        assert (found.low, found.high) == pytest.approx((1 / (other.high or 1), 1 / (other.low or 1)))


@given(st.floats(0, 1), st.floats(0, 1))
def test_cohens_h_is_that_of_statsmodels(one: float, other: float) -> None:
    assert cohens_h(one, other) == pytest.approx(proportion.proportion_effectsize(one, other), abs=1e-9)
    assert cohens_h(one, other) == pytest.approx(-cohens_h(other, one))
    assert abs(cohens_h(one, other)) <= pi + 1e-9


ENDS = st.tuples(st.floats(-50, 50), st.floats(0, 20), st.floats(0, 20))
"""A value, and how far its interval reaches below and above it."""


def ends_of(found: Difference) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@given(RATES, RATES)
def test_reported_wilson_intervals_give_newcombes(one: Rate, other: Rate) -> None:
    """With Wilson's intervals of both shares, the reported difference has the interval of Newcombe's method 10."""
    assert one.value is not None
    assert other.value is not None
    found = reported_difference(one.value, wilson(*one), other.value, wilson(*other), bound=1.0)
    assert (found.low, found.high) == pytest.approx(difference(one, other))


def test_a_reported_difference_by_hand() -> None:
    """10 (8 to 13) and 6 (5 to 9): 4 - sqrt(2² + 3²) and 4 + sqrt(3² + 1²)."""
    found = reported_difference(10, (8, 13), 6, (5, 9))
    assert (found.value, found.low, found.high) == pytest.approx((4, 4 - 13**0.5, 4 + 10**0.5))
    assert found.excludes_zero
    assert found.p == pytest.approx(2 * stats.norm.sf(1.959964 * 4 / 13**0.5), rel=1e-5)


@given(ENDS, ENDS)
def test_what_must_hold_of_reported_differences(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> None:
    (one, below, above), (other, under, over) = first, second
    found = reported_difference(one, (one - below, one + above), other, (other - under, other + over))
    mirrored = reported_difference(other, (other - under, other + over), one, (one - below, one + above))
    low, high = ends_of(found)
    assert low <= found.value <= high
    assert (mirrored.value, *ends_of(mirrored)) == (-found.value, -high, -low)
    assert found.value - low >= max(below, over) - 1e-9
    assert found.p == mirrored.p
    if abs(found.p - 0.05) > 1e-6:
        assert found.excludes_zero == (found.p < 0.05)


@pytest.mark.parametrize(
    ("its", "others", "low", "high"),
    [
        ((None, 13.0), (5.0, 9.0), None, 4 + 10**0.5),
        ((8.0, 13.0), (5.0, None), None, 4 + 10**0.5),
        ((8.0, None), (5.0, 9.0), 4 - 13**0.5, None),
        ((None, None), (None, None), None, None),
    ],
    ids=["low of the first", "high of the second", "high of the first", "all"],
)
def test_unbounded_ends_stay_unbounded(its: Ends, others: Ends, low: float | None, high: float | None) -> None:
    found = reported_difference(10, its, 6, others)
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
    assert (found.p == 1.0) == (low is None)


@pytest.mark.parametrize("effect", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(("n", "m"), [(120, 120), (150, 400), (200, 1_000)])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_coverage_of_reported_differences_of_shares(share: float, n: int, m: int, effect: float) -> None:
    """The exact coverage over all outcomes of two runs, with the intervals of reports on more than 100 trials."""
    passed, others = np.arange(n + 1), np.arange(m + 1)
    weights = np.outer(stats.binom.pmf(passed, n, share), stats.binom.pmf(others, m, share + effect))
    covered = 0.0
    for i, j in np.argwhere(weights > 1e-7):
        one, other = Rate(int(i), n), Rate(int(j), m)
        found = reported_difference(i / n, one.interval(), j / m, other.interval(), bound=1.0)
        low, high = ends_of(found)
        covered += weights[i, j] * (low <= -effect <= high)
    assert 0.93 <= covered <= 0.97


def test_coverage_of_reported_differences_of_means() -> None:
    """2,000 pairs of runs with 20 and 60 values of different spread, and Student's interval of each mean."""
    random, covered = np.random.default_rng(5), 0
    quantiles = {n: stats.t.ppf(0.975, n - 1) for n in (20, 60)}
    for _ in range(2_000):
        ends = []
        for mean, spread, n in ((3.0, 2.0, 20), (1.0, 0.7, 60)):
            values = random.normal(mean, spread, n)
            half = quantiles[n] * values.std(ddof=1) / n**0.5
            ends.append((values.mean(), (values.mean() - half, values.mean() + half)))
        found = reported_difference(*ends[0], *ends[1])
        low, high = ends_of(found)
        covered += low <= 2.0 <= high
    assert 0.94 <= covered / 2_000 <= 0.97
