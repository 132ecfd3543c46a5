"""OpenAI's validation of values, with its error messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from groundswell.emulator.wire import Rejected


def refuse(message: str, param: str | None = None, code: str | None = None) -> NoReturn:
    raise Rejected(400, message, kind="invalid_request_error", param=param, code=code)


def named(value: object) -> str:
    """The name of a JSON type in OpenAI's messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    names = {str: "a string", float: "a decimal", list: "an array", dict: "an object"}
    return names.get(type(value), "an unknown type")


def wrong_type(path: str, wanted: str, value: object) -> NoReturn:
    message = f"Invalid type for '{path}': expected {wanted}, but got {named(value)} instead."
    refuse(message, path, "invalid_type")


def missing(path: str) -> NoReturn:
    refuse(f"Missing required parameter: '{path}'.", path, "missing_required_parameter")


def unsupported(path: str, value: object, supported: Sequence[str]) -> NoReturn:
    if not isinstance(value, str):
        wrong_type(path, "a string", value)
    known = ", ".join(f"'{name}'" for name in supported[:-1]) + f", and '{supported[-1]}'"
    refuse(f"Invalid value: '{value}'. Supported values are: {known}.", path, "invalid_value")


def an_object(value: object, path: str) -> dict[str, Any]:
    if type(value) is not dict:
        if value is None:
            missing(path)
        wrong_type(path, "an object", value)
    return value


def a_string(value: object, path: str) -> str:
    if type(value) is not str:
        if value is None:
            missing(path)
        wrong_type(path, "a string", value)
    return value


def objects(value: object, path: str) -> list[dict[str, Any]]:
    if type(value) is not list:
        wrong_type(path, "an array of objects", value)
    for at, one in enumerate(value):
        if type(one) is not dict:
            wrong_type(f"{path}[{at}]", "an object", one)
    return value


def an_integer(body: dict[str, Any], key: str, least: int, most: int = 2**63 - 1) -> int | None:
    value = body.get(key)
    if value is None:
        return None
    if type(value) is not int:
        wrong_type(key, "an integer", value)
    _within(key, value, least, most, "integer")
    return value


def a_decimal(body: dict[str, Any], key: str, least: float, most: float) -> float | None:
    value = body.get(key)
    if value is None:
        return None
    if type(value) is not float and type(value) is not int:
        wrong_type(key, "a decimal", value)
    _within(key, value, least, most, "decimal")
    return float(value)


def _within(key: str, value: float, least: float, most: float, kind: str) -> None:
    if least <= value <= most:
        return
    if value < least:
        words = f"{kind} below minimum value. Expected a value >= {least}, but got {value} instead."
        refuse(f"Invalid '{key}': {words}", key, f"{kind}_below_min_value")
    words = f"{kind} above maximum value. Expected a value <= {most}, but got {value} instead."
    refuse(f"Invalid '{key}': {words}", key, f"{kind}_above_max_value")


def a_flag(body: dict[str, Any], key: str) -> bool:
    value = body.get(key)
    if value is not None and type(value) is not bool:
        wrong_type(key, "a boolean", value)
    return bool(value)
