"""JSON schemas for structured output: closed objects and, for OpenAI, every property required."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ANY_OBJECT: dict[str, Any] = {"type": "object"}
"""The schema of any JSON object. Providers call this JSON mode."""

DEEPEST = 100
MOST_SCHEMAS = 10_000

LIMITS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
_NESTED = ("properties", "$defs", "definitions", "patternProperties")
_LISTED = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not")


def _children(schema: dict[str, Any]) -> Iterator[tuple[str, str | int | None, Any]]:
    """The schemas inside a schema, each with its key, and the key or index below that."""
    for key in _NESTED:
        if isinstance(schema.get(key), dict):
            yield from ((key, name, child) for name, child in schema[key].items())
    for key in _LISTED:
        if isinstance(schema.get(key), list):
            yield from ((key, at, child) for at, child in enumerate(schema[key]))
    for key in _SINGLE:
        if isinstance(schema.get(key), dict):
            yield key, None, schema[key]


def too_deep(schema: dict[str, Any] | None) -> str | None:
    """The message for a schema that is nested too deeply or refers to itself in memory."""
    level = [] if schema is None else [schema]
    for _ in range(DEEPEST):
        level = [child for outer in level for _, _, child in _children(outer) if isinstance(child, dict)]
        if not level:
            return None
        if len(level) > MOST_SCHEMAS:
            break
    return "schema: nested too deeply or contains itself; use $ref for repeated parts"


def _is_object(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def close_objects(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with `additionalProperties: false` in every object that does not set it."""
    return _rebuild(schema, strict=False)


def move_limits_to_description(schema: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """Move limits on numbers, lengths and counts into the description, because Anthropic rejects them in a schema."""
    if depth > DEEPEST:
        return schema
    made = {key: value for key, value in schema.items() if key not in _refused(schema)}
    if limits := {key: schema[key] for key in _refused(schema)}:
        told = ", ".join(f"{key}: {value}" for key, value in limits.items())
        made["description"] = f"{schema.get('description', '')} ({told})".strip()
    for key, place, child in _children(schema):
        if isinstance(child, dict) and key in made:
            inner = move_limits_to_description(child, depth + 1)
            made[key] = inner if place is None else _put(made[key], place, inner)
    return made


def find_limit(schema: dict[str, Any], depth: int = 0) -> tuple[str, str] | None:
    """The type and name of the first limit that Anthropic would reject, if any."""
    for key in _refused(schema):
        return str(schema.get("type", "")), key
    inside = (find_limit(child, depth + 1) for _, _, child in _children(schema) if isinstance(child, dict))
    return next((found for found in inside if found is not None), None) if depth <= DEEPEST else None


def _refused(schema: dict[str, Any]) -> list[str]:
    """The limits of a schema that Anthropic does not support. It supports `minItems` of 0 and 1."""
    few = schema.get("minItems") in (None, 0, 1)
    return [key for key in LIMITS if key in schema and not (key == "minItems" and few)]


def _put(held: Any, place: str | int, inner: dict[str, Any]) -> Any:
    """A list or a mapping with one member replaced."""
    changed = held.copy()
    changed[place] = inner
    return changed


def strict(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema for OpenAI's strict mode. None if strict mode cannot express it: objects with arbitrary keys."""
    tight = _rebuild(schema, strict=True)
    return None if find_looseness(tight) else tight


def _rebuild(schema: dict[str, Any], strict: bool, depth: int = 0) -> dict[str, Any]:
    if depth > DEEPEST:
        return schema
    made = {key: value for key, value in schema.items() if not (strict and key == "default")}
    for key, place, child in _children(schema):
        if not isinstance(child, dict):
            continue
        inner = _rebuild(child, strict, depth + 1)
        if place is None:
            made[key] = inner
            continue
        if made[key] is schema[key]:
            made[key] = schema[key].copy()
        made[key][place] = inner
    if _is_object(schema) and isinstance(schema.get("properties"), dict):
        made.setdefault("additionalProperties", False)
        if strict:
            made["required"] = list(schema["properties"])
    return made


def find_looseness(schema: dict[str, Any], *, all_required: bool = True, at: tuple[str, ...] = ()) -> str | None:
    """Why the schema is too loose for structured output, in OpenAI's words; None if it is not."""
    if len(at) > DEEPEST:
        return f"{DEEPEST // 2} levels of nesting exceeds the limit."
    if _is_object(schema):
        if schema.get("additionalProperties") is not False:
            return f"In context={at}, 'additionalProperties' is required to be supplied and to be false."
        names = schema.get("properties")
        if all_required and isinstance(names, dict) and names.keys() - _required(schema):
            words = "'required' is required to be supplied and to be an array including every key in properties."
            return f"In context={at}, {words}"
    for key, place, child in _children(schema):
        if isinstance(child, dict):
            inside = (*at, key) if place is None else (*at, key, str(place))
            problem = find_looseness(child, all_required=all_required, at=inside)
            if problem:
                return problem
    return None


def _required(schema: dict[str, Any]) -> set[str]:
    required = schema.get("required")
    return {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
