"""Registries that users can extend, for example with their own metrics."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from groundswell.engine.driver import check_stored_module, trust_module
from groundswell.errors import NotTrusted, RunError, SettingsError

T = TypeVar("T")


def trust_named(names: Iterable[str]) -> None:
    """Trust the modules in `module:name`s from the user's code or command line, so that runs can be resumed."""
    for module in {given.rpartition(":")[0] for given in names} - {""}:
        trust_module(module)


def import_named(module: str, field: str) -> None:
    """Import the module of a `module:name`, if it is not imported yet. `field` is the setting, for errors.

    The name may come from somebody else's store, so the module must be trusted.
    """
    if module in sys.modules:
        return
    try:
        check_stored_module(module, f"module {module!r}")
        importlib.import_module(module)
    except NotTrusted as error:
        raise error.about(field) from None
    except (RunError, ImportError) as error:
        raise SettingsError(f"{field}: {module!r} cannot be imported: {error}", field=field) from error


class Named(Generic[T]):
    """A registry of things by name. `field` is the setting that names them, for errors."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._held: dict[str, T] = {}

    def __setitem__(self, name: str, thing: T) -> None:
        self._held[name] = thing

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def find(self, given: str) -> T:
        """A thing by name. `module:name` imports a module first."""
        module, _, name = given.rpartition(":")
        if module:
            import_named(module, self._field)
        if name not in self._held:
            said = f"{self._field}: there is no {name!r}; there are {', '.join(self._held)}"
            raise SettingsError(said, field=self._field)
        return self._held[name]
