"""Races: blocks that share the problems out, and a sign test that can be worked out by hand."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.racing import Rules, behind, blocks, so_bad


@given(st.integers(1, 50), st.floats(1, 3), st.integers(1, 300))
def test_blocks_are_all_problems_in_their_order(block: int, growth: float, problems: int) -> None:
    found = list(blocks(Rules(block=block, growth=growth), problems))
    assert [at for each in found for at in each] == list(range(problems))
    sizes = [len(each) for each in found]
    assert sizes[0] == min(block, problems)
    assert sizes[:-1] == sorted(sizes[:-1])


def test_without_racing_there_is_one_block() -> None:
    assert list(blocks(Rules(racing=False, block=5), 30)) == [range(30)]


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (0, 3), (2, 5), (4, 4), (6, 1)])
def test_the_sign_test_counts_all_ways(better: int, worse: int) -> None:
    n = better + worse
    ways = [sum(signs) for signs in product((0, 1), repeat=n)]
    tail = sum(each < better for each in ways) + sum(each == better for each in ways) / 2
    assert so_bad(better, worse) == pytest.approx(tail / len(ways))


def test_who_is_behind() -> None:
    best = [1.0] * 10
    assert not behind([1.0] * 10, best, 0.25)
    assert behind([0.0, 0.0, *[1.0] * 8], best, 0.25)
    assert not behind([0.0, *[1.0] * 9], best, 0.2)
    assert not behind([1.0] * 5, [0.0] * 10, 0.25)


def test_what_is_missing_is_not_compared() -> None:
    assert not behind([None, None, 1.0], [1.0, 1.0, None], 0.25)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), max_size=30))
def test_of_two_at_most_one_is_behind(pairs: list[tuple[float, float]]) -> None:
    one, other = [mine for mine, _ in pairs], [theirs for _, theirs in pairs]
    assert not (behind(one, other, 0.49) and behind(other, one, 0.49))


@pytest.mark.parametrize(
    ("rules", "message"),
    [({"block": 0}, "block 0"), ({"growth": 0.5}, "growth 0.5"), ({"doubt": 0.5}, "doubt 0.5")],
)
def test_rules_that_make_no_sense(rules: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Rules(**rules)  # type: ignore[arg-type]
