"""Batches like those of real providers, with a ledger in a file, with limits, and with faults that a test chooses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal

import msgspec

from groundswell.engine.batch_quota import Capacity
from groundswell.engine.batching import prompt_tokens
from groundswell.engine.ports import Clock, Route, Transport
from groundswell.engine.rate_limit import PaceLimits
from groundswell.engine.records import BatchInfo, EndpointFigures, Intent, Receipt, Settled, Via, Wave
from groundswell.errors import NoBatches, QueueFull, WaveFailed, WaveLost, WaveOutOfReach, WaveUnsure
from groundswell.program.request import Fault, FaultKind, Request, canonical
from groundswell.testing.batch import Cancel, ProviderBooks, Script, ScriptedBatch
from groundswell.testing.clock import pause

Mishap = Literal["full", "full later", "none", "unsent", "lost", "taken", "out of reach", "expires", "cancelled"]
"""What may happen to a batch.

full          it is refused, since the queue is full; `full later`: it is validated first
none          the account cannot use batches; `unsent`: the provider cannot be reached
lost, taken   no answer came: the provider does not have it, or does
out of reach  it was created, and this client cannot look it up any more
expires       only half of it is processed in time; `cancelled`: somebody cancels it then
"""
FULL = Fault(FaultKind.UNSENT, "too much is waiting")
EXPIRED = Fault(FaultKind.EXPIRED, "the batch expired")
ROOMY = Capacity(1000, 1 << 20)
LOOK_EVERY = 10.0


class ProviderBatches(ScriptedBatch):
    """Batches like those of real providers. They take time by the clock, whether anyone waits or not.

    lengths    seconds that a batch takes, by model, if not `takes`
    queue      how much may wait at once, in the unit of `capacity`; more is refused, and `tells` is the limit reported
    mishaps    what happens to the first batches, one after the other; None: nothing
    measure    how many bytes a request takes, or why it cannot be sent
    reading    seconds until a lookup of a batch, or each of its results, arrives
    gone       batches that are not shown any more, although they were processed and charged
    """

    def __init__(
        self,
        books: ProviderBooks,
        script: Script,
        clock: Clock,
        *,
        name: str = "batch",
        takes: float = 3600.0,
        undecided: int = 0,
        owner: str = "me",
        capacity: Capacity = ROOMY,
        lengths: Mapping[str, float] | None = None,
        queue: int | None = None,
        tells: bool = False,
        mishaps: Sequence[Mishap | None] = (),
        reading: float = 0.0,
        gone: Sequence[str] = (),
        measure: Callable[[Request], int | Fault] = lambda request: len(canonical(request)),
    ) -> None:
        super().__init__(books, script, clock, name=name, max_wave=capacity.requests, takes=takes, undecided=undecided)
        self.owner = owner
        self.capacity = capacity
        self.size = measure
        self._lengths = lengths or {}
        self._queue = queue
        self._tells = tells
        self._mishaps = list(mishaps)
        self._reading = reading
        self._gone = frozenset(gone)
        self._out_of_reach: set[str] = set()

    async def dispatch(self, wave: Wave) -> Receipt:
        mishap = self._mishaps.pop(0) if self._mishaps else None
        amount = self._check(wave)
        if mishap == "full" or self._too_much(amount):
            raise self._full()
        if mishap == "none":
            raise NoBatches(Fault(FaultKind.BAD_REQUEST, "no batches here"))
        if mishap == "unsent":
            raise WaveFailed(Fault(FaultKind.UNSENT, "nobody there"))
        if mishap == "lost":
            raise WaveUnsure("no answer came")
        batch = self._take(wave, amount, mishap)
        if mishap == "taken":
            raise WaveUnsure("no answer came")
        return Receipt({"batch": batch})

    def _take(self, wave: Wave, amount: float, mishap: Mishap | None) -> str:
        """Record a batch in the ledger."""
        now, model = self._clock.wall(), wave.items[0].request.model
        entry = self.books.draft(wave, self._script, batch=True)
        batch, orders, half = str(entry.batch), entry.orders, len(entry.orders) // 2
        if mishap == "expires":
            orders = (*orders[:half], *[msgspec.structs.replace(order, result=EXPIRED) for order in orders[half:]])
        takes = self._lengths.get(model, self._takes)
        until = now + takes if mishap != "full later" else now + 1.0
        self.books.write(
            msgspec.structs.replace(
                entry, orders=orders, model=model, at=now, until=until, amount=amount, turned=mishap == "full later"
            )
        )
        if mishap == "cancelled":
            self.books.write(Cancel(batch, now + takes / 2))
        if mishap == "out of reach":
            self._out_of_reach.add(batch)
        return batch

    def _check(self, wave: Wave) -> float:
        """Check that a wave is valid. Return how much of the queue it takes."""
        requests = [item.request for item in wave.items]
        assert len({(type(request), request.model) for request in requests}) == 1, "a batch is for one model"
        sizes = [size for size in map(self.size, requests) if isinstance(size, int)]
        assert len(sizes) == len(requests) <= self.capacity.requests, "an invalid request was sent"
        assert sum(sizes) <= self.capacity.bytes, "a batch is too large"
        if self.capacity.counts == "requests":
            return len(requests)
        return sum(prompt_tokens(request) for request in requests)

    def _too_much(self, amount: float) -> bool:
        now = self._clock.wall()
        waiting = sum(entry.amount for entry in self.books.entries() if entry.until > now)
        return self._queue is not None and waiting + amount > self._queue

    def _full(self) -> QueueFull:
        return QueueFull(FULL, self._queue if self._tells else None)

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        batch = receipt.data["batch"]
        while (left := self.books.get(batch).until - self._clock.wall()) > 0:
            await pause(self._clock, min(left, LOOK_EVERY))
        if batch in self._out_of_reach:
            raise WaveOutOfReach(Fault(FaultKind.UNREACHABLE, "nobody there"))
        if batch in self._gone:
            raise WaveLost(Fault(FaultKind.GARBLED, f"batch {batch} is not shown"))
        if self.books.get(batch).turned:
            raise self._full()
        async for settled in super().collect(intent, receipt):
            await self._read()
            yield settled

    def seen(self, receipt: Receipt) -> BatchInfo | None:
        return self._info(receipt.data["batch"])

    async def look(self, batch: str) -> BatchInfo | None:
        await self._read()
        return self._info(batch)

    async def _read(self) -> None:
        if self._reading:
            await pause(self._clock, self._reading)

    async def listed(self, since: float) -> AsyncIterator[BatchInfo]:
        for entry in reversed(self.books.entries()):
            if entry.batch is not None and entry.at > since and (info := self._info(entry.batch)) is not None:
                yield info

    async def cancel(self, batch: str) -> None:
        self.books.write(Cancel(batch, self._clock.wall()))

    def _info(self, batch: str) -> BatchInfo | None:
        now = self._clock.wall()
        entry = next((entry for entry in self.books.entries() if entry.batch == batch), None)
        if entry is None:
            return None
        over: Literal["failed", "cancelled", "completed"]
        over = "failed" if entry.turned else "cancelled" if entry.cancelled else "completed"
        failed = 0 if now < entry.until else sum(not order.paid for order in entry.orders)
        return BatchInfo(
            batch,
            "in_progress" if now < entry.until else over,
            len(entry.orders),
            entry.done(now),
            failed,
            entry.at,
            ended_at=None if now < entry.until else entry.until,
            run=entry.run,
        )


class TwoWays:
    """A router to the models of one account, live and in batches; some of them live only."""

    def __init__(self, live: Transport, batch: Transport, *, max_concurrent: int = 1000, only_live: str = "") -> None:
        self._live = live
        self._batch = batch
        self._limits = PaceLimits(max_concurrent)
        self._only_live = only_live

    def route(self, request: Request, via: Via = "live") -> Route:
        live = Route("books", self._live, self._limits, request.model)
        if via == "live" or request.model == self._only_live:
            return live
        return live._replace(transport=self._batch, live=live)

    def transport(self, name: str, account: str) -> Transport | None:
        return next((way for way in (self._live, self._batch) if way.name == name), None)

    def figures(self) -> Mapping[str, Sequence[EndpointFigures]]:
        return {}

    async def close(self) -> None:
        return
