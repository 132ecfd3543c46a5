"""What routes work with: the settings, the store, and the engine in the background."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Depends, Query, Request

from groundswell.errors import KeyMissing, RunNotFound, SettingsError
from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.reading import Readings
from groundswell.web.background import Background
from groundswell.web.settings import ServerSettings

if TYPE_CHECKING:
    from groundswell.engine.records import RunRecord
    from groundswell.experiments.simulations.entities import Entity
    from groundswell.store.journal import Store

T = TypeVar("T")

HEAVY_AT_ONCE = 2
"""Threads for what takes long: exports, large batches, estimates. Other requests must not wait for them."""

SHORT = 50


class Services:
    """One server's own.

    What is quick is read on the loop itself: while the engine is busy, a thread would wait for its turn many times.
    """

    def __init__(self, settings: ServerSettings, background: Background) -> None:
        assert settings.model is not None, "settings are to be prepared first"
        self.settings = settings
        self.background = background
        self.model = settings.model
        self.began = time.monotonic()
        self.closing = asyncio.Event()
        """Set when the server is about to stop: streams end then."""
        self.streams = 0
        self._heavy = ThreadPoolExecutor(HEAVY_AT_ONCE, thread_name_prefix="groundswell-heavy")

    @property
    def store(self) -> Store:
        """The store, to read it and to change documents in it; runs are changed in the background alone."""
        return self.background.store

    @property
    def readings(self) -> Readings:
        """Batches and simulations, as they are shown."""
        return Readings(self.store)

    @property
    def catalogue(self) -> Catalogue:
        """Entities and their types."""
        return Catalogue(self.store.documents)

    def run(self, id_: str) -> RunRecord:
        """A run by its id; raises `RunNotFound`."""
        record = self.store.runs.find(id_)
        if record is None or record.id != id_:
            raise RunNotFound(f"no run {id_!r}: GET /api/runs lists those there are")
        return record

    def entities(self, ids: Sequence[str]) -> tuple[Entity, ...]:
        """The entities of these ids, in that order; refuses more than the server allows."""
        if len(ids) > (most := self.settings.max_entities):
            raise SettingsError(f"entity_ids: {len(ids)} are too many: {most:,} at the most", field="entity_ids")
        return tuple(self.catalogue.cast(ids))

    def check_name(self, model: str, field: str) -> None:
        """Refuse the name of a model that clients may not use: files of this machine are not for them to name."""
        if model != self.model and is_file(model):
            raise SettingsError(f"{field}: a file can only be named when the server is started", field=field)

    def free_name(self, wanted: str) -> str:
        """A name that no run has: the one that is wanted, or that with a number."""
        name, number = wanted, 1
        while self.store.runs.find(name) is not None:
            number += 1
            name = f"{wanted}-{number}"
        return name

    async def check_models(
        self, model: str, entities: Iterable[Entity] = (), *, keys: bool = True, field: str = "model"
    ) -> None:
        """Refuse models that cannot be reached, before a run is made that cannot succeed; `keys`: with their keys."""
        for each in dict.fromkeys([model, *(entity.model for entity in entities if entity.model is not None)]):
            try:
                await self.background.reach(each)
            except SettingsError as error:
                if isinstance(error, KeyMissing) and not keys:
                    continue
                told = str(error).partition("; or give the path")[0]  # clients cannot name files of this machine
                raise SettingsError(told, field=field) from error

    async def part(self, limit: int, work: Callable[[], T]) -> T:
        """Read a part of a list: here, if it is short."""
        return work() if limit <= SHORT else await self.heavy(work)

    async def heavy(self, work: Callable[[], T]) -> T:
        """Do long work in a thread, a few at a time."""
        return await asyncio.get_running_loop().run_in_executor(self._heavy, work)

    def close(self) -> None:
        """End the threads."""
        self._heavy.shutdown(wait=True, cancel_futures=True)


def is_file(model: str) -> bool:
    """Whether the name of a model is that of a file."""
    return model.startswith("local/") and ("/" in model.removeprefix("local/") or model.endswith(".gguf"))


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Here = Annotated[Services, Depends(_services)]
Limit = Annotated[int, Query(ge=1, le=1000, description="how many at the most")]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="how many to leave out before them")]
