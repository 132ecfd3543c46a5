"""The requests that a batch transport makes of its account's batch API, and how long it waits for them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from groundswell.engine.ports import Clock
from groundswell.program.request import Fault, FaultKind
from groundswell.providers.accounts.account import Account, redact, redact_fault
from groundswell.providers.batches import Batch, Page, Results
from groundswell.providers.faults import fault_of_answer, garbled, load_json
from groundswell.providers.provider import BatchFormat
from groundswell.transports.http import Answer, FileRefused, Http, NoAnswer, Url, parse_url, raise_if_cancelled

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

ANSWER = 600.0
LOOK = 60.0
ORDER = 120.0
SILENCE = 26 * 3600.0

T = TypeVar("T")


class Patience(NamedTuple):
    """Times in seconds. The `timeout` of an account, which is meant for live requests, has no part in them.

    missing  how long a batch that was ordered may be neither shown by its id nor listed, and how long its results may
             be missing, before it counts as lost: the account's `batch_patience`
    order    how long an order that was not answered is looked for in the list of batches
    answer   the time limit of an order or an upload, and of each piece of results
    look     the time limit of a look at a batch or at the list
    silence  how long a provider that cannot be reached is waited for: the day that a batch takes, and some more
    """

    missing: float
    order: float = ORDER
    answer: float = ANSWER
    look: float = LOOK
    silence: float = SILENCE

    @classmethod
    def of(cls, account: Account) -> Patience:
        """What an account wants. None of the shorter times is longer than its `batch_patience`."""
        most = account.batch_patience
        return cls(most, min(ORDER, most), min(ANSWER, most), min(LOOK, most))


class LookupFailed(Exception):
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


class BatchClient:
    """The batch API of one account, at the first of its addresses."""

    def __init__(self, account: Account, format: BatchFormat, clock: Clock, patience: Patience) -> None:
        self.http = Http(msgspec.structs.replace(account, timeout=patience.answer), account.wire.headers)
        self.clock = clock
        self.patience = patience
        self._account = account
        self._wire = account.wire
        self._format = format
        self._base = account.endpoints[0]

    def url(self, path: str) -> Url:
        """The address of a path."""
        return parse_url(self._wire.url(self._base, path))

    def waits(self) -> Waits:
        """Pauses up to what the account says of how often to look."""
        return Waits(self._account.batch_poll)

    async def list_since(self, when: float) -> AsyncGenerator[Batch, None]:
        """The batches that were made after a time, newest first; raises `LookupFailed`."""
        after: str | None = None
        pages: set[str] = set()
        while True:
            page = await self.get(self._format.list_path(after), self._format.read_page)
            for batch in page.batches:
                if self._clean(batch) and not 0 < batch.info.created_at < when:
                    yield batch
            if page.after is None or _past(page, when):
                return
            if page.after in pages:
                raise LookupFailed(garbled("a list of batches that goes round in a circle"))
            pages.add(page.after)
            after = page.after

    async def get_batch(self, id: str) -> Batch:
        """A batch; raises `LookupFailed`."""
        batch = await self.get(self._format.batch_path(id), self.read_batch)
        if batch.info.id != id:
            raise LookupFailed(garbled("another batch than the one that was asked for"))
        return batch

    async def get(self, path: str, read: Callable[[object], T | None]) -> T:
        """What stands at a path; raises `LookupFailed`."""
        try:
            answer = await self.http.get(self.url(path), self.patience.look)
        except NoAnswer as error:
            raise LookupFailed(self.redact(error.fault)) from None
        found = read(load_json(answer.body)) if 200 <= answer.status < 300 else None
        if found is None:
            raise LookupFailed(self.fault(answer))
        return found

    async def with_retries(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something that costs nothing, a few times over if need be."""
        waits = self.waits()
        for _ in range(TRIES - 1):
            try:
                return await work()
            except LookupFailed as unseen:
                if unseen.fault.kind not in PASSING:
                    raise
                await self.pause(waits.next(unseen.fault.retry_after))
        return await work()

    async def pause(self, seconds: float) -> None:
        """Wait by the clock."""
        raise_if_cancelled()
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        cancel = self.clock.call_at(self.clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            cancel()

    def read_batch(self, data: object) -> Batch | None:
        """A batch object, or None where it is none that may be written down."""
        batch = self._format.read_batch(data)
        return batch if batch is not None and self._clean(batch) else None

    def _clean(self, batch: Batch) -> bool:
        """Whether nothing of our secrets is where an id should be."""
        said = f"{batch.info.id} {batch.info.run}"
        return redact(said, self._account) == said

    def fault(self, answer: Answer) -> Fault:
        """The fault that an answer is which is not what was asked for."""
        if 200 <= answer.status < 300:
            return garbled(f"HTTP {answer.status} with something else than was asked for")
        return self.redact(fault_of_answer(*answer, self.clock.wall(), self._wire.faults))

    def download_fault(self, error: NoAnswer | FileRefused) -> Fault:
        """The fault that ended a download."""
        return self.fault(error.answer) if isinstance(error, FileRefused) else self.redact(error.fault)

    def redact(self, fault: Fault) -> Fault:
        """The fault without our secrets."""
        return redact_fault(fault, self._account)

    def results_url(self, results: Results) -> Url:
        """Where results are. Of an address that the provider gave, what leads away from our own is not believed."""
        base = urlsplit(self._base)
        given = _parts(results.url or "")
        if given is None or _origin(given) != _origin(base) or not given.path.startswith("/"):
            return self.url(results.path)
        return parse_url(base._replace(path=given.path, query=given.query, fragment="").geturl())


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
