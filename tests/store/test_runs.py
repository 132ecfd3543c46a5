"""The table of runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from groundswell.engine.records import Counters, RunRecord
from groundswell.errors import RunBusy, RunError, RunNotFound, SettingsError
from groundswell.store import runs as module
from groundswell.store.database import Database
from groundswell.store.runs import Runs, _delete_trials
from tests.stores import add_rows, rows


@pytest.fixture
def runs(database: Database) -> Runs:
    return Runs(database)


class Inside:
    """The tables behind the runs."""

    def __init__(self, place: str | Path) -> None:
        self.place = place

    def fill(self, runs: Runs, record: RunRecord, faults: list[str | None]) -> None:
        """A trial with one ask and one outcome per entry, and a wave."""
        first = record.span[0]
        numbered = list(enumerate(faults, first + 1))
        add = partial(add_rows, self.place)
        add("waves", "id, account, transport, size, asks, sent_at", (first + 1, "a", "t", 0, "[]", 0.0))
        add(
            "trials", "id, key, program, spec, attempt", *((n, f"key {n - first}", "p@1", "{}", 0) for n, _ in numbered)
        )
        for number, fault in numbered:
            add("asks", "trial, path, fingerprint, settlement", (number, "0", b"0", "{}"))
            if fault is not None:
                add("asks", "trial, path, fingerprint, fault, settlement", (number, "1", b"0", fault, "{}"))
        add("outcomes", "trial, fault, body", *((number, fault, "{}") for number, fault in numbered))
        missing = sum(fault is not None for fault in faults)
        runs.change(record, counters=Counters(planned=len(faults), usable=len(faults) - missing, missing=missing))

    def count(self, table: str) -> int:
        [(found,)] = rows(self.place, f"SELECT count(*) FROM {table}")
        return int(found)


@pytest.fixture
def inside(place: str | Path) -> Inside:
    return Inside(place)


def test_a_run_is_found_by_name_and_by_id(runs: Runs) -> None:
    made = runs.create("first", 7, driver="m:d", settings="{}", options={"window": 3})
    assert (made.status, made.seed, made.options, made.counters) == ("pending", 7, {"window": 3}, Counters())
    assert runs.find("first") == runs.find(made.id) == runs.get("first") == made
    assert runs.find("second") is None
    with pytest.raises(RunNotFound, match=r"no run 'second' in .*: list its runs with `groundswell runs list`"):
        runs.get("second")


def test_an_id_goes_before_a_name_that_looks_like_it(runs: Runs) -> None:
    made = runs.create(None, 0)
    runs.create(made.id, 0)
    assert runs.get(made.id).number == made.number


def test_runs_without_a_name_are_told_apart_by_id(runs: Runs) -> None:
    made = [runs.create(None, 0) for _ in range(3)]
    assert len({record.id for record in made}) == 3
    assert [record.id for record in runs.list()] == [record.id for record in reversed(made)]
    assert made[0].title == made[0].id


def test_a_name_is_given_once(runs: Runs) -> None:
    runs.create("taken", 0)
    with pytest.raises(RunError, match="name"):
        runs.create("taken", 0)
    assert len(runs.list()) == 1


@pytest.mark.parametrize(("name", "seed", "words"), [("half \udcff", 0, "Unicode"), ("large", 2**63, "64-bit")])
def test_what_sqlite_cannot_hold_is_refused(runs: Runs, name: str, seed: int, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        runs.create(name, seed)


def test_changes_are_stored(runs: Runs) -> None:
    record = runs.create("r", 0)
    runs.change(record, status="partial", error="why", counters=Counters(planned=3), sources={"p": "1"})
    again = runs.get("r")
    assert (again.status, again.error, again.counters.planned, again.sources) == ("partial", "why", 3, {"p": "1"})
    assert again.updated_at >= record.updated_at


def test_a_run_that_nobody_holds_was_interrupted(runs: Runs) -> None:
    record = runs.create("r", 0)
    runs.change(record, status="running")
    record = runs.get("r")
    assert runs.state(record) == "interrupted"
    lock = runs.lock(record)
    assert runs.state(record) == "running"
    lock.release()


def test_cancel_reaches_the_process_that_holds_it(runs: Runs) -> None:
    record = runs.create("r", 0)
    lock = runs.lock(record)
    assert runs.request_cancel(record) is True
    assert (runs.get("r").cancel, runs.get("r").status) == (True, "pending")
    lock.release()


@pytest.mark.parametrize(
    ("status", "after"),
    [
        ("pending", "stopped"),
        ("running", "stopped"),
        ("interrupted", "stopped"),
        ("completed", "completed"),
        ("failed", "failed"),
    ],
)
def test_cancel_of_a_run_that_nobody_holds(runs: Runs, status: str, after: str) -> None:
    runs.change(runs.create("r", 0), status=status)
    assert runs.request_cancel(runs.get("r")) is False
    assert (runs.get("r").status, runs.get("r").cancel) == (after, False)


@pytest.mark.parametrize("status", ["pending", "running", "interrupted"])
def test_a_run_that_was_asked_to_stop_and_is_held_no_more_has_stopped(runs: Runs, status: str) -> None:
    record = runs.create("r", 0)
    runs.change(record, status=status)
    lock = runs.lock(record)
    runs.request_cancel(runs.get("r"))
    assert runs.state(runs.get("r")) == status
    lock.release()  # as by a kill: nobody had the time to write down that it has stopped
    assert runs.state(runs.get("r")) == "stopped"


def test_a_deletion_that_is_cut_short_is_known_and_can_be_finished(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, inside: Inside
) -> None:
    record = runs.create("r", 0, options={"window": 3})
    inside.fill(runs, record, [None] * 5)
    pieces: list[int] = []

    def cut_short(connection: sa.Connection, first: int, last: int) -> None:
        _delete_trials(connection, first, last)
        pieces.append(first)
        if len(pieces) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "DELETED_AT_ONCE", 2)
    monkeypatch.setattr(module, "_delete_trials", cut_short)
    with pytest.raises(KeyboardInterrupt):
        runs.delete(record)
    left = runs.get("r")
    assert (left.deleting, left.cancel, left.options["window"], inside.count("trials")) == (True, True, 3, 3)
    with pytest.raises(RunNotFound, match="is being deleted"):
        runs.create_fork(left, "fork", None, None)
    monkeypatch.undo()
    runs.delete(left)
    assert (runs.list(), inside.count("trials"), inside.count("asks"), inside.count("waves")) == ([], 0, 0, 0)


def test_others_can_write_while_a_large_run_is_deleted(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, inside: Inside
) -> None:
    record, other = runs.create("r", 0), runs.create("other", 0)
    inside.fill(runs, record, [None] * 5)
    seen: list[int] = []

    def beside(seconds: float) -> None:  # while the deletion waits, another writer has its turn
        seen.append(inside.count("trials"))
        runs.change(other, error=f"written {len(seen)} times")

    monkeypatch.setattr(module, "DELETED_AT_ONCE", 2)
    monkeypatch.setattr("groundswell.store.runs.time.sleep", beside)
    runs.delete(record)
    assert seen[0] > seen[-1]
    assert runs.get("other").error == f"written {len(seen)} times"


def test_a_run_with_an_unfinished_fork_is_not_marked(runs: Runs) -> None:
    parent = runs.create("parent", 0)
    runs.create_fork(parent, "fork", None, None)
    with pytest.raises(RunError, match="'fork' is an unfinished fork of 'parent'"):
        runs.delete(parent)
    assert (runs.get("parent").deleting, runs.get("parent").cancel) == (False, False)


def test_delete_takes_everything_of_one_run_and_nothing_of_others(runs: Runs, inside: Inside) -> None:
    first, second = runs.create("first", 0), runs.create("second", 0)
    inside.fill(runs, first, [None, "server"])
    inside.fill(runs, second, [None, None])
    runs.delete(first)
    assert runs.find("first") is None
    assert {table: inside.count(table) for table in ("trials", "outcomes", "asks", "waves")} == {
        "trials": 2,
        "outcomes": 2,
        "asks": 2,
        "waves": 1,
    }
    assert runs.last_number(second) == (second.span[0] + 2, second.span[0] + 1)


def test_a_run_at_work_is_not_deleted(runs: Runs) -> None:
    record = runs.create("r", 0)
    lock = runs.lock(record)
    with pytest.raises(RunBusy, match="cancel it first"):
        runs.delete(record)
    lock.release()
    runs.delete(record)


def test_a_deleted_run_leaves_no_rows_to_the_next(runs: Runs, inside: Inside) -> None:
    first = runs.create("first", 0)
    inside.fill(runs, first, [None])
    runs.delete(first)
    assert runs.last_number(runs.create("second", 0))[0] & 0xFFFFFFFF == 0


def test_missing_trials_get_a_new_attempt(runs: Runs, inside: Inside) -> None:
    record = runs.create("r", 0)
    inside.fill(runs, record, [None, "server", None, "filtered"])
    record = runs.get("r")
    assert runs.retry_missing(record) == 2
    assert rows(inside.place, "SELECT attempt FROM trials ORDER BY id") == [(0,), (1,), (0,), (1,)]
    assert rows(inside.place, "SELECT count(*) FROM asks WHERE fault IS NOT NULL") == [(0,)]
    assert (inside.count("asks"), inside.count("outcomes")) == (4, 2)
    counters = runs.get("r").counters
    assert (counters.planned, counters.usable, counters.missing) == (4, 2, 0)
    assert runs.retry_missing(runs.get("r")) == 0


def test_numbers_of_runs_do_not_overlap(runs: Runs) -> None:
    first, second = runs.create("first", 0), runs.create("second", 0)
    assert first.span[1] < second.span[0]
    assert runs.last_number(first) == (first.span[0], first.span[0])


def test_a_fork_remembers_its_parent_and_cut(runs: Runs) -> None:
    parent = runs.create("parent", 9, driver="m:d", settings='{"a":1}', options={"window": 2})
    fork = runs.create_fork(parent, "fork", '{"a":2}', "3")
    assert (fork.parent, fork.cut, fork.seed, fork.driver) == (parent.id, "3", 9, "m:d")
    assert (fork.settings, fork.options, fork.status) == ('{"a":2}', {"window": 2}, "pending")
    with pytest.raises(RunError, match="give the fork another name"):
        runs.create_fork(parent, "parent", None, None)
