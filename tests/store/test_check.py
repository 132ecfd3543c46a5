"""What `doctor --store` finds in a store, and what `--repair` saves of a damaged one."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import groundswell
from groundswell import Reply, Request, Trial, program
from groundswell.errors import SettingsError, StoreCorrupt
from groundswell.program.request import Chat
from groundswell.store.check import Copied, check_store, lost, repair
from groundswell.store.journal import Store

TRIALS = 300


@program("check/single")
async def single(trial: Trial, number: int) -> str:
    return (await trial.ask("m", f"number {number}")).text


class Model:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Request) -> Reply:
        assert isinstance(request, Chat)
        self.asked += 1
        return Reply(f"reply to {request.messages[0].content}")


def perform(store: Path, model: Model) -> list[str]:
    async def main() -> list[str]:
        async with groundswell.open(store, script=model) as engine:
            return [outcome.unwrap() async for outcome in engine.run("r").map(single, range(TRIALS))]

    return asyncio.run(main())


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("check") / "s.db"
    perform(path, Model())
    return path.read_bytes()


@pytest.fixture
def store(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def execute(store: Path, *statements: str) -> None:
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_store_that_is_in_order(store: Path, content: bytes) -> None:
    found = check_store(store)
    assert (found.problems, found.notes, found.runs, found.mode) == ([], [], 1, "0600")
    assert store.read_bytes() == content
    assert list(store.parent.iterdir()) == [store], "looking leaves nothing behind"


@pytest.mark.parametrize("revision", ["NULL", "4", "x'30'"])
def test_a_schema_number_that_is_damaged(store: Path, revision: str) -> None:
    execute(
        store,
        "DROP TABLE alembic_version",
        "CREATE TABLE alembic_version (version_num)",
        f"INSERT INTO alembic_version VALUES ({revision})",
    )
    assert check_store(store).problems[0] == "its schema version is missing"
    before = store.read_bytes()
    with pytest.raises(StoreCorrupt, match=r"damaged \(its schema version is missing\)"):
        Store(store)
    assert store.read_bytes() == before


def test_a_store_with_a_log_is_not_changed_by_looking(store: Path) -> None:
    """As a process that was killed leaves it."""
    held = Store(store)
    held.runs.create("other", 0)
    copy = store.with_name("copy.db")
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").write_bytes(Path(f"{store}{suffix}").read_bytes())
    before = copy.read_bytes(), Path(f"{copy}-wal").read_bytes()
    assert before[1]
    found = check_store(copy)
    assert (found.problems, found.runs) == ([], 2)
    assert found.log_bytes == len(before[1])
    assert (copy.read_bytes(), Path(f"{copy}-wal").read_bytes()) == before
    held.close_reading()


DAMAGE: dict[str, tuple[str, str]] = {
    "a reply": ("UPDATE asks SET settlement = replace(settlement, 'number 7', 'number 8')", "table asks: ask 0 of"),
    "a reply that does not decode": ("UPDATE asks SET settlement = '{', checksum = NULL", "table asks: "),
    "an outcome": ("UPDATE outcomes SET body = '\"other\"' WHERE trial & 255 = 9", "table outcomes: the outcome of"),
    "a spec": ("UPDATE trials SET spec = '77' WHERE id & 255 = 9", "table trials: trial"),
    "a run": ("UPDATE runs SET seed = 1", "table runs: run"),
    "a cached reply": ("INSERT INTO cache VALUES (x'00', '{\"type\":\"reply\"}', 0, 5)", "table cache: a cached"),
    "rows that are gone": ("DELETE FROM outcomes WHERE trial & 255 = 9", "but only 298 outcomes are stored"),
    "trials that are gone": ("DELETE FROM trials WHERE id & 255 = 9", "2 outcomes belong to no trial"),
    "not text": ("UPDATE asks SET settlement = CAST(x'ff' AS TEXT) WHERE id = 3", "Could not decode to UTF-8"),
}


@pytest.mark.parametrize(("statement", "problem"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named_with_what_to_do(store: Path, statement: str, problem: str) -> None:
    execute(store, statement)
    found = check_store(store)
    assert any(problem in each for each in found.problems), found.problems
    assert f"groundswell doctor --store {store} --repair" in found.problems[-1]
    assert len(found.problems) < 12


def zero_page(store: Path, table: str) -> None:
    """Overwrite a leaf page of a table."""
    with closing(sqlite3.connect(store)) as connection:
        sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno"
        pages = [number for (number,) in connection.execute(sql, (table,))]
    assert len(pages) > 2
    with store.open("r+b") as file:
        file.seek((pages[1] - 1) * 4096)
        file.write(bytes(4096))


def forget_what_was_said(store: Path) -> None:
    execute(store, "UPDATE asks SET settlement = '{}' WHERE id IN (5, 6)")


@pytest.mark.sampled
@pytest.mark.parametrize(
    "harm",
    [
        lambda store: zero_page(store, "asks"),
        lambda store: zero_page(store, "outcomes"),
        lambda store: zero_page(store, "trials"),
        forget_what_was_said,
    ],
    ids=["a page of asks", "a page of outcomes", "a page of trials", "two rows"],
)
def test_a_repaired_store_goes_on_and_asks_only_for_what_was_lost(store: Path, harm: Callable[[Path], None]) -> None:
    harm(store)
    damaged = store.read_bytes()
    assert check_store(store).problems
    new = store.with_name("new.db")
    copied = repair(store, new)
    assert lost(copied)
    assert store.read_bytes() == damaged
    assert check_store(new).problems == []
    assert copied["asks"].rows > TRIALS // 2
    execute(new, "DELETE FROM cache")
    model = Model()
    assert perform(new, model) == [f"reply to number {number}" for number in range(TRIALS)]
    assert model.asked < TRIALS // 3


def test_a_store_without_damage_is_copied_whole(store: Path) -> None:
    new = store.with_name("new.db")
    copied = repair(store, new)
    assert lost(copied) == []
    assert copied["asks"] == copied["outcomes"] == copied["trials"] == Copied(TRIALS, 0, False)
    perform(new, model := Model())
    assert model.asked == 0


def test_a_store_of_an_older_schema_is_copied_whole(store: Path) -> None:
    added = {"asks": "seconds", "outcomes": "rows", "runs": "location"}
    forget = [f"ALTER TABLE {table} DROP COLUMN {column}" for table, column in added.items()]
    unchecked = "UPDATE asks SET checksum = NULL"  # of rows whose time is gone
    execute(store, unchecked, *forget, "UPDATE alembic_version SET version_num = '0006'")
    new = store.with_name("new.db")
    assert lost(repair(store, new)) == []
    assert check_store(new).problems == []


def test_repair_does_not_overwrite_anything(store: Path) -> None:
    store.with_name("new.db").write_text("mine")
    with pytest.raises(SettingsError, match=r"--repair .*new\.db: the file already exists"):
        repair(store, store.with_name("new.db"))
    assert store.with_name("new.db").read_text() == "mine"


def test_what_is_worth_knowing_is_no_damage(store: Path) -> None:
    store.chmod(0o644)
    execute(store, "UPDATE runs SET status = 'running'")
    store.with_name("s.db.abcdefghij.lock").write_text("1")
    found = check_store(store)
    assert found.problems == []
    readable, interrupted, lock = found.notes
    assert "other users can read it (mode 0644): run chmod 600" in readable
    assert "run 'r' was interrupted: continue it with `groundswell runs resume" in interrupted
    assert "s.db.abcdefghij.lock was left by a process that was killed" in lock


def test_an_older_store_is_said_to_be_one(store: Path) -> None:
    execute(store, "UPDATE alembic_version SET version_num = '0003'")
    found = check_store(store)
    assert found.problems == []
    assert "it has schema 0003: the next command that uses it upgrades it to" in found.notes[0]
