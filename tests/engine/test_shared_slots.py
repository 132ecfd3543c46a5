"""Runs of one engine share its slots: what one run gives up, however it ends, the others get."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import (
    Fault,
    FaultKind,
    ForeignAwait,
    Reply,
    Request,
    Run,
    RunOptions,
    Trial,
    program,
)
from groundswell.testing.clock import FakeClock
from tests.engine.editions import in_time, turn
from tests.engine.scenario import run_async
from tests.engine.stage import Flaky, Gate, one, said

SLOTS = 4


async def ask_all(run: Run, settings: int) -> int:
    return len([outcome async for outcome in run.map(one, [str(number) for number in range(settings)])])


@program("tests/slots/stray")
async def stray(trial: Trial, spec: str) -> str:
    """One of them awaits what it must not."""
    words = (await trial.ask("any", spec)).text
    if spec == "0":
        await asyncio.sleep(0)
    return words


async def cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def let_all(gate: Gate, task: asyncio.Task[Any]) -> None:
    """Answer whatever is asked until a task is done."""
    while not task.done():
        for words in list(gate.waiting):
            gate.let(words)
        await turn()


async def use_every_slot(run: Run, gate: Gate) -> None:
    """As many requests as there are slots must be in flight at once."""
    words = [f"next {number}" for number in range(SLOTS)]
    tasks = [asyncio.create_task(run.submit(one, each)) for each in words]
    await in_time(lambda: set(words) <= gate.waiting.keys())
    for each in words:
        gate.let(each)
    await asyncio.gather(*tasks)


async def carry_on(task: asyncio.Task[groundswell.Summary], clock: FakeClock) -> groundswell.Summary:
    """Let time pass until a run has ended."""
    while not task.done():
        clock.advance(0.2)
        await turn()
    return await task


@pytest.mark.sampled
@pytest.mark.parametrize("slots", [1, 10, 40])
def test_a_cancelled_run_sends_nothing_from_its_back_off_timers(store: Path, slots: int) -> None:
    clock, refused = FakeClock(), slots
    model = Flaky(*[Fault(FaultKind.RATE_LIMITED, "wait", retry_after=60.0)] * refused)

    async def main() -> None:
        options = RunOptions(window=60)
        async with groundswell.open(store, script=model, clock=clock, max_concurrent=slots, options=options) as engine:
            task = asyncio.create_task(engine.drive(ask_all, 60, name="story"))
            await in_time(lambda: engine.runs and engine.runs[0].counters.retried == refused)
            await cancel(task)
            sent = len(model.asked)
            clock.advance(100.0)
            for _ in range(5):
                await engine.store.writer.flush()  # type: ignore[attr-defined]
                await asyncio.sleep(0)
            assert len(model.asked) == sent
            ended = await carry_on(asyncio.create_task(engine.resume("story")), clock)
            assert (ended.status, ended.analysis) == ("completed", 60)

    run_async(main())


@pytest.mark.sampled
@pytest.mark.parametrize("slots", [1, 10, 40])
def test_a_run_that_was_cancelled_in_a_back_off_is_resumed_at_once(store: Path, slots: int) -> None:
    """Its old timers fire while the new session is at work."""
    clock, refused = FakeClock(), slots
    model = Flaky(*[Fault(FaultKind.RATE_LIMITED, "wait", retry_after=60.0)] * refused)

    async def main() -> None:
        options = RunOptions(window=60)
        async with groundswell.open(store, script=model, clock=clock, max_concurrent=slots, options=options) as engine:
            task = asyncio.create_task(engine.drive(ask_all, 60, name="story"))
            await in_time(lambda: engine.runs and engine.runs[0].counters.retried == refused)
            await cancel(task)
            ended = await carry_on(asyncio.create_task(engine.resume("story")), clock)
            assert (ended.status, ended.trials.usable, ended.analysis) == ("completed", 60, 60)
            assert len(model.asked) == 60 + refused

    run_async(main())


def test_the_slots_of_a_run_that_a_program_ended_come_back(store: Path) -> None:
    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate, max_concurrent=SLOTS) as engine:
            broken, other = engine.run("broken"), engine.run("other")

            async def drive() -> None:
                async for _ in broken.map(stray, [str(number) for number in range(6)]):
                    pass

            task = asyncio.create_task(drive())
            await in_time(lambda: len(gate.waiting) == SLOTS)
            await let_all(gate, task)
            with pytest.raises(ForeignAwait):
                await task
            await use_every_slot(other, gate)

    run_async(main())


def test_the_slots_of_a_wave_that_broke_its_transport_come_back(store: Path) -> None:
    gate = Gate()

    async def model(request: Request) -> Reply:
        if said(request) == "2":
            raise RuntimeError("the line is dead")
        return await gate(request)

    async def main() -> None:
        async with groundswell.open(store, script=model, max_concurrent=SLOTS) as engine:
            broken, other = engine.run("broken"), engine.run("other")
            tasks = [asyncio.create_task(broken.submit(one, str(number))) for number in range(SLOTS)]
            with pytest.raises(RuntimeError, match="the line is dead"):
                await tasks[2]
            await asyncio.gather(*tasks, return_exceptions=True)
            gate.waiting.clear()
            await use_every_slot(other, gate)

    run_async(main())


def test_the_slots_of_a_cancelled_run_come_back(store: Path) -> None:
    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate, max_concurrent=SLOTS) as engine:
            task = asyncio.create_task(engine.drive(ask_all, 12, name="story"))
            await in_time(lambda: len(gate.waiting) == SLOTS)
            await cancel(task)
            gate.waiting.clear()
            await use_every_slot(engine.run("other"), gate)
            again = asyncio.create_task(engine.resume("story"))
            await in_time(lambda: len(gate.waiting) == SLOTS)
            await let_all(gate, again)
            ended = await again
            assert (ended.status, ended.analysis) == ("completed", 12)

    run_async(main())
