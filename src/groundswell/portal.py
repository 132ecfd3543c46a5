"""The engine for code that is not async: scripts and notebooks. It runs on an event loop in its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from groundswell import compose
from groundswell.engine.driver import Driver
from groundswell.engine.engine import Engine
from groundswell.engine.outcome import Outcome
from groundswell.engine.replay import Verification
from groundswell.engine.run import Run
from groundswell.engine.stored import StoredRun
from groundswell.engine.summary import Summary
from groundswell.errors import RunStopped
from groundswell.loop import new_event_loop
from groundswell.program.trial import Program
from groundswell.reporting.transcript import Transcript

S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")


class SyncRun:
    """A run for code that is not async. As a context manager it ends with its block, otherwise with its engine."""

    def __init__(self, run: Run, wait: Callable[[Awaitable[Any]], Any]) -> None:
        self.run = run
        self._wait = wait

    def map(
        self, program: Program[S, R], specs: Iterable[S], *, replicates: int = 1, ordered: bool = True
    ) -> Iterator[Outcome[R]]:
        """Run a program on every spec and yield the outcomes. See `Run.map`."""
        outcomes = self.run.map(program, specs, replicates=replicates, ordered=ordered)
        try:
            while (outcome := self._work(anext(outcomes, None))) is not None:
                yield outcome
        finally:
            if not self.run.loop.is_closed():
                self._wait(outcomes.aclose())

    def submit(self, program: Program[S, R], spec: S, *, key: str | None = None) -> Outcome[R]:
        """Run a program on one spec and return its outcome. See `Run.submit`."""
        outcome: Outcome[R] = self._work(self.run.submit(program, spec, key=key))
        return outcome

    def wait(self, work: Awaitable[T]) -> T:
        """Run an awaitable on the event loop of the run and return its result."""
        return self._work(work)

    def frame(self, *, pandas: bool = False) -> Any:
        """Return the trials as a polars or pandas DataFrame. See `StoredRun.frame`."""
        return self.run.frame(pandas=pandas)

    def transcript(self, trial: str | Outcome[Any]) -> Transcript:
        """Return the transcript of a trial, given its key, the beginning of the key, or its outcome."""
        return self.run.transcript(trial)

    @property
    def summary(self) -> Summary:
        """The current summary of the run."""
        return self.run.summary

    def end(self, error: BaseException | None = None) -> None:
        """End this session of the run, as closing the engine does. The run can then be opened again."""
        if not self.run.loop.is_closed():
            self._wait(self.run.end(error))

    def _work(self, work: Awaitable[T]) -> T:
        """Wait for trials. Ctrl-C ends the session after the replies in flight; a second Ctrl-C ends it immediately."""
        try:
            return self._wait(work)  # type: ignore[no-any-return]
        except KeyboardInterrupt:
            self.end(INTERRUPTED)
            raise

    def __enter__(self) -> SyncRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error)

    def __repr__(self) -> str:
        return repr(self.run)

    def _repr_html_(self) -> str:
        return self.run._repr_html_()


class SyncEngine:
    """An engine for code that is not async. Use it as a context manager, or call `close()`."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="groundswell-loop", daemon=True)
        self._thread.start()
        self._waiting: set[threading.Event] = set()
        try:
            self._engine = self._wait(_made(make))
        except BaseException:
            self._stop()
            raise
        _open.add(self)

    def run(self, name: str | None = None, **how: Any) -> SyncRun:
        """Open a run, or continue the one with this name. See `Engine.run` for the options.

        If the run is already open in this process and nothing waits for it, it is ended there first. So you can run a
        notebook cell again: it continues with the outcomes that are stored.
        """
        record = None if name is None else self._engine.store.runs.find(name)
        if record is not None:
            for engine in list(_open):
                engine._leave(record.id)
        return SyncRun(self._wait(_made(lambda: self._engine.run(name, **how))), self._wait)

    def stored(self, name_or_id: str) -> StoredRun:
        """Open a run for reading only: its trials as a table, transcripts and summary."""
        return self._engine.stored(name_or_id)

    def drive(self, driver: Driver, settings: Any, **how: Any) -> Summary:
        """Run a driver, or continue the run with this name. See `Engine.drive`."""
        return self._wait(self._engine.drive(driver, settings, **how))

    def resume(self, name_or_id: str, **how: Any) -> Summary:
        """Continue a run by calling its driver again. See `Engine.resume`."""
        return self._wait(self._engine.resume(name_or_id, **how))

    def work(self, do: Callable[[Engine], Awaitable[T]]) -> T:
        """Call an async function with the engine, on its event loop, and return the result."""
        return self._wait(do(self._engine))

    def verify(self, name_or_id: str) -> Verification:
        """Replay every trial of a run and compare it with the journal. See `Engine.verify`."""
        return self._wait(self._engine.verify(name_or_id))

    def close(self) -> None:
        """End all open runs and close the store. Tables and transcripts of its runs can still be read."""
        self.__exit__(None, None, None)

    def __enter__(self) -> SyncEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self not in _open:
            return
        _open.discard(self)
        try:
            self._wait(self._engine.__aexit__(kind, error, trace))
        finally:
            self._stop()

    def _leave(self, run_id: str) -> None:
        """End a run that is open here, unless a thread waits for this engine."""
        for run in self._engine.runs:
            if run.record.id == run_id and not self._waiting:
                self._wait(run.end(INTERRUPTED if run.busy else None))

    def _wait(self, work: Awaitable[T]) -> T:
        """Run work on the loop. Ctrl-C cancels it and is raised here once it has cleaned up."""
        begun: list[asyncio.Task[T]] = []
        done = threading.Event()

        def begin() -> None:
            begun.append(self._loop.create_task(_awaited(work)))
            begun[0].add_done_callback(lambda _: done.set())

        def cancel() -> None:
            if begun:
                begun[0].cancel()
            else:  # Ctrl-C before the work was started
                done.set()

        try:
            self._waiting.add(done)
            self._loop.call_soon_threadsafe(begin)
            done.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(cancel)
            done.wait()
            if asyncio.iscoroutine(work):
                work.close()  # it may not have started
            raise
        finally:
            self._waiting.discard(done)
        return begun[0].result()

    def _stop(self) -> None:
        try:
            self._wait(_nothing_left())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


INTERRUPTED = RunStopped("interrupted", "interrupted")
"""The reason of a session that is left early: replies in flight are awaited, and the run can be resumed."""

_open: set[SyncEngine] = set()
"""The open engines of this process."""


async def _made(make: Callable[[], T]) -> T:
    return make()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def _nothing_left() -> None:
    """Cancel the remaining tasks and let them clean up."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def open_sync(*args: Any, **options: Any) -> SyncEngine:
    """Open a store for code that is not async: `with groundswell.open_sync("runs.db") as engine`.

    It takes the arguments of `groundswell.open`.

    Returns:
        An engine with the methods of `Engine`, without `await`.
    """
    return SyncEngine(lambda: compose.open(*args, **options))
