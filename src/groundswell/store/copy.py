"""Copies runs from one store to another: `groundswell store copy FROM TO`.

A run gets a new number if its own is taken in the other store. Its rows then get other ids, and other checksums. Each
run is copied in one transaction: it is there as a whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from groundswell.engine.records import RUN_SHIFT, Counters, RunRecord
from groundswell.errors import RunError, SettingsError
from groundswell.store.check import CONTENT
from groundswell.store.checksum import AskRow, checksum, decode_rows, encode_rows
from groundswell.store.database import Database, Insert
from groundswell.store.documents import KEPT
from groundswell.store.journal import INSERTS
from groundswell.store.runs import Runs, set_checksum
from groundswell.store.schema import asks, cache, documents, outcomes, runs, trials, waves

CHUNK = 500
TRIALS = Insert(trials, trials.columns.keys())
OUTCOMES = Insert(outcomes, outcomes.columns.keys())
ASKS = INSERTS["asks"]
WAVES = Insert(waves, waves.columns.keys())
DOCUMENTS = Insert(documents, documents.columns.keys(), "keep")
CACHE = Insert(cache, cache.columns.keys(), "keep")

Notice = Callable[[str, int, int], None]
"""Is told which run is copied, how many of its trials are there, and how many it has."""


class Copied(msgspec.Struct):
    """What was copied. `there`: runs that the other store had before."""

    runs: list[str] = []
    there: list[str] = []
    trials: int = 0
    replies: int = 0
    documents: int = 0
    cached: int = 0


def copy_store(
    source: Database, target: Database, wanted: Sequence[str] = (), tell: Notice = lambda run, at, of: None
) -> Copied:
    """Copy some runs, by name or id; or all runs, with documents and cached replies. The source is not changed."""
    found, held = Runs(source), Runs(target)
    chosen = [found.get(name) for name in wanted] if wanted else list(reversed(found.list()))
    chosen = [record for record in chosen if not record.deleting]
    copied = Copied()
    new = []
    for record in _distinct(chosen):
        if held.find(record.id) is not None:
            copied.there.append(record.title)
        else:
            new.append(record)
    _check(held, found, new)
    for record in new:
        lock = found.lock(record)
        try:
            _copy_run(source, target, record, copied, tell)
        finally:
            lock.release()
    if not wanted:
        copied.documents += _copy_all(source, target, DOCUMENTS, documents.c.kind != KEPT)
        copied.cached += _copy_all(source, target, CACHE, sa.true())
    return copied


def _distinct(records: Sequence[RunRecord]) -> list[RunRecord]:
    """Each run once, parents before their forks."""
    return sorted({record.number: record for record in records}.values(), key=lambda record: record.number)


def _check(held: Runs, found: Runs, new: Sequence[RunRecord]) -> None:
    """Raise an error, before anything is copied, if some run cannot be."""
    ids = {record.id for record in new}
    for record in new:
        other = None if record.name is None else held.find(record.name)
        if other is not None:
            raise RunError(
                f"run {record.name!r}: the other store has another run with this name, {other.id}. To leave it out, "
                "name the runs to copy"
            )
        unfinished = record.status not in ("completed", "failed")
        if record.parent is not None and unfinished and record.parent not in ids and held.find(record.parent) is None:
            parent = found.find(record.parent)
            title = record.parent if parent is None else parent.title
            raise RunError(f"run {record.title!r} is an unfinished fork of {title!r}: copy that run too")


def _copy_run(source: Database, target: Database, record: RunRecord, copied: Copied, tell: Notice) -> None:
    first, last = record.span
    with source.reading() as reading, target.writing() as writing:
        row = reading.execute(sa.select(runs).where(runs.c.id == record.number)).one()._asdict()
        for shard in [] if source.work is None else source.work.left_over(record):
            counters = msgspec.json.decode(row["counters"], type=Counters).with_shard(shard.counters)
            row["counters"] = msgspec.json.encode(counters).decode()
        number = _insert_run(target, writing, row)
        shift = (number - record.number) << RUN_SHIFT
        if shift and reading.execute(_open_wave(first, last)).first() is not None:
            raise RunError(
                f"run {record.title!r} has a batch in flight, whose requests carry its number {record.number}, and "
                "the other store has another run with this number. Collect the batch first: groundswell runs resume "
                f"{record.id}"
            )
        after = first - 1
        while chunk := _read(reading, TRIALS, trials.c.id > after, trials.c.id <= last, order=[trials.c.id]):
            until = chunk[-1]["id"]
            _write(target, writing, TRIALS, (_moved_trial(each, shift) for each in chunk))
            ended = _read(reading, OUTCOMES, outcomes.c.trial.between(after + 1, until), limit=None)
            _write(target, writing, OUTCOMES, (_moved_outcome(each, shift) for each in ended))
            asked = _read(reading, ASKS, asks.c.trial.between(after + 1, until), order=[asks.c.id], limit=None)
            _write(target, writing, ASKS, (_moved_ask(each, shift) for each in asked))
            copied.trials += len(chunk)
            copied.replies += len(asked)
            after = until
            tell(record.title, after - first, record.counters.planned)
        for each in _read(reading, WAVES, waves.c.id.between(first, last), limit=None):
            _write(target, writing, WAVES, [_moved_wave(each, shift)])
        kept = sa.func.substr(documents.c.id, 1, len(record.id) + 1) == f"{record.id}/"
        _write(target, writing, DOCUMENTS, _read(reading, DOCUMENTS, documents.c.kind == KEPT, kept, limit=None))
    copied.runs.append(record.title)


def _insert_run(target: Database, writing: sa.Connection, row: dict[str, Any]) -> int:
    """Write the row of a run, with its own number if that is free. It is not being worked on."""
    CONTENT["runs"](row)
    values = dict(row)
    taken = sa.select(runs.c.id).where(runs.c.id == row["id"])
    if writing.execute(taken).first() is not None:
        values.pop("id")
    number = int(writing.execute(sa.insert(runs).values(**values).returning(runs.c.id)).scalar_one())
    target.numbered(writing)
    if row["checksum"] is not None:
        set_checksum(writing, number)
    return number


def _open_wave(first: int, last: int) -> sa.Select[Any]:
    return sa.select(waves.c.id).where(waves.c.id.between(first, last), waves.c.ended_at.is_(None)).limit(1)


def _read(
    reading: sa.Connection,
    of: Insert,
    *where: sa.ColumnElement[bool],
    order: Sequence[sa.ColumnElement[Any]] = (),
    limit: int | None = CHUNK,
) -> list[dict[str, Any]]:
    """Rows of a table, checked for damage."""
    query = sa.select(*(of.table.c[column] for column in of.columns)).where(*where)
    found = [dict(row._mapping) for row in reading.execute(query.order_by(*order).limit(limit))]
    for row in found:
        CONTENT[of.table.name](row)
    return found


def _write(target: Database, writing: sa.Connection, of: Insert, rows: Iterable[dict[str, Any]]) -> None:
    target.insert(writing, of, [row[column] for row in rows for column in of.columns])


def _copy_all(source: Database, target: Database, of: Insert, which: sa.ColumnElement[bool]) -> int:
    """Copy the rows that the other store does not have, in the order of their keys; returns how many were read."""
    keys = list(of.table.primary_key.columns)
    after: tuple[Any, ...] | None = None
    count = 0
    while True:
        later = sa.true() if after is None else sa.tuple_(*keys) > sa.tuple_(*map(sa.literal, after))
        with source.reading() as reading:
            chunk = _read(reading, of, which, later, order=keys)
        if not chunk:
            return count
        with target.writing() as writing:
            _write(target, writing, of, chunk)
        after = tuple(chunk[-1][key.name] for key in keys)
        count += len(chunk)


def _moved_trial(row: dict[str, Any], shift: int) -> dict[str, Any]:
    number = row["id"] + shift
    known = row["checksum"]
    made = None if known is None else checksum(number, row["key"], row["program"], row["spec"])
    return {**row, "id": number, "abandoned": bool(row["abandoned"]), "checksum": made}


def _moved_outcome(row: dict[str, Any], shift: int) -> dict[str, Any]:
    trial = row["trial"] + shift
    known = row["checksum"]
    made = None if known is None else checksum(trial, row["fault"], row["body"], row["ended_at"])
    data = row["rows"]
    moved = None if data is None else encode_rows(trial, decode_rows(row["trial"], data))
    return {**row, "trial": trial, "checksum": made, "rows": moved}


def _moved_ask(row: dict[str, Any], shift: int) -> dict[str, Any]:
    wave = None if row["wave"] is None else row["wave"] + shift
    moved = AskRow(**row)._replace(trial=row["trial"] + shift, wave=wave)
    return moved._replace(checksum=None if row["checksum"] is None else moved.sum())._asdict()


def _moved_wave(row: dict[str, Any], shift: int) -> dict[str, Any]:
    number = row["id"] + shift
    listed = msgspec.json.decode(row["asks"], type=list[tuple[int, str, str]])
    text = msgspec.json.encode([(trial + shift, path, print_) for trial, path, print_ in listed]).decode()
    made = None if row["checksum"] is None else checksum(number, text)
    return {**row, "id": number, "asks": text, "checksum": made}


def check_different(first: Database, second: Database) -> None:
    """Raise an error if a store would be copied into itself."""
    if first.name == second.name:
        raise SettingsError(f"{first.name}: give two different stores")
