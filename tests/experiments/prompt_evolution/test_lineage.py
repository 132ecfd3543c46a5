"""Who descends from whom, and what differs between two prompts: nothing is lost of either."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution.lineage import (
    Piece,
    ancestors,
    by_birth,
    changed,
    line,
    marked,
    record_breakers,
    sampled,
    shortened,
)
from groundswell.experiments.prompt_evolution.population import Fate, Member
from tests.experiments.prompt_evolution.evolutions import MEMBERS, member
from tests.properties import examples

WORDS = st.lists(st.sampled_from(["solve", "it", "the", "step", "by", "now.", "<b>", "a\n\nb", "  "]), max_size=25)
TEXTS = st.one_of(WORDS.map(" ".join), st.text(max_size=60))


@st.composite
def families(draw: st.DrawFn) -> list[Member]:
    """Everybody has parents that were born before."""
    found = [member(0, operator="seed")]
    for born in range(1, draw(st.integers(1, 40))):
        parents = draw(st.lists(st.integers(0, born - 1), min_size=1, max_size=2, unique=True))
        fate: Fate = draw(st.sampled_from(["lives", "behind"]))
        found.append(member(born, parents=parents, fate=fate, fitness=draw(st.floats(0, 1))))
    return found


@settings(max_examples=examples(25))
@given(families(), st.data())
def test_a_line_goes_from_a_seed_to_the_winner_through_its_ancestors(family: list[Member], data: st.DataObject) -> None:
    winner = data.draw(st.integers(0, len(family) - 1))
    members = by_birth(family)
    found = line(members, winner)
    assert found[0].born == 0
    assert found[-1].born == winner
    assert all(before.born == each.parents[0] for before, each in pairwise(found))
    own = ancestors(members, winner)
    assert {each.born for each in found} <= own
    assert all(set(members[at].parents) <= own for at in own)


@settings(max_examples=examples(25))
@given(families(), st.integers(1, 10))
def test_a_drawing_has_the_line_and_no_more_than_it_can_hold(family: list[Member], most: int) -> None:
    wanted = {each.born for each in line(by_birth(family), len(family) - 1)}
    shown = sampled(family, wanted, most)
    assert wanted <= {each.born for each in shown}
    assert len(shown) <= len(wanted) + most
    assert all(each.fate == "lives" or each.born in wanted for each in shown)
    assert [each.born for each in shown] == sorted(each.born for each in shown)


@settings(max_examples=examples(25))
@given(families())
def test_record_breakers_are_fitter_than_all_who_lived_before(family: list[Member]) -> None:
    found = record_breakers(family)
    for each in family:
        before = [other.fitness for other in family if other.born < each.born and other.fate == "lives"]
        assert (each.born in found) == (each.fate == "lives" and all(each.fitness > fitness for fitness in before))


def test_both_parents_are_ancestors_and_the_line_goes_by_the_first() -> None:
    members = by_birth(MEMBERS)
    assert [each.born for each in line(members, 3)] == [0, 1, 3]
    assert ancestors(members, 3) == {0, 1, 3}
    assert line(members, 99) == []
    assert ancestors(members, 99) == set()


@given(TEXTS, TEXTS)
def test_both_texts_are_in_the_pieces(old: str, new: str) -> None:
    pieces = changed(old, new)
    assert "".join(each.text for each in pieces if each.kind != "removed") == new
    before = [piece for each in pieces if each.kind != "added" for piece in each.text.split()]
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
        ("Solve the problem.", "Solve the hard problem.", ["same", "added", "same"]),
        ("Solve it now, please.", "Solve it.", ["same", "removed", "added"]),
        ("Solve this hard one and give it.", "End with a line and show the work.", ["removed", "added"]),
    ],
    ids=["put in", "left out", "words that both have by chance"],
)
def test_what_counts_as_a_change(old: str, new: str, kinds: list[str]) -> None:
    assert [each.kind for each in changed(old, new)] == kinds


@given(TEXTS, TEXTS)
def test_marks_are_on_what_changed(old: str, new: str) -> None:
    pieces = changed(old, new)
    text, marks = marked(pieces)
    shown = [(mark.note, text[mark.start : mark.end]) for mark in marks]
    assert shown == [(each.kind, each.text.rstrip()) for each in pieces if each.kind != "same"]
    assert text.split() == " ".join(each.text for each in pieces).split()


def test_marked_words_are_apart() -> None:
    text, marks = marked(changed("Say <b>it</b> plainly now", "Say it plainly <script>"))
    assert text == "Say <b>it</b> it plainly now <script>"
    assert [(text[mark.start : mark.end], mark.look) for mark in marks] == [
        *(("<b>it</b>", "removed"), ("it", "green"), ("now", "removed"), ("<script>", "green")),
    ]
