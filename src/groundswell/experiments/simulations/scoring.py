"""Scores that judge models give to conversations: labels of lines, and ratings of entities and of whole conversations.

A measure is written like a question. The scores of several judges are averaged. Each entity gets a number per measure,
or for a measure with options, one per option: the share of its lines (or of the judges) with this option. These
numbers are analysed like answers to a question.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Literal

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.questions import Answer, Column, Missing, Question, Value

Scored = Literal["line", "entity", "conversation"]
MOST_MEASURES = 50
MOST_JUDGES = 10
_NO_ID = re.compile(r"[^A-Za-z0-9_-]+")


class Scoring(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What judges score, and which models judge. Without `judges`, the model of the conversation is the judge.

    lines         measures of every line: the codebook
    entities      measures of each entity over the whole conversation: a rubric
    conversation  measures of the conversation as a whole
    """

    judges: tuple[str, ...] = ()
    lines: tuple[Question, ...] = ()
    entities: tuple[Question, ...] = ()
    conversation: tuple[Question, ...] = ()

    def __post_init__(self) -> None:
        measures = [each for _, each in self.measures]
        if not 1 <= len(measures) <= MOST_MEASURES:
            raise SettingsError(f"scores: {len(measures)} measures; must be 1 to {MOST_MEASURES}", field="scores")
        if len(self.judges) > MOST_JUDGES or len(set(self.judges)) < len(self.judges):
            raise SettingsError(f"scores: give up to {MOST_JUDGES} different judges", field="scores")
        ids = [each.id for each in measures]
        if twice := next((each for each in ids if ids.count(each) > 1), None):
            raise SettingsError(f"scores: the id {twice!r} is used twice", field="scores")
        for each in measures:
            if each.type not in ("choice", "multi", "scale", "number") or each.when:
                raise SettingsError(
                    f"scores: measure {each.id!r} must be of type choice, multi, scale or number, without `when`",
                    field="scores",
                )

    @property
    def measures(self) -> list[tuple[Scored, Question]]:
        """All measures, with what they score."""
        return [
            *(("line", each) for each in self.lines),
            *(("entity", each) for each in self.entities),
            *(("conversation", each) for each in self.conversation),
        ]

    @property
    def items(self) -> tuple[Question, ...]:
        """The numbers that are analysed, as questions."""
        return tuple(item for _, measure in self.measures for item, _ in items_of(measure))


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """One score of a judge: of a line (by its index), of an entity, or of the whole conversation."""

    judge: int
    measure: str
    value: Value | None = None
    line: int | None = None
    place: int | None = None
    missing: Missing = ""


def items_of(measure: Question) -> Iterator[tuple[Question, Column]]:
    """The numbers that a measure gives, each as a question, and how it follows from a score."""
    names = [_NO_ID.sub("-", column.option or "").strip("-") for column in measure.columns]
    if len(set(names)) < len(names) or any(not name or len(name) > 30 for name in names):
        names = [str(number) for number in range(1, len(names) + 1)]
    for name, column in zip(names, measure.columns, strict=True):
        low, high = (end if isfinite(end) else None for end in (column.low, column.high))
        if column.option is None:
            yield Question(measure.id, measure.text, "number", min=low, max=high), column
        else:
            text = f"{measure.text} ‘{column.option}’."
            yield Question(f"{measure.id}.{name}", text, "number", min=low, max=high), column


def answers_of(
    scoring: Scoring, scores: Sequence[Score], speakers: Sequence[int], asked: Sequence[int]
) -> list[Answer]:
    """The numbers of each entity, as answers. `speakers` are the places of the lines, `asked` those of the entities."""
    by_measure: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        by_measure[score.measure].append(score)
    found = []
    for scored, measure in scoring.measures:
        given = [each for each in by_measure[measure.id] if each.value is not None]
        for place in asked:
            own = [each for each in given if _is_about(each, scored, place, speakers)]
            for item, column in items_of(measure):
                values = [column.of(each.value) for each in own if each.value is not None]
                if values:
                    found.append(Answer(place, item.id, sum(values) / len(values)))
                else:
                    kind: Missing = "skipped" if scored == "line" and place not in speakers else "failed"
                    problem = "the entity said nothing" if kind == "skipped" else "no judge gave a score"
                    found.append(Answer(place, item.id, None, problem, missing=kind))
    return found


def _is_about(score: Score, scored: Scored, place: int, speakers: Sequence[int]) -> bool:
    """Whether a score counts for an entity."""
    if scored == "line":
        return score.line is not None and speakers[score.line] == place
    return scored == "conversation" or score.place == place
