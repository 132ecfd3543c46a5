"""Results of a questionnaire: shares, means and changes with intervals, and by attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from groundswell.experiments.simulations.dimensions import Look
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.grouping import DimensionFigures, by_dimensions
from groundswell.experiments.simulations.questions import Column, Kind
from groundswell.experiments.simulations.sheets import NOT_ASKED, Answered, Sheet, mean_of, sheet_of, widest
from groundswell.stats.clusters import Figure, mean, share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Asked(msgspec.Struct, frozen=True):
    """How often a question was asked in usable simulations, answered and missing."""

    asked: int
    answered: int
    missing: int


class OptionFigures(msgspec.Struct, frozen=True):
    """One option: count and share, and if asked, the share before the conversation and its change.

    The options of a ranking are counted where they were ranked first. A change includes only entities that answered
    both times, so it can differ from the difference of the shares.
    """

    option: str
    count: int
    share: Figure
    before: Figure | None = None
    change: Figure | None = None


class StepCount(msgspec.Struct, frozen=True):
    """One step of a scale and its count."""

    step: int
    count: int


class ScaleFigures(msgspec.Struct, frozen=True):
    """Numeric answers: mean, standard deviation of single answers, and for a scale the count of each step.

    `low` and `high` are the ends of a scale, or the bounds of a number, if it has any.
    """

    low: float | None
    high: float | None
    mean: Figure
    sd: float | None
    steps: list[StepCount]
    before: Figure | None = None
    change: Figure | None = None
    median: float | None = None


class RankFigures(msgspec.Struct, frozen=True):
    """The mean rank of one option of a ranking; 1 is first."""

    option: str
    mean: Figure
    before: Figure | None = None
    change: Figure | None = None


class Example(msgspec.Struct, frozen=True):
    """A free-text answer."""

    simulation: int
    entity_id: str
    name: str
    text: str


class TextFigures(msgspec.Struct, frozen=True):
    """Free-text answers: words per answer, and the first answers as examples."""

    words: float | None
    examples: list[Example]


class QuestionFigures(msgspec.Struct, frozen=True):
    """The results of one question after the conversation: `options`, `scale` or `free`, by its type.

    `before` counts the answers before the conversation; None if it was not asked then. A ranking has `ranks` besides
    its options. `missing` counts missing answers after the conversation by kind.
    """

    id: str
    text: str
    type: Kind
    after: Asked
    before: Asked | None = None
    options: list[OptionFigures] = []
    scale: ScaleFigures | None = None
    free: TextFigures | None = None
    ranks: list[RankFigures] = []
    missing: dict[str, int] = {}
    dimensions: list[DimensionFigures] = []


def tabulated(
    answered: Answered,
    companies: Sequence[tuple[int, ...]],
    entities: Sequence[Entity],
    looks: Sequence[Look],
    level: float,
) -> QuestionFigures:
    """The results of one question. `companies` are the entities of each combination."""
    if answered.is_text:
        return _of_text(answered, entities)
    sheet = sheet_of(answered, companies, level)
    return msgspec.structs.replace(
        question_figures(sheet), missing=dict(sorted(answered.missing.items())), dimensions=by_dimensions(sheet, looks)
    )


def question_figures(sheet: Sheet) -> QuestionFigures:
    """The results of a question that is not free text, without a breakdown."""
    question = sheet.question
    return QuestionFigures(
        id=question.id,
        text=question.text,
        type=question.type,
        after=_asked(sheet.after),
        before=_asked(sheet.before) if sheet.twice else None,
        options=[] if question.is_numeric else [_option(sheet, column) for column in question.columns],
        scale=_scale(sheet, question.columns[0]) if question.is_numeric else None,
        ranks=[_rank(sheet, column) for column in question.ranks],
    )


def _asked(codes: NDArray[np.int64]) -> Asked:
    asked, answered = int((codes != NOT_ASKED).sum()), int((codes >= 0).sum())
    return Asked(asked, answered, asked - answered)


def _of_text(answered: Answered, entities: Sequence[Entity]) -> QuestionFigures:
    question, texts = answered.question, answered.texts
    examples = [Example(number, entities[at].id, entities[at].name, text) for number, at, text in answered.examples]
    return QuestionFigures(
        id=question.id,
        text=question.text,
        type=question.type,
        after=Asked(answered.asked, texts, answered.asked - texts),
        before=Asked(answered.asked_before, answered.texts_before, answered.asked_before - answered.texts_before)
        if answered.before
        else None,
        free=TextFigures(answered.words / texts if texts else None, examples),
    )


def _option(sheet: Sheet, column: Column) -> OptionFigures:
    after, level = sheet.answered(column), sheet.level
    was = share(sheet.answered(column, before=True), level) if sheet.twice else None
    change = mean(sheet.moved(column), level, widest(column)) if sheet.twice else None
    return OptionFigures(column.option or "", int(after.values.sum()), share(after, level), was, change)


def _rank(sheet: Sheet, column: Column) -> RankFigures:
    return RankFigures(column.option or "", *_means(sheet, column))


def _means(sheet: Sheet, column: Column) -> tuple[Figure, Figure | None, Figure | None]:
    """The mean after the conversation, and if asked twice, the mean before it and the change."""
    after = mean_of(sheet.answered(column), column, sheet.level)
    if not sheet.twice:
        return after, None, None
    before = mean_of(sheet.answered(column, before=True), column, sheet.level)
    return after, before, mean(sheet.moved(column), sheet.level, widest(column))


def _scale(sheet: Sheet, column: Column) -> ScaleFigures:
    import numpy as np

    values, question = sheet.answered(column).values, sheet.question
    found, before, change = _means(sheet, column)
    steps = []
    if question.type == "scale":
        counts = np.bincount(values.astype(np.int64) - question.low, minlength=question.high - question.low + 1)
        steps = [StepCount(question.low + code, int(count)) for code, count in enumerate(counts)]
    return ScaleFigures(
        low=question.low if question.type == "scale" else question.min,
        high=question.high if question.type == "scale" else question.max,
        mean=found,
        sd=float(values.std(ddof=1)) if len(values) > 1 else None,
        steps=steps,
        before=before,
        change=change,
        median=float(np.median(values)) if len(values) else None,
    )
