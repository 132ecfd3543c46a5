"""The language of checks: what is read, how mistakes are told, and what replies come to."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.prompting import matching
from groundswell.experiments.prompting.checks import (
    Contains,
    Equals,
    Field,
    Judge,
    Matches,
    Operator,
    Similar,
    parse_check,
)
from groundswell.experiments.prompting.program import Answer, Grade, Judged, Likened
from groundswell.experiments.prompting.templates import Column
from groundswell.experiments.prompting.verdicts import Graders, grades_of, verdicts

NAMES = st.from_regex(r"[a-z]\w{0,8}", fullmatch=True).filter(lambda name: name != "not")
COLUMNS = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), min_size=1, max_size=8)
PLAIN = st.one_of(
    st.text(max_size=12), st.integers(-(10**9), 10**9), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), st.booleans()
)


def written(value: Any) -> str:
    return f"{{{value.name}}}" if isinstance(value, Column) else json.dumps(value)


VALUES = st.one_of(PLAIN, COLUMNS.map(Column))
PATHS = st.lists(st.one_of(st.from_regex(r"[a-z]\w{0,5}", fullmatch=True), st.integers(0, 9)), min_size=1, max_size=3)
OPERATORS: st.SearchStrategy[Operator] = st.sampled_from(get_args(Operator))


@given(st.one_of(st.none(), NAMES), st.booleans(), VALUES, st.sampled_from(["contains", "icontains", "equals"]))
def test_a_test_of_the_text_is_read_as_it_was_written(name: str | None, negated: bool, value: Any, word: str) -> None:
    text = f"{f'{name}: ' if name else ''}{'not ' if negated else ''}{word} {written(value)}"
    check = parse_check(text)
    assert check.negated is negated
    assert check.name == name or (name is None and check.name == " ".join(text.split()))
    expected = Equals(value) if word == "equals" else Contains(value, fold=word == "icontains")
    assert check.test == expected
    assert check.columns == ([value.name] if isinstance(value, Column) else [])


@given(PATHS, OPERATORS, VALUES)
def test_a_field_is_read_as_it_was_written(path: list[str | int], operator: Operator, value: Any) -> None:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    assert parse_check(f"json{steps} {operator} {written(value)}").test == Field(tuple(path), operator, value)


def test_the_others_are_read_as_they_were_written() -> None:
    assert parse_check('json."two words" > 1').test == Field(("two words",), ">", 1)
    assert parse_check("similar {ref} >= 0.8").test == Similar(Column("ref"), 0.8)
    assert parse_check('similar "x" > -1').test == Similar("x", -1.0, above=True)
    matches = parse_check(r"regex /a\/b/im").test
    assert isinstance(matches, Matches)
    assert matches.pattern.search("x\nA/B")
    judge = parse_check('kind to them: judge "is it kind to {name}, \\"really\\"?"')
    assert isinstance(judge.test, Judge)
    assert (judge.name, judge.columns) == ("kind to them", ["name"])
    assert judge.test.question.fill({"name": "Ana"}) == 'is it kind to Ana, "really"?'


@pytest.mark.parametrize(
    ("text", "told", "at"),
    [
        ("", "expected contains, icontains", 1),
        ("polite", "expected contains", 1),
        ("x: polite", "expected contains", 4),
        ("not", "expected contains", 4),
        ("contains", '"text", a number', 9),
        ("contains yes", '"text", a number', 10),
        ('contains "a" "b"', "unexpected text", 14),
        ("regex yes", "between slashes", 7),
        ("regex /a/q", "unknown flag 'q'", 10),
        ("regex /a(/", "invalid regular expression", 9),
        (r"regex /^{answer}$/", "cannot contain a {column}", 9),
        ("json == 1", "the name of a field", 5),
        ("json.a = 1", "one of == !=", 8),
        ("similar {a}", ">= and a number", 12),
        ("similar {a} >= 2", "from -1 to 1", 17),
        ("judge polite", 'in "quotes"', 7),
        (r'contains "\q"', "invalid text in quotes", 10),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_mistake_is_pointed_at(text: str, told: str, at: int) -> None:
    with pytest.raises(SettingsError) as error:
        parse_check(text)
    first, shown, pointer = str(error.value).split("\n")
    assert first.startswith(f"check, character {at}: ")
    assert error.value.field == "check"
    assert told in first
    assert shown == f"  {text}"
    assert pointer == " " * (at + 1) + "^"


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(SettingsError):
        assert parse_check(text).name


def passed(check: str, text: str, value: Any = None, **row: Any) -> bool | None:
    return verdicts([parse_check(check)], row, Answer(text, value))[0].passed


@pytest.mark.parametrize(
    ("check", "text", "expected"),
    [
        ('contains "17"', "It is 17.", True),
        ("contains 17", "It is 17.", True),
        ('contains "IT"', "It is 17.", False),
        ('icontains "IT"', "It is 17.", True),
        ('not contains "x"', "It is 17.", True),
        ("contains {answer}", "It is 17.", True),
        ("equals {answer}", " 17\n", True),
        ("equals 17", "17.0", True),
        ("equals 17", "It is 17", False),
        ("equals true", "true", True),
        ("equals true", "1", False),
        ('equals "17"', "17.0", True),
        (r"regex /\b17\b/", "It is 17.", True),
        ("regex /^is/", "It is 17.", False),
        ("json.a == 1", '{"a": 1.0}', True),
        ("json.a == 1", '```json\n{"a": 1}\n```', True),
        ("json.a == true", '{"a": 1}', False),
        ("json.n == {answer}", '{"n": 17}', True),
        ("json.a != 2", '{"a": 1}', True),
        ("json.a != 2", '{"b": 1}', False),
        ("not json.a == 2", '{"b": 1}', True),
        ("json.a > 2", '{"a": "x"}', False),
        ("json.a >= 2", '{"a": 2}', True),
        ('json.a < "b"', '{"a": "a"}', True),
        ('json.a contains "ew"', '{"a": "new"}', True),
        ("json.a contains 2", '{"a": [1, 2]}', True),
        ("json.a[1].b == null", '{"a": [0, {"b": null}]}', True),
        ("json.a[2] == 1", '{"a": [0]}', False),
        ("json.a == 1", "no JSON", False),
    ],
    ids=str,
)
def test_what_a_reply_comes_to(check: str, text: str, expected: bool) -> None:
    assert passed(check, text, answer="17") is expected


@pytest.mark.parametrize("check", ["contains {answer}", "icontains {answer}", "not contains {answer}"])
@pytest.mark.parametrize("cell", ["", None])
def test_nothing_to_look_for_is_not_found_in_every_reply(check: str, cell: str | None) -> None:
    assert passed(check, "It is 17.", answer=cell) is None


@pytest.mark.parametrize("check", ["contains {word}", "icontains {word}", "equals {word}", "json.w == {word}"])
def test_letters_are_the_same_however_their_accents_are_written(check: str) -> None:
    text = '{"w": "caf\u00e9"}' if check.startswith("json") else "caf\u00e9"
    assert passed(check, text, word="cafe\u0301") is True


def test_an_expression_that_would_search_for_years_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "SECONDS", 0.01)
    [slow, other] = verdicts([parse_check("regex /(a|aa)+$/"), parse_check("regex /b/")], {}, Answer("a" * 60 + "b"))
    assert slow == (None, "undecided: '(a|aa)+$' takes longer than 0.01 s to search")
    assert other.passed is True


def test_a_structured_reply_is_looked_into_without_reading_its_text_again() -> None:
    assert passed("json.a == 1", "not read", {"a": 1}) is True


def test_grades_are_matched_to_the_checks_that_wanted_them() -> None:
    checks = [parse_check(text) for text in ('judge "q {a}?"', 'contains "x"', "similar {a} > 0.5", 'not judge "r?"')]
    assert grades_of(checks, {"a": "b"}, Graders("j", "e")) == (
        Judged("q b?", "j"),
        Likened("b", "e"),
        Judged("r?", "j"),
    )
    grades = (Grade(passed=True, reason="so"), Grade(likeness=0.5), Grade(problem="it did not answer"))
    found = verdicts(checks, {"a": "b"}, Answer("xyz", grades=grades))
    assert [verdict.passed for verdict in found] == [True, True, False, None]
    assert [verdict.reason for verdict in found] == ["so", None, None, "undecided: it did not answer"]
