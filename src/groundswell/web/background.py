"""Runs that go on while nobody waits for them: one engine on a thread and a loop of its own.

    plan      a run is written down, pending ...
    _enter    ... and takes its place in a line; at start, so does everything that a server left unfinished
    _advance  when there is room, the first of the line ...
    _work     ... is carried out; what goes wrong is written down in the run, and never ends the thread

A run is in a line or worked on; nothing else is remembered here. What must survive is in the store. A stop or a
deletion is committed there first, then carried out, then acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from groundswell.engine.driver import BUILT_IN, Driver, driver_name, is_loaded
from groundswell.engine.engine import NO_STORE, Engine
from groundswell.engine.options import RunOptions
from groundswell.engine.outcome import described
from groundswell.engine.records import RunRecord
from groundswell.errors import GroundswellError, RunBusy, RunError, RunNotFound, StoreError
from groundswell.experiments.simulations.reading import SINGLE
from groundswell.loop import new_event_loop
from groundswell.store.runs import UNFINISHED
from groundswell.web.envelope import ApiError

if TYPE_CHECKING:
    from groundswell.store.journal import Store

T = TypeVar("T")

log = logging.getLogger("groundswell.web")

PAGE = 500
LOOK_EVERY = 1.0
"""Seconds between looks at runs that other processes work on."""
LAST_WISHES = 2.0
"""Seconds that a run which is to be deleted has for ending by itself."""


class Line:
    """Runs that wait for their turn, first come first served, and those whose turn it is."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.waiting: OrderedDict[str, bool] = OrderedDict()
        """Ids, and whether changed code is accepted."""
        self.working: dict[str, asyncio.Task[None]] = {}
        self.coming = 0
        """Runs that are being written down."""

    @property
    def length(self) -> int:
        """How many there are, with those to come."""
        return len(self.waiting) + len(self.working) + self.coming


class Background:
    """An engine that carries out runs, for callers on another loop. Use `start` and `close` from one thread."""

    def __init__(
        self,
        make: Callable[[], Engine],
        *,
        running: int,
        waiting: int,
        patience: float = 3.0,
        ended: Callable[[Store, str], None] | None = None,
    ) -> None:
        """`ended` is called in a thread with the id of each run that was worked on, which goes on until then."""
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
        self._watching: asyncio.Task[None]

    # From the thread that serves.

    def start(self) -> None:
        """Open the engine and go on with what was left."""
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
        """Stop all runs so that they are found again, close the engine, and end the thread."""
        try:
            self._wait(self._close())
        finally:
            self._end_thread()

    @property
    def store(self) -> Store:
        """The store of the engine; it may be read in any thread."""
        assert self._engine is not None
        return cast("Store", self._engine.store)

    @property
    def running(self) -> int:
        """How many runs are being worked on."""
        return sum(len(line.working) for line in self._lines)

    @property
    def waiting(self) -> int:
        """How many runs wait for their turn."""
        return sum(len(line.waiting) for line in self._lines)

    def works_on(self, id_: str) -> bool:
        """Whether a run is being worked on here, to the end of what follows it."""
        return any(id_ in line.working for line in self._lines)

    async def plan(
        self, driver: Driver, settings: Any, *, name: str | None = None, seed: int, options: RunOptions
    ) -> RunRecord:
        """Write down a run and put it in line; refuses it where too many wait."""
        if self._stopping:
            raise ApiError(503, "the server is stopping")
        line = self._line_for(driver_name(driver))
        if line.length >= line.room + self._most_waiting:
            raise ApiError(429, f"{len(line.waiting)} wait already: try again when some have ended, or delete some")
        line.coming += 1
        try:
            record = await asyncio.to_thread(self.engine.plan, driver, settings, name=name, seed=seed, options=options)
        finally:
            line.coming -= 1
        await self._do(self._enter(record))
        return record

    async def reach(self, model: str) -> None:
        """Find out whether there is a way to a model; raises `SettingsError` if there is none."""

        async def look() -> None:
            self.engine.reach(model)

        await self._do(look())

    async def cancel(self, record: RunRecord) -> None:
        """Stop a run, wherever it is worked on. What it has in flight is still recorded."""
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
        """Put a run in line that has ended before all was done; `limits` replace those that it had."""
        await self._do(self._resume(record, retry_missing, accept_changes, limits or {}))

    async def delete(self, record: RunRecord) -> None:
        """Stop a run, wait until it has ended, and remove it. Those who delete the same run wait together."""
        await self._do(self._delete(record))

    @property
    def engine(self) -> Engine:
        """The engine; nothing but `plan` may be called on it from another thread."""
        assert self._engine is not None
        return self._engine

    @property
    def _lines(self) -> tuple[Line, Line]:
        return self._batches, self._singles

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work on the engine's loop. It is done to its end, even if whoever waits for it is gone."""
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
        """Put in line what a server left unfinished, the oldest first, and finish deletions that were cut short."""
        runs, found, at = self.store.runs, list[RunRecord](), 0
        while some := runs.list(limit=PAGE, offset=at):
            found += [record for record in some if record.deleting or _goes_on(record)]
            at += PAGE
        for record in reversed(found):
            if record.deleting:
                self._loop.create_task(self._delete_left(record))
            else:
                await self._enter(record)
        self._watching = self._loop.create_task(self._watch_elsewhere())

    async def _watch_elsewhere(self) -> None:
        """Take over what another process works on, should it leave that: a server that was told to stop, say."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            for id_ in list(self._elsewhere):
                try:
                    await self._look_at(id_)
                except StoreError as error:
                    log.error("run %s: %s", id_, error)

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
        except Exception as error:  # noqa: BLE001  the edge of a task: the run tells what became of it
            self._write_down(id_, error)
        await self._follow_up(id_)

    def _is_gone(self, id_: str) -> bool:
        """Whether a run that waited here was cancelled or deleted by another process meanwhile."""
        record = self.store.runs.find(id_)
        return record is None or record.deleting or record.status == "stopped"

    async def _follow_up(self, id_: str) -> None:
        if self._ended is None:
            return
        try:
            await asyncio.to_thread(self._ended, self.store, id_)
        except Exception as error:  # noqa: BLE001  the same edge
            log.error("run %s has ended, but not what follows: %s", id_, described(error))

    def _write_down(self, id_: str, error: Exception) -> None:
        """An error that ended a run is shown as the run's own, and a run that cannot go on is not tried again."""
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
        """Stop a run of which the store says so; `waits`: nobody works on it, so that it only leaves its line.

        One that is about to be opened here is not in `runs` yet. It finds in the store that it is to stop.
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
            await asyncio.wait([task])  # the run has ended, as everybody can see; what follows it ends soon
        if self._line_of(record.id) is not None:
            raise RunBusy(f"run {record.title!r} is in line")
        lock = runs.lock(record)
        try:
            record = _still_there(runs.find(record.id), record)
            _refuse_finished(record, retry_missing, accept_changes)
            _refuse_unloaded(record)
            _refuse_same_limit(record, limits)
            if retry_missing and record.counters.missing:
                runs.retry_missing(record)
            options = {**record.options, "unattended": True}
            if limits:
                options["limits"] = {**record.options.get("limits", {}), **limits}
            values: dict[str, Any] = {"options": options, "cancel": False}
            if (
                record.status != "running"
            ):  # one that was killed stays so: what it may have lost is counted when it opens
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
        """Remove a run; one that is worked on here is stopped first, once it is written down that it is to go."""
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
        """Finish a deletion that was cut short."""
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
    """A run as it is now, unless it was deleted meanwhile."""
    if found is None or found.deleting:
        raise RunNotFound(f"run {record.title!r} was deleted")
    return found


def _goes_on(record: RunRecord) -> bool:
    """Whether a server goes on with a run by itself."""
    return bool(record.options.get("unattended")) and record.status in UNFINISHED


LIMITS = {"budget of $": "budget", "calls is used up": "max_calls", "tokens is used up": "max_tokens"}
"""What a run says when it has reached a limit, and the option that sets it."""


def _refuse_same_limit(record: RunRecord, limits: Mapping[str, float]) -> None:
    """Refuse to go on with a run that has used up a limit, unless it gets a larger one: it would end at once."""
    option = next((option for words, option in LIMITS.items() if words in (record.error or "")), None)
    name = {"budget": "usd", "max_calls": "calls", "max_tokens": "tokens"}.get(option or "", "")
    had = record.options.get("limits", {}).get(name)
    if option is not None and had is not None and limits.get(name, had) <= had:
        raise RunError(f"run {record.title!r} has used up its limit ({record.error}): send a larger {option}")


def _refuse_unloaded(record: RunRecord) -> None:
    """Refuse to go on with a run whose driver is a user's and was not loaded when the server was started."""
    name = record.driver or ""
    if name in BUILT_IN or is_loaded(name, record.location):
        return
    raise RunError(
        f"run {record.title!r} has a driver that this server has not loaded: start it with --experiment FILE.py, or "
        "use `groundswell runs resume`"
    )


def _refuse_finished(record: RunRecord, retry_missing: bool, accept_changes: bool) -> None:
    """Refuse to go on with a run that has nothing left to do, or that only its own script can go on with."""
    if record.driver is None:
        raise RunError(f"run {record.title!r} was started by a script: run the script again, it goes on where it was")
    counters, ended = record.counters, record.status in ("completed", "partial") and record.error is None
    if record.analysis is None or counters.settled < counters.planned or accept_changes:
        return
    if ended and not counters.missing:
        raise RunError(f"run {record.title!r} is completed: nothing is left to do")
    if counters.missing and (ended or record.status == "failed") and not retry_missing:
        raise RunError(f"run {record.title!r} has ended: send retry_missing to try again what failed")
