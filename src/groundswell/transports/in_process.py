"""What the transports of models in this process share.

ModelPool  models in memory: each once in a process, until the last engine that used it is closed
Coalescer  waves for a model that works on one call at a time: those that wait for it go into its next call
in_thread  something long, in a thread of its own
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
"""Seconds that the end of the process waits for requests that were given up."""

T = TypeVar("T")
Notice = Callable[[str, str, str], None]
"""Is told account, model and what happened to it."""
Call = Callable[[Sequence[Item]], Awaitable[list[Settled]]]
"""Settles asks, each once, in their order."""


class Loaded(Protocol):
    """Something that takes memory."""

    def unload(self) -> None:
        """Free the memory, or let the last request that is still under way do so."""
        ...


P = TypeVar("P")
M = TypeVar("M", bound=Loaded)


class ModelPool(Generic[P, M]):
    """The models in memory, by what is in their files, and how many use each."""

    def __init__(self, identity: Callable[[P], str], make: Callable[[P], M]) -> None:
        self._identity = identity
        self._make = make
        self._held: dict[str, tuple[M, int]] = {}
        self._lock = threading.Lock()

    def acquire(self, place: P) -> tuple[str, M]:
        """A model, to be released."""
        key = self._identity(place)
        with self._lock:
            model, users = self._held.get(key) or (self._make(place), 0)
            self._held[key] = model, users + 1
        return key, model

    def release(self, key: str) -> None:
        """One who used it is done with it. Its memory is free when the last request has ended."""
        with self._lock:
            model, users = self._held.pop(key)
            if users > 1:
                self._held[key] = model, users - 1
            else:
                model.unload()

    def __len__(self) -> int:
        return len(self._held)


class Coalescer:
    """Whoever finds the model free takes along what the others wait for."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._free = asyncio.Lock()
        self._waiting: dict[asyncio.Future[list[Settled]], Sequence[Item]] = {}

    async def settled(self, items: Sequence[Item]) -> list[Settled]:
        """What comes of the asks of one wave."""
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
        """One call for all who wait. If it breaks or is given up, the others still wait, and make their own."""
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
    """Do something long in a thread of its own. If nobody waits for it any more it is told so, and left alone."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    stopped = threading.Event()

    def go() -> None:
        try:
            result = work(stopped)
        except BaseException as error:  # noqa: BLE001  the edge of the thread: who waits for it gets what was raised
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
    """The process ends: so must what still runs in threads, or it would run into what is being torn down."""
    running = dict(_running)
    for stopped in running.values():
        stopped.set()
    until = time.monotonic() + PATIENCE
    for thread in running:
        thread.join(max(0.0, until - time.monotonic()))


atexit.register(_give_up)
