"""Settings that are wrong, told by the flag that they were given with; and modules of the user's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from groundswell.errors import SettingsError


def flag_of(field: str, flags: Mapping[str, str]) -> str:
    """The flag of a field; `flags` has those that are called otherwise."""
    return flags.get(field, f"--{field.replace('_', '-')}")


def by_flag(error: SettingsError, flags: Mapping[str, str]) -> SettingsError:
    """An error that begins with the name of a field, as the command line knows it."""
    field, message = error.field or "", str(error)
    if not field or not message.startswith(field):
        return error
    return SettingsError(flag_of(field, flags) + message[len(field) :], field=field)


def see_own_modules(names: Iterable[str]) -> None:
    """Let modules that the command line names, as `module:name`, be imported from where the command is given."""
    from groundswell.experiments.named import trust_named

    if any(":" in name for name in names):
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        trust_named(names)
