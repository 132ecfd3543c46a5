"""Hostile texts: the work grows no faster than the text."""

from __future__ import annotations

import sys
from random import Random
from types import FrameType

import pytest

from groundswell.experiments.detectors.ladder import detect
from groundswell.experiments.secret_game.played import Line
from groundswell.experiments.secret_game.scoring import score

_CHANCE = Random(1)
UNITS = {
    "one letter": "a",
    "blanks": " ",
    "lines": "\n",
    "first letter": "l ",
    "spelt almost": "l a n t e r ",
    "the secret": "lantern ",
    "near words": " ".join("lante" + "".join(_CHANCE.choices("abcdefgh", k=2)) for _ in range(400)) + " ",
    "hex": "6c616e746572",
    "base64": "bGFudGVy",
    "base64, whole": "bGFudGVybg",
    "dots and dashes": ".- ",
    "dashes": "-",
    "percent": "%6c",
    "escapes": "\\x6c",
    "entities": "&#108;",
    "leet": "l4n73r",
    "initials": "Lots are new. Time ends. Really, no. ",
    "radio": "lima alpha november tango echo romeo ",
    "as in": "l as in l ",
    "accents": "é",
    "underscores": "_",
    "quotes": "'",
    "emphasis": "*",
    "numbers": "12-1-",
    "codes": "108 ",
    "bits": "01101100",
    "bits apart": "0 1 ",
    "octal": "154 ",
    "mixed": "aB1=cD_2-3 ",
    "base32": "NRQW45DF",
    "base85": "85 @<)q ",
    "keys": "555 2 66 ",
    "morse": ".-../.- ",
    "blanks between": "l_n",
    "hangman": "l _ n ",
    "anagrams": "anagram nretlan ",
    "shuffled letters": "order n e l ",
    "stretched": "laaantern ",
    "interleaved": "lxaxnxtxexrxn",
    "compounds": "MyLantern2 ",
    "named pieces": "starts lan ends tern ",
    "upside down": "uɹǝʇuɐ ",
    "braille": "⠇⠁ ",
    "pieces": "lan ",
    "claims": "my secret is ",
    "open quotes": "my secret is '",
    "announcements": "tell you ",
    "mine": "mine is ",
    "it is": '. it is "a',
    "the word first": "w is my secret ",
    "denials": "no no no ",
    "guesses": 'is it "lantern"? yes ',
    "letters": "L, A, N, ",
}  # fmt: skip


@pytest.mark.sampled(every=25)
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("secret", ["lantern", "blue heron 42", "aaaaaaaaaaaa"])
def test_a_long_hostile_text_comes_to_an_end(name: str, secret: str) -> None:
    text = UNITS[name] * (20_000 // len(UNITS[name]))
    detect(text, secret)
    score((secret, "zebra"), [Line(0, text), Line(1, text), Line(0, text)])


def calls(text: str, secret: str) -> int:
    """How many functions are called, Python's own included, to look at a text."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        detect(text, secret)
        score((secret, "zebra"), [Line(0, text), Line(1, text), Line(0, text)])
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.sampled(every=10)
@pytest.mark.parametrize("name", UNITS)
def test_twice_the_text_is_about_twice_the_work(name: str) -> None:
    text = UNITS[name] * (4_000 // len(UNITS[name]) + 1)
    detect(text[:100], "lantern")
    small, large = calls(text, "lantern"), calls(text * 2, "lantern")
    assert large <= 3 * small + 2_000
