"""What a detector found, as one reads it in a table."""

from __future__ import annotations

from groundswell.experiments.detectors.ladder import detect
from groundswell.experiments.detectors.spans import Match


def shown(text: str, matches: tuple[Match, ...]) -> list[tuple[str, str, str]]:
    """Tier, form and the stretch of text of every match."""
    return [(match.tier, match.form, text[match.start : match.end]) for match in matches]


def found(text: str, secret: str) -> list[tuple[str, str, str]]:
    """What the whole ladder finds."""
    return shown(text, detect(text, secret))


def forms(text: str, secret: str) -> list[tuple[str, str]]:
    """The forms that the whole ladder finds, each with its stretch of text."""
    return [(form, stretch) for _, form, stretch in found(text, secret)]
