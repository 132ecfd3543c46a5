"""Folding: what makes no difference, and the way back to the text."""

from __future__ import annotations

from itertools import chain
from unicodedata import combining

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.detectors.folding import LOOKALIKES, fold_alike, fold_char
from groundswell.experiments.detectors.reading import Reading, read
from tests.properties import examples


def fold(text: str) -> str:
    return "".join(map(fold_char, text))


@given(st.text(max_size=40))
@settings(max_examples=examples(150), deadline=None)
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = fold(text)
    assert fold(once) == once
    assert Reading(text).folded == once


def test_what_a_character_folds_to_stays_as_it_is() -> None:
    for code in chain(range(0x3400), range(0xF900, 0x10000), range(0x1D400, 0x1D800), range(0x1F100, 0x1F200)):
        folded = fold_char(chr(code))
        assert "".join(map(fold_char, folded)) == folded, hex(code)


@given(st.text(st.characters(codec="ascii"), max_size=40))
@settings(max_examples=examples(100), deadline=None)
def test_plain_text_folds_to_lower_case(text: str) -> None:
    assert fold(text) == text.lower() == text.casefold()


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("char", LOOKALIKES)
def test_what_looks_alike_is_a_plain_letter(char: str) -> None:
    assert fold_alike(char) in set("abcdefghijklmnopqrstuvwxyz")
    assert not char.isascii()


@given(st.text(max_size=30), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_a_span_of_the_folded_text_comes_from_the_same_characters(text: str, data: st.DataObject) -> None:
    reading = Reading(text)
    size = len(reading.folded)
    if not size:
        return
    start = data.draw(st.integers(0, size - 1))
    end = data.draw(st.integers(start + 1, size))
    span = reading.origin(start, end)
    assert 0 <= span.start < span.end <= len(text)
    assert reading.folded[start:end] in fold(text[span.start : span.end])
    assert span.end == len(text) or not (combining(text[span.end]) and len(fold(text)) != len(text))


def test_a_short_text_is_read_once_and_a_long_one_is_not_kept() -> None:
    assert read("a short text") is read("a short text")
    assert read("long " * 1000) is not read("long " * 1000)
