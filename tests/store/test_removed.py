"""The file of a store that is deleted, replaced or cut short while a run goes on."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import groundswell
from groundswell import Request, RunOptions, Trial, program
from groundswell.engine.records import RunRecord
from groundswell.errors import StoreCorrupt, StoreError, StoreRemoved
from groundswell.program.request import Chat
from groundswell.store.database import Reader
from groundswell.store.journal import Store
from groundswell.store.open import open_database

TRIALS, AT_ONCE = 200, 4


@program("removed/single")
async def single(trial: Trial, number: int) -> str:
    return (await trial.ask("m", f"{number}")).text


class Model:
    """Answers, and does something to the store each time it has answered so many more."""

    def __init__(self, after: int, *harm: Callable[[], object]) -> None:
        self.asked: list[str] = []
        self._harm = {after * times: each for times, each in enumerate(harm, start=1)}

    def __call__(self, request: Request) -> str:
        assert isinstance(request, Chat)
        self.asked.append(str(request.messages[0].content))
        if len(self.asked) in self._harm:
            self._harm.pop(len(self.asked))()
        return "a reply"


async def session(store: Path, model: Model) -> list[str]:
    options = RunOptions(window=AT_ONCE)
    async with groundswell.open(store, script=model, max_concurrent=AT_ONCE, options=options) as engine:
        return [outcome.unwrap() async for outcome in engine.run("r").map(single, range(TRIALS))]


def interrupted(store: Path, *harm: Callable[[], object]) -> tuple[Model, StoreError]:
    """A run during which the store is harmed: it must end with an error, and soon."""
    model = Model(50, *harm)
    with pytest.raises(StoreError) as raised:
        asyncio.run(asyncio.wait_for(session(store, model), 60))
    assert len(model.asked) <= 50 * len(harm) + 2 * AT_ONCE, "nothing more is sent once it is noticed"
    return model, raised.value


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder / "s.db"


def delete_all(store: Path) -> None:
    for each in store.parent.iterdir():
        each.unlink()


def replace(store: Path) -> None:
    open_database(store.with_name("new.db")).close()
    os.replace(store.with_name("new.db"), store)


def empty(store: Path) -> None:
    os.truncate(store, 0)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "harm", [Path.unlink, delete_all, replace, empty], ids=["deleted", "all deleted", "replaced", "emptied"]
)
def test_a_file_that_is_gone_ends_the_run_and_what_it_held_is_saved(store: Path, harm: Callable[[Path], None]) -> None:
    model, error = interrupted(store, lambda: harm(store))
    assert isinstance(error, StoreRemoved)
    assert str(store) in str(error)
    found = re.search(r"All (\d+) recorded replies were saved in (\S+)\. ", str(error))
    assert found, error
    saved = Path(found[2])
    assert saved.stat().st_mode & 0o777 == 0o600
    before = len(model.asked)
    assert asyncio.run(session(saved, model)) == ["a reply"] * TRIALS
    assert len(set(model.asked[before:])) == TRIALS - int(found[1]), "what was saved is not asked for again"
    assert not list(store.parent.glob("*.lock"))


def test_a_file_that_goes_when_all_is_written_is_saved_too(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=Model(0)) as engine:
            assert (await engine.run("r").submit(single, 1)).unwrap() == "a reply"
            store.unlink()

    with pytest.raises(StoreRemoved, match=r"All 1 recorded replies were saved in"):
        asyncio.run(main())


def test_a_file_that_goes_after_its_log_is_saved_too(store: Path) -> None:
    """As when a folder is deleted, and something is written before the last of its files is gone."""

    async def main() -> None:
        async with groundswell.open(store, script=Model(0)) as engine:
            run = engine.run("r")
            assert (await run.submit(single, 1)).unwrap() == "a reply"
            Path(f"{store}-wal").unlink()
            with pytest.raises(StoreCorrupt):
                await run.submit(single, 2)
            store.unlink()

    with pytest.raises(StoreRemoved, match=r"All 1 recorded replies were saved in"):
        asyncio.run(main())


def test_a_folder_that_is_renamed_ends_the_run(store: Path) -> None:
    _, error = interrupted(store, lambda: store.parent.rename(store.parent.with_name("elsewhere")))
    assert isinstance(error, StoreRemoved)
    assert "If the store was moved, move it back and resume" in str(error)
    store.parent.with_name("elsewhere").rename(store.parent)
    assert asyncio.run(session(store, Model(0))) == ["a reply"] * TRIALS


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_part_of_the_store_that_is_deleted_ends_the_run(store: Path, suffix: str) -> None:
    _, error = interrupted(store, lambda: Path(f"{store}{suffix}").unlink())
    assert isinstance(error, StoreCorrupt)
    assert f"{store}{suffix}" in str(error)
    assert "groundswell doctor" in str(error)
    assert asyncio.run(session(store, Model(0))) == ["a reply"] * TRIALS


def test_a_file_that_is_cut_short_ends_the_run(store: Path) -> None:
    def checkpoint() -> None:
        database = open_database(store)
        with database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
        database.close()

    _, error = interrupted(store, checkpoint, lambda: os.truncate(store, store.stat().st_size // 2))
    assert isinstance(error, StoreCorrupt)
    assert "is damaged (it was truncated" in str(error)


def test_a_file_that_sqlite_made_smaller_does_not(store: Path) -> None:
    def vacuum() -> None:
        database = open_database(store)
        with database.engine.connect() as connection:
            connection.exec_driver_sql("CREATE TABLE much (text TEXT)")
            connection.exec_driver_sql("INSERT INTO much VALUES (?)", ("x" * 1_000_000,))
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
            larger = store.stat().st_size
            connection.exec_driver_sql("DROP TABLE much")
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
            assert store.stat().st_size < larger
        database.close()

    assert asyncio.run(session(store, Model(50, vacuum))) == ["a reply"] * TRIALS


@pytest.fixture
def opened(store: Path) -> tuple[Store, RunRecord]:
    held = Store(store)
    return held, held.runs.create("r", 0)


def select_one(reading: Reader) -> object:
    return reading.execute("SELECT 1", ()).fetchone()


READS: dict[str, Callable[[Store, RunRecord], object]] = {
    "list": lambda store, record: store.runs.list(),
    "results": lambda store, record: list(store.results(record)),
    "waves": lambda store, record: store.waves.open(),
    "documents": lambda store, record: store.documents.list("entity"),
    "journal": lambda store, record: asyncio.run(store.read(select_one)),
    "cache": lambda store, record: store.read_soon(select_one, lambda found: None, lambda error: None),
    "change": lambda store, record: store.runs.change(record, status="failed"),
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("harm", [Path.unlink, replace], ids=["deleted", "replaced"])
def test_whatever_reads_notices_it_and_makes_no_new_file(
    opened: tuple[Store, RunRecord], read: Callable[[Store, RunRecord], object], harm: Callable[[Path], None]
) -> None:
    store, record = opened
    path = store.database.path
    assert path is not None
    read(store, record)  # connections that are there already
    harm(path)
    there = path.exists()
    with pytest.raises(StoreRemoved, match=re.escape(str(path))):
        read(store, record)
    assert path.exists() == there
    store.close_reading()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_store_is_for_its_owner_alone(store: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        held = Store(store)
        lock = held.runs.lock(held.runs.create("r", 0))
        modes = {each.name.rpartition(".")[2]: each.stat().st_mode & 0o777 for each in store.parent.iterdir()}
        assert modes == {"db": 0o600, "db-wal": 0o600, "db-shm": 0o600, "lock": 0o600}
        lock.release()
        held.close_reading()
    finally:
        os.umask(before)


def test_a_store_that_is_there_keeps_its_mode(store: Path) -> None:
    open_database(store).close()
    store.chmod(0o664)
    held = Store(store)
    lock = held.runs.lock(held.runs.create("r", 0))
    assert {each.stat().st_mode & 0o777 for each in store.parent.iterdir()} == {0o664}
    lock.release()
    held.close_reading()


def test_a_copy_of_the_store_at_another_path_is_another_store(store: Path) -> None:
    open_database(store).close()
    shutil.copy(store, store.with_name("copy.db"))
    held = Store(store.with_name("copy.db"))
    assert held.runs.list() == []
    held.close_reading()
