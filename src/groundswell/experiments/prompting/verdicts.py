"""Applies checks to replies: passed, failed, or undecided."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unicodedata import normalize

from groundswell.errors import TimeLimitExceeded
from groundswell.experiments.prompting.checks import Check, Contains, Equals, Field, Judge, Matches, Similar, Value
from groundswell.experiments.prompting.matching import is_found
from groundswell.experiments.prompting.program import Answer, Grade, Judged, Likened, read_json
from groundswell.experiments.prompting.shapes import same
from groundswell.experiments.prompting.templates import Column, as_text
from groundswell.store.tables import Row

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NOWHERE = object()


class Verdict(NamedTuple):
    """Whether a reply passed a check (None if undecided), and the judge's reason."""

    passed: bool | None
    reason: str | None = None


class Graders(NamedTuple):
    """The models that grade replies."""

    judge: str
    embedder: str


def grades_of(checks: Sequence[Check], row: Row, graders: Graders) -> tuple[Judged | Likened, ...]:
    """The gradings that a row needs, in the order of their checks."""
    wanted: list[Judged | Likened] = []
    for check in checks:
        if isinstance(check.test, Judge):
            wanted.append(Judged(check.test.question.fill(row), graders.judge))
        elif isinstance(check.test, Similar):
            wanted.append(Likened(as_text(_value(check.test.value, row)), graders.embedder))
    return tuple(wanted)


def verdicts(checks: Sequence[Check], row: Row, answer: Answer) -> list[Verdict]:
    """The verdict of each check on the reply to a row."""
    grades = iter(answer.grades)
    return [_verdict(check, row, answer, next(grades) if check.graded else None) for check in checks]


def _verdict(check: Check, row: Row, answer: Answer, grade: Grade | None) -> Verdict:
    if grade is not None and grade.problem is not None:
        return Verdict(None, f"undecided: {grade.problem}")
    try:
        passed = _graded(check, grade) if grade is not None else _passed(check, row, answer)
    except TimeLimitExceeded as slow:
        return Verdict(None, f"undecided: {slow}")
    return Verdict(None if passed is None else passed != check.negated, None if grade is None else grade.reason)


def _graded(check: Check, grade: Grade) -> bool | None:
    if isinstance(check.test, Similar) and grade.likeness is not None:
        return grade.likeness > check.test.least if check.test.above else grade.likeness >= check.test.least
    return grade.passed


def _passed(check: Check, row: Row, answer: Answer) -> bool | None:
    match check.test:
        case Contains(value=value, fold=fold):
            if isinstance(value, Column) and row.get(value.name) in (None, ""):
                return None  # every reply contains an empty text
            wanted, text = _composed(as_text(_value(value, row))), _composed(answer.text)
            return wanted.casefold() in text.casefold() if fold else wanted in text
        case Equals(value=value):
            return _alike(answer.text.strip(), _stripped(_value(value, row)))
        case Matches(pattern=pattern):
            return is_found(pattern, answer.text)
        case Field(path=path, operator=how, value=value):
            return _compares(_found(answer, path), how, _value(value, row))
    raise TypeError(f"{check.name}: a model must be asked")


def _value(value: Value, row: Row) -> Any:
    return row.get(value.name) if isinstance(value, Column) else value


def _composed(text: str) -> str:
    """Text in Unicode normal form C, so that accents compare equal."""
    return normalize("NFC", text)


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, also if one is the text form of the other, as in untyped files."""
    if isinstance(one, str) and isinstance(other, str):
        return _composed(one) == _composed(other) or _both_numbers(one, other)
    if isinstance(one, str):
        return same(_spelt(one), other)
    return same(one, _spelt(other)) if isinstance(other, str) else same(one, other)


def _both_numbers(one: str, other: str) -> bool:
    a, b = _spelt(one), _spelt(other)
    return _is_number(a) and _is_number(b) and bool(a == b)


def _spelt(value: Any) -> Any:
    """The JSON value of a text, or the text itself."""
    if not isinstance(value, str):
        return value
    read, problem = read_json(value)
    return value if problem is not None else read


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _found(answer: Answer, path: Sequence[str | int]) -> Any:
    """A field of a reply's JSON; NOWHERE if the field is missing or the reply is not JSON."""
    value: Any = answer.value
    if value is None:
        value, problem = read_json(answer.text)
        if problem is not None:
            return NOWHERE
    for step in path:
        value = _inside(value, step)
    return value


def _inside(value: Any, step: str | int) -> Any:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step, NOWHERE)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return NOWHERE


def _compares(found: Any, how: str, wanted: Any) -> bool:
    """Whether a comparison holds. It never holds for a missing field or for values of different types."""
    if found is NOWHERE:
        return False
    if how == "==":
        return _alike(found, wanted)
    if how == "!=":
        return not _alike(found, wanted)
    if how == "contains":
        if isinstance(found, str):
            return as_text(wanted) in found
        return isinstance(found, list) and any(_alike(each, wanted) for each in found)
    one, other = _spelt(found), _spelt(wanted)
    if _is_number(one) and _is_number(other):
        return COMPARE[how](one, other)
    return isinstance(found, str) and isinstance(wanted, str) and COMPARE[how](found, wanted)
