"""The engine: opens runs on a store, runs drivers and resumes them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from groundswell.engine.driver import (
    Driver,
    analysis_type,
    decode_settings,
    driver_name,
    load_stored_driver,
    settings_type,
    stored_location,
    trust_driver,
)
from groundswell.engine.events import Listener, RunEnded, RunOpened, tell
from groundswell.engine.head import Crew
from groundswell.engine.lanes import Lanes
from groundswell.engine.options import RunOptions
from groundswell.engine.ports import Clock, Journal, Lock, Prices, Router, Store
from groundswell.engine.rate_limit import Paces
from groundswell.engine.records import EndpointFigures, RunRecord, Status
from groundswell.engine.replay import Verification, verify
from groundswell.engine.reuse import SharedAsks
from groundswell.engine.run import GivenOut, Run
from groundswell.engine.stored import StoredRun
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import (
    GroundswellError,
    RunBusy,
    RunError,
    RunNotFound,
    RunStopped,
    SettingsError,
    SourceChanged,
    StoreError,
)
from groundswell.program.request import Chat, Usage, canonical
from groundswell.program.source import identity, same_code
from groundswell.program.trial import find_program

NO_STORE = "the store could not be read or written: check its disk and permissions, then resume"
"""Without the path of the store, because clients of a server see this text."""
ENDED_BY: dict[str, Status] = {
    "interrupted": "interrupted",
    "cancelled": "stopped",
    "budget": "partial",
    "deadline": "partial",
    "fault": "failed",
}
CANCEL_EVERY = 1.0


class Engine:
    """Runs experiments on one store.

    `groundswell.open` creates it. Use it as an async context manager: leaving the block ends all open runs, waits for
    replies in flight and closes the store.

    Attributes:
        store: The store.
        latest: Id of the run that was opened last.
    """

    def __init__(
        self,
        store: Store,
        router: Router,
        clock: Clock,
        *,
        options: RunOptions | None = None,
        prices: Prices | None = None,
        listeners: Sequence[Listener] = (),
        paces: Paces | None = None,
        crew: Callable[[], Crew] | None = None,
    ) -> None:
        self.store = store
        self._crew = crew
        self._options = options
        self._router = router
        self._lanes = Lanes(router, clock, paces or Paces(), None if paces is None else store.shares)
        self._asked: SharedAsks = {}
        self._clock = clock
        self._prices = prices
        self._listeners = listeners
        self._running: dict[str, tuple[Run, Lock, Callable[[], None]]] = {}
        self.latest: str | None = None

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            for run, _, _ in list(self._running.values()):
                await self._end(run, error)
        finally:
            try:
                await self._lanes.close()
                await self._router.close()
            finally:
                await self.store.close()

    @property
    def runs(self) -> list[Run]:
        """The runs that are open."""
        return [run for run, _, _ in self._running.values()]

    @property
    def figures(self) -> Mapping[str, Sequence[EndpointFigures]]:
        """Requests, failures and latency of each endpoint, by account, since the engine was opened."""
        return self._router.figures()

    def cost(self, model: str, usage: Usage, transport: str = "live") -> float | None:
        """Price of a request in US dollars; None if the price of the model is unknown.

        Args:
            model: The model.
            usage: Tokens of the request.
            transport: `live`, or the batch API of the provider.
        """
        return None if self._prices is None else self._prices(model, usage, transport)

    def run(
        self,
        name: str | None = None,
        *,
        seed: int = 0,
        options: RunOptions | None = None,
        accept_changes: bool = False,
    ) -> Run:
        """Open a run, to submit trials from your own code.

        If the store has a run with this name, it is continued. The run ends with the engine, or with its own block:
        `async with engine.run(...) as run`.

        Args:
            name: Name of the run. Without one, the run only has an id.
            seed: Seed of the run.
            options: Options of the run. If they are left out, a continued run keeps its own.
            accept_changes: Continue even if programs have changed. Recorded replies are then scored again.

        Returns:
            The open run.

        Raises:
            RunError: If the run exists with another seed.
            RunBusy: If the run is already open, in this or another process.
        """
        record = self.store.runs.find(name) if name is not None else None
        if record is None:
            record = self._create(name, seed, None, None, options)
        elif record.seed != seed:
            raise RunError(
                f"run {name!r} was started with seed {record.seed}, not {seed}: use that seed or another name"
            )
        return self._open(record, options, accept_changes=accept_changes)

    async def drive(
        self,
        driver: Driver,
        settings: Any,
        *,
        name: str | None = None,
        seed: int = 0,
        options: RunOptions | None = None,
        accept_changes: bool = False,
    ) -> Summary:
        """Run a driver, or continue the run with this name if it has the same driver, settings and seed.

        Args:
            driver: An `async def driver(run, settings)`.
            settings: Settings of the driver. They are stored with the run as JSON.
            name: Name of the run. Without one, the run only has an id.
            seed: Seed of the run.
            options: Options of the run.
            accept_changes: Continue even if the code has changed. Recorded replies are then scored again.

        Returns:
            The summary of the run, with what the driver returned as `analysis`.

        Raises:
            RunError: If the run exists with another driver, settings or seed.
            RunBusy: If the run is already open, in this or another process.
            SourceChanged: If code has changed since the run was started.
            SettingsError: If the driver, its settings or a model cannot be used.
        """
        if not inspect.iscoroutinefunction(driver):
            raise SettingsError(f"{driver!r} is not a driver: give an `async def driver(run, settings)`")
        settings_type(driver)
        trust_driver(driver)
        body = canonical(settings).decode()
        record = self.store.runs.find(name) if name is not None else None
        fresh = record is None
        if record is None:
            record = self._create(name, seed, driver, body, options)
        elif (record.driver, record.settings, record.seed) != (driver_name(driver), body, seed):
            raise RunError(
                f"run {name!r} already exists with another driver, settings or seed. Use another name, continue it as "
                f"it was started with `groundswell runs resume {record.id}`, or delete it with "
                f"`groundswell runs delete {record.id}`"
            )
        try:
            return await self._drive(record, driver, options, accept_changes=accept_changes)
        except SettingsError:
            if fresh:
                self._forget_stillborn(record)
            raise

    def plan(
        self,
        driver: Driver,
        settings: Any,
        *,
        name: str | None = None,
        seed: int = 0,
        options: RunOptions | None = None,
    ) -> RunRecord:
        """Create a run without starting it. `resume` starts it later. May be called from any thread."""
        trust_driver(driver)
        return self._create(name, seed, driver, canonical(settings).decode(), options)

    def reach(self, model: str) -> None:
        """Check that a model can be reached. No request is sent.

        Raises:
            SettingsError: If the model is unknown, or its account is not set up.
        """
        self._lanes.of(Chat(model, ()), "live")

    async def resume(
        self,
        name_or_id: str,
        *,
        accept_changes: bool = False,
        retry_missing: bool = False,
        options: RunOptions | None = None,
        unless_cancelled: bool = False,
    ) -> Summary:
        """Continue a run by calling its driver again. If the run is complete, only its summary is returned.

        Args:
            name_or_id: Name or id of the run.
            accept_changes: Continue even if the code has changed. Recorded replies are then scored again.
            retry_missing: Run missing trials again.
            options: Options of the run. If they are left out, the run keeps its own.
            unless_cancelled: Leave a run stopped that was cancelled. A server resumes runs this way.

        Returns:
            The summary of the run.

        Raises:
            RunNotFound: If there is no such run.
            RunError: If the run was started by a script and has no driver.
            RunBusy: If the run is already open, in this or another process.
            SourceChanged: If code has changed since the run was started.
            NotTrusted: If the driver is in a file that you have neither imported nor trusted.
        """
        record = self.store.runs.get(name_or_id)
        if record.driver is None:
            raise RunError(f"run {record.title!r} was started by a script: run the script again to continue it")
        _refuse_earlier(record)
        driver = load_stored_driver(record.driver, record.location)
        retry = retry_missing and record.counters.missing > 0
        if record.status in ("completed", "partial") and not (retry or accept_changes) and _all_settled(record):
            refuse_changed(record, driver)
            return summarise(record, analysis_type(driver))
        return await self._drive(
            record,
            driver,
            options,
            accept_changes=accept_changes,
            retry_missing=retry,
            unless_cancelled=unless_cancelled,
        )

    async def verify(self, name_or_id: str) -> Verification:
        """Replay every trial of a run and compare requests and results with the journal. No request is sent.

        Args:
            name_or_id: Name or id of the run.

        Returns:
            What was compared, and the differences.
        """
        record = self.store.runs.get(name_or_id)
        _refuse_earlier(record)
        if record.driver is not None:
            load_stored_driver(record.driver, record.location)
        journal = self.store.journal(record, _ignore)
        try:
            return await verify(record, journal)
        finally:
            journal.close()

    def stored(self, name_or_id: str) -> StoredRun:
        """Open a run for reading only: its trials as a table, transcripts and summary.

        Args:
            name_or_id: Name or id of the run.

        Raises:
            RunNotFound: If there is no such run.
        """
        record = self.store.runs.get(name_or_id)
        if record.id in self._running:
            record = self._running[record.id][0].record
        else:
            record.status = self.store.runs.state(record)
        return StoredRun(record, self.store.results(record))

    async def _drive(
        self,
        record: RunRecord,
        driver: Driver,
        options: RunOptions | None,
        *,
        accept_changes: bool = False,
        retry_missing: bool = False,
        unless_cancelled: bool = False,
    ) -> Summary:
        assert record.settings is not None
        settings = decode_settings(driver, record.settings)
        try:
            run = self._open(
                record,
                options,
                accept_changes=accept_changes,
                retry_missing=retry_missing,
                unless_cancelled=unless_cancelled,
            )
        except RunStopped:
            return summarise(self.store.runs.get(record.id), analysis_type(driver))
        try:
            self._check_driver(run.record, driver, accept_changes)
            analysis = _encode_analysis(driver, await driver(run, settings))
        except SourceChanged as refused:
            await self._end(run, refused)
            self.store.runs.change(record, status=record.status, error=record.error)  # refused: the run is unchanged
            raise
        except BaseException as error:
            await self._end(run, error)
            if not isinstance(error, RunStopped):
                raise
        else:
            await self._end(run, None, analysis)
        return summarise(self.store.runs.get(record.id), analysis_type(driver))

    def _forget_stillborn(self, record: RunRecord) -> None:
        """Delete a new run that failed on its settings before any request, so that its name is free again."""
        c = self.store.runs.get(record.id).counters
        if not (c.sent or c.cached or c.settled):
            self.store.runs.delete(record)
            self.latest = None

    def _create(
        self,
        name: str | None,
        seed: int,
        driver: Driver | None,
        settings: str | None,
        options: RunOptions | None,
    ) -> RunRecord:
        stored = msgspec.to_builtins(options or self._options or RunOptions())
        named, location = (None, None) if driver is None else (driver_name(driver), stored_location(driver))
        return self.store.runs.create(name, seed, settings=settings, options=stored, driver=named, location=location)

    def _open(
        self,
        record: RunRecord,
        options: RunOptions | None,
        *,
        accept_changes: bool = False,
        retry_missing: bool = False,
        unless_cancelled: bool = False,
    ) -> Run:
        """Lock a run for this process and prepare it for a driver.

        This clears a cancellation. With `unless_cancelled` it does not: a run that was cancelled raises `RunStopped`,
        and a cancellation that arrives at this moment is not lost.
        """
        runs = self.store.runs
        if record.id in self._running:
            raise RunBusy(
                f"run {record.title!r} is already open in this engine: use that run, or end it first with "
                "`await run.end()` or by opening it as `async with engine.run(...) as run`"
            )
        lock = runs.lock(record)
        try:
            record = runs.get(record.id)
            _refuse_deleted(record)
            _refuse_earlier(record)
            if unless_cancelled and (record.cancel or record.status == "stopped"):
                if record.status != "stopped":
                    runs.change(record, status="stopped", error="it was cancelled")
                raise RunStopped("cancelled", "it was cancelled")
            options = options or self._options or msgspec.convert(record.options, RunOptions)
            if self._crew is not None:
                _refuse_workers(record, options, accept_changes=accept_changes)
            if retry_missing or accept_changes:  # checkpoints follow from outcomes and code that may change now
                runs.forget_kept(record)
            if retry_missing:
                runs.retry_missing(record)
            given_out = self._give_out(record, options)
            taken_back = {} if unless_cancelled else {"cancel": False}
            runs.change(record, status="running", error=None, **taken_back)
            record = runs.get(record.id, own=True)
            run = self._made(
                record,
                partial(self.store.journal, record),
                options,
                numbers=runs.last_number(record),
                accept_changes=accept_changes,
                given_out=given_out,
            )
        except BaseException:
            lock.release()
            raise
        self._running[record.id] = (run, lock, self._watch(run))
        self.latest = record.id
        unfinished = record.counters.planned - record.counters.settled
        tell(self._listeners, RunOpened(run=record.id, at=self._clock.wall(), unfinished=unfinished))
        return run

    def _made(
        self,
        record: RunRecord,
        journal: Callable[[Callable[[Exception], None]], Journal],
        options: RunOptions,
        *,
        numbers: tuple[int, int],
        accept_changes: bool = False,
        given_out: GivenOut | None = None,
    ) -> Run:
        """A run. `journal` makes its journal, given what to call when a commit fails."""
        runs, box = self.store.runs, list[Run]()
        run = Run(
            record,
            journal(lambda error: box[0].abort(error)),  # noqa: PLW0108  the box is still empty
            self._lanes,
            self._clock,
            options,
            asked=self._asked,
            results=self.store.results(record),
            end=self._end,
            numbers=numbers,
            save_sources=lambda changed: runs.change(changed, sources=changed.sources),
            accept_changes=accept_changes,
            parent=self._parent(record),
            prices=self._prices,
            listeners=self._listeners,
            given_out=given_out,
        )
        box.append(run)
        return run

    def shard(self, record: RunRecord, number: int) -> Run:
        """A part of a run, for a worker that has taken it. `record` has the counters of the shard."""
        options = msgspec.convert(record.options, RunOptions)
        options = msgspec.structs.replace(options, limits=msgspec.structs.replace(options.limits, seconds=None))
        journal = partial(self.store.shard_journal, record, number)
        run = self._made(record, journal, options, numbers=(record.span[0], record.span[0]))
        run.dispatch.spending.lent = run.dispatch.spending.being_lent = True
        return run

    def _give_out(self, record: RunRecord, options: RunOptions) -> GivenOut | None:
        """What a run needs whose trials are run by workers, if they are to be."""
        work = self.store.work
        if work is None:
            return None
        if self._crew is None:
            if work.left_over(record):
                work.fold(record)
            return None
        self.store.runs.change(record, options=msgspec.to_builtins(options))  # where workers read them
        left = work.begin(record)
        return GivenOut(work, self._crew(), left)

    def _parent(self, record: RunRecord) -> Journal | None:
        if record.parent is None:
            return None
        parent = self.store.runs.find(record.parent)
        return None if parent is None else self.store.journal(parent, _ignore)

    def _watch(self, run: Run) -> Callable[[], None]:
        """Check regularly whether the run was cancelled or is out of time. Returns a function that ends this."""
        cancel: list[Callable[[], None]] = []

        async def look() -> None:
            if await run.journal.cancelled():
                run.stop("cancelled", f"run {run.record.title!r} was cancelled")
            if run.record.id in self._running:
                cancel[0] = self._clock.call_at(self._clock.now() + CANCEL_EVERY, again)

        def again() -> None:
            run.spawn(look())

        cancel.append(self._clock.call_at(self._clock.now() + CANCEL_EVERY, again))
        if (seconds := run.options.limits.seconds) is not None:
            why = f"the time limit of {seconds:g} s has been reached"
            cancel.append(self._clock.call_at(self._clock.now() + seconds, lambda: run.stop("deadline", why)))

        def unwatch() -> None:
            for each in cancel:
                each()

        return unwatch

    async def _end(self, run: Run, error: BaseException | None, analysis: str | None = None) -> None:
        """Close a run and store how it ended. Only a second interrupt loses replies that are in flight."""
        entry = self._running.pop(run.record.id, None)
        if entry is None:
            return
        _, lock, unwatch = entry
        unwatch()
        if error is None and run.admission.cut_short:
            error = run.over  # the driver handled the stop and returned: the run is unfinished
        complete = error is None and run.over is None
        try:
            if complete:
                run.admission.driver_ended()
                await run.call_off()
            if not isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
                await run.wait_for_live()
        finally:
            try:
                await run.close()
                if run.head is not None and not isinstance(run.error, StoreError):
                    await run.head.fold(ended=complete)
                self._write_down(run, error, analysis)
            except StoreError:
                if not isinstance(run.error, StoreError):  # else the first error is the cause
                    raise
            finally:
                lock.release()

    def _write_down(self, run: Run, error: BaseException | None, analysis: str | None) -> None:
        status, text = _ending(run, error)
        values: dict[str, Any] = {"status": status, "error": text}
        if not isinstance(run.error, StoreError):  # else they include what was never written
            values["counters"] = run.counters
        if analysis is not None:
            values["analysis"] = analysis
        self.store.runs.change(run.record, **values)
        run.record.status, run.record.error = status, text
        tell(self._listeners, RunEnded(run=run.record.id, at=self._clock.wall(), status=status))

    def _check_driver(self, record: RunRecord, driver: Driver, accept_changes: bool) -> None:
        name, now = driver_name(driver), identity(driver)
        if not accept_changes:
            refuse_changed(record, driver)
        record.sources[name] = now
        self.store.runs.change(record, sources=record.sources)


def _ignore(error: Exception) -> None:
    """Failure callback of a journal that is only read."""


def _refuse_workers(record: RunRecord, options: RunOptions, *, accept_changes: bool) -> None:
    """Refuse what only one process can do."""
    if options.via != "live":
        raise SettingsError(
            f"via {options.via!r}: batches are sent by one process, and 50,000 requests in a batch need no more. Leave "
            "out --workers and --cluster, or use --via live"
        )
    if record.driver is None:
        raise SettingsError("workers need a driver, which they can load: use `engine.drive` or `groundswell run`")
    if accept_changes:
        raise SettingsError("recorded replies are scored again in one process: leave out --workers and --cluster")


def _refuse_deleted(record: RunRecord) -> None:
    if record.deleting:
        raise RunNotFound(
            f"run {record.title!r} is being deleted. If that was interrupted, finish it with "
            f"`groundswell runs delete {record.id}`"
        )


def _refuse_earlier(record: RunRecord) -> None:
    if record.release is None:
        raise RunError(
            f"run {record.title!r} was created by an early development version of Groundswell, which named programs "
            "and drivers differently. It can be shown and exported, but not resumed or verified. Start a new run: "
            "replies in the cache are used"
        )


def _all_settled(record: RunRecord) -> bool:
    """Whether a run is complete: its driver received all outcomes and was not stopped."""
    done = record.counters.settled >= record.counters.planned
    return done and record.analysis is not None and record.error is None


def refuse_changed(record: RunRecord, driver: Driver) -> None:
    """Raise `SourceChanged` if the driver or a program has changed since the run was started."""
    programs = {name: found.source for name in record.sources if (found := find_program(name)) is not None}
    now = {driver_name(driver): identity(driver)} | programs
    changed = [name for name, source in record.sources.items() if not same_code(source, now.get(name, source))]
    if changed:
        raise SourceChanged(
            f"the code of {' and '.join(changed)} has changed since run {record.title!r} was started. Restore it, "
            "start a new run with another name, or score the recorded replies again with "
            "`groundswell runs resume --accept-changes`"
        )


def _encode_analysis(driver: Driver, analysis: Any) -> str:
    try:
        return canonical(analysis).decode()
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"driver {driver.__qualname__}: its return value cannot be stored as JSON: {error}"
        ) from error


def _ending(run: Run, error: BaseException | None) -> tuple[Status, str | None]:
    """The final status of a run, and its error."""
    if isinstance(error, RunStopped):
        return ENDED_BY.get(error.reason, "stopped"), str(error)
    if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
        return "interrupted", "interrupted"
    if isinstance(error, StoreError):
        return "failed", NO_STORE
    if error is not None:
        known = isinstance(error, GroundswellError)
        return "failed", str(error) if known else f"{type(error).__name__}: {error}"
    if run.counters.settled < run.counters.planned or run.counters.missing:
        if not run.counters.usable:
            return "failed", "no trial has a result: see `groundswell runs show` for the reasons"
        return "partial", None
    return "completed", None
