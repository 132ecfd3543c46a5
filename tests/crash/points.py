"""Places on the way of a batch at which a process kills itself, or rather a trap that sits at one of them.

Around requests and commits there is a before and an after. What is durable is read from the store itself, right after
the commit that made it so. Names:

intent-noted    the intent of a wave is about to be committed; intent-durable: it is, and nothing was sent
before-KIND     a request is about to be made, after-KIND: it was answered; KIND as `kind_of` says
receipt-noted   a receipt is about to be committed; receipt-durable: it is
line            a line of results was read; downloaded: all were, and nothing of it is durable
some-settled    so many settlements are durable, and the rest is not even read
all-settled     the settlements of a whole wave are durable, but not its end; wave-ended: that too
before-commit, after-commit
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from threading import Event
from typing import Any

import msgspec

from groundswell.compose import ByModel
from groundswell.engine.ports import Then
from groundswell.engine.records import Intent, Receipt, RunRecord
from groundswell.providers.accounts.account import Account
from groundswell.providers.accounts.config import Accounts
from groundswell.store.journal import Store, StoreJournal
from groundswell.testing.crash import kill_me
from groundswell.transports.batch import BatchTransport
from groundswell.transports.http import Answer, FileBody, HeadersByKey, Http, Url
from tests.stores import rows

DURABLE = {
    "intent-durable": "SELECT count(*) FROM waves",
    "receipt-durable": "SELECT count(*) FROM waves WHERE receipt IS NOT NULL",
    "some-settled": "SELECT count(*) FROM asks",
    "all-settled": "SELECT count(*) FROM waves WHERE ended_at IS NULL "
    "AND size = (SELECT count(*) FROM asks WHERE wave = waves.id)",
    "wave-ended": "SELECT count(*) FROM waves WHERE ended_at IS NOT NULL",
}


def kind_of(method: str, path: str) -> str:
    """What a request to a provider of batches is for."""
    if method == "POST":
        return "upload" if path.endswith("/files") else "create" if path.endswith("/batches") else "ask"
    if path.endswith(("/content", "/results")):
        return "download"
    return "list" if path.endswith("/batches") else "poll"


class Trap:
    """Kills this process when a place is reached for the so-manieth time."""

    def __init__(self, where: str, nth: int, store: str) -> None:
        self.where = where
        self._nth = self._left = nth
        self._store = store
        self._holding = False

    def reach(self, where: str) -> None:
        """A place is reached."""
        if where == self.where:
            self._left -= 1
            if not self._left:
                kill_me()

    def hold(self) -> None:
        """Results are about to be read. If what counts is that they were, nothing more becomes durable from now on."""
        self._holding = self._holding or (self.where == "downloaded" and self._left == 1)

    async def torn(self) -> None:
        """A line was read. If what counts is that so many are durable and no more, the rest is not read."""
        if self.where == "some-settled":
            self._left -= 1
            if not self._left:
                await asyncio.Event().wait()

    def around(self, commit: Callable[[], None]) -> None:
        """Make a commit, if it comes to that."""
        if self._holding:
            Event().wait()
        self.reach("before-commit")
        commit()
        self.reach("after-commit")
        if self.where in DURABLE and self._count(DURABLE[self.where]) >= self._nth:
            kill_me()

    def _count(self, query: str) -> int:
        [(count,)] = rows(self._store, query)
        return int(count)


class WatchedHttp(Http):
    """Connections with a trap around every request."""

    def __init__(self, account: Account, usual: HeadersByKey, trap: Trap) -> None:
        super().__init__(account, usual)
        self._trap = trap

    async def post(self, url: Url, body: bytes) -> Answer:
        kind = self._before("POST", url)
        answer = await super().post(url, body)
        self._trap.reach(f"after-{kind}")
        return answer

    async def post_file(self, url: Url, enclosed: FileBody) -> Answer:
        kind = self._before("POST", url)
        answer = await super().post_file(url, enclosed)
        self._trap.reach(f"after-{kind}")
        return answer

    async def get(self, url: Url, seconds: float) -> Answer:
        kind = self._before("GET", url)
        answer = await super().get(url, seconds)
        self._trap.reach(f"after-{kind}")
        return answer

    async def lines(self, url: Url) -> AsyncGenerator[bytes, None]:
        self._before("GET", url)
        self._trap.hold()
        async for line in super().lines(url):
            yield line
            self._trap.reach("line")
            await self._trap.torn()
        self._trap.reach("downloaded")

    def _before(self, method: str, url: Url) -> str:
        kind = kind_of(method, url.path)
        self._trap.reach(f"before-{kind}")
        return kind


class WatchedRouter(ByModel):
    """Leads to providers of batches over connections with a trap."""

    def __init__(self, accounts: Callable[[], Accounts], trap: Trap) -> None:
        super().__init__(accounts, None, ())
        self._trap = trap

    def _batched(self, account: Account) -> BatchTransport | None:
        batch = super()._batched(account)
        if batch is not None and not isinstance(batch.client.http, WatchedHttp):
            timed = msgspec.structs.replace(account, timeout=batch.patience.answer)
            batch.client.http = WatchedHttp(timed, account.wire.headers, self._trap)
        return batch


class WatchedJournal(StoreJournal):
    """A journal with a trap at what is written of waves."""

    def __init__(self, store: Store, record: RunRecord, failed: Callable[[Exception], None], trap: Trap) -> None:
        super().__init__(store, record, failed)
        self._trap = trap

    def add_wave(self, intent: Intent, prints: Sequence[bytes], then: Then, *args: Any) -> None:
        super().add_wave(intent, prints, then, *args)
        self._trap.reach("intent-noted")

    def add_receipt(self, wave: int, receipt: Receipt) -> None:
        super().add_receipt(wave, receipt)
        self._trap.reach("receipt-noted")

    def end_wave(self, wave: int) -> None:
        if self._trap.where != "all-settled":  # then its end comes in a later commit, which is never made
            super().end_wave(wave)


class WatchedStore(Store):
    """A store with a trap around its commits, and at its journals."""

    def __init__(self, path: str, trap: Trap) -> None:
        super().__init__(path, around=trap.around)
        self._trap = trap

    def journal(self, record: RunRecord, failed: Callable[[Exception], None]) -> StoreJournal:
        return WatchedJournal(self, record, failed, self._trap)
