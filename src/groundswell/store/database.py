"""What the store needs of a database. `sqlite.py` and `postgres.py` implement it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

import msgspec
import sqlalchemy as sa

from groundswell.engine.ports import Lock, Work
from groundswell.engine.records import RunRecord
from groundswell.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

Row = tuple[Any, ...]
After = tuple[Callable[..., None], tuple[Any, ...]]
Refusal = Literal["busy", "small", "full", "server"]
REPEATS = 20


class Insert(NamedTuple):
    """The columns of a table that the journal writes, and what to do if a row with the same primary key exists."""

    table: sa.Table
    columns: Sequence[str]
    existing: Literal["refuse", "replace", "keep"] = "refuse"


class Batch:
    """What will be committed together, and what to call once it is.

    `rows` has a table's values end to end; `updates` the statements to run, by statement and key, so that a
    later one replaces an earlier one; `late` those whose values are taken when the batch is handed over.
    """

    __slots__ = ("after", "late", "rows", "updates")

    def __init__(self, tables: Iterable[str]) -> None:
        self.rows: dict[str, list[Any]] = {table: [] for table in tables}
        self.updates: dict[tuple[str, Any], Row] = {}
        self.late: dict[tuple[str, Any], Callable[[], Row]] = {}
        self.after: list[After] = []


class Committer(Protocol):
    """A connection for the writing thread."""

    def commit(self, batch: Batch) -> None:
        """Commit a batch. It is durable when this returns."""
        ...

    def failure(self, error: Exception) -> StoreError:
        """Why a commit failed."""
        ...

    def close(self, error: StoreError | None) -> None:
        """Close the connection. `error` is that of the last commit."""
        ...


class Cursor(Protocol):
    """The rows of a query, as both drivers give them."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Reader:
    """A connection for reading with a driver, without SQLAlchemy.

    `execute` takes SQL with `?` for parameters. `indexed` is for indexes that live as long as the connection.
    """

    def __init__(self, execute: Callable[[str, Sequence[Any]], Cursor], close: Callable[[], None]) -> None:
        self.execute = execute
        self.close = close
        self.indexed: dict[str, int] = {}


class ConnectionLost(StoreError):
    """The connection broke, and nothing of the transaction was committed: it may be repeated."""


def repeated(method: Callable[P, T]) -> Callable[P, T]:
    """Call a method again if its connection broke. It must make no more than one transaction, or be idempotent."""

    @wraps(method)
    def until_done(*args: P.args, **named: P.kwargs) -> T:
        for _ in range(REPEATS):
            try:
                return method(*args, **named)
            except ConnectionLost:
                continue
        return method(*args, **named)

    return until_done


class Database(ABC):
    """An open database. `name` is for messages; `path` is the file of a SQLite database."""

    name: str
    path: Path | None = None
    blocking = True
    """Whether a short query takes so long that it must not be made on an event loop."""

    work: Work | None = None
    """The trials that are given to workers, where several processes can work on a run."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    @abstractmethod
    def error(self, error: Exception) -> StoreError:
        """Convert an error of the driver, or of decoding, to one that says what to do."""

    @abstractmethod
    def writing(self, run: int | None = None) -> AbstractContextManager[sa.Connection]:
        """A transaction. No other one that begins here, in any process, overlaps with it; commits of journals do.

        With the number of a `run` that this process has locked, the lock must still be there.
        """

    @abstractmethod
    def committer(self, inserts: dict[str, Insert]) -> Committer:
        """A connection for the writing thread."""

    @abstractmethod
    def insert(self, connection: sa.Connection, into: Insert, flat: list[Any]) -> None:
        """Insert rows, which lie end to end in one list, in the transaction of a connection."""

    @abstractmethod
    def numbered(self, connection: sa.Connection) -> None:
        """Rows of runs were inserted with their numbers: give later runs larger ones."""

    @abstractmethod
    def reader(self) -> Reader:
        """A connection for reading."""

    @abstractmethod
    def lock(self, run: RunRecord) -> Lock:
        """Lock a run for this process; raises `RunBusy` if it is locked."""

    @abstractmethod
    def is_held(self, run: RunRecord) -> bool:
        """Whether some process works on a run now."""

    def time(self, connection: sa.Connection) -> float:
        """The time by the clock that all processes share."""
        return time.time()

    @abstractmethod
    def size(self) -> int:
        """The size of the database in bytes."""

    @abstractmethod
    def shrink(self) -> tuple[int, Refusal | None]:
        """Give free space back to the disk: how many bytes, or why not."""

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Within the block, what the driver says and what cannot be decoded become errors of the store."""
        kinds: tuple[type[Exception], ...] = (
            *(sa.exc.DBAPIError, msgspec.DecodeError, UnicodeDecodeError),
            *self.driver_errors(),
        )
        try:
            yield
        except kinds as error:
            raise self.error(error) from error

    @abstractmethod
    def driver_errors(self) -> tuple[type[Exception], ...]:
        """The base classes of the driver's errors."""

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection; errors of the database, and content that cannot be decoded, are ours within the block."""
        with self.translating(), self.engine.connect() as connection:
            yield connection

    @abstractmethod
    def check(self) -> None:
        """Raise if the database is not the one that was opened."""

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
