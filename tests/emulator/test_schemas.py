"""Schemas that make no sense are found out, and turned down by every provider in its own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from groundswell.emulator.schemas import flaw_in
from groundswell.emulator.wire import Rejected, anthropic, ollama, openai
from tests.emulator.skills.schemas import SCHEMAS
from tests.properties import examples

DEEP: dict[str, Any] = {}
for _ in range(120):
    DEEP = {"type": "array", "items": DEEP}
HELLO = [{"role": "user", "content": "Some json, please."}]

FLAWED: list[tuple[Any, tuple[str, ...]]] = [
    ({"type": "array", "minItems": "x"}, ("minItems",)),
    ({"type": "array", "maxItems": None}, ("maxItems",)),
    ({"type": "array", "minItems": -1}, ("minItems",)),
    ({"type": "object", "required": 5}, ("required",)),
    ({"type": "object", "required": [5]}, ("required",)),
    ({"type": "integer", "minimum": "x"}, ("minimum",)),
    ({"type": "integer", "multipleOf": 0}, ("multipleOf",)),
    ({"type": "word"}, ("type",)),
    ({"type": []}, ("type",)),
    ({"enum": "red"}, ("enum",)),
    ({"properties": ["a"]}, ("properties",)),
    ({"properties": {"a": {"maxLength": "x"}}}, ("properties", "a", "maxLength")),
    ({"properties": {"a": "string"}}, ("properties", "a")),
    ({"anyOf": [{}, {"pattern": 1}]}, ("anyOf", "1", "pattern")),
    ({"items": None}, ("items",)),
    ({"$defs": {"a": {"$ref": 1}}}, ("$defs", "a", "$ref")),
    (7, ()),
    (DEEP, ("items",) * 3),
]


@pytest.mark.parametrize(("schema", "at"), FLAWED, ids=[f"{at}" for at in range(len(FLAWED))])
def test_what_makes_no_sense_is_found_where_it_stands(schema: Any, at: tuple[str, ...]) -> None:
    flaw = flaw_in(schema)
    assert flaw is not None
    assert flaw.at == at


@given(SCHEMAS)
@settings(max_examples=examples(50))
def test_what_makes_sense_has_no_flaw(schema: dict[str, Any]) -> None:
    assert flaw_in(schema) is None
    assert flaw_in({"$ref": "#/$defs/a", "$defs": {"a": schema}, "items": [schema], "not": False}) is None


Read = Callable[[Any], Any]
BAD = {"type": "object", "properties": {"a": {"minLength": "x"}}, "additionalProperties": False}
FUNCTION = {"name": "look", "parameters": BAD}
LIST = {"name": "look", "parameters": {"type": "array"}}
INVALID = "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12)."
CONTEXT = "In context=('properties', 'a', 'minLength'), 'x' is not of type 'integer'"
GO = "json: cannot unmarshal number into Go struct field ToolFunction.tools.function.parameters"
TURNED_DOWN: list[tuple[Read, dict[str, Any], str]] = [
    (
        openai.read_chat,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": BAD}}},
        f"Invalid schema for response_format 'x': {CONTEXT}",
    ),
    (
        openai.read_chat,
        {"tools": [{"type": "function", "function": FUNCTION}]},
        f"Invalid schema for function 'look': {CONTEXT}",
    ),
    (
        openai.read_chat,
        {"tools": [{"type": "function", "function": LIST}]},
        "Invalid schema for function 'look': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'",
    ),
    (
        anthropic.read_chat,
        {"output_config": {"format": {"type": "json_schema", "schema": BAD}}},
        f"output_config.format.schema: {INVALID}",
    ),
    (
        anthropic.read_chat,
        {"tools": [{"name": "look", "input_schema": BAD}]},
        f"tools.0.custom.input_schema: {INVALID}",
    ),
    (
        anthropic.read_chat,
        {"tools": [{"name": "look", "input_schema": {"type": "array"}}]},
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    (ollama.read_chat, {"format": BAD}, "invalid JSON schema in format"),
    (ollama.read_chat, {"tools": [{"function": {"parameters": {"required": 5}}}]}, f"{GO}.required of type []string"),
    (
        ollama.read_chat,
        {"tools": [{"function": {"parameters": {"properties": 5}}}]},
        f"{GO}.properties of type map[string]api.ToolProperty",
    ),
]


@pytest.mark.parametrize(("read", "body", "words"), TURNED_DOWN, ids=[row[2][:50] for row in TURNED_DOWN])
def test_a_schema_that_makes_no_sense_is_turned_down(read: Read, body: dict[str, Any], words: str) -> None:
    with pytest.raises(Rejected) as caught:
        read({"model": "m", "max_tokens": 9, "messages": HELLO, **body})
    assert caught.value.status == 400
    assert caught.value.message.startswith(words)


@pytest.mark.parametrize(
    ("read", "width", "words"),
    [
        (openai.read_embed, 0, "Invalid 'dimensions': integer below minimum value."),
        (openai.read_embed, 4097, "Invalid 'dimensions': integer above maximum value."),
        (ollama.read_embed, -1, "dimensions must be between 0 and 4096"),
        (ollama.read_embed, 4097, "dimensions must be between 0 and 4096"),
    ],
)
def test_no_vector_is_wider_than_it_can_be(read: Read, width: int, words: str) -> None:
    assert read({"model": "m", "input": "a", "dimensions": 4096}).request.dimensions == 4096
    with pytest.raises(Rejected) as caught:
        read({"model": "m", "input": "a", "dimensions": width})
    assert caught.value.message.startswith(words)
