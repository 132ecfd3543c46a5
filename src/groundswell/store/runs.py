"""The runs of a store: create, find, list, change state, cancel, fork, delete."""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa

from groundswell.engine.ports import Lock
from groundswell.engine.records import Counters, RunRecord, Status
from groundswell.errors import RunBusy, RunError, RunNotFound, SettingsError
from groundswell.store.checksum import checksum, verify
from groundswell.store.database import Database, repeated
from groundswell.store.documents import KEPT
from groundswell.store.schema import asks, documents, outcomes, runs, shards, trials, waves, work
from groundswell.store.sql import number
from groundswell.version import __version__

LARGEST = 2**63
ALL = 2**62
"""A limit that is none."""
UNFINISHED: tuple[Status, ...] = ("pending", "running", "interrupted")
"""Runs that somebody works on, or may go on with."""
DELETED_AT_ONCE = 200
"""Trials that are deleted in one transaction."""
CHECKED = (
    *("id", "uid", "name", "seed", "driver", "settings", "options", "sources", "parent", "cut", "analysis"),
    *("created_at", "location", "release"),
)
"""The columns that the checksum of a run covers: all but those that change with every commit, and its state."""

# Made once: to put a query together takes longer than to run it, and a server runs these for every request.
_WANTED: sa.BindParameter[str] = sa.bindparam("wanted")
_SOME = runs.c.driver.in_(sa.bindparam("drivers", expanding=True))
FIND = (
    sa.select(runs).where((runs.c.name == _WANTED) | (runs.c.uid == _WANTED)).order_by((runs.c.uid == _WANTED).desc())
)
SCAN = sa.select(runs.c.uid).where((runs.c.name.concat("") == _WANTED) | (runs.c.uid.concat("") == _WANTED))
"""The same without the indexes."""
LIST = sa.select(runs).order_by(runs.c.id.desc()).limit(sa.bindparam("limit")).offset(sa.bindparam("offset"))
LIST_OF = LIST.where(_SOME)
BY_NUMBER = sa.select(runs).where(runs.c.id == sa.bindparam("number"))
COUNT = sa.select(sa.func.count(runs.c.id))
COUNT_OF = COUNT.where(_SOME)


class Runs:
    """The table of runs. Calls are short and synchronous."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def _write(self, record: RunRecord | None = None) -> Iterator[sa.Connection]:
        """A transaction; a name that is taken is told as such."""
        with self._database.writing(None if record is None else record.number) as connection:
            try:
                yield connection
            except sa.exc.IntegrityError as error:
                raise RunError(
                    "another process has just created a run with this name: run the command again"
                ) from error

    def _read(self) -> AbstractContextManager[sa.Connection]:
        return self._database.reading()

    @repeated
    def create(
        self,
        name: str | None,
        seed: int,
        *,
        driver: str | None = None,
        location: str | None = None,
        settings: str | None = None,
        options: dict[str, Any] | None = None,
        parent: str | None = None,
        cut: str | None = None,
    ) -> RunRecord:
        """A new run, pending. Ids are random, so that no two stores give the same one."""
        _check_storable(name, seed)
        uid = "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(10))
        now = time.time()
        with self._write() as connection:
            added = connection.execute(
                sa.insert(runs)
                .values(
                    uid=uid,
                    name=name,
                    status="pending",
                    seed=seed,
                    driver=driver,
                    location=location,
                    release=__version__,
                    settings=settings,
                    options=_json(options or {}),
                    sources="{}",
                    parent=parent,
                    cut=cut,
                    counters="{}",
                    cancel=False,
                    created_at=now,
                    updated_at=now,
                )
                .returning(runs.c.id)
            )
            set_checksum(connection, added.scalar_one())
        return self.get(uid)

    @repeated
    def find(self, name_or_id: str, *, own: bool = False) -> RunRecord | None:
        """The run with this name or id. `own`: without what its workers counted."""
        if "\0" in name_or_id:
            return None
        with self._read() as connection:
            row = connection.execute(FIND, {"wanted": name_or_id}).first()
            if row is None and connection.execute(SCAN, {"wanted": name_or_id}).first() is not None:
                raise self._database.error(ValueError("the index of its runs is damaged"))  # else it began anew
            if row is None:
                return None
            return _record(row) if own else self._counted(connection, [row])[0]

    def get(self, name_or_id: str, *, own: bool = False) -> RunRecord:
        """The run with this name or id; raises `RunNotFound`. `own`: without what its workers counted."""
        record = self.find(name_or_id, own=own)
        if record is None:
            raise RunNotFound(
                f"no run {name_or_id!r} in {self._database.name}: list its runs with `groundswell runs list`"
            )
        return record

    def list(self, *, drivers: Sequence[str] = (), limit: int | None = None, offset: int = 0) -> Sequence[RunRecord]:
        """All runs, or those of some drivers, newest first."""
        some = {"limit": ALL if limit is None else limit, "offset": offset}
        with self._read() as connection:
            found = connection.execute(LIST_OF if drivers else LIST, some | _of(drivers))
            return self._counted(connection, found.all())

    def count(self, *, drivers: Sequence[str] = ()) -> int:
        """How many runs there are, or how many of some drivers."""
        with self._read() as connection:
            return int(connection.execute(COUNT_OF if drivers else COUNT, _of(drivers)).scalar_one())

    def search(
        self,
        text: str = "",
        *,
        experiment: str = "",
        drivers: Collection[str] = (),
        statuses: Collection[Status] = (),
        limit: int,
        offset: int = 0,
    ) -> tuple[Sequence[RunRecord], int]:
        """A page of the runs that match, newest first, and how many match in all.

        `text` is part of a name, id or driver. `statuses` are those in the store: a killed run has the status running.
        """
        matches: Any = [sa.true()]
        if "\0" in text:
            return [], 0
        if text:
            within = [column.icontains(text, autoescape=True) for column in (runs.c.name, runs.c.uid, runs.c.driver)]
            matches.append(sa.or_(*within))
        if experiment:
            matches.append(runs.c.driver.startswith(f"{experiment}/", autoescape=True))
        if drivers:
            matches.append(runs.c.driver.in_(drivers))
        if statuses:
            matches.append(runs.c.status.in_(statuses))
        with self._read() as connection:
            query = sa.select(runs).where(*matches).order_by(runs.c.id.desc()).limit(limit).offset(offset)
            found = self._counted(connection, connection.execute(query).all())
            return found, int(connection.execute(COUNT.where(*matches)).scalar_one())

    def _counted(self, connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> Sequence[RunRecord]:
        """Runs with what their workers counted so far."""
        records = {row.id: _record(row) for row in rows}
        if self._database.work is not None:
            theirs = sa.select(shards.c.run, shards.c.counters).where(shards.c.run.in_(records))
            for number, counters in connection.execute(theirs):
                record = records[number]
                record.counters = record.counters.with_shard(msgspec.json.decode(counters, type=Counters))
        return list(records.values())

    def experiments(self) -> Sequence[str]:
        """The experiments that have runs, by the names of their drivers."""
        with self._read() as connection:
            drivers = connection.execute(
                sa.select(runs.c.driver).where(runs.c.driver.is_not(None)).distinct()
            ).scalars()
            return sorted({driver.partition("/")[0] for driver in drivers if "/" in driver and ":" not in driver})

    def planned(self, *, drivers: Sequence[str]) -> Sequence[tuple[str, str, int]]:
        """The runs of some drivers, newest first: id, driver and how many trials were begun. Quick, for many runs."""
        begun = sa.func.coalesce(number(runs.c.counters, "planned"), 0)
        query = sa.select(runs.c.uid, runs.c.driver, begun).where(runs.c.driver.in_(drivers))
        with self._read() as connection:
            return [
                (id_, driver, int(many)) for id_, driver, many in connection.execute(query.order_by(runs.c.id.desc()))
            ]

    @repeated
    def change(self, record: RunRecord, **values: Any) -> None:
        """Set columns of a run. Sources are added to those that it has."""
        checked = any(column in CHECKED for column in values)
        with self._write(record) as connection:
            if checked and (row := connection.execute(BY_NUMBER, {"number": record.number}).first()) is not None:
                stored = _record(row)  # what is damaged must not get a new checksum
                if "sources" in values:  # workers may add some too
                    values["sources"] = {**stored.sources, **values["sources"]}
            for column in ("options", "sources", "counters"):
                if column in values:
                    values[column] = _json(values[column])
            connection.execute(
                sa.update(runs).where(runs.c.id == record.number).values(updated_at=time.time(), **values)
            )
            if checked:
                set_checksum(connection, record.number)

    @repeated
    def request_cancel(self, record: RunRecord) -> bool:
        """Record, durably, that a run is to stop. Returns whether a process works on it, which then stops it.

        A run that nobody works on is stopped at once.
        """
        try:
            lock = self.lock(record)
        except RunBusy:
            self.change(record, cancel=True)
            return True
        try:
            unfinished = sa.update(runs).where(runs.c.id == record.number, runs.c.status.in_(UNFINISHED))
            why = sa.case((runs.c.status == "pending", "it was cancelled before it began"), else_="it was cancelled")
            with self._write(record) as connection:
                connection.execute(unfinished.values(status="stopped", error=why, updated_at=time.time()))
                connection.execute(_stop_workers(record))
        finally:
            lock.release()
        return False

    @repeated
    def request_delete(self, record: RunRecord) -> None:
        """Record, durably, that a run is to stop and to be deleted. Nobody goes on with it after that."""
        unfinished = sa.select(runs.c.name, runs.c.uid).where(runs.c.parent == record.id, runs.c.status != "completed")
        with self._write() as connection:
            fork = connection.execute(unfinished).first()
            if fork is not None:
                title = fork.name or fork.uid
                raise RunError(f"run {title!r} is an unfinished fork of {record.title!r}: delete it first")
            row = connection.execute(BY_NUMBER, {"number": record.number}).first()
            if row is None:
                return
            marked = _json({**_record(row).options, "deleting": True})
            found = sa.update(runs).where(runs.c.id == record.number)
            connection.execute(found.values(options=marked, cancel=True, updated_at=time.time()))
            connection.execute(_stop_workers(record))
            set_checksum(connection, record.number)

    @repeated
    def lock(self, record: RunRecord) -> Lock:
        """Take a run for this process; raises `RunBusy` if another one has it."""
        return self._database.lock(record)

    @repeated
    def is_held(self, record: RunRecord) -> bool:
        """Whether some process works on a run now."""
        return self._database.is_held(record)

    def state(self, record: RunRecord) -> Status:
        """The status to show. Nobody goes on with an unfinished run that was asked to stop and that nobody holds.

        A run that says it is running while nobody holds it was interrupted.
        """
        if record.status in UNFINISHED and (record.cancel or record.status == "running") and not self.is_held(record):
            return "stopped" if record.cancel else "interrupted"
        return record.status

    def delete(self, record: RunRecord) -> None:
        """Remove a run and everything it recorded, except what the cache holds.

        That it is to be deleted is recorded first: if this is cut short, it can only be deleted again.
        """
        if self.is_held(record):
            raise RunBusy(f"run {record.title!r} is in progress: cancel it first")
        lock = self.lock(record)  # so that nobody begins to work on it meanwhile
        try:
            self.request_delete(record)
            self._delete(record)
        finally:
            lock.release()

    def _delete(self, record: RunRecord) -> None:
        """Delete a run in pieces, so that other runs can commit in between; the run itself goes last."""
        first, last = record.span
        for at in range(first, self.last_number(record)[0], DELETED_AT_ONCE):
            began = time.monotonic()
            with self._write(record) as connection:
                _delete_trials(connection, at, at + DELETED_AT_ONCE)
            time.sleep(time.monotonic() - began)  # SQLite has no queue: who waits to write looks now and then
        with self._write(record) as connection:
            _delete_trials(connection, first, last)
            connection.execute(sa.delete(waves).where(waves.c.id.between(first, last)))
            connection.execute(_kept_by(record))
            connection.execute(sa.delete(work).where(work.c.trial.between(first, last)))
            connection.execute(sa.delete(shards).where(shards.c.run == record.number))
            connection.execute(sa.delete(runs).where(runs.c.id == record.number))

    @repeated
    def forget_kept(self, record: RunRecord) -> None:
        """Remove what the run's driver kept: it begins anew, with what the journal holds."""
        with self._write(record) as connection:
            connection.execute(_kept_by(record))

    @repeated
    def retry_missing(self, record: RunRecord) -> int:
        """Give faulted trials a new attempt: their replies are kept, their faults are forgotten.

        Where it was a reply that could not be used, the last reply is forgotten too.
        """
        first, last = record.span
        faulted = (
            sa.select(outcomes.c.trial)
            .where(outcomes.c.trial.between(first, last))
            .where(outcomes.c.fault.is_not(None))
        )
        with self._write(record) as connection:
            connection.execute(sa.delete(asks).where(asks.c.trial.in_(faulted)).where(asks.c.fault.is_not(None)))
            by_reply = faulted.where(outcomes.c.fault.in_(("malformed_reply", "program_error")))
            latest = sa.select(sa.func.max(asks.c.id)).where(asks.c.trial.in_(by_reply)).group_by(asks.c.trial)
            connection.execute(sa.delete(asks).where(asks.c.id.in_(latest)))
            connection.execute(sa.update(trials).where(trials.c.id.in_(faulted)).values(attempt=trials.c.attempt + 1))
            forgotten = connection.execute(
                sa.delete(outcomes).where(outcomes.c.trial.between(first, last)).where(outcomes.c.fault.is_not(None))
            ).rowcount
            own = connection.execute(sa.select(runs.c.counters).where(runs.c.id == record.number)).scalar_one()
            counters = msgspec.json.decode(own, type=Counters)
            counters.missing = record.counters.missing = 0
            connection.execute(sa.update(runs).where(runs.c.id == record.number).values(counters=_json(counters)))
        return forgotten

    @repeated
    def last_number(self, record: RunRecord) -> tuple[int, int]:
        """The largest trial and wave numbers in use."""
        first, last = record.span
        with self._read() as connection:
            trial = connection.execute(sa.select(sa.func.max(trials.c.id)).where(trials.c.id.between(first, last)))
            wave = connection.execute(sa.select(sa.func.max(waves.c.id)).where(waves.c.id.between(first, last)))
            return trial.scalar() or first, wave.scalar() or first

    def create_fork(self, parent: RunRecord, name: str | None, settings: str | None, cut: str | None) -> RunRecord:
        """A new run that reuses what its parent recorded, up to `cut` in every trial."""
        if parent.deleting:
            raise RunNotFound(f"run {parent.title!r} is being deleted and cannot be forked")
        if name is not None and self.find(name) is not None:
            raise RunError(f"a run named {name!r} already exists: give the fork another name")
        return self.create(
            name,
            parent.seed,
            driver=parent.driver,
            location=parent.location,
            settings=settings,
            options=parent.options,
            parent=parent.id,
            cut=cut,
        )


def _of(drivers: Sequence[str]) -> dict[str, Any]:
    return {"drivers": list(drivers)} if drivers else {}


def _check_storable(name: str | None, seed: int) -> None:
    if not -LARGEST <= seed < LARGEST:
        raise SettingsError(f"seed {seed}: must be a 64-bit integer, from -2**63 to 2**63 - 1")
    if name is not None and any("\ud800" <= character <= "\udfff" or character == "\0" for character in name):
        raise SettingsError(f"run name {name!r}: must be valid Unicode text without NUL characters")


def _json(data: Any) -> str:
    return msgspec.json.encode(data).decode()


def set_checksum(connection: sa.Connection, number: int) -> None:
    """Compute the checksum of a run again."""
    row = connection.execute(BY_NUMBER, {"number": number}).first()
    if row is not None:
        made = checksum(*(row._mapping[column] for column in CHECKED))
        connection.execute(sa.update(runs).where(runs.c.id == number).values(checksum=made))


def _record(row: sa.Row[Any]) -> RunRecord:
    return run_record(row._asdict())


def run_record(found: Mapping[str, Any]) -> RunRecord:
    """A run from its columns; raises `msgspec.DecodeError` if they are damaged."""
    verify(found["checksum"], f"run {found['uid']}", *(found[column] for column in CHECKED))
    texts = ("options", "sources", "counters")
    if not all(isinstance(found[column], str) for column in texts):  # a damaged page may have the row of another table
        raise msgspec.DecodeError(f"run {found['uid']} has columns that are not text")
    decoded = {
        "number": found["id"],
        "id": found["uid"],
        "cancel": bool(found["cancel"]),
        **{column: msgspec.json.decode(found[column]) for column in texts},
    }
    plain = {str(column): value for column, value in found.items()}  # SQLAlchemy's names are a class of their own
    return msgspec.convert({**plain, **decoded}, RunRecord)


def _delete_trials(connection: sa.Connection, first: int, last: int) -> None:
    """Delete the trials from one number to another, with what was asked in them and what came of them."""
    connection.execute(sa.delete(asks).where(asks.c.trial.between(first, last)))
    connection.execute(sa.delete(outcomes).where(outcomes.c.trial.between(first, last)))
    connection.execute(sa.delete(trials).where(trials.c.id.between(first, last)))


def _stop_workers(record: RunRecord) -> sa.Update:
    """Tell workers of a run to send nothing more: its head may have been killed."""
    return sa.update(shards).where(shards.c.run == record.number).values(stopped=True)


def _kept_by(record: RunRecord) -> sa.Delete:
    theirs = sa.func.substr(documents.c.id, 1, len(record.id) + 1) == f"{record.id}/"
    return sa.delete(documents).where(documents.c.kind == KEPT, theirs)
