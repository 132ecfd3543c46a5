"""What users may register under a name of their own, beside what is there already."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Generic, TypeVar

from groundswell.errors import SettingsError

T = TypeVar("T")


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
        """A thing by its name; an error says which there are. `module:name` imports a module of yours first."""
        module, _, name = given.rpartition(":")
        if module:
            try:
                importlib.import_module(module)
            except ImportError as error:
                said = f"{self._field}: {module!r} cannot be imported: {error}"
                raise SettingsError(said, field=self._field) from error
        if name not in self._held:
            said = f"{self._field}: there is no {name!r}; there are {', '.join(self._held)}"
            raise SettingsError(said, field=self._field)
        return self._held[name]
