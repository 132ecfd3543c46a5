"""Forks: new runs that reuse the replies of an existing run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from groundswell.engine.driver import Driver, decode_settings, settings_type
from groundswell.engine.records import RunRecord
from groundswell.errors import RunError, SettingsError
from groundswell.program.request import canonical
from groundswell.store.runs import Runs

Changes = Iterable[tuple[str, Any]]
"""Fields of settings, such as `player.model`, and their new values."""


def check_forkable(parent: RunRecord) -> None:
    """Raise an error if a run cannot be forked."""
    if parent.driver is None:
        raise RunError(
            f"run {parent.title!r} was started by a script and cannot be forked; change the script and run it instead"
        )


def fork_settings(parent: RunRecord, driver: Driver, changes: Changes) -> Any:
    """The settings of a run with changes, in the type of its driver."""
    return changed_settings(driver, msgspec.json.decode(parent.settings or "{}"), changes)


def create_fork(runs: Runs, parent: RunRecord, settings: Any, *, name: str | None, at: int | None) -> RunRecord:
    """Create a fork, which is pending. In every trial, requests from position `at` on are sent again.

    Without `at`, every reply to an unchanged request is reused.
    """
    return runs.create_fork(parent, name, canonical(settings).decode(), None if at is None else str(at))


def changed_settings(driver: Driver, base: Any, changes: Changes) -> Any:
    """The settings of a driver: a base with changed fields. Errors name the field."""
    fields = dict(base) if isinstance(base, dict) else base
    for field, value in changes:
        if not isinstance(fields, dict):
            raise SettingsError(f"{field}: the settings of {driver.__qualname__} have no fields", field=field)
        _place(fields, field.split("."), value, field)
    if isinstance(fields, dict):
        _check_names(driver, fields)
    return decode_settings(driver, msgspec.json.encode(fields))


def _place(fields: dict[str, Any], path: list[str], value: Any, field: str) -> None:
    """Set a field or a nested field (`player.model`)."""
    for name in path[:-1]:
        inner = fields.get(name, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{field}: {name} is a plain value and has no fields", field=field)
        fields[name] = fields = dict(inner)
    fields[path[-1]] = value


def _check_names(driver: Driver, given: dict[str, Any]) -> None:
    """Refuse unknown fields, which would be ignored silently."""
    info = msgspec.inspect.type_info(settings_type(driver))
    if not isinstance(info, msgspec.inspect.StructType | msgspec.inspect.DataclassType | msgspec.inspect.TypedDictType):
        return
    known = [field.encode_name for field in info.fields]
    for name in given:
        if name not in known:
            there = f"known fields: {', '.join(known)}" if known else "it has no fields"
            raise SettingsError(f"settings of {driver.__qualname__}: unknown field {name!r}; {there}", field=name)
