"""A provider with books that sees its customers die, and a run that goes on through as many sessions as it takes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Literal, NamedTuple

import msgspec

from groundswell import Outcome, StoreError
from groundswell.emulator.http import HttpRequest
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings as EmulatorSettings
from groundswell.engine.records import AskId, Counters
from groundswell.store.journal import Store
from groundswell.store.open import exists
from groundswell.testing.crash import CrashingStore, CrashPoint
from tests.crash.batch_experiment import RUN, Job, Settings, session
from tests.crash.nursery import Nursery
from tests.crash.points import kind_of
from tests.patience import PATIENCE
from tests.stores import new_store, rows
from tests.transports.scene import KEY

SPEED = 20_000.0
"""Times as fast as ours a provider's clock runs: a batch takes ten minutes there."""


class Visit(NamedTuple):
    """A request that came to the provider: what for, where, and with which key."""

    kind: str
    path: str
    key: str


class Provider:
    """An emulator that writes down who came for what, and may kill a process when the so-manieth request comes."""

    def __init__(self, emulator: Threaded) -> None:
        self.emulator = emulator
        self.url = emulator.url
        self.visits: list[Visit] = []
        self._lock = Lock()
        self._doomed = self._left = 0
        app = emulator._emulator.app
        self.clock = app.world.clock
        app.exact = {route: self._watched(handler) for route, handler in app.exact.items()}
        app.named = {route: self._watched(handler) for route, handler in app.named.items()}

    def _watched(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        def watched(http: HttpRequest, *rest: str) -> Any:
            if not http.path.startswith("/emulator/"):
                key = http.headers.get("x-api-key") or http.headers.get("authorization", "").removeprefix("Bearer ")
                self.visits.append(Visit(kind_of(http.method, http.path), http.path, key))
                self._strike()
            return handler(http, *rest)

        return watched

    def _strike(self) -> None:
        """The customer dies before it hears an answer. What it asked for is done all the same."""
        with self._lock:
            self._left -= 1
            if not self._left and self._doomed:
                os.kill(self._doomed, signal.SIGKILL)

    def await_requests(self, count: int) -> None:
        """Somebody will be killed when so many more requests have come."""
        with self._lock:
            self._left, self._doomed = count, 0

    def doom(self, process: int) -> None:
        """It is this process."""
        with self._lock:
            self._doomed = process
            if self._left <= 0:
                os.kill(process, signal.SIGKILL)

    def spare(self) -> None:
        """Kill nobody any more."""
        self.await_requests(0)

    def reset(self) -> None:
        """Empty books, no faults."""
        self.spare()
        self.emulator.reset()
        self.emulator.set_faults()
        self.clock.run_at(SPEED)
        self.visits.clear()

    @property
    def books(self) -> dict[str, Any]:
        """The sums of the ledger."""
        totals: dict[str, Any] = self.emulator.ledger()["totals"]
        return totals

    @property
    def faults(self) -> set[str]:
        """The faults that struck."""
        entries = [entry for account in self.emulator.ledger()["accounts"].values() for entry in account.values()]
        return {fault for entry in entries for fault in entry["faults"]}

    def seen(self, kind: str) -> list[Visit]:
        """The visits of a kind."""
        return [visit for visit in self.visits if visit.kind == kind]

    def send(self, path: str, body: object, key: str = KEY) -> Any:
        """Send something as any customer may."""
        connection = HTTPConnection(self.url.removeprefix("http://"))
        try:
            said = {"x-api-key": key, "anthropic-version": "2023-06-01", "authorization": f"Bearer {key}"}
            connection.request("POST", path, json.dumps(body), said)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def wait_for(come_true: Callable[[], bool]) -> None:
    """Wait for something that must come true."""
    until = time.monotonic() + PATIENCE
    while not come_true():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.005)


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider with a fast clock."""
    with running(EmulatorSettings(speed=SPEED)) as emulator:
        yield Provider(emulator)


class Scene:
    """One run, through as many sessions as it takes."""

    def __init__(
        self,
        folder: Path,
        provider: Provider,
        nursery: Nursery,
        settings: Settings,
        *,
        database: str = "sqlite",
        **job: Any,
    ) -> None:
        self.provider = provider
        self.settings = settings
        self.path = new_store(database, folder)
        self.job = Job(str(self.path), provider.url, settings, **job)
        self.kills = 0
        self._nursery = nursery
        self._kept: dict[AskId, str] = {}

    def begin(self) -> None:
        """A session in a process of its own."""
        self._nursery.start(self.job)

    def end(self) -> None:
        """It must come to its end by itself."""
        assert self._nursery.wait() == 0

    def killed_at(self, where: str, nth: int = 1) -> bool:
        """A session in a process of its own that dies at a point; whether it got there."""
        self._nursery.start(msgspec.structs.replace(self.job, point=(where, nth)))
        return self._buried()

    def killed_after(self, requests: int) -> bool:
        """A session in a process of its own that is killed as its so-manieth request comes in; whether it was."""
        self.provider.await_requests(requests)
        self.provider.doom(self._nursery.start(self.job))
        return self._buried()

    def _buried(self) -> bool:
        status = self._nursery.wait()
        self.provider.spare()
        assert status in (0, -signal.SIGKILL)
        if status:
            self.kills += 1
            self._note()
        return bool(status)

    def crashed_at(self, point: CrashPoint) -> bool:
        """A session in this process whose store dies at a commit; whether it got there."""
        try:
            asyncio.run(session(self.job, CrashingStore(Store(self.path, around=point.around), point)))
        except StoreError:
            assert point.crashed
            self.kills += 1
            self._note()
            return True
        return False

    def finish(self, **changes: Any) -> list[Outcome[list[str]]]:
        """The last session: nothing happens to it."""
        return asyncio.run(session(msgspec.structs.replace(self.job, **changes), Store(self.path)))

    def check(self, outcomes: list[Outcome[list[str]]], *, others: int = 0, lived: bool = False) -> None:
        """Every result is there, as if nothing had happened, and each ask was paid for once.

        `lived`: some asks may have failed in two batches, and gone live; what a kill cuts off there may be paid again.
        """
        assert [outcome.result for outcome in outcomes] == undisturbed(self.settings)
        self._note()
        books = self.provider.books
        asks = self.settings.asks + others
        live = books["requests"] if lived else 0
        again = books["paid_again"] if live else 0
        paid = (books["batch_requests"], books["distinct_requests"], books["paid_again"], books["requests"])
        assert paid == (asks - live + again, asks, again, live), (
            f"{asks} asks; in batches, distinct, again, live: {paid}"
        )
        assert again <= live
        assert books["batch_paid_again"] == 0
        counters = self.counters()
        assert (counters.usable, counters.missing) == (self.settings.trials, 0)
        assert live or counters.resent == 0
        assert self.open_waves() == 0

    def _note(self) -> None:
        """Nothing that was durable before is lost or changed, and nothing is there twice."""
        settled = self._rows("SELECT trial, path, settlement FROM asks")
        kept = {AskId(trial, path): text for trial, path, text in settled}
        assert len(kept) == len(settled), "an ask was journalled twice"
        assert self._kept.items() <= kept.items()
        self._kept = kept

    def counters(self) -> Counters:
        """The figures of the run."""
        [(text,)] = self._rows(f"SELECT counters FROM runs WHERE name = '{RUN}'")
        return msgspec.json.decode(text, type=Counters)

    def open_waves(self) -> int:
        """How many waves have no end."""
        [(count,)] = self._rows("SELECT count(*) FROM waves WHERE ended_at IS NULL")
        return int(count)

    @property
    def waves(self) -> list[int]:
        """The sizes of all waves."""
        return [size for (size,) in self._rows("SELECT size FROM waves ORDER BY id")]

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return rows(self.path, query) if exists(self.path) else []


Staged = Callable[..., Scene]
"""Makes the scene of an experiment, given its settings and what is special about its jobs."""


@cache
def undisturbed(settings: Settings) -> list[list[str] | None]:
    """What the experiment finds when nothing happens to it: the same live and in batches."""
    live, batch = _alone(settings, "live"), _alone(settings, "batch")
    assert live == batch
    return live


def _alone(settings: Settings, via: Literal["live", "batch"]) -> list[list[str] | None]:
    """What it finds with a provider of its own."""
    with provider() as alone, TemporaryDirectory() as folder:
        job = Job(f"{folder}/runs.db", alone.url, settings, via=via)
        return [outcome.result for outcome in asyncio.run(session(job, Store(job.store)))]
