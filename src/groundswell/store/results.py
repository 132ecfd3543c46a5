"""The results of a run: its trials in order, and why some are missing."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import IO, Any, Literal, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa

from groundswell.engine.records import Recorded, RunRecord, TrialRow, row_labels
from groundswell.errors import RunError
from groundswell.program.request import Fault
from groundswell.store.checksum import AskRow, decode_rows, trial_row, verify
from groundswell.store.database import Database
from groundswell.store.documents import KEPT, Documents
from groundswell.store.schema import asks, outcomes, trials, waves
from groundswell.store.sql import one_of
from groundswell.store.tables import Format, frame, write_parquet, write_table

T = TypeVar("T")

CHUNK = 1_000
SAMPLED = 5_000
TRIALS = (
    sa.select(
        *(trials.c.id, trials.c.key, trials.c.program, trials.c.spec, trials.c.attempt),
        *(outcomes.c.body, outcomes.c.fault, trials.c.abandoned, outcomes.c.ended_at),
        *(trials.c.checksum, outcomes.c.checksum),
    )
    .outerjoin(outcomes, outcomes.c.trial == trials.c.id)
    .order_by(trials.c.id)
)
"""The columns of a `TrialRow`, and the checksums of its two rows."""
ROWS = (
    sa.select(trials.c.id, trials.c.key, trials.c.program, trials.c.spec, trials.c.checksum, outcomes.c.rows)
    .join(outcomes, outcomes.c.trial == trials.c.id)
    .where(outcomes.c.rows.is_not(None), sa.not_(trials.c.abandoned))
    .order_by(trials.c.id)
)
ENDED = trials.outerjoin(outcomes, outcomes.c.trial == trials.c.id)
COUNTED = sa.select(sa.func.count()).select_from(ENDED)
ASKS = sa.select(*(asks.c[column] for column in AskRow._fields))
NUMBERED = TRIALS.where(trials.c.id.between(sa.bindparam("first"), sa.bindparam("last")))


FIXED = ("key", "program", "status", "fault_kind", "fault_message")
"""The columns of every table of trials."""

TrialStatus = Literal["usable", "missing", "unfinished"]
Table = Literal["trials", "rows"]


class TrialResult(NamedTuple):
    """One trial as the store holds it: a result, a fault, or neither while it is unfinished."""

    row: TrialRow
    fault: Fault | None

    @property
    def key(self) -> str:
        """The trial's key."""
        return self.row.key

    @property
    def program(self) -> str:
        """The program, as name@version."""
        return self.row.program

    @property
    def status(self) -> TrialStatus:
        """Whether there is a result, and if not, whether there will be."""
        if self.row.outcome is None:
            return "unfinished"
        return "usable" if self.fault is None else "missing"

    @property
    def spec_json(self) -> str:
        """The spec as it was stored."""
        return self.row.spec

    @property
    def result_json(self) -> str | None:
        """The result as it was stored."""
        return self.row.outcome if self.status == "usable" else None

    def spec(self, wanted: type[T] | Any = Any) -> T | Any:
        """The spec, as plain data or in a type."""
        return msgspec.json.decode(self.row.spec, type=wanted)

    def result(self, wanted: type[T] | Any = Any) -> T | Any:
        """The result, as plain data or in a type; None where there is none."""
        return None if self.result_json is None else msgspec.json.decode(self.result_json, type=wanted)

    def nested(self) -> dict[str, Any]:
        """The trial as a row of JSON: spec and result are whole."""
        found = self.result_json
        return {
            **self._fixed(),
            "spec": msgspec.Raw(self.spec_json.encode()),
            "result": None if found is None else msgspec.Raw(found.encode()),
        }

    def flat(self) -> dict[str, Any]:
        """The trial as a row of a table: a cell for each field of its spec and of its result."""
        found = None if self.result_json is None else _fields("result", self.result())
        return {**self._fixed(), **_fields("spec", self.spec()), **(found or {})}

    def _fixed(self) -> dict[str, Any]:
        kind, message = (None, None) if self.fault is None else (self.fault.kind.value, self.fault.message)
        return dict(zip(FIXED, (self.key, self.program, self.status, kind, message), strict=True))


def _fields(prefix: str, value: Any) -> dict[str, Any]:
    """The fields of an object; what has none stays one cell."""
    return {f"{prefix}.{name}": part for name, part in value.items()} if isinstance(value, dict) else {prefix: value}


def write_trials(results: Iterable[TrialResult], out: IO[bytes], format: Format) -> int:
    """Write a row for each trial; returns how many. In JSON, spec and result are whole, else they are spread out."""
    if format in ("json", "jsonl"):
        return write_table(out, format, (result.nested() for result in results))
    if format == "parquet":
        made = trials_frame(results)
        write_parquet(made, out)
        return int(made.height)
    if iter(results) is results:
        results = list(results)
    names = _in_order(name for result in results for name in result.flat())
    return write_table(out, format, (result.flat() for result in results), dict.fromkeys(names, "any"))


def trials_frame(results: Iterable[TrialResult], *, pandas: bool = False) -> Any:
    """A frame with the columns of `write_trials`."""
    made = frame((result.flat() for result in results), None, pandas)
    return made[_in_order(made.columns)] if len(made) else frame([], dict.fromkeys(FIXED, "text"), pandas)


def _in_order(names: Iterable[str]) -> list[str]:
    """Names of columns in the order of a table: the fixed ones, then specs', then results'."""
    return sorted(dict.fromkeys((*FIXED, *names)), key=lambda name: (name not in FIXED, name.startswith("result")))


class FaultCount(NamedTuple):
    """How many trials are missing for one reason, with the first of them as an example."""

    kind: str
    trials: int
    key: str
    message: str


class Latencies(NamedTuple):
    """Percentiles of the seconds that the replies of a transport took. For a batch, they count from its sending.

    `transport` is the transport of a batch, or `live` for all others.
    """

    transport: str
    replies: int
    p50: float
    p90: float
    p99: float
    max: float


class Spread(NamedTuple):
    """How many seconds half of the replies of a wave took at most, and the slowest one."""

    median: float
    longest: float


class ReplyCounts(NamedTuple):
    """How many chat replies a run holds, how many usable trials got any, and how many of each are different.

    Replies are the same if request and answer are; trials, if all their replies are.
    """

    n: int
    distinct: int
    trials: int
    distinct_trials: int


class TrialFilter(NamedTuple):
    """Which trials of a run: with a text in key or spec, with a status, or some by their ids."""

    text: str = ""
    status: TrialStatus | None = None
    ids: Sequence[int] | None = None

    @property
    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """The conditions of a query."""
        found: list[sa.ColumnElement[bool]] = []
        if self.text:
            texts = (column.icontains(self.text, autoescape=True) for column in (trials.c.key, trials.c.spec))
            found.append(sa.or_(*texts))
        if self.status == "unfinished":
            found.append(outcomes.c.trial.is_(None))
        elif self.status is not None:
            missing = outcomes.c.fault.is_not(None)
            found.append(sa.and_(outcomes.c.trial.is_not(None), missing if self.status == "missing" else ~missing))
        if self.ids is not None:
            found.append(one_of(trials.c.id, self.ids))
        return found


class Place(NamedTuple):
    """Where a trial is among those of a filter. `number` counts from 1; None if the filter does not include it."""

    number: int | None
    total: int
    before: str | None
    after: str | None


class Results:
    """The trials of one run. Iterating reads them a chunk at a time and keeps no transaction open in between.

    It may be read from any thread, while the run goes on, and after its store was closed.
    """

    def __init__(self, database: Database, record: RunRecord) -> None:
        self._database = database
        self._id = record.id
        self._span = record.span
        self._title = record.title

    def __iter__(self) -> Iterator[TrialResult]:
        after = self._span[0] - 1
        while chunk := self._select(trials.c.id > after, limit=CHUNK):
            yield from chunk
            after = chunk[-1].row.id

    def numbered(self, first: int, last: int) -> Sequence[TrialResult]:
        """The trials that were started as the first, second, ... of their run; those that are there."""
        begin, end = self._span
        if last < first or first > end - begin:
            return ()
        with self._read() as connection:
            found = connection.execute(NUMBERED, {"first": begin + max(first, 1), "last": min(begin + last, end)})
            return [_result(trial_row(row)) for row in found.all()]

    def search(self, wanted: TrialFilter, *, limit: int, offset: int = 0) -> tuple[Sequence[TrialResult], int]:
        """A page of the trials that match a filter, in the order of their start, and how many match in all."""
        conditions = self._within(wanted)
        with self._read() as connection:
            found = connection.execute(TRIALS.where(*conditions).limit(limit).offset(offset))
            rows = [_result(trial_row(row)) for row in found]
            return rows, int(connection.execute(COUNTED.where(*conditions)).scalar_one())

    def place(self, wanted: TrialFilter, id_: int) -> Place:
        """Where a trial is among those that match a filter, and its neighbours there."""
        conditions = self._within(wanted)
        earlier, later = trials.c.id < id_, trials.c.id > id_
        with self._read() as connection:
            count = sa.func.count
            query = sa.select(count(), count().filter(earlier), count().filter(trials.c.id == id_))
            total, before, here = connection.execute(query.select_from(ENDED).where(*conditions)).one()
            keys = sa.select(trials.c.key).select_from(ENDED).where(*conditions).limit(1)
            previous = connection.execute(keys.where(earlier).order_by(trials.c.id.desc())).scalar()
            following = connection.execute(keys.where(later).order_by(trials.c.id)).scalar()
        return Place(before + 1 if here else None, total, previous, following)

    def keys(self) -> Sequence[tuple[int, str]]:
        """Id and key of every trial, in the order of their start."""
        query = sa.select(trials.c.id, trials.c.key).where(trials.c.id.between(*self._span)).order_by(trials.c.id)
        with self._read() as connection:
            return [(id_, key) for id_, key in connection.execute(query)]

    def transports(self, row: TrialRow) -> dict[str, str]:
        """How the replies of a trial came: path -> transport. It is empty for a reply that was reused."""
        sent = sa.case((asks.c.wave.is_(None), ""), else_=sa.func.coalesce(waves.c.transport, "live"))
        query = sa.select(asks.c.path, sent).outerjoin(waves, waves.c.id == asks.c.wave)
        with self._read() as connection:
            found = connection.execute(query.where(asks.c.trial == row.id).order_by(asks.c.id))
            return {path: str(transport) for path, transport in found}

    def newest_reply(self, row: TrialRow) -> int:
        """The id of what was journalled last for a trial; 0 if nothing was."""
        query = sa.select(sa.func.coalesce(sa.func.max(asks.c.id), 0)).where(asks.c.trial == row.id)
        with self._read() as connection:
            return int(connection.execute(query).scalar_one())

    def trial(self, key: str) -> TrialResult:
        """The trial with this key, or the only one whose key begins so."""
        found = self._select(trials.c.key == key, limit=1)
        found = found or self._select(sa.func.substr(trials.c.key, 1, len(key)) == key, limit=6)
        if not found:
            raise RunError(f"run {self._title!r} has no trial {key!r}: list all keys with `groundswell runs export`")
        if len(found) > 1:
            some = ", ".join(result.key for result in found[:5])
            raise RunError(f"run {self._title!r}: several keys start with {key!r} ({some}): give more characters")
        return found[0]

    def kept(self, name: str) -> str | None:
        """What the run's driver kept under a name."""
        id_ = f"{self._id}/{name}"
        found = Documents(self._database).find(KEPT, id_).get(id_)
        return None if found is None else found.body

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of data that trials recorded, in the order of trials.

        Each has `trial`, `row` and, where they are known, `condition`, `model`, `replicate` and `seat`.
        """
        after = self._span[0] - 1
        while True:
            query = ROWS.where(trials.c.id > after, trials.c.id <= self._span[1]).limit(CHUNK)
            with self._read() as connection:
                chunk = connection.execute(query).all()
            for id_, key, program, spec, known, text in chunk:
                verify(known, f"trial {key!r}", id_, key, program, spec)
                labels = row_labels(key, spec)
                for number, values in enumerate(decode_rows(id_, text), 1):
                    yield {"trial": key, "row": number, **labels, **values}
            if not chunk:
                return
            after = chunk[-1][0]

    def frame(self, *, pandas: bool = False) -> Any:
        """The trials as a polars DataFrame, or one of pandas: a row each, the columns of an export."""
        return trials_frame(self, pandas=pandas)

    def write(self, out: IO[bytes], format: Format, table: Table = "trials") -> int:
        """Write the trials, or the rows of data that they recorded; returns how many."""
        return write_table(out, format, self.rows) if table == "rows" else write_trials(self, out, format)

    def recorded(self, row: TrialRow) -> dict[str, Recorded]:
        """What was journalled for a trial, by path."""
        query = ASKS.where(asks.c.trial == row.id).order_by(asks.c.id)
        with self._read() as connection:
            rows = [AskRow(*found) for found in connection.execute(query)]
            return {row.path: Recorded(row.fingerprint, row.decoded(), row.seconds) for row in rows}

    def fault_counts(self) -> list[FaultCount]:
        """Why trials are missing, most frequent first."""
        counted = (
            sa.select(outcomes.c.fault, sa.func.count().label("many"), sa.func.min(outcomes.c.trial).label("first"))
            .where(outcomes.c.trial.between(*self._span), outcomes.c.fault.is_not(None))
            .group_by(outcomes.c.fault)
            .subquery()
        )
        query = (
            sa.select(
                *(counted.c.fault, counted.c.many, trials.c.key),
                *(outcomes.c.trial, outcomes.c.body, outcomes.c.ended_at, outcomes.c.checksum),
            )
            .join(outcomes, outcomes.c.trial == counted.c.first)
            .join(trials, trials.c.id == counted.c.first)
            .order_by(counted.c.many.desc(), counted.c.fault)
        )
        with self._read() as connection:
            found = []
            for kind, many, key, trial, body, ended_at, known in connection.execute(query):
                verify(known, f"the outcome of trial {key!r}", trial, kind, body, ended_at)
                found.append(FaultCount(kind, many, key, _fault(body).message))
            return found

    def latencies(self, most: int = SAMPLED) -> tuple[list[Latencies], dict[int, Spread]]:
        """Seconds from sending a request to its reply: percentiles by transport, and the spread within each wave.

        At most `most` requests are read: those of the trials that were started last. Cache hits, faults, and replies of
        releases that did not store the time are left out.
        """
        newest = (
            sa.select(asks.c.wave, asks.c.fault, asks.c.seconds)
            .where(asks.c.trial.between(*self._span))
            .order_by(asks.c.trial.desc())
            .limit(most)
            .subquery()
        )
        query = (
            sa.select(sa.func.coalesce(waves.c.transport, "live"), newest.c.wave, newest.c.seconds)
            .outerjoin_from(newest, waves, waves.c.id == newest.c.wave)
            .where(newest.c.seconds.is_not(None), newest.c.fault.is_(None))
        )
        taken: dict[str, list[float]] = {}
        by_wave: dict[int, list[float]] = {}
        with self._read() as connection:
            for transport, wave, seconds in connection.execute(query):
                taken.setdefault(transport, []).append(seconds)
                if wave is not None:
                    by_wave.setdefault(wave, []).append(seconds)
        spread = {wave: Spread(median(some), max(some)) for wave, some in by_wave.items() if len(some) > 1}
        return [_latencies(transport, sorted(taken[transport])) for transport in sorted(taken)], spread

    def ask_fault_counts(self) -> dict[str, int]:
        """How many requests ended in a fault, by its kind, most frequent first. Takes a second for a million requests.

        Attempts that were retried do not count.
        """
        many = sa.func.count().label("many")
        of_run = asks.c.trial.between(*self._span) & asks.c.fault.is_not(None)
        query = sa.select(asks.c.fault, many).where(of_run).group_by(asks.c.fault).order_by(many.desc(), asks.c.fault)
        with self._read() as connection:
            return {row.fault: row.many for row in connection.execute(query)}

    def reply_counts(self) -> ReplyCounts:
        """How many replies there are, and how many different ones. Takes some seconds for a million.

        Where a path has several rows, the latest one counts, as it does for a replay.
        """
        replies, sequences = _Distinct(), _Distinct()
        query = ASKS.add_columns(outcomes.c.trial.is_not(None) & outcomes.c.fault.is_(None))
        query = query.outerjoin(outcomes, outcomes.c.trial == asks.c.trial).where(asks.c.trial.between(*self._span))
        with self._read() as connection:
            connection.exec_driver_sql("BEGIN")  # PostgreSQL streams within a transaction only; it ends with the block
            streamed = connection.execution_options(yield_per=CHUNK).execute(query.order_by(asks.c.trial, asks.c.id))
            for _, rows in groupby(streamed, key=itemgetter(0)):
                latest: dict[str, int | None] = {}
                usable = False
                for *columns, ended_well in rows:
                    row, usable = AskRow._make(columns), bool(ended_well)
                    latest[row.path] = _reply_hash(row) if row.fault is None else None
                found = {path: reply for path, reply in latest.items() if reply is not None}
                for reply in found.values():
                    replies.add(reply)
                if usable and found:
                    sequences.add(hash(frozenset(found.items())))
        return ReplyCounts(replies.total, replies.count(), sequences.total, sequences.count())

    def _within(self, wanted: TrialFilter) -> list[sa.ColumnElement[bool]]:
        return [trials.c.id.between(*self._span), *wanted.conditions]

    def _select(self, condition: sa.ColumnElement[bool], limit: int) -> Sequence[TrialResult]:
        query = TRIALS.where(trials.c.id.between(*self._span), condition).limit(limit)
        with self._read() as connection:
            return [_result(trial_row(row)) for row in connection.execute(query)]

    def _read(self) -> AbstractContextManager[sa.Connection]:
        return self._database.reading()


def _result(row: TrialRow) -> TrialResult:
    return TrialResult(row, None if row.fault is None or row.outcome is None else _fault(row.outcome))


def _latencies(transport: str, seconds: Sequence[float]) -> Latencies:
    """Percentiles of sorted values: the smallest value that so many percent do not exceed."""
    p50, p90, p99 = (seconds[-(-percent * len(seconds) // 100) - 1] for percent in (50, 90, 99))
    return Latencies(transport, len(seconds), p50, p90, p99, seconds[-1])


def _fault(body: str) -> Fault:
    return msgspec.json.decode(body, type=Fault)


class _Call(msgspec.Struct, frozen=True):
    """A tool call without its id, which is another one every time."""

    name: str
    arguments: str


class _Said(msgspec.Struct):
    """As much of a settlement as makes a reply different from others."""

    type: str = ""
    text: str = ""
    tool_calls: tuple[_Call, ...] = ()


_said = msgspec.json.Decoder(_Said)


def _reply_hash(row: AskRow) -> int | None:
    """A number for a reply to a request, good within this process; None for what is no reply."""
    text = row.checked().settlement
    try:
        said = _said.decode(text)
    except msgspec.MsgspecError:
        return None
    return hash((row.fingerprint, said.text, said.tool_calls)) if said.type == "reply" else None


class _Distinct:
    """Counts different hashes, with eight bytes for each that is added."""

    def __init__(self) -> None:
        self.total = 0
        self._parts = [array("q") for _ in range(64)]

    def add(self, number: int) -> None:
        self.total += 1
        self._parts[number & 63].append(number)

    def count(self) -> int:
        return sum(len(set(part)) for part in self._parts)
