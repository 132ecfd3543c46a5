"""Answers by what entities are: figures of groups, how they changed, and whether the attribute has a bearing on either.

What was named in advance is tested apart from what is looked at because it is there: p-values are adjusted among those
of their own kind alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from groundswell.experiments.simulations.dimensions import AttributeKind, Division, Look
from groundswell.experiments.simulations.sheets import Sheet, chose
from groundswell.stats.clusters import Figure, Rows, difference, difference_of_shares, mean, share
from groundswell.stats.compare import bearing, holm
from groundswell.stats.rates import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

NO_TEST = "fewer than 5 entities answered, or all alike, or all of one group"


class GroupOption(msgspec.Struct, frozen=True):
    """One option among the answers of a group; `difference` is its share less that among all other entities.

    Where it was asked twice: the share before the talk, how it changed, and how much more than among all others.
    """

    option: str
    count: int
    share: Figure
    difference: Figure
    before: Figure | None = None
    change: Figure | None = None
    change_difference: Figure | None = None


class GroupFigures(msgspec.Struct, frozen=True):
    """The entities with one value of an attribute. A choice has `options`, a scale has the other figures.

    `before`, `change` and `change_difference` are there where it was asked ahead of the talk too. A change is over
    those who answered both times, so it need not be the difference of the two means.
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

    cut            where numbers with many values were cut in halves: the first group is up to it
    p              of the attribute having no bearing on the answers, by giving the values of entities to others
    p_holm         the same, adjusted for how many attributes of its kind the question is looked at by
    reason         why there is no p
    exploratory    not named in advance: looked at because it is there
    change_p       of the attribute having no bearing on how answers changed; `change_p_holm` as above
    change_reason  why there is no such p, where it was asked twice
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
    """The figures by every attribute, those that were named in advance first."""
    figures = [_by_dimension(sheet, look) for look in looks]
    named = [each for each in figures if not each.exploratory]
    return [*_adjusted(named), *_adjusted([each for each in figures if each.exploratory])]


def _by_dimension(sheet: Sheet, look: Look) -> DimensionFigures:
    division = look.division
    if division is None:
        return DimensionFigures(look.name, None, [], reason=look.reason, exploratory=look.exploratory)
    answered, labels = sheet.answered(), division.group_of
    figures = [
        _group(sheet, division, number, label, labels.count(number)) for number, label in enumerate(division.groups)
    ]
    codes = range(len(sheet.question.options))
    scale = sheet.question.type == "scale"
    p = has_bearing([answered] if scale else [chose(answered, code) for code in codes], labels)
    change_p = None
    if sheet.twice:
        change_p = has_bearing([sheet.moved()] if scale else [sheet.moved(code) for code in codes], labels)
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
    one, other = _sides(sheet.answered(), division, number)
    if sheet.question.type == "choice":
        return GroupFigures(label, entities, len(one.values), list(_group_options(sheet, division, number)))
    figures = GroupFigures(
        label,
        entities,
        len(one.values),
        mean=sheet.mean(one),
        difference=difference(one, other, sheet.level, sheet.widest),
    )
    if not sheet.twice:
        return figures
    moved, others = _sides(sheet.moved(), division, number)
    return msgspec.structs.replace(
        figures,
        before=sheet.mean(_sides(sheet.answered(before=True), division, number)[0]),
        change=mean(moved, sheet.level, sheet.widest),
        change_difference=difference(moved, others, sheet.level, _twice(sheet)),
    )


def _group_options(sheet: Sheet, division: Division, number: int) -> Iterator[GroupOption]:
    (one, other), level = _sides(sheet.answered(), division, number), sheet.level
    was = _sides(sheet.answered(before=True), division, number)[0]
    for code, option in enumerate(sheet.question.options):
        took, others = chose(one, code), chose(other, code)
        apart = difference_of_shares(took, others, level)
        figures = GroupOption(option, int(took.values.sum()), share(took, level), apart)
        if sheet.twice:
            moved, rest = _sides(sheet.moved(code), division, number)
            figures = msgspec.structs.replace(
                figures,
                before=share(chose(was, code), level),
                change=mean(moved, level, sheet.widest),
                change_difference=difference(moved, rest, level, _twice(sheet)),
            )
        yield figures


def _sides(rows: Rows, division: Division, number: int) -> tuple[Rows, Rows]:
    """What those of a group said, and what all others did."""
    mine = in_group(rows, division.group_of, number)
    return rows.among(mine), rows.among(~mine)


def in_group(rows: Rows, labels: Sequence[int], number: int) -> Bools:
    """Which rows are by somebody with this label."""
    import numpy as np

    mine: Bools = np.array(labels)[rows.who] == number
    return mine


def _twice(sheet: Sheet) -> Interval:
    """How far two changes can be apart."""
    return Interval(2 * sheet.widest.low, 2 * sheet.widest.high)


def has_bearing(columns: Sequence[Rows], labels: Sequence[int]) -> float | None:
    """The p-value of labels having no bearing on values; a choice has a column for every option."""
    import numpy as np

    who = columns[0].who
    counts = np.bincount(who, minlength=len(labels))
    totals = np.stack([np.bincount(each.who, each.values, len(counts)) for each in columns], axis=1)
    there = np.flatnonzero(counts)
    return bearing(totals[there].astype(float), counts[there], [labels[entity] for entity in there.tolist()])


def _adjusted(dimensions: Sequence[DimensionFigures]) -> list[DimensionFigures]:
    """With p-values adjusted for how many there are: those of answers and those of changes, each for themselves."""
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
