"""What a run found, read from the store: its trials in their order, and why some are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa

from groundswell.engine.records import Recorded, RunRecord, TrialRow
from groundswell.errors import RunError
from groundswell.program.request import Fault, decode_settlement
from groundswell.store.schema import asks, outcomes, store_error, trials

T = TypeVar("T")

CHUNK = 1_000
TrialStatus = Literal["usable", "missing", "unfinished"]


class TrialResult(NamedTuple):
    """One trial as the store holds it: a result, a fault, or neither while it is unfinished."""

    row: TrialRow
    fault: Fault | None

    @property
    def key(self) -> str:
        """The trial's key."""
        return self.row.key

    @property
    def program(self) -> str:
        """The program, as name@version."""
        return self.row.program

    @property
    def status(self) -> TrialStatus:
        """Whether there is a result, and if not, whether there will be."""
        if self.row.outcome is None:
            return "unfinished"
        return "usable" if self.fault is None else "missing"

    @property
    def spec_json(self) -> str:
        """The spec as it was stored."""
        return self.row.spec

    @property
    def result_json(self) -> str | None:
        """The result as it was stored."""
        return self.row.outcome if self.status == "usable" else None

    def spec(self, wanted: type[T] | Any = Any) -> T | Any:
        """The spec, as plain data or in a type."""
        return msgspec.json.decode(self.row.spec, type=wanted)

    def result(self, wanted: type[T] | Any = Any) -> T | Any:
        """The result, as plain data or in a type; None where there is none."""
        return None if self.result_json is None else msgspec.json.decode(self.result_json, type=wanted)


class FaultCount(NamedTuple):
    """How many trials are missing for one reason, with the first of them as an example."""

    kind: str
    trials: int
    key: str
    message: str


class Results:
    """The trials of one run. Iterating reads them a chunk at a time and keeps no transaction open in between."""

    def __init__(self, engine: sa.Engine, path: Path, record: RunRecord) -> None:
        self._engine = engine
        self._path = path
        self._span = record.span
        self._title = record.title

    def __iter__(self) -> Iterator[TrialResult]:
        after = self._span[0] - 1
        while chunk := self._select(trials.c.id > after, limit=CHUNK):
            yield from chunk
            after = chunk[-1].row.id

    def trial(self, key: str) -> TrialResult:
        """The trial with this key, or the only one whose key begins so."""
        found = self._select(trials.c.key == key, limit=1)
        found = found or self._select(sa.func.substr(trials.c.key, 1, len(key)) == key, limit=6)
        if not found:
            raise RunError(f"run {self._title!r} has no trial {key!r}: `groundswell runs export` lists all keys")
        if len(found) > 1:
            some = ", ".join(result.key for result in found[:5])
            raise RunError(f"run {self._title!r}: several trials begin with {key!r} ({some}): give more of the key")
        return found[0]

    def recorded(self, result: TrialResult) -> dict[str, Recorded]:
        """What was journalled for a trial: path -> fingerprint and settlement."""
        query = sa.select(asks.c.path, asks.c.fingerprint, asks.c.settlement).where(asks.c.trial == result.row.id)
        with self._read() as connection:
            rows = connection.execute(query.order_by(asks.c.id)).all()
        return {path: (print_, decode_settlement(text)) for path, print_, text in rows}

    def fault_counts(self) -> list[FaultCount]:
        """Why trials are missing, most frequent first."""
        counted = (
            sa.select(outcomes.c.fault, sa.func.count().label("many"), sa.func.min(outcomes.c.trial).label("first"))
            .where(outcomes.c.trial.between(*self._span), outcomes.c.fault.is_not(None))
            .group_by(outcomes.c.fault)
            .subquery()
        )
        query = (
            sa.select(counted.c.fault, counted.c.many, trials.c.key, outcomes.c.body)
            .join(outcomes, outcomes.c.trial == counted.c.first)
            .join(trials, trials.c.id == counted.c.first)
            .order_by(counted.c.many.desc(), counted.c.fault)
        )
        with self._read() as connection:
            rows = connection.execute(query).all()
        return [FaultCount(kind, many, key, _fault(body).message) for kind, many, key, body in rows]

    def _select(self, condition: sa.ColumnElement[bool], limit: int) -> Sequence[TrialResult]:
        query = (
            sa.select(
                trials.c.id,
                trials.c.key,
                trials.c.program,
                trials.c.spec,
                trials.c.attempt,
                outcomes.c.body,
                outcomes.c.fault,
            )
            .outerjoin(outcomes, outcomes.c.trial == trials.c.id)
            .where(trials.c.id.between(*self._span), condition)
            .order_by(trials.c.id)
            .limit(limit)
        )
        with self._read() as connection:
            return [_result(TrialRow(*row)) for row in connection.execute(query)]

    @contextmanager
    def _read(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except sa.exc.DatabaseError as error:
            raise store_error(error, self._path) from error


def _result(row: TrialRow) -> TrialResult:
    return TrialResult(row, None if row.fault is None or row.outcome is None else _fault(row.outcome))


def _fault(body: str) -> Fault:
    return msgspec.json.decode(body, type=Fault)
