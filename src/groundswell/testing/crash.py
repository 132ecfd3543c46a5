"""Crashes at a moment of your choice, to test that a run survives them.

A `CrashPoint` wraps every commit of a store. In process, `CrashingStore` makes one commit the last: it fails before it
is durable, or is durable without being reported, and everything after it is refused, as if the engine had died. With
`kill_me` the process really dies.

    point = CrashPoint(commit=12, when="before")
    store = CrashingStore(Store(path, around=point.around), point)
    with pytest.raises(StoreError): ...drive an Engine on that store...
    # then open the same file with a plain Store, and the run must finish
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from typing import Any, Literal, NoReturn, TypeVar

from groundswell.engine.ports import Journal, Lock, Results, RunTable, ShareTable, Store, Work
from groundswell.engine.records import RunRecord, Status
from groundswell.errors import StoreError

T = TypeVar("T")
When = Literal["before", "after"]


class Crash(sqlite3.OperationalError):
    """The database error of a simulated crash."""


def fail() -> NoReturn:
    """Crash in process: this commit, and everything after it, fails."""
    raise Crash("simulated crash")


def kill_me() -> NoReturn:
    """Crash for real."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable after SIGKILL")


class CrashPoint:
    """Counts commits, and crashes just before or just after one of them is durable. The first is 1; 0 means never."""

    def __init__(self, commit: int, when: When, crash: Callable[[], None] = fail) -> None:
        self.seen = 0
        self.crashed = False
        self._commit = commit
        self._when = when
        self._crash = crash

    def around(self, commit: Callable[[], T]) -> T:
        """Make a commit, unless the crash comes first."""
        if self.crashed:
            fail()
        self.seen += 1
        if self.seen == self._commit and self._when == "before":
            self._end()
        made = commit()
        if self.seen == self._commit and self._when == "after":
            self._end()
        return made

    def _end(self) -> None:
        self.crashed = True
        self._crash()


class CrashingStore:
    """A store that is dead after its crash point: it writes nothing more and reports nothing more."""

    def __init__(self, store: Store, point: CrashPoint) -> None:
        self._store = store
        self._runs = _CrashingRuns(store.runs, point)

    @property
    def runs(self) -> RunTable:
        return self._runs

    def journal(self, record: RunRecord, failed: Callable[[Exception], None]) -> Journal:
        return self._store.journal(record, failed)

    def results(self, record: RunRecord) -> Results:
        return self._store.results(record)

    @property
    def work(self) -> Work | None:
        return self._store.work

    @property
    def shares(self) -> ShareTable:
        return self._store.shares

    def shard_journal(self, record: RunRecord, shard: int, failed: Callable[[Exception], None]) -> Journal:
        return self._store.shard_journal(record, shard, failed)

    async def close(self) -> None:
        await self._store.close()


class _CrashingRuns:
    """The runs of a store. Each change of a run is also a commit."""

    def __init__(self, runs: RunTable, point: CrashPoint) -> None:
        self._runs = runs
        self._point = point

    def create(
        self,
        name: str | None,
        seed: int,
        *,
        settings: str | None,
        options: dict[str, Any],
        driver: str | None = None,
        location: str | None = None,
    ) -> RunRecord:
        return self._write(
            lambda: self._runs.create(name, seed, settings=settings, options=options, driver=driver, location=location)
        )

    def find(self, name_or_id: str) -> RunRecord | None:
        return self._runs.find(name_or_id)

    def get(self, name_or_id: str, *, own: bool = False) -> RunRecord:
        return self._runs.get(name_or_id, own=own)

    def change(self, record: RunRecord, **values: Any) -> None:
        self._write(lambda: self._runs.change(record, **values))

    def delete(self, record: RunRecord) -> None:
        self._write(lambda: self._runs.delete(record))

    def state(self, record: RunRecord) -> Status:
        return self._runs.state(record)

    def lock(self, record: RunRecord) -> Lock:
        return self._runs.lock(record)

    def last_number(self, record: RunRecord) -> tuple[int, int]:
        return self._runs.last_number(record)

    def retry_missing(self, record: RunRecord) -> int:
        return self._write(lambda: self._runs.retry_missing(record))

    def forget_kept(self, record: RunRecord) -> None:
        self._write(lambda: self._runs.forget_kept(record))

    def _write(self, commit: Callable[[], T]) -> T:
        try:
            return self._point.around(commit)
        except Crash as crash:
            raise StoreError(str(crash)) from crash
