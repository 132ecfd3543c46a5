"""Attacks on the path of live asks: what breaks in one place must not hang, starve or miscount another."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Engine, Fault, Reply, Request, Run, RunOptions, StoreError, Trial, program
from groundswell.compose import OneWay, at_once
from groundswell.engine.clock import LoopClock
from groundswell.engine.ports import Answered, Route, Transport
from groundswell.program.request import Settlement
from groundswell.store.journal import Store
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
            await until(lambda: run.dispatch.flying)
            await cut_off(engine, run, asking)
        async with groundswell.open(store, transport=ByItself(echo)) as engine:
            await engine.run("other").submit(one, "a")
        spoil_the_cache(store)
        async with groundswell.open(store, transport=ByItself(echo)) as engine:
            with pytest.raises(msgspec.DecodeError):
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
            assert engine._lanes.asked == {}

    run_async(main())
