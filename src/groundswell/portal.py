"""Groundswell for scripts and notebooks that are not async: the same engine, on a loop in a thread of its own."""

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
    """A run, without await. As a context manager it ends with its block; otherwise with its engine."""

    def __init__(self, run: Run, wait: Callable[[Awaitable[Any]], Any]) -> None:
        self.run = run
        self._wait = wait

    def map(
        self, program: Program[S, R], specs: Iterable[S], *, replicates: int = 1, ordered: bool = True
    ) -> Iterator[Outcome[R]]:
        """Run a program on every spec, and yield the outcomes."""
        outcomes = self.run.map(program, specs, replicates=replicates, ordered=ordered)
        try:
            while (outcome := self._work(anext(outcomes, None))) is not None:
                yield outcome
        finally:
            if not self.run.loop.is_closed():
                self._wait(outcomes.aclose())

    def submit(self, program: Program[S, R], spec: S, *, key: str | None = None) -> Outcome[R]:
        """Run a program on one spec and wait for its outcome."""
        outcome: Outcome[R] = self._work(self.run.submit(program, spec, key=key))
        return outcome

    def wait(self, work: Awaitable[T]) -> T:
        """Wait for something that works with this run, on the loop that the run is on."""
        return self._work(work)

    def frame(self, *, pandas: bool = False) -> Any:
        """The trials as a polars DataFrame, or one of pandas; as `Run.frame` has it."""
        return self.run.frame(pandas=pandas)

    def transcript(self, trial: str | Outcome[Any]) -> Transcript:
        """What was said in a trial, given its key, the beginning of it, or its outcome."""
        return self.run.transcript(trial)

    @property
    def summary(self) -> Summary:
        """How far the run is."""
        return self.run.summary

    def end(self, error: BaseException | None = None) -> None:
        """End this session of the run, as leaving its engine does, so that the run can be opened again."""
        if not self.run.loop.is_closed():
            self._wait(self.run.end(error))

    def _work(self, work: Awaitable[T]) -> T:
        """Wait for trials. Ctrl-C ends the session: what is in flight still lands, unless there is another Ctrl-C."""
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
    """An engine, without await. Use it as a context manager, or `close()` it."""

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
        """Open a run: a new one, or the one of that name where it was left; options as `Engine.run` has them.

        If it is open in this process already, and nobody waits for it, it is ended there first: a cell of a notebook
        that is run again begins again, and finds the outcomes that are there.
        """
        record = None if name is None else self._engine.store.runs.find(name)
        if record is not None:
            for engine in list(_open):
                engine._leave(record.id)
        return SyncRun(self._wait(_made(lambda: self._engine.run(name, **how))), self._wait)

    def stored(self, name_or_id: str) -> StoredRun:
        """A run to look at, without going on with it: its trials as a frame, transcripts, figures."""
        return self._engine.stored(name_or_id)

    def drive(self, driver: Driver, settings: Any, **how: Any) -> Summary:
        """Run a driver from the start, or go on with the run of that name; options as `Engine.drive` has them."""
        return self._wait(self._engine.drive(driver, settings, **how))

    def resume(self, name_or_id: str, **how: Any) -> Summary:
        """Go on with a run by calling its driver again; options as `Engine.resume` has them."""
        return self._wait(self._engine.resume(name_or_id, **how))

    def work(self, do: Callable[[Engine], Awaitable[T]]) -> T:
        """Do something with the engine, on the loop that it is on, and wait for it."""
        return self._wait(do(self._engine))

    def verify(self, name_or_id: str) -> Verification:
        """Replay every trial of a run over its journal."""
        return self._wait(self._engine.verify(name_or_id))

    def close(self) -> None:
        """End what is open and let go of the store. What was read of its runs can still be read."""
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
        """End a run that is open here, unless some thread waits for this engine."""
        for run in self._engine.runs:
            if run.record.id == run_id and not self._waiting:
                self._wait(run.end(INTERRUPTED if run.busy else None))

    def _wait(self, work: Awaitable[T]) -> T:
        """Do work on the loop. Ctrl-C cancels it and, when it has let go of what it held, is raised here."""
        begun: list[asyncio.Task[T]] = []
        done = threading.Event()

        def begin() -> None:
            begun.append(self._loop.create_task(_awaited(work)))
            begun[0].add_done_callback(lambda _: done.set())

        def cancel() -> None:
            if begun:
                begun[0].cancel()
            else:  # Ctrl-C came before the work was handed over
                done.set()

        try:
            self._waiting.add(done)
            self._loop.call_soon_threadsafe(begin)
            done.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(cancel)
            done.wait()
            if asyncio.iscoroutine(work):
                work.close()  # it may not even have begun
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
"""How a session ends that is left in the middle: what is unfinished stays so, and what is in flight lands."""

_open: set[SyncEngine] = set()
"""The engines of this process that are not closed."""


async def _made(make: Callable[[], T]) -> T:
    return make()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def _nothing_left() -> None:
    """Let everything clean up that was cut short."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def open_sync(*args: Any, **options: Any) -> SyncEngine:
    """As `groundswell.open`, for code that is not async: `with groundswell.open_sync("runs.db") as engine`."""
    return SyncEngine(lambda: compose.open(*args, **options))
