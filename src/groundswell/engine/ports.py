"""The protocols between the engine and the outside: clock, transports, router, prices, journal and store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from groundswell.engine.batch_quota import Capacity
from groundswell.engine.rate_limit import PaceLimits
from groundswell.engine.records import (
    Absent,
    Amounts,
    AskId,
    BatchInfo,
    Counters,
    EndpointFigures,
    Found,
    Intent,
    Receipt,
    Recorded,
    RunRecord,
    Settled,
    Status,
    TrialRow,
    Undecided,
    Via,
    Wave,
)
from groundswell.program.request import Fault, Request, Settlement, Standing, Usage


class Clock(Protocol):
    """Source of time."""

    def now(self) -> float:
        """Seconds; only differences mean anything."""
        ...

    def wall(self) -> float:
        """Unix time, for what is stored."""
        ...

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        """Call a function at a time. Returns a function that cancels this."""
        ...


class Transport(Protocol):
    """Sends waves of requests and collects their results."""

    @property
    def name(self) -> str:
        """A short name, kept in the journal with every wave."""
        ...

    @property
    def barrier(self) -> bool:
        """Whether it takes whole waves that survive a crash, as batch APIs do.

        A wave is then sent when no program can continue without it, and its intent is committed first. Requests of
        other transports are sent as they are made, and sent again if they were in flight at a crash.
        """
        ...

    @property
    def max_wave(self) -> int:
        """Maximum number of requests in a wave."""
        ...

    @property
    def cached(self) -> bool:
        """Whether replies are stored in the cache."""
        ...

    @property
    def vectorised(self) -> bool:
        """Whether the embeddings of a wave are sent in one call and should wait for each other."""
        ...

    @property
    def ready(self) -> bool:
        """Whether requests can be sent now. If not, they stay queued, and this is checked again."""
        ...

    async def dispatch(self, wave: Wave) -> Receipt:
        """Send a wave. Raises `WaveFailed` if it was not sent, `WaveUnsure` if it may have been."""
        ...

    def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        """Yield results as they arrive, in any order; also for a receipt from before a crash.

        Raises `WaveFailed` if no more results will come, `WaveOutOfReach` if that cannot be determined now.
        """
        ...

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        """After a crash, search for a wave whose receipt was never written."""
        ...


@runtime_checkable
class Singly(Transport, Protocol):
    """A transport that sends each request on its own."""

    async def ask(self, request: Request) -> Answered:
        """Make one attempt. Returns the settlement, and the rate limits that the provider reported."""
        ...


@runtime_checkable
class Batching(Transport, Protocol):
    """A transport whose waves are provider batches. Each is sent once and found again by its id."""

    @property
    def owner(self) -> str:
        """Fingerprint of address and key. Batches of another owner cannot be seen."""
        ...

    @property
    def capacity(self) -> Capacity:
        """Maximum size of a batch and of the provider's queue."""
        ...

    def size(self, request: Request) -> int | Fault:
        """Size in bytes of a request in a batch, or why it cannot be part of one."""
        ...

    def seen(self, receipt: Receipt) -> BatchInfo | None:
        """A batch at the last poll."""
        ...

    async def look(self, batch: str) -> BatchInfo | None:
        """The current state of a batch; None if the provider does not know it."""
        ...

    def listed(self, since: float) -> AsyncIterator[BatchInfo]:
        """Batches of the account that were created after a time, newest first."""
        ...

    async def cancel(self, batch: str) -> None:
        """Cancel a batch. Results so far are billed and can be collected."""
        ...


Answered = tuple[Settlement, Sequence[Standing]]


class Route(NamedTuple):
    """Where requests to a model go.

    account   what people call the account
    limits    what its settings allow
    model     what the provider counts by; requests of one account and model share a queue
    origin    whose replies these are, for the cache; None: the model string says it
    full      the model string that an alias stands for
    known_as  what the cache calls the model, where the model string is not it
    limiter   who shares the limits, across the engines of a process; None: the runs of this engine
    live      the other way, where this one is for batches
    at_home   whether requests stay on this machine
    """

    account: str
    transport: Transport
    limits: PaceLimits = PaceLimits()
    model: str = ""
    origin: str | None = None
    full: str | None = None
    known_as: str | None = None
    limiter: Hashable = None
    live: Route | None = None
    at_home: bool = False


class Router(Protocol):
    """Chooses the route of a request."""

    def route(self, request: Request, via: Via = "live") -> Route:
        """The route of a request; by batch if `via` asks for it and the account has a batch API.

        Raises `SettingsError` for a model that cannot be reached.
        """
        ...

    def transport(self, name: str, account: str) -> Transport | None:
        """The transport of a wave that was sent earlier."""
        ...

    def figures(self) -> Mapping[str, Sequence[EndpointFigures]]:
        """Figures of the endpoints, by account."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class Prices(Protocol):
    """Returns the price of a reply."""

    def __call__(self, model: str, usage: Usage, transport: str) -> float | None:
        """US dollars for the usage of a request to a model on a transport; None if the price is unknown."""
        ...


Then = Callable[..., None]


class Journal(Protocol):
    """One run's part of the store.

    The `add_` methods buffer; what they hold is committed together, and each `then(*args)` is called on the
    event loop after its row is durable, in the order of the calls. Every commit also writes the counters of the
    run's record as they stand. A failed commit ends in the `failed` callback.
    """

    def add_trial(self, row: TrialRow, then: Then | None = None, *args: Any) -> None:
        """A trial is about to be started."""
        ...

    def abandon(self, trial: int) -> None:
        """A driver abandoned a trial."""
        ...

    def add_work(self, trial: int, *, again: bool) -> None:
        """A trial is given to workers. `again`: the journal may have something of it."""
        ...

    def withdraw(self, trial: int) -> None:
        """A trial is given to workers no more."""
        ...

    def add_settlement(
        self,
        ask: tuple[int, str],
        fingerprint: bytes,
        wave: int | None,
        settlement: Settlement,
        then: Then,
        *args: Any,
        cache_key: bytes | None = None,
        seconds: float | None = None,
    ) -> None:
        """An ask ended: that of a trial and a path. With a cache key, other runs may use the reply.

        `seconds`: duration of the last attempt, None if nothing was sent.

        Raises `UnicodeEncodeError`, and adds nothing, where the settlement holds text that cannot be stored.
        """
        ...

    def add_outcome(
        self, trial: int, fault: str | None, body: str, then: Then, *args: Any, rows: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """A trial ended."""
        ...

    def add_wave(self, intent: Intent, prints: Sequence[bytes], then: Then, *args: Any) -> None:
        """A wave is about to be sent."""
        ...

    def add_receipt(self, wave: int, receipt: Receipt) -> None:
        """A wave was sent."""
        ...

    def end_wave(self, wave: int) -> None:
        """All requests of a wave have ended, or it was given up."""
        ...

    def save_counters(self, then: Then, *args: Any) -> None:
        """Commit the counters of the run without other rows."""
        ...

    def on_commit(self, then: Callable[[], None]) -> None:
        """Call a function after every commit and its `then` callbacks."""
        ...

    def linger(self, seconds: float) -> None:
        """Set the minimum time between commits. Longer intervals make larger commits."""
        ...

    async def flush(self) -> None:
        """Wait until everything added so far is durable."""
        ...

    async def trials(self, after: int, count: int) -> Sequence[TrialRow]:
        """The next trials after one of that number, in the order of their start, with their outcomes."""
        ...

    async def unfinished(self) -> Sequence[TrialRow]:
        """The trials that were started and have no outcome, in the order of their start."""
        ...

    async def find(self, keys: Sequence[str]) -> Mapping[str, TrialRow]:
        """The trials of earlier sessions that have these keys."""
        ...

    async def recorded(self, trials: Sequence[int]) -> Mapping[int, dict[str, Recorded]]:
        """What was journalled for trials: path -> fingerprint and settlement."""
        ...

    async def open_waves(self) -> Sequence[tuple[Intent, Receipt | None, dict[AskId, bytes]]]:
        """Waves that were not ended, with the fingerprints of those of their asks that are not settled."""
        ...

    def cached(self, keys: Sequence[bytes], then: Callable[[Mapping[bytes, Settlement]], None]) -> None:
        """Look up replies in the cache, and pass on those that are there: at once, or soon."""
        ...

    async def cancelled(self) -> bool:
        """Whether the run was cancelled."""
        ...

    async def keep(self, name: str, body: str) -> None:
        """Store a checkpoint of a driver. It replaces the one with the same name."""
        ...

    def close(self) -> None:
        """Report failed commits no longer."""
        ...


class Lock(Protocol):
    """The lock on a run that this process holds."""

    def release(self) -> None:
        """Release the lock."""
        ...


class RunTable(Protocol):
    """The runs of a store."""

    def create(
        self,
        name: str | None,
        seed: int,
        *,
        settings: str | None,
        options: dict[str, Any],
        driver: str | None = None,
        location: str | None = None,
    ) -> RunRecord:
        """A new run, pending."""
        ...

    def find(self, name_or_id: str) -> RunRecord | None:
        """The run with this name or id."""
        ...

    def get(self, name_or_id: str, *, own: bool = False) -> RunRecord:
        """The run with this name or id; raises `RunNotFound`. `own`: without what its workers counted."""
        ...

    def change(self, record: RunRecord, **values: Any) -> None:
        """Set columns of a run."""
        ...

    def delete(self, record: RunRecord) -> None:
        """Remove a run and everything it recorded, except what the cache holds."""
        ...

    def state(self, record: RunRecord) -> Status:
        """The status to show: a run that is `running` without a lock was interrupted."""
        ...

    def lock(self, record: RunRecord) -> Lock:
        """Lock a run for this process. Raises `RunBusy` if it is locked."""
        ...

    def last_number(self, record: RunRecord) -> tuple[int, int]:
        """The largest trial and wave numbers in use."""
        ...

    def retry_missing(self, record: RunRecord) -> int:
        """Give faulted trials a new attempt."""
        ...

    def forget_kept(self, record: RunRecord) -> None:
        """Delete the checkpoints of the driver. It starts again, with the replies in the journal."""
        ...


class Shard(NamedTuple):
    """A worker's part of a run.

    alive    its holder works on it
    room     how many trials that wants to have open
    problem  why its last holder did not go on: the name of an error and its text
    """

    number: int
    holder: str | None
    counters: Counters
    room: int
    problem: str | None
    alive: bool


class Task(NamedTuple):
    """A trial that a worker has taken. `again`: its journal may have something."""

    row: TrialRow
    again: bool


class Grant(NamedTuple):
    """The part of a budget that a worker may use.

    elsewhere  what others have used or may use, and what is left for them
    left       how much of the whole is left for this worker, from 0 to 1
    refused    there was not enough for the next request
    used_up    there will not be either, whatever the requests in flight use
    """

    elsewhere: Amounts
    left: float
    refused: bool
    used_up: bool


class Look(NamedTuple):
    """What a worker is to know of its shard: whether to send nothing more, options of the run, and open trials."""

    stopped: bool
    options: dict[str, Any]
    trials: Collection[int]


class Bell(Protocol):
    """Tells other processes that there is news, and is told by them. Messages may be lost."""

    def ring(self, channel: str) -> None:
        """Tell the processes that listen on a channel, soon."""
        ...

    def close(self) -> None:
        """Send what is left, and listen no more."""
        ...


class Work(Protocol):
    """Trials that the head of a run, which has locked it, gives to workers. All methods block."""

    @property
    def holder(self) -> str:
        """The id of this process."""
        ...

    def bell(self, hear: str, heard: Callable[[], None]) -> Bell:
        """Listen on a channel; `heard` is called on a thread of its own."""
        ...

    def begin(self, record: RunRecord) -> Collection[int]:
        """As the head, give all trials that an earlier session left to workers. Returns the open trials."""
        ...

    def shards(self, record: RunRecord) -> Sequence[Shard]:
        """The shards of a run."""
        ...

    def ended(self, record: RunRecord, known: Sequence[int]) -> Sequence[TrialRow]:
        """The trials that have ended, except those that are known from earlier calls."""
        ...

    def stop(self, record: RunRecord) -> None:
        """As the head, tell the workers of a run to send nothing more."""
        ...

    def fold(self, record: RunRecord, *, ended: bool = False) -> Counters:
        """As the head, add the counters of shards to the run, and remove these, except those that are worked on.

        `ended`: the driver has returned, so trials that are open do not belong to the run.
        """
        ...

    def left_over(self, record: RunRecord) -> Sequence[Shard]:
        """What workers have left of a run whose head has ended. Raises `RunBusy` if some still work on it."""
        ...

    def runs(self) -> Sequence[str]:
        """The ids of the runs that have work."""
        ...

    def take_shard(self, record: RunRecord, *, left: bool) -> tuple[int, Counters] | None:
        """As a worker, take a shard of a run: with `left`, one that was left with open trials, or else a new one.

        None if there is none, or the head has stopped the run.
        """
        ...

    def take(self, record: RunRecord, shard: int, most: int, workers: int) -> Sequence[Task]:
        """As a worker, take more trials. `workers`: how many workers there will be, if that is known."""
        ...

    def tasks(self, trials: Iterable[int]) -> Sequence[Task]:
        """Trials of a shard."""
        ...

    def look(self, record: RunRecord, shard: int, room: int) -> Look:
        """As a worker: what there is to know of a shard.

        `room`: how many trials it wants to have open. Raises `LeaseLost` if it has another holder.
        """
        ...

    def grant(self, record: RunRecord, shard: int, limits: Amounts, used: Amounts, needed: Amounts) -> Grant:
        """As a worker, take a part of the budget: what was used, what is needed next, and some more.

        `limits`: the whole budget; -1 where there is none.
        """
        ...

    def release(
        self,
        record: RunRecord,
        shard: int,
        *,
        counters: Counters | None = None,
        problem: str | None = None,
        ends_run: bool = False,
    ) -> None:
        """As a worker, let others have a shard. `counters`: as they are now.

        `ends_run`: the problem concerns all workers, and nobody is to go on.
        """
        ...


class ShareTable(Protocol):
    """How processes share the limits of accounts. All methods block."""

    def take(self, limiter: str, wants: int, using: int, most: int) -> int:
        """Take a share of the slots of an account, `most` in all; returns how many.

        `wants`: how many requests there are; `using`: how many of them are in flight.
        """
        ...

    def leave(self) -> None:
        """Give all shares back."""
        ...


class Results(Protocol):
    """The results of a run. They can be read from any thread, during the run, and after the store was closed."""

    def frame(self, *, pandas: bool = False) -> Any:
        """The trials as a polars DataFrame, or one of pandas."""
        ...

    def trial(self, key: str) -> tuple[TrialRow, Fault | None]:
        """The trial with this key, or the only one whose key begins so."""
        ...

    def recorded(self, row: TrialRow) -> Mapping[str, Recorded]:
        """What was journalled for a trial, by path."""
        ...

    def kept(self, name: str) -> str | None:
        """What the run's driver kept under a name."""
        ...

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of data that trials recorded, in the order of trials, with what is known of each trial."""
        ...

    def fault_counts(self) -> Sequence[tuple[str, int, str, str]]:
        """Why trials are missing: kind, how many, the first one's key and its message."""
        ...


class Store(Protocol):
    """The store: runs, journals and results."""

    @property
    def runs(self) -> RunTable:
        """The runs."""
        ...

    def journal(self, record: RunRecord, failed: Callable[[Exception], None]) -> Journal:
        """The journal of a run; `failed` is told when a commit fails."""
        ...

    def results(self, record: RunRecord) -> Results:
        """What a run found."""
        ...

    @property
    def work(self) -> Work | None:
        """The trials of workers; None if only one process can work on a run."""
        ...

    @property
    def shares(self) -> ShareTable:
        """How processes that use this store share the limits of accounts."""
        ...

    def shard_journal(self, record: RunRecord, shard: int, failed: Callable[[Exception], None]) -> Journal:
        """The journal of a run for a worker that has taken a shard of it. `record` has the counters of the shard."""
        ...

    async def close(self) -> None:
        """Write what is left and close the file."""
        ...


class LoopClock:
    """Monotonic time, and the running event loop's timers."""

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_later(max(0.0, when - self.now()), then).cancel
