"""Agreement with labels: known values, what holds for all data, and how often intervals hold the truth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.stats.agreement import (
    Kappa,
    Share,
    Unit,
    cohens_kappa,
    krippendorffs_alpha,
    precision_recall,
    rogan_gladen,
)
from groundswell.stats.rates import exact, wilson
from tests.properties import examples


def units(*counts: tuple[object, object, int]) -> list[Unit]:
    """Independent units: the truth, what was found, and how many of them."""
    pairs = [(truth, found) for truth, found, many in counts for _ in range(many)]
    return [Unit(truth, found, at) for at, (truth, found) in enumerate(pairs)]


def two_by_two(hit: int, missed: int, false: int, none: int) -> list[Unit]:
    return units((True, True, hit), (True, False, missed), (False, True, false), (False, False, none))


def test_shares_of_independent_units_have_the_usual_intervals() -> None:
    found = precision_recall(two_by_two(30, 10, 5, 55))
    assert (found.true, found.found, found.both, found.n) == (40, 35, 30, 100)
    assert found.precision.value == 30 / 35
    assert found.precision[1:3] == pytest.approx(exact(30, 35), abs=0.02)
    assert found.recall[1:3] == pytest.approx(exact(30, 40), abs=0.02)
    many = precision_recall(two_by_two(300, 100, 50, 550))
    assert many.recall[1:3] == pytest.approx(wilson(300, 400), abs=0.01)


def test_kappa_of_a_published_table() -> None:
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: agreement 0.70, by chance 0.50."""
    found = cohens_kappa(units(("yes", "yes", 20), ("yes", "no", 5), ("no", "yes", 10), ("no", "no", 15)))
    assert found.value == pytest.approx(0.4)
    assert found.agreed.value == 0.7
    assert 0.1 < found.low < 0.25
    assert 0.55 < found.high < 0.7


def test_kappa_of_three_labels() -> None:
    table = [[44, 5, 1], [7, 20, 3], [9, 5, 6]]
    rows = [(str(a), str(b), table[a][b]) for a, b in product(range(3), repeat=2)]
    chance = (50 * 60 + 30 * 30 + 20 * 10) / 100**2
    assert cohens_kappa(units(*rows)).value == pytest.approx((0.70 - chance) / (1 - chance))


def test_full_agreement_is_no_certainty_and_one_label_says_nothing() -> None:
    whole = cohens_kappa(two_by_two(5, 0, 0, 15))
    assert whole.value == pytest.approx(1.0)
    assert whole.low < 0.7
    same = cohens_kappa(units(("a", "a", 9)))
    assert same.value is None
    for constant in (two_by_two(0, 0, 4, 16), two_by_two(0, 4, 0, 16)):
        assert cohens_kappa(constant)[:3] == (None, -1.0, 1.0)
    nothing = precision_recall(two_by_two(0, 0, 0, 10))
    assert (nothing.precision.value, nothing.recall.value) == (None, None)
    assert nothing.specificity.low == pytest.approx(exact(10, 10).low)
    assert precision_recall([]).recall == Share(None, 0.0, 1.0, 0.0)


def test_units_of_a_cluster_that_always_agree_count_as_one() -> None:
    alone = precision_recall(two_by_two(12, 8, 0, 0)).recall
    copied = [Unit(True, at < 12, at) for at in range(20) for _ in range(10)]
    together = precision_recall(copied).recall
    assert together.value == alone.value
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=0.03)


def test_weights_restore_the_rate_that_unequal_draws_distort() -> None:
    """All of 10 found ones and 10 of 90 others are labelled: each of these stands for nine."""
    drawn = [Unit(at < 8, True, at, 1.0, 0) for at in range(10)]
    drawn += [Unit(at < 2, False, 100 + at, 9.0, 1) for at in range(10)]
    found = precision_recall(drawn)
    assert found.precision.value == 0.8
    assert found.recall.value == pytest.approx(8 / (8 + 18))


ROWS = st.lists(
    st.builds(
        Unit,
        st.booleans(),
        st.booleans(),
        st.integers(0, 6),
        st.just(1.0),
        st.just(0),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=examples(60))
@given(ROWS, st.floats(0.1, 10))
def test_values_lie_in_their_intervals_and_scale_does_not_matter(rows: Sequence[Unit], scale: float) -> None:
    found, kappa = precision_recall(rows), cohens_kappa(rows)
    for share in (found.precision, found.recall, found.specificity, kappa.agreed):
        assert 0 <= share.low <= share.high <= 1
        assert share.value is None or share.low <= share.value <= share.high
        assert share.n <= len(rows) + 1e-9
    assert kappa.value is None or -1 <= kappa.low <= kappa.value <= kappa.high <= 1 + 1e-12
    scaled = precision_recall([row._replace(weight=scale) for row in rows])
    assert scaled.recall == pytest.approx(found.recall) if found.recall.value is not None else True
    swapped = precision_recall([row._replace(truth=row.found, found=row.truth) for row in rows])
    assert (swapped.precision, swapped.recall) == (found.recall, found.precision)
    assert cohens_kappa([row._replace(truth=row.found, found=row.truth) for row in rows]).value == kappa.value


@settings(max_examples=examples(100))
@given(st.floats(0, 1), st.floats(0.55, 1), st.floats(0.55, 1))
def test_a_corrected_rate_undoes_the_errors(truth: float, recall: float, specificity: float) -> None:
    measured = truth * recall + (1 - truth) * (1 - specificity)
    found = rogan_gladen(measured, 500, _known(recall), _known(specificity))
    assert found is not None
    assert found.value is not None
    assert found.value == pytest.approx(truth, abs=1e-9)
    assert 0 <= found.low <= found.value <= found.high <= 1


def _known(value: float, n: float = 10_000) -> Share:
    return Share(value, value, value, n)


def test_a_test_without_errors_changes_nothing_but_the_interval() -> None:
    sure = rogan_gladen(0.3, 400, _known(1.0, 1e9), _known(1.0, 1e9))
    unsure = rogan_gladen(0.3, 400, _known(1.0, 30), _known(1.0, 30))
    assert sure is not None
    assert unsure is not None
    assert sure.value == unsure.value == pytest.approx(0.3)
    assert (sure.low, sure.high) == pytest.approx(wilson(120, 400), abs=0.003)
    assert unsure.low < sure.low < sure.high < unsure.high


@pytest.mark.parametrize(
    ("recall", "specificity"),
    [(_known(0.5), _known(0.5)), (Share(None, 0, 1, 0), _known(1.0)), (_known(0.2), _known(0.6))],
    ids=["chance", "unknown", "worse"],
)
def test_errors_that_hide_everything_are_not_corrected(recall: Share, specificity: Share) -> None:
    assert rogan_gladen(0.4, 100, recall, specificity) is None


@pytest.mark.slow
@pytest.mark.parametrize("stratified", [False, True], ids=["all", "stratified"])
def test_intervals_hold_the_truth_as_often_as_they_say(stratified: bool) -> None:
    """Conversations of two correlated sides; with strata, those with a finding are labelled more often."""
    rng = np.random.default_rng(7)
    rate, recall, specificity, labelled, times = 0.25, 0.85, 0.95, 60, 150
    held = dict.fromkeys(("precision", "recall", "specificity", "kappa", "corrected"), 0)
    found_rate = rate * recall + (1 - rate) * (1 - specificity)
    agreed = rate * recall + (1 - rate) * specificity
    chance = rate * found_rate + (1 - rate) * (1 - found_rate)
    truths = {
        "precision": rate * recall / found_rate,
        "recall": recall,
        "specificity": specificity,
        "kappa": (agreed - chance) / (1 - chance),
        "corrected": rate,
    }
    for seed in range(times):
        own = rng.beta(rate * 2, (1 - rate) * 2, 300)
        truth = rng.random((300, 2)) < own[:, None]
        found = np.where(truth, rng.random((300, 2)) < recall, rng.random((300, 2)) > specificity)
        hit = found.any(axis=1) if stratified else np.zeros(300, dtype=bool)
        drawn = [
            Unit(bool(truth[at, side]), bool(found[at, side]), int(at), len(members) / len(some), stratum)
            for stratum, members in enumerate((np.flatnonzero(hit), np.flatnonzero(~hit)))
            if len(members)
            for some in [rng.choice(members, min(len(members), labelled // (2 if stratified else 1)), replace=False)]
            for at in some
            for side in (0, 1)
        ]
        shares, kappa = precision_recall(drawn, seed=seed), cohens_kappa(drawn, seed=seed)
        means = found.mean(axis=1)
        measured = float(means.mean())
        n = measured * (1 - measured) / (means.var(ddof=1) / 300)
        corrected = rogan_gladen(measured, n, shares.recall, shares.specificity)
        assert corrected is not None
        got: list[Share | Kappa] = [shares.precision, shares.recall, shares.specificity, kappa, corrected]
        for name, one in zip(held, got, strict=True):
            held[name] += one.low <= truths[name] <= one.high
    least = {"kappa": 0.87}
    assert {name: many / times >= least.get(name, 0.91) for name, many in held.items()} == dict.fromkeys(held, True), (
        held
    )


def test_samples_in_which_all_values_are_the_same_have_no_alpha() -> None:
    """Rounding must not make them look like ones with very large disagreement."""
    ratings = [[3] * 3] * 2 + [[2] * 3] * 4 + [[5] * 3] * 6 + [[3] * 3] * 9
    clusters = [0] * 2 + [1] * 4 + [2] * 6 + [3] * 5 + [4] * 4
    found = krippendorffs_alpha(ratings, clusters, interval=True)
    assert (found.value, found.low, found.high) == pytest.approx((1, 1, 1))
