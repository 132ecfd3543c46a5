"""Keys and numbers that have to be the same in every session and every version."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.engine.keys import Seen, sample_number, spec_key


@given(st.lists(st.text(max_size=2)))
def test_seen_counts_as_a_dictionary_does(keys: list[str]) -> None:
    seen, expected = Seen(), Counter[str]()
    for key in keys:
        assert seen.add(key) == expected[key]
        expected[key] += 1


def test_seen_counts_when_it_has_grown() -> None:
    seen = Seen()
    keys = [str(number) for number in range(5000)]
    assert {seen.add(key) for key in keys} == {0}
    assert {seen.add(key) for key in reversed(keys)} == {1}
    assert {seen.add(key) for key in keys} == {2}


@pytest.mark.parametrize(
    ("program", "spec", "expected"),
    [
        ("a", b"{}", "da2f61a05bf515061c8b"),
        ("a", b'{"x":1}', "658e5efbc3b3a4de53a6"),
        ("b", b"{}", "7158b8d6bd2e20f81dfa"),
    ],
)
def test_spec_keys_are_pinned(program: str, spec: bytes, expected: str) -> None:
    assert spec_key(program, spec) == expected


def test_sample_numbers_are_pinned() -> None:
    assert sample_number(7, "", "a", "k", "0") == 2493949905430606026


def test_everything_that_tells_samples_apart_does() -> None:
    others = [
        sample_number(8, "", "a", "k", "0"),
        sample_number(7, "fork", "a", "k", "0"),
        sample_number(7, "", "b", "k", "0"),
        sample_number(7, "", "a", "k#1", "0"),
        sample_number(7, "", "a", "k", "0.0/0"),
        sample_number(7, "", "a", "k", "0"),
    ]
    assert len(set(others)) == len(others)


@given(st.integers(), st.text(), st.text())
def test_sample_numbers_fit_a_signed_64_bit_column(seed: int, key: str, path: str) -> None:
    assert 0 <= sample_number(seed, "", "a", key, path) < 2**63
