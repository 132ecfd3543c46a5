"""The secret with digits and signs for letters: `l4n73rn`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from groundswell.experiments.detectors.marks import is_set_apart
from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

SIGNS = {
    "a": "4@", "b": "8", "e": "3", "g": "69", "i": "1!|", "l": "1|", "o": "0", "s": "5$", "t": "7+", "z": "2",
}  # fmt: skip
_MEANT = {sign: letter.replace("l", "i") for letter, signs in SIGNS.items() for sign in signs}
_ALIKE = str.maketrans(_MEANT | {"l": "i"})
_ANY_SIGN = frozenset("@$!|+")
ALL_SIGNS = 5
"""Minimum length of a word that consists of signs only, unless it is set apart."""


def leet(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Words with at least one sign in place of a letter."""
    if len(secret.plain) < FEWEST or not (reading.digits or not _ANY_SIGN.isdisjoint(reading.folded)):
        return
    text = reading.folded.translate(_ALIKE)
    if not all(word.translate(_ALIKE) in text for word in secret.words):
        return
    for match in _pattern(secret).finditer(reading.folded):
        span = reading.origin(*match.span())
        letters = [char for char in match[0] if char.isalnum() or char in _ANY_SIGN]
        if letters == list(secret.plain):
            continue
        if any(map(str.isalpha, letters)) or len(letters) >= ALL_SIGNS or is_set_apart(reading.text, span):
            yield span


@lru_cache(maxsize=8192)
def _pattern(secret: Secret) -> re.Pattern[str]:
    words = r"[\W_]{0,4}".join("".join(map(_letter, word)) for word in secret.words)
    return re.compile(rf"(?<![^\W_]){words}(?![^\W_])")


def _letter(letter: str) -> str:
    """Signs for a letter. Signs that also end sentences count only inside a word."""
    signs = SIGNS.get(letter, "")
    plain = "".join(sign for sign in signs if sign not in "!+|")
    risky = "".join(sign for sign in signs if sign in "!+|")
    ways = [f"[{re.escape(letter + plain)}]" if plain else re.escape(letter)]
    if risky:
        ways.append(rf"[{re.escape(risky)}](?=\w)")
    return f"(?:{'|'.join(ways)})" if len(ways) > 1 else ways[0]
