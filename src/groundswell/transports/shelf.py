"""Models in memory: each once in a process, until the last engine that used it is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Loaded(Protocol):
    """Something that takes memory."""

    def unload(self) -> None:
        """Free the memory, or let the last request that is still under way do so."""
        ...


P = TypeVar("P")
M = TypeVar("M", bound=Loaded)


class Shelf(Generic[P, M]):
    """The models in memory, by what is in their files, and how many use each."""

    def __init__(self, identity: Callable[[P], str], make: Callable[[P], M]) -> None:
        self._identity = identity
        self._make = make
        self._held: dict[str, tuple[M, int]] = {}
        self._lock = threading.Lock()

    def take(self, place: P) -> tuple[str, M]:
        """A model, to be put back."""
        key = self._identity(place)
        with self._lock:
            model, users = self._held.get(key) or (self._make(place), 0)
            self._held[key] = model, users + 1
        return key, model

    def put_back(self, key: str) -> None:
        """One who used it is done with it. Its memory is free when the last request has ended."""
        with self._lock:
            model, users = self._held.pop(key)
            if users > 1:
                self._held[key] = model, users - 1
            else:
                model.unload()

    def __len__(self) -> int:
        return len(self._held)
