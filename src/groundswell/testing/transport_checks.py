"""Checks for every transport."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from groundswell.engine.ports import Singly, Transport
from groundswell.engine.records import Absent, AskId, Found, Intent, Item, Receipt, Undecided, Wave
from groundswell.program.request import Chat, Fault, Message, Reply, Settlement

TransportFactory = Callable[[], Transport]
TransportCheck = Callable[[TransportFactory], Coroutine[Any, Any, None]]

CUSTOM_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
RUN = "conformance"
FIRST = 1 << 32


def make_wave(transport: Transport, number: int, asks: int, *, first_trial: int = 1) -> Wave:
    """A wave of chats, each from a trial of its own."""
    items = tuple(
        Item(AskId(FIRST + first_trial + at, "0"), Chat("m", (Message("user", f"question {first_trial + at}"),)), at)
        for at in range(asks)
    )
    ids = tuple(item.ask for item in items)
    return Wave(FIRST + number, RUN, transport.name, transport.name, ids, 0.0, items=items)


def intent_of(wave: Wave) -> Intent:
    """A wave as it is known after a crash: without its requests."""
    return Intent(wave.id, wave.run, wave.account, wave.transport, wave.asks, wave.at)


async def gather(transport: Transport, intent: Intent, receipt: Receipt) -> dict[AskId, Settlement]:
    """All results of a wave; none may arrive twice."""
    found: dict[AskId, Settlement] = {}
    async for ask, settlement, _ in transport.collect(intent, receipt):
        assert ask not in found, f"{ask} settled twice"
        found[ask] = settlement
    return found


async def every_ask_settles_exactly_once(make: TransportFactory) -> None:
    """In any order, with nothing missing and nothing extra."""
    transport = make()
    wave = make_wave(transport, 1, 7)
    found = await gather(transport, wave, await transport.dispatch(wave))
    assert found.keys() == set(wave.asks)


async def a_wave_of_one_travels(make: TransportFactory) -> None:
    """The smallest wave."""
    transport = make()
    wave = make_wave(transport, 1, 1)
    assert len(await gather(transport, wave, await transport.dispatch(wave))) == 1


async def asks_may_travel_by_themselves(make: TransportFactory) -> None:
    """On transports that allow it: concurrently with a wave of the same asks, each settles."""
    transport = make()
    if isinstance(transport, Singly):
        wave = make_wave(transport, 1, 3)
        receipt = await transport.dispatch(wave)
        singly = asyncio.gather(*[transport.ask(item.request) for item in wave.items])
        assert (await gather(transport, wave, receipt)).keys() == set(wave.asks)
        assert all(isinstance(settlement, Reply | Fault) for settlement, _ in await singly)


async def concurrent_waves_do_not_mix(make: TransportFactory) -> None:
    """Each wave gets its own results while others are in flight."""
    transport = make()
    waves = [make_wave(transport, number, 4, first_trial=number * 10) for number in range(1, 6)]

    async def travel(wave: Wave) -> dict[AskId, Settlement]:
        return await gather(transport, wave, await transport.dispatch(wave))

    for wave, found in zip(waves, await asyncio.gather(*map(travel, waves)), strict=True):
        assert found.keys() == set(wave.asks)


async def results_of_others_are_ignored(make: TransportFactory) -> None:
    """Only asks of the intent settle, even if the server has more results."""
    transport = make()
    wave = make_wave(transport, 1, 5)
    receipt = await transport.dispatch(wave)
    fewer = msgspec.structs.replace(intent_of(wave), asks=wave.asks[:2]) if receipt.data else wave
    found = await gather(transport, fewer, receipt)
    assert found.keys() == set(fewer.asks)


async def a_receipt_with_data_is_good_in_another_process(make: TransportFactory) -> None:
    """It survives JSON, and a new transport collects from it, more than once, without the requests."""
    transport = make()
    wave = make_wave(transport, 1, 4)
    receipt = await transport.dispatch(wave)
    if not receipt.data:
        return
    stored = msgspec.json.decode(msgspec.json.encode(receipt), type=Receipt)
    assert stored == receipt
    first = await gather(make(), intent_of(wave), stored)
    assert first.keys() == set(wave.asks)
    assert await gather(make(), intent_of(wave), stored) == first


async def custom_ids_fit_and_differ(make: TransportFactory) -> None:
    """They have the format of batch APIs and are unique in a wave, and across waves with the same ask."""
    waves = [make_wave(make(), number, 50) for number in (1, 2)]
    ids = [wave.custom_id(ask) for wave in waves for ask in wave.asks]
    assert all(CUSTOM_ID.match(each) for each in ids)
    assert len(set(ids)) == len(ids)
    assert intent_of(waves[0]).custom_id(waves[0].asks[0]) == ids[0]


async def adopt_finds_nothing_of_a_wave_that_never_left(make: TransportFactory) -> None:
    """Its asks may be sent."""
    transport = make()
    assert isinstance(await _decided(transport, make_wave(transport, 1, 3)), Absent)


async def adopt_finds_a_wave_that_left(make: TransportFactory) -> None:
    """A new transport finds its results, or reports that they may have been charged."""
    wave = make_wave(make(), 1, 4)
    given = await make().dispatch(wave)
    transport = make()
    found = await _decided(transport, intent_of(wave))
    if isinstance(found, Found):
        assert (await gather(transport, intent_of(wave), found.receipt)).keys() == set(wave.asks)
    else:
        assert found == Absent(perhaps_paid=True), "the wave is lost, and its possible cost is not reported"
        assert not given.data, "a wave that gives a receipt must be found again"


async def adopt_does_not_mistake_a_wave_for_another(make: TransportFactory) -> None:
    """A retry that was never sent is not found in the wave that carried the same asks before."""
    transport = make()
    wave = make_wave(transport, 1, 3)
    await gather(transport, wave, await transport.dispatch(wave))
    assert isinstance(await _decided(make(), intent_of(make_wave(transport, 2, 3))), Absent)


async def _decided(transport: Transport, intent: Intent) -> Found | Absent:
    """The final result of adopt, which may be undecided for a while."""
    for _ in range(1000):
        found = await transport.adopt(intent)
        if not isinstance(found, Undecided):
            return found
        assert found.retry_in > 0
    raise AssertionError("adopt never decides")


transport_checks: tuple[TransportCheck, ...] = (
    every_ask_settles_exactly_once,
    a_wave_of_one_travels,
    asks_may_travel_by_themselves,
    concurrent_waves_do_not_mix,
    results_of_others_are_ignored,
    a_receipt_with_data_is_good_in_another_process,
    custom_ids_fit_and_differ,
    adopt_finds_nothing_of_a_wave_that_never_left,
    adopt_finds_a_wave_that_left,
    adopt_does_not_mistake_a_wave_for_another,
)
