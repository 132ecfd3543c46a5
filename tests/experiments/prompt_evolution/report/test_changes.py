"""What differs between two prompts: nothing is lost of either, and nothing in them becomes markup."""

from __future__ import annotations

from html import unescape
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution.report.changes import Piece, changed, marked, shortened

WORDS = st.lists(st.sampled_from(["solve", "it", "the", "step", "by", "now.", "<b>", "a\n\nb", "  "]), max_size=25)
TEXTS = st.one_of(WORDS.map(" ".join), st.text(max_size=60))


@given(TEXTS, TEXTS)
def test_both_texts_are_in_the_pieces(old: str, new: str) -> None:
    pieces = changed(old, new)
    assert "".join(each.text for each in pieces if each.kind != "gone") == new
    before = [piece for each in pieces if each.kind != "new" for piece in each.text.split()]
    assert before == old.split()
    assert all(one.kind != other.kind for one, other in pairwise(pieces))


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert changed(text, text) == ([Piece("same", text)] if text else [])


@given(TEXTS, TEXTS)
def test_what_changed_stays_when_the_rest_is_shortened(old: str, new: str) -> None:
    pieces = changed(old, new)
    short = shortened(pieces, around=2)
    assert [each for each in short if each.kind != "same"] == [each for each in pieces if each.kind != "same"]
    assert all(len(each.text.split()) <= 5 for each in short if each.kind == "same")


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("Solve the problem.", "Solve the hard problem.", ["same", "new", "same"]),
        ("Solve it now, please.", "Solve it.", ["same", "gone", "new"]),
        ("Solve this hard one and give it.", "End with a line and show the work.", ["gone", "new"]),
    ],
    ids=["put in", "left out", "words that both have by chance"],
)
def test_what_counts_as_a_change(old: str, new: str, kinds: list[str]) -> None:
    assert [each.kind for each in changed(old, new)] == kinds


def test_marks_and_text() -> None:
    pieces = changed("Say <b>it</b> plainly now", "Say it plainly <script>")
    html = marked(pieces)
    assert html == "Say <del>&lt;b&gt;it&lt;/b&gt;</del> <ins>it</ins> plainly <del>now</del> <ins>&lt;script&gt;</ins>"
    assert unescape(marked(pieces, without="gone").replace("<ins>", "").replace("</ins>", "")) == (
        "Say it plainly <script>"
    )
