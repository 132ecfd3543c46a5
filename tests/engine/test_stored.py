"""Runs as they can be read: frames, transcripts, figures, without going on with them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Chat, Engine, Fault, FaultKind, Limits, RunBusy, RunNotFound, RunOptions, RunStopped
from groundswell.engine.records import Counters
from groundswell.store.journal import Store
from tests.engine.stage import Gate, echo, one, repeat, until
from tests.engine.test_drives import Wanted, collect_all
from tests.reporting.page import Page


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def refuses_b(request: Chat) -> Any:
    return Fault(FaultKind.FILTERED, "<b>no</b>") if request.messages[-1].content == "b" else echo(request)


async def filled(engine: Engine, name: str = "story") -> groundswell.Run:
    run = engine.run(name, seed=3)
    async for _ in run.map(one, ["a", "b", "c"]):
        pass
    return run


def figures(page: Page) -> dict[str, str]:
    cells = page.inside("td")
    return dict(zip(cells[::2], cells[1::2], strict=True))


def test_a_run_shows_how_far_it_is_and_why_trials_are_missing(store: Path) -> None:
    async def look() -> tuple[Page, Page]:
        async with groundswell.open(store, script=refuses_b) as engine:
            run = await filled(engine)
            during = Page(run)
        return during, Page(run)

    during, after = asyncio.run(look())
    shown = figures(during)
    assert shown.pop("missing").startswith("1 × content_filter, as in trial ")
    assert (shown.pop("id"), shown.pop("time")) != ("", "")
    assert shown == {
        "trials": "2 usable of 3 planned, 1 missing",
        "asks": "3 sent, 1 failed",
        "cost": "unknown, plus an unknown amount more for 1 request whose reply was lost",
        "tokens": "8 in, 12 out",
        "seed": "3",
    }
    assert ("<b>no</b>" in during.text, "all trials done" in during.text, "partial" in after.text) == (True, True, True)


def test_a_stored_run_is_read_without_going_on_with_it(store: Path) -> None:
    pytest.importorskip("polars")

    async def stop_early() -> None:
        async with groundswell.open(store, script=echo) as engine:
            run = engine.run("story", options=RunOptions(limits=Limits(calls=2)))
            with pytest.raises(RunStopped):
                async for _ in run.map(repeat, [1, 2]):
                    pass

    async def read() -> None:
        async with groundswell.open(store) as engine:
            found = engine.stored("story")
            frame = found.frame()
            assert frame["status"].to_list() == ["usable", "unfinished"]
            assert str(found.transcript(frame["key"][1])).endswith("(no reply yet)\n\nunfinished")
            assert (found.summary.status, engine.runs) == ("partial", [])
            with pytest.raises(RunNotFound, match="no run 'other'"):
                engine.stored("other")

    asyncio.run(stop_early())
    asyncio.run(read())


def test_a_run_that_is_open_is_read_as_it_goes_on(store: Path) -> None:
    async def read() -> None:
        async with groundswell.open(store, script=echo) as engine:
            await filled(engine)
            assert engine.stored("story").summary.trials.usable == 3

    asyncio.run(read())


def test_a_run_whose_process_died_is_shown_as_interrupted(store: Path) -> None:
    opened = Store(store)
    record = opened.runs.create("story", 0)
    opened.runs.change(record, status="running", counters=Counters(planned=4, usable=1))
    opened.close_reading()

    async def status() -> str:
        async with groundswell.open(store) as engine:
            return engine.stored("story").summary.status

    assert asyncio.run(status()) == "interrupted"


def test_a_transcript_of_a_driven_run_finds_its_program(store: Path) -> None:
    async def read() -> str:
        async with groundswell.open(store, script=echo) as engine:
            await engine.drive(collect_all, Wanted(["a"]), name="story")
            found = engine.stored("story")
            (key,) = found.frame()["key"]
            return str(found.transcript(key))

    pytest.importorskip("polars")
    assert "    user: a\n    => a!" in asyncio.run(read())


def test_a_run_cannot_be_open_twice_in_an_engine_but_again(store: Path) -> None:
    async def twice() -> None:
        async with groundswell.open(store, script=echo) as engine:
            run = await filled(engine)
            with pytest.raises(RunBusy, match=r"'story' is already open in this engine.*await run.end\(\)"):
                engine.run("story", seed=3)
            await run.end()
            assert run.record.status == "completed"
            again = await filled(engine)
            assert (again.counters.sent, again.counters.planned) == (3, 3)

    asyncio.run(twice())


def test_a_cancelled_block_ends_its_run_and_leaves_the_rest_to_do(store: Path) -> None:
    async def cancelled() -> None:
        gate = Gate()
        async with groundswell.open(store, script=gate, max_concurrent=1) as engine:

            async def block() -> None:
                async with engine.run("story", seed=3) as run:
                    async for _ in run.map(one, ["a", "b"]):
                        pass

            cell = asyncio.create_task(block())
            await until(lambda: gate.waiting)
            gate.let("a")
            await until(lambda: "b" in gate.waiting)
            cell.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cell
            assert engine.stored("story").summary.status == "interrupted"
            again = asyncio.create_task(block())
            await until(lambda: gate.asked == ["a", "b", "b"])
            gate.let("b")
            await again
            assert engine.stored("story").summary.trials.usable == 2

    asyncio.run(cancelled())


@pytest.mark.parametrize("hard", [True, False], ids=["interrupted", "in peace"])
def test_a_run_that_has_ended_takes_nothing_more(store: Path, hard: bool) -> None:
    async def late() -> None:
        async with groundswell.open(store, script=echo) as engine:
            run = engine.run("story")
            await run.end(KeyboardInterrupt() if hard else None)
            with pytest.raises(RunStopped, match="has ended"):
                await run.submit(one, "a")
            with pytest.raises(RunStopped, match="has ended"):
                async for _ in run.map(one, ["a"]):
                    pass

    asyncio.run(late())
