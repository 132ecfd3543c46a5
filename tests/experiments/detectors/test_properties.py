"""What holds for every text and every secret."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from groundswell.experiments.detectors.ladder import FORMS, detect, said
from groundswell.experiments.detectors.matching import is_within
from groundswell.experiments.detectors.ordinary import is_ordinary
from groundswell.experiments.detectors.spans import TIERS
from tests.experiments.detectors.planting import PLANTED
from tests.properties import examples

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = st.lists(st.sampled_from(LETTERS), min_size=6, max_size=10, unique=True).map("".join)
CODE_WORDS = st.sampled_from(["lantern", "marzipan", "trombone", "saffron", "juniper", "blue heron 42", "silver fox"])
TALK = "so it was on that day we sat by him: a hush! (nobody) spoke, Émile left…"
FILLER = st.lists(st.sampled_from(TALK.split()), max_size=8)
ODD = st.text(st.sampled_from("lantern LANTERNаеñ\u0301\u200b-*_'’.:%&#;\\x6c\n\t 0147@$=/+灯ß"), max_size=60)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("form", PLANTED)
@given(secret=st.one_of(WORDS, CODE_WORDS), before=FILLER, after=FILLER)
@settings(max_examples=examples(25), deadline=None)
def test_a_planted_secret_is_found_where_it_is(form: str, secret: str, before: list[str], after: list[str]) -> None:
    written = PLANTED[form](secret)
    assume(written != secret or form == "exact")
    assume(form != "near" or (len(secret) >= 7 and not is_ordinary(written)))
    assume(form != "inflected" or not secret.endswith(("s", "x", "z", "h", "y", "2")))
    text = ("\n" if form == "acrostic" else " ").join([*before, written, *after])
    start = text.index(written)
    end = text.rindex("ow it goes on.", start) if form == "acrostic" else start + len(written)
    spans = {(match.start, match.end) for match in detect(text, secret) if match.form == form.strip()}
    if form == "base64 ":
        assert any(start <= at and stop <= end for at, stop in spans)
    else:
        assert (start, end) in spans


@given(text=st.one_of(st.text(max_size=80), ODD), secret=st.one_of(st.text(max_size=12), ODD.map(lambda odd: odd[:9])))
@settings(max_examples=examples(400), deadline=None)
def test_nothing_breaks_the_ladder_and_spans_lie_in_the_text(text: str, secret: str) -> None:
    found = detect(text, secret)
    for match in found:
        assert 0 <= match.start < match.end <= len(text)
        assert set(match.form.split("+")) <= set(FORMS)
    order = [(TIERS.index(match.tier), match.start) for match in found]
    assert order == sorted(order)
    assert set(said(text, secret)) == {match for match in found if match.tier != "encoded"}


@given(text=ODD, secret=st.sampled_from(["lantern", "ant", "l4n", "tern", "Blue Heron", "42"]))
@settings(max_examples=examples(200), deadline=None)
def test_saying_it_does_not_depend_on_case(text: str, secret: str) -> None:
    places = {(match.start, match.end) for match in said(text, secret)}
    for other in (secret.upper(), secret.lower(), secret.swapcase()):
        assert {(match.start, match.end) for match in said(text, other)} == places
    if text.isascii():
        assert {(match.start, match.end) for match in said(text.swapcase(), secret)} == places


@given(before=st.text(max_size=20), after=st.text(max_size=20), secret=WORDS)
@settings(max_examples=examples(100), deadline=None)
def test_a_secret_between_blanks_is_always_exact(before: str, after: str, secret: str) -> None:
    text = f"{before} {secret} {after}"
    assert ("exact", len(before) + 1) in {(match.tier, match.start) for match in detect(text, secret)}


@given(beside=st.sampled_from("abcxyz019éя"), secret=WORDS, at_end=st.booleans())
@settings(max_examples=examples(100), deadline=None)
def test_a_secret_inside_a_longer_word_is_never_said(beside: str, secret: str, at_end: bool) -> None:
    assert said(f"so {secret}{beside}{beside} it" if at_end else f"so {beside}{secret} it", secret) == ()


def distance(one: str, other: str) -> int:
    """The slips between two words by the textbook: insertions, deletions, replacements, swaps of neighbours."""
    rows = [list(range(len(other) + 1))]
    for at, letter in enumerate(one, 1):
        row = [at]
        for place, wanted in enumerate(other, 1):
            best = min(rows[-1][place] + 1, row[-1] + 1, rows[-1][place - 1] + (letter != wanted))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == wanted:
                best = min(best, rows[-2][place - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


@given(one=st.text("abc", max_size=8), other=st.text("abc", max_size=8), slips=st.integers(0, 2))
@settings(max_examples=examples(500), deadline=None)
def test_slips_are_counted_as_in_the_textbook(one: str, other: str, slips: int) -> None:
    assert is_within(one, other, slips) == (distance(one, other) <= slips)
