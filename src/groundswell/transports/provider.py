"""What batches need of a provider: to look at things, again if need be, and to tell what is wrong with them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from groundswell.accounts.account import Account
from groundswell.accounts.unsaid import unsaid
from groundswell.dialects import Call, address
from groundswell.dialects.batches import Asked, Batch, Page, Results
from groundswell.dialects.faults import failed, garbled, load
from groundswell.engine.ports import Clock
from groundswell.program.request import Fault, FaultKind, Settlement
from groundswell.transports.http import Answer, Http, NoAnswer, Refused, Url, Usual, heed, parsed
from groundswell.transports.patience import Patience
from groundswell.transports.told import unsaid_in

FIRST_LOOK = 1.0
"""Seconds until something is first looked at."""
LONGEST_WAIT = 900.0
"""Seconds that a `Retry-After` is followed for at the most: looking again costs nothing."""
TRIES = 4
"""How often something is tried that costs nothing."""
PASSING = frozenset(
    {
        FaultKind.RATE_LIMITED,
        FaultKind.OVERLOADED,
        FaultKind.SERVER,
        FaultKind.TIMEOUT,
        FaultKind.CONNECTION,
        FaultKind.GARBLED,
    }
)

T = TypeVar("T")


class Wire(Protocol):
    """A dialect of batches. `MIXED`: one may hold several models and endpoints."""

    SEPARATOR: bytes
    MIXED: bool

    def line(self, custom_id: str, call: Call) -> bytes: ...
    def listing(self, after: str | None) -> str: ...
    def path(self, batch: str) -> str: ...
    def read_batch(self, data: object) -> Batch | None: ...
    def read_page(self, data: object) -> Page | None: ...
    def read_line(self, line: bytes, asked: Asked, endpoint: str, now: float) -> tuple[str, Settlement] | None: ...


class Unseen(Exception):
    """Something could not be looked at; carries the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Waits:
    """Pauses that grow by half, up to a longest one, and are never quite the same."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._wait = min(FIRST_LOOK, longest)

    def next(self, at_least: float | None = None) -> float:
        """The next pause, in seconds."""
        wait, self._wait = self._wait, min(self._longest, 1.5 * self._wait)
        return max(wait * (0.75 + 0.5 * random.random()), min(at_least or 0.0, LONGEST_WAIT))


class Search:
    """What is known of a wave that is looked for: since when, and which batches turned out to be others'.

    `perhaps`: one of those could not be told from ours any more. `complete`: ours is among those that were `listed` so
    far, or nowhere; those that come up later are others'.
    """

    def __init__(self, first: float, waits: Waits) -> None:
        self.first = self.heard = first
        self.waits = waits
        self.others: set[str] = set()
        self.listed: set[str] = set()
        self.perhaps = self.complete = False


class Provider:
    """One account's provider of batches. They live at the first of its addresses."""

    def __init__(self, account: Account, wire: Wire, usual: Usual, clock: Clock, patience: Patience) -> None:
        self.http = Http(msgspec.structs.replace(account, timeout=patience.answer), usual)
        self.clock = clock
        self.patience = patience
        self._account = account
        self._wire = wire
        self._base = account.endpoints[0]

    def url(self, path: str) -> Url:
        """The address of a path."""
        return parsed(address(self._base, path))

    def waits(self) -> Waits:
        """Pauses up to what the account says of how often to look."""
        return Waits(self._account.batch_poll)

    async def since(self, when: float) -> AsyncGenerator[Batch, None]:
        """The batches that were made after a time, newest first; raises `Unseen`."""
        after: str | None = None
        pages: set[str] = set()
        while True:
            page = await self.at(self._wire.listing(after), self._wire.read_page)
            for batch in page.batches:
                if self._clean(batch) and not 0 < batch.info.created_at < when:
                    yield batch
            if page.after is None or _past(page, when):
                return
            if page.after in pages:
                raise Unseen(garbled("a list of batches that goes round in a circle"))
            pages.add(page.after)
            after = page.after

    async def one(self, id: str) -> Batch:
        """A batch; raises `Unseen`."""
        batch = await self.at(self._wire.path(id), self.batch)
        if batch.info.id != id:
            raise Unseen(garbled("another batch than the one that was asked for"))
        return batch

    async def at(self, path: str, read: Callable[[object], T | None]) -> T:
        """What stands at a path; raises `Unseen`."""
        try:
            answer = await self.http.get(self.url(path), self.patience.look)
        except NoAnswer as error:
            raise Unseen(self.told(error.fault)) from None
        found = read(load(answer.body)) if 200 <= answer.status < 300 else None
        if found is None:
            raise Unseen(self.fault(answer))
        return found

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something that costs nothing, a few times over if need be."""
        waits = self.waits()
        for _ in range(TRIES - 1):
            try:
                return await work()
            except Unseen as unseen:
                if unseen.fault.kind not in PASSING:
                    raise
                await self.pause(waits.next(unseen.fault.retry_after))
        return await work()

    async def pause(self, seconds: float) -> None:
        """Wait by the clock."""
        heed()
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        cancel = self.clock.call_at(self.clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            cancel()

    def batch(self, data: object) -> Batch | None:
        """A batch object, or None where it is none that may be written down."""
        batch = self._wire.read_batch(data)
        return batch if batch is not None and self._clean(batch) else None

    def _clean(self, batch: Batch) -> bool:
        """Whether nothing of our secrets is where an id should be."""
        said = f"{batch.info.id} {batch.info.run}"
        return unsaid(said, self._account) == said

    def fault(self, answer: Answer) -> Fault:
        """The fault that an answer is which is not what was asked for."""
        if 200 <= answer.status < 300:
            return garbled(f"HTTP {answer.status} with something else than was asked for")
        return self.told(failed(*answer, self.clock.wall()))

    def why(self, error: NoAnswer | Refused) -> Fault:
        """The fault that ended a download."""
        return self.fault(error.answer) if isinstance(error, Refused) else self.told(error.fault)

    def told(self, fault: Fault) -> Fault:
        """The fault without our secrets."""
        return unsaid_in(fault, self._account)

    def place(self, results: Results) -> Url:
        """Where results are. Of an address that the provider gave, what leads away from our own is not believed."""
        base = urlsplit(self._base)
        given = _parts(results.url or "")
        if given is None or _origin(given) != _origin(base) or not given.path.startswith("/"):
            return self.url(results.path)
        return parsed(base._replace(path=given.path, query=given.query, fragment="").geturl())


def _past(page: Page, when: float) -> bool:
    """Whether all that follows a page is older than a time: not so, if its order is not newest first."""
    made = [batch.info.created_at for batch in page.batches if batch.info.created_at]
    return bool(made) and made[0] < when and made == sorted(made, reverse=True)


def _parts(url: str) -> SplitResult | None:
    """An address in its parts, or None where it is none."""
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port else None
    except ValueError:
        return None


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """To whom an address leads."""
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
