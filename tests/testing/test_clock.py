"""A clock that jumps only when nothing else can go on."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groundswell
from groundswell import Fault, FaultKind, Reply, Request, RetryPolicy, RunOptions, Trial, program
from groundswell.testing.batch import ProviderBooks, ScriptedBatch
from groundswell.testing.clock import FakeClock, pause


@given(st.lists(st.floats(0, 1000), max_size=30), st.floats(0, 1000))
def test_advance_calls_what_is_due_in_order(times: list[float], until: float) -> None:
    clock, called = FakeClock(), list[float]()
    for when in times:
        clock.call_at(when, lambda when=when: called.append(when))  # type: ignore[misc]
    clock.advance(until)
    assert called == sorted(when for when in times if when <= until)
    assert clock.now() == until


def test_equal_times_are_called_in_the_order_of_the_calls() -> None:
    clock, called = FakeClock(), list[int]()
    for number in range(5):
        clock.call_at(1.0, lambda number=number: called.append(number))  # type: ignore[misc]
    clock.advance(1)
    assert called == [0, 1, 2, 3, 4]


def test_a_timer_may_set_another_and_be_cancelled() -> None:
    clock, called = FakeClock(10.0), list[str]()

    def first() -> None:
        called.append("a")
        clock.call_at(12, lambda: called.append("b"))

    clock.call_at(11, first)
    clock.call_at(11.5, lambda: called.append("never"))()
    clock.advance(5)
    assert (called, clock.now()) == (["a", "b"], 15.0)


def test_an_hour_passes_at_once() -> None:
    clock = FakeClock()

    async def main() -> list[str]:
        order: list[str] = []

        async def after(seconds: float, name: str) -> None:
            await pause(clock, seconds)
            order.append(f"{name} at {clock.now():g}")

        await asyncio.gather(after(3600, "hour"), after(60, "minute"), after(60, "other"))
        return order

    assert clock.run(main()) == ["minute at 60", "other at 60", "hour at 3600"]


def test_it_waits_for_threads_before_it_jumps() -> None:
    clock, go = FakeClock(), threading.Event()

    async def main() -> float:
        clock.call_at(100, lambda: None)
        threading.Timer(0.01, go.set).start()
        await asyncio.to_thread(go.wait)
        return clock.now()

    assert clock.run(main()) == 0.0


class Worker:
    """A thread that wakes the loop when it is done, as the writer of a store does."""

    def __init__(self, go: threading.Event) -> None:
        self.busy = True
        self.done = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        threading.Thread(target=lambda: (go.wait(), loop.call_soon_threadsafe(self._end))).start()

    def _end(self) -> None:
        self.busy = False
        self.done.set_result(None)


def test_it_waits_for_what_it_watches() -> None:
    clock, go = FakeClock(), threading.Event()

    async def main() -> float:
        worker = Worker(go)
        clock.watch(worker)
        clock.call_at(100, lambda: None)
        threading.Timer(0.01, go.set).start()
        await worker.done
        return clock.now()

    assert clock.run(main()) == 0.0


@program("clock/ask")
async def ask(trial: Trial, number: int) -> str:
    return (await trial.ask("m", f"{number}")).text


@pytest.mark.slow
def test_batches_of_hours_and_patient_retries_take_no_time(tmp_path: Path) -> None:
    clock, books = FakeClock(), ProviderBooks(tmp_path / "books.jsonl")

    def answer(request: Request, nth: int) -> Reply | Fault:
        return Reply("done") if nth == 3 else Fault(FaultKind.EXPIRED, "too late", retry_after=600.0)

    async def main() -> list[str | None]:
        way = ScriptedBatch(books, answer, clock, takes=1800.0)
        options = RunOptions(retry=RetryPolicy(attempts=4))
        async with groundswell.open(tmp_path / "s.db", transport=way, clock=clock, options=options) as engine:
            return [outcome.result async for outcome in engine.run("r").map(ask, range(3))]

    started = time.perf_counter()
    assert clock.run(main()) == ["done"] * 3
    assert clock.now() >= 4 * 1800 + 3 * 600
    assert time.perf_counter() - started < 20
