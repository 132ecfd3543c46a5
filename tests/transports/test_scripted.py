"""Functions that answer: they compute on the event loop, and must leave turns of it to everything else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import groundswell
from groundswell import Chat, Reply, Request, user
from groundswell.engine.records import AskId, Item, Receipt, Wave
from groundswell.transports.scripted import SLICE, Scripted
from tests.engine.stage import one

ASKS = 20


class Slow:
    """A function that takes so many seconds of a clock that only it moves."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.time = 0.0
        self.calls = 0

    def __call__(self, request: Request) -> Reply:
        self.calls += 1
        self.time += self.seconds
        return Reply("fine")

    def clock(self) -> float:
        return self.time


def wave(number: int, size: int) -> Wave:
    asks = tuple(AskId(trial, "0") for trial in range(size))
    items = tuple(Item(ask, Chat("any", (user("Hello."),)), 0) for ask in asks)
    return Wave(number, "run", "scripted", "scripted", asks, 0.0, items=items)


async def most_in_a_turn(seconds: float, waves: int, size: int) -> int:
    """How many replies are computed in one turn of the loop, at the most, while so many waves are collected."""
    script = Slow(seconds)
    transport = Scripted(script, clock=script.clock)

    async def collect(number: int) -> int:
        sent = wave(number, size)
        await transport.dispatch(sent)
        return len([settled async for settled in transport.collect(sent, Receipt())])

    collecting = [asyncio.create_task(collect(number)) for number in range(waves)]
    most = before = 0
    while not all(task.done() for task in collecting):
        await asyncio.sleep(0)
        most, before = max(most, script.calls - before), script.calls
    assert [task.result() for task in collecting] == [size] * waves
    return most


@pytest.mark.parametrize(("waves", "size"), [(1, ASKS), (ASKS, 1), (4, 5)])
def test_other_tasks_have_a_turn_after_every_slice(waves: int, size: int) -> None:
    assert asyncio.run(most_in_a_turn(2 * SLICE, waves, size)) == 1
    assert asyncio.run(most_in_a_turn(SLICE / 4, waves, size)) <= 5


def test_functions_that_are_quick_are_not_held_up() -> None:
    assert asyncio.run(most_in_a_turn(SLICE / 1000, 1, ASKS)) == ASKS


def test_a_wave_that_is_given_up_leaves_its_turn_to_others() -> None:
    async def main() -> None:
        script = Slow(2 * SLICE)
        transport = Scripted(script, clock=script.clock)

        async def collect(number: int) -> None:
            sent = wave(number, 3)
            await transport.dispatch(sent)
            async for _ in transport.collect(sent, Receipt()):
                pass

        first, second, third = (asyncio.create_task(collect(number)) for number in range(3))
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        await third
        assert 3 <= script.calls <= 5

    asyncio.run(main())


def test_a_run_can_be_ended_while_a_wave_is_computed(tmp_path: Path) -> None:
    """As a server does that deletes a run: it must not wait for all that is in the wave."""

    async def main() -> int:
        slow = Slow(2 * SLICE)
        transport = Scripted(slow, clock=slow.clock)
        async with groundswell.open(tmp_path / "s.db", transport=transport) as engine:
            run = engine.run("story")

            async def drive() -> None:
                async with run:
                    async for _ in run.map(one, [str(number) for number in range(10 * ASKS)]):
                        pass

            driving = asyncio.create_task(drive())
            while not slow.calls:
                await asyncio.sleep(0)
            driving.cancel()
            await asyncio.wait([driving])
            return slow.calls

    assert asyncio.run(main()) < ASKS
