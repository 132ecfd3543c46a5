"""Groups of entities by attribute. Pure.

Booleans and numbers form groups if there are at least two different values. A text is treated as a category if at least
two of its values are shared and most entities have a shared value. For an attribute named in advance, one shared value
is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median_low
from typing import Literal, NamedTuple

from groundswell.experiments.simulations.entities import Entity, Value

AttributeKind = Literal["boolean", "text", "number"]
NONE = "(none)"
"""Group of the entities without the attribute."""
MOST_TEXTS = 12
"""A text with more different values is a description and forms no groups."""
MOST_NUMBERS = 5
"""More different numbers than this are split in two halves."""
ALIKE = "all entities with this attribute have the same value"
DESCRIBES = f"its values are mostly unique, or there are more than {MOST_TEXTS} of them"


class Division(NamedTuple):
    """The groups by one attribute: their labels, the group of each entity, and where numbers were split."""

    name: str
    kind: AttributeKind
    groups: tuple[str, ...]
    group_of: tuple[int, ...]
    cut: float | None = None


class Look(NamedTuple):
    """An attribute by which answers are broken down. If it forms no groups, `reason` says why.

    `exploratory` is true for attributes that were not named in advance.
    """

    name: str
    division: Division | None
    exploratory: bool
    reason: str = ""


def looks(entities: Sequence[Entity], by: Sequence[str] = ()) -> list[Look]:
    """The attributes to break answers down by: those named in advance, then all others that form groups."""
    found = [(name, divided(entities, name, named=True)) for name in by]
    named = [
        Look(name, None, False, each) if isinstance(each, str) else Look(name, each, False) for name, each in found
    ]
    return [*named, *(Look(each.name, each, True) for each in divisions(entities) if each.name not in by)]


def divisions(entities: Sequence[Entity]) -> list[Division]:
    """The divisions by all attributes that form groups, in the order of the attributes."""
    names = dict.fromkeys(name for entity in entities for name in entity.attributes)
    found = [divided(entities, name) for name in names]
    return [each for each in found if isinstance(each, Division)]


def divided(entities: Sequence[Entity], name: str, *, named: bool = False) -> Division | str:
    """The division by one attribute, or the reason why it forms no groups."""
    values = [entity.attributes.get(name) for entity in entities]
    there = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in there):
        found = _labelled(name, "boolean", [_truth(value) for value in values], ["true", "false"])
    elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in there):
        found = _numbers(name, [None if value is None else float(value) for value in values])
    else:
        texts = [
            _truth(value) if isinstance(value, bool) else None if value is None else str(value) for value in values
        ]
        counts = Counter(text for text in texts if text is not None)
        if len(counts) > 1 and not _is_category(counts, named=named):
            return DESCRIBES
        found = _labelled(name, "text", texts, sorted(counts))
    # Entities without the attribute do not count as a second group.
    return found if len(found.groups) - (None in values) > 1 else ALIKE


def _is_category(counts: Counter[str], *, named: bool) -> bool:
    """Whether texts are categories rather than descriptions."""
    shared = [count for count in counts.values() if count > 1]
    if len(counts) > MOST_TEXTS or not shared:
        return False
    return named or (len(shared) > 1 and 2 * sum(shared) >= counts.total())


def _numbers(name: str, values: Sequence[float | None]) -> Division:
    there = sorted({value for value in values if value is not None})
    if len(there) <= MOST_NUMBERS:
        labels = [None if value is None else _written(value) for value in values]
        return _labelled(name, "number", labels, [_written(value) for value in there])
    middle = median_low(value for value in values if value is not None)  # an existing value: it reads well
    # If the median is the highest value, split below it, so that neither half is empty.
    cut = middle if middle < there[-1] else there[-2]
    low, high = f"up to {_written(cut)}", f"above {_written(cut)}"
    halves = [None if value is None else low if value <= cut else high for value in values]
    return _labelled(name, "number", halves, [low, high])._replace(cut=cut)


def _labelled(name: str, kind: AttributeKind, labels: Sequence[str | None], order: Sequence[str]) -> Division:
    """The groups that are not empty, in that order; entities without the attribute come last."""
    groups: list[str | None] = [label for label in order if label in labels]
    if None in labels:
        groups.append(None)
    shown = tuple(NONE if label is None else label for label in groups)
    return Division(name, kind, shown, tuple(groups.index(label) for label in labels))


def _truth(value: Value | None) -> str | None:
    return None if value is None else "true" if value else "false"


def _written(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)
