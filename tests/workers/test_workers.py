"""Runs whose trials are run by workers: what they find is what one process finds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell.compose import OneWay
from groundswell.engine.driver import trust_module
from groundswell.engine.engine import Engine
from groundswell.engine.options import Limits, RunOptions
from groundswell.engine.ports import LoopClock, Router
from groundswell.engine.records import Counters, RunRecord
from groundswell.engine.worker import Worker
from groundswell.errors import RunBusy, RunError, SettingsError
from groundswell.program.request import Reply, Usage
from groundswell.store.journal import Store
from groundswell.transports.scripted import Scripted
from tests.stores import new_database, rows
from tests.workers import experiment
from tests.workers.crew import PATIENT, TaskCrew, drive, frame, head, one_way, resume
from tests.workers.experiment import Wanted, answer


@pytest.fixture
def store() -> str:
    return new_database()


def record(store: str) -> RunRecord:
    held = Store(store)
    try:
        return held.runs.get("run")
    finally:
        held.close_reading()


def left_over(store: str) -> Any:
    return rows(store, "SELECT (SELECT count(*) FROM work), (SELECT count(*) FROM shards)")[0]


@pytest.mark.parametrize(
    "driver",
    [
        experiment.all_trials,
        pytest.param(experiment.adaptive, marks=pytest.mark.slow),
        pytest.param(experiment.some_trials, marks=pytest.mark.slow),
    ],
)
def test_workers_find_what_one_process_finds(driver: Any) -> None:
    alone, together = new_database(), new_database()
    expected = drive(alone, driver, None)
    found = drive(together, driver, 2)
    assert found.analysis == expected.analysis
    if driver is not experiment.some_trials:  # how far a map was read ahead before it was left depends on timing
        assert (found.status, found.trials) == (expected.status, expected.trials)
        assert frame(together) == frame(alone)
        assert found.asks.sent == expected.asks.sent
        assert found.cost.usd == pytest.approx(expected.cost.usd)
    assert left_over(together) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("driver", [experiment.all_trials, experiment.adaptive, experiment.some_trials])
def test_one_or_four_workers_find_it_too(driver: Any, workers: int) -> None:
    assert drive(new_database(), driver, workers).analysis == drive(new_database(), driver, None).analysis


@pytest.mark.slow
def test_all_workers_take_part(store: str) -> None:
    crew = TaskCrew(store, 3)

    async def main() -> None:
        async with head(store, 3, crew=crew) as engine:
            await engine.drive(experiment.all_trials, Wanted(90), name="run")

    asyncio.run(main())
    assert sum("shard" in said for said in crew.said) == 3


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (2, 2),
        pytest.param(None, 2, marks=pytest.mark.slow),
        pytest.param(2, None, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_was_stopped_is_continued_with_or_without_workers(
    store: str, first: int | None, then: int | None
) -> None:
    stopped = drive(store, experiment.stops, first)
    assert stopped.status == "interrupted"
    assert left_over(store) == (0, 0)
    ended = resume(store, then)
    assert ended.status == "partial"  # two trials are missing by design
    assert ended.trials.usable + ended.trials.missing == ended.trials.planned == 60
    assert ended.asks.sent == 58 * 3 + 2
    assert ended.asks.resent == 0


def test_a_cancelled_run_tells_its_workers_to_stop(store: str) -> None:
    async def main() -> Any:
        async with head(store, 2) as engine:
            task = asyncio.ensure_future(engine.drive(experiment.all_trials, Wanted(5000), name="run"))
            while not engine.runs or engine.runs[0].counters.settled < 20:
                await asyncio.sleep(0.01)
            engine.store.runs.request_cancel(engine.store.runs.get("run"))  # type: ignore[attr-defined]
            return await task

    summary = asyncio.run(main())
    assert summary.status == "stopped"
    found = record(store)
    assert 20 <= found.counters.settled < found.counters.planned
    assert found.counters.flying == 0
    assert left_over(store) == (0, 0)


@pytest.mark.slow
def test_missing_trials_are_tried_again_by_workers(store: str) -> None:
    assert drive(store, experiment.all_trials, 2).trials.missing == 2
    again = resume(store, 2, retry_missing=True)
    assert (again.trials.missing, again.trials.planned) == (2, 60)
    assert again.asks.sent == 58 * 3 + 2 + 2


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(Limits(calls=70), id="calls", marks=pytest.mark.slow),
        pytest.param(Limits(usd=0.07), id="usd", marks=pytest.mark.slow),
        pytest.param(Limits(tokens=700), id="tokens", marks=pytest.mark.slow),
    ],
)
def test_a_budget_is_kept_by_all_workers_together(store: str, limits: Limits) -> None:
    options = RunOptions(retry=PATIENT.retry, limits=limits)
    summary = drive(store, experiment.all_trials, 3, options=options)
    assert summary.status == "partial"
    assert summary.error is not None
    assert "is used up" in summary.error
    used = record(store).counters.used
    spent, whole = {
        "calls": (used.calls, limits.calls),
        "usd": (used.usd, limits.usd),
        "tokens": (used.tokens, limits.tokens),
    }[next(name for name in ("calls", "usd", "tokens") if getattr(limits, name) is not None)]
    assert whole is not None
    assert 0.8 * whole <= spent <= whole + 1e-9
    rest = resume(store, 2, options=PATIENT)
    assert rest.trials.usable == 58


@pytest.mark.slow
def test_a_worker_that_cannot_go_on_leaves_its_trials_to_others(store: str) -> None:
    def route(number: int) -> Router:
        if number == 1:
            return Unreachable(Scripted(answer), 32)
        return one_way(number)

    async def main() -> Any:
        async with head(store, 2, crew=TaskCrew(store, 2, route)) as engine:
            return await engine.drive(experiment.all_trials, Wanted(60), name="run")

    assert asyncio.run(main()).trials.usable == 58


class Unreachable(OneWay):
    """A router without the key of an account."""

    def route(self, request: Any, via: Any = "live") -> Any:
        raise SettingsError("OPENAI_API_KEY is not set")


def test_the_run_fails_when_no_worker_can_go_on(store: str) -> None:
    with pytest.raises(SettingsError, match="this model is not set up here"):
        drive(store, experiment.broken_trials, 2)
    assert record(store).status == "failed"
    assert left_over(store) == (0, 0)


def test_a_worker_that_cannot_go_on_leaves_a_run_of_which_it_also_has_a_shard_without_trials(store: str) -> None:
    """The only trial goes to one worker. When that gives it up, the other takes it over, and cannot run it either."""
    with pytest.raises(SettingsError, match="this model is not set up here"):
        drive(store, experiment.broken_trials, 2, trials=1)
    assert record(store).status == "failed"
    assert left_over(store) == (0, 0)


@pytest.mark.parametrize("when", ["before it loads the driver", "after that"])
def test_a_worker_refuses_another_version_of_a_program(store: str, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """The head has stored the version of its own by then."""
    same = experiment.talk.source

    class Changed(TaskCrew):
        async def _work(self, run: str, number: int) -> None:
            experiment.talk.source = f"{same} changed"
            await super()._work(run, number)

    if when == "after that":  # as for a program in a module that the driver imports later
        monkeypatch.setattr("groundswell.engine.worker.refuse_changed", lambda *_: None)

    async def main() -> None:
        async with head(store, 1, crew=Changed(store, 1)) as engine:
            await engine.drive(experiment.all_trials, Wanted(5), name="run")

    try:
        with pytest.raises(RunError, match=r"has changed|is not the same here"):
            asyncio.run(main())
    finally:
        experiment.talk.source = same


def test_workers_need_postgresql(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="groundswell postgres up"):
        groundswell.open(tmp_path / "runs.db", workers=2)


def test_workers_get_no_script(store: str) -> None:
    with pytest.raises(SettingsError, match="cannot be given a script"):
        groundswell.open(store, workers=2, script=answer)


@pytest.mark.parametrize("via", ["batch", "auto"])
def test_batches_are_sent_by_one_process(store: str, via: Any) -> None:
    with pytest.raises(SettingsError, match="batches are sent by one process"):
        drive(store, experiment.all_trials, 2, options=RunOptions(via=via))


def test_workers_need_a_driver(store: str) -> None:
    async def main() -> None:
        async with head(store, 1) as engine:
            engine.run("run")

    with pytest.raises(SettingsError, match="workers need a driver"):
        asyncio.run(main())


@pytest.mark.slow
def test_replies_are_scored_again_by_one_process(store: str) -> None:
    drive(store, experiment.all_trials, None)
    with pytest.raises(SettingsError, match="scored again in one process"):
        resume(store, 2, accept_changes=True)


@pytest.mark.slow
def test_a_run_with_workers_is_not_continued_without_them(store: str) -> None:
    drive(store, experiment.stops, None)
    rows(store, "UPDATE runs SET status = 'running'")  # as if it had been killed
    held = Store(store)
    try:
        assert held.work is not None
        assert held.work.take_shard(held.runs.get("run"), left=False)
        with pytest.raises(RunBusy, match="has workers"):
            resume(store, None)
    finally:
        held.close_reading()
    assert resume(store, None).trials.usable == 58


@pytest.mark.slow
def test_a_run_with_batches_in_flight_is_not_continued_with_workers(store: str) -> None:
    drive(store, experiment.stops, None)
    (number,) = rows(store, "SELECT id FROM runs")[0]
    rows(
        store,
        "INSERT INTO waves (id, account, transport, size, asks, sent_at) VALUES (?, 'a', 'b', 0, '[]', 0)",
        (number << 32) + 1,
    )
    with pytest.raises(RunError, match="batches in flight"):
        resume(store, 2)


@pytest.mark.slow
def test_a_budget_is_not_used_up_by_what_others_hold_for_requests_in_flight(store: str) -> None:
    """Each request may use 32 tokens and uses 2, and replies take their time."""
    options = RunOptions(retry=PATIENT.retry, limits=Limits(tokens=160))

    async def slowly(request: Any) -> Reply:
        await asyncio.sleep(0.4)
        return Reply("yes", Usage(1, 1))

    async def main() -> Any:
        crew = TaskCrew(store, 3, lambda _: OneWay(Scripted(slowly), 32))
        async with head(store, 3, crew=crew) as engine:
            return await engine.drive(experiment.all_trials, Wanted(6), name="run", options=options)

    summary = asyncio.run(main())
    assert (summary.status, summary.asks.sent) == ("completed", 18)


def test_a_stop_that_comes_before_the_first_worker_is_not_lost(store: str) -> None:
    class Late(TaskCrew):
        async def _work(self, run: str, number: int) -> None:
            await asyncio.sleep(0.3)
            await super()._work(run, number)

    async def main() -> Any:
        async with head(store, 1, crew=Late(store, 1)) as engine:
            task = asyncio.ensure_future(engine.drive(experiment.all_trials, Wanted(2000), name="run"))
            while not engine.runs:
                await asyncio.sleep(0.01)
            engine.runs[0].stop("interrupted", "interrupted")
            return await task

    assert asyncio.run(main()).status == "interrupted"
    assert record(store).counters.sent < 100
    assert left_over(store) == (0, 0)


@pytest.mark.slow
def test_two_runs_of_one_engine_have_workers_of_their_own(store: str) -> None:
    async def main() -> Any:
        made = Engine(Store(store), one_way(-1), LoopClock(), options=PATIENT, crew=lambda: TaskCrew(store, 1))
        async with made as engine:
            long = asyncio.ensure_future(engine.drive(experiment.all_trials, Wanted(300), name="long"))
            short = await engine.drive(experiment.all_trials, Wanted(20), name="short")
            return short, await long

    short, long = asyncio.run(main())
    assert (short.trials.usable, long.trials.usable) == (19, 298)


@pytest.mark.slow
def test_a_worker_outlives_the_driver_module_that_cannot_be_loaded(store: str, tmp_path: Path) -> None:
    """It refuses that run, and goes on with others."""
    drive(store, experiment.stops, None)
    held = Store(store)
    held.runs.change(held.runs.get("run"), status="running", driver=f"{tmp_path}/study.py:main", location=None)
    held.close_reading()
    (tmp_path / "study.py").write_text("raise KeyError('a variable that is not set')")
    trust_module(str(tmp_path / "study.py"))
    (number,) = rows(store, "SELECT id FROM runs")[0]
    rows(store, "INSERT INTO work SELECT id, NULL, TRUE, FALSE FROM trials WHERE id >> 32 = ? LIMIT 1", number)
    said: list[str] = []

    async def main() -> None:
        async with Engine(Store(store), one_way(0), LoopClock()) as engine:
            assert engine.store.work is not None
            worker = Worker(engine, engine.store.work, say=said.append)
            task = asyncio.ensure_future(worker.serve())
            while not said:
                await asyncio.sleep(0.01)
            worker.stop()
            await task

    asyncio.run(main())
    assert "a variable that is not set" in said[0]


def test_a_worker_that_is_stopped_while_it_takes_a_shard_over_leaves_what_may_have_been_sent(store: str) -> None:
    drive(store, experiment.stops, None)
    rows(store, "DELETE FROM outcomes WHERE mod(trial, 3) = 0")
    held = Store(store)
    held.runs.change(held.runs.get("run"), status="running", counters=Counters(sent=30, at_risk={"scripted ": 9}))
    assert held.work is not None
    held.work.begin(held.runs.get("run"))
    held.close_reading()
    said: list[str] = []

    async def main() -> None:
        async with Engine(Store(store), one_way(0), LoopClock()) as engine:
            assert engine.store.work is not None

            def say(what: str) -> None:
                said.append(what)
                if "takes over" in what:
                    worker.stop()

            worker = Worker(engine, engine.store.work, say=say)
            await worker.serve()

    asyncio.run(main())
    assert "takes over" in said[-1]
    assert record(store).counters.at_risk == {"scripted ": 9}
    assert record(store).counters.resent == 0
