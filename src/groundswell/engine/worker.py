"""A worker: runs the trials that the heads of runs give out (head.py), each run in a shard of its own.

serve    looks for runs with open trials, and for shards that a worker has left
Session  a shard of a run, with an engine's run of its own: takes trials, and runs them until the head stops it
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from groundswell.engine.driver import check_stored_module, load_module, load_stored_driver
from groundswell.engine.engine import Engine, refuse_changed
from groundswell.engine.head import WORKERS, channel, encode_problem, place_name
from groundswell.engine.ports import Bell, Look, Task, Work
from groundswell.engine.records import Amounts, RunRecord
from groundswell.errors import RunError, RunStopped, SourceChanged, StoreError
from groundswell.program.source import same_code
from groundswell.program.trial import find_program

T = TypeVar("T")

LOOK_EVERY = 0.5
FINAL = frozenset({"completed", "partial", "stopped", "interrupted", "failed"})
ASK_EVERY = 0.1
"""Seconds between two questions for a part of the budget, if requests were refused meanwhile."""
TAKES = 8
"""A worker takes more trials when this part of its room is free."""


class Worker:
    """Runs trials of one run, or of all runs of a store, until it is stopped or the run has ended.

    `say` is told what happens, for people.
    """

    def __init__(
        self,
        engine: Engine,
        work: Work,
        *,
        run: str | None = None,
        workers: int = 0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`workers`: how many workers there will be, if that is known."""
        self.engine = engine
        self.work = work
        self.workers = workers
        self._run = run
        self._say = say
        self._sessions: set[Session] = set()
        self._refused: dict[str, Exception] = {}
        self._failed: StoreError | None = None
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="groundswell-work")
        self._ending = False
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.bell: Bell = work.bell(WORKERS, self._heard)

    def stop(self) -> None:
        """Send nothing more, wait for the replies in flight, and leave the rest to other workers."""
        self._ending = True
        for session in self._sessions:
            session.stop()
        self._news.set()

    async def call(self, function: Callable[..., T], *given: Any, **named: Any) -> T:
        """Call a function of the store, on a thread that functions of programs do not occupy."""
        return await self._loop.run_in_executor(self._threads, partial(function, *given, **named))

    async def serve(self) -> None:
        """Work until there is nothing more to do.

        Raises the error of the store, or of a run that it was to work on alone.
        """
        looked_at = 0.0
        try:
            while not self._ending:
                self._news.clear()
                now = self._loop.time()
                if not self._sessions or now - looked_at >= LOOK_EVERY:
                    looked_at = now
                    await self._find_work()
                if self._run is not None and await self._is_over(self._run):
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), LOOK_EVERY)
        finally:
            self.stop()
            await asyncio.gather(*(session.ended for session in self._sessions), return_exceptions=True)
            await self.call(self.bell.close)
            self._threads.shutdown()
        if self._failed is not None:
            raise self._failed
        if self._run is not None and (error := self._refused.get(self._run)) is not None:
            raise error

    async def _find_work(self) -> None:
        """Take a shard of each run that has work, and those that workers have left."""
        for run in await self.call(self.work.runs):
            if self._run not in (None, run) or run in self._refused:
                continue
            try:
                record = await self.call(self.engine.store.runs.get, run)
                if not any(session.record.id == run and not session.left for session in self._sessions):
                    self._load(record)
                    if not await self._open(record, left=False):
                        continue
                while not self._ending and await self._open(record, left=True):
                    pass
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001  also what the module of a driver raised
                self._refuse(run, error)

    def _load(self, record: RunRecord) -> None:
        """Load the driver of a run, and with it its programs. Refuse code that is not what the run was started with."""
        assert record.driver is not None
        refuse_changed(record, load_stored_driver(record.driver, record.location))

    async def _open(self, record: RunRecord, *, left: bool) -> bool:
        """Take a shard. Returns whether there was one."""
        taken = await self.call(self.work.take_shard, record, left=left)
        if taken is None:
            return False
        number, counters = taken
        mine = await self.call(self.engine.store.runs.get, record.id)
        mine.counters = counters
        session = Session(self, mine, number, left=left)
        self._sessions.add(session)
        session.begin(self._closed)
        self._say(f"run {record.title}: takes over shard {number}" if left else f"run {record.title}: shard {number}")
        if self._ending:
            session.stop()
        return True

    def _closed(self, session: Session, error: Exception | None) -> None:
        """A session has ended."""
        self._sessions.discard(session)
        if isinstance(error, StoreError):
            self._failed = error
            self.stop()
        elif error is not None and not isinstance(error, RunStopped):
            self._refuse(session.record.id, error)
            for other in self._sessions:  # its own shard of the run may have no trials, and would wait for some
                if other.record.id == session.record.id:
                    other.stop()
        self._news.set()

    def _refuse(self, run: str, error: Exception) -> None:
        """This worker cannot work on a run."""
        self._refused[run] = error
        self._say(f"run {run}: {error}. This worker works on it no more")

    async def _is_over(self, run: str) -> bool:
        """Whether there is nothing more to do for a run."""
        if self._sessions:
            return False
        if run in self._refused:
            return True
        record = await self.call(self.engine.store.runs.find, run)
        return record is None or record.status in FINAL

    def _heard(self) -> None:
        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._news.set()
        for session in self._sessions:
            session.wake()


class Session:
    """A shard that this worker holds. `left`: a worker has left it; no more trials are taken for it than it has."""

    def __init__(self, worker: Worker, record: RunRecord, number: int, *, left: bool) -> None:
        self.record = record
        self.left = left
        self._worker = worker
        self._number = number
        self._run = worker.engine.shard(record, number)
        self._mine: set[int] = set()
        self._unknown: Collection[int] = ()
        self._checked: set[str] = set()
        self._granted_at, self._broke = -1.0, False
        self._run.dispatch.spending.when_refused = self._wake_for_grant
        self._news = asyncio.Event()
        self.ended: asyncio.Task[None]

    def begin(self, closed: Callable[[Session, Exception | None], None]) -> None:
        """Start to work."""
        self.ended = asyncio.get_running_loop().create_task(self._work(closed))

    def stop(self) -> None:
        """Send nothing more."""
        if self._run.over is None:
            self._run.stop("interrupted", "the worker was stopped")
        self.wake()

    def wake(self) -> None:
        """There may be news."""
        self._news.set()

    async def _work(self, closed: Callable[[Session, Exception | None], None]) -> None:
        run, worker = self._run, self._worker
        error: Exception | None = None
        try:
            try:
                await self._take_over()
                await self._go_on()
            except Exception as raised:  # noqa: BLE001  whatever keeps this worker from its run, the head is to know it
                error = raised
            error = run.error or error
            stopped = run.stopping
            if not isinstance(error, StoreError):
                await run.wait_for_live()
            await run.close()
            if error is None and stopped is not None and stopped.reason not in ("ended", "interrupted"):
                error = stopped
            problem = None if error is None else encode_problem(error)
            counters = None if isinstance(error, StoreError) else run.counters
            ends_run = isinstance(error, RunStopped)
            release = partial(worker.work.release, counters=counters, problem=problem, ends_run=ends_run)
            await worker.call(release, self.record, self._number)
            worker.bell.ring(channel(self.record))
        except Exception as raised:  # noqa: BLE001  as above
            error = error or raised
        closed(self, error)

    async def _take_over(self) -> None:
        """Continue the trials of the shard, if it had some, and count what their worker may have sent."""
        run = self._run
        run.context.recovering = True
        try:
            if self.left:
                trials = (await self._look()).trials
                await self._start(await self._worker.call(self._worker.work.tasks, trials), again=True)
        finally:
            run.context.recovering = False
        if run.over is not None:
            return  # not all of them were started: who takes the shard next counts what may have been sent
        run.dispatch.reuse.begin()
        run.dispatch.recovered(left_over=False)

    async def _go_on(self) -> None:
        """Take trials as there is room for them, until the run is over here."""
        run, looked_at = self._run, 0.0
        while run.over is None and (self._mine or not self.left):
            self._news.clear()
            now = run.loop.time()
            if now - looked_at >= LOOK_EVERY:
                looked_at = now
                before = set(self._mine)
                found = await self._look()
                if found.stopped or found.options != self.record.options:  # the next session has the new ones
                    return
                await self._compare(before, found.trials)
                await self._renew_grant()
            elif run.dispatch.spending.refused and self._may_ask_again():
                await self._renew_grant()
            if not self.left:
                await self._take_more()
            wait = ASK_EVERY if run.dispatch.spending.refused else LOOK_EVERY
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), wait)

    async def _look(self) -> Look:
        """Whether the head has stopped this shard, and the open trials that it has in the store."""
        work = self._worker.work
        return await self._worker.call(work.look, self.record, self._number, self._run.admission.window)

    async def _compare(self, before: Collection[int], trials: Collection[int]) -> None:
        """Drop trials that the head has withdrawn, and start those whose taking was committed without an answer.

        `before`: the trials that this shard had before `trials` were read.
        """
        run = self._run
        withdrawn = [trial for number, trial in run.open.items() if number in before and number not in trials]
        for trial in withdrawn:
            trial.drop()
            del run.context.open[trial.id]
            self._mine.discard(trial.id)
        if withdrawn:
            run.dispatch.forget_dropped()
        unknown = set(trials) - self._mine
        if found := unknown & set(self._unknown):
            await self._start(await self._worker.call(self._worker.work.tasks, found), again=True)
        self._unknown = unknown

    async def _renew_grant(self) -> None:
        """Take a part of the budget, and give back what is too much.

        The run is stopped if there is not enough for the next request, and nobody sends any.
        """
        run, spending = self._run, self._run.dispatch.spending
        if not spending.limited:
            return
        limits = run.options.limits
        whole = Amounts(
            -1 if limits.calls is None else limits.calls,
            -1 if limits.tokens is None else limits.tokens,
            -1.0 if limits.usd is None else limits.usd,
        )
        why = spending.refused
        used, needed = spending.needs
        needed = needed if run.open else Amounts()
        spending.being_lent = True
        try:
            work = self._worker.work
            grant = await self._worker.call(work.grant, self.record, self._number, whole, used, needed)
        finally:
            spending.being_lent = False
        self._granted_at, self._broke = run.loop.time(), grant.refused
        spending.lend(grant)
        if grant.used_up and why is not None and not run.in_flight:
            run.stop("budget", why)
        run.dispatch.schedule()

    def _may_ask_again(self) -> bool:
        """Whether it is time to ask for more of the budget because a request was refused."""
        wait = LOOK_EVERY if self._broke else ASK_EVERY
        return self._run.loop.time() - self._granted_at >= wait

    def _wake_for_grant(self) -> None:
        if self._may_ask_again():
            self.wake()

    async def _take_more(self) -> None:
        run, worker = self._run, self._worker
        while run.over is None:
            window = run.admission.window
            room = window - len(run.open)
            if room < max(1, window // TAKES):
                return
            tasks = await worker.call(worker.work.take, self.record, self._number, room, worker.workers)
            if not tasks:
                return
            await self._start(tasks)

    async def _start(self, tasks: Sequence[Task], *, again: bool = False) -> None:
        """Run trials up to their first requests. `again`: all of them may have been started before."""
        run = self._run
        self._mine.update(task.row.id for task in tasks)
        self._load_programs({task.row.program for task in tasks})
        begun = [task.row.id for task in tasks if again or task.again]
        recorded = await run.journal.recorded(begun) if begun else {}
        inherited = await run.admission.inherited([task.row.key for task in tasks])
        for row, _ in tasks:
            if run.over is not None:
                return
            program = find_program(row.program)
            assert program is not None
            deliver = partial(self._trial_ended, row.id)
            run.start(row, program, deliver, recorded.get(row.id, {}), inherited.get(row.key))

    def _trial_ended(self, trial: int, _: Any) -> None:
        """An outcome is durable: the head may have it."""
        self._mine.discard(trial)
        self._worker.bell.ring(channel(self.record))
        window = self._run.admission.window
        if window - len(self._run.open) >= window // TAKES or not self._mine:
            self._news.set()

    def _load_programs(self, names: Iterable[str]) -> None:
        """Load programs that are not in the driver's module, and refuse those that are not what the head has."""
        new = set(names) - self._checked
        if not new:
            return
        sources = self._worker.engine.store.runs.get(self.record.id).sources
        self.record.sources.update(sources)
        for name in new:
            where = sources.get(place_name(name))
            if find_program(name) is None and where is not None:
                check_stored_module(where, f"program {name}")
                load_module(where, f"program {name}")
            program = find_program(name)
            if program is None:
                raise RunError(f"program {name} was not found: install the package that has it on this machine")
            if not same_code(sources.get(name, program.source), program.source):
                raise SourceChanged(
                    f"program {name} is not the same here as where run {self.record.title!r} is driven: install the "
                    "same version on both"
                )
        self._checked |= new
