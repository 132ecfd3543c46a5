"""OpenAI's batches over real HTTP, against the emulator."""

from __future__ import annotations

import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded
from groundswell.engine.records import Receipt
from groundswell.errors import WaveError
from groundswell.program.request import Embedding, Fault, FaultKind, Reply
from groundswell.transports.batches import Batches
from groundswell.transports.openai_batch import OpenAIBatch
from tests.transports.batch_scene import Scene, embeds, forgotten, gathered


@pytest.fixture
def scene(emulator: Threaded) -> Scene:
    return Scene(OpenAIBatch, emulator.url, emulator)


def test_a_wave_there_and_back(scene: Scene, emulator: Threaded) -> None:
    found = scene.there_and_back(scene.wave(7))
    assert sorted(found) == list(range(7))
    assert all(isinstance(settlement, Reply) and settlement.text for settlement in found.values())
    totals = emulator.ledger()["totals"]
    assert (totals["batch_requests"], totals["requests"]) == (7, 0)


def test_embeddings(scene: Scene) -> None:
    wave = scene.wave(embeds("text-embedding-3-small", 3))
    found = scene.there_and_back(wave)
    assert [len(one.vectors) for at in range(3) if isinstance(one := found[at], Embedding)] == [1, 2, 3]


@pytest.mark.parametrize("requests", [3, "embeddings"])
def test_another_process_collects_the_same(scene: Scene, requests: object) -> None:
    wave = scene.wave(3 if requests == 3 else embeds("text-embedding-3-small", 3))
    receipt = scene.run(lambda transport: transport.dispatch(wave))
    first = scene.run(lambda transport: gathered(transport, wave, receipt))
    assert scene.run(lambda transport: gathered(transport, forgotten(wave), receipt)) == first
    assert not any(isinstance(one, Fault) for one in first.values())


def test_everybody_may_see_how_it_goes(scene: Scene) -> None:
    wave = scene.wave(40)

    async def use(transport: Batches) -> None:
        receipt = await transport.dispatch(wave)
        await gathered(transport, wave, receipt)
        last = transport.seen(receipt)
        assert last is not None
        assert (last.state, last.total, last.done, last.failed) == ("completed", 40, 40, 0)
        assert (last.run, last.wave) == (wave.run, wave.id)
        assert last.ended_at is not None
        assert last.ended_at >= last.created_at
        assert transport.seen(Receipt({"batch": "another"})) is None

    scene.run(use)
    assert scene.seen.states[:2] == ["validating", "in_progress"]
    assert scene.seen.states[-1] == "completed"
    done = [info.done for info in scene.seen.all]
    assert done == sorted(done)
    assert len(set(done)) > 3, "its progress was not told"
    assert len(scene.seen.all) == len(set(scene.seen.all)), "no news was told"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("line-500", FaultKind.SERVER),
        ("line-429", FaultKind.RATE_LIMITED),
        ("line-400", FaultKind.BAD_REQUEST),
        ("line-bare", FaultKind.SERVER),
        ("line-lost", FaultKind.GARBLED),
        ("line-filter", FaultKind.FILTERED),
        ("low-balance", FaultKind.QUOTA),
    ],
)
def test_lines_that_go_wrong(scene: Scene, emulator: Threaded, fault: str, kind: FaultKind) -> None:
    emulator.set_faults(Rule(script=("ok", fault, "ok", fault, "ok")))
    found = scene.there_and_back(scene.wave(5))
    assert sorted(found) == list(range(5))
    assert [one.kind for one in found.values() if isinstance(one, Fault)] == [kind, kind]


def test_nothing_but_errors(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="line-500"))
    found = scene.there_and_back(scene.wave(3))
    assert [one.kind for one in found.values() if isinstance(one, Fault)] == [FaultKind.SERVER] * 3


def test_the_key_is_wrong(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="401"))
    with pytest.raises(WaveError) as raised:
        scene.there_and_back(scene.wave(3))
    assert raised.value.fault.kind is FaultKind.AUTH  # type: ignore[attr-defined]
