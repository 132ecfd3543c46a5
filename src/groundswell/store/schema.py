"""The tables, and how a database file is opened, checked and upgraded.

A trial's id is `run << 32 | n`. So the rows of a run are adjacent, need no run column, and are appended to their
tables. Journals are found by trial. Cached replies are appended too, and only their keys are in an index: a table
ordered by hashes would change a page for every reply.

Every table with content has a `checksum` column: `checksum.py` says what it covers. It is NULL in rows that were
written before schema 0004, and in runs that were made before schema 0005.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import sqlalchemy as sa

from groundswell.errors import SettingsError, StoreCorrupt, StoreError, StoreTooNew
from groundswell.store.file import OWNER_ONLY, FileIdentity, store_error

FIRST, REVISION = "0001", "0008"
KEPT = 8
"""Connections that are kept for the next to use; there may be any number at once."""

_creating = threading.Lock()

metadata = sa.MetaData()

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uid", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, unique=True),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("driver", sa.Text),
    sa.Column("settings", sa.Text),
    sa.Column("options", sa.Text, nullable=False),
    sa.Column("sources", sa.Text, nullable=False),
    sa.Column("parent", sa.Text),
    sa.Column("cut", sa.Text),
    sa.Column("counters", sa.Text, nullable=False),
    sa.Column("analysis", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("cancel", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
    sa.Column("checksum", sa.BigInteger),
    sa.Column("location", sa.Text),
    sa.Column("release", sa.Text),
)

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("program", sa.Text, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("abandoned", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("checksum", sa.BigInteger),
)

asks = sa.Table(
    "asks",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("trial", sa.BigInteger, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.LargeBinary, nullable=False),
    sa.Column("wave", sa.BigInteger),
    sa.Column("fault", sa.Text),
    sa.Column("settlement", sa.Text, nullable=False),
    sa.Column("checksum", sa.BigInteger),
    sa.Column("seconds", sa.Float),
    sa.Index("asks_by_trial", "trial"),
)

outcomes = sa.Table(
    "outcomes",
    metadata,
    sa.Column("trial", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("fault", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("checksum", sa.BigInteger),
    sa.Column("rows", sa.Text),
)

waves = sa.Table(
    "waves",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("transport", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("asks", sa.Text, nullable=False),
    sa.Column("sent_at", sa.Float, nullable=False),
    sa.Column("receipt", sa.Text),
    sa.Column("ended_at", sa.Float),
    sa.Column("about", sa.Text),
    sa.Column("checksum", sa.BigInteger),
    sa.Index(
        "open_waves",
        "id",
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    ),
)

cache = sa.Table(
    "cache",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("settlement", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("checksum", sa.BigInteger),
)

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
    sa.Column("checksum", sa.BigInteger),
    sa.Index("documents_in_order", "kind", "number"),
)


def open_database(store: str | Path) -> sa.Engine:
    """Open a store, creating or migrating it as needed."""
    path = database_path(store)
    if path.is_dir():
        raise StoreError(f"{path} is a folder: give a file in it, for example --store {path}/groundswell.db")
    if not path.parent.is_dir():
        raise StoreError(f"{path}: the folder {path.parent} does not exist; create it or use another --store")
    _create_file(path)
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: _connect(path),
        poolclass=sa.QueuePool,  # a new connection reads the schema first, which takes longer than most queries
        pool_size=KEPT,
        max_overflow=-1,
    )
    try:
        with damage_of(path):
            identity = FileIdentity(path)
            sa.event.listen(engine, "checkout", lambda *_: identity.check())
            _bring_up_to_date(engine, path)
    except StoreError:
        engine.dispose()
        raise
    return engine


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


def database_path(store: str | Path) -> Path:
    """The file behind a `--store` value."""
    text = str(store)
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    if "://" in text:
        raise SettingsError(f"--store {text}: only SQLite files are supported; give a path")
    return Path(text).expanduser().absolute()


def _prepare(connection: sqlite3.Connection) -> None:
    """Settings of every connection. Full sync: a commit that was acknowledged survives power loss."""
    connection.isolation_level = None
    settings = ("busy_timeout=30000", "synchronous=FULL", "cache_size=-16384", "foreign_keys=OFF", "cell_size_check=ON")
    for pragma in settings:
        connection.execute(f"PRAGMA {pragma}")


def _bring_up_to_date(engine: sa.Engine, path: Path) -> None:
    with engine.connect() as connection:
        if _revision(connection, path) == REVISION:
            return
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        found = _revision(connection, path)
        if found is None:
            _create(connection)
        elif found > REVISION:
            raise StoreTooNew(
                f"{path} was written by a newer version of Groundswell (schema {found}; this version supports "
                f"{REVISION}): upgrade, or use another --store"
            )
        elif found < REVISION:
            from groundswell.store.migrations import upgrade

            upgrade(connection)
        connection.exec_driver_sql("COMMIT")


def _revision(connection: sa.Connection, path: Path) -> str | None:
    """The schema that a database has, or None if it is new. One that is not ours is left as it is.

    Others use Alembic too, so its table alone says nothing. All tables are counted in one look, since another
    process may be creating them.
    """
    ours = "coalesce(sum(name IN ('alembic_version', 'trials', 'asks')), 0)"
    every, known = connection.exec_driver_sql(f"SELECT count(*), {ours} FROM sqlite_master").one()
    if not every:
        return None
    if known < 3:
        raise StoreCorrupt(f"{path} is a database of another program: use another --store")
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if not isinstance(found, str) or not found.isdecimal() or len(found) != len(REVISION) or found < FIRST:
        raise store_error(ValueError("its schema version is missing"), path)
    return found


def _create(connection: sa.Connection) -> None:
    """All tables at once, as the migrations would make them one by one."""
    metadata.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (\n\tversion_num VARCHAR(32) NOT NULL, \n\t"
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n)"
    )
    connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{REVISION}')")


@contextmanager
def reading(engine: sa.Engine, path: Path) -> Iterator[sa.Connection]:
    """A connection; errors of the database, and content that cannot be decoded, are ours within the block."""
    with damage_of(path), engine.connect() as connection:
        yield connection


@contextmanager
def writing(engine: sa.Engine, path: Path) -> Iterator[sa.Connection]:
    """A transaction, begun by hand: sqlite3 itself would begin too late to see what it is about to change."""
    with reading(engine, path) as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection
        connection.exec_driver_sql("COMMIT")


@contextmanager
def damage_of(path: Path) -> Iterator[None]:
    """Within the block, what the database says and what cannot be decoded become errors of the store."""
    try:
        yield
    except (sa.exc.DBAPIError, sqlite3.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise store_error(error, path) from error
