"""Checks a store for damage, and copies what is intact into a new one. The old store is never changed.

check_store    `groundswell doctor --store PATH`
check_server   `groundswell doctor --store postgresql://...`
repair         `groundswell doctor --store PATH --repair NEW`
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from groundswell.engine.records import About, Counters, RunRecord
from groundswell.errors import SettingsError, StoreError, StoreTooNew
from groundswell.program.request import decode_settlement
from groundswell.store.checksum import AskRow, decode_rows, trial_row, verify
from groundswell.store.file import store_error
from groundswell.store.lock import is_held
from groundswell.store.names import shown
from groundswell.store.open import database_path, look_at, open_database
from groundswell.store.runs import run_record
from groundswell.store.schema import REVISION, metadata
from groundswell.store.sqlite import SqliteDatabase
from groundswell.store.waves import asks_of

MOST_NAMED = 5
LARGE_LOG = 256 << 20
"""Size in bytes from which a write-ahead log is reported."""

Columns = Mapping[str, Any]


class StoreCheck(msgspec.Struct):
    """Result of a check. `problems` are damage; `notes` are for information."""

    size_bytes: int = 0
    log_bytes: int = 0
    mode: str = ""
    revision: str | None = None
    runs: int | None = None
    problems: list[str] = []
    notes: list[str] = []


class ServerCheck(StoreCheck):
    """Result of a check of a store on a server, which it names."""

    server: str = ""
    writable: bool = False


def check_store(path: Path) -> StoreCheck:
    """Check an existing store: its file, its pages, every row, and the files beside it."""
    found = StoreCheck()
    try:
        _check_file(path, found)
        with closing(open_read_only(path)) as connection:
            if _check_pages(connection, path, found) and found.revision == REVISION:
                tables = _Tables(
                    partial(rows, connection),
                    lambda which: int(connection.execute(f"SELECT count(*) {which}").fetchone()[0]),
                    lambda record: is_held(path, record.id),
                )
                _check_rows(tables, found)
                _check_runs(tables, found)
    except (
        sqlite3.Error,
        UnicodeDecodeError,
        OSError,
    ) as error:  # SQLite quotes a damaged schema, which may not decode
        found.problems.append(str(store_error(error, path)))
    except StoreError as error:  # it is not a store, or not one that this version knows: there is nothing to repair
        found.problems.append(str(error))
        return found
    if found.problems:
        found.problems.append(_advice(path))
    _check_locks(path, found)
    return found


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, and creates no files if no other process uses the store."""
    log = Path(f"{path}-wal")
    how = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=2, isolation_level=None)


def _check_file(path: Path, found: StoreCheck) -> None:
    about = os.stat(path)
    log = Path(f"{path}-wal")
    mode = stat.S_IMODE(about.st_mode)
    found.size_bytes, found.mode = about.st_size, f"{mode:04o}"
    found.log_bytes = log.stat().st_size if log.exists() else 0
    if mode & 0o077:
        found.notes.append(f"other users can read it (mode {mode:04o}): run chmod 600 {path} if its content is private")
    if found.log_bytes >= LARGE_LOG:
        found.notes.append(
            f"its write-ahead log has {found.log_bytes / (1 << 20):,.0f} MiB. It shrinks when all processes that use "
            "the store have ended and the store is opened again"
        )
    if (free := shutil.disk_usage(path.parent).free) < found.size_bytes:
        found.notes.append(f"its disk has {free / (1 << 20):,.0f} MiB free, which is not enough for a copy")


def _check_pages(connection: sqlite3.Connection, path: Path, found: StoreCheck) -> bool:
    """Run SQLite's own checks and read the schema version. Returns whether the rows can be checked."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "alembic_version" not in tables or not tables & {"trials", "asks", "runs"}:
        raise StoreError(f"{path} is a database of another program: use another --store")
    for pragma in ("quick_check", "integrity_check"):
        said = [text for (text,) in connection.execute(f"PRAGMA {pragma}({MOST_NAMED})")]
        if said != ["ok"]:
            found.problems += [f"SQLite reports damage: {' '.join(text.split())}" for text in said]
            break
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    found.revision = row[0] if row is not None and isinstance(row[0], str) else None
    if found.revision is None:
        found.problems.append("its schema version is missing")
        return False
    _check_revision(found.revision, found, str(path))
    found.runs = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    return True


def _check_revision(stored: str, found: StoreCheck, name: str) -> None:
    if stored > REVISION:
        raise StoreTooNew(f"{name} has schema {stored}, but this version only supports {REVISION}: upgrade Groundswell")
    if stored < REVISION:
        found.notes.append(f"it has schema {stored}: the next command that uses it upgrades it to {REVISION}")


class _Tables(NamedTuple):
    """The tables of a store: the rows of one, how many rows a `FROM ...` has, and whether a run is worked on."""

    rows: Callable[[str], Iterable[Columns]]
    count: Callable[[str], int]
    is_held: Callable[[RunRecord], bool]


def _check_rows(tables: _Tables, found: StoreCheck) -> None:
    """Check that every row can be read and decoded and matches its checksum."""
    for table, check in CONTENT.items():
        bad: list[str] = []
        try:
            for row in tables.rows(table):
                if (problem := problem_of(check, row)) is not None:
                    bad.append(problem)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            bad.append(f"some rows cannot be read: {error}")
        found.problems += [f"table {table}: {text}" for text in bad[:MOST_NAMED]]
        if len(bad) > MOST_NAMED:
            found.problems.append(f"table {table}: {len(bad) - MOST_NAMED:,} more")
    for what, which in ORPHANS.items():
        if many := tables.count(which):
            found.problems.append(f"{many:,} {what}")


def _check_runs(tables: _Tables, found: StoreCheck) -> None:
    """Find runs that lack outcomes, and runs that were interrupted."""
    for row in list(tables.rows("runs")):
        try:
            record = run_record(row)
        except msgspec.DecodeError:
            continue
        held = tables.is_held(record)
        if record.status == "running" and not held:
            found.notes.append(
                f"run {record.title!r} was interrupted: continue it with `groundswell runs resume {record.id}`"
            )
        first, last = record.span
        outcomes = tables.count(f"FROM outcomes WHERE trial BETWEEN {first} AND {last}")
        if outcomes < record.counters.settled and not held:
            found.problems.append(
                f"run {record.title!r} counts {record.counters.settled:,} ended trials, but only {outcomes:,} outcomes "
                "are stored"
            )


def check_server(url: str) -> ServerCheck:
    """Check every row of a store in PostgreSQL, and the settings of its server. Without a store, `revision` is None."""
    revision, writable = look_at(url)
    found = ServerCheck(revision=revision, writable=writable)
    if not writable:
        found.problems.append(f"{shown(url)} is not writable: check the rights of its user, and its server")
    if found.revision is None:
        return found
    _check_revision(found.revision, found, shown(url))
    if found.revision != REVISION:
        return found
    with closing(open_database(url)) as database, database.reading() as connection:

        def streamed(table: str) -> Iterator[Columns]:
            query = sa.select(metadata.tables[table])
            for row in connection.execution_options(yield_per=1_000).execute(query):
                yield row._asdict()

        def count(which: str) -> int:
            return int(connection.exec_driver_sql(f"SELECT count(*) {which}").scalar_one())

        found.size_bytes = database.size()
        _check_settings(connection, found)
        connection.exec_driver_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")  # rows are streamed within it
        found.runs = count("FROM runs")
        tables = _Tables(streamed, count, database.is_held)
        _check_rows(tables, found)
        _check_runs(tables, found)
    return found


def _check_settings(connection: sa.Connection, found: ServerCheck) -> None:
    """Find settings of the server that endanger a store."""
    names = ("server_version", "fsync", "full_page_writes", "max_connections")
    version, fsync, pages, most = (connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names)
    found.server = f"PostgreSQL {version}"
    for name, value in (("fsync", fsync), ("full_page_writes", pages)):
        if value == "off":
            found.notes.append(f"{name} is off: a crash of the machine can damage the database")
    used = connection.exec_driver_sql("SELECT count(*) FROM pg_stat_activity").scalar_one()
    if used > 0.8 * int(most):
        found.notes.append(f"{used} of {most} connections are in use: raise max_connections, or use fewer processes")


def _check_locks(path: Path, found: StoreCheck) -> None:
    """Find lock files of processes that were killed."""
    for lock in sorted(path.parent.glob(f"{path.name}.*.lock")):
        uid = lock.name.removeprefix(f"{path.name}.").removesuffix(".lock")
        try:
            left = not is_held(path, uid)
        except StoreError as error:
            found.notes.append(f"{lock} cannot be checked: {error}")
            continue
        if left:
            found.notes.append(f"{lock} was left by a process that was killed. It is harmless and can be removed")


def _advice(path: Path) -> str:
    name = f"{path.stem}-repaired{path.suffix}"
    return (
        "what to do: end all processes that use the store, and copy it together with its -wal file. Then restore a "
        f"backup, or copy everything that can be read into a new store with `groundswell doctor --store {path} "
        f"--repair {path.with_name(name)}`. Replies that are missing are requested again when its runs are resumed"
    )


def rows(connection: sqlite3.Connection, table: str) -> Iterator[Columns]:
    """The rows of a table, by the columns that this version knows."""
    columns = metadata.tables[table].columns.keys()
    for values in connection.execute(f"SELECT {', '.join(columns)} FROM {table}"):
        yield dict(zip(columns, values, strict=True))


def problem_of(check: Callable[[Columns], object], row: Columns) -> str | None:
    """What is wrong with a row; None if it is intact."""
    try:
        check(row)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        return str(error)
    return None


def _check_trial(row: Columns) -> object:
    columns = ("id", "key", "program", "spec", "attempt")
    return trial_row((*(row[column] for column in columns), None, None, row["abandoned"], None, row["checksum"], None))


def _check_outcome(row: Columns) -> object:
    verify(row["checksum"], f"the outcome of trial number {row['trial']}", *_values(row, OUTCOME))
    if row.get("rows") is not None:
        decode_rows(row["trial"], row["rows"])
    return msgspec.json.decode(row["body"], type=msgspec.Raw)


def _check_wave(row: Columns) -> object:
    if row["about"] is not None:
        msgspec.json.decode(row["about"], type=About)
    if row["receipt"] is not None:
        msgspec.json.decode(row["receipt"], type=dict[str, Any])
    return asks_of(row["id"], row["asks"], row["checksum"])


def _check_cached(row: Columns) -> object:
    verify(row["checksum"], "a cached reply", row["key"], row["settlement"])
    return decode_settlement(row["settlement"])


def _check_document(row: Columns) -> object:
    verify(row["checksum"], f"document {row['id']!r} of the kind {row['kind']!r}", *_values(row, DOCUMENT))
    return msgspec.json.decode(row["body"], type=msgspec.Raw)


def _values(row: Columns, columns: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(row[column] for column in columns)


OUTCOME = ("trial", "fault", "body", "ended_at")
DOCUMENT = ("kind", "id", "body")
CONTENT: dict[str, Callable[[Columns], object]] = {
    "runs": run_record,
    "trials": _check_trial,
    "asks": lambda row: AskRow(**{column: row[column] for column in AskRow._fields}).decoded(),
    "outcomes": _check_outcome,
    "waves": _check_wave,
    "documents": _check_document,
    "cache": _check_cached,
}
"""How a row of each table is checked: it raises `msgspec.DecodeError` if the row is damaged."""
ORPHANS = {
    "trials belong to no run": "FROM trials WHERE id >> 32 NOT IN (SELECT id FROM runs)",
    "batches belong to no run": "FROM waves WHERE id >> 32 NOT IN (SELECT id FROM runs)",
    "outcomes belong to no trial": "FROM outcomes WHERE NOT EXISTS (SELECT 1 FROM trials WHERE id = outcomes.trial)",
    "replies belong to no trial": "FROM asks WHERE NOT EXISTS (SELECT 1 FROM trials WHERE trials.id = asks.trial)",
}
"""Rows without the row that they belong to."""


FIRST, LAST = -(2**63), 2**63 - 1
"""The row numbers that there can be."""


class Copied(NamedTuple):
    """Number of rows of a table that were copied and that were damaged, and whether some could not be read."""

    rows: int
    damaged: int
    unreadable: bool


def repair(store: Path, new: Path) -> dict[str, Copied]:
    """Copy intact rows into a new store. Returns the result for each table. The old store is not changed."""
    new = database_path(new)
    if new.exists():
        raise SettingsError(f"--repair {new}: the file already exists; give the path of a new one")
    try:
        with closing(open_read_only(store)) as source:
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            SqliteDatabase(new).close()
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
    """The rows that can be read. `gaps` gets an entry wherever some cannot be read."""
    there = [name for _, name, *_ in source.execute(f"PRAGMA table_info({table})")]
    if not there:
        gaps.append(table)
        return
    columns = list(metadata.tables[table].columns.keys())
    listed = ", ".join(column if column in there else f"NULL AS {column}" for column in columns)  # of an older schema
    if table == "cache":  # had no row numbers before schema 0006; replies that are not copied are only asked for again
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
    """The row number after which rows can be read again, found by doubling steps and bisection."""

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
    try:
        for values in rows:
            yield dict(zip(columns, values, strict=True))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        gaps.append(str(error))


def _mend_runs(target: sqlite3.Connection) -> None:
    """Mark runs that lost outcomes as interrupted. Resuming them recreates the outcomes."""
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
    """What is not in the new store, as text."""
    return [
        f"table {table}: {each.damaged:,} damaged rows were left out"
        + (", and others could not be read" if each.unreadable else "")
        for table, each in copied.items()
        if each.damaged or each.unreadable
    ]
