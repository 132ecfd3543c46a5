"""Group commit: one thread writes, many rows share a sync, and callbacks run once their rows are durable."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from groundswell.errors import StoreError
from groundswell.store.database import Batch, Database, Insert

Around = Callable[[Callable[[], None]], None]
"""Is given each commit, on the writing thread, and makes it; raises an error of the driver if it cannot."""

SHORTEST, LONGEST = 0.002, 0.005


def plainly(commit: Callable[[], None]) -> None:
    """Make a commit, with nothing around it."""
    commit()


class Writer:
    """The one thread that writes to a store.

    Rows are buffered on the event loop and handed over once per tick, or when the commit before them is
    done, but not more often than every `linger` seconds: the busier a run, and the longer replies take anyway,
    the larger its commits. When a commit fails, everyone in `failed` is told, and nothing is written after that.
    """

    def __init__(
        self,
        database: Database,
        inserts: dict[str, Insert],
        *,
        linger: float = SHORTEST,
        around: Around = plainly,
    ) -> None:
        self._around = around
        self._inserts = inserts
        self._loop = asyncio.get_running_loop()
        self._linger = linger
        self._batch = Batch(inserts)
        self._writing: Batch | None = None
        self._scheduled = False
        self._last = 0.0
        self._idle: list[asyncio.Future[None]] = []
        self.failed: list[Callable[[Exception], None]] = []
        self.after: list[Callable[[], None]] = []
        self._error: StoreError | None = None
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._committer = database.committer(inserts)
        self._thread = threading.Thread(target=self._work, name="groundswell-writer", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a commit is under way."""
        return self._writing is not None

    def batch(self) -> Batch:
        """What will be committed next; add to it before the current tick of the loop ends."""
        if not self._scheduled:
            self._schedule()
        return self._batch

    def linger(self, seconds: float) -> None:
        """Commit about so far apart, within bounds."""
        self._linger = min(max(seconds, SHORTEST), LONGEST)

    async def flush(self, of: tuple[str, Any] | None = None) -> None:
        """Wait until everything added so far is durable; raises if it cannot be.

        With `of`, wait only for batches that have this key in `late`: a busy store may never be idle.
        """
        while self._error is None and self._holds(of):
            future = self._loop.create_future()
            self._idle.append(future)
            await future
        if self._error is not None:
            raise self._error

    def _holds(self, of: tuple[str, Any] | None) -> bool:
        """Whether anything is still to be written, or being written; with `of`, anything under that key."""
        if of is None:
            return self._scheduled or self._writing is not None
        return any(batch is not None and of in batch.late for batch in (self._batch, self._writing))

    async def close(self) -> None:
        """Write what is left and end the thread; raises if the file has gone since the last commit."""
        try:
            if self._error is None:
                await self.flush()
        finally:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
            self._committer.close(self._error)

    def _schedule(self) -> None:
        if self._error is not None:
            raise self._error
        self._scheduled = True
        if self._writing is None:
            self._plan_hand_over()

    def _plan_hand_over(self) -> None:
        wait = self._last + self._linger - self._loop.time()
        if wait <= 0:
            self._loop.call_soon(self._hand_over)
        else:
            self._loop.call_later(wait, self._hand_over)

    def _hand_over(self) -> None:
        batch, self._batch = self._batch, Batch(self._inserts)
        batch.updates.update((key, row()) for key, row in batch.late.items())
        self._scheduled = False
        self._writing = batch
        self._last = self._loop.time()
        self._queue.put(batch)

    def _work(self) -> None:
        """The thread: commit batch after batch."""
        while (batch := self._queue.get()) is not None:
            try:
                self._around(partial(self._committer.commit, batch))
            except Exception as error:  # noqa: BLE001  the edge of a thread: unheard, everyone would wait for ever
                self._tell(self._fail, self._committer.failure(error))
            else:
                self._tell(self._committed, batch)

    def _tell(self, then: Callable[[Any], None], what: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(then, what)
        except RuntimeError:
            return  # the loop was closed without closing the store: nobody is left to be told

    def _committed(self, batch: Batch) -> None:
        self._writing = None
        if self._scheduled:
            self._plan_hand_over()
        for then, args in [*batch.after, *((after, ()) for after in self.after)]:
            try:
                then(*args)
            except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, it would hang the run
                for tell in list(self.failed):
                    tell(error)
        self._wake()

    def _fail(self, error: StoreError) -> None:
        self._writing = None
        self._error = error
        for tell in list(self.failed):
            tell(error)
        self._wake()

    def _wake(self) -> None:
        for future in self._idle:
            if not future.done():
                future.set_result(None)
        self._idle.clear()
