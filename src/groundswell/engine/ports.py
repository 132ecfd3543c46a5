"""What the engine needs from the outside: a clock, transports, a router, and a journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from groundswell.engine.batch_quota import Capacity
from groundswell.engine.rate_limit import PaceLimits
from groundswell.engine.records import (
    Absent,
    AskId,
    BatchInfo,
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
    """Where the engine gets its time from."""

    def now(self) -> float:
        """Seconds; only differences mean anything."""
        ...

    def wall(self) -> float:
        """Seconds since 1970, for what is written down."""
        ...

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        """Call a function at a time; returns what cancels it."""
        ...


class Transport(Protocol):
    """How a wave travels."""

    @property
    def name(self) -> str:
        """A short name, kept in the journal with every wave."""
        ...

    @property
    def barrier(self) -> bool:
        """Whether it takes whole waves and remembers them, as batch APIs do.

        A wave then waits until no program can go on without it, and its intent is committed before it is sent. Asks
        of other transports leave as they come up, and what was in flight at a crash is sent again.
        """
        ...

    @property
    def max_wave(self) -> int:
        """The most asks that one wave may hold."""
        ...

    @property
    def cached(self) -> bool:
        """Whether replies are worth keeping for other runs."""
        ...

    @property
    def vectorised(self) -> bool:
        """Whether the embeddings of a wave travel in one call, so that they should wait for each other."""
        ...

    @property
    def ready(self) -> bool:
        """Whether anything can be sent now. While nothing can, asks stay where they are, and this is asked again."""
        ...

    async def dispatch(self, wave: Wave) -> Receipt:
        """Send a wave; raises `WaveFailed` if it was not sent, `WaveUnsure` if it may have been."""
        ...

    def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        """The results, as they come, in any order; also for a receipt from before a crash.

        Raises `WaveFailed` if nothing more will come, `WaveOutOfReach` if that cannot be told now.
        """
        ...

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        """After a crash: find out what became of a wave whose receipt was never written."""
        ...


@runtime_checkable
class Singly(Transport, Protocol):
    """A transport on which asks travel by themselves: nothing is gained by handing over several."""

    async def ask(self, request: Request) -> Answered:
        """Make one attempt. Gives what came of it, and what the provider said of its limits."""
        ...


@runtime_checkable
class Batching(Transport, Protocol):
    """A transport whose waves are batches at a provider: each is one order, paid for once, found again by its id."""

    @property
    def owner(self) -> str:
        """Whose batches these are: a fingerprint of address and key. Another owner's cannot be seen."""
        ...

    @property
    def capacity(self) -> Capacity:
        """What a batch may hold, and how much may wait at the provider."""
        ...

    def size(self, request: Request) -> int | Fault:
        """How many bytes a request takes in a batch, or why it cannot be sent at all."""
        ...

    def seen(self, receipt: Receipt) -> BatchInfo | None:
        """A batch as it was when it was last looked at."""
        ...

    async def look(self, batch: str) -> BatchInfo | None:
        """A batch as its provider shows it now; None if there is no such batch."""
        ...

    def listed(self, since: float) -> AsyncIterator[BatchInfo]:
        """The account's batches that were created after a time, newest first."""
        ...

    async def cancel(self, batch: str) -> None:
        """Have no more of a batch worked on. What was done until then is paid for, and can be collected."""
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
    """Which way a request goes."""

    def route(self, request: Request, via: Via = "live") -> Route:
        """The route, for batches if `via` asks for them and there are any there.

        Raises `SettingsError` for a model that cannot be reached.
        """
        ...

    def transport(self, name: str, account: str) -> Transport | None:
        """The transport of a wave that was sent earlier."""
        ...

    def figures(self) -> Mapping[str, Sequence[EndpointFigures]]:
        """How the endpoints of each account have done."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Prices(Protocol):
    """What a reply costs."""

    def __call__(self, model: str, usage: Usage, transport: str) -> float | None:
        """US dollars for what a request to a model used, on a transport; None where the price is not known."""
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
        """A driver left a trial before its end."""
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
    ) -> None:
        """An ask ended: that of a trial and a path. With a cache key, other runs may use the reply.

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
        """All asks of a wave have ended, or it will not be heard of again."""
        ...

    def save_counters(self, then: Then, *args: Any) -> None:
        """Commit the counters of the run's record, though nothing else is to be written."""
        ...

    def on_commit(self, then: Callable[[], None]) -> None:
        """Call this after every commit, when all its `then`s have been called."""
        ...

    def linger(self, seconds: float) -> None:
        """Commit at least so far apart, if that is what a reply takes anyway to make more of each commit."""
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

    def cached(self, keys: Sequence[bytes]) -> Mapping[bytes, Settlement]:
        """Replies that some run already has, at once."""
        ...

    async def cancelled(self) -> bool:
        """Whether somebody asked for this run to stop."""
        ...

    async def keep(self, name: str, body: str) -> None:
        """Write down what a driver wants to find again, in the place of what it kept under that name."""
        ...

    def close(self) -> None:
        """Tell nobody of failed commits any more."""
        ...


class Lock(Protocol):
    """A run, held by this process."""

    def release(self) -> None:
        """Let go of it."""
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

    def get(self, name_or_id: str) -> RunRecord:
        """The run with this name or id; raises `RunNotFound`."""
        ...

    def change(self, record: RunRecord, **values: Any) -> None:
        """Set columns of a run."""
        ...

    def delete(self, record: RunRecord) -> None:
        """Remove a run and everything it recorded, except what the cache holds."""
        ...

    def state(self, record: RunRecord) -> Status:
        """The status to show: a run that says it is running while nobody holds it was interrupted."""
        ...

    def lock(self, record: RunRecord) -> Lock:
        """Take a run for this process; raises `RunBusy` if another one has it."""
        ...

    def last_number(self, record: RunRecord) -> tuple[int, int]:
        """The largest trial and wave numbers in use."""
        ...

    def retry_missing(self, record: RunRecord) -> int:
        """Give faulted trials a new attempt."""
        ...

    def forget_kept(self, record: RunRecord) -> None:
        """Remove what the run's driver kept: it begins anew, with what the journal holds."""
        ...


class Results(Protocol):
    """What a run found. It may be read from any thread, while the run goes on, and after its store was closed."""

    def frame(self, *, pandas: bool = False) -> Any:
        """The trials as a polars DataFrame, or one of pandas."""
        ...

    def trial(self, key: str) -> tuple[TrialRow, Fault | None]:
        """The trial with this key, or the only one whose key begins so."""
        ...

    def recorded(self, row: TrialRow) -> Mapping[str, Recorded]:
        """What was journalled for a trial: path -> fingerprint and settlement."""
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
    """Where runs are kept."""

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

    async def close(self) -> None:
        """Write what is left and let go of the file."""
        ...


class LoopClock:
    """Monotonic time, and the running event loop's timers."""

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_later(max(0.0, when - self.now()), then).cancel
