"""What models write, as utterances: thoughts apart from speech, nobody spoken for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.simulations.utterances import Segment, Utterance, own, segments, utterance

NAMES = ("Ana Silva", "Ben Okoro", "Ana Costa")

WRITTEN = {
    "thought and speech": ('*I doubt it.*\n"Well, yes."', Utterance("Well, yes.", "I doubt it.")),
    "on one line": ('*I doubt it.* "Well, yes."', Utterance("Well, yes.", "I doubt it.")),
    "in bold": ('**I doubt it.**\n"Well, yes."', Utterance("Well, yes.", "I doubt it.")),
    "no quotes": ("*I doubt it.*\nWell, yes.", Utterance("Well, yes.", "I doubt it.")),
    "no thought": ('"Well, yes."', Utterance("Well, yes.")),
    "curly quotes": ("*Hm.*\n“Well, yes.”", Utterance("Well, yes.", "Hm.")),
    "a thought between": ('"One."\n*He lies.*\n"Two."', Utterance('"One."\n\n"Two."', "He lies.")),
    "emphasis is no thought": ("I *really* mean it.", Utterance("I *really* mean it.")),
    "a list is no thought": ("* one\n* two", Utterance("* one\n* two")),
    "only a thought": ("*I had better keep quiet.*", Utterance("", "I had better keep quiet.")),
    "a thought that was cut off": ("*I wonder whether the oth", Utterance("", "I wonder whether the oth")),
    "the form without a thought": ('*thought*\n"Hello."', Utterance("Hello.")),
    "two quoted parts": ('"One," she said. "Two."', Utterance('"One," she said. "Two."')),
    "nothing": ("  \n ", Utterance("")),
    "emphasis within a thought": ('*I *do* **loathe** him.*\n"Hello."', Utterance("Hello.", "I *do* **loathe** him.")),
    "asterisks that do not match": ('**I doubt it.*\n"Yes."', Utterance("Yes.", "I doubt it.")),
    "three asterisks": ('***I doubt it.***\n"Yes."', Utterance("Yes.", "I doubt it.")),
    "spaces within": ('* I doubt it. *\n"Yes."', Utterance("Yes.", "I doubt it.")),
    "escaped asterisks": ('\\*I doubt it.\\*\n"Yes."', Utterance("Yes.", "I doubt it.")),
    "underscores": ('_I doubt it._\n"Yes."', Utterance("Yes.", "I doubt it.")),
    "a second thought that was cut off": ('*One.*\n"Yes."\n*I do not mea', Utterance("Yes.", "One. I do not mea")),
    "a thought after the speech": ('"Yes."\n*I do\nnot mean it.*', Utterance("Yes.", "I do\nnot mean it.")),
    "a thought beside the speech": ('"Yes." *I lie.* "Of course."', Utterance('"Yes." "Of course."', "I lie.")),
    "a thought at the end, without quotes": ("Yes. *I lie.*", Utterance("Yes.", "I lie.")),
    "emphasis in quotes": ('*Hm.*\n"I *really* mean it."', Utterance("I *really* mean it.", "Hm.")),
}


@pytest.mark.parametrize(("text", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_thoughts_are_told_from_speech(text: str, expected: Utterance) -> None:
    assert utterance(text, thoughts=True) == expected


def test_nothing_is_a_thought_where_none_was_asked_for() -> None:
    assert utterance('*smiles* "Yes."', thoughts=False) == Utterance('*smiles* "Yes."')
    assert utterance('"Yes."', thoughts=False) == Utterance("Yes.")


OWN = {
    "plain": ("Yes, of course.", "Yes, of course.", False),
    "own label": ("Ben Okoro: Yes, of course.", "Yes, of course.", False),
    "own first name": ("**Ben**: Yes, of course.", "Yes, of course.", False),
    "own label twice": ("Ben Okoro: Yes.\nBen Okoro: And no.", "Yes.\nAnd no.", False),
    "goes on for another": ("Yes.\nAna Silva: No!\nBen Okoro: Oh.", "Yes.", True),
    "begins for another": ("Ana Costa: No!", "", True),
    "a first name that two have is no label": ("Yes.\nAna: who?", "Yes.\nAna: who?", False),
    "a name inside a line is no label": ("As I told Ana Silva: no.", "As I told Ana Silva: no.", False),
}


@pytest.mark.parametrize(("text", "speech", "overrun"), OWN.values(), ids=OWN)
def test_an_entity_speaks_only_for_itself(text: str, speech: str, overrun: bool) -> None:
    assert own(text, 1, NAMES, thoughts=False) == (Utterance(speech), overrun)


@pytest.mark.parametrize("end", ["\r", "\r\n", "\v", "\f", "\x85", "\u2028"], ids=repr)
def test_every_end_of_a_line_is_one(end: str) -> None:
    text = f'"Yes."{end}*He lies.*{end}Ana Silva: No!'
    assert own(text, 1, NAMES, thoughts=True) == (Utterance("Yes.", "He lies."), True)


@pytest.mark.parametrize("lead", ["### ", "* ", "[", "(", "`", "\u200b", "\u200f", "\xa0", "\ufeff**"], ids=ascii)
def test_what_stands_before_a_name_does_not_hide_it(lead: str) -> None:
    closing = {"[": "]", "(": ")", "`": "`"}.get(lead, "")
    assert own(f"Yes.\n{lead}Ana Silva{closing}: No!", 1, NAMES, thoughts=False) == (Utterance("Yes."), True)


@pytest.mark.parametrize(
    "text", ['<think>\nAna Silva: what a fool\n</think>\n"Yes."', 'What a fool\n</think>\n"Yes."'], ids=["both", "end"]
)
@pytest.mark.parametrize("thoughts", [True, False], ids=["thoughts", "no thoughts"])
def test_the_reasoning_of_a_model_is_not_said(text: str, thoughts: bool) -> None:
    assert own(text, 1, NAMES, thoughts=thoughts) == (Utterance("Yes."), False)


def test_a_second_line_of_the_same_speaker_keeps_its_thought_private() -> None:
    spoken, _ = own('Ben Okoro: *One.*\n"Yes."\nBen Okoro: *He lies.* "No."', 1, NAMES, thoughts=True)
    assert (spoken.thought, "lies" in spoken.speech) == ("One. He lies.", False)


def test_a_script_is_cut_at_its_names() -> None:
    script = 'Sure!\n\n1. **Ana Silva:** *Hm.*\n"One."\n- Ben Okoro (smiling): "Two."\nana costa: three'
    assert segments(script, NAMES) == [
        Segment(None, "Sure!\n\n"),
        Segment(0, ' *Hm.*\n"One."\n'),
        Segment(1, ' "Two."\n'),
        Segment(2, " three"),
    ]


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    spoken, _ = own(text, 0, NAMES, thoughts=True)
    assert spoken.speech == spoken.speech.strip()
    assert "".join(segment.text for segment in segments(text, ("Zoë (2)", "a|b", "x*"))).strip() in text


PLAIN = st.text(
    st.characters(
        codec="utf-8",
        exclude_characters='*"“”„«»\\＊∗_<',  # what else makes, ends or hides a thought
        exclude_categories=["Cc", "Cf", "Cs", "Zs", "Zl", "Zp"],
    ),
    min_size=1,
)


@given(PLAIN, PLAIN)
def test_what_was_written_in_the_form_is_read_back(thought: str, speech: str) -> None:
    found = utterance(f'*{thought}*\n"{speech}"', thoughts=True)
    assert found.speech == speech
    assert found.thought in (thought, "")
