"""Validate JSON schemas from requests: find the first invalid keyword. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]

DEEPEST = 100
"""Most keys on the path to a nested schema."""
HOPS = 20
"""Limit of following references and nested `allOf`s, which may be circular."""
GREATEST = 2.0**53
"""Larger numbers are not exact, and larger bounds are ignored."""

_NESTED = ("properties", "$defs", "definitions", "patternProperties")
_LISTED = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not")
_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})


class Flaw(NamedTuple):
    """An error in a schema, and its place."""

    at: tuple[str, ...]
    problem: str


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _is_count(value: object) -> bool:
    return (type(value) is int or (type(value) is float and value.is_integer())) and value >= 0


def _is_step(value: object) -> bool:
    return (type(value) is int or type(value) is float) and value > 0


def _is_list(value: object) -> bool:
    return type(value) is list


def _is_object(value: object) -> bool:
    return type(value) is dict


def _is_text(value: object) -> bool:
    return type(value) is str


def _are_names(value: object) -> bool:
    return type(value) is list and all(type(one) is str for one in value)


def _is_type(value: object) -> bool:
    if type(value) is list:
        return bool(value) and all(type(one) is str and one in _TYPES for one in value)
    return type(value) is str and value in _TYPES


class _Keyword(NamedTuple):
    fits: Callable[[object], bool]
    wanted: str


_COUNT = _Keyword(_is_count, "is not of type 'integer' or is below 0")
_NUMBER = _Keyword(_is_number, "is not of type 'number'")
_LIST = _Keyword(_is_list, "is not of type 'array'")
_OBJECT = _Keyword(_is_object, "is not of type 'object'")
_TEXT = _Keyword(_is_text, "is not of type 'string'")
_KEYWORDS: dict[str, _Keyword] = {
    "type": _Keyword(_is_type, "is not valid under any of the given schemas"),
    "required": _Keyword(_are_names, "is not an array of strings"),
    "multipleOf": _Keyword(_is_step, "is not a number above 0"),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"), _COUNT),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("enum", *_LISTED), _LIST),
    **dict.fromkeys(_NESTED, _OBJECT),
    **dict.fromkeys(("$ref", "pattern", "format"), _TEXT),
}
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})


def flaw_in(schema: object) -> Flaw | None:
    """The first invalid keyword of a schema, or of one inside it."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), schema)]
    while waiting:
        at, inner = waiting.pop()
        if len(at) > DEEPEST:
            return Flaw(at[:3], "schemas nested this deep are not supported")
        if type(inner) is not dict:
            if type(inner) is bool:
                continue
            return Flaw(at, f"{_shown(inner)} is not of type 'object', 'boolean'")
        for key, value in inner.items():
            keyword = _KEYWORDS.get(key)
            if keyword is not None and not keyword.fits(value):
                return Flaw((*at, key), f"{_shown(value)} {keyword.wanted}")
        waiting += [((*at, *place), child) for place, child in _children(inner)]
    return None


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _children(schema: Schema) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The schemas inside a schema, each with the keys that lead to it."""
    for key in _NESTED:
        yield from (((key, name), child) for name, child in schema.get(key, {}).items())
    for key in _LISTED:
        yield from (((key, str(at)), child) for at, child in enumerate(schema.get(key, ())))
    for key in _SINGLE:
        child = schema.get(key)
        if type(child) is list:
            yield from (((key, str(at)), one) for at, one in enumerate(child))
        elif key in schema:
            yield (key,), child


def sound(schema: object) -> Schema:
    """A schema without invalid keywords and without bounds that no number can satisfy."""
    if type(schema) is not dict:
        return {}
    return {key: value for key, value in schema.items() if _holds(key, value)}


def _holds(key: str, value: Any) -> bool:
    keyword = _KEYWORDS.get(key)
    if keyword is None:
        return True
    return keyword.fits(value) and (key not in _BOUNDS or abs(value) <= GREATEST)


class Resolver:
    """Follows the references of a schema and merges what must hold together; ends on any schema."""

    def __init__(self, root: object, steps: int) -> None:
        self._root = root
        self.left = steps
        """So much more may be read: what a schema can refer to grows without bounds."""

    def resolved(self, schema: object, depth: int = 0) -> Schema:
        """A sound schema with its references followed and its `allOf` merged in."""
        self.left -= 1
        plain = sound(schema)
        for _ in range(HOPS):
            if self.left <= 0 or depth > HOPS:
                break
            if (ref := plain.pop("$ref", None)) is not None:
                plain = {**sound(self._lookup(ref)), **plain}
            elif (parts := plain.pop("allOf", None)) is not None:
                plain = _merged([*(self.resolved(part, depth + 1) for part in parts if self.left > 0), plain])
            else:
                break
            self.left -= 1
        return plain

    def _lookup(self, ref: str) -> Any:
        found: Any = self._root
        for part in ref.removeprefix("#").strip("/").split("/"):
            if part:
                found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found


def _merged(parts: list[Schema]) -> Schema:
    """Several valid schemas as one; later ones take precedence, and properties are combined."""
    whole: Schema = {}
    properties: dict[str, Any] = {}
    required: list[str] = []
    for part in parts:
        whole.update(part)
        properties.update(part.get("properties", {}))
        required += part.get("required", ())
    if properties:
        whole["properties"] = properties
    if required:
        whole["required"] = list(dict.fromkeys(required))
    return whole
