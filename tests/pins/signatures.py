"""Public names of Python, as plain data: attributes, parameters with their defaults, members, base classes."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Mapping
from typing import Any

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
Described = dict[str, Any]


def describe(thing: Any) -> Described:
    """A class with its bases, members and attributes; a function with its parameters; or the type of another value."""
    if inspect.isclass(thing):
        return _class(thing)
    if callable(thing):
        return {"parameters": _parameters(thing)}
    return {"value": type(thing).__name__}


def lost(expected: Mapping[str, Any], found: Mapping[str, Any], where: str) -> list[str]:
    """What of the expected is gone or changed. More attributes, members, bases and optional parameters are no loss."""
    problems = []
    for name, was in expected.items():
        place = f"{where}.{name}"
        if name not in found:
            problems.append(f"{place} is gone")
        elif name == "parameters":
            problems += _lost_parameters(was, found[name], where)
        elif isinstance(was, dict):
            problems += lost(was, found[name], place)
        elif isinstance(was, list):
            problems += [f"{place}: {each} is gone" for each in was if each not in found[name]]
        elif was != found[name]:
            problems.append(f"{place} was {was}, is {found[name]}")
    return problems


def _class(thing: type) -> Described:
    described: Described = {
        "bases": [base.__name__ for base in thing.__mro__[1:-1] if not base.__name__.startswith("_")]
    }
    if issubclass(thing, enum.Enum):
        return {**described, "members": {member.name: repr(member.value) for member in thing}}
    own = [base for base in thing.__mro__ if base.__module__.partition(".")[0] == "groundswell"]
    names = {name for base in own for name in vars(base) if not name.startswith("_")}
    names |= {name for base in own for name in inspect.get_annotations(base) if not name.startswith("_")}
    attributes = {name: _attribute(inspect.getattr_static(thing, name, None)) for name in sorted(names)}
    return {**described, "parameters": _parameters(thing), "attributes": attributes}


def _attribute(attribute: Any) -> Described:
    if isinstance(attribute, staticmethod | classmethod):
        attribute = attribute.__func__
    return {"parameters": _parameters(attribute)} if inspect.isroutine(attribute) and callable(attribute) else {}


def _parameters(function: Any) -> list[Described]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [_parameter(each) for each in parameters if not each.name.startswith("_")]


def _parameter(parameter: inspect.Parameter) -> Described:
    described: Described = {"name": parameter.name, "kind": parameter.kind.name.lower()}
    if parameter.default is not parameter.empty:
        described["default"] = ADDRESS.sub("", repr(parameter.default))
    return described


def _lost_parameters(expected: list[Described], found: list[Described], where: str) -> list[str]:
    problems = []
    now = {each["name"]: each for each in found}
    for each in expected:
        if each["name"] not in now:
            problems.append(f"{where}: parameter {each['name']} is gone")
        elif each != now[each["name"]]:
            problems.append(f"{where}: parameter was {each}, is {now[each['name']]}")
    was = [each["name"] for each in expected if each["kind"] != "keyword_only"]
    if [each["name"] for each in found if each["kind"] != "keyword_only"][: len(was)] != was:
        problems.append(f"{where}: positional parameters {', '.join(was)} are in another order")
    known = {each["name"] for each in expected}
    required = [each["name"] for each in found if each["name"] not in known and _required(each)]
    return problems + [f"{where}: parameter {name} is new and has no default" for name in required]


def _required(parameter: Described) -> bool:
    return "default" not in parameter and not parameter["kind"].startswith("var_")
