"""The cache of a store, in real files."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event

import groundswell
from groundswell import Trial, program
from groundswell.errors import StoreCorrupt, StoreError
from groundswell.program.request import Embedding, Fault, Reply, Request, Settlement, Usage, encode_settlement
from groundswell.store import cache as module
from groundswell.store import sqlite
from groundswell.store.cache import Cache, Kept, Space
from groundswell.store.database import Database
from groundswell.store.journal import Store
from groundswell.store.open import open_database
from groundswell.store.runs import Runs
from groundswell.transports.scripted import Scripted


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = open_database(path)
    yield database
    database.close()


@pytest.fixture
def cache(database: Database) -> Cache:
    return Cache(database)


def fill(path: Path, *rows: tuple[Settlement, float]) -> None:
    """Keep settlements, each with the moment it was kept at."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, (settlement, at) in enumerate(rows):
            key = number.to_bytes(16)
            connection.execute(
                "INSERT INTO cache VALUES (?, ?, ?, NULL)", (key, encode_settlement(settlement).decode(), at)
            )


def numbered(count: int, size: int = 1) -> list[tuple[Settlement, float]]:
    return [(Reply("x" * size), float(number)) for number in range(count)]


def settled_size(path: Path) -> int:
    """The size of a file once everything is in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def test_an_empty_cache_holds_nothing(cache: Cache) -> None:
    assert cache.kept() == Kept(0, 0, None, None, 0, 0)
    assert cache.clear() == 0


def test_replies_bytes_moments_and_tokens_are_added_up(cache: Cache, path: Path) -> None:
    settlements: tuple[Settlement, ...] = (
        Reply("naïve", Usage(10, 3)),
        Reply("no usage"),
        Embedding.of([[1.0]], Usage(5)),
    )
    fill(path, *zip(settlements, (20.0, 10.0, 30.5), strict=True))
    size = sum(len(encode_settlement(settlement)) for settlement in settlements)
    assert cache.kept() == Kept(3, size, 10.0, 30.5, 15, 3)
    assert cache.kept(before=30.5)[:1] + cache.kept(before=30.5)[2:] == (2, 10.0, 20.0, 10, 3)
    assert cache.kept(before=10.0).replies == 0


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(("before", "left"), [(None, 0), (3.0, 4), (0.0, 7), (99.0, 0)], ids=str)
def test_what_is_older_is_removed_whatever_the_chunk(
    cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, before: float | None, left: int
) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    fill(path, *numbered(7))
    assert cache.clear(before) == 7 - left
    assert cache.kept().replies == left
    if left:
        assert cache.kept().oldest == before


def test_the_file_shrinks_when_nobody_works_on_a_run(cache: Cache, path: Path) -> None:
    fill(path, *numbered(200, size=5_000))
    cache.clear()
    before = settled_size(path)
    space = cache.shrink()
    assert space == Space(before - path.stat().st_size)
    assert space.freed > 500_000


def test_the_space_is_reused_while_a_run_is_worked_on(cache: Cache, database: Database, path: Path) -> None:
    fill(path, *numbered(200, size=5_000))
    before = settled_size(path)
    runs = Runs(database)
    lock = runs.lock(runs.create("r", 0))
    cache.clear()
    assert cache.shrink() == Space(0, "busy")
    lock.release()
    fill(path, *numbered(190, size=5_000))
    assert settled_size(path) == before


def test_a_file_is_not_written_anew_for_little(cache: Cache, path: Path) -> None:
    fill(path, *numbered(200, size=5_000))
    cache.clear(before=3.0)
    assert cache.shrink() == Space(0, "small")


def test_a_store_that_somebody_writes_to_keeps_its_size(
    cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PATIENCE_MS", 1)
    fill(path, *numbered(50, size=5_000))
    cache.clear()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert cache.shrink() == Space(0, "busy")
        other.execute("ROLLBACK")
    assert cache.shrink().freed > 0


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("database or disk is full", Space(0, "full")),
        ("database is locked", Space(0, "busy")),
        ("disk I/O error", None),
    ],
    ids=["full", "locked", "broken"],
)
def test_what_keeps_a_file_from_shrinking(
    cache: Cache, database: Database, path: Path, said: str, told: Space | None
) -> None:
    def refuse(cursor: object, statement: str, parameters: object, context: object) -> None:
        if statement == "VACUUM":
            raise sqlite3.OperationalError(said)

    fill(path, *numbered(50, size=5_000))
    cache.clear()
    event.listen(database.engine, "do_execute", refuse)
    if told is None:
        with pytest.raises(StoreError, match="disk I/O error"):
            cache.shrink()
    else:
        assert cache.shrink() == told


def test_clearing_waits_for_a_commit_of_somebody_else(cache: Cache, database: Database, path: Path) -> None:
    fill(path, *numbered(5))
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        committing = threading.Thread(target=other.execute, args=("COMMIT",))

        def begun(cursor: object, statement: str, parameters: object, context: object) -> None:
            if statement == "BEGIN IMMEDIATE" and committing.ident is None:
                committing.start()

        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO cache VALUES (x'ff', '{}', 50, NULL)")
        event.listen(database.engine, "do_execute", begun)
        assert cache.clear(before=10.0) == 5
        committing.join()
    assert cache.kept().newest == 50.0


def test_a_broken_table_is_told_of(cache: Cache, path: Path) -> None:
    fill(path, *numbered(200, size=5_000))
    settled_size(path)
    content = bytearray(path.read_bytes())
    content[20 * 4096 : 60 * 4096] = b"\xff" * 40 * 4096
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"s\.db"):
        cache.kept()


@program("cache/asking", version=1)
async def asking(trial: Trial, spec: int) -> str:
    return (await trial.ask("any/model", f"number {spec}", temperature=0)).text


def run(path: Path, name: str, asked: list[str]) -> list[str | None]:
    """Three trials with a model whose replies are kept; what it was asked is added to a list."""

    def answer(request: Request) -> Reply | Fault:
        asked.append(str(request.messages[-1].content))  # type: ignore[union-attr]
        return Reply(f"answer {len(asked)}", Usage(10, 2))

    async def work() -> list[str | None]:
        async with groundswell.open(path, transport=Scripted(answer, cached=True)) as engine:
            return [outcome.result async for outcome in engine.run(name).map(asking, [1, 2, 3])]

    return asyncio.run(work())


def test_runs_are_untouched_and_new_ones_ask_anew(path: Path) -> None:
    asked: list[str] = []
    first = run(path, "first", asked)
    assert run(path, "second", asked) == first
    assert len(asked) == 3
    database = open_database(path)
    cache = Cache(database)
    assert cache.kept()[4:] == (30, 6)
    assert cache.clear() == 3
    cache.shrink()
    store = Store(path)
    results = store.results(store.runs.get("first"))
    assert [results.recorded(trial.row)["0"][1] for trial in results] == [
        Reply(str(said), Usage(10, 2)) for said in first
    ]
    store.close_reading()
    database.close()
    assert run(path, "first", asked) == first
    assert len(asked) == 3
    assert run(path, "third", asked) != first
    assert len(asked) == 6
