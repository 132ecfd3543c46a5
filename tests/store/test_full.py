"""A disk that fills up during a run, and a store that a killed process left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from groundswell import Outcome, Request, RunOptions, StoreError, Trial, program
from groundswell.compose import OneWay
from groundswell.engine.engine import Engine
from groundswell.engine.ports import LoopClock
from groundswell.errors import StoreFull
from groundswell.program.request import Chat
from groundswell.store.journal import Store
from groundswell.store.sqlite import SqliteCommitter
from groundswell.transports.scripted import Scripted

TRIALS = 60


@program("full/verbose")
async def verbose(trial: Trial, number: int) -> int:
    return len((await trial.ask("m", f"{number}")).text)


class Model:
    """Answers at length, and remembers how often it was asked what."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: Request) -> str:
        assert isinstance(request, Chat)
        self.asked.append(str(request.messages[0].content))
        return "word " * 2000


async def session(store: Store, model: Model) -> list[Outcome[int]]:
    async with Engine(store, OneWay(Scripted(model), 4), LoopClock()) as engine:
        run = engine.run("big", options=RunOptions(window=4))
        return [outcome async for outcome in run.map(verbose, range(TRIALS))]


def journalled(path: Path) -> set[str]:
    """The specs of the trials whose replies are in the store."""
    sql = "SELECT spec FROM trials WHERE id IN (SELECT trial FROM asks)"
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute(sql)}


def check_resume(path: Path, model: Model) -> None:
    """With space again the run ends, and nothing that was acknowledged is asked for again."""
    safe = journalled(path)
    assert 0 < len(safe) < TRIALS
    asked = len(model.asked)

    async def again() -> list[Outcome[int]]:
        return await session(Store(path), model)

    outcomes = asyncio.run(again())
    assert [outcome.result for outcome in outcomes] == [10_000] * TRIALS
    assert not safe & set(model.asked[asked:])
    with closing(sqlite3.connect(path)) as connection:
        [(status, planned)] = connection.execute(
            "SELECT status, json_extract(counters, '$.planned') FROM runs"
        ).fetchall()
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert (status, planned) == ("completed", TRIALS)


def test_a_database_that_may_not_grow_stops_the_run(tmp_path: Path) -> None:
    """SQLite itself says that it is full: the writer's connection may not add more than a few pages."""
    path, model = tmp_path / "s.db", Model()

    async def limited() -> None:
        store = Store(path)
        committer = store.writer._committer
        assert isinstance(committer, SqliteCommitter)
        committer._driver.execute("PRAGMA max_page_count = 100")
        await session(store, model)

    with pytest.raises(StoreFull, match=r"no space left for .*s\.db: free some space and resume"):
        asyncio.run(limited())
    check_resume(path, model)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB, where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full_stops_the_run(small_disk: Path) -> None:
    path, model = small_disk / "s.db", Model()

    async def limited() -> None:
        await session(Store(path), model)

    with pytest.raises(StoreError) as raised:
        asyncio.run(limited())
    assert isinstance(raised.value, StoreFull), raised.value
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    check_resume(path, model)


LEAVE = """
import asyncio, os, signal, sys
from groundswell.engine.records import AskId
from groundswell.program.request import Reply
from groundswell.store.journal import Store
from groundswell.store.sqlite import SqliteCommitter

async def main():
    store = Store(sys.argv[1])
    record = store.runs.create("left", 0)
    journal = store.journal(record, print)
    for number in range(50):
        journal.add_settlement(AskId(record.span[0] + number, "0"), b"p" * 16, None, Reply(str(number)), int)
        await journal.flush()
    journal.add_settlement(AskId(record.span[0] + 99, "0"), b"p" * 16, None, Reply("not acknowledged"), int)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.sampled
@pytest.mark.parametrize("without_shm", [False, True], ids=["wal and shm", "wal alone"])
def test_a_store_that_a_killed_process_left_opens_again(tmp_path: Path, without_shm: bool) -> None:
    path = tmp_path / "s.db"
    done = subprocess.run([sys.executable, "-c", LEAVE, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "s.db-wal").stat().st_size > 0, "the journal must still be in the log"
    if without_shm:
        os.unlink(tmp_path / "s.db-shm")

    async def look() -> list[str]:
        store = Store(path)
        record = store.runs.get("left")
        found = await store.journal(record, print).recorded([record.span[0] + number for number in range(50)])
        await store.close()
        return [str(getattr(each["0"][1], "text", None)) for each in found.values()]

    assert asyncio.run(look()) == [str(number) for number in range(50)]
    assert not (tmp_path / "s.db-wal").exists(), "a store that is closed leaves one file"
