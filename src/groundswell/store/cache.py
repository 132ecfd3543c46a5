"""The cache of a store: what is in it, and taking it out. Runs do not need it: their journals hold their replies."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple

import sqlalchemy as sa

from groundswell.errors import StoreFull
from groundswell.store.file import store_error
from groundswell.store.runs import Runs
from groundswell.store.schema import cache, reading

CHUNK = 5_000
"""Replies removed in one commit: few enough that a run which writes meanwhile is not kept waiting."""
WORTHWHILE = 0.1
"""The part of a file that must be free before it is written anew to make it smaller."""
PATIENCE_MS = 2_000


class Kept(NamedTuple):
    """What a cache holds. `bytes` is the replies themselves; the moments are in Unix time."""

    replies: int
    bytes: int
    oldest: float | None
    newest: float | None
    input_tokens: int
    output_tokens: int


class Space(NamedTuple):
    """What became of freed space: so many bytes were given back, or why the file keeps it for what is written next."""

    freed: int
    reused: Literal["busy", "small", "full"] | None = None


class Cache:
    """The replies that any run of a store may reuse. Calls are synchronous; runs may go on meanwhile."""

    def __init__(self, engine: sa.Engine, path: Path) -> None:
        self._engine = engine
        self._path = path

    def kept(self, before: float | None = None) -> Kept:
        """What is kept, or of that, what was kept before a moment."""
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

    def clear(self, before: float | None = None) -> int:
        """Remove everything, or what was kept before a moment; returns how many replies went.

        It is done in pieces, with as much time between them as each took: a run that writes gets its turn.
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
        """Make the file smaller by what is free in it, unless somebody works on a run or it is not worth it.

        Writing a file anew keeps others from writing for as long as it takes.
        """
        runs = Runs(self._engine, self._path)
        if any(runs.is_held(record) for record in runs.list()):
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
        """Why the file could not be written anew; what else went wrong is raised."""
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
