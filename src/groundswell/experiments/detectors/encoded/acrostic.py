"""The secret in first letters: of lines, of sentences, of words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundswell.experiments.detectors.reading import INITIALS, Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

_LINES = re.compile(r"^(?:[^\w\n]|_){0,20}(?:\d{1,3}[.):](?:[^\w\n]|_){1,20})?([^\W_])", re.M)
_SENTENCES = re.compile(r"(?:^|[.!?…\n])[\W_]{0,6}([^\W_])")
_ENDERS = ".!?…\n"
SURE = 5
"""Minimum number of lines or sentences; fewer count only if they are the whole text."""
SURE_WORDS = 7
"""Minimum number of words. It is larger, because texts have many words."""
FEWEST_WORDS = 5
"""Minimum number of words that form whole sentences."""


def lines(reading: Reading, secret: Secret) -> Iterator[Span]:
    """First letters of lines, ignoring bullets and numbers."""
    if len(secret.plain) >= FEWEST and reading.folded.count("\n") >= len(secret.plain) - 1:
        yield from _run(reading, secret, _LINES)


def sentences(reading: Reading, secret: Secret) -> Iterator[Span]:
    """First letters of sentences."""
    size = len(secret.plain)
    if size > FEWEST and sum(map(reading.folded.count, _ENDERS)) >= size - 1:
        yield from _run(reading, secret, _SENTENCES)


def _run(reading: Reading, secret: Secret, pattern: re.Pattern[str]) -> Iterator[Span]:
    """Consecutive first letters that spell the secret."""
    starts = [match.start(1) for match in pattern.finditer(reading.folded)]
    letters = "".join(reading.folded[start] for start in starts)
    size = len(secret.plain)
    if size < SURE and len(letters) != size:
        return
    at = letters.find(secret.plain)
    while at >= 0:
        yield reading.origin(starts[at], starts[at + size - 1] + 1)
        at = letters.find(secret.plain, at + size)


def words(reading: Reading, secret: Secret) -> Iterator[Span]:
    """First letters of words."""
    size = len(secret.plain)
    if size < FEWEST_WORDS or size > len(reading.words):
        return
    letters = reading.initials
    at = letters.find(secret.plain)
    if at < 0:
        return
    starts = [match.start() for match in INITIALS.finditer(reading.folded)]
    while at >= 0:
        if size >= SURE_WORDS or _is_closed(reading.folded, starts, at, at + size):
            yield reading.origin(starts[at], starts[at + size - 1] + 1)
        at = letters.find(secret.plain, at + 1)


def _is_closed(folded: str, starts: list[int], first: int, after: int) -> bool:
    """Whether these words start at the start of a sentence and end at the end of one."""
    before = folded[: starts[first]].rstrip(" \t\"'“‘*_(")[-1:]
    begins = not before or before in _ENDERS
    rest = folded[starts[after - 1] : starts[after] if after < len(starts) else len(folded)]
    return begins and (after == len(starts) or any(ender in rest for ender in _ENDERS))
