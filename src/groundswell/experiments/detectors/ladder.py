"""Detection of a secret in a text, by all tiers from exact to encoded."""

from __future__ import annotations

from groundswell.experiments.detectors.decoding import DECODERS, views
from groundswell.experiments.detectors.exact import exact
from groundswell.experiments.detectors.matching import CIPHERS, MATCHERS, Finder, find
from groundswell.experiments.detectors.normalised import folded, inflected, lookalike
from groundswell.experiments.detectors.reading import LONGEST, Reading, read
from groundswell.experiments.detectors.secret import FEWEST, Secret, secret_of
from groundswell.experiments.detectors.spans import Found, Match

NORMALISED: tuple[tuple[str, Finder], ...] = (("folded", folded), ("inflected", inflected), ("lookalike", lookalike))
FORMS: tuple[str, ...] = tuple(
    dict.fromkeys(["exact", *dict(NORMALISED), *CIPHERS, *(row[0] for row in DECODERS), *dict(MATCHERS)])
)
"""Every form that a match can have, from exact to encoded. Several on top of each other are joined by `+`."""


def detect(text: str, secret: str) -> tuple[Match, ...]:
    """All occurrences of the secret, by tier and position. Each is reported once, at the strictest tier that finds it.

    Only the first `LONGEST` characters of the text are read.
    """
    reading, key = read(text[:LONGEST]), secret_of(secret)
    found = _said(reading, key)
    if len(key.plain) >= FEWEST:
        for form, span in find(views(reading.text), key):
            found.add("encoded", form, span)
    return found.sorted() if found.matches else ()


def said(text: str, secret: str) -> tuple[Match, ...]:
    """The occurrences of the secret by the exact and normalised tiers only."""
    found = _said(read(text[:LONGEST]), secret_of(secret))
    return found.sorted() if found.matches else ()


def _said(reading: Reading, key: Secret) -> Found:
    found = Found()
    for span in exact(reading, key):
        found.add("exact", "exact", span)
    if key.plain:
        for form, find in NORMALISED:
            for span in find(reading, key):
                found.add("normalised", form, span)
    return found
