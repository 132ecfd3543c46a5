"""Attacks on the path of live asks: what breaks in one place must not hang, starve or miscount another."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Engine, Reply, Request, Run, RunError, StoreError, Trial, program
from groundswell.compose import OneWay, at_once
from groundswell.engine.ports import Answered, LoopClock, Route, Transport
from groundswell.engine.rate_limit import most_uncommitted
from groundswell.engine.records import Via
from groundswell.errors import StoreCorrupt
from groundswell.program.request import Settlement
from groundswell.store.journal import Store
from groundswell.store.writer import Around, plainly
from groundswell.testing.crash import CrashPoint
from groundswell.transports.scripted import Scripted
from tests.engine.scenario import counters, run_async
from tests.engine.stage import said, until


class ByItself(Scripted):
    """A live transport whose asks a test answers by a function; they travel by themselves."""

    def __init__(self, answer: Callable[[Request], Any], *, cached: bool = True) -> None:
        super().__init__(lambda request: "", name="live", cached=cached)
        self.answer = answer
        self.asked: list[str] = []

    async def ask(self, request: Request) -> Answered:
        self.asked.append(said(request))
        await asyncio.sleep(0)
        answer = self.answer(request)
        return (await answer if asyncio.isfuture(answer) else answer), ()


@program("tests/attacks/one")
async def one(trial: Trial, spec: str) -> str:
    return (await trial.ask("any", spec.partition("/")[0], temperature=0)).text


def echo(request: Request) -> Settlement:
    return Reply(f"{said(request)}!")


def never(request: Request) -> asyncio.Future[Settlement]:
    return asyncio.get_running_loop().create_future()


async def cut_off(engine: Engine, run: Run, *asking: asyncio.Task[Any]) -> None:
    """End a run as a second Ctrl-C does."""
    await engine._end(run, asyncio.CancelledError())
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


def spoil_the_cache(store: Path) -> None:
    with sqlite3.connect(store) as writing:
        writing.execute("UPDATE cache SET settlement = 'not JSON'")
    writing.close()


def test_a_cached_reply_that_cannot_be_read_ends_the_run(store: Path) -> None:
    """A trial that goes on looks for it when nobody waits: unheard, the error would leave the run waiting for ever."""

    async def main() -> None:
        async with groundswell.open(store, transport=ByItself(never)) as engine:
            run = engine.run("cut")
            asking = asyncio.create_task(run.submit(one, "a"))
            await until(lambda: run.dispatch.in_flight)
            await cut_off(engine, run, asking)
        async with groundswell.open(store, transport=ByItself(echo)) as engine:
            await engine.run("other").submit(one, "a")
        spoil_the_cache(store)
        async with groundswell.open(store, transport=ByItself(echo)) as engine:
            with pytest.raises(StoreCorrupt, match="a cached reply was changed"):
                await asyncio.wait_for(engine.run("cut").submit(one, "a"), 5)

    run_async(main())


@pytest.mark.parametrize("when", [1, 2, 3, 4, 5])
def test_nobody_waits_for_the_asks_of_a_run_that_was_cut(store: Path, when: int) -> None:
    """One run is cut while its asks are being looked for; another that asks the same gets its reply."""

    async def main() -> None:
        way = ByItself(echo)
        async with groundswell.open(store, transport=way) as engine:
            cut = engine.run("cut")
            asking = [asyncio.create_task(cut.submit(one, f"a/{n}")) for n in range(3)]
            await until(lambda: len(cut.open) == 3)
            await until(lambda: cut.committing == 0)
            for _ in range(when):
                await asyncio.sleep(0)
            await cut_off(engine, cut, *asking)
            outcome = await asyncio.wait_for(engine.run("other").submit(one, "a"), 5)
            assert outcome.result == "a!"
            assert engine._asked == {}

    run_async(main())


@pytest.mark.parametrize("given", [None, "text", 3, {}], ids=repr)
def test_what_is_no_settlement_is_not_kept(store: Path, given: object) -> None:
    """Journalled or cached it could not be read again: the run ends, and goes on with a transport that is mended."""

    async def main() -> None:
        async with groundswell.open(store, transport=ByItself(lambda request: given)) as engine:
            with pytest.raises(RunError, match="instead of a Reply"):
                await engine.run("r").submit(one, "a")
        async with groundswell.open(store, transport=ByItself(echo)) as engine:
            assert (await engine.run("r").submit(one, "a")).result == "a!"
        assert counters(store, "r").resent == 1, "nobody knows what became of it"

    run_async(main())


@program("tests/attacks/several")
async def several(trial: Trial, spec: int) -> str:
    for turn in range(3):
        await trial.ask("any", f"{spec}.{turn}")
    return "done"


@pytest.mark.parametrize("commit", [3, 4, 6])  # before the third, nothing is sent: trials, then what a kill can lose
def test_what_a_failing_store_loses_is_counted_when_it_is_sent_again(store: Path, commit: int) -> None:
    """The store fails for the writer alone: the run is left as one that failed, and not as one that was killed."""
    way = ByItself(echo, cached=False)

    async def session(around: Around) -> None:
        async with Engine(Store(store, around=around), OneWay(way, 8), LoopClock()) as engine:
            results = [outcome.result async for outcome in engine.run("r").map(several, range(30))]
        assert results == ["done"] * 30

    with pytest.raises(StoreError):
        run_async(session(CrashPoint(commit, "before").around))
    run_async(session(plainly))
    assert 0 < len(way.asked) - 90 <= counters(store, "r").resent <= 8 + most_uncommitted(8)


class Branching(OneWay):
    """Two models, each with a transport of its own."""

    def __init__(self, **ways: tuple[Transport, int]) -> None:
        super().__init__(*next(iter(ways.values())))
        self._ways = {name: Route(name, way, at_once(most)) for name, (way, most) in ways.items()}

    def route(self, request: Request, via: Via = "live") -> Route:
        return self._ways[request.model]


@program("tests/attacks/to")
async def to(trial: Trial, spec: str) -> str:
    return (await trial.ask(spec.partition(" ")[0], spec)).text


def test_replies_that_are_not_durable_hold_up_only_their_own_lane(store: Path) -> None:
    """A busy lane's commit takes long: a lane with one slot goes on sending, as far as its own replies are durable."""
    gates: dict[str, asyncio.Future[Settlement]] = {}
    held, going_on = threading.Event(), threading.Event()

    def answer(request: Request) -> asyncio.Future[Settlement]:
        return gates.setdefault(said(request), asyncio.get_running_loop().create_future())

    def around(commit: Callable[[], None]) -> None:
        if held.is_set():
            going_on.wait(10)
        commit()

    async def main() -> None:
        busy, narrow = ByItself(answer, cached=False), ByItself(answer, cached=False)
        router = Branching(busy=(busy, 32), narrow=(narrow, 1))
        async with Engine(Store(store, around=around), router, LoopClock()) as engine:
            run = engine.run("r")
            specs = [*(f"busy {n}" for n in range(20)), "narrow 0", "narrow 1"]
            asking = [asyncio.create_task(run.submit(to, spec)) for spec in specs]
            await until(lambda: len(gates) == 21 and len(run.open) == 22 and not run.committing)
            held.set()
            for spec in specs[:-1]:
                gates[spec].set_result(Reply("yes"))
            await until(lambda: run.committing == 21)
            for _ in range(5):
                await asyncio.sleep(0)
            sent = list(narrow.asked)
            held.clear()
            going_on.set()
            await until(lambda: "narrow 1" in gates)
            gates["narrow 1"].set_result(Reply("yes"))
            await asyncio.gather(*asking)
        assert sent == ["narrow 0", "narrow 1"]

    run_async(main())


def test_a_reply_that_comes_although_it_was_cancelled_frees_no_slot_twice(store: Path) -> None:
    """The slots of an account are the whole process's: one freed twice would let too many requests go for ever."""

    class Stubborn(ByItself):
        async def ask(self, request: Request) -> Answered:
            self.asked.append(said(request))
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                pass
            return Reply("all the same"), ()

    async def main() -> None:
        way = Stubborn(echo)
        async with groundswell.open(store, transport=way) as engine:
            run = engine.run("cut")
            asking = [asyncio.create_task(run.submit(one, spec)) for spec in "abc"]
            await until(lambda: len(way.asked) == 3)
            await cut_off(engine, run, *asking)
            assert [lane.pace.in_flight for lane in engine._lanes._by_route.values()] == [0]

    run_async(main())
