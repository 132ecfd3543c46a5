"""What the answers to one question differ by in two batches: by pairs where there are any, and by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from groundswell.experiments.simulations.dimensions import Division
from groundswell.experiments.simulations.grouping import has_bearing, in_group
from groundswell.experiments.simulations.questions import Question
from groundswell.experiments.simulations.sheets import NO_ANSWER
from groundswell.stats.clusters import Figure, Rows, difference, difference_of_shares, mean, of_people, within_people
from groundswell.stats.rates import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

Pairing = Literal["simulation", "entity", "none"]
LEVEL = 0.95
NOT_THE_SAME = "the entities of the two batches are not the same"
NO_TEST = "fewer than 5 entities answered in both, or all differ alike, or all are of one group"


class Gap(msgspec.Struct, frozen=True):
    """What two batches differ by: in the mean of a scale, or in the share of an option.

    `one` less `other` is `difference`. `change` is the difference in how answers changed over the talk, where both
    asked ahead of it too.
    """

    option: str | None
    one: float | None
    other: float | None
    difference: Figure
    change: Figure | None = None


class GroupGap(msgspec.Struct, frozen=True):
    """The same among the entities of one group; `apart` is how much more it is there than among all others.

    `apart` has a figure for each gap; none where answers are not in pairs.
    """

    value: str
    entities: int
    gaps: list[Gap]
    apart: list[Figure]


class DimensionGap(msgspec.Struct, frozen=True):
    """The same by one attribute; `p` of it having no bearing on the difference, or `reason` why there is none."""

    name: str
    groups: list[GroupGap]
    p: float | None = None
    p_holm: float | None = None
    reason: str = ""


class Sides(NamedTuple):
    """The answers of both batches, one after the other: as rows without values, and which are of the first."""

    rows: Rows
    first: Bools
    replicate: Ints
    before: Ints
    after: Ints

    def among(self, chosen: Bools) -> Sides:
        """Some of them."""
        numbers = (each[chosen] for each in (self.replicate, self.before, self.after))
        return Sides(self.rows.among(chosen), self.first[chosen], *numbers)

    def matched(self) -> tuple[Ints, Ints]:
        """Where the same entity answered in the same combination and replicate, in the first batch and the second."""
        import numpy as np

        rows, most = self.rows, int(self.replicate.max(initial=0)) + 1
        keys = (rows.company * most + self.replicate) * rows.links.people + rows.who
        one, other = np.flatnonzero(self.first), np.flatnonzero(~self.first)
        _, here, there = np.intersect1d(keys[one], keys[other], assume_unique=True, return_indices=True)
        return one[here], other[there]


def paired_by(answered: Sides) -> tuple[Pairing, int]:
    """How answers are paired, and how many pairs there are.

    The closest way in which at least half of either batch has a partner: else the few that happen to have one would
    speak for all.
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
    sides: Sides
    pairing: Pairing
    twice: bool

    @property
    def _columns(self) -> Sequence[int | None]:
        """The options by their numbers; of a scale, the whole."""
        return [None] if self.question.type == "scale" else range(len(self.question.options))

    @property
    def _answered(self) -> Sides:
        return self.sides.among(self.sides.after != NO_ANSWER)

    def gaps(self) -> list[Gap]:
        """What the batches differ by."""
        return [self._gap(column) for column in self._columns]

    def by(self, name: str, division: Division | str) -> DimensionGap:
        """The same by an attribute; or why it makes no groups."""
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
            wide = _twice(_widest(self.question))
            apart = [difference(one._of(column)[0], other._of(column)[0], LEVEL, wide) for column in self._columns]
        return GroupGap(division.groups[number], division.group_of.count(number), one.gaps(), apart)

    def _bearing(self, division: Division) -> float | None:
        """Whether the attribute has a bearing on what the batches differ by."""
        sides = self._answered
        columns: list[Rows] = []
        for column in self._columns:
            values = sides.rows.of(_valued(self.question, sides.after, column))
            if self.pairing == "simulation":
                columns.append(_of_matched(values, sides))
            else:
                there, apart = of_people(values, sides.first)
                columns.append(values._replace(values=apart, who=there))
        return has_bearing(columns, division.group_of)

    def _gap(self, column: int | None) -> Gap:
        sides, wide = self._answered, _widest(self.question)
        parts = self._of(column)
        if len(parts) > 1 and column is not None:
            found = difference_of_shares(parts[0], parts[1], LEVEL)
        else:
            found = _figure(parts, wide)
        option = None if column is None else self.question.options[column]
        one, other = self._levels(sides, _valued(self.question, sides.after, column))
        return Gap(option, one, other, found, self._change(column) if self.twice else None)

    def _of(self, column: int | None) -> list[Rows]:
        sides = self._answered
        return self._parts(sides, _valued(self.question, sides.after, column))

    def _change(self, column: int | None) -> Figure:
        both = self.sides.among((self.sides.before != NO_ANSWER) & (self.sides.after != NO_ANSWER))
        moved = _valued(self.question, both.after, column) - _valued(self.question, both.before, column)
        return _figure(self._parts(both, moved), _twice(_widest(self.question)))

    def _parts(self, sides: Sides, values: Floats) -> list[Rows]:
        """Rows whose mean is the difference; or those of either batch, where there are no pairs."""
        rows = sides.rows.of(values)
        if self.pairing == "simulation":
            return [_of_matched(rows, sides)]
        if self.pairing == "entity":
            return [within_people(rows, sides.first)]
        return [rows.among(sides.first), rows.among(~sides.first)]

    def _levels(self, sides: Sides, values: Floats) -> tuple[float | None, float | None]:
        """What the difference is one of: the figure of either batch, among those that are compared."""
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
    """What answers differ by, pair by pair."""
    one, other = sides.matched()
    return Rows(rows.values[one] - rows.values[other], rows.who[one], rows.company[one], rows.cell[one], rows.links)


def _figure(parts: Sequence[Rows], wide: Interval) -> Figure:
    return mean(parts[0], LEVEL, wide) if len(parts) == 1 else difference(parts[0], parts[1], LEVEL, wide)


def _valued(question: Question, codes: Ints, column: int | None) -> Floats:
    """Answers as numbers: on a scale what was said; of an option, whether it was chosen."""
    values: Floats = (codes + question.low).astype(float) if column is None else (codes == column).astype(float)
    return values


def _widest(question: Question) -> Interval:
    wide = float(question.high - question.low) if question.type == "scale" else 1.0
    return Interval(-wide, wide)


def _twice(wide: Interval) -> Interval:
    return Interval(2 * wide.low, 2 * wide.high)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
