"""The crash harness does what it says."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from groundswell.engine.records import AskId, RunRecord
from groundswell.errors import StoreError
from groundswell.program.request import Reply
from groundswell.store.journal import Store
from groundswell.testing.crash import Crash, CrashingStore, CrashPoint, When


@pytest.mark.parametrize(("when", "kept"), [("before", 2), ("after", 3)])
def test_the_crash_comes_before_or_after_a_commit_is_durable(tmp_path: Path, when: When, kept: int) -> None:
    called: list[int] = []

    async def write(store: Store, record: RunRecord) -> None:
        journal = store.journal(record, lambda error: None)
        for number in range(9):
            ask = AskId(record.span[0] + number, "0")
            journal.add_settlement(ask, b"p", None, Reply("x"), called.append, number)
            await journal.flush()

    async def main() -> None:
        point = CrashPoint(3, when)
        store = Store(tmp_path / "s.db", around=point.around)
        record = store.runs.create("r", 0)
        with pytest.raises(StoreError):
            await write(store, record)
        dead = CrashingStore(store, point)
        with pytest.raises(StoreError, match="simulated crash"):
            dead.runs.change(record, status="completed")
        await dead.close()

        healthy = Store(tmp_path / "s.db")
        assert healthy.runs.get("r").status == "pending"
        span = record.span
        found = await healthy.journal(record, print).recorded([span[0] + number for number in range(9)])
        assert sum(bool(each) for each in found.values()) == kept
        await healthy.close()

    asyncio.run(main())
    assert called == [0, 1]


def test_changes_of_the_table_of_runs_count_as_commits(tmp_path: Path) -> None:
    point = CrashPoint(2, "after")
    store = Store(tmp_path / "s.db")
    runs = CrashingStore(store, point).runs
    record = runs.create("r", 0, driver=None, settings=None, options={})
    with pytest.raises(StoreError):
        runs.change(record, status="running")
    assert point.crashed
    assert runs.get("r").status == "running"
    with pytest.raises(StoreError):
        runs.retry_missing(record)
    store.close_reading()


def test_point_zero_never_crashes() -> None:
    point = CrashPoint(0, "before")
    assert [point.around(lambda: 7) for _ in range(20)] == [7] * 20
    assert (point.seen, point.crashed) == (20, False)


def test_after_the_crash_everything_is_refused() -> None:
    point = CrashPoint(1, "before")
    for _ in range(3):
        with pytest.raises(Crash):
            point.around(lambda: None)
    assert point.seen == 1


def test_kill_me_kills() -> None:
    script = "from groundswell.testing.crash import kill_me; kill_me()"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
