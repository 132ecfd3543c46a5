"""How runs end: what counts, what lands, what is left, and in what state."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import (
    ForeignAwait,
    Limits,
    ReplayMismatch,
    Reply,
    Request,
    Run,
    RunError,
    RunOptions,
    RunStopped,
    SettingsError,
    Trial,
    program,
)
from tests.engine.editions import counted, edition, figures, in_time, status
from tests.engine.scenario import counters, journal, run_async
from tests.engine.stage import Gate, at_rest, echo, one, said

WORDS = [str(number) for number in range(8)]


@program("tests/endings/twice")
async def twice(trial: Trial, spec: str) -> str:
    await trial.ask("any", spec)
    return (await trial.ask("any", f"{spec} again")).text


@program("tests/endings/stray")
async def stray(trial: Trial, spec: str) -> str:
    words = (await trial.ask("any", spec)).text
    if spec == "stray":
        await asyncio.sleep(0)
    return words


def test_trials_of_an_earlier_session_that_nobody_claims_do_not_go_on(store: Path) -> None:
    gate = Gate()

    async def interrupted() -> None:
        async with groundswell.open(store, script=gate) as engine:
            run = engine.run("story")
            tasks = [asyncio.create_task(run.submit(twice, word, key=word)) for word in WORDS]
            await in_time(lambda: len(gate.waiting) == len(tasks))
            for task in tasks:
                task.cancel()
            raise KeyboardInterrupt

    async def another() -> None:
        async with groundswell.open(store, script=gate) as engine:
            task = asyncio.create_task(engine.run("story").submit(one, "new", key="new"))
            await in_time(lambda: len(gate.waiting) == 9)
            gate.let("new")
            await task
            landing = asyncio.create_task(let_the_rest(engine))
        await landing

    async def let_the_rest(engine: groundswell.Engine) -> None:
        await in_time(lambda: not engine.runs)
        for words in list(gate.waiting):
            gate.let(words)

    with pytest.raises(KeyboardInterrupt):
        run_async(interrupted())
    gate.waiting.clear()
    run_async(another())
    assert not any("again" in words for words in gate.asked)
    assert (status(store), counters(store).planned, counted(store), figures(store)) == ("completed", 1, (1, 0), (1, 0))


async def keep_quiet(run: Run, settings: str) -> str:
    """Submit everything, and say nothing of a stop."""
    try:
        if settings == "cancelled":
            run.stop("cancelled", "enough")
        await asyncio.gather(*[run.submit(one, word, key=word) for word in WORDS])
    except RunStopped:
        return "stopped"
    return "done"


@pytest.mark.parametrize(("settings", "expected"), [("budget", "partial"), ("cancelled", "stopped")])
def test_a_driver_that_keeps_a_stop_to_itself_is_stopped(store: Path, settings: str, expected: str) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            options = RunOptions(limits=Limits(calls=3))
            ended = await engine.drive(keep_quiet, settings, name="story", options=options)
            assert (ended.status, ended.analysis) == (expected, "stopped")

    run_async(main())
    assert counted(store) == figures(store)


def test_a_driver_that_kept_stops_to_itself_comes_to_an_end(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            for calls, usable in [(2, 2), (5, 5)]:
                options = RunOptions(limits=Limits(calls=calls))
                ended = await engine.drive(keep_quiet, "budget", name="story", options=options)
                assert (ended.status, ended.trials.planned, ended.trials.usable) == ("partial", len(WORDS), usable)
            ended = await engine.drive(keep_quiet, "budget", name="story", options=RunOptions())
            assert (ended.status, ended.analysis) == ("completed", "done")
            assert (ended.trials.planned, ended.trials.usable, ended.asks.sent) == (8, 8, 8)

    run_async(main())


async def race(run: Run, settings: bool) -> int:
    """Want the first two of many; the others are cancelled, or just left."""
    tasks = [asyncio.create_task(run.submit(one, word)) for word in WORDS]
    await tasks[0]
    await tasks[1]
    if settings:
        for task in tasks[2:]:
            task.cancel()
    else:
        run.loop.call_soon(forget, tasks)
    return 2


def forget(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


@pytest.mark.parametrize("cancelled", [True, False])
def test_submits_that_a_driver_leaves_are_no_part_of_the_run(store: Path, cancelled: bool) -> None:
    async def main() -> None:
        async def quick_for_two(request: Request) -> Reply:
            if said(request) not in ("0", "1"):
                await in_time(lambda: not engine.runs)
            return echo(request)

        async with groundswell.open(store, script=quick_for_two, max_concurrent=3) as engine:
            ended = await engine.drive(race, cancelled, name="story")
            assert (ended.status, ended.trials.planned, ended.trials.usable) == ("completed", 2, 2)

    run_async(main())
    assert figures(store) == (2, 0)


def test_replies_in_flight_land_before_a_driver_hears_of_a_foreign_await(store: Path) -> None:
    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate) as engine:
            run = engine.run("story")

            async def drive() -> None:
                async for _ in run.map(stray, ["stray", "a", "b"]):
                    pass

            task = asyncio.create_task(drive())
            await in_time(lambda: len(gate.waiting) == 3)
            gate.let("stray")
            await at_rest(run)
            assert run.error is not None
            assert not task.done()
            gate.let("a")
            gate.let("b")
            with pytest.raises(ForeignAwait):
                await task
            assert len(journal(store)) == 3
            raise run.error

    with pytest.raises(ForeignAwait):
        run_async(main())
    assert status(store) == "failed"


async def as_it_was(trial: Trial, spec: str) -> str:
    return (await trial.ask("any", spec)).text


async def drifted(trial: Trial, spec: str) -> str:
    return (await trial.ask("any", f"{spec} otherwise")).text


def test_replies_in_flight_land_before_a_driver_hears_of_a_mismatch(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()

    async def recorded() -> None:
        async with groundswell.open(store, script=echo) as engine:
            await engine.run("story").submit(edition(monkeypatch, "tests/drifts", as_it_was), "a")

    async def mismatched() -> None:
        made = edition(monkeypatch, "tests/drifts", drifted)
        async with groundswell.open(store, script=gate) as engine:
            run = engine.run("story", accept_changes=True)
            flying = asyncio.create_task(run.submit(one, "b"))
            await in_time(lambda: gate.waiting)
            wrong = asyncio.create_task(run.submit(made, "a"))
            await in_time(lambda: run.error)
            await at_rest(run)
            assert not wrong.done()
            gate.let("b")
            await asyncio.gather(flying, return_exceptions=True)
            await wrong

    run_async(recorded())
    with pytest.raises(ReplayMismatch):
        run_async(mismatched())
    assert len(journal(store)) == 2


class Unwritable:
    """What a driver cannot return, until it is told to behave."""

    behaves = False


async def returns_an_object(run: Run, settings: int) -> object:
    await run.submit(one, "a")
    return "fine" if Unwritable.behaves else object()


def test_an_analysis_that_is_not_data_fails_the_run_which_can_be_resumed(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            with pytest.raises(SettingsError, match=r"driver returns_an_object: .*cannot be stored as JSON"):
                await engine.drive(returns_an_object, 1, name="story")
            assert (engine.runs, engine.store.runs.get("story").status) == ([], "failed")
            monkeypatch.setattr(Unwritable, "behaves", True)
            ended = await engine.resume("story")
            assert (ended.status, ended.analysis, ended.asks.sent) == ("completed", "fine", 1)

    run_async(main())


async def ask_all(run: Run, settings: int) -> int:
    return len([outcome async for outcome in run.map(one, WORDS)])


def test_the_parent_of_an_unfinished_fork_is_not_deleted(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            await engine.drive(ask_all, 1, name="parent")
            runs: Any = engine.store.runs
            parent = runs.get("parent")
            runs.create_fork(parent, "fork", parent.settings, None)
            with pytest.raises(RunError, match="'fork' is an unfinished fork of 'parent'"):
                runs.delete(parent)
            ended = await engine.resume("fork")
            assert (ended.status, ended.asks.cached, ended.asks.sent) == ("completed", len(WORDS), 0)
            runs.delete(runs.get("parent"))

    run_async(main())


def test_options_of_an_engine_are_used_for_a_run_that_exists(store: Path) -> None:
    async def session(calls: int) -> int:
        options = RunOptions(limits=Limits(calls=calls))
        async with groundswell.open(store, script=echo, options=options) as engine:
            return await ask_all(engine.run("story"), 1)

    with pytest.raises(RunStopped):
        run_async(session(2))
    assert run_async(session(200)) == len(WORDS)
    assert status(store) == "completed"
