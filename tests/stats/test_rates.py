"""Intervals: figures from the papers, and what must hold of every one of them."""

from __future__ import annotations

from math import comb, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.stats.rates import FEW, Interval, Paired, Rate, Twice, exact, wilson, worth
from tests.properties import examples

LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99])
COUNTS = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
PAIRS = st.tuples(*[st.integers(0, 60)] * 4).map(lambda counts: Paired(*counts)).filter(lambda paired: paired.n > 0)
TWICE = st.tuples(*[st.integers(0, 60)] * 3).map(lambda counts: Twice(*counts)).filter(lambda twice: twice.n > 0)


@pytest.mark.parametrize(
    ("found", "low", "high"),
    [
        (wilson(81, 263), 0.2553, 0.3662),
        (wilson(15, 148), 0.0624, 0.1605),
        (wilson(0, 20), 0.0, 0.1611),
        (exact(5, 10), 0.1871, 0.8129),
        (exact(0, 10), 0.0, 0.3085),
        (exact(81, 263), 0.2527, 0.3676),
        (Paired(36, 12, 2, 0).interval(), 0.0569, 0.3404),
    ],
    ids=["wilson", "wilson, few", "wilson, none", "exact", "exact, none", "exact, many", "paired, Newcombe's first"],
)
def test_the_intervals_are_those_of_the_papers(found: Interval, low: float, high: float) -> None:
    assert found == pytest.approx((low, high), abs=1e-4)


@given(COUNTS, LEVELS)
def test_an_interval_holds_its_rate_and_is_mirrored_by_that_of_the_failures(
    counts: tuple[int, int], level: float
) -> None:
    passed, n = counts
    for made in (wilson, exact):
        low, high = made(passed, n, level)
        assert 0 <= low <= passed / n <= high <= 1
        assert made(n - passed, n, level) == pytest.approx((1 - high, 1 - low), abs=1e-9)
        wider = made(passed, n, 0.995)
        assert wider.low <= low
        assert wider.high >= high


@given(st.integers(1, 300), LEVELS)
@settings(max_examples=examples(20))
def test_more_that_pass_move_the_interval_up(n: int, level: float) -> None:
    found = [Rate(passed, n).interval(level) for passed in range(0, n + 1, max(1, n // 12))]
    assert found == sorted(found)
    assert [each.high for each in found] == sorted(each.high for each in found)


@given(st.integers(1, 40), st.floats(0.01, 0.99))
@settings(max_examples=examples(30))
def test_the_exact_interval_covers_as_often_as_it_says(n: int, p: float) -> None:
    covered = sum(
        comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1) if exact(k, n).low <= p <= exact(k, n).high
    )
    assert covered >= 0.95 - 1e-9


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), LEVELS)
def test_at_the_ends_of_the_exact_interval_the_tails_are_as_likely_as_it_says(
    counts: tuple[int, int], level: float
) -> None:
    """By Clopper and Pearson's own definition, with the binomial distribution."""
    (passed, n), (low, high) = counts, exact(*counts, level)

    def likely(p: float, outcomes: range) -> float:
        return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in outcomes)

    if passed:
        assert likely(low, range(passed, n + 1)) == pytest.approx((1 - level) / 2)
    if passed < n:
        assert likely(high, range(passed + 1)) == pytest.approx((1 - level) / 2)


def test_limits_next_to_the_ends_are_found() -> None:
    n = 10**9
    assert exact(0, n).high == pytest.approx(-log(0.025) / n, rel=1e-6)
    assert exact(1, n).low == pytest.approx(-log(0.975) / n, rel=1e-6)
    assert 1 - exact(n, n).low == pytest.approx(-log(0.025) / n, rel=1e-6)


@given(st.floats(0, 1), st.floats(0.01, 2 * FEW), LEVELS)
def test_a_share_of_any_number_of_values_has_an_interval_that_holds_it(share: float, n: float, level: float) -> None:
    low, high = worth(share, n, level)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


@given(st.integers(1, FEW - 1), st.floats(0.1, 0.9))
def test_between_whole_numbers_an_interval_lies_between_theirs(n: int, share: float) -> None:
    fewer, between, more = (worth(share, many) for many in (n, n + 0.5, n + 1))
    assert fewer.low <= between.low <= more.low
    assert more.high <= between.high <= fewer.high


def test_few_are_exact_and_many_are_wilsons() -> None:
    assert Rate(3, FEW).interval() == exact(3, FEW)
    assert Rate(3, FEW + 1).interval() == wilson(3, FEW + 1)
    assert Rate(0, 10 * FEW).interval() == exact(0, 10 * FEW)
    assert Rate(0, 0).value is None
    assert Rate(0, 0).interval() == (0, 1)
    assert wilson(0, 0) == (0, 1)


@given(PAIRS, LEVELS)
def test_the_difference_is_held_and_turned_around_by_exchanging_the_two(paired: Paired, level: float) -> None:
    low, high = paired.interval(level)
    assert paired.difference is not None
    assert -1 <= low <= paired.difference + 1e-12
    assert paired.difference - 1e-12 <= high <= 1
    exchanged = Paired(paired.both, paired.second, paired.first, paired.neither)
    assert exchanged.interval(level) == pytest.approx((-high, -low), abs=1e-9)


@given(PAIRS)
def test_more_rows_of_the_same_kind_tell_more(paired: Paired) -> None:
    more = Paired(*(16 * count for count in paired))
    assert more.interval().high - more.interval().low < paired.interval().high - paired.interval().low


def test_of_nothing_nothing_is_known() -> None:
    assert Paired(0, 0, 0, 0).difference is None
    assert Paired(0, 0, 0, 0).interval() == (-1, 1)


@given(TWICE, LEVELS)
def test_pairs_lie_between_as_many_single_ones_and_twice_as_many(twice: Twice, level: float) -> None:
    low, high = twice.interval(level)
    assert twice.value is not None
    assert 0 <= low <= twice.value <= high <= 1
    turned = Twice(twice.none, twice.one, twice.both)
    assert turned.interval(level) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    many = Twice(*(1000 * count for count in twice))
    share, n = 2 * many.both + many.one, 2 * many.n
    if 0 < share < n:
        assert many.interval().low <= wilson(share, n).low + 1e-12
        assert many.interval().low >= wilson(share, 2 * n).low if share % 2 else wilson(share // 2, n // 2).low - 1e-12


@pytest.mark.parametrize(
    ("twice", "like"),
    [
        (Twice(0, 0, 50), exact(0, 50)),
        (Twice(500, 0, 0), exact(500, 500)),
        (Twice(7, 0, 13), exact(7, 20)),
        (Twice(70, 0, 130), wilson(70, 200)),
        (Twice(0, 14, 6), exact(14, 40)),
        (Twice(0, 140, 60), wilson(140, 400)),
        (Twice(1, 0, 0), exact(1, 1)),
        (Twice(0, 0, 0), exact(0, 0)),
    ],
    ids=["none", "all", "alike", "many alike", "never both", "many, never both", "one pair", "nothing"],
)
def test_pairs_that_are_alike_count_once_and_those_that_differ_count_as_two(twice: Twice, like: Interval) -> None:
    assert twice.interval() == pytest.approx(like, abs=1e-9)


@pytest.mark.parametrize(
    ("twice", "correlation"),
    [
        (Twice(25, 50, 25), 0.0),
        (Twice(50, 0, 50), 1.0),
        (Twice(0, 100, 0), -1.0),
        (Twice(0, 0, 9), None),
        (Twice(0, 1, 0), None),
    ],
    ids=["independent", "alike", "opposite", "none", "one pair"],
)
def test_how_much_the_two_of_a_pair_hang_together(twice: Twice, correlation: float | None) -> None:
    assert twice.correlation == (None if correlation is None else pytest.approx(correlation, abs=0.01))


@pytest.mark.parametrize(("passed", "n", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0)])
def test_nonsense_is_refused(passed: int, n: int, level: float) -> None:
    with pytest.raises(ValueError, match=r"of|level"):
        exact(passed, n, level)


def test_pairs_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="-1 of 4"):
        Twice(-1, 2, 3).interval()
