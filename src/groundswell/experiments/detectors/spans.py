"""Matches of a detector: tier, form and position."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Literal, NamedTuple

import msgspec

Tier = Literal["exact", "normalised", "encoded", "context"]
TIERS: tuple[Tier, ...] = ("exact", "normalised", "encoded")
"""Tiers that find the secret in one message, from strict to lenient. `context` needs the conversation."""


class Span(NamedTuple):
    """A range of characters."""

    start: int
    end: int


class Match(msgspec.Struct, frozen=True):
    """An occurrence of the secret in a text."""

    tier: Tier
    form: str
    """How it is written: exact, folded, spaced, base64, ..."""
    start: int
    end: int


class Found:
    """Collects matches. A match inside an earlier one is the same occurrence and is skipped."""

    def __init__(self) -> None:
        self.matches: list[Match] = []
        self._spans: list[Span] = []
        self._longest = 0

    def add(self, tier: Tier, form: str, span: Span) -> None:
        """Add a match, unless an earlier one covers it."""
        if span.start < span.end and not self._covered(span):
            self.matches.append(Match(tier, form, span.start, span.end))
            insort(self._spans, span)
            self._longest = max(self._longest, span.end - span.start)

    def _covered(self, span: Span) -> bool:
        """Whether an earlier span covers this one. Only nearby spans are checked."""
        at = bisect_right(self._spans, (span.start, 1 << 60)) - 1
        while at >= 0 and self._spans[at].start + self._longest >= span.end:
            if self._spans[at].end >= span.end:
                return True
            at -= 1
        return False

    def sorted(self) -> tuple[Match, ...]:
        """All matches, by tier and position."""
        return tuple(sorted(self.matches, key=lambda match: (TIERS.index(match.tier), match.start, match.end)))
