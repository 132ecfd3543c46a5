"""The secret in the NATO alphabet, as `L as in Lima`, or in Morse code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

_RADIO = (
    "alfa|alpha bravo charlie delta echo foxtrot golf hotel india juliett|juliet kilo lima mike november oscar papa"
    " quebec romeo sierra tango uniform victor whiskey|whisky x-?ray|xray yankee zulu"
)
_DIGITS = "zero|0 one|1 two|2 three|3 four|4 five|5 six|6 seven|7 eight|8 nine|niner|9"
RADIO: dict[str, str] = {
    **dict(zip("abcdefghijklmnopqrstuvwxyz", _RADIO.split(), strict=True)),
    **dict(zip("0123456789", _DIGITS.split(), strict=True)),
}
_CODE = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
    " ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----."
)
MORSE: dict[str, str] = dict(zip("abcdefghijklmnopqrstuvwxyz0123456789", _CODE.split(), strict=True))
FEWEST_MORSE = 4
_AS_IN = r"[\W_]{1,3}(?:as in|is for|is as in|for|like in|like)[\W_]{1,3}"
_GAP = r"[\W_]{1,4}(?:(?:and|then)[\W_]{1,3})?"
_DASHES = "-–—−"
_DOTS = ".·•"


def nato(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Consecutive words of the NATO alphabet, with or without their letters."""
    plain = secret.plain
    if len(plain) < FEWEST or not all(letter in RADIO for letter in plain):
        return
    if _is_spoken(reading.folded, plain):
        for match in _radio_pattern(plain).finditer(reading.folded):
            yield reading.origin(*match.span())


def _is_spoken(folded: str, plain: str) -> bool:
    """Whether the text has the first and the last code word, or enough phrases such as `as in`."""
    edges = (RADIO[plain[0]], RADIO[plain[-1]])
    if all(any(word.replace("-?", "-") in folded for word in ways.split("|")) for ways in edges):
        return True
    return sum(map(folded.count, (" as in ", " for ", " like "))) >= len(plain)


@lru_cache(maxsize=8192)
def _radio_pattern(plain: str) -> re.Pattern[str]:
    # A unit is read in one way, as an atomic group: with two ways for each a long secret has too many.
    units = [
        rf"(?>(?:(?:{letter}{_AS_IN})?(?:{RADIO[letter]})|{letter}{_AS_IN}{letter}[^\W_]{{0,20}})(?![^\W_]))"
        for letter in plain
    ]
    return re.compile(rf"(?<![^\W_]){_GAP.join(units)}(?![^\W_])")


def morse(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Dots and dashes, with letters separated by spaces or slashes."""
    plain, folded = secret.plain, reading.folded
    if len(plain) < FEWEST_MORSE or ("-" not in folded and reading.text.isascii()):
        return
    if sum(map(folded.count, _DASHES)) + sum(map(folded.count, _DOTS)) < len(plain):
        return
    if (pattern := _morse_pattern(plain)) is not None:
        for match in pattern.finditer(folded):
            yield reading.origin(*match.span())


@lru_cache(maxsize=8192)
def _morse_pattern(plain: str) -> re.Pattern[str] | None:
    """The pattern; None if a character has no code, or if the code has only dots or only dashes."""
    codes = [MORSE.get(letter, "") for letter in plain]
    if not all(codes) or len(set("".join(codes))) < 2:
        return None
    signs = {".": f"[{_DOTS}]", "-": f"[{_DASHES}]"}
    units = ["".join(signs[sign] for sign in code) for code in codes]
    written = r"[ \t\n/|]{1,3}".join(units)
    return re.compile(rf"(?<![{_DASHES}{_DOTS}]){written}(?![{_DASHES}{_DOTS}])")
