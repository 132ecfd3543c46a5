"""Background runs of a server: one engine with its own thread and event loop.

    plan      stores a new run with status pending
    _enter    puts it in a queue; at start, also every run that a server left unfinished
    _advance  takes the first run of the queue when there is room
    _work     carries it out; errors are recorded in the run and never end the thread

Only the queues are kept in memory. Everything that must survive a crash is in the store. A cancellation or deletion is
committed there first, then carried out, then acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from groundswell.engine.driver import BUILT_IN, Driver, driver_name, is_loaded
from groundswell.engine.engine import NO_STORE, Engine
from groundswell.engine.monitor import Monitor
from groundswell.engine.options import RunOptions
from groundswell.engine.outcome import described
from groundswell.engine.ports import LoopClock
from groundswell.engine.records import EndpointFigures, RunRecord
from groundswell.errors import GroundswellError, LeaseLost, RunBusy, RunError, RunNotFound, StoreError
from groundswell.experiments.fork import create_fork
from groundswell.experiments.simulations.reading import SINGLE
from groundswell.loop import new_event_loop
from groundswell.reporting.progress import Meter, Reading
from groundswell.store.runs import UNFINISHED
from groundswell.web.envelope import ApiError

if TYPE_CHECKING:
    from groundswell.store.journal import Store

T = TypeVar("T")

log = logging.getLogger("groundswell.web")

PAGE = 500
LOOK_EVERY = 1.0
SEARCH_EVERY = 5.0
"""Seconds after which runs of other servers are searched for."""
WAITS_ELSEWHERE = 30.0
"""Seconds after which a run that waits for its turn on another server is begun here."""
"""Seconds between checks of runs that other processes work on."""
READ_EVERY = 1.0
LAST_WISHES = 2.0
"""Seconds that a run has to end by itself before it is deleted."""


class Line:
    """A queue of waiting runs, first in first out, and the runs in progress."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.waiting: OrderedDict[str, bool] = OrderedDict()
        """Ids, and whether changed source is accepted."""
        self.working: dict[str, asyncio.Task[None]] = {}
        self.coming = 0
        """Number of runs that are being stored."""

    @property
    def length(self) -> int:
        """The number of waiting, running and coming runs."""
        return len(self.waiting) + len(self.working) + self.coming


class Background:
    """An engine that carries out runs for callers on another event loop. Call `start` and `close` from one thread."""

    def __init__(
        self,
        make: Callable[[], Engine],
        *,
        running: int,
        waiting: int,
        patience: float = 3.0,
        ended: Callable[[Store, str], None] | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        """`ended` is called in a thread after each run. The run counts as in progress until it returns.

        `monitor` is a listener of the engine.
        """
        self._make = make
        self._patience = patience
        self._most_waiting = waiting
        self._ended = ended
        self._batches, self._singles = Line(running), Line(running)
        self._elsewhere: set[str] = set()
        self._deleting: dict[str, asyncio.Task[None]] = {}
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread
        self._engine: Engine | None = None
        self._watching: list[asyncio.Task[None]]
        self._readings: dict[str, Reading] = {}
        self.endpoints: Mapping[str, Sequence[EndpointFigures]] = {}
        """Requests, failures and latency of each endpoint, by account, not more than a second old."""
        self.monitor = monitor or Monitor(LoopClock())
        """Live figures of runs, for the dashboard. Any thread may read it."""

    # From the thread that serves.

    def start(self) -> None:
        """Open the engine and resume unfinished runs."""
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="groundswell-background", daemon=True)
        self._thread.start()
        try:
            self._engine = self._wait(self._open())
        except BaseException:
            self._end_thread()
            raise
        self._wait(self._take_up())

    def close(self) -> None:
        """Stop all runs so that they can be resumed, close the engine, and end the thread."""
        try:
            self._wait(self._close())
        finally:
            self._end_thread()

    @property
    def store(self) -> Store:
        """The store of the engine. Any thread may read it."""
        assert self._engine is not None
        return cast("Store", self._engine.store)

    @property
    def running(self) -> int:
        """The number of runs in progress."""
        return sum(len(line.working) for line in self._lines)

    @property
    def waiting(self) -> int:
        """The number of waiting runs."""
        return sum(len(line.waiting) for line in self._lines)

    def works_on(self, id_: str) -> bool:
        """Whether a run is in progress here, including its follow-up work."""
        return any(id_ in line.working for line in self._lines)

    def reading(self, id_: str) -> Reading | None:
        """The progress of a run that is open here, not more than a second old."""
        return self._readings.get(id_)

    async def plan(
        self, driver: Driver, settings: Any, *, name: str | None = None, seed: int, options: RunOptions
    ) -> RunRecord:
        """Store a run and put it in the queue. Refuses it if too many runs are waiting."""
        with self._place_in_line(driver_name(driver)):
            record = await asyncio.to_thread(self.engine.plan, driver, settings, name=name, seed=seed, options=options)
        await self._do(self._enter(record))
        return record

    @contextmanager
    def _place_in_line(self, driver: str | None) -> Iterator[None]:
        """Count a run that is being stored. Refuses it if too many runs are waiting."""
        if self._stopping:
            raise ApiError(503, "the server is stopping")
        line = self._line_for(driver)
        if line.length >= line.room + self._most_waiting:
            waiting = f"too many runs are waiting already ({len(line.waiting)})"
            raise ApiError(429, f"{waiting}: try again later, or delete some")
        line.coming += 1
        try:
            yield
        finally:
            line.coming -= 1

    async def fork(self, parent: RunRecord, settings: Any, *, name: str | None, at: int | None) -> RunRecord:
        """Store a fork of a run and put it in the queue."""
        with self._place_in_line(parent.driver):
            record = await asyncio.to_thread(self._create_fork, parent, settings, name, at)
        await self._do(self._enter(record))
        return record

    def _create_fork(self, parent: RunRecord, settings: Any, name: str | None, at: int | None) -> RunRecord:
        runs = self.store.runs
        record = create_fork(runs, parent, settings, name=name, at=at)
        runs.change(record, options={**record.options, "unattended": True})
        return runs.get(record.id)

    async def reach(self, model: str) -> None:
        """Check that a model is available. Raises `SettingsError` if not."""

        async def look() -> None:
            self.engine.reach(model)

        await self._do(look())

    async def cancel(self, record: RunRecord) -> None:
        """Stop a run in any process. Replies in flight are still recorded."""
        held = await asyncio.to_thread(self.store.runs.request_cancel, record)
        await self._do(self._stop(record.id, waits=not held))

    async def resume(
        self,
        record: RunRecord,
        *,
        retry_missing: bool = False,
        accept_changes: bool = False,
        limits: Mapping[str, float] | None = None,
    ) -> None:
        """Put an incomplete run in the queue. `limits` replace those of the run."""
        await self._do(self._resume(record, retry_missing, accept_changes, limits or {}))

    async def delete(self, record: RunRecord) -> None:
        """Stop a run, wait until it has ended, and delete it. Concurrent deletions of a run share one task."""
        await self._do(self._delete(record))

    @property
    def engine(self) -> Engine:
        """The engine. Other threads may only call `plan` on it."""
        assert self._engine is not None
        return self._engine

    @property
    def _lines(self) -> tuple[Line, Line]:
        return self._batches, self._singles

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work on the engine's loop. It is completed even if the caller is cancelled."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        return await asyncio.shield(asyncio.wrap_future(done))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # On the engine's loop.

    async def _open(self) -> Engine:
        return await self._make().__aenter__()

    async def _take_up(self) -> None:
        """Queue unfinished runs, oldest first, and finish interrupted deletions."""
        runs, found, at = self.store.runs, list[RunRecord](), 0
        while some := runs.list(limit=PAGE, offset=at):
            found += [record for record in some if record.deleting or _goes_on(record)]
            at += PAGE
        for record in reversed(found):
            if record.deleting:
                self._loop.create_task(self._delete_left(record))
            else:
                await self._enter(record)
        self._watching = [self._loop.create_task(work) for work in (self._watch_elsewhere(), self._read_progress())]

    async def _read_progress(self) -> None:
        """Read the progress of open runs every second, for the dashboard."""
        meters: dict[str, Meter] = {}
        while True:
            now, open_runs = time.monotonic(), {run.record.id: run for run in self.engine.runs}
            meters = {id_: meters.get(id_) or Meter(run, now) for id_, run in open_runs.items()}
            self._readings = {id_: meter.read(now) for id_, meter in meters.items()}
            self.monitor.sample(open_runs.values())
            self.endpoints = {name: tuple(some) for name, some in self.engine.figures.items()}
            await asyncio.sleep(READ_EVERY)

    async def _watch_elsewhere(self) -> None:
        """Take over runs when another process leaves them, for example a server that was stopped."""
        searched_at = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if time.monotonic() - searched_at >= SEARCH_EVERY:
                searched_at = time.monotonic()
                try:
                    await self._find_elsewhere()
                except StoreError as error:
                    log.error("%s", error)
            for id_ in list(self._elsewhere):
                try:
                    await self._look_at(id_)
                except StoreError as error:
                    log.error("run %s: %s", id_, error)

    async def _find_elsewhere(self) -> None:
        """Find the runs of other servers on this store that were started since. A run that waits there for its turn is
        only taken if it has waited for a while."""
        found, _ = await asyncio.to_thread(self.store.runs.search, statuses=UNFINISHED, limit=PAGE)
        for record in found:
            waits = record.status == "pending" and time.time() - record.updated_at < WAITS_ELSEWHERE
            known = record.id in self._elsewhere or self._line_of(record.id) is not None
            if known or waits or not _goes_on(record) or not is_loaded(record.driver or "", record.location):
                continue
            self._elsewhere.add(record.id)

    async def _look_at(self, id_: str) -> None:
        record = self.store.runs.find(id_)
        left = record is not None and (record.deleting or record.status in UNFINISHED)
        if record is not None and left and self.store.runs.is_held(record):
            return
        self._elsewhere.discard(id_)
        if record is not None and record.deleting:
            await self._delete_left(record)
        elif record is not None and left:
            await self._enter(record)
        else:
            await self._follow_up(id_)

    async def _enter(self, record: RunRecord, *, accept_changes: bool = False) -> None:
        line = self._line_for(record.driver)
        line.waiting[record.id] = accept_changes
        self._advance(line)

    def _line_for(self, driver: str | None) -> Line:
        return self._singles if driver == SINGLE else self._batches

    def _advance(self, line: Line) -> None:
        while line.waiting and len(line.working) < line.room and not self._stopping:
            id_, accept_changes = line.waiting.popitem(last=False)
            line.working[id_] = self._loop.create_task(self._work(line, id_, accept_changes))

    async def _work(self, line: Line, id_: str, accept_changes: bool) -> None:
        try:
            await self._carry_out(id_, accept_changes)
        finally:
            del line.working[id_]
            self._advance(line)

    async def _carry_out(self, id_: str, accept_changes: bool) -> None:
        try:
            if self._is_gone(id_):
                return
            await self.engine.resume(id_, accept_changes=accept_changes, unless_cancelled=True)
        except RunBusy:
            self._elsewhere.add(id_)
        except LeaseLost as error:  # the run belongs to somebody else now
            log.error("run %s: %s", id_, error)
            self._elsewhere.add(id_)
        except Exception as error:  # noqa: BLE001  the edge of a task: the error is recorded in the run
            self._write_down(id_, error)
        await self._follow_up(id_)

    def _is_gone(self, id_: str) -> bool:
        """Whether another process has cancelled or deleted a waiting run."""
        record = self.store.runs.find(id_)
        return record is None or record.deleting or record.status == "stopped"

    async def _follow_up(self, id_: str) -> None:
        if self._ended is None:
            return
        try:
            await asyncio.to_thread(self._ended, self.store, id_)
        except Exception as error:  # noqa: BLE001  the same edge
            log.error("run %s has ended, but its follow-up work failed: %s", id_, described(error))

    def _write_down(self, id_: str, error: Exception) -> None:
        """Record the error that ended a run. A failed run is not tried again."""
        text = str(error) if isinstance(error, GroundswellError) else described(error)
        log.warning("run %s: %s", id_, text)
        text = NO_STORE if isinstance(error, StoreError) else text
        try:
            record = self.store.runs.find(id_)
            if record is not None and record.status in UNFINISHED:
                self.store.runs.change(record, status="failed", error=text)
        except GroundswellError as worse:
            log.error("run %s: %s", id_, worse)

    async def _stop(self, id_: str, *, waits: bool) -> None:
        """Stop a run whose cancellation is in the store. With `waits`, nobody works on it, so it only leaves the queue.

        A run that is about to be opened here is not in `runs` yet. It will find the cancellation in the store.
        """
        if waits:
            for line in self._lines:
                line.waiting.pop(id_, None)
        for run in self.engine.runs:
            if run.record.id == id_:
                run.stop("cancelled", "it was cancelled")

    async def _resume(
        self, record: RunRecord, retry_missing: bool, accept_changes: bool, limits: Mapping[str, float]
    ) -> None:
        runs, task = self.store.runs, self._task_of(record.id)
        if task is not None and _still_there(runs.find(record.id), record).status not in UNFINISHED:
            await asyncio.wait([task])  # the run has visibly ended; its follow-up work ends soon
        if self._line_of(record.id) is not None:
            raise RunBusy(f"run {record.title!r} is already in the queue")
        lock = runs.lock(record)
        try:
            record = _still_there(runs.find(record.id), record)
            _refuse_finished(record, retry_missing, accept_changes)
            refuse_unloaded(record)
            _refuse_same_limit(record, limits)
            if retry_missing and record.counters.missing:
                runs.retry_missing(record)
            options = {**record.options, "unattended": True}
            if limits:
                options["limits"] = {**record.options.get("limits", {}), **limits}
            values: dict[str, Any] = {"options": options, "cancel": False}
            if record.status != "running":  # a killed run keeps its status: its lost requests are counted when it opens
                values |= {"status": "pending", "error": None}
            runs.change(record, **values)
        finally:
            lock.release()
        await self._enter(record, accept_changes=accept_changes)

    def _task_of(self, id_: str) -> asyncio.Task[None] | None:
        return next((line.working[id_] for line in self._lines if id_ in line.working), None)

    async def _delete(self, record: RunRecord) -> None:
        task = self._deleting.get(record.id)
        if task is None:
            task = self._deleting[record.id] = self._loop.create_task(self._remove(record))
            task.add_done_callback(lambda _: self._deleting.pop(record.id, None))
        await asyncio.shield(task)

    async def _remove(self, record: RunRecord) -> None:
        """Delete a run. If it is in progress here, record the deletion and stop it first."""
        runs = self.store.runs
        task = self._task_of(record.id)
        if task is not None:
            await asyncio.to_thread(runs.request_delete, record)
            await self._stop(record.id, waits=False)
            _, late = await asyncio.wait([task], timeout=LAST_WISHES)
            if late:
                task.cancel()
                await asyncio.wait([task])
        await asyncio.to_thread(runs.delete, record)
        for line in self._lines:
            line.waiting.pop(record.id, None)

    async def _delete_left(self, record: RunRecord) -> None:
        """Finish an interrupted deletion."""
        try:
            await self._delete(record)
        except RunBusy:
            self._elsewhere.add(record.id)
        except GroundswellError as error:
            log.error("run %s could not be deleted: %s", record.id, error)

    def _line_of(self, id_: str) -> Line | None:
        return next((line for line in self._lines if id_ in line.waiting or id_ in line.working), None)

    async def _close(self) -> None:
        self._stopping = True
        for run in self.engine.runs:
            run.stop("interrupted", "the server was stopped")
        tasks = [*self._deleting.values(), *(task for line in self._lines for task in line.working.values())]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self.engine.__aexit__(None, None, None)
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


def _still_there(found: RunRecord | None, record: RunRecord) -> RunRecord:
    """The current record of a run. Raises `RunNotFound` if it was deleted."""
    if found is None or found.deleting:
        raise RunNotFound(f"run {record.title!r} was deleted")
    return found


def _goes_on(record: RunRecord) -> bool:
    """Whether a server resumes a run by itself."""
    return bool(record.options.get("unattended")) and record.status in UNFINISHED


LIMITS = {"calls is used up": "max_calls", "tokens is used up": "max_tokens", "budget of $": "budget"}
"""Words in the error of a run that reached a limit, and the option of that limit."""


def _refuse_same_limit(record: RunRecord, limits: Mapping[str, float]) -> None:
    """Refuse to resume a run that has reached a limit, unless it gets a larger one. It would end at once."""
    option = next((option for words, option in LIMITS.items() if words in (record.error or "")), None)
    name = {"budget": "usd", "max_calls": "calls", "max_tokens": "tokens"}.get(option or "", "")
    had = record.options.get("limits", {}).get(name)
    if option is not None and had is not None and limits.get(name, had) <= had:
        raise RunError(f"run {record.title!r} has reached its limit ({record.error}): resume it with a larger {option}")


def refuse_unloaded(record: RunRecord) -> None:
    """Refuse to resume or fork a run whose driver belongs to a user and was not loaded at start."""
    name = record.driver or ""
    if name in BUILT_IN or is_loaded(name, record.location):
        return
    raise RunError(
        f"run {record.title!r} has a driver that this server has not loaded: start the server with --experiment "
        "FILE.py, or use `groundswell runs resume`"
    )


def _refuse_finished(record: RunRecord, retry_missing: bool, accept_changes: bool) -> None:
    """Refuse to resume a run that is complete, or that only its own script can resume."""
    if record.driver is None:
        raise RunError(f"run {record.title!r} was started by a script: run the script again to resume it")
    counters, ended = record.counters, record.status in ("completed", "partial") and record.error is None
    if record.analysis is None or counters.settled < counters.planned or accept_changes:
        return
    if ended and not counters.missing:
        raise RunError(f"run {record.title!r} is already complete, so there is nothing to resume")
    if counters.missing and (ended or record.status == "failed") and not retry_missing:
        raise RunError(
            f"run {record.title!r} has ended, but trials are missing; resume it with retry_missing to run them again"
        )
