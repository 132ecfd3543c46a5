"""Validates JSON Schemas, and values against them.

All keywords of providers' structured output are supported, and most others. Unsupported keywords are refused, so that
nothing passes unchecked. The messages of `flaw` are sent to models and must not change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from groundswell.experiments.prompting.matching import is_found, read_pattern

DEEPEST = 100
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
UNKNOWN = frozenset(
    (
        *("if", "then", "else", "dependencies", "dependentSchemas", "dependentRequired", "propertyNames"),
        *("contains", "minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties"),
        *("$dynamicRef", "$recursiveRef"),
    )
)
"""Unsupported keywords."""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return _number(value) and (isinstance(value, int) or value.is_integer())


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


_IS: dict[str, Callable[[Any], bool]] = {
    "object": _object,
    "array": _list,
    "string": _text,
    "integer": _whole,
    "number": _number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def _multiple(value: float, of: float) -> bool:
    """Exact for decimal numbers (0.3 is a multiple of 0.1) and for very large ones."""
    return Fraction(repr(value)) % Fraction(repr(of)) == 0


def _distinct(items: list[Any], wanted: bool) -> bool:
    return not wanted or not any(same(one, other) for at, one in enumerate(items) for other in items[:at])


_Simple = tuple[Callable[[Any], bool], Callable[[Any, Any], bool], str]
_SIMPLE: dict[str, _Simple] = {
    "minimum": (_number, lambda value, least: value >= least, "is below the minimum of {}"),
    "maximum": (_number, lambda value, most: value <= most, "is above the maximum of {}"),
    "exclusiveMinimum": (_number, lambda value, below: value > below, "is not above {}"),
    "exclusiveMaximum": (_number, lambda value, above: value < above, "is not below {}"),
    "multipleOf": (_number, _multiple, "is not a multiple of {}"),
    "minLength": (_text, lambda value, least: len(value) >= least, "has fewer than {} characters"),
    "maxLength": (_text, lambda value, most: len(value) <= most, "has more than {} characters"),
    "pattern": (_text, lambda value, pattern: is_found(read_pattern(pattern), value), "does not match {}"),
    "minItems": (_list, lambda value, least: len(value) >= least, "has fewer than {} items"),
    "maxItems": (_list, lambda value, most: len(value) <= most, "has more than {} items"),
    "uniqueItems": (_list, _distinct, "has the same item twice"),
    "minProperties": (_object, lambda value, least: len(value) >= least, "has fewer than {} fields"),
    "maxProperties": (_object, lambda value, most: len(value) <= most, "has more than {} fields"),
}
"""Keyword -> the values it applies to, the condition, and the message if it is violated."""


def flaw(value: Any, schema: Any) -> str | None:
    """The first violation of a schema in a value, with its place; None if there is none.

    Raises `TimeLimitExceeded` if a pattern takes too long, since the result is then unknown.
    """
    return next(_flaws(value, schema, schema, "$", 0), None)


def _flaws(value: Any, schema: Any, root: Any, at: str, depth: int) -> Iterator[str]:
    if schema is False:
        yield f"{at} must not be there"
    if not isinstance(schema, dict):
        return
    if depth > DEEPEST:
        yield f"{at} is nested too deeply"
        return
    if "$ref" in schema:
        yield from _flaws(value, _lookup(root, schema["$ref"]), root, at, depth + 1)
    yield from _own_flaws(value, schema, at)
    yield from _inner_flaws(value, schema, root, at, depth + 1)
    yield from _joint_flaws(value, schema, root, at, depth + 1)


def _own_flaws(value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
    """Violations of the value itself."""
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds is not None and not any(_IS[kind](value) for kind in kinds):
        yield f"{at} is {_shown(value)}, not of type {' or '.join(kinds)}"
        return
    if "enum" in schema and not any(same(value, each) for each in schema["enum"]):
        yield f"{at} is {_shown(value)}, not one of {', '.join(map(_shown, schema['enum']))}"
    if "const" in schema and not same(value, schema["const"]):
        yield f"{at} is {_shown(value)}, not {_shown(schema['const'])}"
    for keyword, (about, holds, told) in _SIMPLE.items():
        if keyword in schema and about(value) and not holds(value, schema[keyword]):
            yield f"{at} {told.format(schema[keyword])}"
    if _object(value):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at} has no field {name!r}"


def _inner_flaws(value: Any, schema: dict[str, Any], root: Any, at: str, depth: int) -> Iterator[str]:
    """Violations in the fields of an object or the items of a list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            known = _of_field(schema, name)
            if known is False:
                yield f"{at} has a field {name!r} that the schema does not know"
            elif isinstance(known, list):
                for each in known:
                    yield from _flaws(inner, each, root, f"{at}.{name}", depth)
    elif isinstance(value, list):
        first = schema.get("prefixItems", [])
        for number, item in enumerate(value):
            held_to = first[number] if number < len(first) else schema.get("items", True)
            yield from _flaws(item, held_to, root, f"{at}[{number}]", depth)


def _of_field(schema: dict[str, Any], name: str) -> list[Any] | bool:
    """The schemas that apply to a field; False if the field is not allowed."""
    found = [schema["properties"][name]] if name in schema.get("properties", {}) else []
    found += [
        each for pattern, each in schema.get("patternProperties", {}).items() if is_found(read_pattern(pattern), name)
    ]
    if found:
        return found
    rest = schema.get("additionalProperties", True)
    return rest if isinstance(rest, bool) else [rest]


def _joint_flaws(value: Any, schema: dict[str, Any], root: Any, at: str, depth: int) -> Iterator[str]:
    """Violations of allOf, anyOf, oneOf and not."""

    def fits(each: Any) -> bool:
        return next(_flaws(value, each, root, at, depth), None) is None

    for each in schema.get("allOf", ()):
        yield from _flaws(value, each, root, at, depth)
    if "anyOf" in schema and not any(map(fits, schema["anyOf"])):
        yield f"{at} is {_shown(value)}, which fits none of the schemas under anyOf"
    if "oneOf" in schema and (count := sum(map(fits, schema["oneOf"]))) != 1:
        yield f"{at} is {_shown(value)}, which fits {count} of the schemas under oneOf, not 1"
    if "not" in schema and fits(schema["not"]):
        yield f"{at} is {_shown(value)}, which the schema forbids"


def _lookup(root: Any, reference: str) -> Any:
    found = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            found = found[part.replace("~1", "/").replace("~0", "~")]
    return found


def _shown(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def schema_flaw(schema: Any) -> str | None:
    """Why something is not a supported JSON Schema, with the place; None if it is one."""
    if not isinstance(schema, dict):
        return "it is not a JSON object"
    return next(_schema_flaws(schema, schema, "$", 0, set()), None)


def _schema_flaws(schema: Any, root: Any, at: str, depth: int, seen: set[int]) -> Iterator[str]:
    """Errors in a schema and in all schemas it refers to. `seen` has the ids of checked schemas."""
    if isinstance(schema, bool) or id(schema) in seen:
        return
    seen.add(id(schema))
    if not isinstance(schema, dict):
        yield f"{at} must be a schema, not {_shown(schema)}"
    elif depth > DEEPEST:
        yield f"{at} is nested too deeply"
    else:
        for keyword, value in schema.items():
            if (problem := _keyword_flaw(keyword, value, root)) is not None:
                yield f"{at}.{keyword} {problem}"
                return
        for place, inner in _inside(schema, root):
            yield from _schema_flaws(inner, root, f"{at}.{place}", depth + 1, seen)
        if _is_circle(schema, root, []):
            yield f"{at} refers to itself, so no reply could conform to it"


def _is_circle(schema: Any, root: Any, above: list[Any]) -> bool:
    """Whether a schema applies itself to the same value again."""
    if not isinstance(schema, dict):
        return False
    if any(schema is each for each in above):
        return True
    same_value = [each for keyword in ("allOf", "anyOf", "oneOf") for each in schema.get(keyword, ())]
    same_value += [schema["not"]] if "not" in schema else []
    same_value += [_lookup(root, schema["$ref"])] if "$ref" in schema else []
    return any(_is_circle(each, root, [*above, schema]) for each in same_value)


def _inside(schema: dict[str, Any], root: Any) -> Iterator[tuple[str, Any]]:
    """The schemas inside a schema and the one it refers to, with their places."""
    if "$ref" in schema:
        yield "$ref", _lookup(root, schema["$ref"])
    for keyword in ("properties", "patternProperties", "$defs", "definitions"):
        yield from ((f"{keyword}.{name}", inner) for name, inner in schema.get(keyword, {}).items())
    for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
        yield from ((f"{keyword}.{number}", inner) for number, inner in enumerate(schema.get(keyword, ())))
    yield from ((keyword, schema[keyword]) for keyword in ("items", "additionalProperties", "not") if keyword in schema)


_FORMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "enum": (_list, "must be a list"),
    "required": (lambda value: _list(value) and all(map(_text, value)), "must be a list of names"),
    "uniqueItems": (lambda value: isinstance(value, bool), "must be true or false"),
    "multipleOf": (lambda value: _number(value) and value > 0, "must be a number above 0"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_number, "must be a number")),
    **{
        name: (lambda value: _whole(value) and value >= 0, "must be a whole number, 0 or more")
        for name in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
    },
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), (_object, "must be an object")),
    **{
        name: (lambda value: _list(value) and bool(value), "must be a list of schemas")
        for name in ("allOf", "anyOf", "oneOf", "prefixItems")
    },
}


def _keyword_flaw(keyword: str, value: Any, root: Any) -> str | None:
    if keyword in UNKNOWN:
        return "is not supported; leave it out"
    if keyword == "patternProperties" and isinstance(value, dict):
        return next((problem for pattern in value if (problem := _pattern_flaw(pattern)) is not None), None)
    if keyword in _FORMS:
        fits, told = _FORMS[keyword]
        return None if fits(value) else f"{told}, not {_shown(value)}"
    if keyword == "type":
        kinds = value if isinstance(value, list) and value else [value]
        wrong = [kind for kind in kinds if not (isinstance(kind, str) and kind in TYPES)]
        return f"must be among {', '.join(TYPES)}, not {_shown(wrong[0])}" if wrong else None
    if keyword == "pattern":
        return _pattern_flaw(value)
    return _reference_flaw(value, root) if keyword == "$ref" else None


def _pattern_flaw(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be text, not {_shown(value)}"
    try:
        read_pattern(value)
    except re.error as error:
        return f"is not a regular expression: {error}"
    return None


def _reference_flaw(value: Any, root: Any) -> str | None:
    if not (isinstance(value, str) and value.startswith("#")):
        return f"must refer to a place in the same file, for example '#/$defs/name', not {_shown(value)}"
    try:
        _lookup(root, value)
    except (LookupError, TypeError):
        return f"refers to a missing place: {value}"
    return None
