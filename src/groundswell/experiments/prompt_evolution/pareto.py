"""A front: those who are beaten by nobody in everything at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def front(some: Sequence[T], goals: Callable[[T], Sequence[float]]) -> list[T]:
    """Those of whom no other is at least as good in every goal and better in one; more is better. In their order."""
    points = [tuple(goals(each)) for each in some]
    return [each for each, mine in zip(some, points, strict=True) if not any(_beats(one, mine) for one in points)]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(mine >= theirs for mine, theirs in pairs) and any(mine > theirs for mine, theirs in pairs)
