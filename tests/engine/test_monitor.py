"""Samples, events and decisions of rate limiters, as a dashboard reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import groundswell
from groundswell import Fault, FaultKind, Reply, Request, RetryPolicy, RunOptions
from groundswell.engine.engine import Engine
from groundswell.engine.events import AskRetried, BatchSent, EndpointChanged, RunEnded, RunOpened, TrialEnded
from groundswell.engine.monitor import ENDED, EVENTS, SAMPLES, LaneSample, Monitor
from groundswell.store.journal import Store
from groundswell.testing.batch import ProviderBooks, ScriptedLive
from groundswell.testing.clock import EPOCH, FakeClock, pause
from groundswell.testing.provider import ProviderBatches, TwoWays
from tests.engine.batch_stage import TAKES, echo, talk, talks, via
from tests.engine.scenario import run_async
from tests.engine.stage import Gate, at_rest, one, until


def retried(run: str, at: float, kind: str = "server_error", message: str = "busy") -> AskRetried:
    return AskRetried(run=run, at=at, trial="k", path="0", kind=kind, message=message, attempt=2, wait=1.0)


def sent(run: str, at: float) -> BatchSent:
    return BatchSent(run=run, at=at, wave=1, account="openai", batch=f"b{at:.0f}", model="m", size=3, usd=None)


def test_a_sample_has_the_figures_of_a_run(tmp_path: Path) -> None:
    clock, gate = FakeClock(), Gate()
    monitor = Monitor(clock)

    async def main() -> str:
        opened = groundswell.open(tmp_path / "s.db", script=gate, clock=clock, max_concurrent=2, listeners=[monitor])
        async with opened as engine:
            run = engine.run("r")
            driver = asyncio.create_task(_results(run.map(one, ["a", "b", "c"])))
            await until(lambda: len(gate.asked) == 2)
            await at_rest(run)
            monitor.sample(engine.runs)
            clock.advance(2.0)
            gate.let("a")
            await until(lambda: len(gate.asked) == 3)
            await at_rest(run)
            monitor.sample(engine.runs)
            gate.let("b")
            gate.let("c")
            await driver
            return run.record.id

    id_ = run_async(main())
    first, second, last = monitor.samples(id_)
    assert (first.time, second.time) == (EPOCH, EPOCH + 2.0)
    assert (first.sent, first.in_flight, first.cap) == (2, 2, 2)
    assert (second.sent, second.in_flight) == (3, 2)
    (lane,) = first.lanes
    assert lane == LaneSample(lane.account, lane.model, 2, 2, None, "all 2 slots are in use")
    assert second.lanes[0].latency == 2.0
    assert (last.in_flight, last.lanes) == (0, ()), "at the end"
    assert [event.text for event in monitor.events(id_)] == [f"run {id_}: opened", f"run {id_}: completed"]


async def _results(outcomes: Any) -> list[Any]:
    return [outcome.result async for outcome in outcomes]


def test_a_lane_of_batches_has_its_requests_in_flight_and_no_cap(tmp_path: Path) -> None:
    clock = FakeClock()
    monitor = Monitor(clock)

    async def main() -> str:
        store, books = Store(tmp_path / "s.db"), ProviderBooks(tmp_path / "books.jsonl")
        clock.watch(store)
        ways = TwoWays(ScriptedLive(books, echo, clock), ProviderBatches(books, echo, clock, takes=TAKES))
        async with Engine(store, ways, clock, listeners=[monitor]) as engine:
            run = engine.run("r", options=via())
            clock.call_at(TAKES / 2, lambda: monitor.sample(engine.runs))
            await _results(run.map(talk, talks(4, "m")))
            return run.record.id

    id_ = clock.run(main())
    sample = monitor.samples(id_)[0]
    busy = [lane for lane in sample.lanes if lane.in_flight]
    assert busy == [LaneSample("books", "m", 4, None, None, "")]
    assert sample.in_flight == 4
    assert any(" sent: 4 requests" in event.text for event in monitor.events(id_))


class Named:
    """As much of a run as a sample needs."""

    def __init__(self, id_: str) -> None:
        self.record = self.dispatch = self.counters = self
        self.id, self.lanes, self.in_flight, self.usd = id_, (), 0, 0.0
        self.sent = self.cached = 0


@pytest.mark.parametrize("taken", [1, SAMPLES - 1, SAMPLES, SAMPLES + 1, 5 * SAMPLES + 7, 64 * SAMPLES])
def test_samples_are_bounded_evenly_spread_and_end_with_the_newest(taken: int) -> None:
    clock, run = FakeClock(), Named("r")
    monitor = Monitor(clock)
    for _ in range(taken):
        monitor.sample([run])  # type: ignore[list-item]  # a small fake
        clock.advance(1.0)
    times = [sample.time - EPOCH for sample in monitor.samples("r")]
    assert len(times) <= SAMPLES
    assert (times[0], times[-1]) == (0, taken - 1)
    steps = {after - before for before, after in pairwise(times[:-1])}
    assert len(steps) <= 1, "the same interval everywhere, except before the newest"
    assert taken < SAMPLES or len(times) >= SAMPLES / 2


def test_retries_are_one_event_for_each_kind_of_fault() -> None:
    monitor = Monitor(FakeClock())
    for at in range(1, 1001):
        monitor(retried("r", float(at), message=f"busy {at}"))
    monitor(retried("r", 500.0, "timeout", "x" * 5000))
    monitor(sent("r", 700.0))
    timeout, batch, server = monitor.events("r")
    assert timeout.at == 500.0
    assert timeout.text.startswith("timeout: 1 retry because of: xxx")
    assert len(timeout.text) < 300
    assert batch == (700.0, "openai: b700 sent: 3 requests")
    assert server == (1000.0, "server_error: 1,000 retries, the last one because of: busy 1000")


def test_events_are_bounded_and_others_are_left_out() -> None:
    monitor = Monitor(FakeClock())
    for at in range(3 * EVENTS):
        monitor(sent("r", float(at)))
        monitor(TrialEnded(run="r", at=float(at), trial="k", fault=None))
    assert [event.at for event in monitor.events("r")] == [float(at) for at in range(2 * EVENTS, 3 * EVENTS)]
    assert (monitor.events("nobody"), monitor.samples("nobody"), monitor.decisions("nobody")) == ((), (), ())


def test_an_event_of_an_endpoint_concerns_all_open_runs() -> None:
    monitor = Monitor(FakeClock())
    for run in ("ended", "open", "open again"):
        monitor(RunOpened(run=run, at=1.0, unfinished=0))
    for run in ("ended", "open again"):
        monitor(RunEnded(run=run, at=2.0, status="completed"))
    monitor(RunOpened(run="open again", at=3.0, unfinished=0))
    monitor(EndpointChanged(run="", at=4.0, account="local", endpoint="http://a", what="failed"))
    last = {run: monitor.events(run)[-1].text for run in ("ended", "open", "open again")}
    assert last == {"ended": "run ended: completed"} | dict.fromkeys(
        ["open", "open again"], "local at http://a: failed"
    )


def test_only_the_runs_that_ended_last_are_kept() -> None:
    monitor = Monitor(FakeClock())
    monitor(RunOpened(run="open", at=0.0, unfinished=0))
    for number in range(ENDED + 10):
        monitor(RunOpened(run=f"{number}", at=1.0, unfinished=0))
    for number in reversed(range(ENDED + 10)):
        monitor(RunEnded(run=f"{number}", at=2.0, status="completed"))
    kept = [number for number in range(ENDED + 10) if monitor.events(f"{number}")]
    assert kept == list(range(ENDED))
    assert monitor.events("open")


def test_decisions_of_the_limiters_while_a_run_was_open(tmp_path: Path) -> None:
    """A model refuses eight requests at once, and asks to wait."""
    clock, refused = FakeClock(), list[str]()
    monitor = Monitor(clock)

    async def model(request: Request) -> Reply | Fault:
        await pause(clock, 0.25)
        if len(refused) < 8:
            refused.append("once")
            return Fault(FaultKind.RATE_LIMITED, "slowly", retry_after=2.0)
        return Reply("fine")

    async def main() -> list[str]:
        async with groundswell.open(
            tmp_path / "s.db", script=model, clock=clock, max_concurrent=8, listeners=[monitor]
        ) as engine:
            clock.watch(engine.store)  # type: ignore[arg-type]  # a store of ours has a writing thread
            clock.advance(100.0)
            ids = []
            for name in ("first", "second"):
                async with engine.run(name, options=RunOptions(retry=RetryPolicy(first_wait=1.0))) as run:
                    clock.call_at(clock.now() + 0.5, lambda: monitor.sample(engine.runs))
                    await _results(run.map(one, [f"{name} {number}" for number in range(8)]))
                    ids.append(run.record.id)
                await run.pause(5.0)
            return ids

    first, second = clock.run(main())
    decisions = monitor.decisions(first)
    assert [decision[0:1] + decision[3:] for decision in decisions] == [
        (EPOCH + 100.25, "waits 2.0 s: Retry-After"),
        (EPOCH + 100.25, "cut from 8 to 6: the provider refused requests (rate limited)"),
    ]
    assert monitor.samples(first)[0].lanes[0].waits == "waits 1.8 s: Retry-After"
    assert monitor.decisions(second) == ()


def test_other_threads_may_read_while_samples_and_events_come() -> None:
    monitor, run, errors = Monitor(FakeClock()), Named("r"), list[Exception]()

    def read(what: Callable[[str], object]) -> None:
        try:
            for _ in range(2000):
                what("r")
        except RuntimeError as error:
            errors.append(error)

    threads = [Thread(target=read, args=(what,)) for what in (monitor.samples, monitor.events, monitor.decisions)]
    for thread in threads:
        thread.start()
    for number in range(2000):
        monitor.sample([run])  # type: ignore[list-item]  # a small fake
        monitor(retried("r", float(number), kind=f"kind {number}"))
    for thread in threads:
        thread.join()
    assert errors == []
