"""Documents: what experiments keep between runs, by kind and id, in the order in which it was added."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from groundswell.store.schema import documents, reading, writing

LOOK_UP = 500


class Document(NamedTuple):
    """One document: JSON text, and when it was added and last changed, in Unix time."""

    kind: str
    id: str
    body: str
    created_at: float
    updated_at: float


class Documents:
    """The documents of a store. Calls are short and synchronous, and may be made in any thread."""

    def __init__(self, engine: sa.Engine, path: Path) -> None:
        self._engine = engine
        self.path = path

    def add(self, *new: tuple[str, str, str]) -> list[str]:
        """Add documents, each (kind, id, body), all or none; returns the ids that are taken, if any are."""
        now = time.time()
        with self._write() as connection:
            taken = [id_ for kind, id_, _ in new if self._number_of(connection, kind, id_) is not None]
            taken += _repeated([(kind, id_) for kind, id_, _ in new])
            if taken:
                return list(dict.fromkeys(taken))
            last = connection.execute(sa.select(sa.func.max(documents.c.number))).scalar() or 0
            rows = [
                {"kind": kind, "id": id_, "number": last + at, "body": body, "created_at": now, "updated_at": now}
                for at, (kind, id_, body) in enumerate(new, start=1)
            ]
            if rows:
                connection.execute(sa.insert(documents), rows)
        return []

    def change(self, kind: str, id_: str, body: str) -> bool:
        """Replace the body of a document; returns whether it is there."""
        with self._write() as connection:
            changed = sa.update(documents).where(documents.c.kind == kind, documents.c.id == id_)
            return connection.execute(changed.values(body=body, updated_at=time.time())).rowcount > 0

    def delete(self, kind: str, *ids: str) -> int:
        """Remove documents; returns how many were there."""
        with self._write() as connection:
            return sum(
                connection.execute(
                    sa.delete(documents).where(documents.c.kind == kind, documents.c.id.in_(ids[at : at + LOOK_UP]))
                ).rowcount
                for at in range(0, len(ids), LOOK_UP)
            )

    def find(self, kind: str, *ids: str) -> dict[str, Document]:
        """Those of the documents that are there, by their ids."""
        found: dict[str, Document] = {}
        with reading(self._engine, self.path) as connection:
            for at in range(0, len(ids), LOOK_UP):
                some = documents.c.id.in_(ids[at : at + LOOK_UP])
                rows = connection.execute(_columns().where(documents.c.kind == kind, some))
                found.update((row.id, Document(*row)) for row in rows)
        return found

    def list(self, kind: str, *, limit: int | None = None, offset: int = 0) -> Sequence[Document]:
        """The documents of a kind, in the order in which they were added."""
        query = _columns().where(documents.c.kind == kind).order_by(documents.c.number)
        with reading(self._engine, self.path) as connection:
            return [Document(*row) for row in connection.execute(query.limit(limit).offset(offset))]

    def count(self, kind: str) -> int:
        """How many documents of a kind there are."""
        query = sa.select(sa.func.count()).select_from(documents).where(documents.c.kind == kind)
        with reading(self._engine, self.path) as connection:
            return int(connection.execute(query).scalar_one())

    def _number_of(self, connection: sa.Connection, kind: str, id_: str) -> int | None:
        query = sa.select(documents.c.number).where(documents.c.kind == kind, documents.c.id == id_)
        return connection.execute(query).scalar()

    def _write(self) -> AbstractContextManager[sa.Connection]:
        return writing(self._engine, self.path)


def _columns() -> sa.Select[Any]:
    return sa.select(documents.c.kind, documents.c.id, documents.c.body, documents.c.created_at, documents.c.updated_at)


def _repeated(ids: Sequence[tuple[str, str]]) -> list[str]:
    seen: set[tuple[str, str]] = set()
    again: list[str] = []
    for each in ids:
        if each in seen:
            again.append(each[1])
        seen.add(each)
    return again
