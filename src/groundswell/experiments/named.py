"""What users may register under a name of their own, beside what is there already."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from groundswell.engine.driver import check_stored_module, trust_module
from groundswell.errors import NotTrusted, RunError, SettingsError

T = TypeVar("T")


def trust_named(names: Iterable[str]) -> None:
    """Trust the modules of `module:name`s from the user's own code or command line, so that a run can be resumed."""
    for module in {given.rpartition(":")[0] for given in names} - {""}:
        trust_module(module)


class Named(Generic[T]):
    """Things by name. `field` is the setting that names them, for those who get a name wrong."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._held: dict[str, T] = {}

    def __setitem__(self, name: str, thing: T) -> None:
        self._held[name] = thing

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def find(self, given: str) -> T:
        """A thing by its name; an error says which there are. `module:name` imports a module of yours first.

        The name may come from a store of somebody else, so a module that is not imported yet must be trusted.
        """
        module, _, name = given.rpartition(":")
        if module and module not in sys.modules:
            try:
                check_stored_module(module, f"module {module!r}")
                importlib.import_module(module)
            except NotTrusted as error:
                raise error.about(self._field) from None
            except (RunError, ImportError) as error:
                said = f"{self._field}: {module!r} cannot be imported: {error}"
                raise SettingsError(said, field=self._field) from error
        if name not in self._held:
            said = f"{self._field}: there is no {name!r}; there are {', '.join(self._held)}"
            raise SettingsError(said, field=self._field)
        return self._held[name]
