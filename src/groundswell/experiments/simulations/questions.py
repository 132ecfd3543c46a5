"""A questionnaire: what entities are asked beside their talk, and what they answered."""

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

    `low_label` and `high_label` say what the ends of a scale mean.
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
            raise self._wrong("text", "nothing is asked")
        if self.type not in get_args(Kind):
            raise self._wrong("type", f"{self.type!r}: there are {', '.join(get_args(Kind))}")
        if self.type == "choice":
            self._check_options()
        elif self.options:
            raise self._wrong("options", f"a question of type {self.type} has none; leave them out")
        if self.type == "scale" and not 1 <= self.high - self.low < MOST_STEPS:
            raise self._wrong("high", f"from {self.low} to {self.high} is no scale: 2 to {MOST_STEPS} steps are")

    def _check_options(self) -> None:
        if len(self.options) < 2 or len(set(self.options)) < len(self.options):
            raise self._wrong("options", "a choice needs at least two, all different")
        for option in self.options:
            check_text(option, "options")
            if not option.strip():
                raise self._wrong("options", "one of them is empty")

    def _wrong(self, field: str, problem: str) -> SettingsError:
        return SettingsError(f"question {self.id!r}, {field}: {problem}", field=field)

    def problem(self, value: object) -> str | None:
        """What is wrong with an answer, if anything is."""
        if self.type == "choice":
            return None if value in self.options else f"{_quoted(value)} is none of {', '.join(self.options)}"
        if self.type == "scale":
            fits = isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high
            return None if fits else f"{_quoted(value)} is no whole number from {self.low} to {self.high}"
        return None if isinstance(value, str) and value.strip() else "is empty"


def _quoted(value: object) -> str:
    """An answer as a problem names it: it is kept and told to the model again, so that a long one is cut."""
    shown = repr(value)
    return shown if len(shown) <= LONGEST_QUOTED else f"{shown[:LONGEST_QUOTED]}…"


class Questionnaire(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Questions put to each entity at the end of the talk and, with `before`, also ahead of it, to see what it changed.

    With `shuffle`, every entity gets the options of a choice in an order of its own: none wins by its place.
    """

    questions: tuple[Question, ...]
    before: bool = False
    shuffle: bool = True

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= MOST_QUESTIONS:
            raise SettingsError(
                f"questions: {len(self.questions)} given; there must be 1 to {MOST_QUESTIONS}", field="questions"
            )
        ids = [question.id for question in self.questions]
        twice = next((each for each in ids if ids.count(each) > 1), None)
        if twice is not None:
            raise SettingsError(f"questions: two have the id {twice!r}", field="questions")


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one entity answered to one question; None where no answer could be had, and then why."""

    place: int
    """Who answered: the place among the entities of the simulation."""
    question: str
    value: str | int | None = None
    problem: str = ""
    before: bool = False
