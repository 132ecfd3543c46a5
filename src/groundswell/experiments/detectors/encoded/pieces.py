"""The secret in pieces: letter by letter, or split into syllables."""

from __future__ import annotations

from collections.abc import Iterator

from groundswell.experiments.detectors.marks import is_set_apart
from groundswell.experiments.detectors.normalised import spelling
from groundswell.experiments.detectors.ordinary import is_ordinary
from groundswell.experiments.detectors.reading import Hit, Reading
from groundswell.experiments.detectors.secret import Secret
from groundswell.experiments.detectors.spans import Span

ALONE = 4
"""Up to this length, a spelled-out secret must not be part of a longer spelled-out word."""
FEWEST_SPLIT = 5
_ARTICLES = frozenset("ai")


def spaced(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Letter by letter: `l a n t e r n`, `l-a-n-t-e-r-n`, one per line."""
    for hit in reading.hits(secret.plain):
        if hit.tail or spelling(reading, hit, secret.joints) != "spaced":
            continue
        if len(secret.plain) > ALONE or not _goes_on(reading, hit):
            yield reading.origin(*hit.span)


def _goes_on(reading: Reading, hit: Hit) -> bool:
    """Whether there is a single letter just before or after."""
    return any(len(word) == 1 and word not in _ARTICLES for word in reading.beside(hit.span))


def split(reading: Reading, secret: Secret) -> Iterator[Span]:
    """In other pieces: `lan.tern`, `lan tern`. Pieces that are words themselves may be adjacent by chance."""
    if len(secret.plain) < FEWEST_SPLIT:
        return
    for hit in reading.hits(secret.plain):
        if hit.tail or spelling(reading, hit, secret.joints) != "split":
            continue
        span = reading.origin(*hit.span)
        if is_set_apart(reading.text, span) or _is_torn(reading, hit, secret):
            yield span


def _is_torn(reading: Reading, hit: Hit, secret: Secret) -> bool:
    """Whether the pieces are close together and at least two of them, or all, are not words."""
    pieces = [reading.folded[piece.start : piece.end] for piece in hit.pieces]
    gaps = [after.start - piece.end for piece, after in zip(hit.pieces, hit.pieces[1:], strict=False)]
    strange = sum(not (is_ordinary(piece) or piece in secret.words or piece.isdigit()) for piece in pieces)
    return max(gaps) <= 2 and strange >= min(2, len(pieces))
