"""How long secrets last: the curve, the test and the mean, against statsmodels and the leukaemia data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import exp
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from statsmodels.duration.survfunc import SurvfuncRight, survdiff  # type: ignore[import-untyped]

from groundswell.stats.rates import exact
from groundswell.stats.survival import ClusteredLogrank, Counts, curve, logrank, restricted_mean
from tests.properties import examples


class Lives(NamedTuple):
    """Events by time, and censored observations by time of the last observation."""

    events: Counts
    censored: Counts


TREATED = Lives(Counter([6, 6, 6, 7, 10, 13, 16, 22, 23]), Counter([6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]))
UNTREATED = Lives(Counter([1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]), {})
COUNTS = st.dictionaries(st.integers(1, 12), st.integers(0, 6), max_size=8)
LIVES = st.tuples(COUNTS, COUNTS).map(lambda each: Lives(*each)).filter(lambda lives: sum(lives.events.values()) > 0)


def rows(lives: tuple[Counts, Counts]) -> tuple[list[int], list[int]]:
    """A time for each, and whether it ended then."""
    both = [
        (time, ended)
        for ended, counts in ((1, lives[0]), (0, lives[1]))
        for time, n in counts.items()
        for _ in range(n)
    ]
    return [time for time, _ in both], [ended for _, ended in both]


def test_the_curve_is_that_of_the_leukaemia_data() -> None:
    """E. J. Freireich and others, Blood 21 (1963) 699-716, as in every textbook."""
    found = curve(*TREATED)
    assert [(step.time, step.at_risk, step.events) for step in found] == [
        (6, 21, 3), (7, 17, 1), (10, 15, 1), (13, 12, 1), (16, 11, 1), (22, 7, 1), (23, 6, 1),
    ]  # fmt: skip
    shares = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    assert [step.share for step in found] == pytest.approx(shares, abs=6e-4)
    assert logrank([TREATED, UNTREATED]) == pytest.approx(4.17e-5, rel=0.01)


@given(LIVES)
@settings(max_examples=examples(50))
def test_the_curve_is_that_of_statsmodels(lives: Lives) -> None:
    times, ended = rows(lives)
    theirs = SurvfuncRight(times, ended)
    found = curve(*lives)
    assert [step.time for step in found] == list(theirs.surv_times)
    assert [step.at_risk for step in found] == list(theirs.n_risk)
    assert [step.share for step in found] == pytest.approx(list(theirs.surv_prob), abs=1e-12)
    for step, share, error in zip(found, theirs.surv_prob, theirs.surv_prob_se, strict=True):
        if step.share > 0:
            off = exp(1.959964 * error / (share * -np.log(share)))
            assert (step.low, step.high) == pytest.approx((share**off, share ** (1 / off)), abs=1e-6)


@given(LIVES, st.sampled_from([0.8, 0.95]))
def test_the_curve_falls_within_its_bands(lives: Lives, level: float) -> None:
    found = curve(*lives, level)
    assert all(0 <= step.low <= step.share <= step.high <= 1 for step in found)
    shares = [1.0, *(step.share for step in found)]
    assert all(after < before for before, after in pairwise(shares))


def test_without_censoring_it_is_the_share_that_is_left() -> None:
    assert [step.share for step in curve({1: 2, 2: 3, 5: 5}, {})] == pytest.approx([0.8, 0.5, 0.0])
    last = curve({1: 2, 2: 3, 5: 5}, {})[-1]
    assert (last.low, last.high) == (0, curve({1: 2, 2: 3, 5: 5}, {})[-2].high)
    assert curve({3: 9}, {})[0].high == exact(0, 9).high
    assert curve({}, {4: 3}) == curve({2: 0}, {}) == []


def test_who_is_last_seen_at_a_time_was_still_watched_at_it() -> None:
    assert curve({2: 1}, {2: 1, 1: 5})[0].at_risk == 2


def test_rounding_adds_no_degree_of_freedom() -> None:
    """By hand: one of one ended where 4/22 were expected, with a variance of 0.14876: chi-square 4.5 at one degree."""
    assert logrank([({1: 1}, {}), ({1: 3, 2: 6}, {1: 6, 2: 6})]) == pytest.approx(0.0338948535, abs=1e-9)


@given(st.lists(LIVES, min_size=2, max_size=4))
@settings(max_examples=examples(60))
def test_the_test_is_that_of_statsmodels_and_knows_no_order(groups: list[Lives]) -> None:
    found = logrank(groups)
    assert 0 <= found <= 1
    assert logrank(groups[::-1]) == pytest.approx(found, abs=1e-9)
    made = [(time, ended, i) for i, lives in enumerate(groups) for time, ended in zip(*rows(lives), strict=True)]
    times, ended, which = (np.array(column) for column in zip(*made, strict=True))
    first = times[ended == 1].min()
    if all(max(times[which == i]) >= first for i in range(len(groups))):
        with np.errstate(all="ignore"):
            theirs = survdiff(times, ended, which)[1] if any(times > first) else np.nan
        assert np.isnan(theirs) or found == pytest.approx(float(theirs), abs=1e-9)


@pytest.mark.parametrize(
    "groups",
    [[], [TREATED], [TREATED, ({}, {})], [({}, {3: 4}), ({}, {5: 4})], [({3: 4}, {}), ({}, {1: 4})]],
    ids=["none", "one", "one of nobody", "no events", "never together"],
)
def test_where_nothing_can_tell_nothing_is_told(groups: list[tuple[Mapping[int, int], Mapping[int, int]]]) -> None:
    assert logrank(groups) == 1


def test_the_test_is_wrong_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(4)

    def lives() -> Lives:
        ends, seen = random.geometric(0.2, 40), random.integers(1, 9, 40)
        return Lives(Counter(ends[ends <= seen].tolist()), Counter(seen[ends > seen].tolist()))

    wrong = np.mean([logrank([lives(), lives()]) <= 0.05 for _ in range(600)])
    assert abs(wrong - 0.05) <= 4 * np.sqrt(0.05 * 0.95 / 600)


Side = tuple[str, int, bool]
"""Group, time, and whether it ended then."""
SIDES = st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.booleans())
BLOCKS = st.lists(st.lists(SIDES, min_size=1, max_size=8), min_size=5, max_size=15)


def clustered(blocks: list[list[Side]]) -> float | None:
    test = ClusteredLogrank()
    for number, block in enumerate(blocks):
        for group, time, ended in block:
            test.add(number, group, time, ended=ended)
    return test.p()


def as_groups(blocks: list[list[Side]]) -> list[Lives]:
    sides = [side for block in blocks for side in block]
    return [
        Lives(
            *(Counter(time for group, time, over in sides if (group, over) == (name, ended)) for ended in (True, False))
        )
        for name in sorted({group for group, _, _ in sides})
    ]


def by_the_definition(blocks: list[list[Side]]) -> float | None:
    """For two groups: the sum of residuals over its error from sums of blocks is Student's. None if it has no error."""
    sides = [side for block in blocks for side in block]

    def residual(group: str, time: int, ended: bool) -> float:
        found = 0.0
        for at in sorted({each for _, each, over in sides if over and each <= time}):
            watched = [name for name, until, _ in sides if until >= at]
            share = watched.count("a") / len(watched)
            hazard = sum(over for _, until, over in sides if until == at) / len(watched)
            found += ((group == "a") - share) * ((ended and at == time) - hazard)
        return found

    sums = np.array([sum(residual(*side) for side in block) for block in blocks])
    if sums.std() < 1e-9:
        return None
    t = sums.mean() / (sums.std(ddof=1) / np.sqrt(len(sums)))
    return float(2 * stats.t.sf(abs(t), len(sums) - 1))


@given(BLOCKS)
@settings(max_examples=examples(60))
def test_the_clustered_test_of_two_groups_is_students_on_blocks(blocks: list[list[Side]]) -> None:
    two = [[(group if group != "c" else "b", time, ended) for group, time, ended in block] for block in blocks]
    wanted = by_the_definition(two)
    if wanted is not None and logrank(as_groups(two)) < 1:
        assert clustered(two) == pytest.approx(wanted, abs=1e-9)


@given(BLOCKS, st.randoms(use_true_random=False))
@settings(max_examples=examples(60))
def test_the_clustered_test_knows_no_order_and_no_names(blocks: list[list[Side]], random: Random) -> None:
    found = clustered(blocks)
    assert found is not None
    assert 0 <= found <= 1
    moved = [random.sample(block, len(block)) for block in random.sample(blocks, len(blocks))]
    assert clustered(moved) == pytest.approx(found, abs=1e-7)
    names = dict(zip("abc", random.sample("abc", 3), strict=True))
    renamed = [[(names[group], time, ended) for group, time, ended in block] for block in blocks]
    assert clustered(renamed) == pytest.approx(found, abs=1e-7)


@pytest.mark.parametrize("groups", ["ab", "abcd"])
def test_with_a_block_for_each_side_it_is_the_plain_test(groups: str) -> None:
    random = np.random.default_rng(8)
    for _ in range(20):
        ends = random.geometric(0.25, 600)
        sides = [[(groups[at % len(groups)], min(int(end), 4), bool(end <= 4))] for at, end in enumerate(ends)]
        assert clustered(sides) == pytest.approx(logrank(as_groups(sides)), abs=0.02)


def test_too_few_blocks_have_no_clustered_test() -> None:
    block: list[Side] = [("a", 1, True), ("b", 2, True), ("b", 3, False)]
    assert clustered([block] * 4) is None
    assert clustered([]) is None
    same = clustered([block] * 5)
    assert same is not None, "all blocks are the same"
    assert logrank(as_groups([block] * 5)) < same < 1
    assert clustered([[("a", 2, False), ("b", 3, False)]] * 5) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "blocks"), [("ab", 10), ("abcd", 10), ("abcd", 50)])
def test_the_clustered_test_is_wrong_in_one_of_twenty_where_the_plain_one_is_not(groups: str, blocks: int) -> None:
    """Each group leaks some words more easily than others: none is better, but sides of a block are alike."""
    random, wrong, plain, runs = np.random.default_rng(5), 0, 0, 400
    for _ in range(runs):
        odds = random.normal(-1.7, 2.0, (blocks, len(groups)))
        ends = random.geometric(1 / (1 + np.exp(-odds))[:, :, None], (blocks, len(groups), 8))
        sides: list[list[Side]] = [
            [(groups[at], min(int(end), 3), bool(end <= 3)) for at, own in enumerate(block) for end in own]
            for block in ends
        ]
        wrong += (clustered(sides) or 0) <= 0.05
        plain += logrank(as_groups(sides)) <= 0.05
    assert wrong / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert plain / runs > 0.15


def test_the_mean_is_the_area_under_the_curve() -> None:
    """Figures of R's survival package for the leukaemia data, to what it prints: 23.29 (se 2.83) up to 35."""
    found = restricted_mean(*TREATED, until=35)
    assert found is not None
    assert found.value == pytest.approx(23.29, abs=0.005)
    assert (found.value - found.low) / 1.959964 == pytest.approx(2.83, abs=0.005)
    plain = restricted_mean({1: 2, 2: 3, 5: 5}, {})
    assert plain is not None
    assert plain.value == pytest.approx((2 * 1 + 3 * 2 + 5 * 5) / 10)


@given(LIVES, st.integers(1, 12))
def test_the_mean_lies_in_its_interval_and_grows_with_time(lives: Lives, until: int) -> None:
    last = max(time for counts in lives for time, n in counts.items() if n)
    found, longer = restricted_mean(*lives, min(until, last)), restricted_mean(*lives)
    assert found is not None
    assert longer is not None
    assert 0 <= found.low <= found.value <= found.high <= found.until
    assert found.value <= longer.value + 1e-12
    assert longer.until == last


def test_beyond_what_was_watched_there_is_a_mean_only_if_all_ended() -> None:
    assert restricted_mean({}, {}) is None
    done = restricted_mean({1: 1, 3: 1}, {}, until=9)
    assert done is not None
    assert done.value == pytest.approx(2)
    with pytest.raises(ValueError, match="until 9"):
        restricted_mean({1: 1}, {3: 1}, until=9)
    nothing = restricted_mean({}, {4: 3})
    assert nothing is not None
    assert (nothing.value, nothing.low, nothing.high) == (4, 4, 4)


@pytest.mark.parametrize(
    "wrong",
    [lambda: curve({1: -1}, {}), lambda: curve({}, {-1: 1}), lambda: restricted_mean({1: 1}, {}, until=0)],
)
def test_nonsense_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"negative|above 0"):
        wrong()
