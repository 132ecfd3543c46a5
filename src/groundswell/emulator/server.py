"""Start and stop the emulator, on your event loop or on its own thread."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from groundswell.emulator.app import App
from groundswell.emulator.faults import Rule
from groundswell.emulator.http import HttpServer
from groundswell.emulator.settings import Settings
from groundswell.emulator.world import World
from groundswell.errors import SettingsError
from groundswell.loop import new_event_loop

T = TypeVar("T")


class Emulator:
    """A running emulator. Use it as `async with Emulator(settings) as emulator`, then `emulator.url`."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        real: Callable[[], float] = time.time,
    ) -> None:
        self.world = World(settings or Settings(), real)
        self.app = App(self.world)
        self._server = HttpServer(self.app)
        self._host, self._port = host, port
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        """Its address, without a path."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._server.connections

    async def __aenter__(self) -> Emulator:
        try:
            self._port = await self._server.listen(self._host, self._port)
        except (OSError, OverflowError) as error:
            raise SettingsError(_cannot_listen(self._host, self._port, error)) from error
        keeping = (self.app.agenda.keep(), self.app.webhooks.keep())
        self._tasks = [asyncio.create_task(kept) for kept in keeping]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.close()

    async def ledger(self, *, each: bool = False) -> dict[str, Any]:
        """The current ledger."""
        return await self.app.books(each=each)

    async def advance(self, seconds: float) -> None:
        """Move the clock forward, and do everything that was due by then."""
        self.world.clock.advance(seconds)
        self.app.agenda.moved()
        await self.app.agenda.catch_up()


def _cannot_listen(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: choose another --port, or 0 for a free one"
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot listen on {host}, port {port}: {why}"


class Threaded:
    """An emulator on its own thread, for code without an event loop."""

    def __init__(self, emulator: Emulator, loop: asyncio.AbstractEventLoop) -> None:
        self._emulator = emulator
        self._loop = loop
        self.url = emulator.url

    def ledger(self, *, each: bool = False) -> dict[str, Any]:
        """The current ledger."""
        return self._run(self._emulator.ledger(each=each))

    def advance(self, seconds: float) -> None:
        """Move the clock forward, and do everything that was due by then."""
        self._run(self._emulator.advance(seconds))

    def set_faults(self, *rules: Rule) -> None:
        """Replace the active fault rules."""
        self._run(self._call(lambda: self._emulator.app.set_faults(rules)))

    def reset(self) -> None:
        """Clear the ledger, files and batches."""
        self._run(self._call(self._emulator.app.reset))

    async def _call(self, action: Callable[[], None]) -> None:
        action()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


@contextmanager
def running(
    settings: Settings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    real: Callable[[], float] = time.time,
) -> Iterator[Threaded]:
    """An emulator that runs within the block. `real` is the clock of rate limits."""
    emulator = Emulator(settings, host=host, port=port, real=real)
    loop = new_event_loop()
    thread = threading.Thread(target=_run_out, args=(loop,), name="groundswell-emulator", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(emulator.__aenter__(), loop).result()
        try:
            yield Threaded(emulator, loop)
        finally:
            asyncio.run_coroutine_threadsafe(emulator.__aexit__(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _run_out(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and close it where it ran."""
    try:
        loop.run_forever()
    finally:
        loop.close()
