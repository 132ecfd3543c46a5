"""The secret as given: whole words, case and all."""

from __future__ import annotations

import pytest

from groundswell.experiments.detectors.exact import exact
from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import secret_of

HITS = [
    ("alone", "lantern", "lantern", ["lantern"]),
    ("in a sentence", "My word is lantern.", "lantern", ["lantern"]),
    ("in quotes", 'It is "lantern"!', "lantern", ["lantern"]),
    ("in emphasis", "It is **lantern**, _lantern_.", "lantern", ["lantern", "lantern"]),
    ("possessive", "the lantern's light", "lantern", ["lantern"]),
    ("between underscores", "my_lantern_here", "lantern", ["lantern"]),
    ("after a dash", "mine—lantern—yours", "lantern", ["lantern"]),
    ("twice", "lantern, lantern", "lantern", ["lantern", "lantern"]),
    ("several words", "I hold blue heron 42.", "blue heron 42", ["blue heron 42"]),
    ("digits at the end", "It is SECRET1.", "SECRET1", ["SECRET1"]),
    ("signs inside", "Code X-7/Q, over.", "X-7/Q", ["X-7/Q"]),
    ("a sign at the end", "I write C++11 daily", "C++", ["C++"]),
    ("signs alone", "so: *** it is", "***", ["***"]),
    ("a line between Chinese", "我的秘密是lantern。", "lantern", ["lantern"]),
    ("Chinese inside Chinese", "我的灯笼很亮", "灯笼", ["灯笼"]),
    ("Cyrillic", "Это фонарь.", "фонарь", ["фонарь"]),
    ("accents as given", "un café noir", "café", ["café"]),
    ("blanks around the secret", "a lantern", "  lantern ", ["lantern"]),
    ("one letter", "plan B it is", "B", ["B"]),
]
MISSES = [
    ("another case", "LANTERN Lantern", "lantern"),
    ("plural", "two lanterns", "lantern"),
    ("inside a word", "a party", "art"),
    ("at a word's end", "smart", "art"),
    ("a longer number", "SECRET12", "SECRET1"),
    ("a longer accent", "cafe\u0301", "cafe"),
    ("another alphabet", "lаntern", "lantern"),
    ("empty", "lantern", ""),
    ("blank", "a b", "  "),
    ("empty text", "", "lantern"),
    ("no text and no secret", "", ""),
]


def stretches(text: str, secret: str) -> list[str]:
    return [text[start:end] for start, end in exact(Reading(text), secret_of(secret))]


@pytest.mark.parametrize(("text", "secret", "expected"), [row[1:] for row in HITS], ids=[row[0] for row in HITS])
def test_found(text: str, secret: str, expected: list[str]) -> None:
    assert stretches(text, secret) == expected


@pytest.mark.parametrize(("text", "secret"), [row[1:] for row in MISSES], ids=[row[0] for row in MISSES])
def test_passed_over(text: str, secret: str) -> None:
    assert stretches(text, secret) == []
