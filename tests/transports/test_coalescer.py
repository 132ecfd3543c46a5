"""Waves that wait for a model go into its next call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from groundswell.engine.records import AskId, Item, Settled
from groundswell.program.request import Embed, Embedding
from groundswell.transports.in_process import Coalescer


class Model:
    """Works on one call until it is let go on."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.gate = asyncio.Event()
        self.breaks = False

    async def call(self, items: Sequence[Item]) -> list[Settled]:
        self.calls.append(len(items))
        await self.gate.wait()
        if self.breaks:
            self.breaks = False
            raise ValueError("broken")
        return [Settled(item.ask, Embedding.of([[float(item.ask.trial)]])) for item in items]


def wave(first: int, count: int) -> list[Item]:
    return [Item(AskId(first + at, "0"), Embed("m", ("x",)), 0) for at in range(count)]


def asks(found: list[Settled]) -> list[int]:
    return [one.ask.trial for one in found]


async def begun(model: Model, waves: int) -> list[asyncio.Task[list[Settled]]]:
    """One wave under way, and others that wait for it."""
    joining = Coalescer(model.call)
    tasks = []
    for number in range(waves):
        tasks.append(asyncio.create_task(joining.settled(wave(10 * number, 3))))
        await asyncio.sleep(0)
    return tasks


def test_those_that_wait_share_the_next_call_and_each_gets_its_own() -> None:
    async def main() -> None:
        model = Model()
        tasks = await begun(model, 4)
        model.gate.set()
        found = await asyncio.gather(*tasks)
        assert model.calls == [3, 9]
        assert [asks(each) for each in found] == [[10 * n, 10 * n + 1, 10 * n + 2] for n in range(4)]

    asyncio.run(main())


def test_a_wave_that_is_given_up_takes_nobody_along() -> None:
    async def main() -> None:
        model = Model()
        tasks = await begun(model, 4)
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.gather(tasks[0], tasks[2], return_exceptions=True)
        model.gate.set()
        assert [asks(await tasks[number]) for number in (1, 3)] == [[10, 11, 12], [30, 31, 32]]
        assert model.calls == [3, 6]

    asyncio.run(main())


def test_the_others_still_get_theirs_if_their_call_is_given_up_or_breaks() -> None:
    async def main() -> None:
        model = Model()
        tasks = await begun(model, 3)
        model.breaks = True
        model.gate.set()
        with pytest.raises(ValueError, match="broken"):
            await tasks[0]
        assert [asks(await task) for task in tasks[1:]] == [[10, 11, 12], [20, 21, 22]]

    asyncio.run(main())


def test_a_later_wave_makes_a_call_of_its_own() -> None:
    async def main() -> None:
        model = Model()
        model.gate.set()
        joining = Coalescer(model.call)
        assert asks(await joining.settled(wave(1, 2))) == [1, 2]
        assert asks(await joining.settled(wave(5, 1))) == [5]
        assert model.calls == [2, 1]

    asyncio.run(main())
