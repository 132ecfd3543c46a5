"""JSON schemas: values that keep to them, values that do not, and what is no schema."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.emulator.model import answer
from groundswell.errors import TimeLimitExceeded
from groundswell.experiments.prompting import matching
from groundswell.experiments.prompting.program import read_json
from groundswell.experiments.prompting.shapes import flaw, schema_flaw
from groundswell.program.request import Chat, user
from tests.properties import examples

TREE: dict[str, Any] = {
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}},
    "type": "array",
    "items": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
}


@pytest.mark.parametrize(
    ("schema", "good", "bad", "told"),
    [
        ({"type": "object"}, {}, [], "$ is [], not of type object"),
        ({"type": ["integer", "null"]}, 3.0, 3.5, "$ is 3.5, not of type integer or null"),
        ({"type": "integer"}, 1, True, "$ is true, not of type integer"),
        ({"properties": {"a": {"type": "string"}}}, {"a": "x"}, {"a": 1}, "$.a is 1, not of type string"),
        ({"required": ["a"]}, {"a": None}, {}, "$ has no field 'a'"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}, "$ has a field 'b' that"),
        ({"additionalProperties": {"type": "null"}}, {"b": None}, {"b": 1}, "$.b is 1"),
        ({"patternProperties": {"^x": {"type": "null"}}}, {"x1": None, "y": 1}, {"x1": 1}, "$.x1 is 1"),
        ({"enum": [1, "a"]}, 1.0, True, '$ is true, not one of 1, "a"'),
        ({"const": [1, {"a": 2}]}, [1, {"a": 2.0}], [1, {"a": 3}], "$ is"),
        ({"items": {"minimum": 2}}, [2, 3], [2, 1], "$[1] is below the minimum of 2"),
        ({"prefixItems": [{"type": "null"}], "items": False}, [None], [None, 1], "$[1] must not be there"),
        ({"maximum": 10}, 10, 11, "$ is above the maximum of 10"),
        ({"exclusiveMinimum": 0}, 0.1, 0, "$ is not above 0"),
        ({"exclusiveMaximum": 0}, -1, 0, "$ is not below 0"),
        ({"multipleOf": 0.1}, 0.3, 0.35, "$ is not a multiple of 0.1"),
        ({"minLength": 2, "maxLength": 3}, "abc", "abcd", "$ has more than 3 characters"),
        ({"pattern": "^a"}, "abc", "ba", "$ does not match ^a"),
        ({"minItems": 1}, [1], [], "$ has fewer than 1 items"),
        ({"uniqueItems": True}, [1, True], [1, 1.0], "$ has the same item twice"),
        ({"minProperties": 1, "maxProperties": 1}, {"a": 1}, {}, "$ has fewer than 1 fields"),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 2, 3, "$ is above the maximum of 2"),
        ({"anyOf": [{"type": "null"}, {"minimum": 1}]}, None, 0, "$ is 0, which fits none"),
        ({"oneOf": [{"minimum": 1}, {"maximum": 2}]}, 3, 2, "$ is 2, which fits 2 of the schemas under oneOf"),
        ({"not": {"type": "null"}}, 1, None, "$ is null, which the schema forbids"),
        (TREE, [None], [{}], "$[0] is {}, which fits none"),
        ({"type": "integer"}, 10**400, 0.5, "$ is 0.5, not of type integer"),
        ({"multipleOf": 3}, 10**400 - 1, 10**20 + 1, "$ is not a multiple of 3"),
        ({"multipleOf": 1e-300}, 1e300, 0.5e-300, "$ is not a multiple of 1e-300"),
    ],
    ids=lambda value: None,
)
def test_what_keeps_to_a_schema_and_what_does_not(schema: Any, good: Any, bad: Any, told: str) -> None:
    assert schema_flaw(schema) is None
    assert flaw(good, schema) is None
    problem = flaw(bad, schema)
    assert problem is not None
    assert problem.startswith(told)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ([], "it is not a JSON object"),
        ("string", "it is not a JSON object"),
        ({"type": "text"}, '$.type must be among object, array, string, integer, number, boolean, null, not "text"'),
        ({"type": [None]}, "not null"),
        ({"properties": {"a": 3}}, "$.properties.a must be a schema, not 3"),
        ({"properties": []}, "$.properties must be an object, not []"),
        ({"required": "a"}, '$.required must be a list of names, not "a"'),
        ({"items": {"minLength": -1}}, "$.items.minLength must be a whole number"),
        ({"pattern": "("}, "$.pattern is not a regular expression"),
        ({"patternProperties": {"(": {}}}, "$.patternProperties is not a regular expression"),
        ({"anyOf": []}, "$.anyOf must be a list of schemas"),
        ({"$ref": "#/$defs/a"}, "$.$ref refers to a missing place: #/$defs/a"),
        ({"$ref": "https://example.org"}, "$.$ref must refer to a place in the same file"),
        ({"if": {}, "then": {}}, "$.if is not supported"),
        ({"$ref": "#"}, "$ refers to itself"),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, "$.anyOf.0 refers to itself"),
        ({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "refers to itself"),
        ({"$ref": "#/elsewhere", "elsewhere": {"type": "text"}}, "$.$ref.type must be among"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_no_schema_is_told_with_its_place(schema: Any, told: str) -> None:
    problem = schema_flaw(schema)
    assert problem is not None
    assert told in problem


def test_a_pattern_that_would_search_for_years_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "SECONDS", 0.01)
    for value, schema in (
        ("a" * 60 + "b", {"pattern": "(a|aa)+$"}),
        ({"a" * 60 + "b": 1}, {"patternProperties": {"(a|aa)+$": {}}}),
    ):
        with pytest.raises(TimeLimitExceeded, match=re.escape("'(a|aa)+$' takes longer than 0.01 s to search")):
            flaw(value, schema)
    assert flaw("aaa", {"pattern": "(a|aa)+$"}) is None


SCHEMAS = st.recursive(
    st.sampled_from(
        [{"type": "string", "maxLength": 9}, {"type": "integer", "minimum": 3, "maximum": 9}, {"type": "boolean"}]
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
            lambda fields: {"type": "object", "properties": fields, "required": list(fields)}
        ),
        inner.map(lambda items: {"type": "array", "items": items, "minItems": 1, "maxItems": 3}),
        st.lists(inner, min_size=1, max_size=2).map(lambda some: {"anyOf": some}),
    ),
    max_leaves=6,
)


@given(SCHEMAS)
@settings(max_examples=examples(50))
def test_what_is_filled_from_a_schema_keeps_to_it(schema: dict[str, Any]) -> None:
    value, problem = read_json(answer(Chat("keeper", (user("Fill it in."),), schema=schema)).text)
    assert problem is None
    assert flaw(value, schema) is None


WORDS = st.sampled_from(["type", "items", "$ref", "enum", "anyOf", "not", "properties", "pattern", "minimum", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_any_json_is_a_schema_or_is_not_and_then_nothing_raises(schema: Any, value: Any) -> None:
    if schema_flaw(schema) is None:
        flaw(value, schema)
