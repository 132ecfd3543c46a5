"""The tables, and how they are created and upgraded.

A trial's id is `run << 32 | n`. So the rows of a run are adjacent, need no run column, and are appended to their
tables. Journals are found by trial. Cached replies are appended too, and only their keys are in an index: a table
ordered by hashes would change a page for every reply.

Every table with content has a `checksum` column: `checksum.py` says what it covers. It is NULL in rows that were
written before schema 0004, and in runs that were made before schema 0005.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from groundswell.errors import StoreCorrupt, StoreTooNew

FIRST, REVISION = "0001", "0011"
OURS = {"alembic_version", "trials", "asks"}

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite numbers the rows of a table by itself only if their type is INTEGER."""

metadata = sa.MetaData()


def _part(name: str, where: str, *columns: str) -> sa.Index:
    """An index of some of the rows of a table."""
    return sa.Index(name, *columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


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
    sa.Column("id", BIG, primary_key=True, autoincrement=False),
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
    sa.Column("id", BIG, primary_key=True),
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
    sa.Column("trial", BIG, primary_key=True, autoincrement=False),
    sa.Column("fault", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("checksum", sa.BigInteger),
    sa.Column("rows", sa.Text),
)

waves = sa.Table(
    "waves",
    metadata,
    sa.Column("id", BIG, primary_key=True, autoincrement=False),
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

holders = sa.Table(
    "holders",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("commits", sa.BigInteger, nullable=False),
    sa.Column("beat_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Column("process", sa.Text, nullable=False),
)
"""Processes that use the store. Only in PostgreSQL: see `leases.py`."""

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("taken_at", sa.Float, nullable=False),
)
"""Which process works on a run."""

commits = sa.Table(
    "commits",
    metadata,
    sa.Column("token", sa.Text, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
)
"""Transactions other than those of journals, to find out whether one whose answer was lost was committed."""

shards = sa.Table(
    "shards",
    metadata,
    sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("holder", sa.Text),
    sa.Column("counters", sa.Text, nullable=False),
    sa.Column("room", sa.Integer, nullable=False),
    sa.Column("stopped", sa.Boolean, nullable=False),
    sa.Column("problem", sa.Text),
    sa.Column("granted", sa.Text),
)
"""The shards of runs whose trials are run by workers: see `work.py`."""

shares = sa.Table(
    "shares",
    metadata,
    sa.Column("limiter", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, primary_key=True),
    sa.Column("process", sa.Text, nullable=False),
    sa.Column("wants", sa.Integer, nullable=False),
    sa.Column("slots", sa.Integer, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
"""Which process may have how many requests in flight with an account: see `shares.py`."""

servers = sa.Table(
    "servers",
    metadata,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("url", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, primary_key=True),
    sa.Column("process", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
"""Model servers that workers have started: see `servers.py`."""

work = sa.Table(
    "work",
    metadata,
    sa.Column("trial", BIG, primary_key=True, autoincrement=False),
    sa.Column("shard", sa.Integer),
    sa.Column("again", sa.Boolean, nullable=False),
    sa.Column("done", sa.Boolean, nullable=False),
    _part("work_free", "shard IS NULL AND NOT done", "trial"),
    _part("work_of_shards", "NOT done", "shard", "trial"),
    _part("work_done", "done", "trial"),
)
"""The open trials of such runs."""


def bring_up_to_date(connection: sa.Connection, tables: Collection[str], name: str) -> None:
    """Create the tables, or change those of an earlier version, within the caller's transaction."""
    found = revision(connection, tables, name)
    if found is None:
        _create(connection)
    elif found > REVISION:
        raise StoreTooNew(
            f"{name} was written by a newer version of Groundswell (schema {found}; this version supports "
            f"{REVISION}): upgrade, or use another --store"
        )
    elif found < REVISION:
        from groundswell.store.migrations import upgrade

        upgrade(connection)


def revision(connection: sa.Connection, tables: Collection[str], name: str) -> str | None:
    """The schema that a database with these tables has, or None if it is new. One that is not ours is left as it is.

    Others use Alembic too, so its table alone says nothing. All tables are counted in one look, since another
    process may be creating them.
    """
    if not tables:
        return None
    if not OURS.issubset(tables):
        raise StoreCorrupt(f"{name} is a database of another program: use another --store")
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if not isinstance(found, str) or not found.isdecimal() or len(found) != len(REVISION) or found < FIRST:
        problem = "its schema version is missing"
        raise StoreCorrupt(f"store {name} is damaged ({problem}). Check it with `groundswell doctor --store {name}`")
    return found


def _create(connection: sa.Connection) -> None:
    """All tables at once, as the migrations would make them one by one."""
    metadata.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (\n\tversion_num VARCHAR(32) NOT NULL, \n\t"
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n)"
    )
    connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{REVISION}')")
