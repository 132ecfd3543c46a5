"""Groundswell for scripts and notebooks that are not async: the same engine, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

from groundswell import compose
from groundswell.engine.driver import Driver
from groundswell.engine.engine import Engine
from groundswell.engine.outcome import Outcome
from groundswell.engine.run import Run
from groundswell.engine.summary import Summary
from groundswell.engine.verify import Verification
from groundswell.loop import new_event_loop
from groundswell.program.trial import Program

S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")


class SyncRun:
    """A run, without await."""

    def __init__(self, run: Run, wait: Callable[[Awaitable[Any]], Any]) -> None:
        self.run = run
        self._wait = wait

    def map(
        self, program: Program[S, R], specs: Iterable[S], *, replicates: int = 1, ordered: bool = True
    ) -> Iterator[Outcome[R]]:
        """Run a program on every spec, and yield the outcomes."""
        outcomes = self.run.map(program, specs, replicates=replicates, ordered=ordered)
        try:
            while (outcome := self._wait(anext(outcomes, None))) is not None:
                yield outcome
        finally:
            if not self.run.loop.is_closed():
                self._wait(outcomes.aclose())  # type: ignore[attr-defined]

    def submit(self, program: Program[S, R], spec: S, *, key: str | None = None) -> Outcome[R]:
        """Run a program on one spec and wait for its outcome."""
        outcome: Outcome[R] = self._wait(self.run.submit(program, spec, key=key))
        return outcome


class SyncEngine:
    """An engine, without await. Use it as a context manager."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="groundswell-loop", daemon=True)
        self._thread.start()
        try:
            self._engine = self._wait(_made(make))
        except BaseException:
            self._stop()
            raise

    def run(self, name: str | None = None, **how: Any) -> SyncRun:
        """Open a run: a new one, or the one of that name where it was left; options as `Engine.run` has them."""
        return SyncRun(self._wait(_made(lambda: self._engine.run(name, **how))), self._wait)

    def drive(self, driver: Driver, settings: Any, **how: Any) -> Summary:
        """Run a driver from the start, or go on with the run of that name; options as `Engine.drive` has them."""
        return self._wait(self._engine.drive(driver, settings, **how))

    def resume(self, name_or_id: str, **how: Any) -> Summary:
        """Go on with a run by calling its driver again; options as `Engine.resume` has them."""
        return self._wait(self._engine.resume(name_or_id, **how))

    def verify(self, name_or_id: str) -> Verification:
        """Replay every trial of a run over its journal."""
        return self._wait(self._engine.verify(name_or_id))

    def __enter__(self) -> SyncEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait(self._engine.__aexit__(kind, error, trace))
        finally:
            self._stop()

    def _wait(self, work: Awaitable[T]) -> T:
        """Do work on the loop. Ctrl-C cancels it and is raised here."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _made(make: Callable[[], T]) -> T:
    return make()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def open_sync(*args: Any, **options: Any) -> SyncEngine:
    """As `groundswell.open`, for code that is not async: `with groundswell.open_sync("runs.db") as engine`."""
    return SyncEngine(lambda: compose.open(*args, **options))
