"""Waves as provider batches. Read `BatchTransport` from top to bottom.

    dispatch   write the lines to a temporary file and create the batch. This is tried once, since a batch costs money
    collect    poll until the batch has ended, then read its results line by line and account for missing ones.
               A batch that is not found by its id is searched for in the list; batch_client.py says for how long
    adopt      after a crash or a lost answer: search for the batch among those of the account
    look, listed, cancel    commands for users

The differences between providers are in their `BatchFormat` (providers/).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from secrets import token_hex
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

from groundswell.engine.batch_quota import Capacity
from groundswell.engine.ports import Clock, LoopClock
from groundswell.engine.records import Absent, AskId, BatchInfo, Found, Intent, Receipt, Settled, Undecided, Wave
from groundswell.errors import (
    NoBatches,
    QueueFull,
    SettingsError,
    WaveError,
    WaveFailed,
    WaveLost,
    WaveOutOfReach,
    WaveUnsure,
)
from groundswell.program.request import Fault, FaultKind, Request, Settlement
from groundswell.providers.accounts.account import Account
from groundswell.providers.batches import (
    Batch,
    Refusal,
    RequestLookup,
    Results,
    faults_of_failed_batch,
    read_id,
    read_refusal,
)
from groundswell.providers.faults import load_json
from groundswell.providers.provider import Call, UploadedBatchFormat
from groundswell.transports.batch_client import PASSING, TRIES, BatchClient, LookupFailed, Patience, Search
from groundswell.transports.http import Answer, FileBody, FileRefused, NoAnswer

SKEW = 26 * 3600.0
"""Seconds by which the provider's clock may be behind ours. A wrong time zone is most of a day."""
SHORT_TRIES, BREAKS = 5, 8
"""How often incomplete results are read again, and how often interrupted downloads are repeated."""
TELLING = 20
"""After this many results with foreign ids, a batch belongs to another wave."""
IN_MEMORY, SLICE = 4_000_000, 256
"""Bytes of a wave that are kept in memory, and lines that are written before other tasks get a turn."""

LEFT: dict[str, Fault] = {
    "expired": Fault(FaultKind.EXPIRED, "the batch expired before this request was processed"),
    "cancelled": Fault(FaultKind.CANCELLED, "the batch was cancelled"),
}
NO_RESULT = Fault(FaultKind.GARBLED, "the batch ended without a result for this request")
BOM = b"\xef\xbb\xbf"
"""Byte order mark that some servers write at the beginning of a file."""
Notice = Callable[[BatchInfo], None]
"""Called whenever a batch has changed."""


class BatchTransport:
    """The batches of one account, which must have a batch format. Each wave is one batch."""

    barrier = True
    cached = True
    vectorised = False
    ready = True

    def __init__(
        self,
        account: Account,
        notice: Notice | None = None,
        *,
        clock: Clock | None = None,
        patience: Patience | None = None,
    ) -> None:
        format = account.wire.batch
        if format is None:
            raise SettingsError(f"account {account.name!r}: {account.dialect} has no batch API")
        self.account = account
        self.format = format
        self.models: dict[str, str] = {}
        self.owner = account.owner
        self.clock: Clock = clock or LoopClock()
        self.patience = patience or Patience.of(account)
        self.client = BatchClient(account, format, self.clock, self.patience)
        self._faults = account.wire.faults
        self._options = account.encode_options
        self._notice = notice or (lambda info: None)
        self._seen: dict[str, BatchInfo] = {}
        self._waves: dict[str, tuple[str, int]] = {}
        self._ordered: set[tuple[str, int]] = set()
        self._searches: dict[tuple[str, int], Search] = {}

    @property
    def name(self) -> str:
        """The name of the batch format, as the journal records it."""
        return self.format.name

    @property
    def capacity(self) -> Capacity:
        """The limits of one batch and of the provider's queue."""
        made = self.format
        return Capacity(made.max_requests, made.max_bytes, self.account.batch_queue, made.queue_counts)

    @property
    def max_wave(self) -> int:
        return self.capacity.requests

    def size(self, request: Request) -> int | Fault:
        call = self._call(request)
        if isinstance(call, Fault):
            return call
        size = self.format.weight(request, len(self.format.line("0" * 32, call)) + len(self.format.separator))
        if size > self.capacity.bytes:
            most = self.capacity.bytes
            return Fault(FaultKind.BAD_REQUEST, f"the request has {size:,} bytes, the limit of a batch is {most:,}")
        return size

    def seen(self, receipt: Receipt) -> BatchInfo | None:
        return self._seen.get(str(receipt.data.get("batch")))

    async def close(self) -> None:
        """Close the connections."""
        await self.client.http.close()

    # Dispatch.

    async def dispatch(self, wave: Wave) -> Receipt:
        with _temporary() as lines:
            try:
                endpoint = await self._write(wave, lines)
            except OSError as error:
                why = f"cannot write the batch to a temporary file: {error.strerror}"
                raise WaveFailed(Fault(FaultKind.UNSENT, why)) from error
            self._ordered.add((wave.run, wave.id))
            answer = await self._order(wave, lines, endpoint)
        batch = self.client.read_batch(load_json(answer.body)) if 200 <= answer.status < 300 else None
        if batch is None:
            raise self._refused(answer)
        self._waves[batch.info.id] = wave.run, wave.id
        self._note(batch.info)
        return receipt_of(batch.info)

    async def _write(self, wave: Wave, lines: IO[bytes]) -> str:
        """Write the lines of a wave. Return their endpoint."""
        kinds: set[tuple[str, str]] = set()
        path = ""
        for number, item in enumerate(wave.items):
            call = self._call(item.request)
            if isinstance(call, Fault):
                raise WaveFailed(call)
            path = call.path
            kinds.add((path, self.models.get(item.request.model, item.request.model)))
            if len(kinds) > 1 and not self.format.mixed:
                told = " and ".join(sorted(f"{model} at {where}" for where, model in kinds))
                raise WaveFailed(Fault(FaultKind.UNSENT, f"a batch has one model and endpoint, this one has {told}"))
            lines.write(self.format.separator if number else b"")
            lines.write(self.format.line(wave.custom_id(item.ask), call))
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        lines.flush()  # a full disk is reported here, before the batch is created
        return path

    def _call(self, request: Request) -> Call | Fault:
        return self.format.encode(request, self.models.get(request.model, request.model), self._options)

    async def _order(self, wave: Wave, lines: IO[bytes], endpoint: str) -> Answer:
        """Create a batch from the lines of a wave, as an uploaded file or as one request body."""
        url = self.client.url(self.format.path)
        format = self.format
        if isinstance(format, UploadedBatchFormat):
            file = await self._upload(format, lines, f"{wave.run}-{wave.id}.jsonl")
            body = format.create(file, endpoint, wave.run, wave.id, len(wave.items))
            return await self._once(self.client.http.post(url, body))
        whole = FileBody(lines, "application/json", format.before, format.after)
        return await self._once(self.client.http.post_file(url, whole))

    async def _upload(self, format: UploadedBatchFormat, lines: IO[bytes], name: str) -> str:
        """Upload the file and return its id. Uploads are free, so they are retried."""
        waits, boundary = self.client.waits(), token_hex(24)
        form = FileBody(lines, f"multipart/form-data; boundary={boundary}", *format.form(boundary, name))
        for left in reversed(range(TRIES)):
            file = await self._try_upload(format, form)
            if isinstance(file, str):
                return file
            if not left or file.fault.kind not in PASSING:
                raise self._error(file)
            await self.client.pause(waits.next(file.fault.retry_after))
        raise AssertionError("the last attempt either worked or failed")

    async def _try_upload(self, format: UploadedBatchFormat, form: FileBody) -> str | Refusal:
        try:
            answer = await self.client.http.post_file(self.client.url(format.upload_path), form)
        except NoAnswer as error:
            return Refusal(error.fault)
        file = format.read_upload(load_json(answer.body)) if 200 <= answer.status < 300 else None
        return file or read_refusal(*answer, self.clock.wall(), self._faults) or Refusal(self.client.fault(answer))

    async def _once(self, sending: Awaitable[Answer]) -> Answer:
        """The answer to the request that creates a batch. Without one, the batch may exist, unless nothing was sent."""
        try:
            return await sending
        except NoAnswer as error:
            fault, sent = self.client.redact(error.fault), error.sent
        raise _unsure(fault.message) if sent else WaveFailed(fault)

    def _refused(self, answer: Answer) -> WaveError:
        """The error for an answer that is not a batch."""
        if 200 <= answer.status < 300:
            return _unsure(f"HTTP {answer.status} with a body that is not a batch")
        why = read_refusal(*answer, self.clock.wall(), self._faults)
        if why is None:
            return _unsure(self.client.fault(answer).message)
        return self._error(why)

    def _error(self, why: Refusal) -> WaveFailed:
        """A refusal as an error of the engine."""
        fault = self.client.redact(why.fault)
        if why.what == "full":
            return QueueFull(fault, why.limit)
        return NoBatches(fault) if why.what == "never" else WaveFailed(fault)

    # Collect.

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        id = read_id(receipt.data.get("batch"))
        if id is None:
            raise WaveLost(Fault(FaultKind.GARBLED, "the receipt of this wave has no batch id"))
        self._waves[id] = intent.run, intent.id
        batch = await self._ended(id, intent)
        reading = Reading(intent, batch.endpoint, self.format.read_line)
        for results in batch.results:
            async with aclosing(self._read(id, results, reading)) as found:
                async for settled in found:
                    yield settled
        if batch.info.state == "failed":
            async for settled in self._failed(batch, intent, reading):
                yield settled
        for ask in reading.left:
            yield Settled(ask, LEFT.get(batch.info.state, NO_RESULT))

    async def _ended(self, id: str, intent: Intent) -> Batch:
        """Wait until a batch has ended. A batch that cannot be looked up is waited for, but not forever."""
        what = f"batch {id}"
        waits, heard, early = self.client.waits(), self.clock.now(), 0
        at_least = missing = unread = None
        while True:
            await self.client.pause(waits.next(at_least))
            try:
                batch = await self._shown(id, intent)
            except LookupFailed as unseen:
                at_least = unseen.fault.retry_after
                self._bear(unseen.fault, heard, what)
                continue
            at_least, heard = None, self.clock.now()
            if batch is None:
                missing = self._still_missing(missing, what)
                continue
            missing = None
            self._note(batch.info)
            if batch.info.open:
                continue
            # If more requests are done than there are results, we looked too early, or the results are gone.
            if _lacks_paid(batch):
                unread = self._still_missing(unread, f"the results of {what}")
                continue
            early += 1
            if batch.promised >= batch.info.done or early > SHORT_TRIES:
                return batch

    async def _shown(self, id: str, intent: Intent) -> Batch | None:
        """A batch by its id, or in the list if the provider does not know the id; None if it is in neither.

        Raises `LookupFailed`.
        """
        try:
            return await self.client.get_batch(id)
        except LookupFailed as unseen:
            if unseen.fault.kind is not FaultKind.NOT_FOUND:
                raise
        async with aclosing(self.client.list_since(intent.at - SKEW)) as batches:
            async for batch in batches:
                if batch.info.id == id or (batch.info.run, batch.info.wave) == (intent.run, intent.id):
                    return batch
        return None

    def _bear(self, fault: Fault, heard: float, what: str) -> None:
        """Tolerate a temporary fault. Raise if the key was rejected, or if the provider was silent for too long."""
        if fault.kind is FaultKind.AUTH:
            raise WaveOutOfReach(fault)
        silent = self.clock.now() - heard
        if silent > self.patience.silence:
            why = f"{what} could not be checked for {silent / 3600:.1f} hours: {fault.message}"
            raise WaveOutOfReach(Fault(FaultKind.UNREACHABLE, why))

    def _still_missing(self, since: float | None, what: str) -> float:
        """The provider does not know something. Return since when; raise `WaveLost` after a while."""
        now = self.clock.now()
        if since is not None and now - since >= self.patience.missing:
            raise WaveLost(Fault(FaultKind.GARBLED, f"the provider has not returned {what} for {_long(now - since)}"))
        return now if since is None else since

    async def _read(self, id: str, results: Results, reading: Reading) -> AsyncGenerator[Settled, None]:
        """Settle asks from a file of results. An interrupted or incomplete download is restarted."""
        what, missing = f"the results of batch {id}", None
        waits, heard, short, breaks = self.client.waits(), self.clock.now(), 0, 0
        reading.another()
        while True:
            reading.begin()
            news = False
            try:
                async with aclosing(self.client.http.lines(self.client.results_url(results))) as lines:
                    async for line in lines:
                        settled = reading.take(line, self.clock.wall())
                        if settled is not None:
                            news = True
                            yield self._redacted(settled)
            except (NoAnswer, FileRefused) as error:
                fault = self.client.download_fault(error)
                if reading.lines:
                    heard, missing = self.clock.now(), None
                if fault.kind is FaultKind.NOT_FOUND:
                    missing = self._still_missing(missing, what)
                else:
                    self._bear(fault, heard, what)
                breaks = 0 if news else breaks + (reading.lines > 0 or fault.kind is FaultKind.GARBLED)
                if breaks == BREAKS:
                    raise WaveOutOfReach(fault) from None
                await self.client.pause(waits.next(fault.retry_after))
                continue
            short += 1
            if short >= (BREAKS if reading.torn else SHORT_TRIES) or reading.whole(results.promised):
                return
            await self.client.pause(waits.next())

    async def _failed(self, batch: Batch, intent: Intent, reading: Reading) -> AsyncIterator[Settled]:
        """A batch failed as a whole: invalid requests get their own fault, all others count as not sent."""
        faults, why = faults_of_failed_batch(batch, self._faults)
        for line, fault in faults.items():
            if line <= len(intent.asks) and reading.settle(line - 1):
                yield Settled(intent.asks[line - 1], self.client.redact(fault))
        if not reading.done:
            raise self._error(why)

    # Adopt.

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        key, now = (intent.run, intent.id), self.clock.now()
        search = self._searches.setdefault(key, Search(now, self.client.waits()))
        try:
            found = await self._search(intent, search) or self._absent(intent, search, now)
        except LookupFailed as unseen:
            self._bear(unseen.fault, search.heard, "the list of batches")
            return Undecided(search.waits.next(unseen.fault.retry_after))
        search.heard, search.complete = now, search.complete or now >= self._settles(search)
        if not isinstance(found, Undecided):
            del self._searches[key]
        return found

    async def _search(self, intent: Intent, search: Search) -> Found | Undecided | None:
        """Search for the batch of a wave; None if no batch of the account is it. Raises `LookupFailed`."""
        if not self.format.tagged:
            return await self._search_results(intent, search)
        async with aclosing(self.client.list_since(intent.at - SKEW)) as batches:
            async for batch in batches:
                if (batch.info.run, batch.info.wave) == (intent.run, intent.id):
                    return Found(receipt_of(batch.info))
        return None

    async def _search_results(self, intent: Intent, search: Search) -> Found | Undecided | None:
        """Search untagged batches. One with the same number of requests, or of unknown size, may be this wave's.

        Its results show whether it is, once it has ended.
        """
        ours = {intent.custom_id(ask) for ask in intent.asks}
        waiting = False
        async with aclosing(self.client.list_since(intent.at - SKEW)) as batches:
            async for batch in batches:
                info = batch.info
                if info.total not in (0, len(ours)) or info.id in search.others or self._another_wave(info.id, intent):
                    continue
                if search.complete and info.id not in search.listed:
                    continue
                search.listed.add(info.id)
                if info.open:
                    waiting = True
                elif await self._holds(batch, ours, search):
                    return Found(receipt_of(info))
                else:
                    search.others.add(info.id)
        return Undecided(self.account.batch_poll) if waiting else None

    async def _holds(self, batch: Batch, ours: set[str], search: Search) -> bool:
        """Whether a batch has results under our ids. The first readable ones decide. Raises `LookupFailed`."""
        others = 0
        for results in batch.results:
            try:
                async with aclosing(self.client.http.lines(self.client.results_url(results))) as lines:
                    async for line in lines:
                        found = self.format.read_line(line, lambda _: None, batch.endpoint, 0.0)
                        if found is not None and found[0] in ours:
                            return True
                        others += found is not None
                        if others == TELLING:
                            return False
            except (NoAnswer, FileRefused) as error:
                fault = self.client.download_fault(error)
                if fault.kind is not FaultKind.NOT_FOUND:
                    raise LookupFailed(fault) from None
        search.perhaps |= not others  # its results are gone or unreadable
        return False

    def _absent(self, intent: Intent, search: Search, now: float) -> Absent | Undecided:
        """No batch belongs to this wave. That is final once a pending creation request cannot succeed any more."""
        left = self._settles(search) - now
        by_another = (intent.run, intent.id) not in self._ordered
        if left > 0 and not (by_another and self.clock.wall() - intent.at > SKEW + self.patience.answer):
            return Undecided(left)
        return Absent(perhaps_paid=search.perhaps)

    def _settles(self, search: Search) -> float:
        """When a creation request that was pending at the first lookup must be in the list."""
        return search.first + self.patience.order

    def _another_wave(self, batch: str, intent: Intent) -> bool:
        """Whether a batch is known to be that of another wave."""
        return self._waves.get(batch, (intent.run, intent.id)) != (intent.run, intent.id)

    # Commands for users.

    async def look(self, batch: str) -> BatchInfo | None:
        if read_id(batch) is None:
            return None
        try:
            return (await self.client.with_retries(lambda: self.client.get_batch(batch))).info
        except LookupFailed as unseen:
            if unseen.fault.kind is FaultKind.NOT_FOUND:
                return None
            raise WaveOutOfReach(unseen.fault) from None

    async def listed(self, since: float) -> AsyncIterator[BatchInfo]:
        try:
            async with aclosing(self.client.list_since(since)) as batches:
                async for batch in batches:
                    yield batch.info
        except LookupFailed as unseen:
            raise WaveOutOfReach(unseen.fault) from None

    async def cancel(self, batch: str) -> None:
        if read_id(batch) is None:
            raise WaveFailed(Fault(FaultKind.NOT_FOUND, "batch not found"))
        try:
            await self.client.with_retries(lambda: self._cancel(batch))
        except LookupFailed as unseen:
            if unseen.fault.kind is FaultKind.NOT_FOUND:
                raise WaveFailed(unseen.fault) from None
            raise WaveOutOfReach(unseen.fault) from None

    async def _cancel(self, batch: str) -> None:
        """Cancel a batch. Providers report an error if it has already ended; that is ignored."""
        try:
            answer = await self.client.http.post(self.client.url(self.format.cancel_path(batch)), b"")
        except NoAnswer as error:
            raise LookupFailed(self.client.redact(error.fault)) from None
        if not 200 <= answer.status < 300 and ((info := await self.look(batch)) is None or info.open):
            raise LookupFailed(self.client.fault(answer))

    def _redacted(self, settled: Settled) -> Settled:
        fault = settled.settlement
        return settled._replace(settlement=self.client.redact(fault)) if isinstance(fault, Fault) else settled

    def _note(self, info: BatchInfo) -> None:
        """Remember the state of a batch, and send a notice if it changed."""
        before, self._seen[info.id] = self._seen.get(info.id), info
        if info != before:
            self._notice(info)


@contextmanager
def _temporary() -> Iterator[IO[bytes]]:
    """A temporary file for the lines of a wave. A full disk, reported again when it is closed, is ignored."""
    lines = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  that is what this is
    try:
        yield lines
    finally:
        with suppress(OSError):
            lines.close()


def receipt_of(info: BatchInfo) -> Receipt:
    """The data needed to collect a batch, in any process."""
    return Receipt({"batch": info.id, "created_at": info.created_at})


def _lacks_paid(batch: Batch) -> bool:
    """Whether a batch has ended without results although requests were answered and charged."""
    info = batch.info
    if info.state == "failed":
        return False
    return batch.promised < info.done - info.failed or (info.state == "completed" and not batch.results)


def _long(seconds: float) -> str:
    """A duration in words."""
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _unsure(why: str) -> WaveUnsure:
    return WaveUnsure(f"it is unknown whether the batch was created: {why}")


class Reader(Protocol):
    """Reads a line into a custom id and its settlement; None if it is unreadable."""

    def __call__(
        self, line: bytes, asked: RequestLookup, endpoint: str, now: float
    ) -> tuple[str, Settlement] | None: ...


class Reading:
    """Reads the files of a batch, each possibly more than once, and settles every ask once.

    The requests are known unless the wave was recovered after a crash. A wave may have a hundred thousand asks, so
    little is kept for each.
    """

    def __init__(self, intent: Intent, endpoint: str, read: Reader) -> None:
        self._intent = intent
        self._items = intent.items if isinstance(intent, Wave) else ()
        self._places = {intent.custom_id(ask): place for place, ask in enumerate(intent.asks)}
        self._endpoint = endpoint
        self._read = read
        self._left = bytearray(b"\x01" * len(intent.asks))
        self._here = bytearray(len(intent.asks))
        self._strangers = self._unread = self.lines = 0
        self.torn = False

    @property
    def left(self) -> Iterator[AskId]:
        """The asks without a result, in order."""
        return (ask for ask, left in zip(self._intent.asks, self._left, strict=True) if left)

    @property
    def done(self) -> bool:
        """Whether every ask has a result."""
        return not any(self._left)

    def another(self) -> None:
        """Start another file."""
        self._here = bytearray(len(self._here))

    def begin(self) -> None:
        """Start reading a file from its beginning. `torn` means that the last line so far was unreadable."""
        self._strangers = self._unread = self.lines = 0
        self.torn = False

    def take(self, line: bytes, now: float) -> Settled | None:
        """What a line settles; None if its id is unknown, it is unreadable, or the ask is already settled."""
        if not self.lines:
            line = line.removeprefix(BOM)
        if not line.strip():
            return None
        self.lines += 1
        found = self._read(line, self._request, self._endpoint, now)
        self.torn = found is None
        if found is None:
            self._unread += 1
            return None
        place = self._places.get(found[0])
        if place is None:
            self._strangers += 1
            return None
        self._here[place] = 1
        return Settled(self._intent.asks[place], found[1]) if self.settle(place) else None

    def settle(self, place: int) -> bool:
        """Mark the ask at a place as settled. Return whether it was not settled before."""
        left, self._left[place] = self._left[place], 0
        return bool(left)

    def whole(self, promised: int) -> bool:
        """Whether a file had all promised results, or all that are needed."""
        return self.done or (not self._unread and sum(self._here) + self._strangers >= promised)

    def _request(self, custom_id: str) -> Request | None:
        place = self._places.get(custom_id)
        return self._items[place].request if place is not None and self._items else None
