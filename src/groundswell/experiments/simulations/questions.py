"""Questionnaires and answers."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import check_id, check_text

Kind = Literal["choice", "scale", "text"]
MOST_QUESTIONS = 50
MOST_STEPS = 101
LONGEST_QUOTED = 200


class Question(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One question: a choice among options, a number on a scale, or free text.

    `low_label` and `high_label` describe the ends of a scale.
    """

    id: str
    text: str
    type: Kind = "text"
    options: tuple[str, ...] = ()
    low: int = 1
    high: int = 5
    low_label: str = ""
    high_label: str = ""

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        for field in ("text", "low_label", "high_label"):
            check_text(getattr(self, field), field)
        if not self.text.strip():
            raise self._wrong("text", "must not be empty")
        if self.type not in get_args(Kind):
            raise self._wrong("type", f"{self.type!r} must be one of {', '.join(get_args(Kind))}")
        if self.type == "choice":
            self._check_options()
        elif self.options:
            raise self._wrong("options", f"not allowed for a question of type {self.type}; remove them")
        if self.type == "scale" and not 1 <= self.high - self.low < MOST_STEPS:
            raise self._wrong(
                "high", f"a scale must have 2 to {MOST_STEPS} steps, but this one goes from {self.low} to {self.high}"
            )

    def _check_options(self) -> None:
        if len(self.options) < 2 or len(set(self.options)) < len(self.options):
            raise self._wrong("options", "a choice needs at least two different options")
        for option in self.options:
            check_text(option, "options")
            if not option.strip():
                raise self._wrong("options", "an option is empty")

    def _wrong(self, field: str, problem: str) -> SettingsError:
        return SettingsError(f"question {self.id!r}, {field}: {problem}", field=field)

    def problem(self, value: object) -> str | None:
        """Why an answer is invalid; None if it is valid. The text is also sent to the model."""
        if self.type == "choice":
            return None if value in self.options else f"{_quoted(value)} is none of {', '.join(self.options)}"
        if self.type == "scale":
            fits = isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high
            return None if fits else f"{_quoted(value)} is no whole number from {self.low} to {self.high}"
        return None if isinstance(value, str) and value.strip() else "is empty"


def _quoted(value: object) -> str:
    """An answer as quoted in a problem, shortened: it is stored and sent to the model again."""
    shown = repr(value)
    return shown if len(shown) <= LONGEST_QUOTED else f"{shown[:LONGEST_QUOTED]}…"


class Questionnaire(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Questions that each entity answers after the conversation and, with `before`, also before it.

    With `shuffle`, each entity gets the options of a choice in random order.
    """

    questions: tuple[Question, ...]
    before: bool = False
    shuffle: bool = True

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= MOST_QUESTIONS:
            raise SettingsError(
                f"questions: {len(self.questions)} given; must be 1 to {MOST_QUESTIONS}", field="questions"
            )
        ids = [question.id for question in self.questions]
        twice = next((each for each in ids if ids.count(each) > 1), None)
        if twice is not None:
            raise SettingsError(f"questions: the id {twice!r} is used twice", field="questions")


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of one entity to one question. `value` is None if there is no valid answer; `problem` says why."""

    place: int
    """Index of the entity in the simulation."""
    question: str
    value: str | int | None = None
    problem: str = ""
    before: bool = False
