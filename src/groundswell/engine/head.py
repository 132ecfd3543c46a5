"""The head of a run whose trials are run by workers: it drives the run, gives its trials out, and takes their outcomes.

    start     a trial that the driver submitted is given out ...
    follow    ... and when a worker has ended it ...
    _take     ... its outcome is handed to the driver

A worker is another process: see worker.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import msgspec

from groundswell.engine.context import Deliver, OpenTrial, RunContext
from groundswell.engine.driver import module_location
from groundswell.engine.events import TrialEnded
from groundswell.engine.outcome import decode_spec, past_outcome
from groundswell.engine.ports import Shard, Work
from groundswell.engine.records import Counters, Recorded, RunRecord, TrialRow
from groundswell.errors import GroundswellError, RunError, RunStopped, SettingsError, SourceChanged
from groundswell.program.trial import Program

FEWEST = 512
"""Trials that are given out as long as it is not known how many the workers want."""
AHEAD = 2
"""Times as many trials are given out as the workers want to have open, so that they need not wait for more."""
LOOK_EVERY = 0.5
TOLD: tuple[type[GroundswellError], ...] = (RunStopped, SettingsError, SourceChanged)
"""Kinds of errors that a head raises as a worker did."""
WORKERS = "groundswell_work"
"""Where workers hear that there is work."""


class Crew(Protocol):
    """Starts workers for a run, and ends them."""

    @property
    def size(self) -> int:
        """How many workers there are to be; 0 if others start them."""
        ...

    def start(self, run: str) -> None:
        """Start workers for a run."""
        ...

    def problem(self) -> str | None:
        """Why no worker runs and none will; None as long as one may."""
        ...

    async def stop(self) -> None:
        """The run has ended: end the workers."""
        ...


class Head:
    """Gives out the trials of one run."""

    def __init__(
        self,
        context: RunContext,
        work: Work,
        crew: Crew,
        left: Collection[int],
        *,
        save_sources: Callable[[RunRecord], None],
        made_room: Callable[[], None],
    ) -> None:
        """`left`: the trials that an earlier session gave out."""
        self._context = context
        self._work = work
        self._crew = crew
        self._left = set(left)
        self._early: dict[int, TrialRow] = {}
        self._known: list[int] = []
        self._save_sources = save_sources
        self._made_room = made_room
        self._placed: set[str] = set()
        self._shards: tuple[Shard, ...] = ()
        self._news = asyncio.Event()
        self._told = False
        self.working = False
        """Whether workers may have requests in flight."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="groundswell-head")
        self._bell = work.bell(channel(context.record), self._heard)

    @property
    def room(self) -> int:
        """How many trials may be given out at once."""
        wanted = sum(shard.room for shard in self._shards if shard.alive)
        return self._context.options.window or max(FEWEST, AHEAD * wanted)

    @property
    def counters(self) -> Counters:
        """The counters of the run, with those of its workers as they were a moment ago."""
        total = self._context.counters
        for shard in self._shards:
            total = total.with_shard(shard.counters)
        return total

    @property
    def lacks_workers(self) -> bool:
        """Whether trials wait for a worker to come."""
        return self.working and not any(shard.alive for shard in self._shards)

    def start(
        self,
        row: TrialRow,
        program: Program[Any, Any],
        deliver: Deliver | None,
        recorded: dict[str, Recorded] | None = None,
        inherited: dict[str, Recorded] | None = None,
    ) -> OpenTrial:
        """Give a trial to workers."""
        self._place(program)
        given = decode_spec(program, row.spec)
        trial = OpenTrial(row, program, given, None, deliver=deliver, recorded=recorded, inherited=inherited)
        self._context.open[row.id] = trial
        journal = self._context.journal
        if recorded is None:
            journal.add_trial(row)
        if row.id not in self._left:
            journal.add_work(row.id, again=recorded is not None)
            journal.save_counters(self._bell.ring, WORKERS)
        self._left.discard(row.id)
        if (ended := self._early.pop(row.id, None)) is not None:
            self._context.loop.call_soon(self._take, ended)
        return trial

    def withdraw(self, trial: OpenTrial) -> None:
        """The driver gave a trial up."""
        self._context.journal.withdraw(trial.id)

    async def follow(self) -> None:
        """Take outcomes as they come, until the run is over and no worker has anything in flight."""
        try:
            await self._follow()
        finally:
            self.working = False

    async def _follow(self) -> None:
        self._crew.start(self._context.record.id)
        looked_at = 0.0
        while self.working:
            self._news.clear()
            now = self._context.loop.time()
            if now - looked_at >= LOOK_EVERY or self._told:
                looked_at = now
                await self._look_at_shards()
            if self._context.over is not None and not self._told:
                self._told = True
                await self._call(self._work.stop, self._context.record)
                self._bell.ring(WORKERS)
            known, self._known = self._known, []
            rows = await self._call(self._work.ended, self._context.record, known)
            self._known = [row.id for row in rows]
            for row in rows:
                self._take(row)
            if rows:
                self._context.journal.save_counters(self._made_room)
            if self.working:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), LOOK_EVERY)

    def wake(self) -> None:
        """The run is over, or is about to be."""
        self._news.set()

    async def close(self) -> None:
        """Listen no more, and end the workers."""
        await asyncio.to_thread(self._bell.close)
        await self._crew.stop()

    async def fold(self, *, ended: bool) -> None:
        """Add what workers counted to the counters of the run."""
        record, seconds = self._context.record, self._context.counters.seconds
        record.counters = self._context.counters = await self._call(self._work.fold, record, ended=ended)
        record.counters.seconds = seconds
        self._shards = ()
        self._thread.shutdown()

    async def _look_at_shards(self) -> None:
        self._shards = tuple(await self._call(self._work.shards, self._context.record))
        alive = any(shard.alive for shard in self._shards)
        if self._told:
            if alive:  # also those that have come since
                await self._call(self._work.stop, self._context.record)
                return
            self.working = False
            self._context.halt_when_still()
            return
        problems = [decode_problem(shard.problem) for shard in self._shards if shard.problem is not None]
        stopped = next((problem for problem in problems if isinstance(problem, RunStopped)), None)
        if stopped is not None:
            self._context.stop(stopped.reason, str(stopped))
        elif not alive and ((why := self._crew.problem()) is not None or (problems and not self._crew.size)):
            self._context.abort(problems[0] if problems else RunError(why or "no worker is left"))
        self._made_room()

    def _take(self, row: TrialRow) -> None:
        """A trial has ended: hand its outcome to the driver."""
        context = self._context
        trial = context.open.pop(row.id, None)
        if trial is None:
            if row.id in self._left:
                self._early[row.id] = row
            return
        context.counters.usable += row.fault is None
        context.counters.missing += row.fault is not None
        trial.outcome = past_outcome(trial.program, row)
        if trial.deliver is not None:
            trial.deliver(trial.outcome)
        context.emit(lambda: TrialEnded(run=context.record.id, at=context.clock.wall(), trial=row.key, fault=row.fault))
        self._made_room()

    def _place(self, program: Program[Any, Any]) -> None:
        """Store where a program is, so that workers find it; not that of the driver, which they have."""
        if program.id in self._placed:
            return
        self._placed.add(program.id)
        where, record = module_location(program.function), self._context.record
        if where.startswith("groundswell.") or where == (record.location or record.driver or "").rpartition(":")[0]:
            return
        if record.sources.get(place_name(program.id)) != where:
            record.sources[place_name(program.id)] = where
            self._save_sources(record)

    async def _call(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call a function of the store, on a thread that nothing else occupies."""
        return await self._context.loop.run_in_executor(self._thread, partial(function, *args, **named))

    def _heard(self) -> None:
        with suppress(RuntimeError):  # the loop has been closed
            self._context.loop.call_soon_threadsafe(self._news.set)


def channel(record: RunRecord) -> str:
    """Where the head of a run hears that trials have ended."""
    return f"groundswell_head_{record.number}"


def place_name(program: str) -> str:
    """The name under which a run stores where a program is."""
    return f"module of {program}"


def encode_problem(error: Exception) -> str:
    """An error of a worker, for the head."""
    kind = next((known for known in TOLD if isinstance(error, known)), RunError)
    given = (error.reason, str(error)) if isinstance(error, RunStopped) else (str(error),)
    return msgspec.json.encode([kind.__name__, *given]).decode()


def decode_problem(text: str) -> RunStopped | GroundswellError:
    """The same error in the head. An error of another kind, such as one of the worker's store, is a `RunError`."""
    name, *given = msgspec.json.decode(text, type=list[str])
    kind = next((known for known in TOLD if known.__name__ == name), None)
    return RunError(f"a worker: {given[-1]}") if kind is None else kind(*given)
