"""Drivers: how they are named in the store, and found again to resume a run."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_type_hints

import msgspec

from groundswell.errors import RunError, SettingsError

if TYPE_CHECKING:
    from groundswell.engine.run import Run

Driver = Callable[["Run", Any], Coroutine[Any, Any, Any]]
"""An `async def driver(run, settings)`: submits trials, may choose from outcomes, returns the analysis."""


def driver_name(driver: Driver) -> str:
    """`module:name`, or `/path/file.py:name` for a driver in a script."""
    if "<" in driver.__qualname__:
        raise SettingsError(
            f"driver {driver.__qualname__}: must be a function at the top of a module, to be found again"
        )
    if driver.__module__ == "__main__" or _loaded_from_file(driver.__module__):
        file = inspect.getsourcefile(driver)
        if file is None or not Path(file).is_file():
            raise SettingsError(f"driver {driver.__qualname__}: must be in a file, so that the run can be resumed")
        return f"{Path(file).absolute()}:{driver.__qualname__}"
    return f"{driver.__module__}:{driver.__qualname__}"


def load_driver(name: str) -> Driver:
    """The driver with that name, its module imported as needed."""
    module_name, _, attribute = name.rpartition(":")
    if not module_name:
        raise SettingsError(f"driver {name!r}: write it as module:function or file.py:function")
    try:
        module = _load_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
        driver = getattr(module, attribute)
    except AttributeError as error:
        raise RunError(f"driver {name} cannot be loaded: {module_name} has no {attribute!r}") from error
    except (ImportError, FileNotFoundError, SyntaxError) as error:
        raise RunError(f"driver {name} cannot be loaded: {error}") from error
    if not inspect.iscoroutinefunction(driver):
        raise SettingsError(f"driver {name}: must be an `async def driver(run, settings)`")
    return cast(Driver, driver)


def settings_type(driver: Driver) -> Any:
    """The type that a driver takes its settings in."""
    parameters = list(inspect.signature(driver).parameters)
    if len(parameters) != 2:
        raise SettingsError(f"driver {driver.__qualname__}: must take exactly (run, settings)")
    return get_type_hints(driver).get(parameters[1], Any)


def decode_settings(driver: Driver, text: str | bytes) -> Any:
    """Settings from JSON; an error names the field."""
    try:
        return msgspec.json.decode(text, type=settings_type(driver))
    except msgspec.DecodeError as error:
        raise SettingsError(f"settings of {driver.__qualname__}: {error}") from error


def _loaded_from_file(module: str) -> bool:
    return getattr(sys.modules.get(module), "__groundswell_file__", False)


def _load_file(path: Path) -> Any:
    """Import a script under a name of its own, so that its `__main__` part does not run."""
    path = path.expanduser().absolute()
    name = f"groundswell_script_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    module.__groundswell_file__ = True  # type: ignore[attr-defined]
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
