"""Secrets: sets of like words, and what is drawn from them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import SettingsError
from groundswell.experiments.secret_game.words import built_in_pool, draw_many, draw_pair, read_pool


def test_built_in_sets_are_of_words_that_are_alike() -> None:
    pool = built_in_pool()
    assert [len({len(word) for word in words}) for words in pool] == [1] * len(pool)
    assert min(len(words) for words in pool) >= 25
    assert all(word.isascii() and word.isalpha() and word.islower() for words in pool for word in words)


@given(st.integers(0, 2**32), st.integers(0, 10_000))
def test_a_pair_is_of_one_set_and_the_same_every_time(seed: int, block: int) -> None:
    one, other = draw_pair(built_in_pool(), seed, block)
    assert one != other
    assert any({one, other} <= set(words) for words in built_in_pool())
    assert draw_pair(built_in_pool(), seed, block) == (one, other)


def test_every_word_is_drawn_about_as_often() -> None:
    pool = read_pool("one two six\nseven eight nine three", "here")
    counts = Counter(word for block in range(7000) for word in draw_pair(pool, 1, block))
    assert min(counts.values()) > 0.9 * 2000
    assert max(counts.values()) < 1.1 * 2000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least two words"),
        ("lonely", "at least two words"),
        ("one two\nthree One", "the word 'one' occurs twice"),
        ("one it", "'it' is too short"),
    ],
)
def test_a_pool_that_cannot_be_one(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_pool(text, "words.txt")


def test_remarks_and_empty_lines_are_passed_over() -> None:
    assert read_pool("# words\n\none two # like ones\n", "here") == (("one", "two"),)


def test_agents_get_different_words_that_nobody_has() -> None:
    pool = read_pool("one two three\nfour five", "here")
    assert sorted(draw_many(pool, 3, 4, ["two"])) == ["five", "four", "one", "three"]
    with pytest.raises(SettingsError, match="5 agents need 5 different words, but the pool has 4"):
        draw_many(pool, 3, 5, ["two"])
