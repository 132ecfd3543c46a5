"""The Pareto front: items that no other item dominates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def front(some: Sequence[T], goals: Callable[[T], Sequence[float]]) -> list[T]:
    """The items that no other item dominates, in their order. Higher goals are better."""
    points = [tuple(goals(each)) for each in some]
    return [each for each, mine in zip(some, points, strict=True) if not any(_beats(one, mine) for one in points)]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(mine >= theirs for mine, theirs in pairs) and any(mine > theirs for mine, theirs in pairs)
