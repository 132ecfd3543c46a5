"""The main path: from a spec through requests and replies to an outcome. Read `Run` from top to bottom.

    map, submit   the driver submits specs; admission.py turns them into trials, new or already known
    start         starts the program of a trial ...
    _drive        ... which runs until it waits; replies that the journal has are used immediately
    _meet         a request that is not in the journal: dispatch.py sends it and returns the settlement
    write         writes the settlement (reply or fault) to the journal ...
    _settled      ... and continues the program once it is durable: _drive again
    _finish       the program ended: writes its outcome to the journal ...
    _deliver      ... and hands it to the driver once it is durable

Everything runs on one event loop. Only transports and the journal do I/O.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, TypeVar

import msgspec

from groundswell.engine.admission import Admission, Outcomes
from groundswell.engine.context import SETTLED, Deliver, OpenTrial, PendingAsk, RunContext
from groundswell.engine.delivery import cancelled_by_us
from groundswell.engine.dispatch import Dispatch
from groundswell.engine.events import DriverReported, Listener, TrialEnded
from groundswell.engine.head import Crew, Head
from groundswell.engine.lanes import Lane, Lanes
from groundswell.engine.options import RunOptions
from groundswell.engine.outcome import Outcome, decode_spec, described, outcome_of
from groundswell.engine.ports import Clock, Journal, Prices, Results, Work
from groundswell.engine.records import BatchInfo, Counters, Recorded, RunRecord, TrialRow
from groundswell.engine.recovery import EarlierWaves, recover
from groundswell.engine.reuse import SharedAsks
from groundswell.engine.spending import Range, forecast
from groundswell.engine.stored import StoredRun
from groundswell.errors import ForeignAwait, ReplayMismatch, RunStopped, SettingsError, StoreError
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

NO_TEXTS: Mapping[str, str] = {}
AT_ONCE = frozenset({"interrupted", "cancelled", "deadline"})
"""Reasons to stop without waiting for batches whose results are arriving."""


class BatchInFlight(NamedTuple):
    """A batch that is at its provider, or being sent.

    sent    whether the provider has accepted it
    since   when it was sent, by the run's clock
    info    the batch at the last poll
    """

    account: str
    size: int
    sent: bool
    since: float
    info: BatchInfo | None


class GivenOut(NamedTuple):
    """What a run needs whose trials are run by workers. `left`: the trials that an earlier session gave out."""

    work: Work
    crew: Crew
    left: Collection[int]


class Run(StoredRun):
    """An open run. A driver submits trials to it and receives their outcomes.

    `Engine.run` opens one; a driver receives it as its first argument.
    """

    def __init__(
        self,
        record: RunRecord,
        journal: Journal,
        lanes: Lanes,
        clock: Clock,
        options: RunOptions,
        *,
        asked: SharedAsks,
        results: Results,
        end: Callable[[Run, BaseException | None], Awaitable[None]],
        numbers: tuple[int, int],
        save_sources: Callable[[RunRecord], None],
        accept_changes: bool = False,
        parent: Journal | None = None,
        prices: Prices | None = None,
        listeners: Sequence[Listener] = (),
        given_out: GivenOut | None = None,
    ) -> None:
        super().__init__(record, results)
        self.context = context = RunContext(record, options, journal, lanes, clock, listeners)
        context.halt_when_still = self.halt_when_still
        context.fail = self._fail
        self._end = end
        self._reported: dict[str, str] = {}
        self._opening: asyncio.Task[None] | None = None
        self._all_back: asyncio.Future[None] | None = None
        self.committing = 0
        self._calling = 0
        self.dispatch = Dispatch(
            context,
            numbers[1],
            prices,
            asked,
            settle=self.write,
            made_room=lambda: self.admission.made_room(),  # noqa: PLW0108  it is made below
            check_alias=lambda alias, model: self.admission.check_alias(alias, model),  # noqa: PLW0108  as above
            quiet=self.quiet,
        )
        context.schedule = self.dispatch.schedule
        self.head: Head | None = None
        if given_out is not None:
            self.head = Head(
                context,
                *given_out,
                save_sources=save_sources,
                made_room=lambda: self.admission.made_room(),  # noqa: PLW0108  as above
            )
        self.admission = Admission(
            context,
            self.dispatch,
            start=self.start if self.head is None else self.head.start,
            recovered=self.ensure_recovered,
            last_trial=numbers[0],
            parent=parent,
            save_sources=save_sources,
            accept_changes=accept_changes,
            head=self.head,
        )
        self.earlier_waves = EarlierWaves(context, self.dispatch)

    # State.

    @property
    def counters(self) -> Counters:
        """Counters of the run so far: trials, requests, tokens and cost."""
        return self.context.counters if self.head is None else self.head.counters

    @property
    def options(self) -> RunOptions:
        """Options of the run."""
        return self.context.options

    @property
    def clock(self) -> Clock:
        """Clock of the run."""
        return self.context.clock

    @property
    def journal(self) -> Journal:
        """Journal of the run."""
        return self.context.journal

    @property
    def listeners(self) -> Sequence[Listener]:
        """Functions that receive the events of the run."""
        return self.context.listeners

    @property
    def open(self) -> Mapping[int, OpenTrial]:
        """Open trials, by number."""
        return self.context.open

    @property
    def expected(self) -> int | None:
        """Total number of trials, if known. A driver may set it, for progress and forecasts."""
        return self.context.expected

    @expected.setter
    def expected(self, trials: int | None) -> None:
        self.context.expected = trials

    @property
    def stopping(self) -> RunStopped | None:
        """Why the run stopped sending requests; None while it sends."""
        return self.context.stopping

    @property
    def error(self) -> Exception | None:
        """The error that ended the run, if any."""
        return self.context.error

    @property
    def over(self) -> RunStopped | Exception | None:
        """Why the run accepts no more trials; None while it does."""
        return self.context.over

    @property
    def in_flight(self) -> int:
        """Number of requests in flight, including those in batches."""
        return self.dispatch.in_flight

    @property
    def live_in_flight(self) -> int:
        """Number of live requests in flight. Their replies are lost if the process ends now."""
        return self.dispatch.live_in_flight

    @property
    def batches_in_flight(self) -> Sequence[BatchInFlight]:
        """The batches that are at their providers, or being sent."""
        return [
            BatchInFlight(
                order.intent.account, len(order.intent.asks), order.receipt is not None, order.since, order.info
            )
            for order in self.dispatch.batches.orders.values()
        ]

    @property
    def waits(self) -> Sequence[tuple[str, float | None]]:
        """Accounts that accept no request now, with the seconds to wait; None: until they answer again."""
        return self.context.lanes.waits()

    @property
    def lacks_workers(self) -> bool:
        """Whether trials wait for a worker to come."""
        return self.head is not None and self.head.lacks_workers

    def forecast(self, trials: int) -> Range | None:
        """Forecast of the cost of the run after `trials` trials; None until enough trials have ended."""
        counters = self.counters
        begun = sum(trial.usd for trial in self.open.values())
        return forecast(counters.usd, begun, trials - counters.settled, self.dispatch.spending.tally)

    # For drivers.

    async def map(
        self,
        program: Program[S, R],
        specs: Iterable[S],
        *,
        replicates: int = 1,
        ordered: bool = True,
        goes_on: bool = False,
    ) -> AsyncGenerator[Outcome[R], None]:
        """Run a program on every spec and yield the outcomes.

        Specs are read from the iterable as trials end, so there may be millions.

        Args:
            program: The program.
            specs: Specs of the trials.
            replicates: Number of trials for each spec.
            ordered: Yield outcomes in the order of the specs. If False, outcomes are yielded as they are ready, and
                decisions that depend on their order cannot be reproduced.
            goes_on: Continue the last `map`, which has ended: trials get the keys that they would have if all specs
                had been given at once. A later session may then divide the specs differently.

        Yields:
            The outcome of each trial.

        Raises:
            RunStopped: If the run stops before all trials have ended.
        """
        arrivals = Outcomes(ordered)
        self.admission.maps.add(arrivals)
        feeder = self.spawn(self.admission.feed(program, specs, replicates, arrivals, goes_on=goes_on))
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
        """Run a program on one spec and wait for its outcome.

        Args:
            program: The program.
            spec: Spec of the trial.
            key: Key of the trial, unique in the run. Default: a hash of the spec.

        Returns:
            The outcome of the trial.

        Raises:
            DuplicateKey: If the key was already submitted.
            RunStopped: If the run stops before the trial has ended.
        """
        return await self.admission.submit(program, spec, key)

    def relies_on(self, program: Program[Any, Any], parts: Sequence[Program[Any, Any]]) -> None:
        """Declare programs that a program calls and that its own module does not show, for example from settings.

        If one of them has changed when the run is resumed, the resume is refused. If changes are accepted, the trials
        of the program are scored again.
        """
        self.admission.relies_on(program, parts)

    async def keep(self, name: str, body: str) -> None:
        """Store a checkpoint with the run, from which a resumed driver can continue. `StoredRun.kept` reads it.

        A driver must get the same results from a checkpoint as from the start. Checkpoints are deleted with the run,
        and before a run is resumed with changed code or with `retry_missing`.

        Args:
            name: Name of the checkpoint. A later one with the same name replaces it.
            body: Text to store.
        """
        await self.journal.keep(name, body)

    def report(
        self, done: int, figures: Mapping[str, float], words: str, *, who: str = "", texts: Mapping[str, str] = NO_TEXTS
    ) -> None:
        """Report the progress of a driver.

        Args:
            done: Steps that are done.
            figures: Numbers for listeners.
            words: Text for the progress display.
            who: Which part of the driver reports, for example one of several learners. Each has its own line. A line
                without a name is replaced by the next report.
            texts: Results so far for listeners, by name, for example the best prompt.
        """
        self._reported.pop("", None)
        self._reported[who] = words
        self.context.emit(
            lambda: DriverReported(
                run=self.record.id,
                at=self.clock.wall(),
                done=done,
                figures=dict(figures),
                who=who,
                words=words,
                texts=dict(texts),
            )
        )

    @property
    def words(self) -> str:
        """The last reports of the driver, one line for each part."""
        return "\n".join(self._reported.values())

    async def end(self, error: BaseException | None = None) -> None:
        """End this session of the run, as leaving the engine does. The run can then be opened again."""
        await self._end(self, error)

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        await self._end(self, error)

    def lane_of(self, request: Request) -> Lane:
        """The lane of a request. Raises `SettingsError` if the model cannot be reached."""
        return self.context.lane_of(request)

    def price(self, request: Request, usage: Usage) -> float | None:
        """Price in dollars of a request with this usage; None if it is unknown."""
        return self.dispatch.spending.price(self.lane_of(request), request, usage)

    def stop(self, reason: str, why: str) -> None:
        """Stop the run: send nothing more, journal the replies in flight, then raise `RunStopped` in the driver.

        Args:
            reason: Short reason, such as `cancelled` or `budget`. It determines the status of the run.
            why: Message for the user.
        """
        self.context.stop(reason, why)

    def abort(self, error: Exception) -> None:
        """Stop the run with an error, after the replies in flight unless the store failed. It can be resumed."""
        self.context.abort(error)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a task in the background. If it fails, the run fails."""
        return self.context.spawn(work)

    async def pause(self, seconds: float) -> None:
        """Sleep, by the run's clock."""
        await self.context.pause(seconds)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the run."""
        return self.context.loop

    @property
    def busy(self) -> bool:
        """Whether there are open trials or an unfinished `map`."""
        return bool(self.open or self.admission.maps)

    async def ensure_recovered(self) -> None:
        """Recover what an earlier session left unfinished, once."""
        if self.error is not None:
            raise self.error
        if self.head is not None:
            if not self.head.working:
                self.head.working = True
                self.spawn(self.head.follow())
            return
        if self._opening is None:
            work = recover(self.context, self.admission, self.dispatch, self.earlier_waves)
            self.context.recovering = True
            self._opening = self.context.loop.create_task(work)
        await asyncio.shield(self._opening)

    async def wait_for_live(self) -> None:
        """Send nothing more, and wait for live replies, which would otherwise be paid for and lost."""
        if not isinstance(self.error, StoreError):
            self.context.stopping = self.stopping or self._ended()
            self.dispatch.schedule()
            self._all_back = self.context.loop.create_future()
            self.halt_when_still()
            await self._all_back

    async def call_off(self) -> None:
        """The driver has returned: cancel the batches that are still at providers."""
        await self.journal.flush()  # what was about to leave does not
        self.earlier_waves.dismiss()
        await self.dispatch.batches.call_off()

    async def close(self) -> None:
        """Release all resources. Unfinished trials stay in the store."""
        self.dispatch.close()
        await self.context.end_tasks()
        if self.head is not None:
            await self.head.close()
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
            self.context.error = self.error or self._ended()

    def _ended(self) -> RunStopped:
        return RunStopped("ended", f"run {self.record.title!r} has ended: open it again to continue")

    # The path of a trial.

    def start(
        self,
        row: TrialRow,
        program: Program[Any, Any],
        deliver: Deliver | None,
        recorded: dict[str, Recorded] | None = None,
        inherited: dict[str, Recorded] | None = None,
    ) -> OpenTrial:
        """Open a trial and run it up to its first requests. A new trial is committed first."""
        given = decode_spec(program, row.spec)
        conductor = Conductor(program, given, row.key, self.record.seed)
        trial = OpenTrial(row, program, given, conductor, deliver=deliver, recorded=recorded, inherited=inherited)
        self.context.open[row.id] = trial
        if recorded is None:
            self.committing += 1
            self.context.journal.add_trial(row, self._started, trial)
        else:
            self._drive(trial, conductor.start())
            trial.was_open = False
        return trial

    def _started(self, trial: OpenTrial) -> None:
        """A new trial is durable: start it. Before that, a crash would lose track of its requests."""
        self.committing -= 1
        if trial.conductor is not None and self.context.error is None:
            self._drive(trial, trial.conductor.start())
        self.dispatch.schedule()

    def _drive(self, trial: OpenTrial, waits: list[Wait]) -> None:
        """Run a program until it waits for something that is not in the journal."""
        conductor = trial.conductor
        assert conductor is not None
        try:
            while waits:
                settled = False
                for wait in waits:
                    settled = self._meet(trial, conductor, wait) or settled
                waits = conductor.advance() if settled else []
            if conductor.ended:
                self._finish(trial, conductor)
        except Exception as error:  # noqa: BLE001  no caller handles it: unreported, it would hang the run
            self.abort(error)

    def _meet(self, trial: OpenTrial, conductor: Conductor, wait: Wait) -> bool:
        """Settle a request immediately if possible; otherwise pass it on. Returns whether it is settled."""
        try:
            if trial.recorded and self._replay(trial, conductor, wait):
                return True
            pending = PendingAsk(trial, wait)
        except UnicodeEncodeError:
            conductor.settle(wait, UNSENDABLE)
            return True
        if trial.inherited and self._inherit(trial.inherited, pending):
            return False
        if type(wait.request) is Invoke:
            self._calling += 1
            self.spawn(self._call(pending, wait.request))
            return False
        context = self.context
        pending.lane = context.lanes.of(pending.request, context.options.via)
        if self.earlier_waves.asks and self.earlier_waves.wait_for(pending):
            self.dispatch.rejoin(pending)
        else:
            self.dispatch.take(pending)
        return False

    def _replay(self, trial: OpenTrial, conductor: Conductor, wait: Wait) -> bool:
        """Settle a request from the journal, if it has the same request at this position."""
        known = trial.recorded.pop(wait.path, None) if trial.recorded else None
        if known is None:
            return False
        if known[0] != fingerprint(wait.request):
            if trial.lenient:
                return False
            raise ReplayMismatch(
                trial.key,
                wait.path,
                f"{trial.program} now makes another request here than run {self.record.title!r} recorded. "
                "Restore the program, or start a new run or a fork",
            )
        self.context.counters.replayed += 1
        trial.answered = trial.answered or type(known[1]) is not Returned
        conductor.settle(wait, known[1])
        return True

    def _inherit(self, inherited: dict[str, Recorded], pending: PendingAsk) -> bool:
        """Settle a request from the run that this one was forked from, if that has the same request."""
        known = inherited.pop(pending.wait.path, None)
        if known is None or known[0] != pending.print:
            return False
        self.context.counters.cached += 1
        self.write(pending, known[1], None)
        return True

    async def _call(self, pending: PendingAsk, request: Invoke) -> None:
        """Call a registered function. Its value is encoded as JSON and decoded, as in a replay."""
        function = find_function(request.function)
        if function is None:
            self._calling -= 1
            raise SettingsError(f"function {request.function!r} is not registered: import the module that defines it")
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

    def write(self, pending: PendingAsk, settlement: Settlement, wave: int | None) -> None:
        """Write a settlement to the journal before its program sees it; new replies also go to the cache.

        A reply with text that cannot be stored becomes a fault.
        """
        pending.enter(SETTLED)
        trial, print_, key, seconds = pending.trial, pending.print, pending.cache_key, pending.seconds
        ask, add = (trial.id, pending.wait.path), self.context.journal.add_settlement
        if wave is None:
            key = None
            if type(settlement) is not Returned:
                trial.reused = True
        elif type(settlement) is Fault:
            key = None
        try:
            add(ask, print_, wave, settlement, self._settled, pending, settlement, cache_key=key, seconds=seconds)
        except UnicodeEncodeError:
            problem = "the reply contains text that is not valid Unicode"
            settlement = Fault(FaultKind.GARBLED, problem, None, pending.attempts)
            self.context.counters.failed += 1
            add(ask, print_, wave, settlement, self._settled, pending, settlement, seconds=seconds)
        self.committing += 1

    def _settled(self, pending: PendingAsk, settlement: Settlement) -> None:
        """A settlement is durable: continue the program."""
        self.committing -= 1
        self.dispatch.durable(pending, settlement)
        trial = pending.trial
        conductor = trial.conductor
        if conductor is not None and self.context.error is None:
            trial.answered = trial.answered or type(settlement) is not Returned
            conductor.settle(pending.wait, settlement)
            self._drive(trial, conductor.advance())
        self.dispatch.schedule()

    def _finish(self, trial: OpenTrial, conductor: Conductor) -> None:
        """A program ended: write its outcome."""
        if isinstance(conductor.error, ForeignAwait | SettingsError):
            self.abort(conductor.error)
            return
        body, outcome = outcome_of(trial.program, trial.key, trial.given, conductor)
        kind = None if outcome.fault is None else outcome.fault.kind.value
        self._count(trial, kind)
        self.dispatch.spending.ended(trial)
        trial.conductor = None
        del self.context.open[trial.id]
        self.committing += 1
        rows = conductor.trial.rows if kind is None else []
        if body == trial.earlier_outcome and not rows:
            self._deliver(trial, outcome)
        else:
            self.context.journal.add_outcome(trial.id, kind, body, self._deliver, trial, outcome, rows=rows)
        self.admission.made_room()

    def _count(self, trial: OpenTrial, kind: str | None) -> None:
        """Count an outcome. If the trial was scored again, it replaces the earlier one."""
        if trial.earlier_outcome is not None:
            self.context.counters.usable -= trial.earlier_fault is None
            self.context.counters.missing -= trial.earlier_fault is not None
        self.context.counters.usable += kind is None
        self.context.counters.missing += kind is not None

    def _deliver(self, trial: OpenTrial, outcome: Outcome[Any]) -> None:
        """An outcome is durable: hand it to the driver."""
        self.committing -= 1
        trial.outcome = outcome
        if trial.deliver is not None:
            trial.deliver(outcome)
        if self.context.listeners:
            kind = outcome.fault.kind.value if outcome.fault else None
            self.context.emit(lambda: TrialEnded(run=self.record.id, at=self.clock.wall(), trial=trial.key, fault=kind))
        self.admission.made_room()
        self.dispatch.schedule()

    # Stopping.

    def quiet(self) -> bool:
        """Whether all programs wait for requests that have not been sent."""
        return not (self.committing or self._calling or self.admission.busy)

    def halt_when_still(self) -> None:
        """After a stop, once all replies in flight have arrived and are durable: raise the error in the driver.

        A batch whose results are arriving is awaited too. Otherwise a batch with faults that stop a run would stop it
        on every resume. After an interrupt or a deadline it is not awaited: another session can collect it.
        """
        receiving = self.dispatch.batches.receiving and not (self.stopping and self.stopping.reason in AT_ONCE)
        live_in_flight = self.dispatch.live_in_flight or receiving
        if self.head is not None and self.head.working:
            self.head.wake()
            return
        if self.over is not None and not (live_in_flight or self.committing or self._calling):
            self._fail(self.over)

    def _fail(self, over: Exception) -> None:
        self.admission.fail(over)
        if self._all_back is not None and not self._all_back.done():
            self._all_back.set_result(None)


def _guarded(function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a function in a thread. A future cannot carry a StopIteration, so it is converted."""
    try:
        return function(*arguments, **options)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error
