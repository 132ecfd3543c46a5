"""What broke the dialects once: requests that no provider could be sent, and messages that gave away a key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groundswell.program.request import Chat, Fault, FaultKind, user
from groundswell.providers.provider import Call, WireFormat
from groundswell.providers.registry import WIRE_FORMATS

DIALECTS = pytest.mark.parametrize("dialect", WIRE_FORMATS.values(), ids=WIRE_FORMATS)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


def within_itself() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"] |= {"left": schema, "right": schema}
    return schema


@DIALECTS
@pytest.mark.parametrize("schema", [nested(5_000), within_itself()], ids=["deep", "within itself"])
def test_a_schema_without_a_bottom_is_refused(dialect: WireFormat, schema: dict[str, Any]) -> None:
    made = dialect.encode(Chat("m", (user("go"),), schema=schema), "m")
    assert isinstance(made, Fault)
    assert made.kind is FaultKind.BAD_REQUEST


@DIALECTS
def test_a_schema_of_many_levels_is_sent(dialect: WireFormat) -> None:
    made = dialect.encode(Chat("m", (user("go"),), schema=nested(40)), "m")
    if dialect.name == "application":  # it has no schemas
        assert isinstance(made, Fault)
        return
    assert isinstance(made, Call)
    assert json.dumps(nested(2))[:20] in json.dumps(json.loads(made.body))


@DIALECTS
@pytest.mark.parametrize("setting", ["temperature", "top_p"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")], ids=str)
def test_what_json_has_no_number_for_does_not_become_the_default(
    dialect: WireFormat, setting: str, value: float
) -> None:
    chosen: dict[str, Any] = {setting: value}
    made = dialect.encode(Chat("m", (user("go"),), **chosen), "m")
    assert isinstance(made, Fault)
    assert setting in made.message


@DIALECTS
@pytest.mark.parametrize(
    ("said", "secret"),
    [
        ("Incorrect API key provided: sk-proj-abc***def", "abc"),
        ("API key not valid: AIzaSyA1234567890abcdef", "1234567890"),
        ("token hf_abcdefghijklmnop was rejected", "ghijkl"),
        ("x-api-key: 0123456789abcdef is not known", "0123456789"),
        ('{"api_key": "0123456789abcdef"}', "0123456789"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA== is wrong", "dXNlcj"),
        ("Authorization: Bearer xyz-123456 is wrong", "xyz-123456"),
        ("got 'Bearer xyz-123456' from you", "xyz-123456"),
    ],
)
def test_a_key_in_an_error_is_not_passed_on(dialect: WireFormat, said: str, secret: str) -> None:
    body = json.dumps({"error": {"message": said}}).encode()
    fault = dialect.decode(Chat("m", (user("go"),)), 400, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert secret not in fault.message
    assert "[key]" in fault.message


@DIALECTS
@pytest.mark.parametrize("said", ["The API key is missing", "basic models take no tools", "unknown key: 'foo'"])
def test_what_is_no_key_is_left_alone(dialect: WireFormat, said: str) -> None:
    body = json.dumps({"error": {"message": said}}).encode()
    fault = dialect.decode(Chat("m", (user("go"),)), 400, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.message == f"HTTP 400: {said}"
