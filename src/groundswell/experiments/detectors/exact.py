"""The exact tier: the secret as given, case-sensitive, as whole words."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import combining

from groundswell.experiments.detectors.reading import Reading, is_wordy
from groundswell.experiments.detectors.secret import Secret
from groundswell.experiments.detectors.spans import Span


def exact(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Every occurrence of the secret that is not part of a longer word."""
    text, given = reading.text, secret.given
    at = text.find(given) if given else -1
    while at >= 0:
        end = at + len(given)
        if not (_goes_on(text[at - 1 : at], given[0]) or _goes_on(text[end : end + 1], given[-1])):
            yield Span(at, end)
        at = text.find(given, at + 1)


def _goes_on(beside: str, edge: str) -> bool:
    """Whether the adjacent character continues the word at the edge of the secret."""
    return bool(beside) and is_wordy(edge) and (is_wordy(beside) or combining(beside) > 0)
