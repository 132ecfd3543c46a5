"""Copying runs between stores of both kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import groundswell
from groundswell import Reply, Request, Trial, program
from groundswell.engine.ports import Journal
from groundswell.engine.records import AskId
from groundswell.errors import RunBusy, RunError, StoreCorrupt
from groundswell.program.request import Chat
from groundswell.store.check import check_server, check_store
from groundswell.store.copy import Copied, copy_store
from groundswell.store.database import Database
from groundswell.store.journal import Store
from groundswell.store.open import open_database
from groundswell.store.runs import Runs
from tests.store.planted import Planted
from tests.stores import new_store, rows

WAYS = ["sqlite to postgres", "postgres to sqlite", "sqlite to sqlite"]


@program("tests/copy/twice")
async def twice(trial: Trial, number: int) -> str:
    first = await trial.ask("m", f"first {number}", temperature=0)
    second = await trial.ask("m", f"second {number}")
    trial.row(seen=first.text)
    return f"{first.text} {second.text}"


def answer(request: Request) -> Reply:
    assert isinstance(request, Chat)
    return Reply(f"<{request.messages[0].content}>")


class Pair:
    """Two stores, and runs in them."""

    def __init__(self, first: str | Path, second: str | Path) -> None:
        self.first, self.second = first, second

    def play(self, place: str | Path, *names: str, trials: int = 3) -> list[list[str | None]]:
        async def main() -> list[list[str | None]]:
            async with groundswell.open(place, script=answer) as engine:
                return [[o.result async for o in engine.run(name).map(twice, range(trials))] for name in names]

        return asyncio.run(main())

    def copy(self, *names: str) -> Copied:
        with closing(open_database(self.first)) as source, closing(open_database(self.second)) as target:
            return copy_store(source, target, names)

    def problems(self) -> list[str]:
        """What a check of the second store finds."""
        if isinstance(self.second, Path):
            return check_store(self.second).problems
        return check_server(self.second).problems


@pytest.fixture(params=WAYS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    kinds = request.param.split(" to ")
    (tmp_path / "a").mkdir()
    return Pair(new_store(kinds[0], tmp_path / "a"), new_store(kinds[1], tmp_path))


def nobody(request: Request) -> Reply:
    raise AssertionError("nothing is to be asked")


def test_copied_runs_replay_under_other_numbers(pair: Pair) -> None:
    """The second store has runs with the same numbers."""
    pair.play(pair.second, "theirs", "other")
    expected = pair.play(pair.first, "r", "s")
    assert pair.copy() == Copied(["r", "s"], [], 6, 12, 0, 0)
    assert pair.problems() == []
    numbers = dict(rows(pair.second, "SELECT name, id FROM runs"))
    assert len(set(numbers.values())) == 4
    assert rows(pair.second, "SELECT count(*) FROM asks") == [(24,)]
    rows(pair.second, "DELETE FROM outcomes")
    rows(pair.second, """UPDATE runs SET status = 'running', counters = '{"planned":3}'""")

    async def again() -> list[list[str | None]]:
        async with groundswell.open(pair.second, script=nobody) as engine:
            return [[o.result async for o in engine.run(name).map(twice, range(3))] for name in ("r", "s")]

    assert asyncio.run(again()) == expected
    store = Store(pair.second)
    assert [row["seen"] for row in store.results(store.runs.get("s")).rows()] == [f"<first {n}>" for n in range(3)]
    store.close_reading()


def test_a_copy_that_is_repeated_adds_what_is_new(pair: Pair) -> None:
    pair.play(pair.first, "r")
    pair.copy()
    pair.play(pair.first, "s")
    assert pair.copy() == Copied(["s"], ["r"], 3, 6, 0, 0)
    assert pair.copy("r", "s") == Copied([], ["r", "s"])
    assert rows(pair.second, "SELECT name FROM runs ORDER BY id") == [("r",), ("s",)]
    assert pair.problems() == []


def test_later_runs_get_numbers_of_their_own(pair: Pair) -> None:
    pair.play(pair.first, "r", "s")
    pair.copy("s")
    pair.play(pair.second, "new")
    assert rows(pair.second, "SELECT name, id FROM runs ORDER BY id") == [("s", 2), ("new", 3)]


def test_documents_and_cached_replies_come_along(pair: Pair) -> None:
    with closing(Closing(pair.first)) as held:
        store = held.store
        store.documents.add(("entity", "a", '{"x":1}'), ("entity", "b", "{}"))
        record = store.runs.create("r", 0)
        store.documents.put("kept", f"{record.id}/weights", "[1]")
        asyncio.run(held.cache(1_200))
    with closing(Closing(pair.second)) as held:
        held.store.documents.add(("entity", "a", '{"x":2}'))
    copied = pair.copy()
    assert (copied.runs, copied.documents, copied.cached) == (["r"], 2, 1_200)
    with closing(Closing(pair.second)) as held:
        found = held.store.documents
        assert {each.id: each.body for each in found.list("entity")} == {"a": '{"x":2}', "b": "{}"}
        assert [each.body for each in found.list("kept")] == ["[1]"]
        assert held.store.cache.kept().replies == 1_200
    assert pair.problems() == []


def nothing() -> None:
    """Nobody waits."""


class Closing:
    """A store that can be closed without a loop."""

    def __init__(self, place: str | Path) -> None:
        self.place = place
        self.store = Store(place)

    async def cache(self, many: int) -> None:
        store = Store(self.place)
        journal: Journal = store.journal(store.runs.get("r"), print)
        for number in range(many):
            ask = AskId(number, "0")
            journal.add_settlement(ask, bytes(16), None, Reply("x"), nothing, cache_key=number.to_bytes(16))
        await journal.flush()
        await store.close()
        rows(self.place, "DELETE FROM asks")

    def close(self) -> None:
        self.store.close_reading()


@pytest.fixture
def two(pair: Pair) -> Iterator[tuple[Database, Database]]:
    with ExitStack() as stack:
        first = stack.enter_context(closing(open_database(pair.first)))
        yield first, stack.enter_context(closing(open_database(pair.second)))


def test_a_run_that_is_worked_on_is_refused(two: tuple[Database, Database], pair: Pair) -> None:
    record = Runs(two[0]).create("r", 0)
    lock = Runs(two[0]).lock(record)
    with pytest.raises(RunBusy):
        copy_store(*two)
    lock.release()
    assert copy_store(*two).runs == ["r"]


def test_a_name_that_is_taken_is_told_before_anything_is_copied(two: tuple[Database, Database]) -> None:
    first, second = map(Runs, two)
    first.create("new", 0)
    first.create("r", 0)
    second.create("r", 0)
    with pytest.raises(RunError, match="run 'r': the other store has another run with this name"):
        copy_store(*two)
    assert second.count() == 1
    assert copy_store(*two, ["new"]).runs == ["new"]


def test_an_unfinished_fork_needs_its_parent(two: tuple[Database, Database]) -> None:
    runs = Runs(two[0])
    parent = runs.create("parent", 0)
    fork = runs.create_fork(parent, "fork", None, None)
    with pytest.raises(RunError, match="'fork' is an unfinished fork of 'parent': copy that run too"):
        copy_store(*two, ["fork"])
    assert copy_store(*two, ["fork", "parent"]).runs == ["parent", "fork"]
    assert Runs(two[1]).get("fork").parent == fork.parent


def test_a_batch_in_flight_keeps_its_run_s_number(pair: Pair) -> None:
    planted = Planted(pair.first)
    planted.send(planted.run("r"), 1, 3, "batch_1")
    pair.copy()
    assert rows(pair.first, "SELECT id, asks FROM waves") == rows(pair.second, "SELECT id, asks FROM waves")
    rows(pair.second, "UPDATE runs SET uid = 'another', name = 'x', checksum = NULL")
    with pytest.raises(RunError, match="has a batch in flight, whose requests carry its number 1"):
        pair.copy()
    assert rows(pair.second, "SELECT count(*) FROM runs") == [(1,)]
    with closing(Closing(pair.first)) as held:
        planted.end(held.store.runs.get("r"), 1)
    assert pair.copy().runs == ["r"]
    assert rows(pair.second, "SELECT count(*) FROM waves") == [(2,)]


def test_damage_is_not_copied(pair: Pair) -> None:
    pair.play(pair.first, "r")
    rows(pair.first, "UPDATE asks SET settlement = '{}' WHERE id = (SELECT max(id) FROM asks)")
    with pytest.raises(StoreCorrupt, match="was changed after it was written"):
        pair.copy()
    assert rows(pair.second, "SELECT count(*) FROM runs") == [(0,)]


def test_a_check_of_a_server_s_store_names_damage(tmp_path: Path) -> None:
    pair = Pair(tmp_path / "unused.db", new_store("postgres", tmp_path))
    pair.play(pair.second, "r", trials=8)
    assert pair.problems() == []
    rows(pair.second, "UPDATE asks SET settlement = '{}'")
    rows(pair.second, "DELETE FROM trials WHERE id = (SELECT max(id) FROM trials)")
    rows(pair.second, "DELETE FROM outcomes WHERE trial = (SELECT min(trial) FROM outcomes)")
    problems = pair.problems()
    assert any("table asks: ask 0 of trial" in problem for problem in problems)
    assert "table asks: 11 more" in problems
    assert "1 outcomes belong to no trial" in problems
    assert "2 replies belong to no trial" in problems
    assert any("counts 8 ended trials, but only 7 outcomes" in problem for problem in problems)
