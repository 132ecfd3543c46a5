"""Who gets into a run, when, and in what order; and what a recovered wave costs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Request, RunOptions, RunStopped, SettingsError, Usage
from groundswell.engine import admission
from groundswell.engine.events import Event, WaveSent
from groundswell.engine.ports import Route, Transport
from groundswell.engine.records import EndpointFigures, Via
from groundswell.testing.batch import ProviderBooks, ScriptedBatch
from groundswell.testing.clock import FakeClock
from groundswell.transports.scripted import Scripted
from tests.engine.scenario import counters, run_async
from tests.engine.stage import Gate, echo, one, said, until


def test_a_barrier_gets_everything_into_one_wave(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if there is more than may wait for a slow driver."""
    monkeypatch.setattr(admission, "MOST_BACKLOG", 100)
    sizes: list[int] = []

    def listen(event: Event) -> None:
        sizes.extend([event.size] if isinstance(event, WaveSent) else [])

    async def main() -> int:
        transport = Scripted(echo, barrier=True, max_wave=50_000)
        async with groundswell.open(store, transport=transport, listeners=[listen]) as engine:
            return len([outcome async for outcome in engine.run("story").map(one, map(str, range(900)))])

    assert run_async(main()) == 900
    assert sizes == [900]


@pytest.mark.parametrize("window", [1, 3])
def test_submits_that_wait_are_let_in_in_the_order_in_which_they_came(store: Path, window: int) -> None:
    words = [str(number) for number in range(40)]
    asked: list[str] = []

    def model(request: Request) -> str:
        asked.append(said(request))
        return "yes"

    async def main() -> None:
        async with groundswell.open(store, script=model) as engine:
            run = engine.run("story", options=RunOptions(window=window))
            await asyncio.gather(*[run.submit(one, word) for word in words])

    run_async(main())
    assert asked == words


def test_each_place_that_is_made_wakes_one_submit(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count, waits = 400, 0
    wait = admission.Admission._wait_for_room

    async def counting(self: admission.Admission) -> None:
        nonlocal waits
        waits += 1
        await wait(self)

    monkeypatch.setattr(admission.Admission, "_wait_for_room", counting)

    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            run = engine.run("story", options=RunOptions(window=20))
            await asyncio.gather(*[run.submit(one, str(number)) for number in range(count)])

    run_async(main())
    assert waits <= count


def test_a_submit_that_is_cancelled_when_its_turn_came_passes_it_on(store: Path) -> None:
    gate = Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate) as engine:
            run = engine.run("story", options=RunOptions(window=1))
            first, second, third = [asyncio.create_task(run.submit(one, word)) for word in "abc"]
            await until(lambda: len(run.admission._room) == 2)
            await until(lambda: gate.waiting)
            gate.let("a")
            await until(lambda: len(run.admission._room) < 2)
            second.cancel()
            await first
            while not third.done():
                for word in list(gate.waiting):
                    gate.let(word)
                await asyncio.to_thread(int)
            assert third.result().result == "c!"

    run_async(main())


def test_a_function_that_is_no_program_is_refused(store: Path) -> None:
    async def plain(trial: Any, spec: str) -> str:
        return spec

    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            async for _ in engine.run("story").map(plain, ["a"]):  # type: ignore[arg-type]
                pass

    with pytest.raises(SettingsError, match=r"plain.*is not a program: decorate.*@program"):
        run_async(main())


class Switch:
    """Sends new requests by one of two ways, and knows both."""

    def __init__(self, now: Transport, *also: Transport) -> None:
        self._now = now
        self._by_name = {way.name: way for way in (now, *also)}

    def route(self, request: Request, via: Via = "live") -> Route:
        return Route("account", self._now)

    def transport(self, name: str, account: str) -> Transport | None:
        return self._by_name.get(name)

    def figures(self) -> dict[str, list[EndpointFigures]]:
        return {}

    async def close(self) -> None:
        return


def test_a_wave_that_was_in_flight_costs_what_its_own_way_costs(store: Path) -> None:
    clock, books = FakeClock(), ProviderBooks(store.with_suffix(".books"))
    live = Scripted(echo, name="live")

    def batch() -> ScriptedBatch:
        return ScriptedBatch(books, lambda request, _: echo(request), clock)

    def prices(model: str, usage: Usage, transport: str) -> float:
        return {"batch": 0.5, "live": 1.0}[transport]

    async def left() -> None:
        async with groundswell.open(store, router=Switch(batch()), prices=prices, clock=clock) as engine:
            run = engine.run("story")
            task = asyncio.create_task(run.submit(one, "a"))
            await until(books.entries)
            run.stop("interrupted", "enough")
            await task

    async def resumed() -> None:
        async with groundswell.open(store, router=Switch(live, batch()), prices=prices, clock=clock) as engine:
            assert (await engine.run("story").submit(one, "a")).result == "a!"

    with pytest.raises(RunStopped):
        run_async(left())
    run_async(resumed())
    assert (counters(store).usd, counters(store).sent) == (0.5, 1)
    assert set(books.paid().values()) == {1}


@pytest.mark.parametrize("sizes", [(7,), (3, 4), (2, 2, 3)])
def test_a_map_that_goes_on_has_the_keys_of_one_map(store: Path, sizes: tuple[int, ...]) -> None:
    """However the specs are divided, and with specs that occur twice."""
    words, keys = iter(["a", "b", "a", "c", "b", "a", "d"]), []

    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            run = engine.run("story")
            for size in sizes:
                specs = [next(words) for _ in range(size)]
                keys.extend([outcome.key async for outcome in run.map(one, specs, goes_on=True)])
            keys.extend([outcome.key async for outcome in run.map(one, ["a"])])

    run_async(main())
    first = keys[0]
    assert len(set(keys)) == 8
    assert keys == [first, keys[1], f"{first}#1", keys[3], f"{keys[1]}#1", f"{first}#2", keys[6], f"{first}@1"]
