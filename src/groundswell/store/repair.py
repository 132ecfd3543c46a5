"""A new store with everything of a damaged one that can be read: `groundswell doctor --store PATH --repair NEW`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from groundswell.engine.records import Counters
from groundswell.errors import SettingsError
from groundswell.store.check import CONTENT, ORPHANS, Columns, open_read_only, problem_of
from groundswell.store.file import store_error
from groundswell.store.runs import run_record
from groundswell.store.schema import database_path, metadata, open_database

FIRST, LAST = -(2**63), 2**63 - 1
"""The row numbers that there can be."""


class Copied(NamedTuple):
    """How many rows of a table were copied, how many were damaged, and whether some could not be read at all."""

    rows: int
    damaged: int
    unreadable: bool


def repair(store: Path, new: Path) -> dict[str, Copied]:
    """Copy what is intact into a new store; returns what became of each table. The old one is left as it is."""
    new = database_path(new)
    if new.exists():
        raise SettingsError(f"--repair {new}: there is a file already; give the path of a new one")
    try:
        with closing(open_read_only(store)) as source:
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            open_database(new).dispose()
            with closing(sqlite3.connect(new, isolation_level=None)) as target:
                target.execute("BEGIN IMMEDIATE")
                copied = {table: _copy(source, target, table) for table in CONTENT}
                for which in ORPHANS.values():  # else a new trial that gets the number would get these too
                    target.execute(f"DELETE {which}")
                _mend_runs(target)
                target.execute("COMMIT")
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        raise store_error(error, store) from error
    return copied


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> Copied:
    columns = metadata.tables[table].columns.keys()
    insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    kept = damaged = 0
    gaps: list[str] = []
    for row in _readable(source, table, gaps):
        if problem_of(CONTENT[table], row) is None:
            kept += target.execute(insert, [row[column] for column in columns]).rowcount
        else:
            damaged += 1
    return Copied(kept, damaged, bool(gaps))


def _readable(source: sqlite3.Connection, table: str, gaps: list[str]) -> Iterator[Columns]:
    """The rows that can be read; `gaps` gets an entry where some cannot be."""
    there = [name for _, name, *_ in source.execute(f"PRAGMA table_info({table})")]
    columns = [column for column in metadata.tables[table].columns.keys() if column in there]  # noqa: SIM118
    if not columns:
        gaps.append(table)
        return
    listed = ", ".join(columns)
    if table == "cache":  # has no row numbers; replies that are not copied are only asked for again
        yield from _until_error(source.execute(f"SELECT {listed} FROM cache"), columns, gaps)
        return
    sql = f"SELECT rowid, {listed} FROM {table} WHERE rowid > ? ORDER BY rowid"
    after, before = FIRST, -1
    while after < LAST and len(gaps) > before:  # one round for each gap
        before = len(gaps)
        for row in _until_error(source.execute(sql, (after,)), ["rowid", *columns], gaps):
            after = row["rowid"]
            yield row
        if len(gaps) > before:
            after = _behind_gap(source, table, after)


def _behind_gap(source: sqlite3.Connection, table: str, after: int) -> int:
    """The number after which rows can be read again; steps that double find one, and halving the smallest."""

    def works(number: int) -> bool:
        try:
            source.execute(f"SELECT * FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 1", (number,)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):
            return False
        return True

    low, step = after, 1
    while (high := min(low + step, LAST)) < LAST and not works(high):
        low, step = high, step * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def _until_error(rows: Iterator[Any], columns: list[str], gaps: list[str]) -> Iterator[Columns]:
    missing = dict.fromkeys(("checksum",))
    try:
        for values in rows:
            yield missing | dict(zip(columns, values, strict=True))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        gaps.append(str(error))


def _mend_runs(target: sqlite3.Connection) -> None:
    """A run that lost outcomes is unfinished: resuming it makes them again, from replies where these are there."""
    columns = metadata.tables["runs"].columns.keys()
    for values in target.execute(f"SELECT {', '.join(columns)} FROM runs").fetchall():
        record = run_record(dict(zip(columns, values, strict=True)))
        counted = "SELECT count(*), count(fault) FROM outcomes WHERE trial BETWEEN ? AND ?"
        ended, missing = target.execute(counted, record.span).fetchone()
        (trials,) = target.execute("SELECT count(*) FROM trials WHERE id BETWEEN ? AND ?", record.span).fetchone()
        counters = record.counters
        if (ended, trials) != (counters.settled, counters.planned):
            counters.planned, counters.usable, counters.missing = trials, ended - missing, missing
            change = "UPDATE runs SET counters = ?, status = 'interrupted' WHERE id = ?"
            target.execute(change, (_json(counters), record.number))


def _json(counters: Counters) -> str:
    return msgspec.json.encode(counters).decode()


def lost(copied: dict[str, Copied]) -> list[str]:
    """What is not in the new store, in words."""
    return [
        f"table {table}: {each.damaged:,} damaged rows were left out"
        + (", and some unreadable" if each.unreadable else "")
        for table, each in copied.items()
        if each.damaged or each.unreadable
    ]
