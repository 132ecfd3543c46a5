"""A provider for tests that keeps its ledger in a file, and two ways to reach it: in batches, or live.

The ledger outlives a client that is killed, like a real provider. So a test can check afterwards what was ordered, by
whom, how often, and what was charged. Batches with limits and faults are in provider.py.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from random import Random

import msgspec

from groundswell.engine.ports import Clock
from groundswell.engine.records import Absent, AskId, Found, Intent, Item, Receipt, Settled, Undecided, Wave
from groundswell.program.request import Embedding, Fault, FaultKind, Reply, Request, Settlement
from groundswell.testing.clock import pause

Answer = Reply | Embedding | Fault | str
Script = Callable[[Request, int], Answer]
"""Answers a request; the number is how often the same ask was ordered before."""


class Order(msgspec.Struct, frozen=True):
    """One request in the ledger. Replies are charged; faults are not."""

    custom_id: str
    trial: int
    path: str
    result: Settlement

    @property
    def ask(self) -> AskId:
        """The id of the ask."""
        return AskId(self.trial, self.path)

    @property
    def paid(self) -> bool:
        """Whether it was charged."""
        return not isinstance(self.result, Fault)


class Entry(msgspec.Struct, frozen=True, tag="entry", omit_defaults=True):
    """Requests that arrived together: a batch or, without a batch id, live requests.

    at, until  when a batch was created, and when it ends, in Unix time
    amount     how much of the provider's queue it takes
    turned     it exceeded the queue when it was validated: none of it is processed
    """

    batch: str | None
    run: str
    orders: tuple[Order, ...]
    model: str = ""
    at: float = 0.0
    until: float = 0.0
    amount: float = 0.0
    turned: bool = False
    cancelled: bool = False

    def done(self, now: float) -> int:
        """How many requests of a batch are done at a time: one after the other."""
        part = 1.0 if now >= self.until else (now - self.at) / (self.until - self.at)
        return int(part * len(self.orders))

    def cut_off(self, at: float) -> Entry:
        """The batch after it was cancelled: requests that were not done by then are not charged."""
        if at >= self.until:
            return self
        done = self.done(at)
        left = [msgspec.structs.replace(order, result=CANCELLED) for order in self.orders[done:]]
        return msgspec.structs.replace(self, orders=(*self.orders[:done], *left), until=at, cancelled=True)


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """A batch was cancelled."""

    batch: str
    at: float


CANCELLED = Fault(FaultKind.CANCELLED, "the batch was cancelled")


class ProviderBooks:
    """An append-only file with one line per entry.

    Each is written at once, so a killed process leaves it whole or absent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> list[Entry]:
        """All orders, oldest first."""
        if not self.path.exists():
            return []
        found: list[Entry] = []
        for line in self.path.read_bytes().splitlines():
            row = msgspec.json.decode(line, type=Entry | Cancel)
            if isinstance(row, Entry):
                found.append(row)
            else:
                found = [entry.cut_off(row.at) if entry.batch == row.batch else entry for entry in found]
        return found

    def place(self, wave: Wave, script: Script, *, batch: bool) -> Entry:
        """Accept orders, answer them, and record both."""
        entry = self.draft(wave, script, batch=batch)
        self.write(entry)
        return entry

    def draft(self, wave: Wave, script: Script, *, batch: bool) -> Entry:
        """Orders with their answers, before they are recorded."""
        entries = self.entries()
        before = Counter(order.ask for entry in entries if not entry.turned for order in entry.orders)
        orders = tuple(self._order(wave, item, script, before[item.ask]) for item in wave.items)
        return Entry(f"batch-{len(entries)}" if batch else None, wave.run, orders)

    def find(self, run: str, custom_ids: Sequence[str]) -> Entry | None:
        """The batch of a run that has exactly these custom ids."""
        wanted = set(custom_ids)
        for entry in self.entries():
            if entry.batch is not None and entry.run == run and {order.custom_id for order in entry.orders} == wanted:
                return entry
        return None

    def get(self, batch: str) -> Entry:
        """A batch by its id."""
        return next(entry for entry in self.entries() if entry.batch == batch)

    def placed(self) -> Counter[AskId]:
        """How often each ask was ordered."""
        return Counter(order.ask for order in self._orders())

    def paid(self) -> Counter[AskId]:
        """How often each ask was charged."""
        return Counter(order.ask for order in self._orders() if order.paid)

    def custom_ids(self) -> Counter[str]:
        """How often each custom id was ordered."""
        return Counter(order.custom_id for order in self._orders())

    def _orders(self) -> Iterator[Order]:
        for entry in self.entries():
            if not entry.turned:
                yield from entry.orders

    def _order(self, wave: Wave, item: Item, script: Script, nth: int) -> Order:
        answer = script(item.request, nth)
        result = Reply(answer) if isinstance(answer, str) else answer
        return Order(wave.custom_id(item.ask), item.ask.trial, item.ask.path, result)

    def write(self, row: Entry | Cancel) -> None:
        """Append a line."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, msgspec.json.encode(row) + b"\n")
            os.fsync(file)
        finally:
            os.close(file)


class ScriptedBatch:
    """Sends each wave as one batch, whose results are ready after `takes` seconds, in any order.

    Results of another session's batch are ready at once. With `undecided`, the first calls of `adopt`, up to that
    number, do not find out yet what became of a wave.
    """

    barrier = True
    cached = False

    def __init__(
        self,
        books: ProviderBooks,
        script: Script,
        clock: Clock,
        *,
        name: str = "batch",
        max_wave: int = 1000,
        takes: float = 3600.0,
        undecided: int = 0,
    ) -> None:
        self.name = name
        self.max_wave = max_wave
        self.vectorised = False
        self.ready = True
        self.books = books
        self._script = script
        self._clock = clock
        self._takes = takes
        self._undecided = undecided
        self._mine: set[str | None] = set()

    async def dispatch(self, wave: Wave) -> Receipt:
        batch = self.books.place(wave, self._script, batch=True).batch
        self._mine.add(batch)
        return Receipt({"batch": batch})

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        if receipt.data["batch"] in self._mine:
            await pause(self._clock, self._takes)
        asks = {intent.custom_id(ask): ask for ask in intent.asks}
        orders = list(self.books.get(receipt.data["batch"]).orders)
        Random(receipt.data["batch"]).shuffle(orders)
        for order in orders:
            if order.custom_id in asks:
                yield Settled(asks[order.custom_id], order.result)

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        if self._undecided > 0:
            self._undecided -= 1
            return Undecided(retry_in=600.0)
        entry = self.books.find(intent.run, [intent.custom_id(ask) for ask in intent.asks])
        return Absent() if entry is None else Found(Receipt({"batch": entry.batch}))


class ScriptedLive:
    """Sends the requests of a wave concurrently; each has its own delay of up to `slowest` seconds.

    All are in the ledger from the start, and nothing can be collected after a crash, as with a real live API.
    """

    barrier = False
    cached = False

    def __init__(
        self,
        books: ProviderBooks,
        script: Script,
        clock: Clock,
        *,
        name: str = "live",
        max_wave: int = 256,
        slowest: float = 4.0,
    ) -> None:
        self.name = name
        self.max_wave = max_wave
        self.vectorised = False
        self.ready = True
        self._books = books
        self._script = script
        self._clock = clock
        self._slowest = slowest
        self._sent: dict[int, Entry] = {}

    async def dispatch(self, wave: Wave) -> Receipt:
        self._sent[wave.id] = self._books.place(wave, self._script, batch=False)
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        orders = sorted(self._sent.pop(intent.id).orders, key=_slowness)
        waited = 0
        for order in orders:
            if _slowness(order) > waited:
                await pause(self._clock, (_slowness(order) - waited) / 2 * self._slowest)
                waited = _slowness(order)
            yield Settled(order.ask, order.result)

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        return Absent(perhaps_paid=True)


def _slowness(order: Order) -> int:
    """The delay of a request, in halves of the longest: the same in every session."""
    return blake2b(f"{order.trial} {order.path}".encode(), digest_size=1).digest()[0] % 2 + 1
