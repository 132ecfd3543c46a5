"""Schemas are closed and made strict, and what cannot be is told apart."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from groundswell.providers.json_schema import (
    close_objects,
    find_limit,
    find_looseness,
    move_limits_to_description,
    strict,
)


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Path(msgspec.Struct):
    points: list[Point]
    name: str | None = None


class Free(msgspec.Struct):
    by_name: dict[str, int]


def test_the_schema_of_a_type_can_be_strict() -> None:
    schema = strict(msgspec.json.schema(Path))
    assert schema is not None
    assert find_looseness(schema) is None
    assert schema["$defs"]["Point"]["required"] == ["x", "y"]
    assert schema["$defs"]["Point"]["additionalProperties"] is False
    assert "default" not in schema["$defs"]["Point"]["properties"]["y"]


def test_closing_leaves_optional_what_was_optional() -> None:
    schema = close_objects(msgspec.json.schema(Path))
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert find_looseness(schema, all_required=False) is None
    assert find_looseness(schema) is not None


def test_the_schema_given_is_left_as_it_was() -> None:
    schema = msgspec.json.schema(Path)
    before = msgspec.json.encode(schema)
    strict(schema)
    close_objects(schema)
    assert msgspec.json.encode(schema) == before


def test_keys_of_any_name_cannot_be_strict() -> None:
    assert strict(msgspec.json.schema(Free)) is None


LOOSE: list[tuple[dict[str, Any], str]] = [
    ({"type": "object"}, "context=()"),
    ({"anyOf": [{"type": "null"}, {"type": "object", "properties": {}}]}, "('anyOf', '1')"),
    ({"type": ["object", "null"]}, "context=()"),
    ({"type": "array", "items": {"type": "object"}}, "('items',)"),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, "'required'"),
]


@pytest.mark.parametrize(("schema", "words"), LOOSE)
def test_what_is_loose_is_named(schema: dict[str, Any], words: str) -> None:
    assert words in str(find_looseness(schema))


def test_a_schema_too_deep_is_loose() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = {"type": "array", "items": schema}
    assert "nesting" in str(find_looseness(schema))


LIMITED = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "minimum": 0, "maximum": 120, "description": "In years."},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 1, "maxItems": 3},
        "few": {"type": "array", "items": {"anyOf": [{"type": "number", "multipleOf": 2}]}, "minItems": 2},
    },
    "additionalProperties": False,
}


def test_limits_that_are_refused_are_told_in_words() -> None:
    before = deepcopy(LIMITED)
    made = move_limits_to_description(LIMITED)
    age, tags, few = made["properties"].values()
    assert age == {"type": "integer", "description": "In years. (minimum: 0, maximum: 120)"}
    assert tags == {
        "type": "array",
        "items": {"type": "string", "description": "(maxLength: 9)"},
        "minItems": 1,
        "description": "(maxItems: 3)",
    }
    assert few["items"]["anyOf"] == [{"type": "number", "description": "(multipleOf: 2)"}]
    assert few["description"] == "(minItems: 2)"
    assert before == LIMITED, "the program keeps its own"
    assert find_limit(LIMITED) == ("integer", "minimum")
    assert find_limit(made) is None


def test_a_property_may_be_called_as_a_limit_is() -> None:
    schema = {"type": "object", "properties": {"minimum": {"type": "integer"}}}
    assert move_limits_to_description(schema) == schema
    assert find_limit(schema) is None
