"""Questionnaires and answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, inf, isfinite
from random import Random
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import RANGE, check_id, check_text

Kind = Literal["choice", "multi", "ranking", "scale", "number", "text", "matrix"]
Value = str | int | float | tuple[str, ...]
"""An answer: an option or a text, a number, or several options, those of a ranking from first to last."""
Missing = Literal["", "declined", "refused", "malformed", "failed", "skipped"]
Wanted = str | bool | int | float | tuple[str | int | float, ...]
"""A condition on an earlier answer: a value, several of them, or a range such as `3..`, `..2` or `2..4`."""
MOST_QUESTIONS = 200
MOST_STEPS = 101
MOST_OPTIONS = 1_000
LONGEST_QUOTED = 200
LARGEST = 1e15
"""The largest number that can be an answer."""
PIPED = re.compile(r"\{([A-Za-z0-9][A-Za-z0-9._-]{0,63})\}")


class Column(NamedTuple):
    """A number that answers have: the value of a scale, or whether an option was chosen.

    `option` is None if the answer itself is the number. `low` and `high` bound it.
    """

    option: str | None
    low: float
    high: float
    of: Callable[[Value], float]


class Question(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One question.

    choice   one of `options`
    multi    any number of `options`, at least `least` and at most `most`
    ranking  all `options` from first to last
    scale    a whole number from `low` to `high`; `low_label` and `high_label` describe the ends
    number   a number, from `min` to `max` if given; a whole one with `whole`
    text     free text
    matrix   `rows`, each answered on the scale, or with one of the options if there are any

    `when` shows the question only after these answers to earlier ones: `{"support": ["no", "unsure"], "trust": "..3"}`.
    A text can contain earlier answers: `{support}`.
    """

    id: str
    text: str
    type: Kind = "text"
    options: tuple[str, ...] = ()
    low: int = 1
    high: int = 5
    low_label: str = ""
    high_label: str = ""
    least: int = 0
    most: int | None = None
    min: float | None = None
    max: float | None = None
    whole: bool = False
    rows: dict[str, str] = {}
    when: dict[str, Wanted] = {}

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        for field in ("text", "low_label", "high_label"):
            check_text(getattr(self, field), field)
        if not self.text.strip():
            raise self._wrong("text", "must not be empty")
        if self.type not in get_args(Kind):
            raise self._wrong("type", f"{self.type!r} must be one of {', '.join(get_args(Kind))}")
        self._check_foreign_fields()
        if self.options or self.type in ("choice", "multi", "ranking"):
            self._check_options()
        if self.is_scale and self.low >= self.high:
            raise self._wrong("low", f"{self.low} must be below high, {self.high}")
        if self.is_scale and self.high - self.low >= MOST_STEPS:
            raise self._wrong(
                "high", f"a scale must have 2 to {MOST_STEPS} steps, but this one goes from {self.low} to {self.high}"
            )
        if self.type == "multi":
            self._check_number_of_choices()
        if self.type == "number":
            self._check_bounds()
        if self.type == "matrix":
            self._check_rows()

    @property
    def is_scale(self) -> bool:
        """Whether answers, or those of the rows, are steps of a scale."""
        return self.type == "scale" or (self.type == "matrix" and not self.options)

    @property
    def is_numeric(self) -> bool:
        """Whether an answer is a number."""
        return self.type in ("scale", "number")

    def _check_foreign_fields(self) -> None:
        belongs = {
            "options": ("choice", "multi", "ranking", "matrix"),
            "least": ("multi",),
            "most": ("multi",),
            "min": ("number",),
            "max": ("number",),
            "whole": ("number",),
            "rows": ("matrix",),
        }
        for field, types in belongs.items():
            if self.type not in types and getattr(self, field) not in ((), None, 0, False, {}):
                raise self._wrong(field, f"not allowed for a question of type {self.type}; remove it")

    def _check_options(self) -> None:
        if len(self.options) < 2 or len(set(self.options)) < len(self.options):
            raise self._wrong("options", f"a {self.type} question needs at least two different options")
        if len(self.options) > MOST_OPTIONS:
            raise self._wrong("options", f"{len(self.options)} given; at most {MOST_OPTIONS} are allowed")
        for option in self.options:
            check_text(option, "options")
            if not option.strip():
                raise self._wrong("options", "an option is empty")

    def _check_number_of_choices(self) -> None:
        most = len(self.options) if self.most is None else self.most
        if not 0 <= self.least <= most <= len(self.options) or most == 0:
            raise self._wrong(
                "most", f"{self.least} to {most} of {len(self.options)} options is not possible; change least or most"
            )

    def _check_bounds(self) -> None:
        low, high = -inf if self.min is None else self.min, inf if self.max is None else self.max
        for field in ("min", "max"):
            if (end := getattr(self, field)) is not None and not isfinite(end):
                raise self._wrong(field, f"{end} is not a finite number")
        if not low < high:
            raise self._wrong("max", f"{high:g} must be greater than min, {low:g}")
        if any(isfinite(end) and abs(end) > LARGEST for end in (low, high)):
            raise self._wrong("max", f"numbers must be from {-LARGEST:g} to {LARGEST:g}")
        if self.whole and isfinite(low) and isfinite(high) and floor(high) < ceil(low):
            raise self._wrong("max", f"there is no whole number from {low:g} to {high:g}")

    def _check_rows(self) -> None:
        if not 1 <= len(self.rows) <= MOST_QUESTIONS:
            raise self._wrong("rows", f"{len(self.rows)} given; must be 1 to {MOST_QUESTIONS}")
        for name, text in self.rows.items():
            check_id(f"{self.id}.{name}", "rows")
            check_text(text, "rows")
            if not text.strip():
                raise self._wrong("rows", f"the text of row {name!r} is empty")

    def _wrong(self, field: str, problem: str) -> SettingsError:
        return SettingsError(f"question {self.id!r}, {field}: {problem}", field=field)

    @property
    def items(self) -> tuple[Question, ...]:
        """The question itself; for a matrix, a question for each row."""
        if self.type != "matrix":
            return (self,)
        return tuple(
            Question(
                f"{self.id}.{name}",
                f"{self.text} {text}",
                "choice" if self.options else "scale",
                self.options,
                *(self.low, self.high, self.low_label, self.high_label),
            )
            for name, text in self.rows.items()
        )

    @property
    def columns(self) -> list[Column]:
        """What is analysed: the number itself; or for each option, whether it was chosen or ranked first."""
        if self.type == "scale":
            return [Column(None, float(self.low), float(self.high), _number)]
        if self.type == "number":
            low, high = -inf if self.min is None else self.min, inf if self.max is None else self.max
            return [Column(None, low, high, _number)]
        return [Column(option, 0.0, 1.0, _chooses(option, self.type)) for option in self.options]

    @property
    def ranks(self) -> list[Column]:
        """The rank of each option of a ranking, from 1."""
        if self.type != "ranking":
            return []
        return [Column(option, 1.0, float(len(self.options)), _ranks(option)) for option in self.options]

    def problem(self, value: object) -> str | None:
        """Why an answer is invalid; None if it is valid. The text is also sent to the model."""
        if self.type == "choice":
            return None if value in self.options else f"{_quoted(value)} is none of {', '.join(self.options)}"
        if self.type in ("multi", "ranking"):
            return self._problem_of_several(value)
        if self.type == "scale":
            fits = isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high
            return None if fits else f"{_quoted(value)} is no whole number from {self.low} to {self.high}"
        if self.type == "number":
            return self._problem_of_number(value)
        return None if isinstance(value, str) and value.strip() else "is empty"

    def _problem_of_several(self, value: object) -> str | None:
        if not isinstance(value, list | tuple):
            return f"{_quoted(value)} is no list of options"
        strange = [each for each in value if each not in self.options]
        if strange:
            return f"{_quoted(strange[0])} is none of {', '.join(self.options)}"
        if len({*value}) < len(value):
            return "an option is given twice"
        if self.type == "ranking":
            lacking = [option for option in self.options if option not in value]
            return f"{', '.join(lacking)} missing: rank all options" if lacking else None
        most = len(self.options) if self.most is None else self.most
        fits = self.least <= len(value) <= most
        return None if fits else f"{len(value)} options chosen; choose {self.least} to {most}"

    def _problem_of_number(self, value: object) -> str | None:
        kinds = (int,) if self.whole else (int, float)
        low, high = -inf if self.min is None else self.min, inf if self.max is None else self.max
        fits = (
            isinstance(value, kinds) and not isinstance(value, bool) and abs(value) <= LARGEST and low <= value <= high
        )
        return None if fits else f"{_quoted(value)} is no {self.number}"

    @property
    def number(self) -> str:
        """The numbers that are valid, in words: `whole number of at least 0`."""
        least = "" if self.min is None else f"at least {self.min:.15g}"
        most = "" if self.max is None else f"at most {self.max:.15g}"
        bounds = " and ".join(each for each in (least, most) if each)
        return f"{'whole ' * self.whole}number{' of ' * bool(bounds)}{bounds}"

    def shown(self, rng: Random) -> Question:
        """The question with its options in random order."""
        return msgspec.structs.replace(self, options=tuple(rng.sample(self.options, len(self.options))))

    def applies(self, given: Mapping[str, Value]) -> bool:
        """Whether the question is shown after these answers. An answer that is missing matches nothing."""
        return all(name in given and matches(given[name], wanted) for name, wanted in self.when.items())

    def never_answered(self, wanted: Wanted) -> str:
        """Why a condition on the answer never holds: it names no option, or no number of the scale."""
        values = [str(each) for each in (wanted if isinstance(wanted, tuple) else (wanted,))]
        if self.is_numeric:
            low, high = (self.low, self.high) if self.is_scale else (self.min, self.max)
            return next((problem for each in values if (problem := _never(each, low, high))), "")
        if not self.options:
            return ""
        strange = [each for each in values if each not in self.options and "{" not in f"{each}{''.join(self.options)}"]
        return f"has no option {strange[0]!r}; options: {', '.join(self.options)}" if strange else ""

    def depends_on(self, known: Sequence[str]) -> set[str]:
        """The earlier questions whose answers the question needs."""
        quoted = [name for text in (self.text, *self.rows.values()) for name in PIPED.findall(text)]
        return {*self.when, *(name for name in quoted if name in known)}

    def piped(self, given: Mapping[str, Value]) -> Question:
        """The question with earlier answers in its text and rows."""

        def filled(text: str) -> str:
            return PIPED.sub(lambda found: _told(given, found), text)

        rows = {name: filled(text) for name, text in self.rows.items()}
        return msgspec.structs.replace(self, text=filled(self.text), rows=rows)


def _never(wanted: str, low: float | None, high: float | None) -> str:
    """Why no number between two ends is what is wanted."""
    found = RANGE.fullmatch(wanted)
    try:
        first, last = (wanted, wanted) if found is None else found.groups()
        least, most = (None if each is None else float(each) for each in (first, last))
    except ValueError:
        is_placeholder = "{" in wanted
        return "" if is_placeholder else f"is a number, so {wanted!r} must be a number or a range such as 3.. or 2..4"
    if low is not None and most is not None and most < low:
        return f"is at least {low:g}, so it is never {wanted}"
    if high is not None and least is not None and least > high:
        return f"is at most {high:g}, so it is never {wanted}"
    return ""


def _told(given: Mapping[str, Value], found: re.Match[str]) -> str:
    """An earlier answer as text; what is not the id of a question that was answered stays as it is."""
    value = given.get(found[1])
    return found[0] if value is None else ", ".join(value) if isinstance(value, tuple) else str(value)


def matches(value: object, wanted: Wanted) -> bool:
    """Whether an answer fulfils a condition. Of several chosen options, one is enough."""
    if isinstance(value, tuple):
        return any(matches(each, wanted) for each in value)
    if isinstance(wanted, tuple):
        return any(matches(value, each) for each in wanted)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(wanted, str) and is_number and (found := RANGE.fullmatch(wanted)) is not None:
        low, high = (None if end is None else float(end) for end in found.groups())
        return (low is None or value >= low) and (high is None or value <= high)  # type: ignore[operator]
    return value == wanted or str(value) == str(wanted)


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _chooses(option: str, kind: Kind) -> Callable[[Value], float]:
    if kind == "choice":
        return lambda value: float(value == option)
    if kind == "ranking":
        return lambda value: float(isinstance(value, tuple) and value[0] == option)
    return lambda value: float(isinstance(value, tuple) and option in value)


def _ranks(option: str) -> Callable[[Value], float]:
    return lambda value: float(value.index(option) + 1 if isinstance(value, tuple) else 0)


def _quoted(value: object) -> str:
    """An answer as quoted in a problem, shortened: it is stored and sent to the model again."""
    shown = repr(value)
    return shown if len(shown) <= LONGEST_QUOTED else f"{shown[:LONGEST_QUOTED]}…"


class Questionnaire(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Questions that each entity answers after the conversation and, with `before`, also before it.

    shuffle            each entity gets the options and the rows in random order
    shuffle_questions  each entity gets the questions in random order, as far as they do not need earlier answers
    one_by_one         one request per question, with the entity's earlier answers; otherwise one request for all
                       questions that do not need earlier answers
    decline            entities may leave a question unanswered
    """

    questions: tuple[Question, ...]
    before: bool = False
    shuffle: bool = True
    shuffle_questions: bool = False
    one_by_one: bool = False
    decline: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.items) <= MOST_QUESTIONS:
            raise SettingsError(
                f"questions: {len(self.items)} given (the rows of a matrix count); must be 1 to {MOST_QUESTIONS}",
                field="questions",
            )
        ids = [each.id for question in self.questions for each in {question.id: question, **_by_id(question)}.values()]
        twice = next((each for each in ids if ids.count(each) > 1), None)
        if twice is not None:
            raise SettingsError(f"questions: the id {twice!r} is used twice", field="questions")
        known: dict[str, Question] = {}
        for question in self.questions:
            for name, wanted in question.when.items():
                problem = (
                    known[name].never_answered(wanted) if name in known else "is not the id of an earlier question"
                )
                if problem:
                    raise SettingsError(f"question {question.id!r}, when: {name!r} {problem}", field="questions")
            known |= _by_id(question)

    @property
    def items(self) -> tuple[Question, ...]:
        """All questions, those of matrices by row. This is what answers refer to."""
        return tuple(each for question in self.questions for each in question.items)

    def ordered(self, rng: Random) -> list[Question]:
        """The questions as one entity gets them."""
        questions = list(self.questions)
        if self.shuffle:
            questions = [_shuffled(question, rng) for question in questions]
        if not self.shuffle_questions:
            return questions
        rng.shuffle(questions)
        placed: list[Question] = []
        while questions:  # a question comes after those that it needs
            waiting = {each.id for question in questions for each in (question, *question.items)}
            ready = next(each for each in questions if not self.needed(each) & waiting)
            questions.remove(ready)
            placed.append(ready)
        return placed

    def needed(self, question: Question) -> set[str]:
        """The earlier questions whose answers a question needs."""
        before = self.questions[: [each.id for each in self.questions].index(question.id)]
        return question.depends_on([each.id for earlier in before for each in earlier.items])


def _by_id(question: Question) -> dict[str, Question]:
    return {each.id: each for each in question.items}


def _shuffled(question: Question, rng: Random) -> Question:
    """The question with options and rows in random order."""
    shown = question.shown(rng) if question.options or question.type != "matrix" else question
    if question.type != "matrix":
        return shown
    names = list(question.rows)
    rng.shuffle(names)
    return msgspec.structs.replace(shown, rows={name: question.rows[name] for name in names})


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of one entity to one question. `value` is None if there is no valid answer; `problem` says why.

    `missing` is the kind of the problem: the entity declined, the model refused, the reply was malformed, the request
    failed, or the question was skipped because of earlier answers. A skipped question was not asked.
    """

    place: int
    """Index of the entity in the simulation."""
    question: str
    value: Value | None = None
    problem: str = ""
    before: bool = False
    missing: Missing = ""


def aligned(value: Value, own: Question, common: Question) -> Value:
    """An answer to a question of one condition, with the options as the study words them.

    Options with placeholders are worded differently in every condition, and are the same by their position.
    """
    if set(own.options) == set(common.options):
        return value
    known = dict(zip(own.options, common.options, strict=True))
    if isinstance(value, tuple):
        return tuple(known.get(each, each) for each in value)
    return known.get(value, value) if isinstance(value, str) else value


def item_schema(question: Question, *, decline: bool = False) -> dict[str, Any]:
    """The JSON schema of the answer to a question."""
    if question.type == "matrix":
        named = zip(question.rows, question.items, strict=True)
        rows = {name: item_schema(each, decline=decline) for name, each in named}
        return {"type": "object", "properties": rows, "required": list(rows), "additionalProperties": False}
    found: dict[str, Any] = {"type": "string"}
    if question.type == "choice":
        found = {"type": "string", "enum": list(question.options)}
    elif question.type in ("multi", "ranking"):
        many = len(question.options)
        least, most = (many, many) if question.type == "ranking" else (question.least, question.most or many)
        items = {"type": "string", "enum": list(question.options)}
        found = {"type": "array", "items": items, "minItems": least, "maxItems": most}
    elif question.type == "scale":
        found = {"type": "integer", "minimum": question.low, "maximum": question.high}
    elif question.type == "number":
        found = {"type": "integer" if question.whole else "number"}
        found |= {} if question.min is None else {"minimum": question.min}
        found |= {} if question.max is None else {"maximum": question.max}
    return {"anyOf": [found, {"type": "null"}]} if decline else found
