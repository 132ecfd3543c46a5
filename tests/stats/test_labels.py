"""Giving labels to others: exact where that can be, near it where it is drawn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.stats import compare
from groundswell.stats.compare import bearing
from tests.properties import examples


def apart(values: list[int], counts: list[int], given: tuple[int, ...]) -> float:
    """The sum of squares between groups, of people with so many values each: by its definition."""
    middle = sum(values) / sum(counts)
    total = 0.0
    for label in set(given):
        mine = [at for at, each in enumerate(given) if each == label]
        n = sum(counts[at] for at in mine)
        total += n * (sum(values[at] for at in mine) / n - middle) ** 2
    return total


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(0, 2)), min_size=5, max_size=6).filter(
        lambda people: len({label for _, _, label in people}) > 1
    )
)
def test_small_ones_are_exact(people: list[tuple[int, int, int]]) -> None:
    values, counts, given = (list(each) for each in zip(*people, strict=True))
    found = bearing(np.array(values, dtype=float)[:, None], np.array(counts), given)
    real = apart(values, counts, tuple(given))
    every = [apart(values, counts, each) for each in permutations(given)]
    if found is None:
        assert real == pytest.approx(0, abs=1e-9)
        return
    assert found == pytest.approx(sum(each >= real - 1e-9 for each in every) / len(every))


def test_two_halves_that_have_nothing_in_common() -> None:
    totals = np.array([[1.0]] * 5 + [[0.0]] * 5)
    assert bearing(totals, np.ones(10, dtype=np.int64), [0] * 5 + [1] * 5) == 2 / 252


@pytest.mark.parametrize(
    ("values", "given"),
    [([1, 2, 3, 4], [0, 0, 1, 1]), ([1, 2, 3, 4, 5], [0] * 5), ([3, 3, 3, 3, 3, 3], [0, 1] * 3)],
    ids=["four people", "one group", "all alike"],
)
def test_where_there_is_nothing_to_compare_there_is_no_p(values: list[float], given: list[int]) -> None:
    assert bearing(np.array(values, dtype=float)[:, None], np.ones(len(values), dtype=np.int64), given) is None


def test_drawn_ones_are_near_the_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    for shift in (0.0, 1.0, 1.5):
        totals = random.normal(size=(12, 2)) + shift * (np.arange(12) < 6)[:, None]
        counts, given = random.integers(1, 5, 12), [int(at < 6) for at in range(12)]
        monkeypatch.setattr(compare, "ALL", 5_000)
        exact = bearing(totals, counts, given)
        monkeypatch.setattr(compare, "ALL", 0)
        drawn = bearing(totals, counts, given)
        assert exact is not None
        assert drawn == bearing(totals, counts, given)
        assert drawn == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 400) ** 0.5 + 0.001)


def test_one_in_twenty_is_found_where_there_is_nothing() -> None:
    random = np.random.default_rng(3)
    given = [int(at < 15) for at in range(30)]
    ones = np.ones(30, dtype=np.int64)
    ps = [bearing(random.exponential(size=(30, 1)), ones, given) or 0.0 for _ in range(300)]
    assert 0.02 <= float(np.mean(np.array(ps) <= 0.05)) <= 0.08
    assert 0.43 <= float(np.mean(ps)) <= 0.57


def test_what_is_there_is_found_and_is_as_rare_as_was_tried() -> None:
    totals = np.array([[5.0]] * 20 + [[0.0]] * 20) + np.random.default_rng(2).normal(size=(40, 1))
    assert bearing(totals, np.ones(40, dtype=np.int64), [0] * 20 + [1] * 20) == 1 / (compare.MOST + 1)
