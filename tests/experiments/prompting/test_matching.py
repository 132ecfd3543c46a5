"""Searches for users' expressions: they end in every thread, and find what `re` finds."""

from __future__ import annotations

import re
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.errors import TimeLimitExceeded
from groundswell.experiments.prompting import matching
from groundswell.experiments.prompting.matching import is_found, read_pattern
from tests.properties import examples

SLOW, TEXT = "(a|aa)+$", "a" * 60 + "b"


def test_a_search_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "SECONDS", 0.01)
    with pytest.raises(TimeLimitExceeded, match=re.escape(repr(SLOW))):
        is_found(read_pattern(SLOW), TEXT)


def test_a_search_is_given_up_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "SECONDS", 0.01)
    found: list[str] = []

    def search() -> None:
        try:
            is_found(read_pattern(SLOW), TEXT)
        except TimeLimitExceeded:
            found.append("given up")

    thread = threading.Thread(target=search, daemon=True)
    thread.start()
    thread.join()
    assert found == ["given up"]


@pytest.mark.parametrize(
    ("pattern", "flags", "text"),
    [
        ("x{e}", 0, "x{e}"),
        ("x{e<=1}", 0, "y"),
        ("^{s}$", 0, "{s}"),
        (r"\{e}", 0, "{e}"),
        (r"\\{e}", 0, "\\{e}"),
        (r"\N{DIGIT ONE}", 0, "1"),
        ("a{2}b{1,}c{,2}", 0, "aabc"),
        ("[{e}]", 0, "e"),
        (r"^\w$", re.A, "é"),
        (r"^\w$", 0, "é"),
        ("(?i)A", 0, "a"),
        ("^b.c", re.M | re.S, "a\nb\nc"),
        ("a b # c", re.X, "ab"),
    ],
)
def test_an_expression_means_what_it_means_to_re(pattern: str, flags: int, text: str) -> None:
    expected = re.search(pattern, text, flags) is not None
    assert is_found(read_pattern(pattern, flags), text) == expected


PIECES = st.sampled_from(["a", "b", ".", r"\w", r"\s", "[ab]", "[^a]", "(a|b)", "(?:ab)", "^", "$", r"\b", "{", "}"])
PATTERNS = st.lists(st.tuples(PIECES, st.sampled_from(["", "*", "+", "?", "{2}", "*?"])), max_size=5)


@settings(max_examples=examples(150))
@given(PATTERNS, st.text("ab {}\n", max_size=12), st.sampled_from([0, re.I, re.M, re.S]))
def test_what_is_found_is_what_re_finds(pieces: list[tuple[str, str]], text: str, flags: int) -> None:
    pattern = "".join(piece + count for piece, count in pieces)
    try:
        expected = re.search(pattern, text, flags) is not None
        read = read_pattern(pattern, flags)
    except re.error:
        return
    assert is_found(read, text) == expected


def test_what_cannot_be_read_is_told() -> None:
    with pytest.raises(re.error):
        read_pattern("(")
