"""Requests to an account's batch API, with their time limits and retries."""

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
"""Seconds until the first poll."""
LONGEST_WAIT = 900.0
"""Longest `Retry-After` that is followed, in seconds: polling again is free."""
TRIES = 4
"""Number of attempts for requests that are free."""
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
    """Times in seconds. The account's `timeout` is for live requests and does not apply here.

    missing  how long a batch may be in neither lookup nor list, and how long its results may be missing, before it
             counts as lost: the account's `batch_patience`
    order    how long to search the list for a batch whose creation was not answered
    answer   time limit of a creation or an upload, and of each chunk of results
    look     time limit of a lookup of a batch or of the list
    silence  how long to wait for a provider that cannot be reached: the day that a batch takes, and a margin
    """

    missing: float
    order: float = ORDER
    answer: float = ANSWER
    look: float = LOOK
    silence: float = SILENCE

    @classmethod
    def of(cls, account: Account) -> Patience:
        """The times of an account. None of the shorter ones exceeds its `batch_patience`."""
        most = account.batch_patience
        return cls(most, min(ORDER, most), min(ANSWER, most), min(LOOK, most))


class LookupFailed(Exception):
    """A lookup failed; carries the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Waits:
    """Pauses that grow by half up to a limit, with jitter."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._wait = min(FIRST_LOOK, longest)

    def next(self, at_least: float | None = None) -> float:
        """The next pause, in seconds."""
        wait, self._wait = self._wait, min(self._longest, 1.5 * self._wait)
        return max(wait * (0.75 + 0.5 * random.random()), min(at_least or 0.0, LONGEST_WAIT))


class Search:
    """The state of the search for a wave's batch: its start, and the batches that belong to others.

    `perhaps`: one of those had no readable results, so it may have been ours. `complete`: our batch is among those
    `listed` so far, or does not exist; batches that appear later are others'.
    """

    def __init__(self, first: float, waits: Waits) -> None:
        self.first = self.heard = first
        self.waits = waits
        self.others: set[str] = set()
        self.listed: set[str] = set()
        self.perhaps = self.complete = False


class BatchClient:
    """The batch API of one account, at its first address."""

    def __init__(self, account: Account, format: BatchFormat, clock: Clock, patience: Patience) -> None:
        self.http = Http(msgspec.structs.replace(account, timeout=patience.answer), account.wire.headers)
        self.clock = clock
        self.patience = patience
        self._account = account
        self._wire = account.wire
        self._format = format
        self._base = account.endpoints[0]

    def url(self, path: str) -> Url:
        """The URL of a path."""
        return parse_url(self._wire.url(self._base, path))

    def waits(self) -> Waits:
        """Pauses between polls, up to the account's `batch_poll`."""
        return Waits(self._account.batch_poll)

    async def list_since(self, when: float) -> AsyncGenerator[Batch, None]:
        """The batches created after a time, newest first; raises `LookupFailed`."""
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
                raise LookupFailed(garbled("the list of batches repeats a page"))
            pages.add(page.after)
            after = page.after

    async def get_batch(self, id: str) -> Batch:
        """A batch; raises `LookupFailed`."""
        batch = await self.get(self._format.batch_path(id), self.read_batch)
        if batch.info.id != id:
            raise LookupFailed(garbled("the provider returned another batch than requested"))
        return batch

    async def get(self, path: str, read: Callable[[object], T | None]) -> T:
        """Get and parse a path; raises `LookupFailed`."""
        try:
            answer = await self.http.get(self.url(path), self.patience.look)
        except NoAnswer as error:
            raise LookupFailed(self.redact(error.fault)) from None
        found = read(load_json(answer.body)) if 200 <= answer.status < 300 else None
        if found is None:
            raise LookupFailed(self.fault(answer))
        return found

    async def with_retries(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run something that is free, with a few retries."""
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
        """Sleep by the injected clock."""
        raise_if_cancelled()
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        cancel = self.clock.call_at(self.clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            cancel()

    def read_batch(self, data: object) -> Batch | None:
        """Read a batch object. None if it is not one, or if it may not be stored."""
        batch = self._format.read_batch(data)
        return batch if batch is not None and self._clean(batch) else None

    def _clean(self, batch: Batch) -> bool:
        """Whether the ids are free of our secrets."""
        said = f"{batch.info.id} {batch.info.run}"
        return redact(said, self._account) == said

    def fault(self, answer: Answer) -> Fault:
        """The fault of an unexpected answer."""
        if 200 <= answer.status < 300:
            return garbled(f"HTTP {answer.status} with an unexpected body")
        return self.redact(fault_of_answer(*answer, self.clock.wall(), self._wire.faults))

    def download_fault(self, error: NoAnswer | FileRefused) -> Fault:
        """The fault that ended a download."""
        return self.fault(error.answer) if isinstance(error, FileRefused) else self.redact(error.fault)

    def redact(self, fault: Fault) -> Fault:
        """The fault without our secrets."""
        return redact_fault(fault, self._account)

    def results_url(self, results: Results) -> Url:
        """The URL of results. A URL from the provider that leads to another host is not followed."""
        base = urlsplit(self._base)
        given = _parts(results.url or "")
        if given is None or _origin(given) != _origin(base) or not given.path.startswith("/"):
            return self.url(results.path)
        return parse_url(base._replace(path=given.path, query=given.query, fragment="").geturl())


def _past(page: Page, when: float) -> bool:
    """Whether everything after a page is older than a time. False if the page is not sorted newest first."""
    made = [batch.info.created_at for batch in page.batches if batch.info.created_at]
    return bool(made) and made[0] < when and made == sorted(made, reverse=True)


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL, or None if it is invalid."""
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port else None
    except ValueError:
        return None


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of a URL."""
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
