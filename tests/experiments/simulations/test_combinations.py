"""Combinations: exact counts, no repeats, uniform, and never listed."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, islice
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.simulations.combinations import combination, draw, possible
from tests.properties import examples

SIZES = st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@pytest.mark.parametrize(("n", "k", "count"), [(10, 1, 10), (10, 2, 45), (10, 3, 120)], ids=["solo", "dyadic", "group"])
def test_the_counts_of_the_document(n: int, k: int, count: int) -> None:
    assert possible(n, k) == count
    assert len(set(draw(n, k, count, 0))) == count


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(9) for k in range(n + 1)])
def test_ranks_go_through_all_combinations_in_order(n: int, k: int) -> None:
    assert [combination(n, k, rank) for rank in range(comb(n, k))] == list(combinations(range(n), k))


@given(SIZES, st.data())
def test_a_combination_has_its_place(size: tuple[int, int], data: st.DataObject) -> None:
    n, k = size
    rank = data.draw(st.integers(0, comb(n, k) - 1))
    found = combination(n, k, rank)
    assert len(found) == k
    assert list(found) == sorted(set(found))
    assert all(0 <= each < n for each in found)
    smaller = sum(
        comb(n - each - 1, k - place - 1)
        for place, chosen in enumerate(found)
        for each in range(found[place - 1] + 1 if place else 0, chosen)
    )
    assert smaller == rank


@given(SIZES, st.integers(0, 300), st.integers())
def test_no_combination_is_drawn_twice(size: tuple[int, int], wanted: int, seed: int) -> None:
    n, k = size
    count = min(wanted, comb(n, k))
    drawn = list(draw(n, k, count, seed))
    assert len(drawn) == len(set(drawn)) == count


@given(st.integers(1, 12), st.integers())
def test_all_of_them_can_be_drawn(n: int, seed: int) -> None:
    k = n // 2
    assert sorted(draw(n, k, comb(n, k), seed)) == list(combinations(range(n), k))


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="there are 6 combinations of 2 out of 4, not 7"):
        next(draw(4, 2, 7, 0))


def test_a_rank_beyond_the_last_is_refused() -> None:
    with pytest.raises(IndexError, match="no combination 6 of 2 out of 4"):
        combination(4, 2, 6)


@given(st.integers(), st.integers(1, 40))
@settings(max_examples=examples(50))
def test_fewer_are_the_first_of_more(seed: int, count: int) -> None:
    assert list(draw(20, 3, count, seed)) == list(islice(draw(20, 3, 1000, seed), count))


def test_a_hundred_quadrillion_are_not_listed() -> None:
    """C(60, 30) is 118,264,581,564,861,424: what is drawn comes at once, from all over the range."""
    drawn = list(draw(60, 30, 2000, "big"))
    assert possible(60, 30) == 118_264_581_564_861_424
    assert len(set(drawn)) == 2000
    often = Counter(place for each in drawn for place in each)
    assert set(often) == set(range(60))
    assert all(880 < count < 1120 for count in often.values()), "each is in half of them, within 5 standard errors"


def test_every_combination_is_equally_likely_first_and_later() -> None:
    """Chi-square over the first, second and last draw: below what chance passes once in 10,000 times."""
    rounds = 4000
    places = {0: Counter[tuple[int, ...]](), 1: Counter[tuple[int, ...]](), 9: Counter[tuple[int, ...]]()}
    pairs = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for seed in range(rounds):
        drawn = list(draw(5, 2, 10, seed))
        for place, counts in places.items():
            counts[drawn[place]] += 1
        pairs[drawn[0], drawn[1]] += 1
    for counts in places.values():
        assert sum((count - rounds / 10) ** 2 / (rounds / 10) for count in counts.values()) < 33.7
    assert len(pairs) == 90
    assert sum((count - rounds / 90) ** 2 / (rounds / 90) for count in pairs.values()) < 145


def test_seeds_differ() -> None:
    assert list(draw(10, 2, 20, 1)) != list(draw(10, 2, 20, 2))
    assert list(draw(10, 2, 20, 1)) == list(draw(10, 2, 20, 1))
