"""Drivers: how a run stores the name of its driver, and how the driver is loaded to resume the run.

A run stores the name of its driver, which does not depend on where the code is, and a location to load it from.

A store may come from somebody else, so its content alone never causes an import. `load_driver` takes a location that
the user gave. `load_stored_driver` takes one from a store. It only loads built-in drivers, drivers of installed
experiments, drivers in files that the user has trusted, and drivers that the user's own script has imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import shlex
import site
import sys
import sysconfig
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast, get_type_hints

import msgspec

from groundswell.errors import NotTrusted, RunError, SettingsError
from groundswell.reporting.words import visible
from groundswell.trust import users_trust

Driver = Callable[[Any, Any], Coroutine[Any, Any, Any]]
"""An `async def driver(run, settings)`: submits trials, may use their outcomes, and returns the analysis."""

BUILT_IN = {
    "prompt-evolution/evolve": "prompt_evolution.evolving:evolve",
    "prompting/ask": "prompting.asking:ask_models",
    "prompting/map": "prompting.mapping:map_rows",
    "query-mutation/evaluate": "query_mutation.evaluating:evaluate",
    "query-mutation/train": "query_mutation.training:train",
    "secret-game/play": "secret_game.playing:play",
    "secret-game/score": "secret_game.scored:score_conversations",
    "secret-game/selftest": "secret_game.selftest.driving:selftest",
    "secret-game/tournament": "secret_game.playing:tournament",
    "simulations/converse": "simulations.driving:converse",
    "simulations/selftest": "simulations.selftest:selftest",
    "simulations/simulate": "simulations.driving:simulate",
    "simulations/write": "simulations.writing:write",
}
"""Built-in drivers: the name that a run stores, and the location of the function in `groundswell.experiments`."""
_NAMES = {f"groundswell.experiments.{place}": name for name, place in BUILT_IN.items()}
GROUP = "groundswell.experiments"
"""Entry point group in which an installed package declares its drivers, as `name = "module:driver"`."""
D = TypeVar("D", bound=Driver)
_REGISTERED: dict[str, Driver] = {}


def driver(name: str) -> Callable[[D], D]:
    """Register an `async def f(run, settings)` as a driver with a name. Runs store the name.

    A driver that is not registered is stored as `module:function`, and its runs cannot be resumed after it moves.

    Args:
        name: Name of the driver, such as `my-study/play`.

    Returns:
        A decorator that returns the function unchanged.

    Raises:
        SettingsError: If the name is invalid, or already registered for another function.
    """
    if not name or ":" in name or visible(name) != name:
        raise SettingsError(
            f"driver {name!r}: the name must not be empty or contain a colon or control characters; "
            f"use a name such as 'my-study/play'"
        )
    if name in BUILT_IN:
        raise SettingsError(f"driver {name!r}: this is the name of a built-in driver; choose another")

    def register(function: D) -> D:
        known = _REGISTERED.get(name)
        if known is not None and not _is_same(known, function):
            raise SettingsError(
                f"driver {name!r} is registered twice: as {driver_location(known)} and as {function!r}; "
                f"rename one of them"
            )
        _REGISTERED[name] = function
        function.__groundswell_name__ = name  # type: ignore[attr-defined]
        return function

    return register


def _is_same(one: Driver, other: Driver) -> bool:
    """Whether two functions are the same one, loaded again, for example as a module and as a file."""
    if one.__qualname__ != other.__qualname__:
        return False
    files = [inspect.getsourcefile(each) for each in (one, other)]
    return one.__module__ == other.__module__ or (files[0] is not None and files[0] == files[1])


def driver_name(driver: Driver) -> str:
    """The name that a run stores: the registered name of the driver, or else its location."""
    registered = getattr(driver, "__groundswell_name__", None)
    location = driver_location(driver)
    return registered or _NAMES.get(location, location)


def stored_location(driver: Driver) -> str | None:
    """The location that a run stores besides the name; None unless the driver is a registered one of the user."""
    name, location = driver_name(driver), driver_location(driver)
    return None if name in BUILT_IN or name == location else location


def driver_location(driver: Driver) -> str:
    """The location of a driver: `module:name`, or `/path/file.py:name` for one in a script."""
    if "<" in driver.__qualname__:
        raise SettingsError(f"driver {driver.__qualname__}: must be defined at the top level of a module")
    return f"{module_location(driver)}:{driver.__qualname__}"


def module_location(function: Callable[..., Any]) -> str:
    """Where a driver or a program is: the name of its module, or the path of a script."""
    if function.__module__ == "__main__" or _loaded_from_file(function.__module__):
        file = inspect.getsourcefile(function)
        if file is None or not Path(file).is_file():
            raise SettingsError(f"{function.__qualname__}: must be defined in a file, so that the run can be resumed")
        return str(Path(file).absolute())
    return function.__module__


def load_driver(name: str) -> Driver:
    """Load the driver that the user named."""
    return _driver_in(_module_of(name), name)


def load_stored_driver(name: str, location: str | None = None) -> Driver:
    """Load the driver that a store names, from the stored location if necessary.

    Raises `NotTrusted` instead of importing code that the user has not trusted.
    """
    if name in BUILT_IN:
        return load_driver(f"groundswell.experiments.{BUILT_IN[name]}")
    if name in _REGISTERED:
        return _REGISTERED[name]
    location = installed_experiments().get(name) or location or name
    where, _, attribute = location.rpartition(":")
    if where:
        check_stored_module(where, f"driver {visible(location)}", entry_point=location)
    module = _module_of(location)
    found = getattr(module, attribute, None)
    if found is not None and getattr(found, "__module__", None) != module.__name__:
        raise SettingsError(f"driver {visible(location)}: is not defined in {visible(where)}")
    driver = _driver_in(module, location)
    if name not in (driver_name(driver), location):
        raise RunError(
            f"driver {visible(name)} was not found in {visible(location)}; if you moved or renamed "
            f"it, import the module that defines it now"
        )
    return driver


def is_loaded(name: str, location: str | None = None) -> bool:
    """Whether the driver that a store names is available without an import: built in, registered or imported."""
    if name in BUILT_IN or name in _REGISTERED:
        return True
    where = (location or name).rpartition(":")[0]
    return bool(where) and (_is_imported(where) or (location or name) in installed_experiments().values())


def check_stored_module(where: str, what: str, *, entry_point: str | None = None) -> None:
    """Raise `NotTrusted` if a module or file that a store names is not trusted. Nothing is imported.

    `what` names the origin in the message. `entry_point` is the entry point that an installed package must declare;
    without it, any entry point in that module is accepted.
    """
    is_file = where.endswith(".py")
    if not is_file and where.partition(".")[0] == "groundswell":
        raise SettingsError(f"{what}: Groundswell has no driver with this name. Nothing was loaded")
    if _is_imported(where):
        return
    files = [_absolute(where)] if is_file else _to_be_run(where)
    if not is_file and not _all_trusted(files) and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # the user may have named it on the command line and so trusted it
        here = _to_be_run(where)
        files = here or files
        if not _all_trusted(here):
            del sys.path[0]
    if _all_trusted(files):
        return
    declared = installed_experiments().values()
    if entry_point in declared or (entry_point is None and where in {each.partition(":")[0] for each in declared}):
        return
    if not files:
        raise RunError(
            f"{what} cannot be loaded: module {visible(where)} was not found; run the command in the "
            f"folder that contains it"
        )
    paths = [str(path) for path in files]
    shown = visible(" and ".join(paths))
    raise NotTrusted(
        f"{what} is in {shown}, which you have not trusted. It was not loaded, because a store may come from somebody "
        f"else. If you trust this code and what it imports, run: groundswell trust {visible(shlex.join(paths))}",
        f"Run the code in {shown}?",
        files=paths,
    )


def trust_driver(driver: Driver) -> None:
    """Trust the files of a driver that the user's own code runs, so that its run can be resumed without a question.

    If that fails, the run continues, and resuming it asks the user.
    """
    where = driver_location(driver).rpartition(":")[0]
    if where.partition(".")[0] != "groundswell" or where.endswith(".py"):
        trust_module(where)


def trust_module(where: str) -> None:
    """Trust a file, or the files of a module, that the user named."""
    with suppress(SettingsError):
        users_trust().add_files([_absolute(where)] if where.endswith(".py") else module_files(where).values())


def module_files(name: str) -> dict[str, Path]:
    """The files of a module and of its parent packages, by module name. Nothing is imported.

    Empty if there is no such module, or if it is part of the interpreter.
    """
    found: dict[str, Path] = {}
    folders: Sequence[str] | None = None
    parts = name.split(".")
    if not all(map(str.isidentifier, parts)):
        return {}
    for at in range(len(parts)):
        part = ".".join(parts[: at + 1])
        spec = _spec(part, folders)
        last = at == len(parts) - 1
        if spec is None or (last and not spec.has_location) or (not last and spec.submodule_search_locations is None):
            return {}
        if spec.has_location and spec.origin is not None:
            found[part] = _absolute(spec.origin)
        folders = spec.submodule_search_locations
        folders = (
            None if folders is None else list(getattr(folders, "_path", folders))
        )  # a namespace's asks sys.modules
    return found


@cache
def installed_experiments() -> Mapping[str, str]:
    """The drivers that installed packages declare, by name. Only folders of installed packages are searched."""
    folders = [*site.getsitepackages(), site.getusersitepackages(), *_library_folders()]
    points = (point for one in distributions(path=list(dict.fromkeys(folders))) for point in one.entry_points)
    return {point.name: point.value for point in points if point.group == GROUP}


def settings_type(driver: Driver) -> Any:
    """The type of a driver's settings."""
    parameters = list(inspect.signature(driver).parameters)
    if len(parameters) != 2:
        raise SettingsError(f"driver {driver.__qualname__}: must take exactly (run, settings)")
    return get_type_hints(driver).get(parameters[1], Any)


def analysis_type(driver: Driver) -> Any:
    """The annotated return type of a driver; Any without an annotation."""
    try:
        return get_type_hints(driver).get("return", Any)
    except (NameError, TypeError):
        return Any


def decode_settings(driver: Driver, text: str | bytes) -> Any:
    """Decode settings from JSON. An error names the field."""
    try:
        return msgspec.json.decode(text, type=settings_type(driver))
    except msgspec.DecodeError as error:
        raise SettingsError(f"settings of {driver.__qualname__}: {error}") from error


def _module_of(name: str) -> ModuleType:
    where, _, _ = name.rpartition(":")
    if not where:
        raise SettingsError(f"driver {name!r}: write it as file.py, file.py:function or module:function")
    return load_module(where, f"driver {name}")


def load_module(where: str, what: str = "") -> ModuleType:
    """Load a module or file that the user named. `what` is used in the message."""
    try:
        return _load_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except (ImportError, FileNotFoundError, SyntaxError, AttributeError) as error:
        raise RunError(f"{what or where} cannot be loaded: {error}") from error


def _driver_in(module: ModuleType, name: str) -> Driver:
    where, _, attribute = name.rpartition(":")
    try:
        driver = getattr(module, attribute)
    except AttributeError as error:
        raise RunError(f"driver {name} cannot be loaded: {where} has no {attribute!r}") from error
    if not inspect.iscoroutinefunction(driver):
        raise SettingsError(f"driver {name}: must be an `async def driver(run, settings)`")
    return cast(Driver, driver)


def _all_trusted(files: Sequence[Path]) -> bool:
    return bool(files) and users_trust().has_files(files)


def _to_be_run(module: str) -> list[Path]:
    """The files of a module and of its parent packages, without packages that are already imported."""
    return [path for name, path in module_files(module).items() if name == module or name not in sys.modules]


def _is_imported(where: str) -> bool:
    """Whether the user's own code has imported a module or file. Installed modules and Python's own do not count."""
    if where.endswith(".py"):
        file = str(_absolute(where))
        modules = [each for each in list(sys.modules.values()) if getattr(each, "__dict__", {}).get("__file__") == file]
    else:
        modules = [sys.modules[where]] if where in sys.modules else []
    return any(not _is_library(getattr(each, "__file__", None)) for each in modules)


def _is_library(file: str | None) -> bool:
    if file is None:
        return True
    path = Path(file).absolute()
    installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    return installed or any(path.is_relative_to(folder) for folder in _library_folders())


def _library_folders() -> list[str]:
    paths = sysconfig.get_paths()
    return [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]


def _spec(name: str, folders: Sequence[str] | None) -> ModuleSpec | None:
    """The import spec of a module, given the folders of its package."""
    if (known := getattr(sys.modules.get(name), "__spec__", None)) is not None:
        return cast(ModuleSpec, known)
    finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for finder in finders if (spec := finder.find_spec(name, folders)) is not None), None)


def _absolute(file: str) -> Path:
    """The absolute path. Symlinks are not resolved: a file is trusted at the path where Python finds it."""
    return Path(os.path.expanduser(file)).absolute()


def _loaded_from_file(module: str) -> bool:
    return getattr(sys.modules.get(module), "__groundswell_file__", False)


def _load_file(path: Path) -> ModuleType:
    """Import a script under another name, so that its `__main__` block does not run."""
    path = _absolute(str(path))
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
