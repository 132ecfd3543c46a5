"""The batches of a store, of all runs: which are open, and manual changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from groundswell.engine.records import NUMBER, RUN_SHIFT, About, AskId, Counters, Intent, Possible, Receipt, RunRecord
from groundswell.program.request import Settlement
from groundswell.store.checksum import AskRow, verify
from groundswell.store.database import Database
from groundswell.store.results import ASKS
from groundswell.store.schema import asks, runs, trials, waves

LOOK_UP = 500
OF_A_RUN = waves.join(runs, runs.c.id == waves.c.id.op(">>")(sa.cast(RUN_SHIFT, sa.Integer)))
COLUMNS = (
    *(waves.c.id, runs.c.uid, runs.c.name, waves.c.account, waves.c.transport, waves.c.size),
    *(waves.c.sent_at, waves.c.about, waves.c.receipt, waves.c.ended_at),
)


class StoredWave(NamedTuple):
    """A wave without its asks. `at` is when it was about to be sent; it is open as long as it has not ended here."""

    id: int
    run: str
    name: str | None
    account: str
    transport: str
    size: int
    at: float
    about: About
    receipt: Receipt | None
    ended_at: float | None

    @property
    def number(self) -> int:
        """The number of the wave in its run."""
        return self.id & NUMBER

    @property
    def title(self) -> str:
        """Run and wave, as people write them."""
        return f"{self.name or self.run}/{self.number}"

    @property
    def batch(self) -> str | None:
        """What the provider calls it, where that is known."""
        batch = None if self.receipt is None else self.receipt.data.get("batch")
        return batch if isinstance(batch, str) else None


class Came(NamedTuple):
    """How the replies of a run came: in how many batches, how many in these, and how many live."""

    batches: int
    batched: int
    live: int


class Waves:
    """The table of waves. Calls are short and synchronous; a run that goes on meanwhile is not disturbed by reading.

    Who changes a wave holds the lock of its run.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, run: RunRecord | None = None) -> list[StoredWave]:
        """The waves that have not ended, of one run or of all, oldest first."""
        query = sa.select(*COLUMNS).select_from(OF_A_RUN).where(waves.c.ended_at.is_(None)).order_by(waves.c.id)
        return self._found(query if run is None else query.where(waves.c.id.between(*run.span)))

    def ended(self, limit: int) -> list[StoredWave]:
        """The waves of all runs that have ended, the last one first."""
        query = sa.select(*COLUMNS).select_from(OF_A_RUN).where(waves.c.ended_at.is_not(None))
        return self._found(query.order_by(waves.c.ended_at.desc()).limit(limit))

    def of(self, run: RunRecord) -> list[StoredWave]:
        """The waves of a run, oldest first."""
        query = sa.select(*COLUMNS).select_from(OF_A_RUN).where(waves.c.id.between(*run.span))
        return self._found(query.order_by(waves.c.id))

    def find(self, run: RunRecord, number: int) -> StoredWave | None:
        """A wave of a run, ended or not."""
        if not 0 < number <= NUMBER:
            return None
        query = sa.select(*COLUMNS).select_from(OF_A_RUN).where(waves.c.id == run.span[0] + number)
        return next(iter(self._found(query)), None)

    def of_batch(self, batch: str) -> StoredWave | None:
        """The wave that is this batch at its provider, ended or not."""
        like = waves.c.receipt.contains(batch, autoescape=True)
        found = self._found(sa.select(*COLUMNS).select_from(OF_A_RUN).where(like))
        return next((wave for wave in found if wave.batch == batch), None)

    def batches(self) -> set[str]:
        """Every batch that the runs of this store have made, as far as its id is known."""
        with self._read() as connection:
            given = connection.execute(sa.select(waves.c.receipt).where(waves.c.receipt.is_not(None))).scalars()
            named = [msgspec.json.decode(text, type=dict[str, Any]).get("batch") for text in given]
        return {batch for batch in named if isinstance(batch, str)}

    def came(self, run: RunRecord) -> Came:
        """How the replies that a run was sent so far have come."""
        there = sa.select(waves.c.id).where(waves.c.id.between(*run.span)).limit(1)
        count, distinct = sa.func.count, sa.distinct(waves.c.id)
        replies = sa.select(count(distinct), count(waves.c.id), count(asks.c.wave) - count(waves.c.id)).select_from(
            asks.outerjoin(waves, waves.c.id == asks.c.wave)
        )
        with self._read() as connection:
            if connection.execute(there).first() is None:  # a run that never had a batch is not read through
                return Came(0, 0, 0)
            of_run = asks.c.trial.between(*run.span) & asks.c.fault.is_(None)
            return Came(*connection.execute(replies.where(of_run)).one())

    def intent(self, wave: StoredWave) -> Intent:
        """A wave with its asks, as transports take it."""
        with self._read() as connection:
            carried = tuple(ask for ask, _ in _carried(connection, wave))
        return Intent(wave.id, wave.run, wave.account, wave.transport, carried, wave.at, wave.about)

    def trials(self, wave: StoredWave, most: int) -> list[str]:
        """The keys of the first trials whose asks a wave carries."""
        with self._read() as connection:
            first = list(dict.fromkeys(ask.trial for ask, _ in _carried(connection, wave)))[:most]
            query = sa.select(trials.c.id, trials.c.key).where(trials.c.id.in_(first))
            keys = {row.id: row.key for row in connection.execute(query)}
        return [keys[number] for number in first if number in keys]

    def settled(self, wave: StoredWave) -> Iterator[Settlement]:
        """What came of the asks of a wave: replies, and faults that were the end of an ask.

        An earlier session may have given its number to requests that went live: those are not of it.
        """
        with self._read() as connection:
            carried = dict(_carried(connection, wave))
            for some in _slices([ask.trial for ask in carried]):
                query = ASKS.where(asks.c.trial.in_(some)).where(asks.c.wave == wave.id)
                for row in map(AskRow._make, connection.execute(query)):
                    if (row.trial, row.path) in carried:
                        yield row.decoded()

    def waiting(self, wave: StoredWave) -> int:
        """How many asks of a wave have no settlement, and are in no later wave either."""
        with self._read() as connection:
            return _waiting(connection, wave)

    def set_receipt(self, wave: StoredWave, receipt: Receipt, about: About) -> None:
        """Say which batch a wave is, and whose: the run that is resumed collects it."""
        values = {"receipt": _json(receipt.data), "about": _json(about)}
        with self._write(wave) as connection:
            connection.execute(sa.update(waves).where(waves.c.id == wave.id).values(**values))

    def give_up(self, wave: StoredWave) -> int:
        """End a wave: its run sends again what has no settlement. That may be paid for twice, and is counted so."""
        with self._write(wave) as connection:
            left = _waiting(connection, wave)
            connection.execute(sa.update(waves).where(waves.c.id == wave.id).values(ended_at=time.time()))
            of_run = runs.c.id == wave.id >> RUN_SHIFT
            text = connection.execute(sa.select(runs.c.counters).where(of_run)).scalar_one()
            counters = msgspec.json.decode(text, type=Counters)
            counters.resent += left
            counters.possible += _possible(wave, left)
            connection.execute(sa.update(runs).where(of_run).values(counters=_json(counters)))
        return left

    def _found(self, query: sa.Select[Any]) -> list[StoredWave]:
        with self._read() as connection:
            return [_wave(row) for row in connection.execute(query)]

    def _read(self) -> AbstractContextManager[sa.Connection]:
        return self._database.reading()

    def _write(self, wave: StoredWave) -> AbstractContextManager[sa.Connection]:
        return self._database.writing(wave.id >> RUN_SHIFT)


def _wave(row: sa.Row[Any]) -> StoredWave:
    about = About() if row.about is None else msgspec.json.decode(row.about, type=About)
    receipt = None if row.receipt is None else Receipt(msgspec.json.decode(row.receipt, type=dict[str, Any]))
    plain = (row.id, row.uid, row.name, row.account, row.transport, row.size, row.sent_at)
    return msgspec.convert((*plain, about, receipt, row.ended_at), StoredWave)


def _carried(connection: sa.Connection, wave: StoredWave) -> list[tuple[AskId, bytes]]:
    """The asks of a wave, and their fingerprints."""
    columns = sa.select(waves.c.id, waves.c.asks, waves.c.checksum)
    return asks_of(*connection.execute(columns.where(waves.c.id == wave.id)).one())


def asks_of(wave: int, text: str, known: int | None) -> list[tuple[AskId, bytes]]:
    """The asks of a wave and their fingerprints, from its columns."""
    verify(known, f"wave number {wave}", wave, text)
    rows = msgspec.json.decode(text, type=list[tuple[int, str, str]])
    try:
        return [(AskId(trial, path), bytes.fromhex(print_)) for trial, path, print_ in rows]
    except ValueError as error:
        raise msgspec.DecodeError(f"wave number {wave} has a fingerprint that is not hexadecimal") from error


def _waiting(connection: sa.Connection, wave: StoredWave) -> int:
    carried = _carried(connection, wave)
    ended: set[tuple[int, str, bytes]] = set()
    for some in _slices([ask.trial for ask, _ in carried]):
        query = sa.select(asks.c.trial, asks.c.path, asks.c.fingerprint).where(asks.c.trial.in_(some))
        ended.update((trial, path, print_) for trial, path, print_ in connection.execute(query))
    retried = {ask for later in _open_after(connection, wave) for ask, _ in later}
    return sum((*ask, print_) not in ended and ask not in retried for ask, print_ in carried)


def _open_after(connection: sa.Connection, wave: StoredWave) -> list[list[tuple[AskId, bytes]]]:
    """The asks of later waves of the same run that have not ended: a retried ask belongs to the last of them."""
    later = waves.c.id.between(wave.id + 1, wave.id | NUMBER)
    columns = sa.select(waves.c.id, waves.c.asks, waves.c.checksum)
    found = connection.execute(columns.where(later).where(waves.c.ended_at.is_(None)))
    return [asks_of(*row) for row in found]


def _possible(wave: StoredWave, asks: int) -> Possible:
    """What some asks of a batch may have cost, as far as is known of the whole batch."""
    usd = wave.about.usd
    return Possible(asks, usd=(usd or 0.0) * asks / wave.size if asks else 0.0, unknown=0 if usd is not None else asks)


def _slices(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Trials, each of them once, a few at a time."""
    each = list(dict.fromkeys(numbers))
    for at in range(0, len(each), LOOK_UP):
        yield each[at : at + LOOK_UP]


def _json(data: Any) -> str:
    return msgspec.json.encode(data).decode()
