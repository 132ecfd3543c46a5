"""Commands, arguments and flags: they may grow, and nothing of them may go or change."""

from __future__ import annotations

import enum
import typing
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from typer.main import get_command

from tests.pins.expectations import read_json
from tests.pins.product import COMMAND

COMPLETION = ("--install-completion", "--show-completion")


def test_commands_and_flags_may_only_grow() -> None:
    found = {" ".join(["groundswell", *path]): parameters(command) for path, command in tree(get_command(COMMAND), ())}
    expected = read_json("commands.json", found)
    problems = [problem for name in expected for problem in lost(name, expected[name], found.get(name))]
    assert not problems, "\n".join(problems)


def lost(command: str, expected: dict[str, Any], found: dict[str, Any] | None) -> list[str]:
    """What of a command is gone or changed. More flags, and more choices of a flag, are no loss."""
    if found is None:
        return [f"{command} is gone"]
    problems = [f"{command} {name} is gone" for name in expected if name not in found]
    for name, now in found.items():
        was = expected.get(name, {**now, "required": False})
        more = {"choices": now["choices"]} if was["choices"] and set(was["choices"]) <= set(now["choices"]) else {}
        if {**was, **more} != now:
            problems.append(f"{command} {name} was {was}, is {now}")
    return problems


def tree(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its path."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from tree(child, (*path, name))


def parameters(command: Any) -> dict[str, Any]:
    """The parameters of a command by each of their names: `--models` and `-m` are two entries."""
    found: dict[str, Any] = {}
    for parameter in command.params:
        described = _described(parameter)
        for at, name in enumerate([*parameter.opts, *parameter.secondary_opts]):
            if name not in COMPLETION:
                off = {"switches_off": parameter.opts[0]} if at >= len(parameter.opts) else {}
                found[name] = {**described, **off}
    return found


def _described(parameter: Any) -> dict[str, Any]:
    """What users notice of a parameter. Its help text may change."""
    flag = bool(getattr(parameter, "is_flag", False))
    described = {
        "kind": "flag" if flag else parameter.param_type_name,
        "required": parameter.required,
        "repeatable": bool(parameter.multiple or parameter.nargs != 1),
        "default": _plain(parameter.default),
        "variable": parameter.envvar,
        "choices": list(_choices(parameter.type_descriptor.annotation)),
    }
    left_out: tuple[object, ...] = (None, [])
    return {name: value for name, value in described.items() if value not in left_out or name == "choices"}


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(type(value))


def _choices(annotation: Any) -> Iterator[str]:
    """The values that a parameter takes, if they are a closed set."""
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        yield from (str(member.value) for member in annotation)
    elif typing.get_origin(annotation) is typing.Literal:
        yield from map(str, typing.get_args(annotation))
    else:
        for each in typing.get_args(annotation):
            yield from _choices(each)
