"""Questions: what is a valid question and a valid answer, when a question is shown, and in which order."""

from __future__ import annotations

from math import inf, nan
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.prompts import _asked
from groundswell.experiments.simulations.questions import Question, Questionnaire, Value, aligned, item_schema, matches
from tests.properties import examples

ABC = ("a", "b", "c")
CHOICE = Question("c", "Which?", "choice", ABC)
MULTI = Question("m", "Which ones?", "multi", ABC, least=1, most=2)
RANKING = Question("r", "In which order?", "ranking", ABC)
SCALE = Question("s", "How much?", "scale", low=0, high=10)
NUMBER = Question("n", "How many?", "number", min=0, max=9.5)
WHOLE = Question("w", "How many?", "number", whole=True)
TEXT = Question("t", "Why?")
GRID = Question("g", "How good is", "matrix", rows={"bus": "the bus?", "tram": "the tram?"}, low_label="bad")

ANSWERS: dict[str, tuple[Question, object, str | None]] = {
    "an option": (CHOICE, "b", None),
    "no option": (CHOICE, "d", "'d' is none of a, b, c"),
    "an option in a list": (CHOICE, ["a"], "['a'] is none of a, b, c"),
    "some options": (MULTI, ["c", "a"], None),
    "an option instead of a list": (MULTI, "a", "'a' is no list of options"),
    "too few options": (MULTI, [], "0 options chosen; choose 1 to 2"),
    "too many options": (MULTI, ["a", "b", "c"], "3 options chosen; choose 1 to 2"),
    "an option twice": (MULTI, ["a", "a"], "an option is given twice"),
    "a strange option": (MULTI, ["a", ["b"]], "['b'] is none of a, b, c"),
    "a ranking": (RANKING, ["c", "a", "b"], None),
    "a ranking without the last": (RANKING, ["c", "a"], "b missing: rank all options"),
    "a ranking with one twice": (RANKING, ["c", "a", "b", "a"], "an option is given twice"),
    "the lowest step": (SCALE, 0, None),
    "between two steps": (SCALE, 4.5, "4.5 is no whole number from 0 to 10"),
    "beyond the scale": (SCALE, 11, "11 is no whole number from 0 to 10"),
    "true": (SCALE, True, "True is no whole number from 0 to 10"),
    "a number": (NUMBER, 9.5, None),
    "a number out of bounds": (NUMBER, -1, "-1 is no number of at least 0 and at most 9.5"),
    "a number as text": (NUMBER, "3", "'3' is no number of at least 0 and at most 9.5"),
    "a number beyond reason": (WHOLE, 10**16, "10000000000000000 is no whole number"),
    "a whole number": (WHOLE, -3, None),
    "a fraction": (WHOLE, 2.5, "2.5 is no whole number"),
    "no number": (WHOLE, False, "False is no whole number"),
    "a text": (TEXT, "Because.", None),
    "an empty text": (TEXT, " \n", "is empty"),
    "a number for a text": (TEXT, 3, "is empty"),
}


@pytest.mark.parametrize(("question", "value", "problem"), ANSWERS.values(), ids=ANSWERS)
def test_answers_are_valid_or_say_why_not(question: Question, value: object, problem: str | None) -> None:
    assert question.problem(value) == problem


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown type": ({"type": "slider"}, "type: 'slider' must be one of choice, multi, ranking"),
    "no text": ({"text": " "}, "text: must not be empty"),
    "one option": ({"type": "multi", "options": ("a",)}, "a multi question needs at least two different options"),
    "an option twice": ({"type": "ranking", "options": ("a", "a")}, "at least two different options"),
    "an empty option": ({"type": "choice", "options": ("a", " ")}, "an option is empty"),
    "too many options": ({"type": "choice", "options": tuple(map(str, range(1_001)))}, "1001 given; at most 1000"),
    "options of a scale": ({"type": "scale", "options": ABC}, "not allowed for a question of type scale; remove it"),
    "rows of a choice": ({"type": "choice", "options": ABC, "rows": {"a": "A"}}, "rows: not allowed"),
    "bounds of a scale": ({"type": "scale", "min": 3.0}, "min: not allowed"),
    "least of a ranking": ({"type": "ranking", "options": ABC, "least": 1}, "least: not allowed"),
    "numbers beyond reason": ({"type": "number", "min": -1e308, "max": 1e308}, "numbers must be from -1e+15 to 1e+15"),
    "no whole number": (
        {"type": "number", "whole": True, "min": 0.2, "max": 0.8},
        "there is no whole number from 0.2 to 0.8",
    ),
    "a scale of one step": ({"type": "scale", "low": 3, "high": 3}, "low: 3 must be below high, 3"),
    "a scale of too many": ({"type": "scale", "low": 0, "high": 101}, "goes from 0 to 101"),
    "a scale upside down": (
        {"type": "matrix", "low": 3, "high": 1, "rows": {"a": "A"}},
        "low: 3 must be below high, 1",
    ),
    "more than there are": ({"type": "multi", "options": ABC, "most": 4}, "0 to 4 of 3 options is not possible"),
    "none at most": ({"type": "multi", "options": ABC, "most": 0}, "0 to 0 of 3 options is not possible"),
    "least above most": ({"type": "multi", "options": ABC, "least": 3, "most": 2}, "3 to 2 of 3 options"),
    "min above max": ({"type": "number", "min": 3.0, "max": 3.0}, "3 must be greater than min, 3"),
    "nan": ({"type": "number", "min": nan}, "min: nan is not a finite number"),
    "infinity": ({"type": "number", "max": inf}, "max: inf is not a finite number"),
    "no rows": ({"type": "matrix"}, "rows: 0 given; must be 1 to 200"),
    "an empty row": ({"type": "matrix", "rows": {"a": ""}}, "the text of row 'a' is empty"),
    "a row with a strange name": ({"type": "matrix", "rows": {"a b": "A"}}, "rows"),
}


@pytest.mark.parametrize(("fields", "said"), WRONG.values(), ids=WRONG)
def test_questions_that_cannot_be_asked_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Question(**{"id": "q", "text": "Well?", **fields})
    assert said in str(caught.value)


def test_a_matrix_is_a_question_for_each_row() -> None:
    assert [(each.id, each.text, each.type, each.high, each.low_label) for each in GRID.items] == [
        ("g.bus", "How good is the bus?", "scale", 5, "bad"),
        ("g.tram", "How good is the tram?", "scale", 5, "bad"),
    ]
    chosen = msgspec.structs.replace(GRID, options=("fine", "poor"))
    assert [(each.type, each.options) for each in chosen.items] == [("choice", ("fine", "poor"))] * 2
    assert GRID.columns == []
    assert SCALE.items == (SCALE,)


def test_columns_are_numbers_that_can_be_averaged() -> None:
    of = {each.id: [(one.option, one.of) for one in each.columns] for each in (CHOICE, MULTI, RANKING, NUMBER)}
    assert [(option, number("b")) for option, number in of["c"]] == [("a", 0), ("b", 1), ("c", 0)]
    assert [(option, number(("c", "a"))) for option, number in of["m"]] == [("a", 1), ("b", 0), ("c", 1)]
    assert [(option, number(("c", "a", "b"))) for option, number in of["r"]] == [("a", 0), ("b", 0), ("c", 1)]
    assert [(option, number(7)) for option, number in of["n"]] == [(None, 7.0)]
    assert [each.of(("c", "a", "b")) for each in RANKING.ranks] == [2, 3, 1]
    assert [(each.low, each.high) for each in (*NUMBER.columns, *WHOLE.columns)] == [(0, 9.5), (-inf, inf)]


ASKED = {
    "multi": (MULTI, "[m] Which ones? A list of those that apply: a | b | c. Choose at least 1. Choose at most 2."),
    "exactly": (
        msgspec.structs.replace(MULTI, least=2),
        "[m] Which ones? A list of those that apply: a | b | c. Choose 2.",
    ),
    "ranking": (RANKING, "[r] In which order? A list of all of these, from first to last: a | b | c."),
    "number": (NUMBER, "[n] How many? A number of at least 0 and at most 9.5."),
    "whole": (WHOLE, "[w] How many? A whole number."),
    "up to": (msgspec.structs.replace(WHOLE, max=3.0), "[w] How many? A whole number of at most 3."),
    "matrix": (
        GRID,
        "[g] How good is Answer this for each item below. A whole number from 1 (bad) to 5. The value is an object "
        "whose keys are the names before the colons.\n- bus: the bus?\n- tram: the tram?",
    ),
}


@pytest.mark.parametrize(("question", "text"), ASKED.values(), ids=ASKED)
def test_how_questions_are_asked(question: Question, text: str) -> None:
    assert _asked(question) == text


SCHEMAS: dict[str, tuple[Question, dict[str, Any]]] = {
    "multi": (MULTI, {"type": "array", "items": {"type": "string", "enum": [*ABC]}, "minItems": 1, "maxItems": 2}),
    "ranking": (RANKING, {"type": "array", "items": {"type": "string", "enum": [*ABC]}, "minItems": 3, "maxItems": 3}),
    "number": (NUMBER, {"type": "number", "minimum": 0, "maximum": 9.5}),
    "whole": (WHOLE, {"type": "integer"}),
    "text": (TEXT, {"type": "string"}),
}


@pytest.mark.parametrize(("question", "schema"), SCHEMAS.values(), ids=SCHEMAS)
def test_schemas_of_answers(question: Question, schema: dict[str, Any]) -> None:
    assert item_schema(question) == schema
    assert item_schema(question, decline=True) == {"anyOf": [schema, {"type": "null"}]}


def test_the_schema_of_a_matrix_has_its_rows() -> None:
    step = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 5}, {"type": "null"}]}
    assert item_schema(GRID, decline=True) == {
        "type": "object",
        "properties": {"bus": step, "tram": step},
        "required": ["bus", "tram"],
        "additionalProperties": False,
    }


MATCHES: dict[str, tuple[object, Any, bool]] = {
    "the value": ("no", "no", True),
    "another": ("yes", "no", False),
    "one of several": ("unsure", ("no", "unsure"), True),
    "none of several": ("yes", ("no", "unsure"), False),
    "a number": (3, 3, True),
    "a number as text": (3, "3", True),
    "a range": (3, "2..4", True),
    "its end": (4, "2..4", True),
    "beyond it": (5, "2..4", False),
    "from": (2, "3..", False),
    "up to": (-0.5, "..-0.5", True),
    "several ranges": (9, ("1..2", "8.."), True),
    "a text that looks like a range": ("2..4", "2..4", True),
    "a range for a text": ("3", "2..4", False),
    "a chosen option": (("a", "b"), "b", True),
    "none chosen": ((), "b", False),
    "one of several chosen": (("a", "b"), ("b", "c"), True),
}


@pytest.mark.parametrize(("value", "wanted", "held"), MATCHES.values(), ids=MATCHES)
def test_when_a_condition_holds(value: object, wanted: Any, held: bool) -> None:
    assert matches(value, wanted) is held


def test_all_conditions_must_hold_and_a_missing_answer_matches_nothing() -> None:
    question = Question("q", "Why?", when={"c": ("a", "b"), "s": "..3"})
    assert question.applies({"c": "b", "s": 3})
    assert not question.applies({"c": "b", "s": 4})
    assert not question.applies({"c": "b"})


def test_earlier_answers_are_part_of_a_text() -> None:
    question = Question("q", "You said {c}, {m} and {g.bus}, {x} and {s}. {Why}?")
    assert question.depends_on(["c", "m", "g.bus", "s"]) == {"c", "m", "g.bus", "s"}
    given: dict[str, Value] = {"c": "{s}", "m": ("a", "b"), "g.bus": 2}
    assert question.piped(given).text == "You said {s}, a, b and 2, {x} and {s}. {Why}?"
    grid = msgspec.structs.replace(GRID, rows={"one": "{c}?", "two": "other?"})
    assert grid.depends_on(["c"]) == {"c"}
    assert grid.piped({"c": "a"}).rows == {"one": "a?", "two": "other?"}


REFUSED: dict[str, tuple[list[Question], str]] = {
    "unknown id": ([Question("q", "Why?", when={"c": "a"})], "question 'q', when: 'c' is not the id of an earlier"),
    "later id": ([Question("q", "Why?", when={"c": "a"}), CHOICE], "when: 'c' is not the id of an earlier question"),
    "its own id": ([Question("q", "Why?", when={"q": "a"})], "when: 'q' is not the id of an earlier question"),
    "a matrix, not its row": ([GRID, Question("q", "Why?", when={"g": 1})], "when: 'g' is not the id of an earlier"),
    "an id twice": ([CHOICE, msgspec.structs.replace(TEXT, id="c")], "the id 'c' is used twice"),
    "the id of a row": ([GRID, msgspec.structs.replace(TEXT, id="g.bus")], "the id 'g.bus' is used twice"),
    "no questions": ([], "questions: 0 given"),
    "too many": ([msgspec.structs.replace(GRID, id=f"g{at}") for at in range(101)], "202 given (the rows of a matrix"),
}


@pytest.mark.parametrize(("questions", "said"), REFUSED.values(), ids=REFUSED)
def test_questionnaires_that_make_no_sense_are_refused(questions: list[Question], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Questionnaire(tuple(questions))
    assert said in str(caught.value)


def test_a_row_of_a_matrix_can_be_a_condition() -> None:
    sheet = Questionnaire((GRID, Question("q", "Why?", when={"g.bus": "..2"})))
    assert [each.id for each in sheet.items] == ["g.bus", "g.tram", "q"]
    assert sheet.needed(sheet.questions[1]) == {"g.bus"}


@st.composite
def questionnaires(draw: st.DrawFn) -> Questionnaire:
    """Questions, some of which depend on earlier ones: by a condition, or by a text that quotes one."""
    questions: list[Question] = []
    for at in range(draw(st.integers(1, 8))):
        earlier = {each.id: "2.." if each.is_numeric else "a" for question in questions for each in question.items}
        when = draw(st.lists(st.sampled_from([*earlier]), max_size=2, unique=True)) if earlier else []
        quoted = draw(st.lists(st.sampled_from([*earlier]), max_size=2)) if earlier else []
        text = " ".join(["Well?", *(f"{{{each}}}" for each in quoted)])
        fields: dict[str, Any] = draw(
            st.sampled_from(
                [{"type": "text"}, {"type": "choice", "options": ABC}, {"type": "matrix", "rows": GRID.rows}]
            )
        )
        questions.append(Question(f"q{at}", text, when={name: earlier[name] for name in when}, **fields))
    return Questionnaire(tuple(questions), shuffle_questions=draw(st.booleans()), shuffle=draw(st.booleans()))


@settings(max_examples=examples(60))
@given(questionnaires(), st.integers())
def test_every_order_has_all_questions_each_after_those_that_it_needs(sheet: Questionnaire, seed: int) -> None:
    ordered = sheet.ordered(Random(seed))
    assert sorted(each.id for each in ordered) == sorted(each.id for each in sheet.questions)
    asked: set[str] = set()
    for question in ordered:
        assert sheet.needed(question) <= asked
        asked |= {each.id for each in question.items}
    if not sheet.shuffle_questions:
        assert [each.id for each in ordered] == [each.id for each in sheet.questions]
    same = {each.id: (set(each.options), dict(each.rows)) for each in sheet.questions}
    assert {each.id: (set(each.options), dict(each.rows)) for each in ordered} == same


def test_the_order_of_questions_options_and_rows_is_random() -> None:
    sheet = Questionnaire((CHOICE, GRID, TEXT), shuffle_questions=True)
    orders = [sheet.ordered(Random(seed)) for seed in range(60)]
    assert len({tuple(each.id for each in order) for order in orders}) == 6
    assert len({next(each.options for each in order if each.id == "c") for order in orders}) == 6
    assert len({tuple(next(each.rows for each in order if each.id == "g")) for order in orders}) == 2
    fixed = msgspec.structs.replace(sheet, shuffle=False)
    assert len({tuple(sorted(map(str, fixed.ordered(Random(seed))))) for seed in range(20)}) == 1


def test_answers_in_the_words_of_a_condition_are_those_of_the_study() -> None:
    own = msgspec.structs.replace(CHOICE, options=("Ann", "Bob", "c"))
    assert aligned("Ann", own, CHOICE) == "a"
    assert aligned(("c", "Bob"), own, CHOICE) == ("c", "b")
    assert aligned(3, own, CHOICE) == 3
    assert aligned("a", CHOICE, CHOICE) == "a"
