"""The cache of a store: its size, and clearing it. Runs do not depend on it: their journals have their replies."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import NamedTuple

import sqlalchemy as sa

from groundswell.store.database import Database, Refusal
from groundswell.store.runs import Runs
from groundswell.store.schema import cache, runs
from groundswell.store.sql import number, octets

CHUNK = 5_000
"""Number of replies that are removed in one commit, so that runs that write do not have to wait."""


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
    reused: Refusal | None = None


class Cache:
    """Replies that all runs of a store share. Calls are synchronous and may be made while runs are in progress."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def kept(self, before: float | None = None) -> Kept:
        """The content of the cache; with `before`, only replies that are older."""
        query = sa.select(
            sa.func.count(),
            sa.cast(sa.func.coalesce(sa.func.sum(octets(cache.c.settlement)), 0), sa.BigInteger),
            sa.func.min(cache.c.created_at),
            sa.func.max(cache.c.created_at),
            _tokens("input_tokens"),
            _tokens("output_tokens"),
        ).select_from(cache)
        with self._connected() as connection:
            return Kept(*connection.execute(query if before is None else query.where(_older(before))).one())

    def reused(self) -> int:
        """How many requests of all runs were answered from the cache."""
        cached = sa.func.coalesce(sa.func.sum(number(runs.c.counters, "cached")), 0)
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
        with self._database.writing() as connection:
            return connection.execute(statement if before is None else statement.where(_older(before))).rowcount

    def shrink(self) -> Space:
        """Shrink the file by its free space, unless a run is in progress or little would be gained."""
        stored = Runs(self._database)
        if any(stored.is_held(record) for record in stored.list()):
            return Space(0, "busy")
        return Space(*self._database.shrink())

    def _connected(self) -> AbstractContextManager[sa.Connection]:
        return self._database.reading()


def _older(before: float) -> sa.ColumnElement[bool]:
    return cache.c.created_at < before


def _tokens(of: str) -> sa.ColumnElement[int]:
    """The sum of a figure of the replies' usage; those that have none are not written."""
    many = sa.func.sum(number(cache.c.settlement, "usage", of))
    return sa.cast(sa.func.coalesce(many, 0), sa.BigInteger)
