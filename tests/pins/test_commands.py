"""Commands, arguments and flags: they may grow, and nothing of them may go or change."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from groundswell.experiments.options import REQUIRED
from tests.pins.expectations import read_json
from tests.pins.product import COMMAND

COMPLETION = ("--install-completion", "--show-completion")


def test_commands_and_flags_may_only_grow() -> None:
    found = {" ".join(["groundswell", *path]): parameters(command) for path, command in tree(COMMAND, ())}
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
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from tree(command.get_command(None, name), (*path, name))


def parameters(command: Any) -> dict[str, Any]:
    """The parameters of a command by each of their names: `--models` and `-m` are two entries."""
    found: dict[str, Any] = {}
    for parameter in command.params:
        described = _described(parameter)
        names = [parameter.field.name] if parameter.param_type_name == "argument" else parameter.opts
        for at, name in enumerate([*names, *parameter.secondary_opts]):
            if name not in COMPLETION:
                off = {"switches_off": names[0]} if at >= len(names) else {}
                found[name] = {**described, **off}
    return found


def _described(parameter: Any) -> dict[str, Any]:
    """What users notice of a parameter. Its help text may change."""
    flag = bool(getattr(parameter, "is_flag", False))
    field = getattr(parameter, "field", None)
    default = False if flag else None
    if field is not None and field.default is not REQUIRED:
        default = _plain(field.default)
    described = {
        "kind": "flag" if flag else parameter.param_type_name,
        "required": parameter.required,
        "repeatable": bool(parameter.multiple or parameter.nargs != 1),
        "default": default,
        "variable": parameter.envvar,
        "choices": [] if field is None else list(field.choices),
    }
    left_out: tuple[object, ...] = (None, [])
    return {name: value for name, value in described.items() if value not in left_out or name == "choices"}


def _plain(value: Any) -> Any:
    """A default as users see it: several values with commas between them, and none where there are none."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or None
    return value if value is None or isinstance(value, bool | int | float | str) else repr(type(value))
