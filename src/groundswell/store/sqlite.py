"""A store in a SQLite file: opening it, committing to it, and the lock of each run in a file beside it."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from groundswell.engine.records import RunRecord
from groundswell.errors import StoreError, StoreFull, StoreRemoved
from groundswell.store.database import Batch, Database, Insert, Reader, Refusal
from groundswell.store.file import OWNER_ONLY, FileIdentity, rescue, store_error
from groundswell.store.lock import RunLock, is_held
from groundswell.store.schema import REVISION, bring_up_to_date, revision

KEPT = 8
"""Connections that are kept for the next to use; there may be any number at once."""
CHUNK = 256
WORTHWHILE = 0.1
"""Share of the file that must be free before it is rewritten to make it smaller."""
PATIENCE_MS = 2_000
VERBS = {"refuse": "INSERT", "replace": "INSERT OR REPLACE", "keep": "INSERT OR IGNORE"}

_creating = threading.Lock()


class SqliteDatabase(Database):
    """An open SQLite file. It is created or migrated as needed."""

    path: Path
    blocking = False

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise StoreError(f"{path} is a folder: give a file in it, for example --store {path}/groundswell.db")
        if not path.parent.is_dir():
            raise StoreError(f"{path}: the folder {path.parent} does not exist; create it or use another --store")
        _create_file(path)
        super().__init__(
            sa.create_engine(
                "sqlite://",
                creator=lambda: _connect(path),
                poolclass=sa.QueuePool,  # a new connection reads the schema first, which takes longer than most queries
                pool_size=KEPT,
                max_overflow=-1,
            )
        )
        self.path = path
        self.name = str(path)
        try:
            with self.translating():
                self._identity = FileIdentity(path)
                sa.event.listen(self.engine, "checkout", lambda *_: self._identity.check())
                self._bring_up_to_date()
        except StoreError:
            self.close()
            raise

    def error(self, error: Exception) -> StoreError:
        return store_error(error, self.path)

    def driver_errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error,)

    @contextmanager
    def writing(self, run: int | None = None) -> Iterator[sa.Connection]:
        """A transaction, begun by hand: sqlite3 itself would begin too late to see what it is about to change."""
        with self.reading() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.exec_driver_sql("COMMIT")

    def committer(self, inserts: dict[str, Insert]) -> SqliteCommitter:
        return SqliteCommitter(self.engine, self.path, inserts)

    def insert(self, connection: sa.Connection, into: Insert, flat: list[Any]) -> None:
        with closing(_driver_of(connection).cursor()) as cursor:
            _Rows(into).write(cursor, flat)

    def numbered(self, connection: sa.Connection) -> None:
        return  # a new row gets a number larger than all

    def reader(self) -> Reader:
        connection = self.engine.connect()
        return Reader(_driver_of(connection).execute, connection.close)

    def lock(self, run: RunRecord) -> RunLock:
        return RunLock(self.path, run.id, run.title)

    def is_held(self, run: RunRecord) -> bool:
        return is_held(self.path, run.id)

    def check(self) -> None:
        self._identity.check()

    def size(self) -> int:
        return self.path.stat().st_size

    def shrink(self) -> tuple[int, Refusal | None]:
        """Rewrite the file. That blocks other writers."""
        try:
            with self.engine.connect() as connection:
                connection.detach()  # nobody else is to have its patience
                connection.exec_driver_sql(f"PRAGMA busy_timeout={PATIENCE_MS}")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
                before = self.size()
                if not _worthwhile(connection):
                    return 0, "small"
                connection.exec_driver_sql("VACUUM")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
                freed = before - self.size()
        except (sa.exc.DBAPIError, OSError) as error:
            return 0, self._not_shrunk(error)
        return (freed, None) if freed > 0 else (0, "busy")

    def _not_shrunk(self, error: Exception) -> Refusal:
        """Why the file could not be rewritten. Other errors are raised."""
        problem = self.error(error)
        if isinstance(problem, StoreFull):
            return "full"
        if "locked" in str(problem):
            return "busy"
        raise problem from error

    def _bring_up_to_date(self) -> None:
        with self.engine.connect() as connection:
            if revision(connection, _tables(connection), self.name) == REVISION:
                return
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            bring_up_to_date(connection, _tables(connection), self.name)
            connection.exec_driver_sql("COMMIT")


class SqliteCommitter:
    """The connection of the writing thread.

    A commit counts only if the file is still there after it: one that was deleted can be written to, but is lost.
    """

    def __init__(self, engine: sa.Engine, path: Path, inserts: dict[str, Insert]) -> None:
        self._path = path
        self._inserts = {table: _Rows(insert) for table, insert in inserts.items()}
        self._connection = engine.connect()
        self._driver = _driver_of(self._connection)
        self._cursor = self._driver.cursor()
        self._identity = FileIdentity(path)

    def commit(self, batch: Batch) -> None:
        cursor = self._cursor
        cursor.execute("BEGIN IMMEDIATE")
        for table, flat in batch.rows.items():
            if flat:
                self._inserts[table].write(cursor, flat)
        for (statement, _), row in batch.updates.items():
            cursor.execute(statement, row)
        cursor.execute("COMMIT")
        self._identity.check()
        self._identity.check_beside()

    def failure(self, error: Exception) -> StoreError:
        """Why a commit failed. If the file is gone, what was committed is saved first, in another one."""
        try:
            if self._driver.in_transaction:
                self._driver.rollback()
        except sqlite3.Error:  # the error of the commit is more useful
            pass
        failure = store_error(error, self._path)
        if isinstance(failure, StoreRemoved):
            return StoreRemoved(f"{failure}. {rescue(self._driver, self._path)}")
        return failure

    def close(self, error: StoreError | None) -> None:
        """Close the connection; raises if the file has gone since the last commit."""
        try:
            self._identity.check()
        except StoreRemoved as gone:
            if not isinstance(error, StoreRemoved):  # else it was saved when that was noticed
                raise self.failure(gone) from None
        except StoreError:
            if error is None:
                raise
        finally:
            self._cursor.close()  # else a statement that failed keeps the file open
            self._connection.close()


class _Rows:
    """Multi-row inserts into one table, with statements for sizes that are powers of two up to CHUNK."""

    def __init__(self, insert: Insert) -> None:
        self._width = len(insert.columns)
        self._head = f"{VERBS[insert.existing]} INTO {insert.table.name} ({', '.join(insert.columns)}) VALUES "
        self._row = f"({', '.join('?' * self._width)})"
        self._statements: dict[int, str] = {}

    def write(self, cursor: sqlite3.Cursor, flat: list[Any]) -> None:
        """Insert rows that lie end to end in one flat list."""
        at, left, size = 0, len(flat) // self._width, CHUNK
        while left:
            while size > left:
                size //= 2
            statement = self._statements.get(size)
            if statement is None:
                statement = self._statements[size] = self._head + ", ".join([self._row] * size)
            step = size * self._width
            cursor.execute(statement, flat[at : at + step])
            at += step
            left -= size


def _create_file(path: Path) -> None:
    """Make an empty file that only its owner can read; one that is there is left as it is.

    SQLite gives the files that it puts beside a database the mode of the database. One thread at a time: closing
    the file here would end the locks that SQLite has on it in this process.
    """
    with _creating:
        try:
            file = os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY)
        except FileExistsError:
            return
        except OSError as error:
            raise store_error(error, path) from error
        try:
            os.fchmod(file, OWNER_ONLY)
        finally:
            os.close(file)


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that exists: if it was removed, SQLite must not make an empty one in its place."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, check_same_thread=False, timeout=30)
    _prepare(connection)
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Settings of every connection. Full sync: a commit that was acknowledged survives power loss."""
    connection.isolation_level = None
    settings = ("busy_timeout=30000", "synchronous=FULL", "cache_size=-16384", "foreign_keys=OFF", "cell_size_check=ON")
    for pragma in settings:
        connection.execute(f"PRAGMA {pragma}")


def _driver_of(connection: sa.Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _tables(connection: sa.Connection) -> Sequence[str]:
    """Whatever the file contains."""
    return connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars().all()


def _worthwhile(connection: sa.Connection) -> bool:
    free: int = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
    pages: int = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    return free > 0 and free >= WORTHWHILE * pages
