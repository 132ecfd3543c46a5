"""Entities in groups by what they have in common: by every attribute whose values are shared by some of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median_low
from typing import Literal, NamedTuple

from groundswell.experiments.simulations.entities import Entity, Value

AttributeKind = Literal["boolean", "text", "number"]
NONE = "(none)"
"""The group of those who lack the attribute."""
MOST_TEXTS = 12
"""With more different values than that, a text is a description and no dimension."""
MOST_NUMBERS = 5
"""Where there are more different numbers than that, they are cut in halves."""


class Division(NamedTuple):
    """The entities by one attribute: what their groups are called, which is whose, and where numbers were cut."""

    name: str
    kind: AttributeKind
    groups: tuple[str, ...]
    group_of: tuple[int, ...]
    cut: float | None = None


def divisions(entities: Sequence[Entity]) -> list[Division]:
    """The divisions by all attributes that make more than one group, in the order in which the attributes come."""
    names = dict.fromkeys(name for entity in entities for name in entity.attributes)
    found = [_division(name, [entity.attributes.get(name) for entity in entities]) for name in names]
    return [each for each in found if each is not None and len(each.groups) > 1]


def _division(name: str, values: Sequence[Value | None]) -> Division | None:
    there = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in there):
        return _labelled(name, "boolean", [_truth(value) for value in values], ["true", "false"])
    numbers = [value for value in there if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(there):
        return _numbers(name, [None if value is None else float(value) for value in values])
    texts = [None if value is None else str(value) for value in values]
    counts = Counter(text for text in texts if text is not None)
    if len(counts) > MOST_TEXTS or max(counts.values()) < 2:
        return None
    return _labelled(name, "text", texts, sorted(counts))


def _numbers(name: str, values: Sequence[float | None]) -> Division:
    there = sorted({value for value in values if value is not None})
    if len(there) <= MOST_NUMBERS:
        labels = [None if value is None else _written(value) for value in values]
        return _labelled(name, "number", labels, [_written(value) for value in there])
    middle = median_low(value for value in values if value is not None)  # one that is there: it reads well
    # Halves of which one would be empty, since most have the highest value, are cut below it instead.
    cut = middle if middle < there[-1] else there[-2]
    low, high = f"up to {_written(cut)}", f"above {_written(cut)}"
    halves = [None if value is None else low if value <= cut else high for value in values]
    return _labelled(name, "number", halves, [low, high])._replace(cut=cut)


def _labelled(name: str, kind: AttributeKind, labels: Sequence[str | None], order: Sequence[str]) -> Division:
    """The groups that somebody is in, in that order; those without the attribute come last."""
    groups: list[str | None] = [label for label in order if label in labels]
    if None in labels:
        groups.append(None)
    shown = tuple(NONE if label is None else label for label in groups)
    return Division(name, kind, shown, tuple(groups.index(label) for label in labels))


def _truth(value: Value | None) -> str | None:
    return None if value is None else "true" if value else "false"


def _written(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)
