"""The cache of a store: its size, and clearing it. Runs do not depend on it: their journals have their replies."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple

import sqlalchemy as sa

from groundswell.errors import StoreFull
from groundswell.store.file import store_error
from groundswell.store.runs import Runs
from groundswell.store.schema import cache, reading, runs

CHUNK = 5_000
"""Number of replies that are removed in one commit, so that runs that write do not have to wait."""
WORTHWHILE = 0.1
"""Share of the file that must be free before it is rewritten to make it smaller."""
PATIENCE_MS = 2_000


class Kept(NamedTuple):
    """Content of a cache. `bytes` is the size of the replies; times are in Unix time."""

    replies: int
    bytes: int
    oldest: float | None
    newest: float | None
    input_tokens: int
    output_tokens: int


class Space(NamedTuple):
    """Number of bytes by which the file shrank, or why it keeps the free space for later use."""

    freed: int
    reused: Literal["busy", "small", "full"] | None = None


class Cache:
    """Replies that all runs of a store share. Calls are synchronous and may be made while runs are in progress."""

    def __init__(self, engine: sa.Engine, path: Path) -> None:
        self._engine = engine
        self._path = path

    def kept(self, before: float | None = None) -> Kept:
        """The content of the cache; with `before`, only replies that are older."""
        query = sa.select(
            sa.func.count(),
            sa.func.coalesce(sa.func.sum(sa.func.length(sa.cast(cache.c.settlement, sa.LargeBinary))), 0),
            sa.func.min(cache.c.created_at),
            sa.func.max(cache.c.created_at),
            _tokens("input_tokens"),
            _tokens("output_tokens"),
        ).select_from(cache)
        with self._connected() as connection:
            return Kept(*connection.execute(query if before is None else query.where(_older(before))).one())

    def reused(self) -> int:
        """How many requests of all runs were answered from the cache."""
        cached = sa.func.coalesce(sa.func.sum(sa.func.json_extract(runs.c.counters, "$.cached")), 0)
        with self._connected() as connection:
            return int(connection.execute(sa.select(cached)).scalar_one())

    def clear(self, before: float | None = None) -> int:
        """Remove all replies, or those older than `before`. Returns how many were removed.

        Removal is done in chunks with pauses, so that runs can write in between.
        """
        removed, after = 0, b""
        while (last := self._chunk_end(after)) is not None:
            begun = time.monotonic()
            removed += self._remove(after, last, before)
            after = last
            if self._chunk_end(after) is not None:
                time.sleep(time.monotonic() - begun)
        return removed

    def _chunk_end(self, after: bytes) -> bytes | None:
        """The last key of the next chunk."""
        keys = sa.select(cache.c.key).where(cache.c.key > after).order_by(cache.c.key).limit(CHUNK).subquery()
        with self._connected() as connection:
            found: bytes | None = connection.execute(sa.select(sa.func.max(keys.c.key))).scalar()
        return found

    def _remove(self, after: bytes, last: bytes, before: float | None) -> int:
        statement = sa.delete(cache).where(cache.c.key > after, cache.c.key <= last)
        with self._connected() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            removed = connection.execute(statement if before is None else statement.where(_older(before))).rowcount
            connection.exec_driver_sql("COMMIT")
        return removed

    def shrink(self) -> Space:
        """Shrink the file by its free space, unless a run is in progress or little would be gained.

        Rewriting the file blocks other writers.
        """
        stored = Runs(self._engine, self._path)
        if any(stored.is_held(record) for record in stored.list()):
            return Space(0, "busy")
        try:
            with self._engine.connect() as connection:
                connection.detach()  # nobody else is to have its patience
                connection.exec_driver_sql(f"PRAGMA busy_timeout={PATIENCE_MS}")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
                before = self._path.stat().st_size
                if not _worthwhile(connection):
                    return Space(0, "small")
                connection.exec_driver_sql("VACUUM")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
                freed = before - self._path.stat().st_size
        except (sa.exc.DBAPIError, OSError) as error:
            return self._reused(error)
        return Space(freed) if freed > 0 else Space(0, "busy")

    def _reused(self, error: Exception) -> Space:
        """Why the file could not be rewritten. Other errors are raised."""
        problem = store_error(error, self._path)
        if isinstance(problem, StoreFull):
            return Space(0, "full")
        if "locked" in str(problem):
            return Space(0, "busy")
        raise problem from error

    def _connected(self) -> AbstractContextManager[sa.Connection]:
        return reading(self._engine, self._path)


def _older(before: float) -> sa.ColumnElement[bool]:
    return cache.c.created_at < before


def _tokens(of: str) -> sa.ColumnElement[int]:
    """The sum of a figure of the replies' usage; those that have none are not written."""
    return sa.func.coalesce(sa.func.sum(sa.func.json_extract(cache.c.settlement, f"$.usage.{of}")), 0)


def _worthwhile(connection: sa.Connection) -> bool:
    free: int = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
    pages: int = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    return free > 0 and free >= WORTHWHILE * pages
