"""The difference between two batches in one question: paired where possible, and by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from groundswell.experiments.simulations.dimensions import Division
from groundswell.experiments.simulations.grouping import has_bearing, in_group
from groundswell.experiments.simulations.questions import Column, Question, Value
from groundswell.experiments.simulations.sheets import NO_ANSWER, looked_up, widest
from groundswell.stats.clusters import (
    Figure,
    Rows,
    are_pairs,
    difference,
    difference_of_shares,
    mean,
    of_people,
    within_people,
)
from groundswell.stats.rates import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

Pairing = Literal["simulation", "entity", "none"]
LEVEL = 0.95
NOT_THE_SAME = "the two batches have different entities"
NO_TEST = "fewer than 5 entities answered in both, all differ equally, or all are in one group"


class Gap(msgspec.Struct, frozen=True):
    """The difference between two batches in the mean of a scale or the share of an option.

    `difference` is `one` minus `other`. `change` is the difference in how answers changed during the conversation, if
    both batches asked before it too.
    """

    option: str | None
    one: float | None
    other: float | None
    difference: Figure
    change: Figure | None = None


class GroupGap(msgspec.Struct, frozen=True):
    """The same for one group of entities. `apart` is the gap in the group minus the gap among all others.

    `apart` has one value per gap; it is empty if answers are not paired.
    """

    value: str
    entities: int
    gaps: list[Gap]
    apart: list[Figure]


class DimensionGap(msgspec.Struct, frozen=True):
    """The same by one attribute, with the p-value of its effect on the difference, or the `reason` for none."""

    name: str
    groups: list[GroupGap]
    p: float | None = None
    p_holm: float | None = None
    reason: str = ""


class Sides(NamedTuple):
    """The answers of both batches as rows without values; `first` marks those of the first batch."""

    rows: Rows
    first: Bools
    occasion: Ints
    before: Ints
    after: Ints

    def among(self, chosen: Bools) -> Sides:
        """Some of them."""
        numbers = (each[chosen] for each in (self.occasion, self.before, self.after))
        return Sides(self.rows.among(chosen), self.first[chosen], *numbers)

    def matched(self) -> tuple[Ints, Ints]:
        """The rows of the first and of the second batch with the same entity, combination, condition and replicate."""
        import numpy as np

        rows, most = self.rows, int(self.occasion.max(initial=0)) + 1
        keys = (rows.company * most + self.occasion) * rows.links.people + rows.who
        one, other = np.flatnonzero(self.first), np.flatnonzero(~self.first)
        _, here, there = np.intersect1d(keys[one], keys[other], assume_unique=True, return_indices=True)
        return one[here], other[there]


def paired_by(answered: Sides) -> tuple[Pairing, int]:
    """How answers are paired, and the number of pairs.

    This is the closest pairing in which at least half of each batch has a partner.
    """
    import numpy as np

    many, others = int(answered.first.sum()), int((~answered.first).sum())
    matched = len(answered.matched()[0])
    if matched and 2 * matched >= max(many, others):
        return "simulation", matched
    who = answered.rows.who
    here, there = np.unique(who[answered.first]), np.unique(who[~answered.first])
    both = len(np.intersect1d(here, there))
    return ("entity", both) if both and 2 * both >= max(len(here), len(there)) else ("none", 0)


class Compared(NamedTuple):
    """One question of two batches, and how it is compared."""

    question: Question
    values: Sequence[Value]
    """The different answers; `sides` has their numbers."""
    sides: Sides
    pairing: Pairing
    twice: bool

    @property
    def _answered(self) -> Sides:
        return self.sides.among(self.sides.after != NO_ANSWER)

    def gaps(self) -> list[Gap]:
        """The differences between the batches."""
        return [self._gap(column) for column in self.question.columns]

    def by(self, name: str, division: Division | str) -> DimensionGap:
        """The same by an attribute, or why it forms no groups."""
        if isinstance(division, str):
            return DimensionGap(name, [], reason=division)
        groups = [self._group(division, number) for number in range(len(division.groups))]
        if self.pairing == "none":
            return DimensionGap(name, groups, reason=NOT_THE_SAME)
        p = self._bearing(division)
        return DimensionGap(name, groups, p, reason=NO_TEST if p is None else "")

    def _group(self, division: Division, number: int) -> GroupGap:
        mine = in_group(self.sides.rows, division.group_of, number)
        one, other = self._replace(sides=self.sides.among(mine)), self._replace(sides=self.sides.among(~mine))
        apart: list[Figure] = []
        if self.pairing != "none":
            apart = [
                difference(one._of(column)[0], other._of(column)[0], LEVEL, _twice(widest(column)))
                for column in self.question.columns
            ]
        return GroupGap(division.groups[number], division.group_of.count(number), one.gaps(), apart)

    def _bearing(self, division: Division) -> float | None:
        """The p-value of the attribute having no effect on the difference."""
        sides = self._answered
        columns: list[Rows] = []
        for column in self.question.columns:
            values = sides.rows.of(looked_up(self.values, column, sides.after))
            if self.pairing == "simulation":
                columns.append(_of_matched(values, sides))
            else:
                there, apart = of_people(values, sides.first)
                columns.append(values._replace(values=apart, who=there))
        return has_bearing(columns, division.group_of)

    def _gap(self, column: Column) -> Gap:
        sides, parts = self._answered, self._of(column)
        rows = sides.rows.of(looked_up(self.values, column, sides.after))
        one, other = rows.among(sides.first), rows.among(~sides.first)
        if column.option is not None and (len(parts) > 1 or are_pairs(one, other)):
            found = difference_of_shares(one, other, LEVEL, shared=len(parts) == 1)
        else:
            found = _figure(parts, widest(column))
        levels = self._levels(sides, rows.values)
        return Gap(column.option, *levels, found, self._change(column) if self.twice else None)

    def _of(self, column: Column) -> list[Rows]:
        sides = self._answered
        return self._parts(sides, looked_up(self.values, column, sides.after))

    def _change(self, column: Column) -> Figure:
        both = self.sides.among((self.sides.before != NO_ANSWER) & (self.sides.after != NO_ANSWER))
        after, before = (looked_up(self.values, column, codes) for codes in (both.after, both.before))
        return _figure(self._parts(both, after - before), _twice(widest(column)))

    def _parts(self, sides: Sides, values: Floats) -> list[Rows]:
        """Rows whose mean is the difference; or the rows of each batch, if not paired."""
        rows = sides.rows.of(values)
        if self.pairing == "simulation":
            return [_of_matched(rows, sides)]
        if self.pairing == "entity":
            return [within_people(rows, sides.first)]
        return [rows.among(sides.first), rows.among(~sides.first)]

    def _levels(self, sides: Sides, values: Floats) -> tuple[float | None, float | None]:
        """The mean of each batch, among the answers that are compared."""
        import numpy as np

        rows, first = sides.rows.of(values), sides.first
        here, there = values[first], values[~first]
        if self.pairing == "simulation":
            one, other = sides.matched()
            here, there = values[one], values[other]
        elif self.pairing == "entity":
            who, apart = of_people(rows, first)
            mine = first & np.isin(rows.who, who)
            counts = np.bincount(rows.who[mine], minlength=rows.links.people)
            here = np.bincount(rows.who[mine], values[mine], rows.links.people)[who] / counts[who]
            there = here - apart
        return _mean(here), _mean(there)


def _of_matched(rows: Rows, sides: Sides) -> Rows:
    """The difference of each pair."""
    one, other = sides.matched()
    return Rows(rows.values[one] - rows.values[other], rows.who[one], rows.company[one], rows.links)


def _figure(parts: Sequence[Rows], wide: Interval) -> Figure:
    return mean(parts[0], LEVEL, wide) if len(parts) == 1 else difference(parts[0], parts[1], LEVEL, wide)


def _twice(wide: Interval) -> Interval:
    return Interval(2 * wide.low, 2 * wide.high)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
