"""Documents that experiments keep between runs, by kind and id, in insertion order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from groundswell.store.checksum import checksum, verify
from groundswell.store.database import Database, repeated
from groundswell.store.schema import documents
from groundswell.store.sql import field

LOOK_UP = 500
KEPT = "kept"
"""The kind of what drivers keep with their runs; the ids are `RUN/NAME`."""
ANY: Mapping[str, str] = {}


class Text(NamedTuple):
    """Words to find in the ids of documents, or in some fields of their bodies."""

    words: str
    fields: tuple[str, ...] = ()


NO_TEXT = Text("")


class Document(NamedTuple):
    """One document: JSON text, and when it was added and last changed, in Unix time."""

    kind: str
    id: str
    body: str
    created_at: float
    updated_at: float


class Changing:
    """Documents within one transaction: what is read here stays so until what is written here is there."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, *new: tuple[str, str, str]) -> list[str]:
        """Add documents, each (kind, id, body), all or none; returns the ids that are taken, if any are."""
        there = {(kind, id_) for kind in {kind for kind, _, _ in new} for id_ in self._there(kind, new)}
        taken = [id_ for kind, id_, _ in new if (kind, id_) in there]
        taken += _repeated([(kind, id_) for kind, id_, _ in new])
        if taken or not new:
            return list(dict.fromkeys(taken))
        now = time.time()
        last = max(self._last(kind) for kind in {kind for kind, _, _ in new})
        rows = [
            {
                **{"kind": kind, "id": id_, "number": last + at, "body": body, "created_at": now, "updated_at": now},
                "checksum": checksum(kind, id_, body),
            }
            for at, (kind, id_, body) in enumerate(new, start=1)
        ]
        self._connection.execute(sa.insert(documents), rows)
        return []

    def change(self, kind: str, id_: str, body: str) -> bool:
        """Replace the body of a document; returns whether it is there."""
        changed = sa.update(documents).where(documents.c.kind == kind, documents.c.id == id_)
        values = {"body": body, "updated_at": time.time(), "checksum": checksum(kind, id_, body)}
        return self._connection.execute(changed.values(**values)).rowcount > 0

    def put(self, kind: str, id_: str, body: str) -> None:
        """Add a document, or replace the body of the one that is there."""
        if not self.change(kind, id_, body):
            self.add((kind, id_, body))

    def delete(self, kind: str, *ids: str) -> int:
        """Remove documents; returns how many were there."""
        return sum(
            self._connection.execute(
                sa.delete(documents).where(documents.c.kind == kind, documents.c.id.in_(ids[at : at + LOOK_UP]))
            ).rowcount
            for at in range(0, len(ids), LOOK_UP)
        )

    def find(self, kind: str, *ids: str) -> dict[str, Document]:
        """Those of the documents that are there, by their ids."""
        found: dict[str, Document] = {}
        for at in range(0, len(ids), LOOK_UP):
            some = documents.c.id.in_(ids[at : at + LOOK_UP])
            rows = self._connection.execute(_columns().where(documents.c.kind == kind, some))
            found.update((row.id, _document(row)) for row in rows)
        return found

    def list(
        self,
        kind: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        having: Mapping[str, str] = ANY,
        text: Text = NO_TEXT,
    ) -> Sequence[Document]:
        """The documents of a kind, in the order in which they were added; those `having` these values in their body,
        and containing the text."""
        query = _columns().where(*_matching(kind, having, text)).order_by(documents.c.number, documents.c.id)
        return [_document(row) for row in self._connection.execute(query.limit(limit).offset(offset))]

    def count(self, kind: str, *, having: Mapping[str, str] = ANY, text: Text = NO_TEXT) -> int:
        """How many documents of a kind there are."""
        query = sa.select(sa.func.count()).select_from(documents).where(*_matching(kind, having, text))
        return int(self._connection.execute(query).scalar_one())

    def _there(self, wanted: str, new: Sequence[tuple[str, str, str]]) -> Iterator[str]:
        """The ids of a kind that are taken. Many at a time: others wait until what is added is there."""
        ids = [id_ for kind, id_, _ in new if kind == wanted]
        for at in range(0, len(ids), LOOK_UP):
            some = documents.c.id.in_(ids[at : at + LOOK_UP])
            yield from self._connection.scalars(sa.select(documents.c.id).where(documents.c.kind == wanted, some))

    def _last(self, kind: str) -> int:
        query = sa.select(sa.func.max(documents.c.number)).where(documents.c.kind == kind)
        return self._connection.execute(query).scalar() or 0


class Documents:
    """The documents of a store. Calls are short and synchronous, and may be made in any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def changing(self, run: int | None = None) -> Iterator[Changing]:
        """One transaction for several steps; an error within undoes them all.

        With the number of a `run` that this process has locked, the lock must still be there.
        """
        with self._database.writing(run) as connection:
            yield Changing(connection)

    def add(self, *new: tuple[str, str, str]) -> list[str]:
        """Add documents, each (kind, id, body), all or none; returns the ids that are taken, if any are."""
        with self.changing() as held:
            return held.add(*new)

    def change(self, kind: str, id_: str, body: str) -> bool:
        """Replace the body of a document; returns whether it is there."""
        with self.changing() as held:
            return held.change(kind, id_, body)

    @repeated
    def put(self, kind: str, id_: str, body: str, *, run: int | None = None) -> None:
        """Add a document, or replace the body of the one that is there."""
        with self.changing(run) as held:
            held.put(kind, id_, body)

    def delete(self, kind: str, *ids: str) -> int:
        """Remove documents; returns how many were there."""
        with self.changing() as held:
            return held.delete(kind, *ids)

    def find(self, kind: str, *ids: str) -> dict[str, Document]:
        """Those of the documents that are there, by their ids."""
        with self._reading() as held:
            return held.find(kind, *ids)

    def list(
        self,
        kind: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        having: Mapping[str, str] = ANY,
        text: Text = NO_TEXT,
    ) -> Sequence[Document]:
        """The documents of a kind, in the order in which they were added; those `having` these values in their body,
        and containing the text."""
        with self._reading() as held:
            return held.list(kind, limit=limit, offset=offset, having=having, text=text)

    def count(self, kind: str, *, having: Mapping[str, str] = ANY, text: Text = NO_TEXT) -> int:
        """How many documents of a kind there are."""
        with self._reading() as held:
            return held.count(kind, having=having, text=text)

    @contextmanager
    def _reading(self) -> Iterator[Changing]:
        with self._database.reading() as connection:
            yield Changing(connection)


def _matching(kind: str, having: Mapping[str, str], text: Text) -> list[sa.ColumnElement[bool]]:
    body = documents.c.body
    found = [documents.c.kind == kind, *(field(body, name) == value for name, value in having.items())]
    if text.words:
        places = [documents.c.id, *(field(body, name) for name in text.fields)]
        found.append(sa.or_(*(place.icontains(text.words, autoescape=True) for place in places)))
    return found


def _columns() -> sa.Select[Any]:
    return sa.select(*(documents.c[column] for column in Document._fields), documents.c.checksum)


def _document(row: sa.Row[Any]) -> Document:
    """A document from its row; raises `msgspec.DecodeError` if the row is damaged."""
    found = msgspec.convert(tuple(row)[:-1], Document)
    verify(row.checksum, f"document {found.id!r} of the kind {found.kind!r}", found.kind, found.id, found.body)
    return found


def _repeated(ids: Sequence[tuple[str, str]]) -> list[str]:
    seen: set[tuple[str, str]] = set()
    again: list[str] = []
    for each in ids:
        if each in seen:
            again.append(each[1])
        seen.add(each)
    return again
