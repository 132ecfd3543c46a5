"""Results of a questionnaire: shares, means and changes with intervals, and by attribute."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from groundswell.experiments.simulations.dimensions import Look
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.grouping import DimensionFigures, by_dimensions
from groundswell.experiments.simulations.questions import Kind
from groundswell.experiments.simulations.sheets import Answered, Sheet, chose, sheet_of
from groundswell.stats.clusters import Figure, mean, share


class Asked(msgspec.Struct, frozen=True):
    """How often a question was asked in usable simulations, answered and missing."""

    asked: int
    answered: int
    missing: int


class OptionFigures(msgspec.Struct, frozen=True):
    """One option of a choice: count and share, and if asked, the share before the conversation and its change.

    A change includes only entities that answered both times, so it can differ from the difference of the shares.
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
    """The answers on a scale: mean, standard deviation of single answers, and the count of each step."""

    low: int
    high: int
    mean: Figure
    sd: float | None
    steps: list[StepCount]
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

    `before` counts the answers before the conversation; None if it was not asked then.
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


def tabulated(
    answered: Answered,
    companies: Sequence[tuple[int, ...]],
    entities: Sequence[Entity],
    looks: Sequence[Look],
    level: float,
) -> QuestionFigures:
    """The results of one question. `companies` are the entities of each combination."""
    question = answered.question
    if question.type == "text":
        return _of_text(answered, entities)
    sheet = sheet_of(answered, companies, level)
    before = _asked(answered.asked, len(sheet.answered(before=True).values)) if answered.before else None
    return QuestionFigures(
        id=question.id,
        text=question.text,
        type=question.type,
        after=_asked(answered.asked, len(sheet.answered().values)),
        before=before,
        options=_options(sheet, before=answered.before) if question.type == "choice" else [],
        scale=_scale(sheet, before=answered.before) if question.type == "scale" else None,
        dimensions=by_dimensions(sheet, looks),
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


def _options(sheet: Sheet, *, before: bool) -> list[OptionFigures]:
    after = sheet.answered()
    figures = []
    for code, option in enumerate(sheet.question.options):
        taken = chose(after, code)
        was = share(chose(sheet.answered(before=True), code), sheet.level) if before else None
        change = mean(sheet.moved(code), sheet.level, sheet.widest) if before else None
        figures.append(OptionFigures(option, int(taken.values.sum()), share(taken, sheet.level), was, change))
    return figures


def _scale(sheet: Sheet, *, before: bool) -> ScaleFigures:
    import numpy as np

    low, high, after = sheet.question.low, sheet.question.high, sheet.answered()
    counts = np.bincount(after.values.astype(np.int64), minlength=high - low + 1)
    return ScaleFigures(
        low=low,
        high=high,
        mean=sheet.mean(after),
        sd=float(after.values.std(ddof=1)) if len(after.values) > 1 else None,
        steps=[StepCount(low + code, int(count)) for code, count in enumerate(counts)],
        before=sheet.mean(sheet.answered(before=True)) if before else None,
        change=mean(sheet.moved(), sheet.level, sheet.widest) if before else None,
    )
