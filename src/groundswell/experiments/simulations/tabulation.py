"""Answers to a questionnaire as figures: shares, means, changes, each with an interval; and by dimension."""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from groundswell.experiments.simulations.dimensions import AttributeKind, Division
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Kind, Question
from groundswell.stats.labels import bearing
from groundswell.stats.many import holm
from groundswell.stats.means import Figure, Rows, difference, difference_of_shares, mean, rows, share
from groundswell.stats.rates import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

EXAMPLES = 5
"""So many answers to a question of free text are shown as they are."""
NO_ANSWER = -1
NO_TEST = "fewer than 5 entities answered, or all alike, or all of one group"


class Asked(msgspec.Struct, frozen=True):
    """How often something was asked in usable simulations, how often answered, and how often no answer could be had."""

    asked: int
    answered: int
    missing: int


class OptionFigures(msgspec.Struct, frozen=True):
    """One option of a choice: how many chose it; and the share before the talk and how it changed, where asked.

    A change is over those who answered both times, so it need not be the difference of the two shares.
    """

    option: str
    count: int
    share: Figure
    before: Figure | None = None
    change: Figure | None = None


class StepCount(msgspec.Struct, frozen=True):
    """One step of a scale, and how many chose it."""

    step: int
    count: int


class ScaleFigures(msgspec.Struct, frozen=True):
    """The answers on a scale: mean, standard deviation of single answers, counts of all steps."""

    low: int
    high: int
    mean: Figure
    sd: float | None
    steps: list[StepCount]
    before: Figure | None = None
    change: Figure | None = None


class Example(msgspec.Struct, frozen=True):
    """An answer as it was given."""

    simulation: int
    entity_id: str
    name: str
    text: str


class TextFigures(msgspec.Struct, frozen=True):
    """Answers in free text: words per answer, and the first ones as they are."""

    words: float | None
    examples: list[Example]


class GroupOption(msgspec.Struct, frozen=True):
    """One option among the answers of a group; `difference` is its share less that among all other entities."""

    option: str
    count: int
    share: Figure
    difference: Figure


class GroupFigures(msgspec.Struct, frozen=True):
    """The entities with one value of an attribute. A choice has `options`, a scale has `mean` and `difference`."""

    value: str
    entities: int
    answered: int
    options: list[GroupOption] = []
    mean: Figure | None = None
    difference: Figure | None = None


class DimensionFigures(msgspec.Struct, frozen=True):
    """A question by one attribute of the entities.

    cut     where numbers with many values were cut in halves: the first group is up to it
    p       of the attribute having no bearing on the answers, by giving the values of entities to others
    p_holm  the same, adjusted for how many attributes the question is looked at by
    reason  why there is no p
    """

    name: str
    kind: AttributeKind
    groups: list[GroupFigures]
    cut: float | None = None
    p: float | None = None
    p_holm: float | None = None
    reason: str = ""


class QuestionFigures(msgspec.Struct, frozen=True):
    """One question: a choice has `options`, a scale has `scale`, free text has `free`; all of them after the talk.

    `before` counts those asked ahead of it; it is None where nobody was.
    """

    id: str
    text: str
    type: Kind
    after: Asked
    before: Asked | None = None
    options: list[OptionFigures] = []
    scale: ScaleFigures | None = None
    free: TextFigures | None = None
    dimensions: list[DimensionFigures] = []


class Answered:
    """The answers to one question as they come: five small numbers each, and of free text but the first ones."""

    def __init__(self, question: Question, before: bool) -> None:
        self.question = question
        self.before = before
        self.asked = 0
        self.texts = self.texts_before = self.words = 0
        self.examples: list[tuple[int, int, str]] = []
        """Of the simulations with the lowest numbers: the simulation, the entity, the text."""
        self.table = array("q")
        """Simulation, entity, company, answer before and after, row by row."""
        self._codes: dict[str | int, int] = {option: at for at, option in enumerate(self._values())}

    def _values(self) -> Sequence[str | int]:
        question = self.question
        return range(question.low, question.high + 1) if question.type == "scale" else question.options

    def add(self, number: int, entity: int, company: int, before: str | int | None, after: str | int | None) -> None:
        """What an entity answered in a simulation, before and after the talk; None where there is no answer."""
        self.asked += 1
        if self.question.type != "text":
            codes = (self._codes.get(each, NO_ANSWER) if each is not None else NO_ANSWER for each in (before, after))
            self.table.extend((number, entity, company, *codes))
            return
        self.texts_before += before is not None
        if isinstance(after, str):
            self.texts += 1
            self.words += len(after.split())
            insort(self.examples, (number, entity, after))
            del self.examples[EXAMPLES:]


class Sheet(NamedTuple):
    """The answers to one question in a fixed order: who gave them in which company, before and after, as numbers."""

    question: Question
    rows: Rows
    before: Ints
    after: Ints
    level: float

    def answered(self, *, before: bool = False) -> Rows:
        """The rows with an answer, its number as the value."""
        codes = self.before if before else self.after
        return self.rows.of(codes.astype(float)).among(codes != NO_ANSWER)

    def changed(self) -> tuple[Rows, Ints, Ints]:
        """The rows with an answer before and after, and these answers."""
        both = (self.before != NO_ANSWER) & (self.after != NO_ANSWER)
        return self.rows.among(both), self.before[both], self.after[both]


def tabulated(
    answered: Answered,
    companies: Sequence[tuple[int, ...]],
    entities: Sequence[Entity],
    divisions: Sequence[Division],
    level: float,
) -> QuestionFigures:
    """The figures of one question; `companies` are the entities of each combination."""
    question = answered.question
    if question.type == "text":
        return _of_text(answered, entities)
    sheet = _sheet(answered, companies, level)
    by_dimension = _adjusted([_by_dimension(sheet, division) for division in divisions])
    before = _asked(answered.asked, len(sheet.answered(before=True).values)) if answered.before else None
    return QuestionFigures(
        id=question.id,
        text=question.text,
        type=question.type,
        after=_asked(answered.asked, len(sheet.answered().values)),
        before=before,
        options=_options(sheet, before=answered.before) if question.type == "choice" else [],
        scale=_scale(sheet, before=answered.before) if question.type == "scale" else None,
        dimensions=by_dimension,
    )


def _asked(asked: int, answered: int) -> Asked:
    return Asked(asked, answered, asked - answered)


def _of_text(answered: Answered, entities: Sequence[Entity]) -> QuestionFigures:
    question, texts = answered.question, answered.texts
    examples = [Example(number, entities[at].id, entities[at].name, text) for number, at, text in answered.examples]
    return QuestionFigures(
        id=question.id,
        text=question.text,
        type=question.type,
        after=_asked(answered.asked, texts),
        before=_asked(answered.asked, answered.texts_before) if answered.before else None,
        free=TextFigures(answered.words / texts if texts else None, examples),
    )


def _sheet(answered: Answered, companies: Sequence[tuple[int, ...]], level: float) -> Sheet:
    """Rows by simulation and entity, and companies by who is in them: sums do not depend on what came first."""
    import numpy as np

    table = np.array(answered.table, dtype=np.int64).reshape(-1, 5)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    order = sorted(range(len(companies)), key=companies.__getitem__)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    members = [companies[number] for number in order]
    found = rows(np.zeros(len(table)), table[:, 1], place[table[:, 2]], members)
    return Sheet(answered.question, found, table[:, 3], table[:, 4], level)


def _options(sheet: Sheet, *, before: bool) -> list[OptionFigures]:
    after = sheet.answered()
    figures = []
    for code, option in enumerate(sheet.question.options):
        chose = _chose(after, code)
        was = share(_chose(sheet.answered(before=True), code), sheet.level) if before else None
        change = _change_of_share(sheet, code) if before else None
        figures.append(OptionFigures(option, int(chose.values.sum()), share(chose, sheet.level), was, change))
    return figures


def _chose(answered: Rows, code: int) -> Rows:
    """1 for those who chose an option, 0 for the others."""
    return answered.of((answered.values == code).astype(float))


def _change_of_share(sheet: Sheet, code: int) -> Figure:
    found, before, after = sheet.changed()
    moved = (after == code).astype(float) - (before == code)
    return mean(found.of(moved), sheet.level, Interval(-1.0, 1.0))


def _scale(sheet: Sheet, *, before: bool) -> ScaleFigures:
    import numpy as np

    low, high, after = sheet.question.low, sheet.question.high, sheet.answered()
    counts = np.bincount(after.values.astype(np.int64), minlength=high - low + 1)
    found, first, last = sheet.changed()
    wide = Interval(float(low - high), float(high - low))
    return ScaleFigures(
        low=low,
        high=high,
        mean=_mean(sheet, after),
        sd=float(after.values.std(ddof=1)) if len(after.values) > 1 else None,
        steps=[StepCount(low + code, int(count)) for code, count in enumerate(counts)],
        before=_mean(sheet, sheet.answered(before=True)) if before else None,
        change=mean(found.of((last - first).astype(float)), sheet.level, wide) if before else None,
    )


def _mean(sheet: Sheet, answered: Rows) -> Figure:
    low, high = float(sheet.question.low), float(sheet.question.high)
    return mean(answered.of(answered.values + low), sheet.level, Interval(low, high))


def _by_dimension(sheet: Sheet, division: Division) -> DimensionFigures:
    import numpy as np

    answered = sheet.answered()
    groups = np.array(division.group_of)[answered.who]
    figures = [
        _group(sheet, answered, groups == number, label, division.group_of.count(number))
        for number, label in enumerate(division.groups)
    ]
    p = _bearing(sheet, answered, division)
    return DimensionFigures(division.name, division.kind, figures, division.cut, p, reason=NO_TEST if p is None else "")


def _group(sheet: Sheet, answered: Rows, mine: NDArray[np.bool_], label: str, entities: int) -> GroupFigures:
    one, other = answered.among(mine), answered.among(~mine)
    if sheet.question.type == "scale":
        wide = float(sheet.question.high - sheet.question.low)
        apart = difference(one, other, sheet.level, Interval(-wide, wide))
        return GroupFigures(label, entities, len(one.values), mean=_mean(sheet, one), difference=apart)
    return GroupFigures(label, entities, len(one.values), list(_group_options(sheet, one, other)))


def _group_options(sheet: Sheet, one: Rows, other: Rows) -> Iterator[GroupOption]:
    for code, option in enumerate(sheet.question.options):
        chose, others = _chose(one, code), _chose(other, code)
        apart = difference_of_shares(chose, others, sheet.level)
        yield GroupOption(option, int(chose.values.sum()), share(chose, sheet.level), apart)


def _bearing(sheet: Sheet, answered: Rows, division: Division) -> float | None:
    """Whether the attribute has any bearing on the mean, or on how often each option is chosen."""
    import numpy as np

    counts = np.bincount(answered.who, minlength=len(division.group_of))
    columns = [answered]
    if sheet.question.type == "choice":
        columns = [_chose(answered, code) for code in range(len(sheet.question.options))]
    totals = np.stack([np.bincount(each.who, each.values, len(counts)) for each in columns], axis=1)
    there = np.flatnonzero(counts)
    return bearing(totals[there].astype(float), counts[there], [division.group_of[entity] for entity in there.tolist()])


def _adjusted(dimensions: Sequence[DimensionFigures]) -> list[DimensionFigures]:
    """With p-values adjusted for how many there are."""
    adjusted = iter(holm([each.p for each in dimensions if each.p is not None]))
    return [each if each.p is None else msgspec.structs.replace(each, p_holm=next(adjusted)) for each in dimensions]
