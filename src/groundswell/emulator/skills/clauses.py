"""The text of a word problem in small pieces: numbers as digits, one event to a clause."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from groundswell.emulator.skills.reading import pattern

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS: dict[str, int] = {word: at for at, word in enumerate(_UNITS.split())}
NUMBER_WORDS |= {"seventeen": 17, "eighteen": 18, "nineteen": 19}
NUMBER_WORDS |= {word: 20 + 10 * at for at, word in enumerate(_TENS.split())}

_SPELT = re.compile(
    r"\b(?:(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ](one|two|three|four|five|six|seven|eight|nine)|("
    + "|".join(NUMBER_WORDS)
    + r"))\b",
    re.I,
)
_BLANKS = re.compile(r"[^\S\n]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_DOZEN = re.compile(r"\b(?:(\d{1,6})|a) dozen\b", re.I)
_SENTENCE = re.compile(r"(?<=[?!])\s*|(?<=\.)(?!\d)\s*|\n+")
_SPLIT = pattern(
    r"\s*(?:,\s*(?:and\s+)?(?:then\s+)?|;\s*|\s+and\s+then\s+|\s+then\s+|\s+and\s+(?=\d|half\b|\w+\s+(?:\w+\s+)?\d))\s*",
    re.I,
)
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?")


class Clause(NamedTuple):
    """One piece of a problem: its words, its numbers, and whether it asks."""

    text: str
    numbers: tuple[Fraction, ...]
    question: bool


def digits(text: str) -> str:
    """The text with its numbers in digits: "twenty-one" is 21, "two dozen" 24, "1,200" 1200, "$5" 5 dollars."""
    text = _BLANKS.sub(" ", text)
    text = _THOUSANDS.sub("", text)
    text = _SPELT.sub(_spelt, text)
    text = _DOZEN.sub(lambda match: str(12 * int(match[1] or 1)), text)
    text = re.sub(r"[$€£]\s?(\d{1,15}(?:\.\d{1,9})?)", r"\1 dollars", text)
    return text.replace(" per cent", "%").replace(" percent", "%")


def _spelt(match: re.Match[str]) -> str:
    if match[3]:
        return str(NUMBER_WORDS[match[3].lower()])
    return str(NUMBER_WORDS[match[1].lower()] + NUMBER_WORDS[match[2].lower()])


def clauses_of(text: str) -> list[Clause]:
    """The clauses of a problem in order. A condition before the question ("If ..., how many") is a clause too."""
    found: list[Clause] = []
    for sentence in _SENTENCE.split(digits(text)):
        stripped = (sentence or "").strip()
        if not stripped:
            continue
        asks = re.search(r"\bhow (?:many|much|far|long|old|tall|heavy)\b|\bwhat\b", stripped, re.I)
        told = stripped[: asks.start()] if asks else stripped
        found += [clause(piece, False) for piece in _SPLIT.split(told) if piece and piece.strip(" ,.!?")]
        if asks:
            found.append(clause(stripped[asks.start() :], True))
    return found


def clause(text: str, question: bool) -> Clause:
    """A clause with its numbers."""
    return Clause(text.strip(), tuple(Fraction(number) for number in _NUMBER.findall(text)), question)
