"""Entities in groups by what they have in common: by every attribute whose values are shared by some of them. Pure.

Numbers and booleans always make groups, if there are two different ones. A text may be a category or a description:
it is a category if most entities share it with another, and there are two such values. Where an attribute was named in
advance, that is the word of somebody who knows, and a single shared value is enough.
"""

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
ALIKE = "all who have it have the same value"
DESCRIBES = f"its texts tell entities apart rather than group them, or are more than {MOST_TEXTS}"


class Division(NamedTuple):
    """The entities by one attribute: what their groups are called, which is whose, and where numbers were cut."""

    name: str
    kind: AttributeKind
    groups: tuple[str, ...]
    group_of: tuple[int, ...]
    cut: float | None = None


class Look(NamedTuple):
    """An attribute by which answers are looked at; where it makes no groups, `reason` says why.

    `exploratory` is one that was not named in advance: it is looked at because it is there.
    """

    name: str
    division: Division | None
    exploratory: bool
    reason: str = ""


def looks(entities: Sequence[Entity], by: Sequence[str] = ()) -> list[Look]:
    """By what answers are looked at: first what was named in advance, then all else that makes groups."""
    found = [(name, divided(entities, name, named=True)) for name in by]
    named = [
        Look(name, None, False, each) if isinstance(each, str) else Look(name, each, False) for name, each in found
    ]
    return [*named, *(Look(each.name, each, True) for each in divisions(entities) if each.name not in by)]


def divisions(entities: Sequence[Entity]) -> list[Division]:
    """The divisions by all attributes that make groups, in the order in which the attributes come."""
    names = dict.fromkeys(name for entity in entities for name in entity.attributes)
    found = [divided(entities, name) for name in names]
    return [each for each in found if isinstance(each, Division)]


def divided(entities: Sequence[Entity], name: str, *, named: bool = False) -> Division | str:
    """The division by one attribute, which may have been named in advance; or why it makes no groups."""
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
    # To lack it is no value: those who do are no group beside a single one.
    return found if len(found.groups) - (None in values) > 1 else ALIKE


def _is_category(counts: Counter[str], *, named: bool) -> bool:
    """Whether texts are what entities have in common, and not what is said of each."""
    shared = [count for count in counts.values() if count > 1]
    if len(counts) > MOST_TEXTS or not shared:
        return False
    return named or (len(shared) > 1 and 2 * sum(shared) >= counts.total())


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
