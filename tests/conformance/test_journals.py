"""The conformance suite over the journals of both stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from groundswell.engine.ports import Journal
from groundswell.engine.records import RunRecord
from groundswell.store.journal import Store
from groundswell.testing.conformance import JournalCase, JournalCheck, check_name, journal_checks
from groundswell.testing.crash import CrashPoint
from tests.stores import BOTH, new_store


class StoreCase:
    """A run in a store, and a second store on the same file."""

    def __init__(self, path: str | Path) -> None:
        self._point = CrashPoint(0, "before")
        self._store = Store(path, around=self._point.around)
        self._other = Store(path)
        self.record: RunRecord = self._store.runs.create("case", 0)
        self.failures: list[Exception] = []
        self.journal: Journal = self._store.journal(self.record, self.failures.append)

    def other(self) -> Journal:
        return self._other.journal(self.stored(), self.failures.append)

    def stored(self) -> RunRecord:
        return self._other.runs.get("case")

    def break_commits(self) -> None:
        self._point.crashed = True

    def cancel(self) -> None:
        self._other.runs.change(self.record, cancel=True)

    async def close(self) -> None:
        await self._store.close()
        await self._other.close()


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("check", journal_checks, ids=check_name)
def test_store_journal(tmp_path: Path, kind: str, check: JournalCheck) -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[JournalCase]:
        case = StoreCase(new_store(kind, tmp_path))
        try:
            yield case
        finally:
            await case.close()

    asyncio.run(check(make))
