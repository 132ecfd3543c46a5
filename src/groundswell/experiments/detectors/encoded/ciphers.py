"""The secret reversed, or in a substitution cipher: ROT13, another Caesar shift, Atbash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from groundswell.experiments.detectors.marks import is_set_apart
from groundswell.experiments.detectors.normalised import spelling
from groundswell.experiments.detectors.ordinary import is_ordinary
from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
PLAIN_ENOUGH = 5
"""Minimum number of letters to match anywhere; shorter words must be set apart."""
FEWEST_SHIFTED = 5
FEWEST_DIFFERENT = 3
_HALF = 13


class Needle(NamedTuple):
    """A string to search for among letters and digits."""

    letters: str
    joints: frozenset[int]
    apart: bool
    """Whether it counts only if it is set apart, because it may be an ordinary word."""


def _needle(letters: str, joints: frozenset[int], secret: Secret, enough: int = PLAIN_ENOUGH) -> list[Needle]:
    """The needle, unless it is the secret itself."""
    if letters == secret.plain:
        return []
    return [Needle(letters, joints, len(letters) < enough or is_ordinary(letters))]


@lru_cache(maxsize=8192)
def _backwards(secret: Secret) -> list[Needle]:
    """The whole secret reversed, and each of its words reversed."""
    size = len(secret.plain)
    whole = _needle(secret.plain[::-1], frozenset(size - at for at in secret.joints), secret)
    return whole + (_needle("".join(word[::-1] for word in secret.words), secret.joints, secret) if whole else [])


def shift_by(steps: int) -> dict[int, int]:
    """A translation that shifts every letter."""
    return str.maketrans(ALPHABET, ALPHABET[steps:] + ALPHABET[:steps])


SHIFTS = {steps: shift_by(steps) for steps in range(1, len(ALPHABET))}
MIRROR = str.maketrans(ALPHABET, ALPHABET[::-1])


@lru_cache(maxsize=8192)
def _half_turned(secret: Secret) -> list[Needle]:
    return _needle(secret.plain.translate(SHIFTS[_HALF]), secret.joints, secret)


def _is_rich(secret: Secret) -> bool:
    """Whether a secret is long and varied enough for a shifted match not to be chance."""
    return secret.letters >= FEWEST_SHIFTED and len(set(secret.plain)) >= FEWEST_DIFFERENT


@lru_cache(maxsize=8192)
def _mirrored(secret: Secret) -> list[Needle]:
    return _needle(secret.plain.translate(MIRROR), secret.joints, secret) if _is_rich(secret) else []


@lru_cache(maxsize=8192)
def _shifted(secret: Secret) -> list[Needle]:
    if not _is_rich(secret):
        return []
    others = (table for steps, table in SHIFTS.items() if steps != _HALF)
    return [
        needle
        for table in others
        for needle in _needle(secret.plain.translate(table), secret.joints, secret, FEWEST_SHIFTED + 1)
    ]


def _found(reading: Reading, needles: list[Needle]) -> Iterator[Span]:
    """The needles, as whole words or letter by letter."""
    squeezed = reading.squeezed
    for needle in needles:
        if needle.letters not in squeezed:
            continue
        for hit in reading.hits(needle.letters):
            if hit.tail or spelling(reading, hit, needle.joints) not in ("whole", "spaced"):
                continue
            span = reading.origin(*hit.span)
            if not needle.apart or is_set_apart(reading.text, span):
                yield span


def _form(needles: Callable[[Secret], list[Needle]]) -> Callable[[Reading, Secret], Iterator[Span]]:
    return lambda reading, secret: _found(reading, needles(secret)) if len(secret.plain) >= FEWEST else iter(())


backwards = _form(_backwards)
rot13 = _form(_half_turned)
atbash = _form(_mirrored)
caesar = _form(_shifted)
