"""A figure that is known from below and from above. Pure."""

from __future__ import annotations

import msgspec


class Range(msgspec.Struct, frozen=True, array_like=True):
    """From a low figure to a high one. As JSON it is a list of the two."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> Range:
        return Range(self.low * factor, self.high * factor)

    def __or__(self, other: Range) -> Range:
        """The range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def longer(self, other: Range) -> Range:
        """The longer of two, whatever each comes to."""
        return Range(max(self.low, other.low), max(self.high, other.high))

    def __contains__(self, figure: float) -> bool:
        return self.low <= figure <= self.high


NOTHING = Range(0, 0)
