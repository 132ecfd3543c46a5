"""Helpers of the transports for models in this process.

ModelPool  models in memory: each is loaded once per process, until the last engine that uses it is closed
Coalescer  for models that handle one call at a time: waves that wait are combined into the next call
in_thread  run something long in its own thread
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from groundswell.engine.records import Item, Settled

PATIENCE = 5.0
"""Seconds that the process waits at exit for abandoned requests."""

T = TypeVar("T")
Notice = Callable[[str, str, str], None]
"""Called with account, model and what happened to it."""
Call = Callable[[Sequence[Item]], Awaitable[list[Settled]]]
"""Settles asks, each once, in order."""


class Loaded(Protocol):
    """Something that uses memory."""

    def unload(self) -> None:
        """Free the memory, or let the last running request do so."""
        ...


P = TypeVar("P")
M = TypeVar("M", bound=Loaded)


class ModelPool(Generic[P, M]):
    """The models in memory by the content of their files, and the number of users of each."""

    def __init__(self, identity: Callable[[P], str], make: Callable[[P], M]) -> None:
        self._identity = identity
        self._make = make
        self._held: dict[str, tuple[M, int]] = {}
        self._lock = threading.Lock()

    def acquire(self, place: P) -> tuple[str, M]:
        """Get a model. Call `release` when done."""
        key = self._identity(place)
        with self._lock:
            model, users = self._held.get(key) or (self._make(place), 0)
            self._held[key] = model, users + 1
        return key, model

    def release(self, key: str) -> None:
        """Release a model. Its memory is freed when the last request has ended."""
        with self._lock:
            model, users = self._held.pop(key)
            if users > 1:
                self._held[key] = model, users - 1
            else:
                model.unload()

    def __len__(self) -> int:
        return len(self._held)


class Coalescer:
    """Combines waiting waves: whoever finds the model free also takes what the others wait for."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._free = asyncio.Lock()
        self._waiting: dict[asyncio.Future[list[Settled]], Sequence[Item]] = {}

    async def settled(self, items: Sequence[Item]) -> list[Settled]:
        """The settlements of one wave's asks."""
        mine: asyncio.Future[list[Settled]] = asyncio.get_running_loop().create_future()
        self._waiting[mine] = items
        try:
            async with self._free:
                if not mine.done():
                    await self._take_along()
        finally:
            self._waiting.pop(mine, None)
        return mine.result()

    async def _take_along(self) -> None:
        """One call for all who wait. If it fails or is cancelled, the others keep waiting and make their own call."""
        taken = dict(self._waiting)
        found = await self._call([item for items in taken.values() for item in items])
        at = 0
        for future, items in taken.items():
            if not future.done():
                future.set_result(found[at : at + len(items)])
            self._waiting.pop(future, None)
            at += len(items)


_running: dict[threading.Thread, threading.Event] = {}


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run something long in its own thread. If the caller is cancelled, the work is told to stop and abandoned."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    stopped = threading.Event()

    def go() -> None:
        try:
            result = work(stopped)
        except BaseException as error:  # noqa: BLE001  the edge of the thread: the exception is passed to the waiting task
            tell(partial(done.set_exception, error))
        else:
            tell(partial(done.set_result, result))
        finally:
            _running.pop(threading.current_thread(), None)

    def tell(end: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if done.done() else end())

    thread = threading.Thread(target=go, name="groundswell-local", daemon=True)
    _running[thread] = stopped
    thread.start()
    try:
        return await done
    finally:
        stopped.set()


def _give_up() -> None:
    """At exit, stop threads that still run, so that they do not use objects that are being destroyed."""
    running = dict(_running)
    for stopped in running.values():
        stopped.set()
    until = time.monotonic() + PATIENCE
    for thread in running:
        thread.join(max(0.0, until - time.monotonic()))


atexit.register(_give_up)
