"""Group commit: what shares a commit, who is told when, and what happens when one fails."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from groundswell.errors import StoreError
from groundswell.store.database import Insert
from groundswell.store.open import open_database
from groundswell.store.writer import Around, Writer, plainly
from tests.patience import PATIENCE

TABLE = sa.Table("notes", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("text", sa.Text))
RENAME = "UPDATE notes SET text = ? WHERE id = ?"


@asynccontextmanager
async def writing(path: Path, around: Around = plainly) -> AsyncIterator[Writer]:
    database = open_database(path)
    with database.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)")
    writer = Writer(database, {"notes": Insert(TABLE, ("id", "text"))}, around=around)
    try:
        yield writer
    finally:
        await writer.close()
        database.close()


def read(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT id, text FROM notes ORDER BY id").fetchall()


class Commits:
    """Counts commits; may hold them up, or let one fail."""

    def __init__(self, failing: int = 0) -> None:
        self.count = 0
        self.failing = failing
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, commit: Callable[[], None]) -> None:
        self.gate.wait(20)
        self.count += 1
        if self.count == self.failing:
            raise sqlite3.OperationalError("database or disk is full")
        commit()


@pytest.mark.parametrize("rows", [0, 1, 2, 255, 256, 257, 1000])
def test_rows_of_one_tick_share_a_commit(tmp_path: Path, rows: int) -> None:
    commits = Commits()

    async def main() -> None:
        async with writing(tmp_path / "s.db", commits) as writer:
            for number in range(rows):
                writer.batch().rows["notes"].extend((number, f"note {number}"))
            await writer.flush()

    asyncio.run(main())
    assert read(tmp_path / "s.db") == [(number, f"note {number}") for number in range(rows)]
    assert commits.count == min(rows, 1)


def test_what_comes_during_a_commit_goes_into_the_next(tmp_path: Path) -> None:
    commits = Commits()

    async def main() -> None:
        async with writing(tmp_path / "s.db", commits) as writer:
            commits.gate.clear()
            writer.batch().rows["notes"].extend((0, "first"))
            while not writer.busy:
                await asyncio.sleep(0)
            for number in range(1, 50):
                writer.batch().rows["notes"].extend((number, "later"))
                await asyncio.sleep(0)
            commits.gate.set()
            await writer.flush()
            assert not writer.busy

    asyncio.run(main())
    assert (commits.count, len(read(tmp_path / "s.db"))) == (2, 50)


def test_callbacks_come_after_their_commit_in_order(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    async def main() -> None:
        async with writing(tmp_path / "s.db") as writer:
            for number in range(100):
                writer.batch().rows["notes"].extend((number, "x"))
                writer.batch().after.append((lambda at: seen.append((at, len(read(tmp_path / "s.db")))), (number,)))
                if number % 7 == 0:
                    await asyncio.sleep(0)
            assert len(seen) < 100
            await writer.flush()

    asyncio.run(main())
    assert [at for at, _ in seen] == list(range(100))
    assert all(at < durable for at, durable in seen)


def test_what_a_callback_adds_is_flushed_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with writing(tmp_path / "s.db") as writer:

            def more(number: int) -> None:
                if number < 5:
                    writer.batch().rows["notes"].extend((number, "chain"))
                    writer.batch().after.append((more, (number + 1,)))

            more(0)
            await writer.flush()
            assert len(read(tmp_path / "s.db")) == 5

    asyncio.run(main())


def test_a_flush_of_one_key_does_not_wait_for_others_that_keep_writing(tmp_path: Path) -> None:
    commits = Commits()

    async def main() -> None:
        async with writing(tmp_path / "s.db", commits) as writer:
            over = False

            def add(key: str) -> None:
                writer.batch().late[RENAME, key] = lambda: ("x", 0)

            def go_on() -> None:
                if not over:
                    add("busy")
                    writer.batch().after.append((go_on, ()))

            go_on()
            async with asyncio.timeout(PATIENCE):
                await writer.flush((RENAME, "quiet"))
                assert commits.count == 0  # nothing of this key was added
                add("quiet")
                await writer.flush((RENAME, "quiet"))
            assert commits.count > 0
            over = True

    asyncio.run(main())


def test_a_later_update_of_a_key_replaces_the_earlier(tmp_path: Path) -> None:
    async def main() -> None:
        async with writing(tmp_path / "s.db") as writer:
            writer.batch().rows["notes"].extend((1, "a", 2, "b"))
            writer.batch().updates[RENAME, 1] = ("old", 1)
            writer.batch().updates[RENAME, 1] = ("new", 1)
            value = ["early"]
            writer.batch().late[RENAME, 2] = lambda: (value[0], 2)
            value[0] = "late"
            await writer.flush()

    asyncio.run(main())
    assert read(tmp_path / "s.db") == [(1, "new"), (2, "late")]


def test_a_failed_commit_is_the_last(tmp_path: Path) -> None:
    told: list[Exception] = []
    called: list[str] = []
    commits = Commits(failing=2)

    async def main() -> None:
        async with writing(tmp_path / "s.db", commits) as writer:
            writer.failed.append(told.append)
            for number, text in enumerate(["safe", "lost"]):
                writer.batch().rows["notes"].extend((number, text))
                writer.batch().after.append((called.append, (text,)))
                if text == "safe":
                    await writer.flush()
            with pytest.raises(StoreError, match="no space left"):
                await writer.flush()
            with pytest.raises(StoreError, match="no space left"):
                writer.batch()
            with pytest.raises(StoreError, match="no space left"):
                await writer.flush()

    asyncio.run(main())
    assert (called, len(told), commits.count) == (["safe"], 1, 2)
    assert read(tmp_path / "s.db") == [(0, "safe")]


def test_nothing_of_a_commit_that_fails_half_way_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        async with writing(tmp_path / "s.db") as writer:
            writer.batch().rows["notes"].extend((1, "one"))
            writer.batch().updates["UPDATE nowhere SET text = ? WHERE id = ?", 1] = ("x", 1)
            with pytest.raises(StoreError, match="nowhere"):
                await writer.flush()

    asyncio.run(main())
    assert read(tmp_path / "s.db") == []


def test_a_row_that_cannot_be_bound_fails_the_commit_and_not_the_thread(tmp_path: Path) -> None:
    async def main() -> None:
        async with writing(tmp_path / "s.db") as writer:
            writer.batch().rows["notes"].extend((1, "half \ud83d"))
            with pytest.raises(StoreError, match="surrogates"):
                await asyncio.wait_for(writer.flush(), 20)

    asyncio.run(main())
    assert read(tmp_path / "s.db") == []


def test_any_failure_of_the_thread_is_told_as_an_error_of_the_store(tmp_path: Path) -> None:
    told: list[Exception] = []

    async def main() -> None:
        async with asyncio.timeout(4), writing(tmp_path / "s.db") as writer:
            writer.failed.append(told.append)
            writer.batch().rows["notes"].extend((1, "\udc80"))
            with pytest.raises(StoreError, match="surrogates not allowed"):
                await writer.flush()
            with pytest.raises(StoreError):
                writer.batch()

    asyncio.run(main())
    assert len(told) == 1
    assert read(tmp_path / "s.db") == []
