"""Parses `--check`: conditions on a reply. verdicts.py evaluates them.

    contains "text"             icontains {column}         equals {answer}          regex /^yes\\b/i
    json.score >= 7             json.tags contains "new"   json.items[0].name == {name}
    similar {reference} >= 0.8  judge "is it polite to {name}?"

`not` negates a check. A name with a colon may come first: `polite: not judge "is it rude?"`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, NoReturn

from groundswell.errors import SettingsError
from groundswell.experiments.prompting.matching import read_pattern
from groundswell.experiments.prompting.templates import Column, Template, parse_template

Operator = Literal["==", "!=", "<", "<=", ">", ">=", "contains"]
Value = str | int | float | bool | None | Column


class Contains(NamedTuple):
    """The reply contains a text."""

    value: Value
    fold: bool = False


class Equals(NamedTuple):
    """The reply equals a value, ignoring surrounding spaces."""

    value: Value


class Matches(NamedTuple):
    """A regular expression matches somewhere in the reply."""

    pattern: re.Pattern[str]


class Field(NamedTuple):
    """A field of the reply's JSON compares with a value."""

    path: tuple[str | int, ...]
    operator: Operator
    value: Value


class Similar(NamedTuple):
    """The cosine similarity of the reply and a text, by embeddings, is at least this large."""

    value: Value
    least: float
    above: bool = False


class Judge(NamedTuple):
    """A model answers a question about the reply with yes."""

    question: Template


Test = Contains | Equals | Matches | Field | Similar | Judge


class Check(NamedTuple):
    """A test with its name."""

    name: str
    test: Test
    negated: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns that the check refers to."""
        if isinstance(self.test, Judge):
            return self.test.question.columns
        value = getattr(self.test, "value", None)
        return [value.name] if isinstance(value, Column) else []

    @property
    def judged(self) -> bool:
        """Whether a judge is asked."""
        return isinstance(self.test, Judge)

    @property
    def graded(self) -> bool:
        """Whether any model is asked."""
        return isinstance(self.test, Judge | Similar)


NAME = re.compile(r"\s*([^\W\d][\w -]*?)\s*:(?!=)")
WORD = re.compile(r"[a-z]+")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
COLUMN = re.compile(r"\{([^{}]+)\}")
PATTERN = re.compile(r"/((?:[^/\\]|\\.)+)/([a-z]*)", re.S)
COLUMN_IN_PATTERN = re.compile(r"(?<!\\)\{[^\d,{}][^{}]*\}")
STEP = re.compile(r'\.([^\W\d]\w*)|\.("(?:[^"\\]|\\.)*")|\[(\d+)\]')
OPERATOR = re.compile(r"==|!=|<=|>=|<|>|contains\b")
FLAGS = {"i": re.I, "m": re.M, "s": re.S, "x": re.X}
CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}


def parse_check(text: str) -> Check:
    """Parse a check. Errors point at the position."""
    return _Reader(text).check()


class _Reader:
    """A recursive descent parser for one check."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def check(self) -> Check:
        """The whole check."""
        named = self._take(NAME)
        self._spaces()
        start = self._at
        word = self._word()
        if negated := word == "not":
            word = self._word()
        test = self._test(word)
        self._spaces()
        if self._at < len(self._text):
            self._fail("unexpected text after the check")
        return Check(named[1] if named else " ".join(self._text[start:].split()), test, negated)

    def _test(self, word: str) -> Test:
        readers: dict[str, Callable[[], Test]] = {
            "contains": lambda: Contains(self._value()),
            "icontains": lambda: Contains(self._value(), fold=True),
            "equals": lambda: Equals(self._value()),
            "regex": lambda: Matches(self._pattern()),
            "json": self._field,
            "similar": self._similar,
            "judge": lambda: Judge(parse_template(self._string(), f"check {self._text}")),
        }
        if word not in readers:
            self._at -= len(word)
            self._fail(f"expected {', '.join(readers)} or not")
        return readers[word]()

    def _field(self) -> Field:
        path: list[str | int] = []
        while step := STEP.match(self._text, self._at):
            self._at = step.end()
            name, quoted, number = step.groups()
            path.append(int(number) if number else self._unquoted(quoted) if quoted else name)
        if not path:
            self._fail('expected the name of a field, for example json.score or json."two words"')
        return Field(tuple(path), self._operator(), self._value())

    def _operator(self) -> Operator:
        found = self._take(OPERATOR)
        if found is None:
            self._fail("expected one of == != < <= > >= contains")
        operator: Any = found[0]
        return operator  # type: ignore[no-any-return]  # the pattern knows no others

    def _similar(self) -> Similar:
        value = self._value()
        found = self._take(re.compile(">=?"))
        if found is None:
            self._fail("expected >= and a number, for example `similar {column} >= 0.8`")
        number = self._take(NUMBER)
        if number is None or not -1 <= float(number[0]) <= 1:
            self._fail("expected a number from -1 to 1")
        return Similar(value, float(number[0]), above=found[0] == ">")

    def _value(self) -> Value:
        if (string := self._take(STRING)) is not None:
            return self._unquoted(string[0])
        if (column := self._take(COLUMN)) is not None:
            return Column(column[1])
        if (number := self._take(NUMBER)) is not None:
            read: int | float = json.loads(number[0])
            return read
        if (word := self._take(WORD)) is not None and word[0] in CONSTANTS:
            return CONSTANTS[word[0]]
        self._at = self._at if word is None else word.start()
        raise self._problem('expected "text", a number, true, false, null or a {column}')

    def _string(self) -> str:
        found = self._take(STRING)
        if found is None:
            self._fail('expected a question in "quotes"')
        return self._unquoted(found[0])

    def _unquoted(self, quoted: str) -> str:
        try:
            text: str = json.loads(quoted, strict=False)
        except ValueError:
            self._at -= len(quoted)
            self._fail('invalid text in quotes: write \\\\ for a backslash and \\" for a quote')
        return text

    def _pattern(self) -> re.Pattern[str]:
        found = self._take(PATTERN)
        if found is None:
            self._fail("expected a regular expression between slashes, for example `regex /^yes/i`")
        if column := COLUMN_IN_PATTERN.search(found[1]):
            self._at = found.start(1) + column.start()
            self._fail("a regular expression cannot contain a {column}: use contains or equals, or write \\{")
        flags = re.RegexFlag(0)
        for letter in found[2]:
            if letter not in FLAGS:
                self._at -= 1
                self._fail(f"unknown flag {letter!r}; flags: {', '.join(FLAGS)}")
            flags |= FLAGS[letter]
        try:
            return read_pattern(found[1].replace("\\/", "/"), flags)
        except re.error as error:
            self._at = found.start(1) + (error.pos or 0)
            self._fail(f"invalid regular expression: {error.msg}")

    def _word(self) -> str:
        found = self._take(WORD)
        return found[0] if found else ""

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip spaces and match a pattern at the current position."""
        self._spaces()
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _spaces(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _fail(self, expected: str) -> NoReturn:
        raise self._problem(expected)

    def _problem(self, expected: str) -> SettingsError:
        return SettingsError(
            f"check, character {self._at + 1}: {expected}\n  {self._text}\n  {' ' * self._at}^", field="check"
        )
