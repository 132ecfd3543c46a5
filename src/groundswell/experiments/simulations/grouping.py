"""Answers by attribute: the results of each group, their change, and tests of both.

Pre-registered and exploratory attributes are tested separately: p-values are adjusted within each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from groundswell.experiments.simulations.dimensions import AttributeKind, Division, Look
from groundswell.experiments.simulations.questions import Column
from groundswell.experiments.simulations.sheets import Sheet, mean_of, widest
from groundswell.stats.clusters import Figure, Rows, difference, difference_of_shares, mean, share
from groundswell.stats.compare import bearing, holm
from groundswell.stats.rates import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

NO_TEST = "fewer than 5 entities answered, all answered the same, or all are in one group"


class GroupOption(msgspec.Struct, frozen=True):
    """One option in a group. `difference` is its share minus that among all other entities.

    If asked twice: the share before the conversation, its change, and the change minus that of all others.
    """

    option: str
    count: int
    share: Figure
    difference: Figure
    before: Figure | None = None
    change: Figure | None = None
    change_difference: Figure | None = None


class GroupFigures(msgspec.Struct, frozen=True):
    """The entities with one value of an attribute. A choice has `options`, a scale has the other values.

    `before`, `change` and `change_difference` are set if the question was also asked before the conversation. A change
    includes only entities that answered both times, so it can differ from the difference of the two means.
    """

    value: str
    entities: int
    answered: int
    options: list[GroupOption] = []
    mean: Figure | None = None
    difference: Figure | None = None
    before: Figure | None = None
    change: Figure | None = None
    change_difference: Figure | None = None


class DimensionFigures(msgspec.Struct, frozen=True):
    """A question by one attribute of the entities.

    cut            where numbers with many values were split; the first group is up to and including it
    p              p-value of a permutation test over entities: the answers do not depend on the attribute
    p_holm         the same, adjusted (Holm) for the attributes of its kind
    reason         why there is no p-value
    exploratory    true for attributes that were not named in advance
    change_p       p-value for the change of the answers; `change_p_holm` is adjusted
    change_reason  why there is no such p-value, if asked twice
    """

    name: str
    kind: AttributeKind | None
    groups: list[GroupFigures]
    cut: float | None = None
    p: float | None = None
    p_holm: float | None = None
    reason: str = ""
    exploratory: bool = True
    change_p: float | None = None
    change_p_holm: float | None = None
    change_reason: str = ""


def by_dimensions(sheet: Sheet, looks: Sequence[Look]) -> list[DimensionFigures]:
    """The results by every attribute, pre-registered ones first."""
    figures = [_by_dimension(sheet, look) for look in looks]
    named = [each for each in figures if not each.exploratory]
    return [*_adjusted(named), *_adjusted([each for each in figures if each.exploratory])]


def _by_dimension(sheet: Sheet, look: Look) -> DimensionFigures:
    division, columns = look.division, sheet.question.columns
    if division is None:
        return DimensionFigures(look.name, None, [], reason=look.reason, exploratory=look.exploratory)
    labels = division.group_of
    figures = [
        _group(sheet, division, number, label, labels.count(number)) for number, label in enumerate(division.groups)
    ]
    p = has_bearing([sheet.answered(column) for column in columns], labels)
    change_p = None
    if sheet.twice:
        change_p = has_bearing([sheet.moved(column) for column in columns], labels)
    return DimensionFigures(
        name=division.name,
        kind=division.kind,
        groups=figures,
        cut=division.cut,
        p=p,
        reason=NO_TEST if p is None else "",
        exploratory=look.exploratory,
        change_p=change_p,
        change_reason=NO_TEST if sheet.twice and change_p is None else "",
    )


def _group(sheet: Sheet, division: Division, number: int, label: str, entities: int) -> GroupFigures:
    column = sheet.question.columns[0]
    one, other = _sides(sheet.answered(column), division, number)
    if not sheet.question.is_numeric:
        return GroupFigures(label, entities, len(one.values), list(_group_options(sheet, division, number)))
    figures = GroupFigures(
        label,
        entities,
        len(one.values),
        mean=mean_of(one, column, sheet.level),
        difference=difference(one, other, sheet.level, widest(column)),
    )
    if not sheet.twice:
        return figures
    moved, others = _sides(sheet.moved(column), division, number)
    return msgspec.structs.replace(
        figures,
        before=mean_of(_sides(sheet.answered(column, before=True), division, number)[0], column, sheet.level),
        change=mean(moved, sheet.level, widest(column)),
        change_difference=difference(moved, others, sheet.level, _twice(column)),
    )


def _group_options(sheet: Sheet, division: Division, number: int) -> Iterator[GroupOption]:
    level = sheet.level
    for column in sheet.question.columns:
        took, others = _sides(sheet.answered(column), division, number)
        apart = difference_of_shares(took, others, level)
        figures = GroupOption(column.option or "", int(took.values.sum()), share(took, level), apart)
        if sheet.twice:
            was = _sides(sheet.answered(column, before=True), division, number)[0]
            moved, rest = _sides(sheet.moved(column), division, number)
            figures = msgspec.structs.replace(
                figures,
                before=share(was, level),
                change=mean(moved, level, widest(column)),
                change_difference=difference(moved, rest, level, _twice(column)),
            )
        yield figures


def _sides(rows: Rows, division: Division, number: int) -> tuple[Rows, Rows]:
    """The rows of a group and those of all others."""
    mine = in_group(rows, division.group_of, number)
    return rows.among(mine), rows.among(~mine)


def in_group(rows: Rows, labels: Sequence[int], number: int) -> Bools:
    """Which rows are by an entity with this label."""
    import numpy as np

    mine: Bools = np.array(labels)[rows.who] == number
    return mine


def _twice(column: Column) -> Interval:
    """The largest possible difference of two changes."""
    wide = widest(column)
    return Interval(2 * wide.low, 2 * wide.high)


def has_bearing(columns: Sequence[Rows], labels: Sequence[int]) -> float | None:
    """The p-value of a permutation test: values do not depend on labels. A choice has one column per option."""
    import numpy as np

    who = columns[0].who
    counts = np.bincount(who, minlength=len(labels))
    totals = np.stack([np.bincount(each.who, each.values, len(counts)) for each in columns], axis=1)
    there = np.flatnonzero(counts)
    return bearing(totals[there].astype(float), counts[there], [labels[entity] for entity in there.tolist()])


def _adjusted(dimensions: Sequence[DimensionFigures]) -> list[DimensionFigures]:
    """The same with adjusted p-values; those of answers and of changes are adjusted separately."""
    adjusted = iter(holm([each.p for each in dimensions if each.p is not None]))
    changes = iter(holm([each.change_p for each in dimensions if each.change_p is not None]))
    return [
        msgspec.structs.replace(
            each,
            p_holm=None if each.p is None else next(adjusted),
            change_p_holm=None if each.change_p is None else next(changes),
        )
        for each in dimensions
    ]
