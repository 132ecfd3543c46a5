"""The ladder: everything that gives a secret away in a text, from exact to encoded."""

from __future__ import annotations

from groundswell.experiments.detectors.encoded import ENCODED, Finder
from groundswell.experiments.detectors.exact import exact
from groundswell.experiments.detectors.normalised import folded, inflected, lookalike
from groundswell.experiments.detectors.reading import LONGEST, Reading, read
from groundswell.experiments.detectors.secret import FEWEST, Secret, secret_of
from groundswell.experiments.detectors.spans import Found, Match

NORMALISED: tuple[tuple[str, Finder], ...] = (("folded", folded), ("inflected", inflected), ("lookalike", lookalike))
FORMS: tuple[str, ...] = tuple(dict.fromkeys(form for form, _ in (("exact", exact), *NORMALISED, *ENCODED)))
"""Every form that a match can have, in the order of the ladder."""


def detect(text: str, secret: str) -> tuple[Match, ...]:
    """What gives the secret away, by tier and then by place; every occurrence once, at the lowest tier that has it.

    Of a text, the first `LONGEST` characters are looked at.
    """
    reading, key = read(text[:LONGEST]), secret_of(secret)
    found = _said(reading, key)
    if len(key.plain) >= FEWEST:
        for form, find in ENCODED:
            for span in find(reading, key):
                found.add("encoded", form, span)
    return found.sorted() if found.matches else ()


def said(text: str, secret: str) -> tuple[Match, ...]:
    """What says the secret outright: exact and normalised alone."""
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
