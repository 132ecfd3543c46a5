"""THE main path: how a trial becomes asks, settlements and an outcome. Read `Run` from top to bottom.

    map, submit   a driver hands over specs; admission.py turns them into trials, new or known
    start         a trial's program is started ...
    _drive        ... and runs until it waits; what the journal holds settles at once
    _route        an ask that the journal does not hold: dispatch.py sends it in a wave and brings the settlement
    write         the settlement goes to the journal ...
    _settled      ... and once it is durable the program goes on: _drive again
    _finish       the program ended: its outcome goes to the journal ...
    _deliver      ... and once it is durable, to the driver

Everything runs on one event loop; only transports and the journal wait for anything.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar, get_args

import msgspec

from groundswell.engine import plan
from groundswell.engine.admission import Admission
from groundswell.engine.arrivals import Arrivals
from groundswell.engine.budget import Limits
from groundswell.engine.dispatch import Dispatch
from groundswell.engine.events import DriverReported, Event, Listener, RunStopping, TrialEnded, tell
from groundswell.engine.lanes import Lane, Lanes
from groundswell.engine.opened import Deliver, OpenTrial, Pending
from groundswell.engine.outcome import Outcome, decode_spec, described, outcome_of
from groundswell.engine.ports import Clock, Journal, Prices, Results
from groundswell.engine.records import Recorded, RunRecord, TrialRow
from groundswell.engine.recovery import recover
from groundswell.engine.retry import RetryPolicy
from groundswell.engine.stored import StoredRun
from groundswell.engine.travel import cancelled_by_us
from groundswell.engine.ways import Via
from groundswell.errors import ForeignAwait, ReplayMismatch, RunError, RunStopped, SettingsError, StoreError
from groundswell.program.conductor import Conductor, Wait
from groundswell.program.request import (
    UNSENDABLE,
    Fault,
    FaultKind,
    Invoke,
    Request,
    Returned,
    Settlement,
    Usage,
    canonical,
    fingerprint,
)
from groundswell.program.trial import Program, find_function

S = TypeVar("S")
R = TypeVar("R")

AT_ONCE = frozenset({"interrupted", "cancelled", "deadline"})
"""Stops that wait for nothing but what would be lost."""


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a run is carried out. None of this changes what it finds."""

    schedule: plan.Schedule = "stream"
    window: int | None = None
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    cache: bool = True
    via: Via = "live"
    batch_size: int | None = None
    """The most asks of a batch; None: what the provider takes."""
    max_reorder_usd: float | None = 1.0
    """Dollars that batches which the provider does not show any more may cost, in one session, to be sent again without
    a question. Above that, or if the price is not known, the run stops; None: there is no limit."""
    unattended: bool = False
    """Whether a server that finds it unfinished goes on with it by itself."""

    def __post_init__(self) -> None:
        for name, value, known in (("via", self.via, Via), ("schedule", self.schedule, plan.Schedule)):
            if value not in get_args(known):
                raise SettingsError(f"{name} {value!r}: there are {', '.join(get_args(known))}")
        if self.batch_size is not None and self.batch_size < 1:
            raise SettingsError(f"batch_size {self.batch_size}: at least one request must fit into a batch")
        if self.max_reorder_usd is not None and not self.max_reorder_usd >= 0:
            raise SettingsError(
                f"max_reorder_usd {self.max_reorder_usd:g}: give dollars, at least 0, or None for no limit"
            )
        if self.window is not None and self.window < 1:
            raise SettingsError(
                f"window {self.window}: at least one trial must be open; leave it out for a good number"
            )


class Run(StoredRun):
    """One execution of an experiment. A driver submits trials to it and gets their outcomes."""

    def __init__(
        self,
        record: RunRecord,
        journal: Journal,
        lanes: Lanes,
        clock: Clock,
        options: RunOptions,
        *,
        results: Results,
        end: Callable[[Run, BaseException | None], Awaitable[None]],
        numbers: tuple[int, int],
        save_sources: Callable[[RunRecord], None],
        accept_changes: bool = False,
        parent: Journal | None = None,
        prices: Prices | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        super().__init__(record, results)
        self.counters = record.counters
        self.options = options
        self.journal = journal
        self.lanes = lanes
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self._end = end
        self.listeners = listeners
        self.open: dict[int, OpenTrial] = {}
        self.expected: int | None = None
        self._said: dict[str, str] = {}
        self.admission = Admission(self, numbers[0], parent, save_sources, accept_changes)
        self.dispatch = Dispatch(self, numbers[1], prices)
        self.stopping: RunStopped | None = None
        self.error: Exception | None = None
        self._opening: asyncio.Task[None] | None = None
        self._landed: asyncio.Future[None] | None = None
        self.committing = 0
        self._calling = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # What a driver uses.

    async def map(
        self, program: Program[S, R], specs: Iterable[S], *, replicates: int = 1, ordered: bool = True
    ) -> AsyncGenerator[Outcome[R], None]:
        """Run a program on every spec, and yield the outcomes in the order of the specs.

        Specs are taken from the iterable as trials end, so there may be millions. With `ordered=False`
        outcomes come as they are ready; then nothing that is decided from them can be reproduced.
        """
        arrivals = Arrivals(ordered)
        self.admission.maps.add(arrivals)
        feeder = self.spawn(self.admission.feed(program, specs, replicates, arrivals))
        try:
            while (outcome := await arrivals.next()) is not None:
                self.admission.made_room()
                yield outcome
        except GeneratorExit:  # the driver left by its own choice
            self.admission.abandon(arrivals)
            raise
        finally:
            feeder.cancel()
            self.admission.maps.discard(arrivals)

    async def submit(self, program: Program[S, R], spec: S, *, key: str | None = None) -> Outcome[R]:
        """Run a program on one spec and wait for its outcome. A key of your own must be unique in the run."""
        return await self.admission.submit(program, spec, key)

    def relies_on(self, program: Program[Any, Any], parts: Sequence[Program[Any, Any]]) -> None:
        """Say which programs a program calls that its own module does not show: settings may name them.

        If one of them has changed when the run is resumed, that is refused; or, if changes are accepted, the trials of
        the program are scored anew.
        """
        self.admission.relies_on(program, parts)

    async def keep(self, name: str, body: str) -> None:
        """Keep something with the run, durably: a checkpoint, that a driver goes on from instead of beginning anew.

        A driver that does so must come to the same from there as from the beginning. What is kept goes with the run,
        and before a run is resumed with changed code, or with new attempts at what is missing.
        """
        await self.journal.keep(name, body)

    def report(self, done: int, figures: Mapping[str, float], words: str, *, who: str = "") -> None:
        """Say how far a driver is, in its own terms; displays show the words, and listeners get the figures.

        Of several that report, as the learners of a training, `who` tells them apart: each has a line of its own. What
        is said in nobody's name stands until somebody reports.
        """
        self._said.pop("", None)
        self._said[who] = words
        self.emit(
            lambda: DriverReported(
                run=self.record.id, at=self.clock.wall(), done=done, figures=dict(figures), who=who, words=words
            )
        )

    @property
    def words(self) -> str:
        """What was last reported: a line for each that did."""
        return "\n".join(self._said.values())

    async def end(self, error: BaseException | None = None) -> None:
        """End this session of the run, as leaving its engine does, so that the run can be opened again."""
        await self._end(self, error)

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        await self._end(self, error)

    def lane_of(self, request: Request) -> Lane:
        """The way that a request goes, or would; raises `SettingsError` for a model that cannot be reached."""
        return self.lanes.of(request, self.options.via)

    def price(self, request: Request, usage: Usage) -> float | None:
        """What a request would cost, the way it would go, if it used so much: in dollars, if that is known."""
        return self.dispatch.purse.price(self.lane_of(request), request, usage)

    def stop(self, reason: str, why: str) -> None:
        """Send nothing more; journal what comes back; then let the driver end with `RunStopped`."""
        if self.stopping is None:
            self.stopping = RunStopped(reason, why)
            self.emit(lambda: RunStopping(run=self.record.id, at=self.clock.wall(), reason=reason, why=why))
        self.dispatch.schedule()
        self.halt_when_still()

    def abort(self, error: Exception) -> None:
        """End with an error, as a stop does; if it is the store's, at once. The run can be resumed."""
        if self.error is None:
            self.error = error
            if isinstance(error, StoreError):
                for task in self._tasks:
                    task.cancel()
                self._tell(error)
            else:
                self.dispatch.schedule()
                self.halt_when_still()

    async def opened(self) -> None:
        """Go on with what an earlier session left, once."""
        if self.error is not None:
            raise self.error
        if self._opening is None:
            self._opening = self.loop.create_task(recover(self))
        await asyncio.shield(self._opening)

    async def land(self) -> None:
        """Send nothing more, and wait for the replies that would be paid for and lost."""
        if not isinstance(self.error, StoreError):
            self.stopping = self.stopping or self._ended()
            self.dispatch.schedule()
            self._landed = self.loop.create_future()
            self.halt_when_still()
            await self._landed

    @property
    def over(self) -> RunStopped | Exception | None:
        """Why no more work is taken, if none is."""
        return self.error or self.stopping

    async def close(self) -> None:
        """Let go of everything; what is unfinished stays in the store."""
        self.dispatch.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.dispatch.note_cut_off()
        for trial in self.open.values():
            trial.drop()
        if self._opening is not None:
            self._opening.cancel()
        try:
            if not isinstance(self.error, StoreError):
                await self.journal.flush()
        finally:
            self.journal.close()
            self.admission.close()
            self.error = self.error or self._ended()

    def _ended(self) -> RunStopped:
        return RunStopped("ended", f"run {self.record.title!r} has ended: open it again to go on")

    # The path of a trial.

    def start(
        self,
        row: TrialRow,
        program: Program[Any, Any],
        deliver: Deliver | None,
        recorded: dict[str, Recorded] | None = None,
        inherited: dict[str, Recorded] | None = None,
    ) -> OpenTrial:
        """Open a trial and run it up to its first waits; one that is new, once it is durable."""
        given = decode_spec(program, row.spec)
        conductor = Conductor(program, given, row.key, self.record.seed)
        trial = OpenTrial(row, program, given, conductor, deliver=deliver, recorded=recorded, inherited=inherited)
        self.open[row.id] = trial
        if recorded is None:
            self.committing += 1
            self.journal.add_trial(row, self._started, trial)
        else:
            self._drive(trial, conductor.start())
            trial.torn = False
        return trial

    def _started(self, trial: OpenTrial) -> None:
        """A trial is known to the store: it can begin. Before that, nobody would know what it had sent."""
        self.committing -= 1
        if trial.conductor is not None and self.error is None:
            self._drive(trial, trial.conductor.start())
        self.dispatch.schedule()

    def _drive(self, trial: OpenTrial, waits: list[Wait]) -> None:
        """Run a program until it waits for something that the journal does not hold."""
        conductor = trial.conductor
        assert conductor is not None
        try:
            while waits:
                met = [self._meet(trial, conductor, wait) for wait in waits]
                waits = conductor.advance() if any(met) else []
            if conductor.ended:
                self._finish(trial, conductor)
        except Exception as error:  # noqa: BLE001  nobody waits for what drives a trial: unheard, it would hang the run
            self.abort(error)

    def _meet(self, trial: OpenTrial, conductor: Conductor, wait: Wait) -> bool:
        """Settle an ask at once, if that can be done; otherwise send it on its way."""
        try:
            if trial.recorded and self._replay(trial, conductor, wait):
                return True
            pending = Pending(trial, wait)
        except UnicodeEncodeError:
            conductor.settle(wait, UNSENDABLE)
            return True
        self._route(pending)
        return False

    def _replay(self, trial: OpenTrial, conductor: Conductor, wait: Wait) -> bool:
        """Settle an ask from the journal, if it is there and is the same ask."""
        known = trial.recorded.pop(wait.path, None) if trial.recorded else None
        if known is None:
            return False
        if known[0] != fingerprint(wait.request):
            if trial.lenient:
                return False
            raise ReplayMismatch(
                trial.key,
                wait.path,
                f"{trial.program} now makes another request here than the one that run {self.record.title!r} "
                "recorded; restore the program, or start a new run or a fork",
            )
        self.counters.replayed += 1
        trial.heard = trial.heard or type(known[1]) is not Returned
        conductor.settle(wait, known[1])
        return True

    def _route(self, pending: Pending) -> None:
        """Find out where the answer to an ask comes from."""
        inherited = pending.trial.inherited
        if inherited:
            known = inherited.pop(pending.wait.path, None)
            if known is not None and known[0] == pending.print:
                self.counters.cached += 1
                self.write(pending, known[1], None)
                return
        if type(pending.wait.request) is Invoke:
            self._calling += 1
            self.spawn(self._call(pending, pending.wait.request))
        else:
            self.dispatch.take(pending)

    async def _call(self, pending: Pending, request: Invoke) -> None:
        """Run a registered function. What it returns goes through JSON, so that a replay gives the same."""
        function = find_function(request.function)
        if function is None:
            self._calling -= 1
            raise SettingsError(f"no function {request.function!r} is registered: import the module that has it")
        settlement: Settlement
        try:
            arguments, options = deepcopy((request.arguments, request.options or {}))  # the program keeps its own
            if inspect.iscoroutinefunction(function):
                value = await function(*arguments, **options)
            else:
                value = await asyncio.to_thread(_guarded, function, arguments, options)
            settlement = Returned(msgspec.json.decode(canonical(value)))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and cancelled_by_us():
                raise
            # the edge of user code: it becomes the program's CallFailed
            settlement = Fault(FaultKind.CALL, f"{request.function}: {described(error)}")
        self._calling -= 1
        self.write(pending, settlement, None)

    def write(self, pending: Pending, settlement: Settlement, wave: int | None) -> None:
        """Make a settlement durable before its program sees it."""
        if wave is None and type(settlement) is not Returned:
            pending.trial.reused = True
        try:
            self.journal.add_settlement(
                pending.ask, pending.print, wave, settlement, self._settled, pending, settlement
            )
        except UnicodeEncodeError:
            garbled = Fault(FaultKind.GARBLED, "the reply holds text that is not valid Unicode", None, pending.attempts)
            self.counters.failed += 1
            self.journal.add_settlement(pending.ask, pending.print, wave, garbled, self._settled, pending, garbled)
        self.committing += 1

    def _settled(self, pending: Pending, settlement: Settlement) -> None:
        """A settlement is durable: the program goes on."""
        self.committing -= 1
        self.dispatch.durable(pending)
        conductor = pending.trial.conductor
        if conductor is not None and self.error is None:
            pending.trial.heard = pending.trial.heard or type(settlement) is not Returned
            conductor.settle(pending.wait, settlement)
            self._drive(pending.trial, conductor.advance())
        self.dispatch.schedule()

    def _finish(self, trial: OpenTrial, conductor: Conductor) -> None:
        """A program ended: write its outcome."""
        if isinstance(conductor.error, ForeignAwait | SettingsError):
            self.abort(conductor.error)
            return
        body, outcome = outcome_of(trial.program, trial.key, trial.given, conductor)
        kind = None if outcome.fault is None else outcome.fault.kind.value
        self._count(trial, kind)
        self.dispatch.purse.ended(trial)
        trial.conductor = None
        del self.open[trial.id]
        self.committing += 1
        if body == trial.was:
            self._deliver(trial, outcome)
        else:
            self.journal.add_outcome(trial.id, kind, body, self._deliver, trial, outcome)
        self.admission.made_room()

    def _count(self, trial: OpenTrial, kind: str | None) -> None:
        """Count an outcome, instead of the one that the trial had if it was scored again."""
        if trial.was is not None:
            self.counters.usable -= trial.was_fault is None
            self.counters.missing -= trial.was_fault is not None
        self.counters.usable += kind is None
        self.counters.missing += kind is not None

    def _deliver(self, trial: OpenTrial, outcome: Outcome[Any]) -> None:
        """An outcome is durable: hand it to the driver."""
        self.committing -= 1
        trial.outcome = outcome
        if trial.deliver is not None:
            trial.deliver(outcome)
        if self.listeners:
            kind = outcome.fault.kind.value if outcome.fault else None
            self.emit(lambda: TrialEnded(run=self.record.id, at=self.clock.wall(), trial=trial.key, fault=kind))
        self.admission.made_room()
        self.dispatch.schedule()

    # Standing still, telling, and tasks.

    def quiet(self) -> bool:
        """Whether no program can go on before something is sent."""
        return not (self.committing or self._calling or self.admission.busy)

    @property
    def recovering(self) -> bool:
        """Whether what an earlier session left is still being taken up."""
        return self._opening is not None and not self._opening.done()

    def halt_when_still(self) -> None:
        """After a stop, once everything has landed and is durable: tell the driver.

        A batch whose results are coming in lands too: else one with faults that stop a run would stop it for ever.
        But who wants an end now does not wait for them: they may come slowly, and can be collected by another session.
        """
        unloading = self.dispatch.batches.unloading and not (self.stopping and self.stopping.reason in AT_ONCE)
        landing = self.dispatch.landing or unloading
        if self.over is not None and not (landing or self.committing or self._calling):
            self._tell(self.over)

    def _tell(self, over: Exception) -> None:
        self.admission.fail(over)
        if self._landed is not None and not self._landed.done():
            self._landed.set_result(None)

    def emit(self, make: Callable[[], Event]) -> None:
        """Tell the listeners, if there are any."""
        if self.listeners:
            tell(self.listeners, make())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do work beside; if it fails, the run does."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._reap)
        return task

    def follow(self, work: Coroutine[Any, Any, None]) -> None:
        """As `spawn`, for work that there is much of: it does not raise, and calls `unfollow` when it is done."""
        self._tasks.add(self.loop.create_task(work))

    def unfollow(self) -> None:
        """The current task is done."""
        self._tasks.discard(asyncio.current_task())

    def _reap(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if not task.cancelling():  # nobody here did: what it awaited was cancelled, and it would be waited for
                self.abort(
                    RunError("a transport, or an iterable of specs, raised CancelledError: see that it does not")
                )
        elif isinstance(error := task.exception(), Exception):
            self.abort(error)


def _guarded(function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a function in a thread. No future can carry a StopIteration: it would be waited for without end."""
    try:
        return function(*arguments, **options)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error
