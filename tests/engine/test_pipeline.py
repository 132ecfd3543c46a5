"""From the queue to the transport: asks leave as the pace allows, by themselves or together, and stay when stopped."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Embedding, Engine, Reply, RunOptions, RunStopped, Trial, program
from groundswell.compose import OneWay
from groundswell.engine import scheduler as plan
from groundswell.engine.events import Event, WaveEnded, WaveSent
from groundswell.engine.records import Item, Receipt, Settled, Wave
from groundswell.store.journal import Store
from groundswell.testing.clock import FakeClock
from tests.engine.editions import in_time, turn
from tests.engine.scenario import counters, run_async
from tests.engine.stage import one
from tests.engine.test_joined import Held


@program("tests/pipeline/embed")
async def embed(trial: Trial, spec: str) -> int:
    return len((await trial.embed("any", [spec])).vectors)


class Vectors(Held):
    """Answers the embeddings of a wave together, when a test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.vectorised, self.cached = True, False
        self.calls: list[tuple[int, asyncio.Future[None]]] = []

    async def dispatch(self, wave: Wave) -> Receipt:
        call: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.calls.append((len(wave.items), call))
        await call
        return await super().dispatch(wave)

    async def _answer(self, item: Item) -> Settled:
        return Settled(item.ask, Embedding.of([[0.5]]))

    def let(self) -> None:
        self.calls.pop(0)[1].set_result(None)


def engine_of(store: Path, transport: Held, slots: int, clock: FakeClock, events: list[Event]) -> Engine:
    return Engine(Store(store), OneWay(transport, slots), clock, listeners=[events.append])


def open_waves(store: Path) -> int:
    with sqlite3.connect(store) as reading:
        (found,) = reading.execute("SELECT count(*) FROM waves WHERE ended_at IS NULL").fetchone()
    reading.close()
    return int(found)


async def settle_down() -> None:
    for _ in range(40):
        await turn()


def queued(run: groundswell.Run) -> int:
    return sum(len(queue.asks) for queue in run.dispatch._queues.queues.values())


def submitted(run: groundswell.Run, number: int, what: Any = one) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(run.submit(what, str(each))) for each in range(number)]


@pytest.mark.parametrize("slots", [1, 8])
def test_no_more_are_in_flight_than_there_are_slots(store: Path, slots: int) -> None:
    held = Held()

    async def main() -> None:
        async with engine_of(store, held, slots, FakeClock(), []) as engine:
            run = engine.run("story", options=RunOptions(window=60, cache=False))
            tasks = submitted(run, 50)
            await in_time(lambda: len(held.waiting) == slots)
            await settle_down()
            assert len(held.waiting) == slots
            assert run.dispatch.in_flight == slots
            while not all(task.done() for task in tasks):
                while held.waiting:
                    held.answer()
                await turn()
                assert run.dispatch.in_flight <= slots

    run_async(main())
    assert (counters(store).sent, open_waves(store)) == (50, 0)


def test_a_stop_sends_nothing_more(store: Path) -> None:
    held = Held()

    async def main() -> None:
        async with engine_of(store, held, 4, FakeClock(), []) as engine:
            run = engine.run("story", options=RunOptions(window=60, cache=False))
            tasks = submitted(run, 20)
            await in_time(lambda: len(held.waiting) == 4)
            run.stop("interrupted", "enough")
            await settle_down()
            while held.waiting:
                held.answer()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert sum(isinstance(end, RunStopped) for end in ended) >= 16
            await settle_down()
            assert (len(held.sent), run.dispatch.in_flight, run.dispatch.live_in_flight) == (4, 0, 0)

    run_async(main())
    assert (counters(store).sent, open_waves(store)) == (4, 0)


def test_every_wave_that_was_told_of_ends_once(store: Path) -> None:
    held, events = Held(), list[Event]()

    async def main() -> None:
        async with engine_of(store, held, 1, FakeClock(), events) as engine:
            run = engine.run("story", options=RunOptions(window=60, cache=False))
            tasks = submitted(run, 9)
            while not all(task.done() for task in tasks):
                await turn()
                assert len(held.waiting) <= 1
                if held.waiting:
                    held.answer()

    run_async(main())
    ended = [event.wave for event in events if isinstance(event, WaveEnded)]
    sent = [event for event in events if isinstance(event, WaveSent)]
    assert sorted(ended) == sorted(event.wave for event in sent)
    assert len(set(ended)) == len(ended)
    assert sum(event.size for event in sent) == 9
    assert open_waves(store) == 0


def test_a_transport_that_is_not_ready_gets_its_asks_later(store: Path) -> None:
    held, clock = Held(), FakeClock()
    held.ready = False

    async def main() -> None:
        async with engine_of(store, held, 4, clock, []) as engine:
            run = engine.run("story", options=RunOptions(cache=False))
            tasks = submitted(run, 3)
            await in_time(lambda: len(run.open) == 3)
            for _ in range(3):
                clock.advance(1.0)
                await settle_down()
            assert held.sent == []
            held.ready = True
            clock.advance(0.1)
            await in_time(lambda: len(held.waiting) == 3)
            while held.waiting:
                held.answer(Reply("yes"))
            assert [(await task).result for task in tasks] == ["yes"] * 3

    run_async(main())


def test_waves_that_are_one_call_leave_whole_and_a_few_at_once(store: Path) -> None:
    vectors = Vectors()

    async def main() -> None:
        async with engine_of(store, vectors, 64, FakeClock(), []) as engine:
            run = engine.run("story", options=RunOptions(window=200))
            tasks: list[asyncio.Task[Any]] = []
            while len(vectors.calls) < plan.CALLS_AT_ONCE:
                tasks.append(asyncio.create_task(run.submit(embed, f"early {len(tasks)}")))
                await settle_down()
            early = len(tasks)
            tasks += [asyncio.create_task(run.submit(embed, f"late {each}")) for each in range(40)]
            await in_time(lambda: queued(run) + sum(size for size, _ in vectors.calls) == early + 40)
            late = queued(run)
            assert late >= 40
            assert len(vectors.calls) == plan.CALLS_AT_ONCE
            (pace,) = [lane.pace for lane in engine._lanes._by_route.values()]
            assert pace.in_flight == plan.CALLS_AT_ONCE, "a call takes one slot"
            sizes = []
            while not all(task.done() for task in tasks):
                if vectors.calls:
                    sizes.append(vectors.calls[0][0])
                    vectors.let()
                await turn()
            assert sum(sizes) == early + 40
            assert max(sizes) == late, "what came up meanwhile goes together"
            assert pace.in_flight == 0

    run_async(main())
    assert open_waves(store) == 0


def test_nothing_is_stuck_when_the_first_ask_of_a_wave_is_dropped(store: Path) -> None:
    vectors, clock = Vectors(), FakeClock()
    vectors.ready = False

    async def main() -> None:
        async with engine_of(store, vectors, 8, clock, []) as engine:
            run = engine.run("story", options=RunOptions(window=50))

            outcomes = run.map(embed, ["first"])
            asked: asyncio.Task[Any] = asyncio.create_task(anext(outcomes))
            await in_time(lambda: len(run.open) == 1)
            tasks = submitted(run, 3, embed)
            await in_time(lambda: len(run.open) == 4)
            await settle_down()
            next(iter(run.open.values())).drop()
            run.dispatch.forget_dropped()
            vectors.ready = True
            while not all(task.done() for task in tasks):
                clock.advance(0.1)
                await turn()
                while vectors.calls:
                    vectors.let()
            assert [(await task).result for task in tasks] == [1, 1, 1]
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    run_async(main())
    assert open_waves(store) == 0
