"""The services that routes use: settings, store and background engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Query, Request

from groundswell.batch_lookup import BatchStates
from groundswell.errors import KeyMissing, RunNotFound, SettingsError
from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.reading import Readings
from groundswell.web.access import WrongLogins
from groundswell.web.background import Background
from groundswell.web.report_cache import ReportCache
from groundswell.web.settings import ServerSettings

if TYPE_CHECKING:
    from groundswell.engine.records import RunRecord
    from groundswell.experiments.simulations.entities import Entity
    from groundswell.store.journal import Store

T = TypeVar("T")

HEAVY_AT_ONCE = 2
"""Threads for slow work, such as exports and estimates. Other requests must not wait for it."""

SHORT = 50


class Services:
    """The services of one server.

    Quick reads run on the event loop: while the engine is busy, a thread would wait for the GIL many times.
    """

    def __init__(self, settings: ServerSettings, background: Background, states: BatchStates | None = None) -> None:
        assert settings.model is not None, "call `prepared` on the settings first"
        self.settings = settings
        self.background = background
        self.model = settings.model
        self.batch_states = states or BatchStates()
        self.began = time.monotonic()
        self.closing = asyncio.Event()
        """Set when the server is about to stop. Streams end then."""
        self.streams = 0
        self._cache: dict[str, tuple[float, Any]] = {}
        self._heavy = ThreadPoolExecutor(HEAVY_AT_ONCE, thread_name_prefix="groundswell-heavy")
        self.reports = ReportCache()
        self.wrong_logins = WrongLogins()

    @property
    def store(self) -> Store:
        """The store, for reading and for changing documents. Only the background changes runs."""
        return self.background.store

    @property
    def readings(self) -> Readings:
        """Simulation batches and simulations, as the API returns them."""
        return Readings(self.store)

    @property
    def catalogue(self) -> Catalogue:
        """Entities and their types."""
        return Catalogue(self.store.documents)

    def run(self, id_: str) -> RunRecord:
        """A run by id. Raises `RunNotFound`."""
        record = self.store.runs.find(id_)
        if record is None or record.id != id_:
            raise RunNotFound(f"there is no run {id_!r}; it may have been deleted")
        return record

    def entities(self, ids: Sequence[str]) -> tuple[Entity, ...]:
        """The entities with these ids, in this order. Refuses more than the server allows."""
        if len(ids) > (most := self.settings.max_entities):
            raise SettingsError(
                f"entity_ids: {len(ids)} ids given, but this server allows at most {most:,}; send fewer ids",
                field="entity_ids",
            )
        return tuple(self.catalogue.cast(ids))

    def check_name(self, model: str, field: str) -> None:
        """Refuse a model that clients may not name: a file of this machine."""
        if model != self.model and is_file(model):
            raise SettingsError(f"{field}: a request cannot name a file; set it when you start the server", field=field)

    def free_name(self, wanted: str) -> str:
        """A name that no run has yet: the wanted one, if necessary with a number."""
        name, number = wanted, 1
        while self.store.runs.find(name) is not None:
            number += 1
            name = f"{wanted}-{number}"
        return name

    async def check_models(
        self, model: str, entities: Iterable[Entity] = (), *, keys: bool = True, field: str = "model"
    ) -> None:
        """Refuse models that are not available, before a run is created. With `keys`, their keys must be set."""
        for each in dict.fromkeys([model, *(entity.model for entity in entities if entity.model is not None)]):
            try:
                await self.background.reach(each)
            except SettingsError as error:
                if isinstance(error, KeyMissing) and not keys:
                    continue
                told = str(error).partition("; or give the path")[0]  # clients cannot name files of this machine
                raise SettingsError(told, field=field) from error

    def cached(self, key: str, read: Callable[[], T], *, seconds: float = 0.0, times: float = 0.0) -> T:
        """What `read` returns. It is read again after so many seconds and a pause of so many times its own duration."""
        now = time.monotonic()
        self._cache = {each: kept for each, kept in self._cache.items() if now < kept[0]}
        if key not in self._cache:
            found = read()
            took = time.monotonic() - now
            self._cache[key] = (now + max(0.9 * seconds, (1 + times) * took), found)  # `read` may cache values too
        kept: T = self._cache[key][1]
        return kept

    async def part(self, limit: int, work: Callable[[], T]) -> T:
        """Read a page of a list; on the event loop if it is short."""
        return work() if limit <= SHORT else await self.heavy(work)

    async def heavy(self, work: Callable[[], T]) -> T:
        """Do slow work in one of a few threads."""
        return await asyncio.get_running_loop().run_in_executor(self._heavy, work)

    def close(self) -> None:
        """End the threads."""
        self._heavy.shutdown(wait=True, cancel_futures=True)
        self.reports.close()


def is_file(model: str) -> bool:
    """Whether a model name is a file path."""
    return model.startswith("local/") and ("/" in model.removeprefix("local/") or model.endswith(".gguf"))


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Here = Annotated[Services, Depends(_services)]
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items to return.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="Number of items to skip.")]
