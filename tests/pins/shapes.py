"""The shape of JSON values: every key path with its types, and no values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def shape(value: Any, mappings: Collection[str] = ()) -> list[str]:
    """Lines such as `trials.planned: integer` and `rates[].low: null|number`.

    An object or a list that holds something has no line of its own. A `?` after a key says that some objects at this
    path do not have it. `mappings` are the paths of objects whose keys are data, such as names of models: their keys
    are written as `<key>`.
    """
    types: dict[str, set[str]] = {}
    parents: dict[str, str] = {}
    count: Counter[str] = Counter()
    for path, parent, each in _walk("", "", value, frozenset(mappings)):
        types.setdefault(path, set()).add(TYPES.get(type(each), "null"))
        parents[path] = parent
        count[path] += 1
    full = {parent for path, parent in parents.items() if path}
    lines = []
    for path, found in types.items():
        data = path.endswith(("[]", "<key>")) or not path
        sometimes = not data and count[path] < count[parents[path]]
        if sometimes or path not in full or found not in ({"object"}, {"array"}):
            lines.append(f"{path or '.'}{'?' * sometimes}: {'|'.join(sorted(found))}")
    return sorted(lines)


def top_level(value: Any) -> list[str]:
    """The keys of an object, or of the objects in a list, with their types."""
    if isinstance(value, list):
        return shape([{key: _emptied(each) for key, each in row.items()} for row in value])
    return shape({key: _emptied(each) for key, each in value.items()})


def shape_of_lines(text: str, mappings: Collection[str] = ()) -> list[str]:
    """The shape of JSON lines, as that of one list."""
    return shape([json.loads(line) for line in text.splitlines()], mappings)


def _emptied(value: Any) -> Any:
    return type(value)() if isinstance(value, dict | list) else value


def _walk(path: str, parent: str, value: Any, mappings: frozenset[str]) -> Iterator[tuple[str, str, Any]]:
    yield path, parent, value
    if isinstance(value, dict):
        for key, each in value.items():
            name = "<key>" if path in mappings else key
            yield from _walk(f"{path}.{name}" if path else name, path, each, mappings)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(f"{path}[]", path, each, mappings)
