"""Batches in a storm: whatever goes wrong on the way, and however often, every ask is answered, and paid for once."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from groundswell.engine.records import Absent, Found, Receipt, Undecided, Wave
from groundswell.errors import WaveFailed, WaveUnsure
from groundswell.program.request import Fault, Reply, Settlement
from groundswell.transports.batch import BatchTransport
from tests.transports.batch_scene import KINDS, Scene, forgotten, gathered
from tests.transports.little import serving

STORM = tuple(
    Rule(fault=fault, rate=rate)
    for fault, rate in {
        **dict.fromkeys(("500", "502", "503", "529", "408", "html"), 0.03),
        **dict.fromkeys(("drop", "drop-after", "truncated", "malformed", "results-cut"), 0.06),
        "results-short": 0.02,
        **dict.fromkeys(("enqueued-at-create", "429"), 0.05),
    }.items()
)


async def taken(scene: Scene, transport: BatchTransport, wave: Wave) -> Receipt | None:
    """The receipt of a wave, found out in another process if its order was lost; None if it was not taken."""
    try:
        return await transport.dispatch(wave)
    except WaveFailed:
        return None
    except WaveUnsure:
        other = type(transport)(scene.account, clock=scene.clock)
    try:
        while isinstance(found := await other.adopt(forgotten(wave)), Undecided):
            scene.clock.move(found.retry_in)
    finally:
        await other.close()
    assert found == Absent() or isinstance(found, Found)
    return found.receipt if isinstance(found, Found) else None


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_every_ask_is_paid_once(kind: str, seed: int) -> None:
    with running(Settings(seed=seed, faults=STORM)) as emulator:
        scene = Scene(kind, emulator.url, emulator)

        async def use(transport: BatchTransport) -> list[Settlement]:
            found: list[Settlement] = []
            for number in range(4):
                wave = scene.wave(10, 100 * number, f"run-{number}")
                while (receipt := await taken(scene, transport, wave)) is None:
                    wave = msgspec.structs.replace(wave, id=wave.id + 1, at=scene.clock.wall())
                found += (await gathered(transport, forgotten(wave), receipt)).values()
            return found

        found = scene.run(use)
        totals = emulator.ledger()["totals"]
    assert len(found) == 40
    assert [one for one in found if isinstance(one, Fault)] == []
    assert all(isinstance(one, Reply) for one in found)
    assert (totals["batch_requests"], totals["requests"]) == (40, 0)
    assert totals["refused"] + totals["unanswered"] > 3, "it was no storm"


@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_leaves_nothing_behind(kind: str) -> None:
    """While one waits for an answer, a look or a result."""
    with serving(lambda got: None) as little:
        scene = Scene(kind, little.url)
        wave = scene.wave(3)

        async def use(transport: BatchTransport) -> None:
            sending = transport.dispatch(wave)
            looking = gathered(transport, wave, Receipt({"batch": "batch_1"}))
            tasks = [asyncio.ensure_future(sending), asyncio.ensure_future(looking)]
            while len(little.got) < 2:
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(end) for end in ends] == [asyncio.CancelledError] * 2

        scene.run(use)
