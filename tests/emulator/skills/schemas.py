"""A small validator for the JSON schemas that models are given, and a strategy for such schemas."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def valid(value: Any, schema: Any, root: dict[str, Any]) -> bool:
    """Whether a value is what a schema asks for."""
    if not isinstance(schema, dict):
        return schema is not False
    if "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return valid(value, found, root)
    wanted = schema.get("type", list(TYPES))
    kinds = [wanted] if isinstance(wanted, str) else wanted
    return (
        any(isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in kinds)
        and ("const" not in schema or value == schema["const"])
        and ("enum" not in schema or value in schema["enum"])
        and ("anyOf" not in schema or any(valid(value, branch, root) for branch in schema["anyOf"]))
        and ("oneOf" not in schema or any(valid(value, branch, root) for branch in schema["oneOf"]))
        and all(valid(value, part, root) for part in schema.get("allOf", ()))
        and _parts_valid(value, schema, root)
    )


def _parts_valid(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if isinstance(value, dict):
        return _object_valid(value, schema, root)
    if isinstance(value, list):
        return _array_valid(value, schema, root)
    if isinstance(value, str):
        return (
            schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**9)
            and re.search(schema.get("pattern", ""), value) is not None
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        step = schema.get("multipleOf")
        return (
            schema.get("minimum", value) <= value <= schema.get("maximum", value)
            and schema.get("exclusiveMinimum", value - 1) < value < schema.get("exclusiveMaximum", value + 1)
            and (step is None or abs(value / step - round(value / step)) < 1e-9)
        )
    return True


def _object_valid(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    return (
        set(schema.get("required", ())) <= value.keys()
        and len(value) >= schema.get("minProperties", 0)
        and all(valid(inner, properties.get(key, others), root) for key, inner in value.items())
    )


def _array_valid(value: list[Any], schema: dict[str, Any], root: dict[str, Any]) -> bool:
    first = schema.get("prefixItems", [])
    return (
        schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9)
        and (not schema.get("uniqueItems") or all(one not in value[:at] for at, one in enumerate(value)))
        and all(valid(one, inner, root) for one, inner in zip(value, first, strict=False))
        and all(valid(one, schema.get("items", {}), root) for one in value[len(first) :])
    )


@st.composite
def bounds(draw: st.DrawFn, low: str, high: str, numbers: st.SearchStrategy[int]) -> dict[str, int]:
    """None, one or both of two bounds, the lower one first."""
    least, most = sorted((draw(numbers), draw(numbers)))
    return draw(st.sampled_from([{}, {low: least}, {high: most}, {low: least, high: most}]))


KEYS = st.sampled_from(["name", "message", "thought", "score", "leaked", "items", "answer", "city", "x", "guesses"])
PATTERNS = st.sampled_from(
    [r"^[A-Z]{3}-\d{2,4}$", r"\d+", r"^(yes|no|maybe)$", r"^[a-f0-9]{8}$", r"^\w+@\w+\.org$", r"^[^abc]{2}x?$"]
)
PLAIN: st.SearchStrategy[dict[str, Any]] = st.one_of(
    bounds("minLength", "maxLength", st.integers(0, 60)).map(lambda limits: {"type": "string", **limits}),
    PATTERNS.map(lambda pattern: {"type": "string", "pattern": pattern}),
    bounds("minimum", "maximum", st.integers(-50, 50)).map(lambda limits: {"type": "integer", **limits}),
    bounds("minimum", "maximum", st.integers(-50, 50)).map(lambda limits: {"type": "number", **limits}),
    st.integers(-9, 9).map(lambda least: {"type": "integer", "exclusiveMinimum": least, "multipleOf": 3}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"const": 7}, {"type": ["string", "null"]}, {}]),
    st.lists(st.text(max_size=5), min_size=1, max_size=4, unique=True).map(lambda options: {"enum": options}),
)


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def shaped(properties: dict[str, Any], strict: bool, every: bool) -> dict[str, Any]:
        required = list(properties) if every else list(properties)[:1]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": not strict}

    return st.builds(shaped, st.dictionaries(KEYS, inner, max_size=4), st.booleans(), st.booleans())


def _larger(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    arrays = st.builds(
        lambda items, limits: {"type": "array", "items": items, **limits},
        inner,
        bounds("minItems", "maxItems", st.integers(0, 5)),
    )
    either = st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
    return st.one_of(_objects(inner), arrays, either)


SCHEMAS: st.SearchStrategy[dict[str, Any]] = _objects(st.recursive(PLAIN, _larger, max_leaves=8))
