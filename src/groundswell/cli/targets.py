"""Find the driver or experiment that a command names, and build its settings from files and flags."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from groundswell.cli.trust import with_trust
from groundswell.engine.driver import (
    BUILT_IN,
    Driver,
    check_stored_module,
    load_driver,
    load_module,
    load_stored_driver,
)
from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Experiment, experiment_named, experiment_names
from groundswell.experiments.fork import changed_settings
from groundswell.reporting.words import visible


def find_driver(name: str) -> Driver:
    """The driver `file.py:driver` or `module:driver` that the user named. It may import modules from its own folder."""
    module = name.rpartition(":")[0]
    _see(_folder_of(module) if module.endswith(".py") else os.getcwd())
    return load_driver(name)


def find_experiment(target: str) -> Experiment | None:
    """The experiment in `file.py`, `file.py:experiment` or `module:experiment`; None if the target is a driver."""
    where, _, attribute = target.rpartition(":")
    if not where or target.endswith(".py"):
        where, attribute = target, ""
    if not where.endswith(".py") and not attribute:
        return experiment_named(target) if target in experiment_names() else None
    if where.endswith(".py") and not Path(_folder_of(where), Path(where).name).exists():
        raise SettingsError(f"{target}: file not found", field="target")
    _see(_folder_of(where) if where.endswith(".py") else os.getcwd())
    module = load_module(where)
    if attribute:
        found = getattr(module, attribute, None)
        return found if isinstance(found, Experiment) else None
    there = [each for each in vars(module).values() if isinstance(each, Experiment)]
    if len(there) != 1:
        many = "no experiment" if not there else f"{len(there)} experiments"
        raise SettingsError(f"{target}: contains {many}; name the experiment or driver to run: {target}:NAME")
    return there[0]


def find_stored_driver(name: str, location: str | None) -> Driver:
    """The driver of a stored run. Its module must be trusted; then it may import modules from its own folder."""
    module = "" if name in BUILT_IN else (location or name).rpartition(":")[0]
    if module.endswith(".py"):
        check_stored_module(module, f"driver {visible(location or name)}")
        _see(_folder_of(module))
    return load_stored_driver(name, location)


def load_driver_of(record: RunRecord) -> Driver | None:
    """The driver of a run; None if a script made the run. At a terminal, asks whether to trust its file."""
    name = record.driver
    return None if name is None else with_trust(lambda: find_stored_driver(name, record.location))


def _folder_of(file: str) -> str:
    return str(Path(os.path.expanduser(file)).absolute().parent)


def _see(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def build_settings(driver: Driver, base: Any, changes: list[str]) -> Any:
    """The settings of a driver: a base with `field=value` changes. Errors name the field."""
    return changed_settings(driver, base, map(parse_change, changes))


def parse_change(change: str) -> tuple[str, Any]:
    """The field and the value of `field=value`. The value is JSON, else text."""
    field, equals, value = change.partition("=")
    if not equals or not field:
        raise SettingsError(f"--set {change}: must have the form field=value")
    return field.strip(), _parse(value)


def read_settings(path: Path) -> dict[str, Any]:
    """The fields of a settings file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise SettingsError(f"--settings {path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise SettingsError(f"--settings {path}: must contain one JSON object: {error}") from error


def _parse(value: str) -> Any:
    try:
        return msgspec.json.decode(value)
    except UnicodeEncodeError as error:
        raise SettingsError(f"--set: {value!r} is not valid Unicode text") from error
    except msgspec.DecodeError:
        return value
