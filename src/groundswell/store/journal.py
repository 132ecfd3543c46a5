"""The journal of one run: buffered writes, and what a resumed run reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from groundswell.engine.ports import Then, Work
from groundswell.engine.records import About, AskId, Intent, Receipt, Recorded, RunRecord, TrialRow
from groundswell.program.request import Fault, Settlement, decode_settlement, encode_settlement
from groundswell.store import schema
from groundswell.store.cache import Cache
from groundswell.store.checksum import AskRow, checksum, encode_rows, joined_checksum, trial_row, verify
from groundswell.store.database import Batch, ConnectionLost, Database, Insert, Reader, repeated
from groundswell.store.documents import KEPT, Documents
from groundswell.store.open import open_database
from groundswell.store.results import Results
from groundswell.store.runs import Runs
from groundswell.store.servers import ModelServers
from groundswell.store.shares import Shares
from groundswell.store.waves import Waves, asks_of
from groundswell.store.writer import Around, Writer, plainly

T = TypeVar("T")
Failed = Callable[[Exception], None]

INSERTS = {
    "trials": Insert(schema.trials, ("id", "key", "program", "spec", "attempt", "checksum"), "replace"),
    "asks": Insert(schema.asks, AskRow._fields),
    "outcomes": Insert(schema.outcomes, ("trial", "fault", "body", "ended_at", "checksum", "rows"), "replace"),
    "waves": Insert(schema.waves, ("id", "account", "transport", "size", "asks", "sent_at", "about", "checksum")),
    "cache": Insert(schema.cache, ("key", "settlement", "created_at", "checksum"), "keep"),
    "work": Insert(schema.work, ("trial", "again", "done"), "keep"),
}
SET_COUNTERS = "UPDATE runs SET counters = ?, updated_at = ? WHERE id = ?"
SET_SHARD_COUNTERS = (
    "WITH held AS (UPDATE shards SET counters = ? WHERE run = ? AND number = ? AND holder = ? RETURNING number) "
    "SELECT 1 / count(*) FROM held"
)
"""Fails with a division by zero if the shard has another holder, or has gone."""
SET_DONE = "UPDATE work SET done = TRUE WHERE trial = ANY(?::bigint[])"
WITHDRAW = "DELETE FROM work WHERE trial = ?"
SET_RECEIPT = "UPDATE waves SET receipt = ? WHERE id = ?"
ABANDON = "UPDATE trials SET abandoned = TRUE WHERE id = ?"
END_WAVE = "UPDATE waves SET ended_at = ? WHERE id = ?"
TRIALS = (
    "SELECT trials.id, trials.key, program, spec, attempt, body, fault, abandoned, ended_at, "
    "trials.checksum, outcomes.checksum FROM trials LEFT JOIN outcomes ON outcomes.trial = trials.id"
)
LOOK_UP = 500
MOST_AHEAD = 50_000


class Store:
    """An open database: its runs, its one writer, and a thread for reading.

    `around` is given every commit to make; a crash harness, or a meter, sits there.
    """

    def __init__(self, store: str | Path | Database, *, around: Around = plainly) -> None:
        self.database = store if isinstance(store, Database) else open_database(store)
        self._around = around
        self.runs = Runs(self.database)
        self.waves = Waves(self.database)
        self.documents = Documents(self.database)
        self.cache = Cache(self.database)
        self.shares = Shares(self.database)
        self.servers = ModelServers(self.database)
        self._writer: Writer | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="groundswell-reader")
        self._reader: Reader | None = None
        self._reader_here: Reader | None = None

    def journal(self, record: RunRecord, failed: Callable[[Exception], None]) -> StoreJournal:
        """The journal of a run; must be called on the event loop that will use it."""
        return StoreJournal(self, record, failed)

    def shard_journal(self, record: RunRecord, shard: int, failed: Callable[[Exception], None]) -> StoreJournal:
        """The journal of a run for a worker that has taken this shard of it. `record` has the counters of the shard."""
        return ShardJournal(self, record, shard, failed)

    @property
    def work(self) -> Work | None:
        """The trials that are given to workers; None for a file, which only one process writes to."""
        return self.database.work

    def results(self, record: RunRecord) -> Results:
        """What a run found; may be read while it goes on."""
        return Results(self.database, record)

    @property
    def writer(self) -> Writer:
        """The writer, started on first use."""
        if self._writer is None:
            self._writer = Writer(self.database, INSERTS, around=self._around)
        return self._writer

    @property
    def busy(self) -> bool:
        """Whether the writing thread is at work."""
        return self._writer is not None and self._writer.busy

    async def read(self, query: Callable[[Reader], T]) -> T:
        """Run a query on the reading thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, query)

    def read_soon(self, query: Callable[[Reader], T], then: Callable[[T], None], failed: Failed) -> None:
        """Run a quick query and pass on what it finds.

        SQLite is asked on the event loop itself: to hand the query to a thread would take longer than the query.
        """
        if not self.database.blocking:
            with self.database.translating():
                self._reader_here = self._opened(self._reader_here)
                found = query(self._reader_here)
            then(found)
            return

        def done(future: asyncio.Future[T]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if isinstance(error, Exception):
                failed(error)
            elif error is None:
                then(future.result())

        asyncio.get_running_loop().run_in_executor(self._thread, self._read, query).add_done_callback(done)

    @repeated
    def _read(self, query: Callable[[Reader], T]) -> T:
        """Run a query on the reading thread, again if the connection breaks."""
        try:
            with self.database.translating():
                self._reader = self._opened(self._reader)
                return query(self._reader)
        except ConnectionLost:
            self._reader = None
            raise

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _opened(self, reader: Reader | None) -> Reader:
        if reader is None:
            return self.database.reader()
        self.database.check()
        return reader

    async def close(self) -> None:
        """Write what is left and close all connections."""
        try:
            if self._writer is not None:
                await self._writer.close()
        finally:
            self.close_reading()

    def close_reading(self) -> None:
        """Close what reads, for a store that was never written to on a loop."""
        if self._reader_here is not None:
            self._reader_here.close()
        self._thread.submit(self._close_reader).result()  # a query that is under way may open it
        self._thread.shutdown()
        self.database.close()


class StoreJournal:
    """The journal port, over a store."""

    def __init__(self, store: Store, record: RunRecord, failed: Callable[[Exception], None]) -> None:
        self._store = store
        self._record = record
        self._writer = store.writer
        self._failed = failed
        self._writer.failed.append(failed)
        self._counters_key: tuple[str, Any] = (SET_COUNTERS, record.number)
        self._after: Callable[[], None] | None = None
        self._ahead: dict[str, TrialRow] = {}
        self._read_to = record.span[0]

    def _batch(self) -> Batch:
        """What will be committed next; the run's counters go along."""
        batch = self._writer.batch()
        batch.late[self._counters_key] = self._counted
        return batch

    def _counted(self) -> tuple[Any, ...]:
        return msgspec.json.encode(self._record.counters).decode(), time.time(), self._record.number

    def add_trial(self, row: TrialRow, then: Then | None = None, *args: Any) -> None:
        batch = self._batch()
        batch.rows["trials"].extend((*row[:5], checksum(*row[:4])))
        if then is not None:
            batch.after.append((then, args))

    def abandon(self, trial: int) -> None:
        self._batch().updates[ABANDON, trial] = (trial,)

    def add_work(self, trial: int, *, again: bool) -> None:
        self._batch().rows["work"].extend((trial, again, False))

    def withdraw(self, trial: int) -> None:
        self._batch().updates[WITHDRAW, trial] = (trial,)

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
        trial, path = ask
        fault = settlement.kind.value if type(settlement) is Fault else None
        encoded = encode_settlement(settlement)
        text = encoded.decode()
        batch = self._batch()
        timed = "" if seconds is None else f"{float(seconds).hex()}\0"
        of_row = joined_checksum(f"{trial}\0{path}\0{fingerprint!r}\0{wave}\0{fault}\0{timed}", encoded)
        batch.rows["asks"].extend((trial, path, fingerprint, wave, fault, text, of_row, seconds))
        if cache_key is not None:
            of_row = joined_checksum(f"{cache_key!r}\0", encoded)
            batch.rows["cache"].extend((cache_key, text, time.time(), of_row))
        batch.after.append((then, args))

    def add_outcome(
        self, trial: int, fault: str | None, body: str, then: Then, *args: Any, rows: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        row = (trial, fault, body, time.time())
        batch = self._batch()
        batch.rows["outcomes"].extend((*row, checksum(*row), encode_rows(trial, rows)))
        batch.after.append((then, args))

    def add_wave(self, intent: Intent, prints: Sequence[bytes], then: Then, *args: Any) -> None:
        listed = [(trial, path, print_.hex()) for (trial, path), print_ in zip(intent.asks, prints, strict=True)]
        asks = msgspec.json.encode(listed).decode()
        about = msgspec.json.encode(intent.about).decode()
        batch = self._batch()
        row = (intent.id, intent.account, intent.transport, len(listed), asks, intent.at, about)
        batch.rows["waves"].extend((*row, checksum(intent.id, asks)))
        batch.after.append((then, args))

    def add_receipt(self, wave: int, receipt: Receipt) -> None:
        self._batch().updates[SET_RECEIPT, wave] = (msgspec.json.encode(receipt.data).decode(), wave)

    def end_wave(self, wave: int) -> None:
        self._batch().updates[END_WAVE, wave] = (time.time(), wave)

    def save_counters(self, then: Then, *args: Any) -> None:
        self._batch().after.append((then, args))

    def on_commit(self, then: Callable[[], None]) -> None:
        self._after = then
        self._writer.after.append(then)

    def linger(self, seconds: float) -> None:
        self._writer.linger(seconds)

    async def flush(self) -> None:
        await self._writer.flush(self._counters_key)

    async def trials(self, after: int, count: int) -> Sequence[TrialRow]:
        return await self._store.read(lambda reading: self._trials(reading, after, count))

    async def unfinished(self) -> Sequence[TrialRow]:
        return await self._store.read(self._unfinished)

    async def find(self, keys: Sequence[str]) -> Mapping[str, TrialRow]:
        return await self._store.read(lambda reading: self._find(reading, keys))

    async def recorded(self, trials: Sequence[int]) -> Mapping[int, dict[str, Recorded]]:
        return await self._store.read(lambda reading: _recorded(reading, trials))

    async def open_waves(self) -> Sequence[tuple[Intent, Receipt | None, dict[AskId, bytes]]]:
        return await self._store.read(self._open_waves)

    def cached(self, keys: Sequence[bytes], then: Callable[[Mapping[bytes, Settlement]], None]) -> None:
        self._store.read_soon(lambda reading: _cached(reading, keys), then, self._failed)

    async def cancelled(self) -> bool:
        sql = "SELECT cancel FROM runs WHERE id = ?"
        row = await self._store.read(lambda reading: reading.execute(sql, (self._record.number,)).fetchone())
        return row is None or bool(row[0])

    async def keep(self, name: str, body: str) -> None:
        await asyncio.to_thread(
            self._store.documents.put, KEPT, f"{self._record.id}/{name}", body, run=self._record.number
        )

    def close(self) -> None:
        self._writer.failed.remove(self._failed)
        if self._after is not None:
            self._writer.after.remove(self._after)

    def _unfinished(self, reading: Reader) -> list[TrialRow]:
        sql = (
            "SELECT id, key, program, spec, attempt FROM trials WHERE id BETWEEN ? AND ? AND NOT abandoned "
            "AND NOT EXISTS (SELECT 1 FROM outcomes WHERE trial = trials.id) ORDER BY id"
        )
        return [TrialRow(*row) for row in reading.execute(sql, self._record.span)]

    def _find(self, reading: Reader, keys: Sequence[str]) -> dict[str, TrialRow]:
        """Look trials up by key: first in what lies ahead in the order of their start, then in an index.

        What was read ahead without an outcome may have ended since.
        """
        ahead = [self._ahead.pop(key, None) for key in keys]
        found = {row.key: row for row in ahead if row is not None and row.outcome is not None}
        while len(found) < len(keys) and self._read_ahead(reading, len(keys)):
            found.update((key, self._ahead.pop(key)) for key in keys if key in self._ahead)
        lacking = [key for key in keys if key not in found]
        return found | self._look_up(reading, lacking) if lacking else found

    def _read_ahead(self, reading: Reader, count: int) -> bool:
        """Read the next trials; a driver that submits them in the same order needs no index. False: do not bother."""
        if len(self._ahead) > MOST_AHEAD:
            self._ahead.clear()
            self._read_to = self._record.span[1]
        rows = self._trials(reading, self._read_to, count)
        if rows:
            self._read_to = rows[-1].id
            self._ahead.update((row.key, row) for row in rows)
        return bool(rows)

    def _trials(self, reading: Reader, after: int, count: int) -> list[TrialRow]:
        sql = f"{TRIALS} WHERE trials.id > ? AND trials.id <= ? ORDER BY trials.id LIMIT ?"
        return [_trial(row) for row in reading.execute(sql, (after, self._record.span[1], count))]

    def _look_up(self, reading: Reader, keys: Sequence[str]) -> dict[str, TrialRow]:
        """Look keys up in an index that lives only as long as this connection: the hot tables have none."""
        index = f"keys_{self._record.number}"
        if index not in reading.indexed:
            reading.indexed[index] = self._record.span[0]
            reading.execute(f"DROP TABLE IF EXISTS {index}", ())
            reading.execute(f"CREATE TEMP TABLE {index} (key TEXT PRIMARY KEY, id BIGINT)", ())
        self._index_on(reading, index, reading.indexed[index])
        found: dict[str, TrialRow] = {}
        for at in range(0, len(keys), LOOK_UP):
            some = keys[at : at + LOOK_UP]
            ids = f"SELECT id FROM {index} WHERE key IN ({_marks(len(some))})"
            for row in reading.execute(f"{TRIALS} WHERE trials.id IN ({ids})", some):
                found[row[1]] = _trial(row)
        return found

    def _index_on(self, reading: Reader, index: str, after: int) -> None:
        """Take up the trials that were started since."""
        last = "SELECT max(id) FROM trials WHERE id BETWEEN ? AND ?"
        (newest,) = reading.execute(last, (after, self._record.span[1])).fetchone()
        if newest is not None and newest > after:
            fill = (
                f"INSERT INTO {index} SELECT key, max(id) FROM trials WHERE id > ? AND id <= ? GROUP BY key "
                "ORDER BY key ON CONFLICT (key) DO UPDATE SET id = excluded.id"
            )
            reading.execute(fill, (after, newest))
            reading.indexed[index] = newest

    def _open_waves(self, reading: Reader) -> list[tuple[Intent, Receipt | None, dict[AskId, bytes]]]:
        sql = (
            "SELECT id, account, transport, asks, checksum, sent_at, receipt, about FROM waves "
            "WHERE ended_at IS NULL AND id BETWEEN ? AND ? ORDER BY id"
        )
        found: list[tuple[Intent, Receipt | None, dict[AskId, bytes]]] = []
        rows = reading.execute(sql, self._record.span).fetchall()
        for wave, account, transport, listed, known, at, receipt, said in rows:
            prints = dict(asks_of(wave, listed, known))
            about = About() if said is None else msgspec.json.decode(said, type=About)
            intent = Intent(wave, self._record.id, account, transport, tuple(prints), at, about)
            given = None if receipt is None else Receipt(msgspec.json.decode(receipt, type=dict[str, Any]))
            settled = _settled(reading, list({ask.trial for ask in prints}))
            found.append((intent, given, {ask: p for ask, p in prints.items() if (*ask, p) not in settled}))
        return found


class ShardJournal(StoreJournal):
    """The journal of a worker. With each outcome it commits that the head may have it."""

    def __init__(self, store: Store, record: RunRecord, shard: int, failed: Failed) -> None:
        super().__init__(store, record, failed)
        assert store.work is not None
        self._place = record.number, shard, store.work.holder
        self._counters_key = (SET_SHARD_COUNTERS, self._place)
        self._done: list[int] = []

    def _counted(self) -> tuple[Any, ...]:
        return msgspec.json.encode(self._record.counters).decode(), *self._place

    def add_outcome(
        self, trial: int, fault: str | None, body: str, then: Then, *args: Any, rows: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().add_outcome(trial, fault, body, then, *args, rows=rows)
        self._done.append(trial)
        self._batch().late[SET_DONE, self._place] = self._taken

    def _taken(self) -> tuple[Any, ...]:
        done, self._done = self._done, []
        return ("{" + ",".join(map(str, done)) + "}",)


def _trial(columns: Sequence[Any]) -> TrialRow:
    """A trial as the journal port has it, without the time that its checksum covers too."""
    return trial_row(columns)._replace(ended_at=None)


def _cached(reading: Reader, keys: Sequence[bytes]) -> dict[bytes, Settlement]:
    found: dict[bytes, Settlement] = {}
    for at in range(0, len(keys), LOOK_UP):
        some = keys[at : at + LOOK_UP]
        sql = f"SELECT key, settlement, checksum FROM cache WHERE key IN ({_marks(len(some))})"
        for key, text, known in reading.execute(sql, some):
            verify(known, "a cached reply", key, text)
            found[key] = decode_settlement(text)
    return found


def _settled(reading: Reader, trials: Sequence[int]) -> set[tuple[int, str, bytes]]:
    """The asks of trials that have ended. A new attempt may ask something else where an earlier one has a reply."""
    found: set[tuple[int, str, bytes]] = set()
    for at in range(0, len(trials), LOOK_UP):
        some = trials[at : at + LOOK_UP]
        sql = f"SELECT trial, path, fingerprint FROM asks WHERE trial IN ({_marks(len(some))})"
        found.update(reading.execute(sql, some))
    return found


def _recorded(reading: Reader, trials: Sequence[int]) -> dict[int, dict[str, Recorded]]:
    """What was journalled for trials. A later row of the same path replaces an earlier one."""
    found: dict[int, dict[str, Recorded]] = {trial: {} for trial in trials}
    for at in range(0, len(trials), LOOK_UP):
        some = trials[at : at + LOOK_UP]
        columns = f"SELECT {', '.join(AskRow._fields)} FROM asks"
        if some[-1] - some[0] == len(some) - 1:
            rows = reading.execute(f"{columns} WHERE trial BETWEEN ? AND ? ORDER BY trial, id", (some[0], some[-1]))
        else:
            rows = reading.execute(f"{columns} WHERE trial IN ({_marks(len(some))}) ORDER BY trial, id", list(some))
        for row in map(AskRow._make, rows):
            found[row.trial][row.path] = Recorded(row.fingerprint, row.decoded(), row.seconds)
    return found


def _marks(count: int) -> str:
    return ", ".join("?" * count)
