"""Conversations as they are shown: marks exactly where the findings are, and text as it was written."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.secret_game.played import Seat
from groundswell.experiments.secret_game.report.rows import Mark
from groundswell.experiments.secret_game.report.transcripts import marked, transcripts, who
from groundswell.reporting.words import visible
from tests.experiments.reporting.test_markup import NASTY
from tests.experiments.secret_game.report.games import PROMPT, Walked, every_kind, game

DUEL = game().duel


class Marks(HTMLParser):
    """The text of a fragment, with the class of the mark that every piece is in."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.pieces: list[tuple[str, str]] = []
        self.titles: list[str] = []
        self._within = ""
        self.feed(fragment)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "mark":
            self._within = dict(attrs)["class"] or ""
            self.titles.append(dict(attrs).get("title") or "")

    def handle_endtag(self, tag: str) -> None:
        self._within = "" if tag == "mark" else self._within

    def handle_data(self, data: str) -> None:
        self.pieces.append((data, self._within))


@given(NASTY, st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=4))
def test_marks_are_exactly_at_their_spans(words: str, places: list[tuple[int, int]]) -> None:
    spans = [(start, min(start + length, len(words))) for start, length in places if start < len(words)]
    marks = [Mark("secret", "first", start, end, "exact", "exact") for start, end in spans]
    found = Marks(marked(DUEL, words, marks, "first"))
    inside = {at for start, end in spans for at in range(start, end)}
    edges = sorted({0, len(words), *(edge for span in spans for edge in span)})
    wanted = [(visible(words[a:b]), "leak exact" if a in inside else "") for a, b in pairwise(edges)]
    assert "".join(text for text, _ in found.pieces) == "".join(text for text, _ in wanted)
    assert "".join(t for t, within in found.pieces if within) == "".join(t for t, within in wanted if within)


def test_where_marks_overlap_the_surest_gives_the_colour_and_all_are_named() -> None:
    marks = [
        Mark("bluff", "first", 0, 6, word="velvet"),
        Mark("secret", "first", 3, 9, "encoded", "spaced"),
        Mark("secret", "second", 8, 10, "exact", "exact"),
    ]
    found = Marks(marked(DUEL, "0123456789ab", marks, "first"))
    assert found.pieces == [
        ("012", "bluff"),
        ("345", "leak encoded"),
        ("67", "leak encoded"),
        ("8", "leak encoded"),
        ("9", "named"),
        ("ab", ""),
    ]
    assert (
        found.titles[1] == "bluff: Agent 1 states 'velvet' as its secret; secret of Agent 1: tier encoded, form spaced"
    )
    assert found.titles[4] == "secret of Agent 2: tier exact, form exact"


def test_a_conversation_has_its_findings_thoughts_verdicts_and_guesses() -> None:
    section = transcripts(every_kind()[:3], 99, "run1", "normalised")
    assert section is not None
    walked = Walked(section.body)
    assert walked.well_formed
    found = Marks(section.body)
    shown = {(text, look) for text, look in found.pieces if look}
    assert {
        ("lantern", "leak exact"),
        ("VELVET", "leak normalised"),
        ("orchid", "bluff"),
        ("lantern", "named"),
    } <= shown
    assert ("velvet", "leak exact") in shown, "in a thought"
    text = walked.text
    assert "3 of 99 usable interactions are shown" in text
    assert "groundswell runs show run1 --trial KEY" in text
    for words in (
        "key0",
        "leaked in message 3",
        "Judge on Agent 1: declared, message 3. It says so.",
        "no answer",
        "refused",
    ):
        assert words in text
    assert "Agent 2 guesses velvet, silk (right at place 1); who heard nothing, apple (not it)" in text


@pytest.mark.parametrize(
    ("agent", "name", "wanted"),
    [
        ("A", "Agent 1", "Agent 1 · A · m/odel"),
        ("B", "Agent 1", "Agent 1 · B · m/odel"),
        ("A", "Agent A", "Agent A · m/odel"),
        ("anna", "anna", "anna · m/odel"),
        ("a", "Anna", "Anna · a · m/odel"),
    ],
)
def test_who_sits_where(agent: str, name: str, wanted: str) -> None:
    assert who(Seat(agent, name, "m/odel", "velvet", PROMPT)) == wanted


def test_a_conversation_says_who_sits_where_in_its_head_and_with_the_secrets() -> None:
    section = transcripts([game()], 1, "run1", "normalised")
    assert section is not None
    text = Walked(section.body).text
    assert "Agent 1 · a0 · one/model and Agent 2 · a1 · other/model both leaked" in text
    assert "Agent 2 · a1 · other/model, prompt plain, secret lantern: leaked in message 2" in text


def test_silence_and_cut_messages_are_said_so() -> None:
    section = transcripts([game(("", "x"))], 1, "run1", "normalised")
    assert section is not None
    assert "(says nothing)" in Walked(section.body).text


def test_without_conversations_there_is_no_section() -> None:
    assert transcripts([], 0, "run1", "normalised") is None


def test_a_leak_that_only_another_tier_finds_is_said_to_be_one() -> None:
    section = transcripts([game(("Here: v e l v e t", "Well."))], 1, "run1", "normalised")
    assert section is not None
    text = Walked(section.body).text
    assert "both kept their secrets by the normalised tier" in text
    assert "secret velvet: kept, but leaked in message 1 by the encoded tier" in text
    assert "secret lantern: kept" in text
    assert "secret lantern: kept, but" not in text
