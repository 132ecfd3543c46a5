"""The normalised tier: the secret ignoring case, compatibility forms, accents, punctuation and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from groundswell.experiments.detectors.reading import Hit, Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

Spelling = Literal["whole", "spaced", "split"]
BETWEEN_WORDS = 4
BETWEEN_LETTERS = 6
"""Maximum number of characters between two words of a secret, and between spelled-out letters."""
_JOINT = re.compile(r"[-‐‑]\n?|[*_~`]{1,4}")
"""Characters that do not split a word."""


def spelling(reading: Reading, hit: Hit, joints: frozenset[int]) -> Spelling | None:
    """How a hit is written: as whole words, letter by letter, or in other pieces; None if they are too far apart."""
    if len(hit.pieces) == 1:
        return "whole"
    at, inner, widest = 0, [], 0
    for piece, after in zip(hit.pieces, hit.pieces[1:], strict=False):
        at += piece.end - piece.start
        gap = reading.folded[piece.end : after.start]
        if at not in joints:
            inner.append(gap)
        elif len(gap) > BETWEEN_WORDS:
            widest = max(widest, len(gap))
    size = at + hit.pieces[-1].end - hit.pieces[-1].start
    letters = len(hit.pieces) == size >= FEWEST
    if letters and any(inner):
        return "spaced" if max(widest, *map(len, inner)) <= BETWEEN_LETTERS else None
    if widest:
        return None
    return "whole" if all(not gap or _JOINT.fullmatch(gap) for gap in inner) else "split"


def folded(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Occurrences of the folded secret."""
    for hit in reading.hits(secret.plain):
        if not hit.tail and _is_whole(reading, hit, secret):
            yield reading.origin(*hit.span)


def inflected(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Occurrences of the plural of the secret."""
    if len(secret.plain) < FEWEST:
        return
    for hit in reading.hits(secret.plain):
        if hit.tail in secret.endings and _is_whole(reading, hit, secret):
            yield reading.origin(hit.span.start, hit.span.end + len(hit.tail))
    for hit in reading.hits(secret.plural):
        if not hit.tail and _is_whole(reading, hit, secret):
            yield reading.origin(*hit.span)


def lookalike(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Occurrences of the secret with look-alike letters."""
    if reading.alike is not None and secret.plain.isascii():
        yield from folded(reading.alike, secret)


def _is_whole(reading: Reading, hit: Hit, secret: Secret) -> bool:
    """Whether a hit is written as whole words. Very short secrets must not be interrupted."""
    if len(secret.plain) < FEWEST and len(hit.pieces) > len(secret.words):
        return False
    return spelling(reading, hit, secret.joints) == "whole"
