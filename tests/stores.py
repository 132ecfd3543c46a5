"""Stores of both kinds for tests: SQLite files, and databases on a PostgreSQL server of this process."""

from __future__ import annotations

import atexit
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest

from groundswell.store.local_postgres import LocalServer
from groundswell.store.names import is_postgres
from groundswell.store.open import open_database

Kind = Literal["sqlite", "postgres"]
BOTH = ["sqlite", "postgres"]
MOSTLY_SQLITE = ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)]

_numbers = count(1)


@cache
def server() -> LocalServer:
    """The server, started on first use. It need not survive a power failure."""
    folder = tempfile.TemporaryDirectory(prefix="gs-", ignore_cleanup_errors=True)
    Path(folder.name).chmod(0o755)  # the server may have an account of its own
    started = LocalServer(Path(folder.name) / "pg", fsync="off", shared_buffers="32MB")
    open_database(started.up()).close()  # a template for all others

    def end() -> None:
        started.down()
        folder.cleanup()

    atexit.register(end)
    return started


@contextmanager
def server_of_its_own() -> Iterator[LocalServer]:
    """A server that a test may kill."""
    with tempfile.TemporaryDirectory(prefix="gs-") as folder:
        Path(folder).chmod(0o755)
        started = LocalServer(Path(folder) / "pg", shared_buffers="16MB")
        started.up()
        yield started
        started.down()


def new_database() -> str:
    """The URL of a new store."""
    name = f"t{next(_numbers)}"
    with psycopg.connect(_url(server(), "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE groundswell")
    return _url(server(), name)


def new_store(kind: str, folder: Path) -> str | Path:
    """A store that is not there yet, or an empty one on the server."""
    return new_database() if kind == "postgres" else folder / "store.db"


def rows(store: str | Path, sql: str, *values: Any) -> list[Any]:
    """Run a statement, with `?` for values, and return its rows."""
    if is_postgres(store):
        with psycopg.connect(str(store), autocommit=True) as connection:
            done = connection.execute(sql.replace("?", "%s"), values)
            return done.fetchall() if done.description else []
    with closing(sqlite3.connect(store)) as file, file:
        return file.execute(sql, values).fetchall()


def add_rows(store: str | Path, table: str, columns: str, *new: Sequence[Any]) -> None:
    """Insert rows into a table."""
    marks = ", ".join("?" * (columns.count(",") + 1))
    for row in new:
        rows(store, f"INSERT INTO {table} ({columns}) VALUES ({marks})", *row)


def _url(of: LocalServer, database: str) -> str:
    return of.url.replace("@/groundswell?", f"@/{database}?")
