"""Runs of one engine share what may wait at a provider."""

from __future__ import annotations

import asyncio
from pathlib import Path

from groundswell import Run
from groundswell.engine.batch_quota import Capacity
from groundswell.engine.engine import Engine
from groundswell.store.journal import Store
from groundswell.testing.batch import ProviderBooks, ScriptedLive
from groundswell.testing.clock import FakeClock, pause
from groundswell.testing.provider import ProviderBatches, TwoWays
from tests.engine.batch_stage import TAKES, Talk, echo, end_in_time, expected, talk, talks, via

FOUR = Capacity(1000, 1 << 20, 4, "requests")


async def results(run: Run, some: list[Talk]) -> list[list[str] | None]:
    return [outcome.result async for outcome in run.map(talk, some)]


def engine(
    folder: Path, clock: FakeClock, capacity: Capacity = FOUR, reading: float = 0.0
) -> tuple[Engine, ProviderBooks]:
    store, books = Store(folder / "runs.db"), ProviderBooks(folder / "books.jsonl")
    clock.watch(store)
    batch = ProviderBatches(books, echo, clock, takes=TAKES, capacity=capacity, queue=4, reading=reading)
    return Engine(store, TwoWays(ScriptedLive(books, echo, clock), batch), clock), books


def test_what_one_run_frees_another_takes_at_once(tmp_path: Path) -> None:
    """Though it asks another model, and nothing else would wake it."""
    clock = FakeClock()

    async def main() -> None:
        end_in_time(clock)
        way, books = engine(tmp_path, clock)
        async with way as opened:
            runs = [opened.run(name, options=via()) for name in ("a", "b")]
            first, second = await asyncio.gather(results(runs[0], talks(4, "m")), results(runs[1], talks(4, "n")))
            assert (first, second) == (expected(talks(4, "m")), expected(talks(4, "n")))
            assert [(entry.model, entry.at - entry.until) for entry in books.entries()] == [
                ("m", -TAKES),
                ("n", -TAKES),
            ]
            assert clock.now() == 2 * TAKES

    clock.run(main())


def test_room_is_not_taken_one_by_one_while_another_run_reads_its_results(tmp_path: Path) -> None:
    clock = FakeClock()

    async def main() -> None:
        end_in_time(clock)
        way, books = engine(tmp_path, clock, reading=1.0)
        async with way as opened:
            runs = [opened.run(name, options=via()) for name in ("a", "b")]
            first, second = await asyncio.gather(*[results(run, talks(4, "m")) for run in runs])
            assert first == second == expected(talks(4, "m"))
            assert [len(entry.orders) for entry in books.entries()] == [4, 4]

    clock.run(main())


def test_a_run_that_has_ended_takes_no_room(tmp_path: Path) -> None:
    """Its batch is still at the provider; when it is opened again, it has its room once."""
    clock = FakeClock()

    async def main() -> None:
        end_in_time(clock)
        way, books = engine(tmp_path, clock, Capacity(1000, 1 << 20, 6, "requests"))
        async with way as opened:
            run = opened.run("a", options=via())
            leaving = asyncio.ensure_future(results(run, talks(4, "m")))
            await pause(clock, 5.0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            await run.end(asyncio.CancelledError())
            await pause(clock, TAKES)
            assert await results(opened.run("b", options=via()), talks(4, "n")) == expected(talks(4, "n"))
            assert await results(opened.run("a", options=via()), talks(8, "m")) == expected(talks(8, "m"))
            assert [len(entry.orders) for entry in books.entries()] == [4, 4, 4]

    clock.run(main())


def test_who_goes_live_does_not_wait_for_a_batch(tmp_path: Path) -> None:
    """Equal asks of two runs are joined where both travel in batches, or both live."""
    clock = FakeClock()

    async def main() -> None:
        end_in_time(clock)
        store, books = Store(tmp_path / "runs.db"), ProviderBooks(tmp_path / "books.jsonl")
        clock.watch(store)
        live = ScriptedLive(books, echo, clock)
        batch = ProviderBatches(books, echo, clock, takes=TAKES)
        live.cached = batch.cached = True
        async with Engine(store, TwoWays(live, batch), clock) as opened:
            runs = [opened.run(name, options=via()) for name in ("a", "b")]
            slow = asyncio.gather(*[results(run, talks(4, "m")) for run in runs])
            await pause(clock, 5.0)
            assert await results(opened.run("c"), talks(4, "m")) == expected(talks(4, "m"))
            assert clock.now() < TAKES
            assert await slow == [expected(talks(4, "m"))] * 2
            assert [len(entry.orders) for entry in books.entries() if entry.batch is not None] == [4]
            assert sum(books.placed().values()) == 8

    clock.run(main())
