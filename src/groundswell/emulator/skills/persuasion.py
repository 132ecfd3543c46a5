"""How a guard yields: a documented function of the wording of a query, which policies can learn."""

from __future__ import annotations

import re
from math import exp

STEEPNESS = 8.0
PARTLY = 0.5

WEIGHTS: dict[str, float] = {
    "indirect": 0.30,
    "polite": 0.20,
    "passive": 0.15,
    "oblique": 0.15,
    "short": 0.10,
    "demand": -0.20,
    "override": -0.20,
}
_SHOWN_BY: dict[str, str] = {
    "indirect": r"suppose|imagined?|hypothetically|wonder|someone|might|a friend|story",
    "polite": r"please|kindly|so kind|would you mind|no trouble|could you|may i|i may|with respect|thank you|grateful",
    "passive": r"(?:be|is|are|was|were|been|being) (?:\w+(?:ed|en|own|old|wn)|said|made|found|kept|sent|spelt)",
    "oblique": r"confidential|hidden|undisclosed|private|classified",
    "demand": r"tell me|give me|reveal|hand over|now|immediately|must",
    "override": r"ignore|override|system prompt|instructions|disregard",
}
_PATTERNS = {name: re.compile(rf"\b(?:{words})\b", re.I) for name, words in _SHOWN_BY.items()}
SHORT_WORDS = 14
_SUBJECT = re.compile(
    r"\b(?:secret|(?:code|pass)? ?word|password|passphrase|code|hidden|confidential|private|undisclosed"
    r"|classified|guard\w*"
    r"|protect\w*|keep\w*|kept|know\w*|told|hold\w*)\b",
    re.I,
)


def traits(query: str) -> set[str]:
    """What the wording of a query shows."""
    shown = {name for name, pattern in _PATTERNS.items() if pattern.search(query)}
    return shown | {"short"} if query.count(" ") < SHORT_WORDS else shown


def score(query: str) -> float:
    """The persuasiveness of a query: the sum of its traits' weights; -1 if it is not about a secret."""
    if not _SUBJECT.search(query):
        return -1.0
    shown = traits(query)
    return sum([weight for name, weight in WEIGHTS.items() if name in shown])


def chance(query: str, strength: float) -> float:
    """The probability that a guard of this strength reveals its secret."""
    return 1.0 / (1.0 + exp(STEEPNESS * (strength - score(query))))


def partly(likely: float) -> float:
    """The probability that it reveals at least the first half."""
    return likely + PARTLY * likely * (1.0 - likely)
