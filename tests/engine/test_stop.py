"""Stopping a run, and who holds it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import (
    Reply,
    Request,
    Run,
    RunBusy,
    RunError,
    RunNotFound,
    RunOptions,
    RunStopped,
    Summary,
    Trial,
    program,
    together,
)
from groundswell.engine.records import RunRecord
from groundswell.testing.clock import FakeClock
from tests.engine.scenario import counters, run_async
from tests.engine.stage import (
    Gate,
    at_rest,
    echo,
    one,
    said,
    until,
)


def test_a_stop_waits_for_what_is_in_flight(store: Path) -> None:
    """The end of one trial makes room for another while a third is still in flight."""
    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate) as engine:
            run = engine.run("story", options=RunOptions(window=2))

            async def drive() -> None:
                async for _ in run.map(one, ["a", "b", "c", "d"]):
                    pass

            task = asyncio.create_task(drive())
            await until(lambda: len(gate.waiting) == 2)
            run.stop("interrupted", "enough")
            gate.let("a")
            await at_rest(run)
            assert not task.done()
            gate.let("b")
            await task

    with pytest.raises(RunStopped, match="enough"):
        run_async(main())
    assert (counters(store).usable, gate.asked) == (2, ["a", "b"])


def test_a_submit_after_a_stop_waits_for_what_is_in_flight(store: Path) -> None:
    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate) as engine:
            run = engine.run("story")
            first = asyncio.create_task(run.submit(one, "a"))
            await until(lambda: gate.waiting)
            run.stop("interrupted", "enough")
            late = asyncio.create_task(run.submit(one, "b"))
            await at_rest(run)
            assert not late.done()
            gate.let("a")
            assert (await first).result == "a!"
            await late

    with pytest.raises(RunStopped, match="enough"):
        run_async(main())


@pytest.mark.parametrize(
    ("reason", "status"),
    [("interrupted", "interrupted"), ("cancelled", "stopped"), ("budget", "partial"), ("my own", "stopped")],
)
def test_the_reason_of_a_stop_gives_the_status(store: Path, reason: str, status: str) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            run = engine.run("story")
            run.stop(reason, "enough")
            await run.submit(one, "a")

    with pytest.raises(RunStopped, match="enough"):
        run_async(main())
    assert groundswell.open(store).store.runs.get("story").status == status


def test_cancelling_through_the_store_stops_a_run(store: Path) -> None:
    clock, gate = FakeClock(), Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate, clock=clock) as engine:
            run = engine.run("story", options=RunOptions(window=1))

            async def drive() -> None:
                async for _ in run.map(one, ["a", "b"]):
                    pass

            task = asyncio.create_task(drive())
            await until(lambda: gate.waiting)
            assert engine.store.runs.request_cancel(run.record)  # type: ignore[attr-defined]
            clock.advance(1.5)
            await until(lambda: run.stopping)
            gate.let("a")
            await task

    with pytest.raises(RunStopped, match="cancelled"):
        run_async(main())
    record = groundswell.open(store).store.runs.get("story")
    assert (record.status, record.counters.usable, gate.asked) == ("stopped", 1, ["a"])


async def two(run: Run, settings: int) -> int:
    """A driver with two trials."""
    return len([outcome async for outcome in run.map(one, ["a", "b"])])


@pytest.mark.parametrize("status", ["pending", "running", "interrupted", "stopped"])
def test_a_run_that_was_asked_to_stop_goes_on_only_if_a_user_resumes_it(store: Path, status: str) -> None:
    asked: list[str] = []

    def script(request: Request) -> Reply:
        asked.append(said(request))
        return Reply("fine")

    async def resume(*, unless_cancelled: bool = False) -> Summary:
        async with groundswell.open(store, script=script) as engine:
            return await engine.resume("story", unless_cancelled=unless_cancelled)

    async def plan() -> None:
        async with groundswell.open(store) as engine:
            record = engine.plan(two, 0, name="story")
            engine.store.runs.change(record, status=status, cancel=status != "stopped")

    run_async(plan())
    assert run_async(resume(unless_cancelled=True)).status == "stopped"
    assert run_async(resume(unless_cancelled=True)).status == "stopped"
    assert asked == []
    assert run_async(resume()).status == "completed"
    assert sorted(asked) == ["a", "b"]


def test_a_stop_that_is_asked_for_while_a_run_is_being_opened_is_not_lost(store: Path) -> None:
    clock, gate = FakeClock(), Gate()

    async def main() -> Summary:
        async with groundswell.open(store, script=gate, clock=clock) as engine:
            record = engine.plan(two, 0, name="story")
            runs = engine.store.runs
            change = runs.change

            def asked_meanwhile(record: RunRecord, **values: Any) -> None:
                runs.change = change  # type: ignore[method-assign]
                assert values["status"] == "running"
                assert runs.request_cancel(record)  # type: ignore[attr-defined]
                change(record, **values)

            runs.change = asked_meanwhile  # type: ignore[method-assign]
            task = asyncio.create_task(engine.resume(record.id, options=RunOptions(window=1), unless_cancelled=True))
            await until(lambda: gate.waiting)
            clock.advance(1.5)
            await until(lambda: engine.runs[0].stopping)
            gate.let("a")
            return await task

    assert run_async(main()).status == "stopped"
    assert gate.asked == ["a"]


def test_a_run_that_is_to_be_deleted_is_not_opened(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            record = engine.plan(two, 0, name="story")
            engine.store.runs.request_delete(record)  # type: ignore[attr-defined]
            for work in (engine.resume("story"), engine.drive(two, 0, name="story")):
                with pytest.raises(RunNotFound, match="runs delete"):
                    await work

    run_async(main())


def test_nothing_leaves_after_an_interrupt(store: Path) -> None:
    """A wave whose intent is still being committed when its run is interrupted is not sent."""
    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate) as engine:
            run = engine.run("story")
            task = asyncio.create_task(run.submit(one, "a"))
            await until(lambda: run.dispatch.in_flight)
            assert not gate.asked
            task.cancel()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_async(main())
    assert gate.asked == []


def test_a_run_is_held_by_one_engine(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine, groundswell.open(store, script=echo) as other:
            engine.run("story")
            other.run("story")

    with pytest.raises(RunBusy, match="story"):
        run_async(main())


def test_a_name_keeps_its_seed(store: Path) -> None:
    async def main(seed: int) -> None:
        async with groundswell.open(store, script=echo) as engine:
            engine.run("story", seed=seed)

    run_async(main(1))
    with pytest.raises(RunError, match="seed 1, not 2"):
        run_async(main(2))


def test_a_program_that_asks_on_its_way_out_is_closed(store: Path) -> None:
    @program("tests/stubborn")
    async def stubborn(trial: Trial, spec: str) -> str:
        try:
            return "".join(await together(one(trial, spec), one(trial, spec)))
        finally:
            await trial.ask("any", "on the way out")

    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate) as engine:
            asyncio.create_task(engine.run("story").submit(stubborn, "a")).add_done_callback(lambda _: None)
            await until(lambda: gate.waiting)
            raise asyncio.CancelledError  # a hard stop does not wait for replies

    with pytest.raises(asyncio.CancelledError):
        run_async(main())
    assert groundswell.open(store).store.runs.get("story").status == "interrupted"
