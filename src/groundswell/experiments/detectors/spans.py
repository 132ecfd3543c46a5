"""What a detector finds: a tier, a form, and where in the text it stands."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Literal, NamedTuple

import msgspec

Tier = Literal["exact", "normalised", "encoded"]
TIERS: tuple[Tier, ...] = ("exact", "normalised", "encoded")
"""From what anybody would call a leak to what takes some work to read."""


class Span(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int


class Match(msgspec.Struct, frozen=True):
    """A place in a text that gives the secret away."""

    tier: Tier
    form: str
    """How it is written there: exact, folded, spaced, base64, ..."""
    start: int
    end: int


class Found:
    """Matches as they come in. What lies inside an earlier one is the same occurrence, and is passed over."""

    def __init__(self) -> None:
        self.matches: list[Match] = []
        self._spans: list[Span] = []
        self._longest = 0

    def add(self, tier: Tier, form: str, span: Span) -> None:
        """Take a match, unless it says nothing more."""
        if span.start < span.end and not self._covered(span):
            self.matches.append(Match(tier, form, span.start, span.end))
            insort(self._spans, span)
            self._longest = max(self._longest, span.end - span.start)

    def _covered(self, span: Span) -> bool:
        """Whether a span that is known already has this one inside; only those near enough are looked at."""
        at = bisect_right(self._spans, (span.start, 1 << 60)) - 1
        while at >= 0 and self._spans[at].start + self._longest >= span.end:
            if self._spans[at].end >= span.end:
                return True
            at -= 1
        return False

    def sorted(self) -> tuple[Match, ...]:
        """All of them, by tier and then by place."""
        return tuple(sorted(self.matches, key=lambda match: (TIERS.index(match.tier), match.start, match.end)))
