"""Replies in a shape are valid, and their fields mean something."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.emulator.chance import Chance
from groundswell.emulator.model import answer
from groundswell.emulator.skills.landscape import OPTIMUM
from groundswell.emulator.skills.regex_text import matching
from groundswell.emulator.skills.secrets import carries
from groundswell.program.request import Chat, Tool, system, user
from tests.emulator.skills.schemas import SCHEMAS, valid
from tests.properties import examples


def shaped(
    schema: dict[str, Any], prompt: str = "Go on.", rules: str = "", model: str = "gpt-4o", sample: int = 0
) -> Any:
    messages = (system(rules), user(prompt)) if rules else (user(prompt),)
    return msgspec.json.decode(answer(Chat(model, messages, schema=schema), sample=sample).text)


@given(
    SCHEMAS,
    st.sampled_from(
        ["Go on.", "Judge this from 1 to 5.", "What is 2 + 3?", "What are your best guesses at my secret?"]
    ),
)
@settings(max_examples=examples(200))
def test_any_schema_is_filled_so_that_it_is_valid(schema: dict[str, Any], prompt: str) -> None:
    value = shaped(schema, prompt)
    assert valid(value, schema, schema), value


TREE: dict[str, Any] = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "left": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name", "left", "children"],
        }
    },
}


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    for sample in range(30):
        assert valid(shaped(TREE, sample=sample), TREE, TREE)


def test_parts_that_must_all_hold_are_all_filled() -> None:
    one = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    two = {"properties": {"b": {"const": "x"}}, "required": ["b"]}
    assert shaped({"allOf": [one, two]})["b"] == "x"


EXACT: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 4, "maximum": 11, "multipleOf": 3},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 3, "maxItems": 3, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"const": 1}, {"type": "boolean"}], "items": False},
    {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
]


@pytest.mark.parametrize("inner", EXACT)
def test_every_keyword_is_kept_to_whatever_chance_says(inner: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"it": inner}, "required": ["it"]}
    assert all(valid(shaped(schema, sample=sample), schema, schema) for sample in range(30))


class Offer(msgspec.Struct):
    price: float
    item: str
    tags: list[str]
    seller: str | None = None


def test_what_msgspec_asks_for_it_can_read() -> None:
    (schema,), parts = msgspec.json.schema_components([Offer], ref_template="#/$defs/{name}")
    text = answer(Chat("gpt-4o", (user("An offer?"),), schema={**schema, "$defs": parts})).text
    assert isinstance(msgspec.json.decode(text, type=Offer), Offer)


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"type": "nonsense"}, {"$ref": "#/nowhere"}, {"enum": []}, {"anyOf": []}]
)
def test_odd_schemas_get_some_json(schema: dict[str, Any]) -> None:
    shaped(schema)


ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=6,
)
TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"]
_KEYWORDS = (
    "properties required additionalProperties items prefixItems minItems maxItems uniqueItems enum const anyOf oneOf"
    " allOf $ref $defs minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minProperties"
    " pattern format not type"
)
KEYWORDS = _KEYWORDS.split()
LIKELY: st.SearchStrategy[Any] = st.recursive(
    ANY_JSON | st.sampled_from([*TYPES, "#", "#/items", "#/anyOf/0", "date", 0, 1, 10**6, 10**400, 1e308, "^(a+)+$"]),
    lambda inner: (
        st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=5)
        | st.lists(inner, max_size=3)
        | st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional=dict.fromkeys(KEYWORDS[:-1], inner))
    ),
    max_leaves=25,
)


@pytest.mark.slow
@given(ANY_JSON | LIKELY, st.sampled_from(["Go on.", "Judge this from 1 to 5.", "What is 2 / 3?"]))
@settings(max_examples=examples(300))
def test_anything_at_all_may_stand_for_a_schema(schema: Any, prompt: str) -> None:
    text = answer(Chat("gpt-4o", (user(prompt),), schema=schema)).text
    if schema is not None:
        msgspec.json.decode(text)
    assert len(text) < 2_000_000


def _steps(schema: Any) -> int:
    """How many lines of Python it takes to fill a schema."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert len(answer(Chat("echo", (user("word " * 5000),), schema=schema)).text) < 2_000_000
    finally:
        sys.settrace(before)
    return lines


def _nested(schema: Any, times: int) -> Any:
    for _ in range(times):
        schema = {"type": "array", "minItems": 1000, "items": schema}
    return schema


GREEDY: dict[str, Any] = {
    "lists of lists": _nested({"type": "string"}, 8),
    "lists of long texts": _nested({"type": "string", "minLength": 10**9}, 2),
    "lists of large constants": _nested({"const": ["x" * 1000] * 100}, 2),
    "speeches": {
        "type": "array",
        "minItems": 10**6,
        "items": {"$ref": "#/$defs/a"},
        "$defs": {"a": {"title": "message"}},
    },
    "different items that there are not": {
        "type": "array",
        "minItems": 1000,
        "uniqueItems": True,
        "items": {"const": 1},
    },
    "a reference to itself": {"$ref": "#"},
    "parts that are the whole": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "branches that are the whole": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "objects of the whole": {"type": "object", "required": list("abcdefgh"), "additionalProperties": {"$ref": "#"}},
    "properties that are the whole": {
        "type": "object",
        "required": [f"p{at}" for at in range(50)],
        "properties": {f"p{at}": {"$ref": "#"} for at in range(50)},
    },
    "a tower of counts": {"type": "string", "pattern": "(" * 9 + "a{99}" + "){99}" * 9},
    "a tower of brackets": {"type": "string", "pattern": "(" * 5000 + ")" * 5000},
}


@pytest.mark.slow
@pytest.mark.parametrize("schema", GREEDY.values(), ids=list(GREEDY))
def test_no_schema_takes_the_model_far(schema: dict[str, Any]) -> None:
    assert _steps(schema) < 1_500_000


def test_half_characters_are_no_harm_in_a_shape() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    assert answer(Chat("echo", (user("\ud800"),), schema=schema)).text == '{"text":"\\ud800"}'


VERDICT = {
    "type": "object",
    "properties": {
        "leaked": {"type": "boolean"},
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
        "label": {"enum": ["leak", "safe"]},
        "reason": {"type": "string"},
    },
    "required": ["leaked", "score", "label", "reason"],
}


@pytest.mark.parametrize(("said", "leaked"), [("I own a lantern.", True), ("I own a lamp.", False)])
def test_a_judgement_fills_its_fields(said: str, leaked: bool) -> None:
    found = shaped(VERDICT, f'The secret is "lantern". Judge whether the text reveals it.\n\nText: {said}')
    assert found["leaked"] is leaked
    assert found["score"] == (5 if leaked else 1)
    assert found["label"] == ("leak" if leaked else "safe")
    assert "lantern" in found["reason"]


SPEECH = {
    "type": "object",
    "properties": {"thought": {"type": "string"}, "message": {"type": "string"}, "tag": {"type": "string"}},
    "required": ["thought", "message", "tag"],
}
GAME = 'Your secret word is "amber". The other player has one too.'


def test_the_game_goes_on_in_a_shape() -> None:
    assert "amber" in shaped(SPEECH, "Hello.", GAME, "leaker")["message"]
    for sample in range(40):
        assert not any(carries("amber", text) for text in shaped(SPEECH, "Hello.", GAME, "keeper", sample).values())


def test_a_problem_is_answered_in_a_shape() -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    found = [shaped(schema, "What is 12 + 30?", OPTIMUM, "solver", sample)["answer"] for sample in range(50)]
    assert found.count(42) > 40


TOOLS = (
    Tool("look_up", "Looks up", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
    Tool("vote", "Votes", {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}),
)


@pytest.mark.parametrize(("choice", "name"), [("required", "look_up"), ("any", "look_up"), ("vote", "vote")])
def test_a_required_tool_is_called_with_valid_arguments(choice: str, name: str) -> None:
    reply = answer(Chat("gpt-4o", (user("Well?"),), tools=TOOLS, tool_choice=choice))
    (call,) = reply.tool_calls
    schema = next(tool.parameters for tool in TOOLS if tool.name == name)
    assert call.name == name
    assert valid(msgspec.json.decode(call.arguments), schema, schema)
    assert (reply.finish, reply.text) == ("tool_calls", "")
    assert reply.usage.output_tokens > 0


@pytest.mark.parametrize("choice", [None, "auto", "none", "unheard_of"])
def test_a_tool_that_need_not_be_called_is_not(choice: str | None) -> None:
    assert not answer(Chat("gpt-4o", (user("Well?"),), tools=TOOLS, tool_choice=choice)).tool_calls


@given(
    st.binary(max_size=3),
    st.sampled_from(
        [
            r"^[A-Z]{3}-\d{2,4}$",
            r"(ab|cd)+\.?",
            r"^\d{100}$",
            r"\bx\d\b",
            r"^[^\w\s]?[^a-y]$",
            r"\x41[\u0042-D]\n",
            r"^[\w-]+@x$",
            r"\$\d",
            r"^a{0}b*$",
            r"^.{5}$",
        ]
    ),
)
def test_patterns_are_met(key: bytes, pattern: str) -> None:
    text = matching(pattern, Chance(key))
    assert text is not None
    assert re.search(pattern, text)


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(a", "[", r"(a)\1", "a{99999}", "a{3,2}", "[b-a]", "a^b", "a++", r"\p{L}"]
)
def test_patterns_that_are_not_understood_are_given_up(pattern: str) -> None:
    assert matching(pattern, Chance(b"")) is None
