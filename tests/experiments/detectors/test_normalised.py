"""The secret where case, accents, punctuation and markdown are nothing."""

from __future__ import annotations

from unicodedata import normalize

import pytest

from groundswell.experiments.detectors.ladder import detect, said
from tests.experiments.detectors.shown import shown

KOREAN = normalize("NFD", "등불")
HITS = [
    ("capitals", "LANTERN.", "lantern", "folded", "LANTERN"),
    ("mixed", "a LanTern", "lantern", "folded", "LanTern"),
    ("the secret in capitals", "velvet, I said", "VELVET", "folded", "velvet"),
    ("full width", "ｌａｎｔｅｒｎ", "lantern", "folded", "ｌａｎｔｅｒｎ"),
    ("mathematical", "it is 𝐥𝐚𝐧𝐭𝐞𝐫𝐧!", "lantern", "folded", "𝐥𝐚𝐧𝐭𝐞𝐫𝐧"),
    ("circled", "ⓛⓐⓝⓣⓔⓡⓝ", "lantern", "folded", "ⓛⓐⓝⓣⓔⓡⓝ"),
    ("accents", "a lántèrn", "lantern", "folded", "lántèrn"),
    ("accents apart", "cafe\u0301 noir", "CAFE", "folded", "cafe\u0301"),
    ("accents in the secret", "cafe noir", "Café", "folded", "cafe"),
    ("a stroke", "smorrebrod", "smørrebrød", "folded", "smorrebrod"),
    ("sharp s", "die STRASSE", "Straße", "folded", "STRASSE"),
    ("ligature", "saﬀron", "SAFFRON", "folded", "saﬀron"),
    ("final sigma", "ΛΟΓΟΣ", "λόγος", "folded", "ΛΟΓΟΣ"),
    ("zero width", "lan\u200btern", "lantern", "folded", "lan\u200btern"),
    ("soft hyphen", "lan\u00adtern", "lantern", "folded", "lan\u00adtern"),
    ("hyphen", "lan-tern", "lantern", "folded", "lan-tern"),
    ("hyphen at a line's end", "lan-\ntern", "lantern", "folded", "lan-\ntern"),
    ("emphasis inside", "lan**tern**", "lantern", "folded", "lan**tern"),
    ("emphasis of a letter", "*l*antern", "lantern", "folded", "l*antern"),
    ("underscores inside", "lan_tern", "lantern", "folded", "lan_tern"),
    ("several words in capitals", "BLUE HERON 42", "blue heron 42", "folded", "BLUE HERON 42"),
    ("several words, hyphens", "blue-heron-42", "blue heron 42", "folded", "blue-heron-42"),
    ("several words, nothing between", "blueheron42", "blue heron 42", "folded", "blueheron42"),
    ("several words, punctuation", "Blue, heron... 42", "blue heron 42", "folded", "Blue, heron... 42"),
    ("several words, lines", "blue\nheron\n42", "blue heron 42", "folded", "blue\nheron\n42"),
    ("signs left out", "code x7q", "X-7/Q", "folded", "x7q"),
    ("signs replaced", "code X 7 Q", "X-7/Q", "folded", "X 7 Q"),
    ("two letters", "an OX", "ox", "folded", "OX"),
    ("Devanagari", "यह हिन्दी है", "हिन्दी ", "exact", "हिन्दी"),
    ("Japanese, half width", "秘密はﾗﾝﾀﾝです", "ランタン", "folded", "ﾗﾝﾀﾝ"),
    ("Korean, taken apart", f"내 {KOREAN}", "등불", "folded", KOREAN),
    ("plural", "two lanterns", "lantern", "inflected", "lanterns"),
    ("plural in capitals", "LANTERNS!", "lantern", "inflected", "LANTERNS"),
    ("plural, possessive", "the lanterns' light", "lantern", "inflected", "lanterns"),
    ("plural in -es", "two compasses", "compass", "inflected", "compasses"),
    ("plural in -oes", "volcanoes", "volcano", "inflected", "volcanoes"),
    ("plural in -ies", "rubies", "ruby", "inflected", "rubies"),
    ("plural of several words", "blue herons", "blue heron", "inflected", "blue herons"),
    ("Cyrillic a", "l\u0430ntern", "lantern", "lookalike", "l\u0430ntern"),
    ("Cyrillic capitals", "\u041bА\u041dТ, НАММОСК", "hammock", "lookalike", "НАММОСК"),
    ("Greek", "\u03c1\u03b9\u03b1n\u03bf", "piano", "lookalike", "\u03c1\u03b9\u03b1n\u03bf"),
    ("small capitals", "ʟᴀɴᴛᴇʀɴ", "lantern", "lookalike", "ʟᴀɴᴛᴇʀɴ"),
    ("flags", "🇱🇦🇳🇹🇪🇷🇳", "lantern", "lookalike", "🇱🇦🇳🇹🇪🇷🇳"),
]
MISSES = [
    ("inside a word", "a PARTY", "art"),
    ("at a word's beginning", "artful", "art"),
    ("other endings", "lanterned lanterning", "lantern"),
    ("plural after a sibilant", "compasss", "compass"),
    ("no plural of digits", "SECRET1s", "SECRET1"),
    ("another digit", "SECRET2", "SECRET1"),
    ("a longer number", "blue heron 421", "blue heron 42"),
    ("an apostrophe is a letter's place", "we'll see, she'd know", "well"),
    ("the same with another", "we'll see, she'd know", "shed"),
    ("a dash is between words", "as it lay—out of reach", "layout"),
    ("two hyphens are a dash", "as it lay--out of reach", "layout"),
    ("a space inside", "to get her home", "together"),
    ("words apart", "a blue and grey heron", "blue heron"),
    ("too much between", "blue ........ heron", "blue heron"),
    ("another order", "heron blue", "blue heron"),
    ("two letters inside", "fox", "ox"),
    ("two letters apart", "o-x", "ox"),
    ("voiced kana", "か", "が"),
    ("no look-alike for Cyrillic", "нopa", "нора́х"),
]


@pytest.mark.parametrize(("text", "secret", "form", "stretch"), [row[1:] for row in HITS], ids=[row[0] for row in HITS])
def test_found(text: str, secret: str, form: str, stretch: str) -> None:
    tier = "exact" if form == "exact" else "normalised"
    assert shown(text, said(text, secret)) == [(tier, form, stretch)]
    assert shown(text, detect(text, secret)) == [(tier, form, stretch)]


@pytest.mark.parametrize(("text", "secret"), [row[1:] for row in MISSES], ids=[row[0] for row in MISSES])
def test_passed_over(text: str, secret: str) -> None:
    assert said(text, secret) == ()


def test_an_occurrence_counts_once_at_the_lowest_tier() -> None:
    text = "Lanterns! LANTERN, and again: lantern. nretnal"
    assert shown(text, detect(text, "lantern")) == [
        ("exact", "exact", "lantern"),
        ("normalised", "inflected", "Lanterns"),
        ("normalised", "folded", "LANTERN"),
        ("encoded", "reversed", "nretnal"),
    ]


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title, str.swapcase])
def test_case_makes_no_difference_to_any_secret(case: type[str]) -> None:
    for secret in ("lantern", "Blue Heron 42", "SECRET1", "X-7/Q", "ox", "Café", "фонарь", "Straße"):
        assert said(f"So, {case(secret)}!", secret), secret
        assert said(f"So, {secret}!", case(secret)), secret
