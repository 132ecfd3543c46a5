"""Planning: exact powers are those of the very tests, approximations are near them, and what is found is enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.stats import proportion  # type: ignore[import-untyped]

from groundswell.stats import power as planning
from groundswell.stats.clusters import p_of_shares, rows
from groundswell.stats.compare import fisher, mcnemar
from groundswell.stats.power import (
    detectable,
    interactions_for,
    n_for_paired,
    n_for_two,
    n_for_width,
    power_of_paired,
    power_of_share_difference,
    power_of_two,
    secrets_worth,
    width,
)
from groundswell.stats.rates import Paired, Rate, Twice, wilson
from tests.properties import examples


@pytest.mark.parametrize(("n", "n_other", "alpha"), [(9, 9, 0.05), (7, 12, 0.05), (12, 5, 0.2)])
def test_the_power_of_two_rates_is_that_of_fishers_test(n: int, n_other: int, alpha: float) -> None:
    one, other = 0.15, 0.7
    found = sum(
        stats.binom.pmf(i, n, one) * stats.binom.pmf(j, n_other, other)
        for i, j in product(range(n + 1), range(n_other + 1))
        if fisher(Rate(i, n), Rate(j, n_other)) <= alpha
    )
    power = power_of_two(one, other, n, n_other=n_other, alpha=alpha)
    assert power.power == pytest.approx(float(found), abs=1e-9)
    assert power.method == "exact"


@pytest.mark.parametrize(("first", "second", "n"), [(0.5, 0.1, 14), (0.1, 0.4, 20), (0.3, 0.0, 17)])
def test_the_power_of_paired_rates_is_that_of_mcnemars_test(first: float, second: float, n: int) -> None:
    found = sum(
        stats.multinomial.pmf([i, j, n - i - j], n, [first, second, 1 - first - second])
        for i in range(n + 1)
        for j in range(n + 1 - i)
        if mcnemar(Paired(0, i, j, n - i - j)) <= 0.05
    )
    power = power_of_paired(first + 0.05, second + 0.05, n, discordance=first + second)
    assert power.power == pytest.approx(float(found), abs=1e-9)
    assert power.method == "exact"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("one", "other", "n"), [(0.1, 0.2, 300), (0.5, 0.58, 500), (0.02, 0.035, 2000), (0.9, 0.8, 300)]
)
def test_approximations_are_near_the_exact_powers(
    monkeypatch: pytest.MonkeyPatch, one: float, other: float, n: int
) -> None:
    def found() -> list[planning.Power]:
        halved = power_of_two(one, other, n, n_other=2 * n // 3)
        return [power_of_two(one, other, n), halved, power_of_paired(one, other, n)]

    exact = found()
    monkeypatch.setattr(planning, "EXACT", 0)
    monkeypatch.setattr(planning, "EXACT_PAIRED", 0)
    assert {each.method for each in exact} == {"exact"}
    assert {each.method for each in found()} == {"normal"}
    assert [each.power for each in found()] == pytest.approx([each.power for each in exact], abs=0.03)


@pytest.mark.parametrize(("one", "other", "n"), [(0.1, 0.12, 5000), (0.5, 0.52, 9000), (0.01, 0.015, 9000)])
def test_for_very_many_the_power_is_that_of_statsmodels(one: float, other: float, n: int) -> None:
    theirs = proportion.power_proportions_2indep(one - other, other, n).power
    assert power_of_two(one, other, n).power == pytest.approx(float(theirs), abs=0.02)


def test_the_n_of_two_rates_is_near_that_of_statsmodels() -> None:
    theirs = proportion.samplesize_proportions_2indep_onetail(0.02, 0.1, power=0.9, alpha=0.05, alternative="two-sided")
    found = n_for_two(0.1, 0.12, power=0.9)
    assert found.method == "normal"
    assert found.n == pytest.approx(float(theirs), rel=0.03)


@example(0.5, 0.9999999999999999, 1)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 40))
@settings(max_examples=examples(40))
def test_a_power_is_a_probability_and_the_same_whichever_is_named_first(one: float, other: float, n: int) -> None:
    found = power_of_two(one, other, n).power
    assert 0 <= found <= 1
    assert found == pytest.approx(power_of_two(other, one, n).power, abs=1e-9)
    assert found == pytest.approx(power_of_two(1 - one, 1 - other, n).power, abs=1e-9)
    assert power_of_two(one, one, n).power <= 0.05 + 1e-9
    paired = power_of_paired(one, other, n).power
    assert 0 <= paired <= 1
    assert paired == pytest.approx(power_of_paired(other, one, n).power, abs=1e-9)
    assert power_of_paired(one, one, n).power <= 0.05 + 1e-9


def test_simulations_find_as_often_as_was_said() -> None:
    draws, n = 4000, 60
    random = np.random.default_rng(1)
    one, other = random.binomial(n, 0.2, draws), random.binomial(n, 0.45, draws)
    ps = {
        pair: fisher(Rate(pair[0], n), Rate(pair[1], n)) for pair in set(zip(one.tolist(), other.tolist(), strict=True))
    }
    seen = np.mean([ps[pair] <= 0.05 for pair in zip(one.tolist(), other.tolist(), strict=True)])
    said = power_of_two(0.2, 0.45, n).power
    assert abs(seen - said) <= 4 * np.sqrt(said * (1 - said) / draws)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("one", "other", "power"), [(0.1, 0.3, 0.8), (0.5, 0.2, 0.9), (0.1, 0.11, 0.8), (0.0, 1.0, 0.8)]
)
def test_so_many_are_enough_and_one_fewer_is_not(one: float, other: float, power: float) -> None:
    found = n_for_two(one, other, power=power)
    assert found == power_of_two(one, other, found.n)
    assert found.power >= power > power_of_two(one, other, found.n - 1).power
    paired = n_for_paired(one, other, power=power)
    assert paired == power_of_paired(one, other, paired.n)
    assert paired.power >= power > power_of_paired(one, other, paired.n - 1).power


def test_rows_that_hang_together_need_fewer() -> None:
    apart, together = n_for_paired(0.3, 0.4), n_for_paired(0.3, 0.4, correlation=0.6)
    assert together.n < apart.n / 2
    assert n_for_paired(0.3, 0.4, discordance=0.3 * 0.6 + 0.4 * 0.7) == apart


@pytest.mark.slow
def test_stricter_tests_need_more() -> None:
    assert n_for_two(0.1, 0.3, alpha=0.01).n > n_for_two(0.1, 0.3).n
    assert n_for_two(0.1, 0.3, power=0.95).n > n_for_two(0.1, 0.3).n


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "n"), [(0.2, 120), (0.2, 2000), (0.0, 50), (1.0, 50)])
def test_what_is_detectable_is_detected_and_what_is_nearer_is_not(rate: float, n: int) -> None:
    found = detectable(rate, n)
    for edge in (found.below, found.above):
        if edge is not None:
            assert power_of_two(rate, edge, n).power >= 0.8
            assert power_of_two(rate, edge + (rate - edge) * 0.02, n).power < 0.8
    assert (found.below is None) == (rate == 0)
    assert (found.above is None) == (rate == 1)


def test_with_very_few_nothing_is_detectable() -> None:
    assert detectable(0.5, 3) == planning.Detectable(None, None)


@pytest.mark.parametrize(("rate", "at_most"), [(0.1, 0.05), (0.5, 0.1), (0.0, 0.02), (0.02, 0.01)])
def test_an_interval_is_as_narrow_as_was_asked(rate: float, at_most: float) -> None:
    n = n_for_width(rate, at_most)
    low, high = Rate(round(rate * n), n).interval()
    assert high - low <= at_most
    assert width(rate, n) == high - low
    if rate:
        usual = proportion.samplesize_confint_proportion(rate, at_most / 2)
        assert n == pytest.approx(float(usual), rel=0.08)


def test_the_width_is_that_of_the_interval() -> None:
    low, high = wilson(30, 300)
    assert width(0.1, 300) == high - low


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda: power_of_two(1.2, 0.1, 9), "rate 1.2"),
        (lambda: power_of_two(0.2, 0.1, 0), "n 0"),
        (lambda: power_of_two(0.2, 0.1, 9, alpha=0), "alpha 0"),
        (lambda: n_for_two(0.2, 0.2), "must differ"),
        (lambda: n_for_two(0.2, 0.3, power=1), "power 1"),
        (lambda: n_for_two(0.2, 0.2 + 1e-7), "would be needed"),
        (lambda: n_for_paired(0.2, 0.3, correlation=0.99), "correlation 0.99"),
        (lambda: n_for_paired(0.2, 0.3, discordance=0.05), "discordance 0.05"),
        (lambda: n_for_width(0.2, 0), "width 0"),
    ],
)
def test_nonsense_is_refused(wrong: Callable[[], object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        wrong()


@pytest.mark.parametrize(("correlation", "interactions"), [(0.0, 107), (0.5, 161), (1.0, 214)])
def test_interactions_of_a_model_with_itself_are_worth_up_to_two_secrets(correlation: float, interactions: int) -> None:
    assert interactions_for(214, correlation) == interactions
    with pytest.raises(ValueError, match=r"correlation -0\.1: must be between 0 and 1"):
        interactions_for(214, -0.1)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_planned_interactions_are_enough_and_one_fewer_is_not(secrets: int, correlation: float) -> None:
    found = interactions_for(secrets, correlation)
    assert secrets_worth(found, correlation) >= secrets
    assert found == 1 or secrets_worth(found - 1, correlation) < secrets


def self_play(
    random: np.random.Generator, rate: float, correlation: float, interactions: int, runs: int
) -> list[Twice]:
    """How often both, one and none of the two secrets of an interaction leak, in each of many runs."""
    both = rate * rate + correlation * rate * (1 - rate)
    return [
        Twice(*counts)
        for counts in random.multinomial(interactions, [both, max(0.0, 2 * (rate - both)), 1 - 2 * rate + both], runs)
    ]


@pytest.mark.parametrize("correlation", [0.0, 0.4, 1.0])
def test_self_play_has_the_planned_width_and_power(correlation: float) -> None:
    random, runs = np.random.default_rng(6), 1000
    planned = interactions_for(n_for_width(0.3, 0.1), correlation)
    widths = [each.interval() for each in self_play(random, 0.3, correlation, planned, runs)]
    assert np.mean([high - low for low, high in widths]) == pytest.approx(0.1, abs=0.004)
    planned = interactions_for(n_for_two(0.1, 0.2).n, correlation)
    arms = [self_play(random, rate, correlation, planned, runs) for rate in (0.1, 0.2)]
    found = np.mean([tells_apart(*pair) for pair in zip(*arms, strict=True)])
    assert 0.77 <= found <= 0.87, "Fisher's test is a little weaker than this one"


def tells_apart(one: Twice, other: Twice) -> bool:
    """The test of two means, with an interaction as the unit."""
    variances = [
        np.var([1.0] * each.both + [0.5] * each.one + [0.0] * each.none, ddof=1) / each.n for each in (one, other)
    ]
    return bool(abs((one.value or 0) - (other.value or 0)) > 1.96 * np.sqrt(sum(variances)))


def p_of(first: int, n: int, second: int, other: int) -> float:
    """The p-value of two groups of people who each gave one answer."""
    who, alone = np.arange(n + other), [(each,) for each in range(n + other)]
    one = rows([1.0] * first + [0.0] * (n - first), who[:n], who[:n], alone)
    two = rows([1.0] * second + [0.0] * (other - second), who[n:], who[n:], alone)
    p = p_of_shares(one, two, shared=True)
    assert p is not None
    return p


@pytest.mark.parametrize(
    ("rate", "effect", "n", "other", "alpha"),
    [(0.375, 0.25, 16, 16, 0.025), (0.3, 0.4, 12, 12, 0.05), (0.1, 0.3, 26, 20, 0.05), (0.5, 0.0, 12, 12, 0.05)],
    ids=str,
)
def test_the_power_of_a_difference_of_shares_is_that_of_its_test(
    rate: float, effect: float, n: int, other: int, alpha: float
) -> None:
    found = sum(
        stats.binom.pmf(i, n, rate + effect) * stats.binom.pmf(j, other, rate)
        for i, j in product(range(n + 1), range(other + 1))
        if p_of(i, n, j, other) <= alpha
    )
    assert power_of_share_difference(rate, effect, n, other, alpha=alpha) == pytest.approx(found, abs=1e-4)


@pytest.mark.parametrize(
    ("rate", "effect", "n", "correlation", "alpha"),
    [(0.375, 0.25, 20, 0.29, 0.025), (0.1, 0.3, 16, 0.2, 0.05), (0.4, 0.3, 12, 0.5, 0.05), (0.5, 0.0, 16, 0.3, 0.05)],
    ids=str,
)
def test_the_power_within_people_is_about_that_of_its_test(
    rate: float, effect: float, n: int, correlation: float, alpha: float
) -> None:
    one, scale = rate + effect, sqrt(rate * (1 - rate) * (rate + effect) * (1 - rate - effect))
    both = one * rate + correlation * scale
    chances, found = (both, one - both, rate - both, 1 - one - rate + both), 0.0
    for counts in product(range(n + 1), repeat=3):
        if sum(counts) <= n:
            table = (*counts, n - sum(counts))
            p = p_of_pairs(*table)
            found += float(stats.multinomial.pmf(table, n, chances)) * (p <= alpha)
    power = power_of_share_difference(rate, effect, n, n, correlation=correlation, alpha=alpha)
    assert power == pytest.approx(found, abs=1e-3)


@cache
def p_of_pairs(both: int, first: int, second: int, neither: int) -> float:
    """The p-value of two answers of the same people, each alone."""
    n = both + first + second + neither
    who, alone = np.arange(n), [(each,) for each in range(n)]
    one = rows([1.0] * (both + first) + [0.0] * (second + neither), who, who, alone)
    other = rows([1.0] * both + [0.0] * first + [1.0] * second + [0.0] * neither, who, who, alone)
    p = p_of_shares(one, other, shared=True)
    assert p is not None
    return p


def test_correlated_shares_are_easier_to_distinguish_and_more_people_help() -> None:
    powers = [power_of_share_difference(0.4, 0.2, 40, 40, correlation=each) for each in (-0.3, 0.0, 0.3, 0.6)]
    assert powers == sorted(powers)
    powers = [power_of_share_difference(0.4, 0.2, n, n) for n in (10, 40, 160, 640)]
    assert powers == sorted(powers)
    assert powers[-1] > 0.99
    assert power_of_share_difference(0.0, 1.0, 10, 10) == 1.0
