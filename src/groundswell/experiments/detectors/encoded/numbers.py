"""The secret as numbers: bytes in hex or binary, character codes, positions in the alphabet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

_BYTE_GAP = r"[\s:,;.|-]{0,3}(?:0x|\\x|\\u00|u\+00)?"
_GAP = r"[\s:,;./|-]{1,3}"
SURE = 5
"""Minimum length of a sequence that may be part of a longer one."""
FEWEST_PLACES = 4
"""Minimum number of letters for positions in the alphabet, which are small numbers."""
_BYTE_BEFORE = re.compile(r"([0-9a-f]{2})[\s:,;.|-]{0,3}(?:0x|\\x|\\u00|u\+00)?$")
_BYTE_AFTER = re.compile(r"[\s:,;.|-]{0,3}(?:0x|\\x|\\u00|u\+00)?([0-9a-f]{2})")
_REACH = 12


def _bytes(char: str) -> list[bytes]:
    """A character in both cases, as bytes."""
    return [case.encode("utf-8", "surrogatepass") for case in dict.fromkeys((char.lower(), char.upper()))]


@lru_cache(maxsize=8192)
def _hex_pattern(given: str) -> re.Pattern[str]:
    units = ["|".join(_BYTE_GAP.join(f"{byte:02x}" for byte in way) for way in _bytes(char)) for char in given]
    return re.compile(r"(?:0x|\\x|\\u00|u\+00)?" + _BYTE_GAP.join(f"(?:{unit})" for unit in units))


def hexed(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Bytes in hex, with or without separators, also inside a longer dump."""
    size = len(secret.given)
    if len(secret.plain) < FEWEST or reading.digits < size or not _has_edges(reading.folded, secret.given):
        return
    for match in _hex_pattern(secret.given).finditer(reading.folded):
        if not _in_longer_word(reading.folded, match):
            yield reading.origin(*match.span())


def _has_edges(folded: str, given: str) -> bool:
    """Whether the text contains the first and the last character of the secret in hex."""
    return all(any(way.hex()[:2] in folded for way in _bytes(char)) for char in (given[0], given[-1]))


def _in_longer_word(folded: str, match: re.Match[str]) -> bool:
    """Whether the byte before or after is a letter."""
    before = _BYTE_BEFORE.search(folded[max(0, match.start() - _REACH) : match.start()])
    after = _BYTE_AFTER.match(folded[match.end() : match.end() + _REACH])
    return any(byte is not None and bytes.fromhex(byte[1]).isalpha() for byte in (before, after))


def _in_a_row(units: list[str]) -> re.Pattern[str]:
    """A pattern for consecutive numbers. A short sequence must not be part of a longer one."""
    row = _GAP.join(f"(?:{unit})" for unit in units)
    if len(units) >= SURE:
        return re.compile(rf"(?<![0-9]){row}(?![0-9])")
    return re.compile(rf"(?<![0-9])(?<![0-9][ ,:;./|-]){row}(?![ ,:;./|-]?[0-9])")


@lru_cache(maxsize=8192)
def _binary_pattern(given: str) -> re.Pattern[str]:
    units = ["|".join(r"[\s,]{0,2}".join(f"{byte:08b}" for byte in way) for way in _bytes(char)) for char in given]
    return re.compile(r"[\s,;|-]{0,3}".join(f"(?:{unit})" for unit in units))


def binary(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Bytes as eight binary digits each."""
    if len(secret.plain) >= FEWEST and reading.digits >= 8 * len(secret.given):
        for match in _binary_pattern(secret.given).finditer(reading.folded):
            yield reading.origin(*match.span())


@lru_cache(maxsize=8192)
def _codes_pattern(given: str) -> re.Pattern[str]:
    return _in_a_row(["|".join(str(ord(case)) for case in {*char.lower(), *char.upper()}) for char in given])


def codes(reading: Reading, secret: Secret) -> Iterator[Span]:
    """The decimal codes of its characters."""
    if len(secret.plain) >= FEWEST and reading.digits >= 2 * len(secret.given):
        for match in _codes_pattern(secret.given).finditer(reading.folded):
            yield reading.origin(*match.span())


@lru_cache(maxsize=8192)
def _places_pattern(plain: str) -> re.Pattern[str]:
    return _in_a_row([f"0?{ord(letter) - ord('a') + 1}" for letter in plain])


def places(reading: Reading, secret: Secret) -> Iterator[Span]:
    """The positions of its letters in the alphabet: 12-1-14-20-5-18-14."""
    plain = secret.plain
    if len(plain) < FEWEST_PLACES or reading.digits < len(plain) or not (plain.isascii() and plain.isalpha()):
        return
    for match in _places_pattern(plain).finditer(reading.folded):
        yield reading.origin(*match.span())
