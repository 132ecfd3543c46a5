"""The work that a head gives to workers: shards, trials, counters and budgets in the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors

from groundswell.engine.ports import Work
from groundswell.engine.records import Amounts, Counters, Possible, RunRecord
from groundswell.errors import LeaseLost, RunBusy, StoreError
from groundswell.program.request import Reply, Usage
from groundswell.store import work as store_work
from groundswell.store.copy import copy_store
from groundswell.store.database import ConnectionLost
from groundswell.store.journal import Store
from groundswell.store.leases import Holder
from groundswell.store.open import open_database
from groundswell.store.postgres import postgres_error
from groundswell.store.runs import Runs
from groundswell.store.work import part_of_budget
from tests.stores import add_rows, new_database, rows


class Office:
    """A store with one run, some processes that use it, and trials that are open."""

    def __init__(self, stack: ExitStack) -> None:
        self.url = new_database()
        self._stack = stack
        self.head = self.process()
        self.record = self.head.runs.create("run", 1, driver="a/driver", settings="{}")
        self.lock = self.head.runs.lock(self.record)
        self.head.runs.change(self.record, status="running")

    def process(self) -> Store:
        """One more process."""
        store = Store(self.url)
        self._stack.callback(store.close_reading)
        return store

    def open_trials(self, *numbers: int, in_work: bool = True) -> None:
        """Add trials, as a head does."""
        ids = [self.record.span[0] + number for number in numbers]
        add_rows(
            self.url, "trials", "id, key, program, spec, attempt", *[(id_, f"k{id_}", "p@1", "1", 0) for id_ in ids]
        )
        if in_work:
            add_rows(self.url, "work", "trial, again, done", *[(id_, False, False) for id_ in ids])

    def numbers(self, tasks: object) -> list[int]:
        """The numbers of trials in the run."""
        assert isinstance(tasks, list | tuple)
        return [task.row.id - self.record.span[0] for task in tasks]

    def end(self, store: Store) -> None:
        """Make a process seem to have ended long ago."""
        assert store.work is not None
        rows(self.url, "UPDATE holders SET expires_at = 0, beat_at = 0 WHERE id = ?", store.work.holder)


@pytest.fixture
def office() -> Iterator[Office]:
    with ExitStack() as stack:
        yield Office(stack)


def work(store: Store) -> Work:
    assert store.work is not None
    return store.work


def shard_of(store: Store, record: RunRecord, *, left: bool = False) -> int:
    taken = work(store).take_shard(record, left=left)
    assert taken is not None
    return taken[0]


def test_workers_take_their_fair_share_and_never_the_same_trials(office: Office) -> None:
    one, other = office.process(), office.process()
    office.open_trials(*range(1, 11))
    first, second = shard_of(one, office.record), shard_of(other, office.record)
    assert office.numbers(work(one).take(office.record, first, 100, 0)) == [1, 2, 3, 4, 5]
    assert office.numbers(work(one).take(office.record, first, 100, 0)) == []
    assert office.numbers(work(other).take(office.record, second, 3, 0)) == [6, 7, 8]
    assert office.numbers(work(other).take(office.record, second, 3, 0)) == [9, 10]


def test_a_worker_leaves_trials_for_those_that_are_about_to_start(office: Office) -> None:
    one = office.process()
    office.open_trials(*range(1, 9))
    assert office.numbers(work(one).take(office.record, shard_of(one, office.record), 100, 4)) == [1, 2]


def test_many_workers_at_once_take_each_trial_once(office: Office) -> None:
    office.open_trials(*range(1, 101))
    workers = [office.process() for _ in range(4)]
    shards = [shard_of(each, office.record) for each in workers]
    taken: list[int] = []

    def take(store: Store, shard: int) -> None:
        while tasks := work(store).take(office.record, shard, 3, 0):
            taken.extend(office.numbers(tasks))

    threads = [threading.Thread(target=take, args=pair) for pair in zip(workers, shards, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 101))


def test_the_shard_of_a_process_that_has_ended_is_taken_over_with_its_counters(office: Office) -> None:
    one, other = office.process(), office.process()
    office.open_trials(1, 2)
    shard = shard_of(one, office.record)
    work(one).take(office.record, shard, 1, 2)
    rows(
        office.url, "UPDATE shards SET counters = ?", msgspec.json.encode(Counters(sent=3, at_risk={"a m": 7})).decode()
    )
    assert work(other).take_shard(office.record, left=True) is None
    office.end(one)
    taken = work(other).take_shard(office.record, left=True)
    assert taken == (shard, Counters(sent=3, at_risk={"a m": 7}))
    with pytest.raises(LeaseLost):
        work(one).look(office.record, shard, 1)
    with pytest.raises(LeaseLost):
        work(one).grant(office.record, shard, Amounts(9, 9, 9.0), Amounts(), Amounts(1))
    assert work(one).take(office.record, shard, 1, 0) == ()
    assert office.numbers(work(other).tasks(work(other).look(office.record, shard, 1).trials)) == [1]


def test_a_shard_that_was_released_with_open_trials_is_taken_over(office: Office) -> None:
    one, other = office.process(), office.process()
    office.open_trials(1)
    shard = shard_of(one, office.record)
    work(one).take(office.record, shard, 1, 0)
    work(one).release(office.record, shard, counters=Counters(sent=2))
    assert work(other).take_shard(office.record, left=True) == (shard, Counters(sent=2))


def test_nothing_is_taken_of_a_run_that_was_stopped(office: Office) -> None:
    one, other = office.process(), office.process()
    office.open_trials(1, 2)
    shard = shard_of(one, office.record)
    work(one).take(office.record, shard, 1, 0)
    work(office.head).stop(office.record)
    assert work(one).look(office.record, shard, 1).stopped
    work(one).release(office.record, shard)
    assert work(other).take_shard(office.record, left=True) is None
    assert work(other).take_shard(office.record, left=False) is None


def test_commits_of_a_worker_whose_shard_was_taken_fail(office: Office) -> None:
    one, other = office.process(), office.process()
    office.open_trials(1)
    shard = shard_of(one, office.record)
    work(one).take(office.record, shard, 1, 0)
    rows(office.url, "UPDATE shards SET holder = ?", work(other).holder)
    failed: list[Exception] = []

    async def main() -> None:
        record = one.runs.get("run")
        record.counters = Counters(sent=1)
        journal = one.shard_journal(record, shard, failed.append)
        reply = Reply("hello", Usage(1, 1))
        journal.add_settlement((office.record.span[0] + 1, "0"), b"x", 1, reply, lambda: None)
        with pytest.raises(StoreError):
            await journal.flush()
        journal.close()
        assert one._writer is not None
        await one._writer.close()

    asyncio.run(main())
    assert isinstance(failed[0], LeaseLost)
    assert rows(office.url, "SELECT count(*) FROM asks") == [(0,)]


def test_outcomes_are_told_until_they_are_known(office: Office) -> None:
    office.open_trials(1, 2, 3)
    first = office.record.span[0] + 1
    add_rows(office.url, "outcomes", "trial, body, ended_at", (first, '"a"', 1.0))
    rows(office.url, "UPDATE work SET done = TRUE WHERE trial = ?", first)
    head = work(office.head)
    assert [row.outcome for row in head.ended(office.record, [])] == ['"a"']
    assert [row.outcome for row in head.ended(office.record, [])] == ['"a"']
    assert head.ended(office.record, [first]) == []
    assert rows(office.url, "SELECT count(*) FROM work") == [(2,)]


def test_the_space_of_deleted_rows_is_freed_during_a_run(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every look passes them, and a run becomes slower with every trial."""
    monkeypatch.setattr(store_work, "VACUUM_EVERY", 20)
    first = office.record.span[0]
    head = work(office.head)
    for begin in range(0, 60, 10):
        office.open_trials(*range(begin, begin + 10))
        rows(office.url, "UPDATE work SET done = TRUE")
        head.ended(office.record, [first + number for number in range(begin, begin + 10)])
    freed = "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'work'"
    assert rows(office.url, freed) == [(3,)]


@pytest.mark.parametrize("fails", ["SELECT 1 / 0", "SELECT pg_terminate_backend(pg_backend_pid())"])
def test_outcomes_are_told_also_if_space_cannot_be_freed(
    office: Office, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr(store_work, "VACUUM_EVERY", 1)
    monkeypatch.setattr(store_work, "VACUUM", fails)
    office.open_trials(1, 2)
    first = office.record.span[0] + 1
    rows(office.url, "UPDATE work SET done = TRUE")
    add_rows(office.url, "outcomes", "trial, body, ended_at", (first + 1, '"b"', 1.0))
    head = work(office.head)
    assert [row.outcome for row in head.ended(office.record, [first])] == ['"b"']
    assert [row.outcome for row in head.ended(office.record, [])] == ['"b"']


def test_a_look_passes_only_the_rows_that_it_is_for(office: Office) -> None:
    """With many workers there are many open trials of others."""
    one = office.process()
    shard = shard_of(one, office.record)
    first, last = office.record.span
    mine = "CASE WHEN mod(g, 100) = 0 THEN 1 WHEN mod(g, 3) > 0 THEN 2 END"
    rows(
        office.url,
        f"INSERT INTO work SELECT {first} + g, {mine}, FALSE, mod(g, 100) = 1 FROM generate_series(1, 20000) g",
    )
    rows(office.url, "ANALYZE work")
    named = {"run": office.record.number, "shard": shard, "holder": f"'{work(one).holder}'", "workers": 8, "most": 10}
    for query, index in (
        (store_work.TAKE % {**named, "first": first, "last": last}, "work_free"),
        (store_work.OPEN % (shard, first, last), "work_of_shards"),
        (store_work.ENDED % (first, last), "work_done"),
    ):
        plan = [line for (line,) in rows(office.url, f"EXPLAIN (ANALYZE) {query}")]
        assert index in "".join(plan)
        assert not [line for line in plan if "Seq Scan on work" in line and "never executed" not in line]
    assert work(one).runs() == [office.record.id]


def test_what_an_earlier_session_left_is_given_to_workers(office: Office) -> None:
    """As a shard that nobody holds, with what a kill of that session may have lost."""
    counters = Counters(planned=9, sent=5, at_risk={"a m": 4}, flying=1, counted={"a m": Possible(asks=2)})
    rows(office.url, "UPDATE runs SET counters = ?", msgspec.json.encode(counters).decode())
    office.open_trials(1, 2, in_work=False)
    open_ = work(office.head).begin(office.record)
    assert sorted(open_) == [office.record.span[0] + 1, office.record.span[0] + 2]
    assert office.head.runs.get("run", own=True).counters == Counters(planned=2, sent=5)
    other = office.process()
    taken = work(other).take_shard(office.record, left=True)
    assert taken is not None
    assert taken[1] == Counters(at_risk={"a m": 4}, flying=1, counted={"a m": Possible(asks=2)})
    assert all(task.again for task in work(other).tasks(work(other).look(office.record, taken[0], 1).trials))


def test_counters_of_workers_are_added_up_when_they_are_read_and_at_the_end(office: Office) -> None:
    one, other = office.process(), office.process()
    for store, counters in ((one, Counters(sent=2, usd=0.5)), (other, Counters(sent=3, at_risk={"a m": 2}))):
        work(store).release(office.record, shard_of(store, office.record), counters=counters)
    rows(office.url, "UPDATE runs SET counters = ?", '{"sent": 1, "usd": 0.25, "at_risk": {"a m": 1}}')
    total = Counters(sent=6, usd=0.75, at_risk={"a m": 3})
    assert office.head.runs.get("run").counters == total
    assert [record.counters for record in office.head.runs.list()] == [total]
    assert work(office.head).fold(office.record) == total
    assert office.head.runs.get("run", own=True).counters == total
    assert rows(office.url, "SELECT count(*) FROM shards") == [(0,)]


def test_open_trials_do_not_belong_to_a_run_whose_driver_has_returned(office: Office) -> None:
    office.open_trials(1, 2)
    add_rows(office.url, "outcomes", "trial, body", (office.record.span[0] + 1, "1"))
    rows(office.url, "UPDATE work SET done = TRUE WHERE trial = ?", office.record.span[0] + 1)
    assert work(office.head).fold(office.record, ended=True) == Counters(planned=1, usable=1)
    assert rows(office.url, "SELECT id - ? FROM trials WHERE abandoned", office.record.span[0]) == [(2,)]


def test_a_run_is_only_continued_alone_when_no_worker_has_it(office: Office) -> None:
    one = office.process()
    shard_of(one, office.record)
    with pytest.raises(RunBusy, match="has workers"):
        work(office.head).left_over(office.record)
    office.end(one)
    assert len(work(office.head).left_over(office.record)) == 1


def test_only_the_head_stops_workers_and_adds_up_their_counters(office: Office) -> None:
    """Another process that has taken the run over may have given out trials again."""
    office.end(office.head)
    other = office.process()
    other.runs.lock(office.record)
    for change in (work(office.head).stop, work(office.head).fold, work(office.head).begin):
        with pytest.raises(LeaseLost):
            change(office.record)


def test_a_budget_is_divided_and_what_is_not_needed_is_given_back(office: Office) -> None:
    one, other = office.process(), office.process()
    shards = shard_of(one, office.record), shard_of(other, office.record)
    limits, nothing, a_call = Amounts(100, -1, -1.0), Amounts(), Amounts(1)
    first = work(one).grant(office.record, shards[0], limits, nothing, a_call)
    assert (first.elsewhere.calls, first.refused) == (75, False)
    second = work(other).grant(office.record, shards[1], limits, nothing, Amounts(75))
    assert (second.elsewhere.calls, second.refused) == (25, False)
    third = work(one).grant(office.record, shards[0], limits, Amounts(25), a_call)
    assert (third.elsewhere.calls, third.refused) == (75, True)
    work(other).release(office.record, shards[1], counters=Counters(sent=10))
    assert not work(one).grant(office.record, shards[0], limits, Amounts(25), Amounts(65)).refused


amounts = st.builds(Amounts, st.integers(0, 30), st.integers(0, 300), st.floats(0, 3))


@given(
    st.builds(Amounts, st.integers(-1, 100), st.integers(-1, 1000), st.one_of(st.just(-1.0), st.floats(0, 10))),
    amounts,
    st.lists(st.tuples(st.integers(0, 3), amounts, st.booleans()), max_size=30),
)
def test_parts_of_a_budget_never_exceed_it(
    limits: Amounts, base: Amounts, turns: list[tuple[int, Amounts, bool]]
) -> None:
    """Workers take turns: each takes a part for what it needs next, and may then spend that."""
    used, granted = [Amounts()] * 4, [Amounts()] * 4
    for worker, needed, spends in turns:
        others = base
        for number in range(4):
            others += granted[number] if number != worker else Amounts()
        granted[worker], refused = part_of_budget(limits, others, used[worker], needed, 4)
        if spends and not refused:
            used[worker] += needed
        for limit, *parts, mine, has in zip(
            *map(msgspec.structs.astuple, (limits, base, *granted, used[worker], granted[worker])), strict=True
        ):
            if limit >= 0:
                assert mine <= has + 1e-9
                spent_before = parts[0] > limit
                assert spent_before or sum(parts) <= limit + 1e-6


def test_workers_leave_a_run_that_was_cancelled_while_it_had_no_head(office: Office) -> None:
    one = office.process()
    office.open_trials(1)
    shard = shard_of(one, office.record)
    office.lock.release()
    assert not office.head.runs.request_cancel(office.record)
    assert work(one).look(office.record, shard, 1).stopped
    assert work(one).runs() == []
    assert work(one).take_shard(office.record, left=False) is None


def test_a_shard_is_taken_over_with_the_last_commit_of_its_holder(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may be made while the holder is removed."""
    one, other = office.process(), office.process()
    office.open_trials(1)
    shard = shard_of(one, office.record)
    work(one).take(office.record, shard, 1, 0)
    office.end(one)

    def remove(self: Holder, connection: sa.Connection, holder: str) -> bool:
        connection.exec_driver_sql("UPDATE shards SET counters = '{\"sent\": 7}'")
        return True

    monkeypatch.setattr(Holder, "remove_ended", remove)
    assert work(other).take_shard(office.record, left=True) == (shard, Counters(sent=7))


def test_counters_of_workers_are_not_counted_twice_when_missing_trials_are_tried_again(office: Office) -> None:
    one = office.process()
    work(one).release(office.record, shard_of(one, office.record), counters=Counters(sent=5))
    office.head.runs.retry_missing(office.head.runs.get("run"))
    assert office.head.runs.get("run").counters.sent == 5


def test_shards_that_are_worked_on_are_left_when_others_are_added_up(office: Office) -> None:
    """As after a second Ctrl-C: they are stopped, and added up later."""
    one, other = office.process(), office.process()
    office.open_trials(1, 2)
    alive = shard_of(one, office.record)
    work(one).take(office.record, alive, 1, 0)
    work(other).release(office.record, shard_of(other, office.record), counters=Counters(sent=2))
    assert work(office.head).fold(office.record).sent == 2
    assert work(one).look(office.record, alive, 1).stopped
    work(one).release(office.record, alive, counters=Counters(sent=3))
    assert office.head.runs.get("run").counters.sent == 5
    work(office.head).fold(office.record)
    assert office.head.runs.get("run", own=True).counters.sent == 5


def test_a_deadlock_is_tried_again() -> None:
    assert isinstance(postgres_error(errors.DeadlockDetected("deadlock detected"), "store"), ConnectionLost)


def test_a_copy_has_what_workers_counted_whose_head_was_killed(office: Office, tmp_path: Path) -> None:
    one = office.process()
    rows(office.url, "UPDATE runs SET counters = ?", '{"sent": 1}')
    work(one).release(office.record, shard_of(one, office.record), counters=Counters(sent=4, at_risk={"a m": 2}))
    office.lock.release()
    with closing(open_database(office.url)) as source, closing(open_database(tmp_path / "copy.db")) as target:
        copy_store(source, target, ["run"])
        assert Runs(target).get("run").counters == Counters(sent=5, at_risk={"a m": 2})
