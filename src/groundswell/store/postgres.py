"""A store in a PostgreSQL database, which several machines may use at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from secrets import token_hex
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import errors

from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from groundswell.store.database import REPEATS, Batch, ConnectionLost, Database, Insert, Reader, Refusal
from groundswell.store.leases import (
    COMMIT,
    NAME,
    RECONNECT,
    SECONDS,
    SERVER_TIME,
    TERMINATE,
    TERMINATE_EXPIRED,
    Holder,
    Lease,
    server_time,
)
from groundswell.store.names import shown
from groundswell.store.schema import REVISION, bring_up_to_date, commits, revision
from groundswell.store.work import Work

log = logging.getLogger("groundswell.store")
logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of lost connections, which are handled here

CONNECTIONS = 8
"""Connections that are kept for the next to use; there may be twice as many."""
PATIENCE = 300.0
"""Seconds to wait for a server that has gone away, for example because it restarts."""
WAITS = (0.1, 0.2, 0.5, 1.0, 2.0)
LOST = ("25P03", "25P04", "57P01", "57P02", "57P03", "57P05")
"""Codes of errors that end a connection."""
DRIVER = "postgresql+psycopg://"
DIALECT = sa.create_engine(DRIVER).dialect
ONE_AT_A_TIME = 0x67726F756E64
"""The number of the lock for transactions that are made one at a time."""
DEFAULTS = {
    "connect_timeout": 10,
    "application_name": "groundswell",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
SETTINGS = """
    SELECT set_config(name, value, false) FROM (VALUES
        ('synchronous_commit', 'off', 'on'),
        ('idle_in_transaction_session_timeout', '0', %s || 's'),
        ('tcp_keepalives_idle', NULL, '30'), ('tcp_keepalives_interval', NULL, '10'),
        ('lock_timeout', '0', %s || 's')
    ) AS wanted (name, without, value) WHERE without IS NULL OR current_setting(name) = without
"""
"""What was acknowledged is durable, and the locks of a process that is cut off do not last."""
MAY_WRITE = """
    SELECT current_setting('transaction_read_only') = 'off' AND coalesce(
        has_table_privilege(to_regclass('runs'), 'INSERT'), has_schema_privilege(current_schema(), 'CREATE'), false)
"""
"""Whether this user may add runs, or create the tables if there are none."""
WAS_COMMITTED = (
    f"INSERT INTO commits (token, at) VALUES (%s, -{SERVER_TIME}) "
    "ON CONFLICT (token) DO UPDATE SET token = excluded.token RETURNING at"
)
"""The time is negative if the row is that of an earlier question."""
NUMBERED = "SELECT setval(pg_get_serial_sequence('runs', 'id'), (SELECT max(id) FROM runs))"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"


class PostgresDatabase(Database):
    """An open PostgreSQL database. Its tables are created or migrated as needed.

    `patience`: seconds to wait for a server that has gone away. `lease`: seconds that this process may be silent before
    another one may take its runs over.
    """

    def __init__(self, url: str, *, patience: float = PATIENCE, lease: float = SECONDS) -> None:
        self._options = _options(url)
        self.name = shown(url)
        self.patience = patience
        self._lease = lease
        self._opened = False
        super().__init__(self._engine(poolclass=sa.QueuePool, pool_size=CONNECTIONS, max_overflow=CONNECTIONS))
        self.holder = Holder(self, self.connect, lease)
        self.work = Work(self, self.holder, self.connect)
        try:
            with self.translating():
                self._bring_up_to_date()
        except StoreError:
            self.close()
            raise
        self._opened = True

    def _engine(self, **pool: Any) -> sa.Engine:
        """Transactions are begun by hand, as in SQLite."""
        return sa.create_engine(DRIVER, creator=self.connect, isolation_level="AUTOCOMMIT", pool_pre_ping=True, **pool)

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection, without waiting for a server that is not there."""
        connection: psycopg.Connection[Any] = psycopg.connect(**self._options, autocommit=True)
        connection.execute(SETTINGS, (str(self._lease), str(2 * self._lease)))
        return connection

    def reconnect(self) -> psycopg.Connection[Any]:
        """A new connection, as soon as the server is there."""
        with self.translating():
            connection: psycopg.Connection[Any] = _patiently(self.connect, self.patience, self.name)
            return connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        patience = self.patience if self._opened else 0.0
        with self.translating(), _patiently(self.engine.connect, patience, self.name) as connection:
            yield connection

    @contextmanager
    def writing(self, run: int | None = None) -> Iterator[sa.Connection]:
        with self.reading() as connection:
            token = token_hex(16)
            connection.exec_driver_sql(TERMINATE_EXPIRED)  # a process that was paused in a commit would block this one
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ONE_AT_A_TIME})")
            if self.holder.must_hold(run):
                self.holder.check(connection)
            yield connection
            connection.execute(sa.insert(commits).values(token=token, at=server_time))
            try:
                connection.exec_driver_sql("COMMIT")
            except sa.exc.DBAPIError as error:
                if not _is_lost(error.orig) or not self._was_committed(token):
                    raise

    def _was_committed(self, token: str) -> bool:
        """Whether a transaction was committed whose answer was lost. If not, this keeps it from being committed.

        While it is under way, the same token cannot be inserted: this waits for it.
        """
        while True:
            try:
                with self.reconnect() as connection:
                    found = connection.execute(WAS_COMMITTED, (token,)).fetchone()
                return found is not None and bool(found[0] > 0)
            except psycopg.OperationalError as error:
                if not _is_lost(error):
                    raise

    def committer(self, inserts: dict[str, Insert]) -> PostgresCommitter:
        return PostgresCommitter(self, inserts)

    def insert(self, connection: sa.Connection, into: Insert, flat: list[Any]) -> None:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        if flat:
            _Rows(into).write(driver.execute, flat)

    def numbered(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(NUMBERED)

    def reader(self) -> Reader:
        connection = self.reconnect()

        def execute(sql: str, row: Sequence[Any]) -> psycopg.Cursor[Any]:
            return connection.execute(sql.replace("?", "%s"), row)

        return Reader(execute, connection.close)

    def lock(self, run: RunRecord) -> Lease:
        return self.holder.lock(run)

    def is_held(self, run: RunRecord) -> bool:
        with self.reading() as connection:
            return self.holder.is_held(connection, run)

    def time(self, connection: sa.Connection) -> float:
        return float(connection.execute(sa.select(server_time)).scalar_one())

    def size(self) -> int:
        with self.reading() as connection:
            return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())

    def shrink(self) -> tuple[int, Refusal | None]:
        return 0, "server"

    def driver_errors(self) -> tuple[type[Exception], ...]:
        return (psycopg.Error,)

    def error(self, error: Exception) -> StoreError:
        return postgres_error(error, self.name)

    def check(self) -> None:
        return

    def close(self) -> None:
        """Close all connections. Results may still be read, with a new connection for each query."""
        self.holder.close()
        super().close()
        self.engine = self._engine(poolclass=sa.NullPool)

    def _bring_up_to_date(self) -> None:
        with self.engine.connect() as connection:
            if revision(connection, _tables(connection), self.name) == REVISION:
                return
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ONE_AT_A_TIME})")
            bring_up_to_date(connection, _tables(connection), self.name)
            connection.exec_driver_sql("COMMIT")


class PostgresCommitter:
    """The connection of the writing thread. All statements of a commit are sent at once, and answered at once.

    The row of this holder has the number of its last commit: if an answer was lost, that says whether it was made.
    """

    def __init__(self, database: PostgresDatabase, inserts: dict[str, Insert]) -> None:
        self._database = database
        self._holder = database.holder
        self._inserts = {table: _Rows(insert) for table, insert in inserts.items()}
        self._number = 0
        self._holder.join()
        self._connection = database.reconnect()
        self._connection.execute(NAME, (self._holder.id,))
        self._statements: dict[str, str] = {}

    def commit(self, batch: Batch) -> None:
        self._number += 1
        for _ in range(REPEATS):
            try:
                self._send(batch)
                return
            except (errors.DeadlockDetected, errors.LockNotAvailable):  # with another commit; nothing was made of this
                self._connection.execute("ROLLBACK")
                self._connection.execute(TERMINATE_EXPIRED)
                continue
            except (psycopg.OperationalError, psycopg.InternalError) as error:
                if not _is_lost(error):
                    raise
            if self._find_out():
                return
        raise StoreError(f"{self._database.name}: the connection breaks at every attempt to commit")

    def _send(self, batch: Batch) -> None:
        holder = self._holder
        with self._connection.pipeline():
            run = self._connection.cursor().execute
            run("BEGIN")
            run(COMMIT, (holder.seconds, self._number, holder.id, holder.epoch))
            for table, flat in batch.rows.items():
                if flat:
                    self._inserts[table].write(run, flat)
            for (statement, _), row in batch.updates.items():
                run(self._translated(statement), row)
            run("COMMIT")

    def _find_out(self) -> bool:
        """Connect again, and find out whether the last commit was made. If it was not, it cannot be made any more."""
        while True:
            self._connection.close()
            self._connection = self._database.reconnect()
            try:
                self._connection.execute(TERMINATE, (self._holder.id,))
                self._connection.execute(NAME, (self._holder.id,))
                found = self._connection.execute(RECONNECT, (self._holder.id,)).fetchone()
            except psycopg.OperationalError as error:
                if not _is_lost(error):
                    raise
                continue
            if found is None:
                raise self._holder.lost()
            self._holder.epoch, made = found
            return bool(made == self._number)

    def _translated(self, statement: str) -> str:
        found = self._statements.get(statement)
        if found is None:
            found = self._statements[statement] = statement.replace("?", "%s")
        return found

    def failure(self, error: Exception) -> StoreError:
        with suppress(psycopg.Error):  # the error of the commit is more useful
            self._connection.execute("ROLLBACK")
        if isinstance(error, errors.DivisionByZero):
            return self._holder.lost()
        return self._database.error(error)

    def close(self, error: StoreError | None) -> None:
        self._connection.close()


class _Rows:
    """Inserts rows into one table, given as an array for each column."""

    def __init__(self, insert: Insert) -> None:
        columns = insert.columns
        types = [insert.table.c[column].type.compile(dialect=DIALECT) for column in columns]
        self._width = len(columns)
        self._existing = insert.existing
        given = ", ".join(f"%s::{type_}[]" for type_ in types)
        names = ", ".join(f'"{column}"' for column in columns)
        self._statement = f"INSERT INTO {insert.table.name} ({names}) SELECT * FROM unnest({given})"
        if insert.existing != "refuse":
            self._statement += " ON CONFLICT DO NOTHING"
        if insert.existing == "replace":
            every = ", ".join(f'"{column.name}" = {_new(column, columns)}' for column in insert.table.c)
            self._statement = self._statement.replace("DO NOTHING", f'("{columns[0]}") DO UPDATE SET {every}')

    def write(self, run: Any, flat: list[Any]) -> None:
        """Insert rows that lie end to end in one flat list."""
        columns = [flat[at :: self._width] for at in range(self._width)]
        if self._existing == "replace" and len(set(columns[0])) < len(columns[0]):
            columns = _latest(columns)
        elif self._existing == "keep":  # in one order, so that commits of the same keys do not wait for each other
            columns = [
                list(column) for column in zip(*sorted(zip(*columns, strict=True), key=itemgetter(0)), strict=True)
            ]
        run(self._statement, [_array(column) for column in columns])


def _latest(columns: list[list[Any]]) -> list[list[Any]]:
    """Only the last of the rows with the same key, which is in the first column."""
    rows = {row[0]: row for row in zip(*columns, strict=True)}
    return [list(column) for column in zip(*rows.values(), strict=True)]


def _new(column: sa.Column[Any], given: Sequence[str]) -> str:
    return f'excluded."{column.name}"' if column.name in given else "DEFAULT"


def _array(values: list[Any]) -> str:
    """An array as PostgreSQL reads it. Ten times as fast as the driver's own conversion."""
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return str(value)


def _options(url: str) -> dict[str, Any]:
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its message may quote the password
        raise SettingsError(f"--store {shown(url)}: is not a valid URL of a PostgreSQL database") from None
    return {**DEFAULTS, **given}


def _patiently(connect: Any, patience: float, name: str) -> Any:
    """Connect, and try again for some time while the server is not there."""
    began = time.monotonic()
    for attempt in range(1 << 30):
        try:
            return connect()
        except (psycopg.OperationalError, sa.exc.OperationalError) as error:
            problem = getattr(error, "orig", None) or error
            if not _is_lost(problem):
                raise
            if time.monotonic() - began >= patience:
                raise StoreError(str(postgres_error(problem, name))) from error
            if attempt == len(WAITS):
                log.warning("%s cannot be reached (%s). Waiting for it.", name, _first_line(problem))
            time.sleep(WAITS[min(attempt, len(WAITS) - 1)])
    raise AssertionError("unreachable")


def _is_lost(error: BaseException | None) -> bool:
    """Whether the connection broke, or could not be made. Errors of statements have a code, except a few of these."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError):
        return False
    code = error.sqlstate or ""
    return (not code and not isinstance(error, psycopg.InternalError)) or code.startswith("08") or code in LOST


def postgres_error(error: Exception, name: str) -> StoreError:
    """Convert an error of PostgreSQL or of decoding to a `StoreError` that says what to do."""
    error = getattr(error, "orig", None) or error
    if isinstance(error, StoreError):
        return error
    said = _first_line(error)
    if _is_lost(error):
        return _unreachable(said, name)
    match error:
        case errors.LockNotAvailable() | errors.DeadlockDetected():
            return ConnectionLost(f"{name}: another process is changing the same rows, and does not end: try again")
        case errors.DiskFull():
            return StoreFull(f"no space left for {name} ({said}): free some and resume. Everything committed is safe")
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return StoreReadOnly(f"{name} cannot be written ({said}): check the rights of its user, and its server")
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.DataCorrupted() | errors.IndexCorrupted():
            return StoreCorrupt(f"store {name} is damaged ({said}). Check it with `groundswell doctor --store {name}`")
        case ValueError() if not isinstance(error, psycopg.Error):
            return StoreCorrupt(f"store {name} is damaged ({said}). Check it with `groundswell doctor --store {name}`")
    if "NUL" in said:
        return StoreError(f"{name}: PostgreSQL cannot store text with the character NUL ({said})")
    return StoreError(f"{name}: {said}")


def _unreachable(said: str, name: str) -> StoreError:
    """Why there is no connection. The driver gives a code only for errors of statements."""
    _, refused, why = said.partition("FATAL:  ")
    if refused and "does not exist" in why and why.startswith("database"):
        return StoreError(f"{name}: {why}. Create it: CREATE DATABASE with psql, or `createdb`")
    if refused and "too many" in why:
        return StoreError(f"{name}: {why}. Each process needs up to 20: raise max_connections of the server")
    if refused and not why.startswith(("the database system", "terminating")):
        return StoreError(f"{name}: {why}")
    if "connection option" in said:
        return StoreError(f"{name}: {said}")
    return ConnectionLost(f"{name} cannot be reached ({said}): check the address, and that the server runs")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _tables(connection: sa.Connection) -> Sequence[str]:
    return connection.exec_driver_sql(TABLES).scalars().all()


def look_at(url: str) -> tuple[str | None, bool]:
    """The schema of the store in a database, None if there is none, and whether it may be written."""
    name, options = shown(url), _options(url)
    engine = sa.create_engine(DRIVER, creator=lambda: psycopg.connect(**options), poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            stored = revision(connection, _tables(connection), name)
            return stored, connection.exec_driver_sql(MAY_WRITE).scalar_one()
    except (psycopg.Error, sa.exc.DBAPIError) as error:
        raise postgres_error(error, name) from error
