"""What the parts of the engine share about one run: `RunContext`, its open trials and their pending asks.

Each part gets the context and the few other things that it needs. None of them knows `Run`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from enum import IntEnum
from typing import Any

from groundswell.engine.batch_quota import BatchQuota, Load
from groundswell.engine.events import Event, Listener, RunStopping, tell
from groundswell.engine.lanes import Lane, Lanes
from groundswell.engine.options import RunOptions
from groundswell.engine.outcome import Outcome
from groundswell.engine.ports import Clock, Journal
from groundswell.engine.rate_limit import Mark
from groundswell.engine.records import AskId, BatchInfo, Intent, Receipt, Recorded, RunRecord, TrialRow
from groundswell.errors import RunError, RunStopped, SettingsError, StoreError
from groundswell.program.conductor import Conductor, Wait
from groundswell.program.request import Request, Settlement, fingerprint
from groundswell.program.trial import Program

Deliver = Callable[[Outcome[Any]], None]
Settle = Callable[["PendingAsk", Settlement, int | None], None]
"""Makes the settlement of an ask durable before its program sees it; with the wave that brought it, if one did."""


class RunContext:
    """One run, as the parts of the engine see it.

    open       the trials under way, by number
    expected   how many trials there will be, if the driver has said so
    recovering what an earlier session left is still being taken up, and nothing is sent
    stopping   why nothing more is sent, once that is so; `error`, the same for what ends a run
    schedule   looks, at the end of this tick, whether anything may leave
    halt_when_still  after a stop: tells the driver once everything has landed and is durable
    fail       tells everybody who waits that nothing more will come
    """

    def __init__(
        self,
        record: RunRecord,
        options: RunOptions,
        journal: Journal,
        lanes: Lanes,
        clock: Clock,
        listeners: Sequence[Listener],
    ) -> None:
        self.record = record
        self.counters = record.counters
        self.options = options
        self.journal = journal
        self.lanes = lanes
        self.clock = clock
        self.listeners = listeners
        self.loop = asyncio.get_running_loop()
        self.open: dict[int, OpenTrial] = {}
        self.expected: int | None = None
        self.stopping: RunStopped | None = None
        self.error: Exception | None = None
        self.recovering = False
        self.schedule: Callable[[], None] = _not_ready
        self.halt_when_still: Callable[[], None] = _not_ready
        self.fail: Callable[[Exception], None] = _not_ready
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def over(self) -> RunStopped | Exception | None:
        """Why no more work is taken, if none is."""
        return self.error or self.stopping

    def stop(self, reason: str, why: str) -> None:
        """Send nothing more; journal what comes back; then let the driver end with `RunStopped`."""
        if self.stopping is None:
            self.stopping = RunStopped(reason, why)
            self.emit(lambda: RunStopping(run=self.record.id, at=self.clock.wall(), reason=reason, why=why))
        self.schedule()
        self.halt_when_still()

    def abort(self, error: Exception) -> None:
        """End with an error, as a stop does; if it is the store's, at once. The run can be resumed."""
        if self.error is None:
            self.error = error
            if isinstance(error, StoreError):
                for task in self._tasks:
                    task.cancel()
                self.fail(error)
        if not isinstance(self.error, StoreError):
            self.schedule()
            self.halt_when_still()  # also after a second error: what failed with it may have been the last in flight

    def lane_of(self, request: Request) -> Lane:
        """The way that a request goes, or would; raises `SettingsError` for a model that cannot be reached."""
        return self.lanes.of(request, self.options.via)

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

    def track(self, work: Coroutine[Any, Any, None]) -> None:
        """As `spawn`, for work that there is much of: it does not raise, and calls `untrack` when it is done."""
        self._tasks.add(self.loop.create_task(work))

    def untrack(self) -> None:
        """The current task is done."""
        self._tasks.discard(asyncio.current_task())

    async def end_tasks(self) -> None:
        """Cancel all work beside, and wait until it has ended."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def pause(self, seconds: float) -> None:
        """Wait, by the run's clock."""
        over: asyncio.Future[None] = self.loop.create_future()
        self.clock.call_at(self.clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
        await over

    def _reap(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if not task.cancelling():  # nobody here did: what it awaited was cancelled, and it would be waited for
                self.abort(
                    RunError("a transport or an iterable of specs raised CancelledError, which they must not do")
                )
        elif isinstance(error := task.exception(), Exception):
            self.abort(error)


def _not_ready(*_: object) -> None:
    raise AssertionError("the run that this context belongs to is not ready")


class OpenTrial:
    """A trial under way.

    given      its spec, as the program gets it; `spec` is the same as text
    conductor  what runs its program; None if it has ended, was given up, or is run by a worker
    recorded   what its journal holds
    inherited  what the trial that it was forked from has
    was_open   it was open when an earlier session ended; what it asks first may have been sent then
    lenient    it is a new attempt, which may ask something else than the journal has
    earlier_outcome, earlier_fault
               what it had before it was scored again
    usd        what its asks have cost in this session; `reused`: some replies were there already and cost nothing
    answered   some model has answered it
    """

    __slots__ = (
        "answered",
        "attempt",
        "conductor",
        "deliver",
        "earlier_fault",
        "earlier_outcome",
        "given",
        "id",
        "inherited",
        "key",
        "lenient",
        "outcome",
        "program",
        "recorded",
        "reused",
        "spec",
        "usd",
        "was_open",
    )

    def __init__(
        self,
        row: TrialRow,
        program: Program[Any, Any],
        given: Any,
        conductor: Conductor | None,
        *,
        deliver: Deliver | None,
        recorded: dict[str, Recorded] | None,
        inherited: dict[str, Recorded] | None,
    ) -> None:
        self.id = row.id
        self.key = row.key
        self.spec = row.spec
        self.given = given
        self.earlier_outcome = row.outcome
        self.earlier_fault = row.fault
        self.attempt = row.attempt
        self.lenient = row.attempt > 0 and row.outcome is None
        self.program = program
        self.conductor = conductor
        self.deliver = deliver
        self.recorded = recorded
        self.inherited = inherited
        self.outcome: Outcome[Any] | None = None
        self.was_open = recorded is not None and row.outcome is None
        self.usd = 0.0
        self.reused = bool(recorded)
        self.answered = False

    def drop(self) -> None:
        """Give the trial up; it stays unfinished in the store."""
        if self.conductor is not None:
            self.conductor.close()
            self.conductor = None


class AskState(IntEnum):
    """Where an ask is. `NEXT` says where it can go from there."""

    NEW = 0
    """It was made; the cache may be asked for its reply."""
    JOINED = 1
    """It waits for the reply to an equal ask."""
    QUEUED = 2
    IN_FLIGHT = 3
    RETRYING = 4
    """It failed, and will be queued again."""
    SETTLED = 5
    """It has a reply or a fault, which is being made durable. Its program then goes on."""


NEW, JOINED, QUEUED, IN_FLIGHT, RETRYING, SETTLED = AskState
NEXT: dict[AskState, frozenset[AskState]] = {
    NEW: frozenset({JOINED, QUEUED, IN_FLIGHT, SETTLED}),
    JOINED: frozenset({NEW, QUEUED, SETTLED}),
    QUEUED: frozenset({QUEUED, IN_FLIGHT}),
    IN_FLIGHT: frozenset({NEW, QUEUED, RETRYING, SETTLED}),
    RETRYING: frozenset({QUEUED}),
    SETTLED: frozenset(),
}


class PendingAsk:
    """One ask of an open trial, from the moment it is made until its settlement is durable.

    Each group of fields is written by one part of the engine:

    run         `lane`: the lane that it goes by, unless another way turns out to be better
    dispatch    `attempts`: how often it was sent; `refusals`: how often that came to nothing because there was too much
                to do, `refused_since` the first of these; `came_by`: the lane of its reply; `seconds`: duration of
                the last attempt, None if nothing was sent
    reuse       `cache_key`: what its reply is kept under; `leads`: it was sent for all equal asks
    scheduler   `mark`: when it left, as the rate limiter has it, while it is in flight;
                `sent_at`: when it was last sent
    delivery    `live_wave`: the wave that it leaves in, where that leaves piece by piece
    spending    `tokens` and `usd`: what is reserved for it
    batching    `batch`: what was worked out about it and batches
    """

    __slots__ = (
        "attempts",
        "batch",
        "cache_key",
        "came_by",
        "lane",
        "leads",
        "live_wave",
        "mark",
        "print",
        "refusals",
        "refused_since",
        "request",
        "seconds",
        "sent_at",
        "state",
        "tokens",
        "trial",
        "usd",
        "wait",
    )

    lane: Lane

    def __init__(self, trial: OpenTrial, wait: Wait) -> None:
        self.trial = trial
        self.wait = wait
        self.request: Request = wait.request  # type: ignore[assignment]  # who looks at it handles no calls
        self.state = NEW
        try:
            self.print = fingerprint(wait.request)
        except UnicodeEncodeError:
            raise
        except (TypeError, ValueError) as error:
            problem = f"trial {trial.key!r}, request {wait.path}: it cannot be stored as JSON: {error}"
            raise SettingsError(problem) from error
        self.attempts = 1
        self.refusals = 0
        self.refused_since = 0.0
        self.came_by: Lane | None = None
        self.sent_at = 0.0
        self.seconds: float | None = None
        self.cache_key: bytes | None = None
        self.leads = False
        self.mark: Mark | None = None
        self.live_wave: LiveWave | None = None
        self.tokens = 0
        self.usd = 0.0
        self.batch: BatchHistory | None = None

    @property
    def id(self) -> AskId:
        """Its trial and path."""
        return AskId(self.trial.id, self.wait.path)

    def enter(self, state: AskState) -> None:
        """Go on to the next state."""
        if state not in NEXT[self.state]:
            raise AssertionError(f"ask {self.id}: cannot go from {self.state.name} to {state.name}")
        self.state = state

    @property
    def wanted(self) -> bool:
        """Whether its trial still waits for it."""
        return self.trial.conductor is not None


class BatchHistory:
    """What batching knows of an ask.

    load         what it takes of a batch, once that was worked out
    quota_taken  the room that it has at a provider, while it is there
    failures     how often it failed in a batch, and `failed_in` the last of these
    unplaced     how often no batch could be made of it
    """

    __slots__ = ("failed_in", "failures", "load", "quota_taken", "unplaced")

    def __init__(self) -> None:
        self.load: Load | None = None
        self.quota_taken: tuple[BatchQuota, int] | None = None
        self.failures = 0
        self.unplaced = 0
        self.failed_in: BatchOrder | None = None


class BatchOrder:
    """A batch that is at its provider, or on its way there.

    receiving  its results are coming in
    cancelled  by us, since it would come too late or is not wanted any more; asks that are still wanted go live
    room       the quota of its asks that have come back: it is free when the whole batch has ended
    """

    __slots__ = ("cancelled", "intent", "lane", "receipt", "receiving", "room", "since")

    def __init__(self, intent: Intent, lane: Lane, since: float) -> None:
        self.intent = intent
        self.lane = lane
        self.since = since
        self.receipt: Receipt | None = None
        self.receiving = False
        self.cancelled = False
        self.room: Counter[BatchQuota] = Counter()

    @property
    def batch(self) -> str | None:
        """What the provider calls it."""
        batch = None if self.receipt is None else self.receipt.data.get("batch")
        return batch if isinstance(batch, str) else None

    @property
    def info(self) -> BatchInfo | None:
        """The batch as it was when it was last looked at."""
        batching, receipt = self.lane.batching, self.receipt
        return None if batching is None or receipt is None else batching.seen(receipt)


class LiveWave:
    """Asks that left at the same time and travel by themselves. `left` counts those that have not come back.

    `whole` says that they are all that could travel together: those that fail and are sent again belong to it still.
    """

    __slots__ = ("account", "left", "size", "started", "wave", "whole")

    def __init__(self, wave: int, account: str, size: int, started: float, *, whole: bool = False) -> None:
        self.wave = wave
        self.whole = whole
        self.account = account
        self.size = self.left = size
        self.started = started
