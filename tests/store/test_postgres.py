"""What only a store on a server has: leases, connections that break, servers that are restarted."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import psycopg
import pytest
import sqlalchemy as sa

from groundswell import Engine, Request, RunOptions, Trial, program
from groundswell.compose import OneWay
from groundswell.engine.ports import LoopClock
from groundswell.engine.records import AskId
from groundswell.engine.reuse import Reuse
from groundswell.errors import (
    LeaseLost,
    RunBusy,
    SettingsError,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
    StoreTooNew,
)
from groundswell.program.request import Chat, Reply, Usage, encode_settlement
from groundswell.store.check import check_server
from groundswell.store.journal import Store
from groundswell.store.leases import NAME
from groundswell.store.local_postgres import LocalServer, Status
from groundswell.store.migrations import upgrade
from groundswell.store.names import shown
from groundswell.store.open import exists, open_database
from groundswell.store.postgres import PostgresDatabase, _Rows
from groundswell.store.process import Process, this_process
from groundswell.store.runs import Runs
from groundswell.store.schema import REVISION
from groundswell.transports.scripted import Scripted
from tests.patience import PATIENCE
from tests.store.cutting import Cutter, When
from tests.stores import new_database, rows, server, server_of_its_own

TRIALS = 40


@pytest.fixture
def url() -> str:
    return new_database()


@contextmanager
def opened(url: str, **options: Any) -> Iterator[Store]:
    store = Store(PostgresDatabase(url, **options))
    try:
        yield store
    finally:
        store.close_reading()


@program("tests/postgres/twice")
async def twice(trial: Trial, number: int) -> str:
    first = await trial.ask("m", f"first {number}")
    second = await trial.ask("m", f"second {number} after {first.text}")
    return second.text


class Model:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> str:
        assert isinstance(request, Chat)
        text = str(request.messages[0].content)
        self.asked[text] += 1
        return f"<{text}>"


async def session(store: Store, model: Model, disturb: Any = None) -> list[str | None]:
    """A run; `disturb` is called with the number of each trial that has ended."""
    found = []
    async with Engine(store, OneWay(Scripted(model), 4), LoopClock()) as engine:
        run = engine.run("r", options=RunOptions(window=8))
        async for outcome in run.map(twice, range(TRIALS)):
            found.append(outcome.result)
            if disturb is not None:
                disturb(len(found))
    return found


EXPECTED = [f"<second {number} after <first {number}>>" for number in range(TRIALS)]


def check(store: str, model: Model, found: list[str | None]) -> None:
    """Everything is there once, and nothing was asked for twice."""
    assert found == EXPECTED
    assert set(model.asked.values()) == {1}
    asks = rows(store, "SELECT trial, path FROM asks")
    assert len(asks) == len(set(asks)) == 2 * TRIALS
    assert rows(store, "SELECT status FROM runs") == [("completed",)]
    assert rows(store, "SELECT count(*) FROM leases") == rows(store, "SELECT count(*) FROM holders") == [(0,)]


@pytest.mark.parametrize("when", ["before", "after", "late", "stale"])
def test_a_commit_whose_answer_is_lost_is_made_once(url: str, when: When) -> None:
    with TemporaryDirectory() as folder:
        cutter = Cutter(Path(folder), url)
        model = Model()
        store = Store(PostgresDatabase(cutter.url))
        for number in range(0, TRIALS, 9):  # more than are open at a time, so that these are in different commits
            cutter.cut(when, b"after <first %d>" % number)
        found = asyncio.run(session(store, model))
        cutter.close()
        time.sleep(0.2 if when == "stale" else 0.0)  # what arrives now must change nothing
    assert cutter.cuts == 5
    check(url, model, found)


@pytest.mark.parametrize("when", ["before", "after", "late"])
def test_a_change_of_a_run_whose_answer_is_lost_is_made_once(url: str, when: When) -> None:
    with TemporaryDirectory() as folder:
        cutter = Cutter(Path(folder), url)
        with opened(cutter.url) as store:
            for number in range(3):
                cutter.cut(when)
                record = store.runs.create(f"run {number}", number)
                cutter.cut(when)
                store.runs.change(record, status="completed")
                cutter.cut(when)
                store.documents.put("kind", f"{number}", "{}")
        cutter.close()
    assert cutter.cuts == 9
    assert rows(url, "SELECT name, status FROM runs ORDER BY id") == [(f"run {n}", "completed") for n in range(3)]
    assert rows(url, "SELECT id FROM documents ORDER BY number") == [("0",), ("1",), ("2",)]


@pytest.mark.parametrize("first", ["before", "after", "late"])
@pytest.mark.parametrize("then", ["before", "after"])
def test_the_question_whether_a_commit_was_made_may_be_lost_too(url: str, first: When, then: When) -> None:
    with TemporaryDirectory() as folder:
        cutter = Cutter(Path(folder), url)
        for text in (b"after <first 3>", b"after <first 17>", b"after <first 30>"):
            cutter.cut(first, text)
            cutter.cut(then, b"epoch = epoch + 1")
            cutter.cut(then, b"epoch = epoch + 1")
        model = Model()
        found = asyncio.run(session(Store(PostgresDatabase(cutter.url)), model))
        assert cutter.left == 0
        with opened(cutter.url) as store:
            cutter.cut(first)
            cutter.cut(then, b"excluded.token")
            cutter.cut(then, b"excluded.token")
            store.runs.create("other", 0)
        assert cutter.left == 0
        cutter.close()
    assert rows(url, "SELECT name FROM runs ORDER BY id") == [("r",), ("other",)]
    rows(url, "DELETE FROM runs WHERE name = 'other'")
    check(url, model, found)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_whose_first_lock_is_cut_off_has_it_once(url: str, when: When) -> None:
    with TemporaryDirectory() as folder:
        cutter = Cutter(Path(folder), url)
        with opened(cutter.url) as store:
            record = store.runs.create("r", 0)
            cutter.cut(when, b"INSERT INTO holders")
            cutter.cut(when)
            store.runs.lock(record)
            assert cutter.left == 0
            assert len(rows(url, "SELECT * FROM holders")) == len(rows(url, "SELECT * FROM leases")) == 1
        cutter.close()
    assert rows(url, "SELECT * FROM holders") == []


@pytest.fixture
def own_server() -> Iterator[LocalServer]:
    with server_of_its_own() as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "restarted"])
def test_a_run_waits_for_a_server_that_is_killed_or_restarted(own_server: LocalServer, how: str) -> None:
    model = Model()
    restarts: list[threading.Thread] = []

    def restart() -> None:
        if how == "killed":
            os.kill(own_server.pid, signal.SIGKILL)
        else:
            own_server.down()
        time.sleep(0.3)
        own_server.up()

    def disturb(ended: int) -> None:
        if ended in (5, 15, 25):
            for each in restarts:
                each.join()
            restarts.append(threading.Thread(target=restart))
            restarts[-1].start()
            if ended == 15:
                restarts[-1].join()
        elif ended == TRIALS:  # else the server may be away when this process leaves it
            restarts[-1].join()

    found = asyncio.run(session(Store(own_server.url), model, disturb))
    for each in restarts:
        each.join()
    check(own_server.url, model, found)


@pytest.mark.slow
def test_a_server_that_does_not_come_back_ends_the_run(own_server: LocalServer) -> None:
    async def main() -> None:
        store = Store(PostgresDatabase(own_server.url, patience=0.5, lease=0.5))
        await session(store, Model(), lambda ended: own_server.down() if ended == 5 else None)

    with pytest.raises(StoreError, match="cannot be reached"):
        asyncio.run(main())
    with psycopg.connect(own_server.up()) as connection:
        connection.execute("UPDATE holders SET process = replace(process, '/', '//'), expires_at = beat_at + 2")
    with opened(own_server.url) as store:
        record = store.runs.get("r")
        assert store.runs.is_held(record)  # although its lease ended while the server was away
        until = time.monotonic() + PATIENCE
        while store.runs.is_held(record):
            assert time.monotonic() < until
            time.sleep(0.05)
    model = Model()
    assert asyncio.run(session(Store(own_server.url), model)) == EXPECTED
    assert model.asked.total() < 2 * TRIALS


SLOWLY = """
import asyncio, sys
from groundswell import Engine, RunOptions
from groundswell.compose import OneWay
from groundswell.engine.ports import LoopClock
from groundswell.store.journal import Store
from groundswell.store.postgres import PostgresDatabase
from groundswell.transports.scripted import Scripted
from tests.store.test_postgres import Model, TRIALS, twice

async def slowly(request):
    await asyncio.sleep(0.05)
    return Model()(request)

async def main():
    store = Store(PostgresDatabase(sys.argv[1], lease=1.0))
    async with Engine(store, OneWay(Scripted(slowly), 1), LoopClock()) as engine:
        async for outcome in engine.run("r", options=RunOptions(window=8)).map(twice, range(TRIALS)):
            print("ended", flush=True)

asyncio.run(main())
"""


@contextmanager
def slow_run(url: str) -> Iterator[subprocess.Popen[str]]:
    """A process with a run, of which the first trial has ended."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOWLY, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ended\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_process_that_was_paused_beyond_its_lease_writes_nothing_more(url: str) -> None:
    """Another one takes its run over, and finishes it; then the first one goes on, and must fail."""
    with slow_run(url) as process:
        process.send_signal(signal.SIGSTOP)
        with opened(url) as store:
            with pytest.raises(RunBusy, match=rf"is open in process {process.pid}: .*its lease runs out in \d+ sec"):
                store.runs.lock(store.runs.get("r"))
            until = time.monotonic() + PATIENCE
            while store.runs.is_held(store.runs.get("r")):
                assert time.monotonic() < until
                time.sleep(0.05)
            before = dict(rows(url, "SELECT concat(trial, ' ', path), settlement FROM asks"))
        model = Model()
        assert asyncio.run(session(Store(url), model)) == EXPECTED
        after = rows(url, "SELECT id, trial, path, settlement, checksum FROM asks ORDER BY id")
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert "LeaseLost: this process was paused or cut off for more than 1 seconds" in said
    assert rows(url, "SELECT id, trial, path, settlement, checksum FROM asks ORDER BY id") == after
    assert len(after) == 2 * TRIALS
    assert before.items() <= {f"{trial} {path}": text for _, trial, path, text, _ in after}.items()
    assert len(before) + model.asked.total() == 2 * TRIALS
    assert rows(url, "SELECT status, error FROM runs") == [("completed", None)]


@pytest.mark.slow
def test_a_killed_process_is_replaced_at_once(url: str) -> None:
    with slow_run(url) as process:
        process.kill()
        process.wait()
        with opened(url) as store:
            record = store.runs.get("r")
            assert store.runs.state(record) == "interrupted"
            store.runs.lock(record).release()
        model = Model()
        check_asked = len(rows(url, "SELECT id FROM asks"))
        assert asyncio.run(session(Store(url), model)) == EXPECTED
        assert check_asked + model.asked.total() == 2 * TRIALS


def elsewhere(url: str, holder: str, later: float = 0.0) -> None:
    """Make a holder a process of another machine, whose lease ends later."""
    process = msgspec.json.encode(Process(1, "2", "far", "away")).decode()
    rows(url, "UPDATE holders SET process = ?, expires_at = expires_at + ? WHERE id = ?", process, later, holder)


def test_a_process_of_another_machine_keeps_its_run_until_its_lease_ends(url: str) -> None:
    with opened(url) as first, opened(url) as second:
        record = first.runs.create("r", 0)
        first.runs.lock(record)
        assert isinstance(first.database, PostgresDatabase)
        holder = first.database.holder.id
        elsewhere(url, holder)
        with pytest.raises(RunBusy, match=r"open in process 1 on far: .*runs out in \d+ seconds"):
            second.runs.lock(record)
        assert second.runs.is_held(record)
        elsewhere(url, holder, -100.0)
        assert not second.runs.is_held(record)
        second.runs.lock(record)
        assert second.runs.is_held(record)
        with pytest.raises(LeaseLost):
            first.runs.change(record, status="failed")
        with pytest.raises(LeaseLost):
            first.runs.lock(first.runs.create("other", 0))
        assert second.runs.get("r").status == "pending"


def test_a_lost_process_changes_nothing_of_runs_that_it_had(url: str) -> None:
    with opened(url) as first, opened(url) as second:
        record = first.runs.create("r", 0)
        lock = first.runs.lock(record)
        assert isinstance(first.database, PostgresDatabase)
        elsewhere(url, first.database.holder.id, -100.0)
        second.runs.lock(record)
        lock.release()
        for change in (
            lambda: first.runs.change(record, status="failed"),
            lambda: first.runs.forget_kept(record),
            lambda: first.runs.retry_missing(record),
            lambda: first.documents.put("kept", f"{record.id}/x", "1", run=record.number),
        ):
            with pytest.raises(LeaseLost):
                change()
        assert second.runs.get("r").status == "pending"
        assert second.runs.is_held(record)


def test_a_run_whose_release_failed_can_be_locked_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(url) as store:
        record = store.runs.create("r", 0)
        lock = store.runs.lock(record)
        with monkeypatch.context() as patch:

            def refused(run: int | None = None) -> Any:
                raise StoreError("not now")

            patch.setattr(store.database, "writing", refused)
            lock.release()
        assert store.runs.is_held(record)
        store.runs.lock(record).release()
        assert not store.runs.is_held(record)


def test_a_process_that_is_paused_in_the_middle_of_a_commit_does_not_block_others(url: str) -> None:
    """It has sent half of a commit, which keeps rows of its run locked: they are freed when its lease has ended."""
    with opened(url) as store, psycopg.connect(url, autocommit=True) as stuck:
        record = store.runs.create("r", 0)
        stuck.execute("INSERT INTO holders VALUES ('paused', 0, 0, 0, 1, '{}')")
        stuck.execute(NAME, ("paused",))
        with suppress(psycopg.OperationalError), stuck.pipeline():  # the server waits for more: it is not idle
            stuck.execute("BEGIN")
            stuck.execute("UPDATE runs SET counters = counters WHERE id = %s", (record.number,))
            stuck.pgconn.send_flush_request()
            stuck.pgconn.flush()
            time.sleep(0.2)
            store.runs.request_delete(record)
            assert store.runs.get("r").deleting
        assert stuck.broken


def test_a_run_of_another_user_can_be_taken_over(url: str) -> None:
    """A user may not end the connections of others, and nothing fails because of that."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE ROLE other LOGIN")
        owner.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO other")
        owner.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO other")
        with opened(f"postgresql://other@{url.partition('@')[2]}") as store:
            record = store.runs.create("r", 0)
            process = msgspec.json.encode(Process(1, "2", "far", "away")).decode()
            owner.execute("INSERT INTO holders VALUES ('paused', 0, 0, 1, 1, %s)", (process,))
            owner.execute("INSERT INTO leases VALUES (%s, 'paused', 0)", (record.number,))
            owner.execute(NAME, ("paused",))
            store.runs.lock(record).release()


@pytest.mark.slow
def test_commits_of_the_same_cached_replies_do_not_end_a_run(url: str) -> None:
    """Two processes store the same keys in opposite orders."""
    keys = [number.to_bytes(16) for number in range(200)]

    async def work(name: str, order: list[bytes]) -> None:
        store = Store(url)
        journal = store.journal(store.runs.create(name, 0), lambda error: None)
        for at in range(0, len(order), 20):
            for key in order[at : at + 20]:
                journal.add_settlement(AskId(1, "0"), bytes(16), None, Reply("x"), lambda: None, cache_key=key)
            await journal.flush()
        await store.close()

    threads = [
        threading.Thread(target=lambda name=name, order=order: asyncio.run(work(name, order)))
        for name, order in (("a", keys), ("b", keys[::-1]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(url, "SELECT count(*) FROM asks") == [(400,)]
    assert rows(url, "SELECT count(*) FROM cache") == [(200,)]


def test_replies_and_documents_with_a_nul_character_are_found(url: str) -> None:
    text = msgspec.json.encode({"name": "a\0b", "kind": "x", "odd": "\\u0000"}).decode()
    with opened(url) as store:
        store.documents.add(("kind", "a", text))
        assert [each.body for each in store.documents.list("kind", having={"kind": "x"})] == [text]
        assert [each.id for each in store.documents.list("kind", having={"odd": "\\u0000"})] == ["a"]
        settlement = encode_settlement(Reply("a\0b", Usage(3, 1))).decode()
        rows(url, "INSERT INTO cache VALUES (?, ?, 1.0, NULL)", b"k", settlement)
        assert store.cache.kept().input_tokens == 3
        assert store.runs.search("a\0b", limit=5) == ([], 0)


def test_a_holder_that_nobody_replaced_goes_on_after_its_lease(url: str) -> None:
    with opened(url) as store:
        record = store.runs.create("r", 0)
        lock = store.runs.lock(record)
        rows(url, "UPDATE holders SET expires_at = 0")
        store.runs.change(record, status="running")
        lock.release()
        assert not store.runs.is_held(record)


@pytest.mark.slow
def test_a_heartbeat_keeps_a_lease(url: str) -> None:
    with opened(url, lease=0.6) as first, opened(url) as second:
        record = first.runs.create("r", 0)
        first.runs.lock(record)
        began = [row[0] for row in rows(url, "SELECT beat_at FROM holders")]
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert second.runs.is_held(record)
            time.sleep(0.1)
        assert rows(url, "SELECT beat_at FROM holders")[0][0] > began[0] + 0.9


def test_a_run_is_locked_once_in_a_process_too(url: str) -> None:
    with opened(url) as store:
        record = store.runs.create("r", 0)
        lock = store.runs.lock(record)
        with pytest.raises(RunBusy, match=f"open in process {os.getpid()}"):
            store.runs.lock(record)
        lock.release()
        store.runs.lock(record).release()


def test_processes_are_told_apart() -> None:
    mine = this_process()
    assert not mine.has_ended()
    assert Process(mine.pid, "an earlier start", mine.host, mine.machine).has_ended()
    assert not Process(mine.pid, "an earlier start", mine.host, "elsewhere").has_ended()
    assert Process(2**22 + 1, "1", mine.host, mine.machine).has_ended()


def test_replies_of_one_process_are_found_by_another(url: str) -> None:
    model = Model()

    async def ask(name: str) -> list[str | None]:
        async with Engine(Store(url), OneWay(Scripted(model, cached=True), 4), LoopClock()) as engine:
            return [outcome.result async for outcome in engine.run(name).map(twice, range(5))]

    first, second = asyncio.run(ask("first")), asyncio.run(ask("second"))
    assert first == second
    assert set(model.asked.values()) == {1}
    with opened(url) as store:
        assert store.cache.reused() == 10


def test_an_error_while_a_cached_reply_is_used_ends_the_run(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ArithmeticError("broken")

    monkeypatch.setattr(Reuse, "_use", broken)

    async def main() -> None:
        async with Engine(Store(url), OneWay(Scripted(Model(), cached=True), 4), LoopClock()) as engine:
            await engine.run("r").submit(twice, 1)

    with pytest.raises(ArithmeticError, match="broken"):
        asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_a_check_upgrades_nothing(url: str) -> None:
    rows(url, "UPDATE alembic_version SET version_num = '0008'")
    found = check_server(url)
    assert (found.revision, found.problems) == ("0008", [])
    assert found.notes == [f"it has schema 0008: the next command that uses it upgrades it to {REVISION}"]
    assert rows(url, "SELECT version_num FROM alembic_version") == [("0008",)]
    rows(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreTooNew, match="only supports"):
        check_server(url)


def columns_of(url: str) -> list[Any]:
    return rows(
        url,
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = 'public' ORDER BY table_name, column_name",
    )


def test_a_new_store_is_what_the_migrations_make(url: str) -> None:
    migrated = new_database()
    with psycopg.connect(migrated, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(migrated))
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    assert columns_of(migrated) == columns_of(url)
    assert rows(migrated, "SELECT version_num FROM alembic_version") == [(REVISION,)]
    indexes = "SELECT tablename, regexp_replace(indexdef, '(cache_pkey)1', '\\1') FROM pg_indexes ORDER BY 1, 2"
    assert rows(migrated, indexes) == rows(url, indexes)


def test_a_database_of_something_else_is_refused_and_left_alone(url: str) -> None:
    for statement in ("DROP TABLE asks", "CREATE TABLE photos (id integer)"):
        rows(url, statement)
    with pytest.raises(StoreCorrupt, match="database of another program"):
        open_database(url)
    assert rows(url, "SELECT * FROM photos") == []


def test_a_newer_store_is_refused(url: str) -> None:
    rows(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreTooNew, match="written by a newer version"):
        open_database(url)


@pytest.mark.slow
def test_many_may_create_a_store_at_once() -> None:
    url = new_database()
    rows(url, "DROP SCHEMA public CASCADE")
    rows(url, "CREATE SCHEMA public")
    assert not exists(url)
    problems: list[Exception] = []

    def create() -> None:
        try:
            open_database(url).close()
        except Exception as error:  # noqa: BLE001  any
            problems.append(error)

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert exists(url)


@pytest.mark.parametrize(
    ("harm", "kind", "words"),
    [
        (lambda url: url.replace("@/t", "@/nowhere_"), StoreError, "does not exist.* Create it"),
        (lambda url: "postgresql://u:geheim@127.0.0.1:1/x", StoreError, "127.0.0.1:1/x cannot be reached"),
        (lambda url: "postgresql://u:geheim@127.0.0.1:port/x", StoreError, 'u@127.0.0.1:port/x: .*invalid .*"port"'),
        (
            lambda url: "postgresql://u:geheim@127.0.0.1/x?no=1",
            SettingsError,
            "--store postgresql://u@.*is not a valid URL",
        ),
        (lambda url: f"{url}&options=-c%20default_transaction_read_only%3Don", StoreReadOnly, "cannot be written"),
    ],
    ids=["no database", "no server", "no port", "no option", "read-only"],
)
def test_errors_say_what_to_do_and_no_password(url: str, harm: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as raised, closing(open_database(harm(url))) as database:
        Runs(database).create("r", 0)
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("postgresql://u:p@h:1/d?sslmode=require", "postgresql://u@h:1/d?sslmode=require"),
        ("postgresql://u:p/q@h/d", "postgresql://..."),
        ("postgresql://u:p?q@h/d", "postgresql://u@h/d"),
        ("postgresql://u:50%off@h/d", "postgresql://u@h/d"),
        ("postgresql://u:p@[::1]x/d", "postgresql://u@[::1]x/d"),
        ("postgresql://h/d?sslpassword=p&password=a&pass%77ord=b&x=1", "postgresql://h/d?x=1"),
        ("postgresql://u@h/d?password=p&x=1", "postgresql://u@h/d?x=1"),
        ("postgresql://h/d?x=1&password=p", "postgresql://h/d?x=1"),
        ("postgresql:///d", "postgresql:///d"),
        ("a/path.db", "a/path.db"),
    ],
)
def test_a_store_is_shown_without_its_password(given: str, told: str) -> None:
    assert shown(given) == told


def test_text_that_postgres_cannot_store_is_an_error(url: str) -> None:
    with opened(url) as store:
        assert store.runs.find("a\0b") is None
        with pytest.raises(SettingsError, match="Unicode"):
            store.runs.create("a\0b", 0)
        with pytest.raises(StoreError, match="NUL"):
            store.documents.put("kind", "a\0b", "{}")


@pytest.mark.parametrize("text", ["", "NULL", '"', "\\", "{}", "a,b", "x\ny\t\r", "é\U0001f600", "'", "\\x41", "null"])
def test_any_text_and_bytes_are_stored_as_they_are(url: str, text: str) -> None:
    with opened(url) as store, psycopg.connect(url, autocommit=True) as connection:
        del store
        from groundswell.store.journal import INSERTS

        written = _Rows(INSERTS["asks"])
        row = [1 << 40, text, text.encode() + bytes(range(256)), None, None, text, 2**32 - 1, 0.1]
        written.write(connection.execute, row * 3)
        found = connection.execute(
            "SELECT trial, path, fingerprint, wave, fault, settlement, checksum, seconds FROM asks"
        )
        assert found.fetchall() == [tuple(row)] * 3


def test_the_last_of_rows_with_the_same_key_wins(url: str) -> None:
    from groundswell.store.journal import INSERTS

    with opened(url), psycopg.connect(url, autocommit=True) as connection:
        trials = _Rows(INSERTS["trials"])
        trials.write(connection.execute, [1, "a", "p", "{}", 0, 7, 2, "b", "p", "{}", 0, 7, 1, "c", "p", "{}", 1, 7])
        connection.execute("UPDATE trials SET abandoned = TRUE")
        trials.write(connection.execute, [2, "d", "p", "{}", 0, 7])
        assert connection.execute("SELECT id, key, abandoned FROM trials ORDER BY id").fetchall() == [
            (1, "c", True),
            (2, "d", False),
        ]


@pytest.mark.slow
def test_a_server_is_set_up_started_and_stopped(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="gs-") as folder:
        Path(folder).chmod(0o755)
        local = LocalServer(Path(folder) / "pg", fsync="off")
        assert local.status == Status(None, None)
        assert local.down() is False
        url = local.up()
        assert local.status == Status(local.pid, server().status.version)
        assert local.up() == url
        open_database(url).close()
        assert local.down() is True
        assert local.status.pid is None
        with pytest.raises(StoreError, match="cannot be reached"):
            open_database(url)
        local.up()
        assert exists(url)
        local.down()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root uses another account")
def test_a_folder_that_the_server_cannot_reach_is_named() -> None:
    with TemporaryDirectory(prefix="gs-") as folder:
        with pytest.raises(StoreError, match=rf"cannot enter {folder}: give a --folder that it can reach"):
            LocalServer(Path(folder) / "pg").up()
        assert os.listdir(folder) == []


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(SettingsError, match="is not empty"):
        LocalServer(tmp_path).up()
