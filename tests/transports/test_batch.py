"""What the batches of both providers do alike, over real HTTP, against the emulator."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded
from groundswell.engine.ports import Batching
from groundswell.engine.records import Absent, BatchInfo, Found, Intent, Receipt, Undecided, Wave
from groundswell.errors import NoBatches, QueueFull, WaveError, WaveFailed, WaveLost, WaveOutOfReach, WaveUnsure
from groundswell.program.request import Chat, Fault, FaultKind, Reply, user
from groundswell.transports.batch import SKEW, BatchTransport
from groundswell.transports.batch_client import ANSWER, ORDER, SILENCE, Patience
from tests.transports.batch_scene import KEY, KINDS, Scene, forgotten, gathered, there_and_back
from tests.transports.little import closed_port

CREATE = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}
LOOK = {"openai": "/v1/batches/batch_*", "anthropic": "/v1/messages/batches/msgbatch_*[0-9a-f]"}
RESULTS = {"openai": "/v1/files/*/content", "anthropic": "/v1/messages/batches/*/results"}
DAY = 86_400.0


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest, emulator: Threaded) -> Scene:
    return Scene(request.param, emulator.url, emulator)


@pytest.fixture
def calm(scene: Scene, emulator: Threaded) -> Scene:
    """The same for a batch that takes a day: it is looked at now and then."""
    return Scene(scene.dialect, emulator.url, emulator, batch_poll=1800.0)


def raised_by(scene: Scene, wave: Wave, **options: Any) -> WaveError:
    """What sending and collecting a wave raises."""
    with pytest.raises(WaveError) as raised:
        scene.run(lambda transport: there_and_back(transport, wave), **options)
    return raised.value


def batches(scene: Scene) -> list[BatchInfo]:
    """All that the account has."""

    async def use(transport: BatchTransport) -> list[BatchInfo]:
        return [info async for info in transport.listed(0.0)]

    return scene.run(use)


def faults(found: dict[int, Any]) -> list[FaultKind]:
    return [one.kind for _, one in sorted(found.items()) if isinstance(one, Fault)]


# What they are.


def test_they_are_what_the_engine_wants_of_batches(scene: Scene) -> None:
    async def use(transport: BatchTransport) -> None:
        assert isinstance(transport, Batching)
        assert (transport.barrier, transport.cached, transport.vectorised, transport.ready) == (True, True, False, True)
        assert transport.max_wave == transport.capacity.requests
        assert transport.owner == scene.account.owner
        assert KEY not in transport.owner

    scene.run(use)


def test_what_a_batch_holds(emulator: Threaded) -> None:
    openai = Scene("openai", emulator.url, batch_queue=2_000_000)
    anthropic = Scene("anthropic", emulator.url, batch_queue=300_000)

    async def capacity(transport: BatchTransport) -> tuple[Any, ...]:
        return tuple(transport.capacity)

    assert openai.run(capacity) == (50_000, 199_000_000, 2_000_000, "tokens")
    assert anthropic.run(capacity) == (100_000, 255_000_000, 300_000, "requests")


def test_the_provider_s_own_name_for_a_model(scene: Scene) -> None:
    wave = scene.wave([Chat("mine", (user("hello"),), max_tokens=5)])

    async def use(transport: BatchTransport) -> Any:
        transport.models["mine"] = scene.model
        return await there_and_back(transport, wave)

    (reply,) = scene.run(use).values()
    assert isinstance(reply, Reply)


# Sending.


def test_nothing_of_a_wave_is_lost_or_doubled(scene: Scene, emulator: Threaded) -> None:
    found = scene.there_and_back(scene.wave(600))
    assert sorted(found) == list(range(600))
    assert faults(found) == []
    totals = emulator.ledger()["totals"]
    assert (totals["batch_requests"], totals["requests"], len(batches(scene))) == (600, 0, 1)


REFUSED = {
    "429": (QueueFull, FaultKind.RATE_LIMITED),
    "400": (WaveFailed, FaultKind.UNSENT),
    "413": (WaveFailed, FaultKind.UNSENT),
    "401": (WaveFailed, FaultKind.AUTH),
    "403": (WaveFailed, FaultKind.AUTH),
    "quota": (WaveFailed, FaultKind.QUOTA),
    "404": (NoBatches, FaultKind.UNSENT),
    "enqueued-at-create": (QueueFull, FaultKind.UNSENT),
}


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("fault", REFUSED)
def test_an_order_that_is_refused(scene: Scene, emulator: Threaded, fault: str) -> None:
    emulator.set_faults(Rule(fault=fault, path=CREATE[scene.dialect], method="POST", times=1))
    error = raised_by(scene, scene.wave(3))
    kind, why = REFUSED[fault]
    assert type(error) is kind
    assert isinstance(error, WaveFailed)
    assert error.fault.kind is why
    assert batches(scene) == [], "an order was placed again"


UNSURE = [
    "408",
    "409",
    "500",
    "502",
    "503",
    "504",
    "529",
    "drop",
    "html",
    "drop-after",
    "truncated",
    "malformed",
]


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("fault", UNSURE)
def test_an_order_of_which_nobody_knows(scene: Scene, emulator: Threaded, fault: str) -> None:
    """It is placed once, and then it is looked for; what was taken is found, and what was not is not."""
    emulator.set_faults(Rule(fault=fault, path=CREATE[scene.dialect], method="POST", times=1))
    wave = scene.wave(3)

    async def use(transport: BatchTransport) -> None:
        with pytest.raises(WaveUnsure):
            await transport.dispatch(wave)
        found = await decided(scene, transport, wave)
        taken = [info async for info in transport.listed(0.0)]
        if isinstance(found, Found):
            assert [found.receipt.data["batch"]] == [info.id for info in taken]
            assert faults(await gathered(transport, wave, found.receipt)) == []
        else:
            assert (found, taken) == (Absent(), [])

    scene.run(use)
    assert bool(batches(scene)) is (fault in ("drop-after", "truncated", "malformed"))


async def decided(scene: Scene, transport: BatchTransport, intent: Intent) -> Found | Absent:
    """What is found out in the end."""
    while isinstance(found := await transport.adopt(intent), Undecided):
        assert found.retry_in > 0
        scene.clock.move(found.retry_in)
    return found


def test_no_answer_in_time(emulator: Threaded) -> None:
    scene = Scene("anthropic", emulator.url, emulator, batch_patience=0.2)
    emulator.set_faults(Rule(fault="hang", path=CREATE["anthropic"], times=1))
    assert type(raised_by(scene, scene.wave(2))) is WaveUnsure


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_there(kind: str) -> None:
    with closed_port() as port:
        scene = Scene(kind, f"http://127.0.0.1:{port}")
        error = raised_by(scene, scene.wave(2))
    assert type(error) is WaveFailed
    assert error.fault.kind is FaultKind.CONNECTION


# Waiting.


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("fault", ["503", "429", "html", "drop", "malformed"])
def test_faults_while_waiting_are_waited_out(scene: Scene, emulator: Threaded, fault: str) -> None:
    emulator.set_faults(Rule(fault=fault, path=LOOK[scene.dialect], method="GET", times=50))
    assert faults(scene.there_and_back(scene.wave(3))) == []


def test_a_provider_says_when_to_look_again(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="429", path=LOOK[scene.dialect], method="GET", times=2, retry_after=700))
    assert faults(scene.there_and_back(scene.wave(3))) == []
    assert [round(wait) for wait in scene.clock.pauses if wait > 60] == [700, 700]


def test_looks_grow_rarer(emulator: Threaded) -> None:
    scene = Scene("openai", emulator.url, emulator, batch_poll=20.0)
    scene.there_and_back(scene.wave(3))
    waits = scene.clock.pauses
    assert waits[0] <= 1.25
    assert all(later <= 1.5 * 1.67 * sooner for sooner, later in pairwise(waits))
    assert 14 < waits[-1] <= 25


def test_nothing_is_heard_for_too_long(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="503", path=LOOK[scene.dialect], method="GET"))
    error = raised_by(scene, scene.wave(3), patience=Patience(3600.0, silence=3600.0))
    assert isinstance(error, WaveOutOfReach)
    assert error.fault.kind is FaultKind.UNREACHABLE
    assert "1.0 hours" in error.fault.message


def test_a_key_that_is_not_good_any_more(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="401", path=LOOK[scene.dialect], method="GET"))
    error = raised_by(scene, scene.wave(3))
    assert isinstance(error, WaveOutOfReach)
    assert error.fault.kind is FaultKind.AUTH
    assert len(scene.clock.pauses) == 1, "it was waited out"


@pytest.mark.sampled
@pytest.mark.parametrize("times", [2, 3, 40])
def test_404s_for_a_batch_that_is_listed_are_no_loss(scene: Scene, emulator: Threaded, times: int) -> None:
    """A provider that does not show a new batch by its id yet still lists it."""
    emulator.set_faults(Rule(fault="404", path=LOOK[scene.dialect], method="GET", times=times))
    assert faults(scene.there_and_back(scene.wave(3))) == []
    assert emulator.ledger()["totals"]["batch_requests"] == 3


@pytest.mark.parametrize("times", [3, 40])
def test_404s_while_the_list_cannot_be_had_are_borne(scene: Scene, emulator: Threaded, times: int) -> None:
    emulator.set_faults(
        Rule(fault="404", path=LOOK[scene.dialect], method="GET", times=times),
        Rule(fault="503", path=CREATE[scene.dialect], method="GET", times=times),
    )
    assert faults(scene.there_and_back(scene.wave(3))) == []


def test_a_batch_that_is_only_listed_is_collected(scene: Scene, emulator: Threaded) -> None:
    """Its id is never known to the provider, and what the list says of it is enough."""
    emulator.set_faults(Rule(fault="404", path=LOOK[scene.dialect], method="GET"))
    assert faults(scene.there_and_back(scene.wave(3))) == []


def test_a_batch_that_is_not_there_any_more(scene: Scene, emulator: Threaded) -> None:
    """Neither by its id nor on the list, for the whole patience."""
    wave = scene.wave(3)

    async def use(transport: BatchTransport) -> None:
        receipt = await transport.dispatch(wave)
        emulator.reset()
        await gathered(transport, wave, receipt)

    before = scene.clock.now()
    with pytest.raises(WaveLost, match=r"has not returned batch .* for 6\d minutes") as raised:
        scene.run(use)
    assert raised.value.fault.kind is FaultKind.GARBLED
    assert 3600.0 <= scene.clock.now() - before < 3600.0 + 120


def test_how_long_a_missing_batch_is_looked_for_is_a_setting(emulator: Threaded) -> None:
    scene = Scene("openai", emulator.url, emulator, batch_patience=20.0)
    wave = scene.wave(3)

    async def use(transport: BatchTransport) -> None:
        receipt = await transport.dispatch(wave)
        emulator.reset()
        await gathered(transport, wave, receipt)

    with pytest.raises(WaveLost, match=r"for [23]\d seconds"):
        scene.run(use)


def test_a_short_timeout_for_chats_makes_no_hasty_batches(scene: Scene, emulator: Threaded) -> None:
    """Neither for an order without an answer nor for a batch that is not shown."""
    hasty = Scene(scene.dialect, emulator.url, emulator, timeout=2.0)
    wave, lost = hasty.wave(3), hasty.wave(3, 2)

    async def use(transport: BatchTransport) -> None:
        before = hasty.clock.now()
        assert await decided(hasty, transport, forgotten(wave)) == Absent()
        assert hasty.clock.now() - before >= 120.0
        receipt = await transport.dispatch(lost)
        emulator.reset()
        before = hasty.clock.now()
        with pytest.raises(WaveLost):
            await gathered(transport, lost, receipt)
        assert hasty.clock.now() - before >= 3600.0

    hasty.run(use)


def test_a_receipt_that_names_no_batch(scene: Scene) -> None:
    with pytest.raises(WaveFailed, match="has no batch id"):
        scene.run(lambda transport: gathered(transport, scene.wave(1), Receipt({"batch": "../x"})))


# Results.


@pytest.mark.sampled
@pytest.mark.parametrize("fault", ["results-cut", "results-short", "500", "503", "drop", "truncated"])
def test_results_that_come_in_pieces(scene: Scene, emulator: Threaded, fault: str) -> None:
    """They are read again, and nothing is settled twice."""
    emulator.set_faults(Rule(fault=fault, path=RESULTS[scene.dialect], method="GET", times=2))
    found = scene.there_and_back(scene.wave(300))
    assert sorted(found) == list(range(300))
    assert faults(found) == []


@pytest.mark.sampled
def test_results_that_break_off_again_and_again(scene: Scene, emulator: Threaded) -> None:
    """What came of them is taken in; the rest can be had later."""
    emulator.set_faults(Rule(fault="results-cut", path=RESULTS[scene.dialect]))
    wave, came = scene.wave(900), []

    async def use(transport: BatchTransport) -> None:
        async for settled in transport.collect(wave, await transport.dispatch(wave)):
            came.append(settled)

    with pytest.raises(WaveOutOfReach, match="connection was lost"):
        scene.run(use, patience=Patience(3600.0, silence=3600.0))
    assert 0 < len(came) < 900
    assert len({settled.ask for settled in came}) == len(came)


def test_results_that_are_too_large_are_not_read_for_a_day(scene: Scene) -> None:
    wave = scene.wave(3)

    async def use(transport: BatchTransport) -> None:
        transport.client.http._largest_file = 10
        assert [settled async for settled in transport.collect(wave, await transport.dispatch(wave))] == []

    with pytest.raises(WaveOutOfReach, match="the file is too large: more than 10 bytes"):
        scene.run(use)
    assert scene.clock.now() < 3600.0


@pytest.mark.parametrize("times", [3, 20])
def test_404s_for_results_are_borne(scene: Scene, emulator: Threaded, times: int) -> None:
    emulator.set_faults(Rule(fault="404", path=RESULTS[scene.dialect], times=times))
    assert faults(scene.there_and_back(scene.wave(3))) == []


def test_results_that_are_not_there(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="404", path=RESULTS[scene.dialect]))
    error = raised_by(scene, scene.wave(3))
    assert type(error) is WaveLost
    assert "has not returned the results of batch" in error.fault.message
    assert scene.clock.now() >= 3600.0


def test_lines_that_cannot_be_read(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(script=("ok", "line-garbled", "line-stranger", "line-twice", "line-lost", "ok")))
    found = scene.there_and_back(scene.wave(6))
    assert sorted(found) == list(range(6))
    assert faults(found) == [FaultKind.GARBLED] * 2
    assert {one.message for one in found.values() if isinstance(one, Fault)} == {
        "the batch ended without a result for this request"
    }


def test_a_batch_that_expires(calm: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="batch-stalls", path=CREATE[calm.dialect]))
    found = calm.there_and_back(calm.wave(6))
    assert faults(found) == [FaultKind.EXPIRED] * 3
    assert calm.seen.all[-1].state == "expired"


def test_a_batch_that_is_cancelled(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="batch-stalls", path=CREATE[scene.dialect]))
    wave = scene.wave(6)

    async def use(transport: BatchTransport) -> dict[int, Any]:
        receipt = await transport.dispatch(wave)
        scene.clock.move(1000.0)
        await transport.cancel(receipt.data["batch"])
        info = await transport.look(receipt.data["batch"])
        assert info is not None
        assert info.state == "cancelling"
        return await gathered(transport, wave, receipt)

    found = scene.run(use)
    assert faults(found) == [FaultKind.CANCELLED] * 3
    assert scene.seen.all[-1].state == "cancelled"


# Finding a wave again.


def test_another_process_finds_it(scene: Scene) -> None:
    wave, others = scene.wave(3), [scene.wave(3, 2), scene.wave(3, 1, "another-run"), scene.wave(4, 3)]

    async def send(transport: BatchTransport) -> Receipt:
        for other in others[:2]:
            await transport.dispatch(other)
        receipt = await transport.dispatch(wave)
        await transport.dispatch(others[2])
        return receipt

    receipt = scene.run(send)
    found = scene.run(lambda transport: decided(scene, transport, forgotten(wave)))
    assert found == Found(receipt)
    assert msgspec.json.decode(msgspec.json.encode(receipt), type=Receipt) == receipt


def test_a_wave_that_never_left(scene: Scene) -> None:
    """Others of its size are there. That it is absent is said only when its order cannot be on its way any more."""
    wave = scene.wave(3)

    async def use(transport: BatchTransport) -> None:
        await there_and_back(transport, scene.wave(3, 2))
        before = scene.clock.now()
        assert isinstance(await transport.adopt(forgotten(wave)), Undecided)
        assert await decided(scene, transport, forgotten(wave)) == Absent()
        assert ORDER <= scene.clock.now() - before < ORDER + 120

    scene.run(use)


def test_a_wave_of_long_ago(scene: Scene) -> None:
    wave = scene.wave(3)
    scene.clock.move(SKEW + ANSWER + 1)
    assert scene.run(lambda transport: transport.adopt(forgotten(wave))) == Absent()


def test_one_s_own_order_is_not_of_long_ago(scene: Scene, emulator: Threaded) -> None:
    """However long it took to send."""
    wave = scene.wave(3)
    scene.clock.move(2 * 3600.0)
    emulator.set_faults(Rule(fault="drop", path=CREATE[scene.dialect], method="POST", times=1))

    async def use(transport: BatchTransport) -> None:
        with pytest.raises(WaveUnsure):
            await transport.dispatch(wave)
        assert await transport.adopt(wave) == Undecided(ORDER)

    scene.run(use)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("fault", ["503", "html", "drop", "404"])
def test_a_list_that_cannot_be_seen_decides_nothing(scene: Scene, emulator: Threaded, fault: str) -> None:
    wave = scene.wave(3)
    receipt = scene.run(lambda transport: transport.dispatch(wave))
    emulator.set_faults(Rule(fault=fault, path=CREATE[scene.dialect], method="GET", times=2))

    async def use(transport: BatchTransport) -> None:
        for _ in range(2):
            assert isinstance(await transport.adopt(forgotten(wave)), Undecided)
        assert await decided(scene, transport, forgotten(wave)) == Found(receipt)

    scene.run(use)


def test_a_list_that_is_never_seen_decides_nothing(scene: Scene, emulator: Threaded) -> None:
    """However long that takes: what may have been paid for is not ordered again."""
    emulator.set_faults(Rule(fault="404", path=CREATE[scene.dialect], method="GET"))
    wave = scene.wave(3)

    async def use(transport: BatchTransport) -> None:
        for _ in range(20):
            assert isinstance(await transport.adopt(forgotten(wave)), Undecided)
            scene.clock.move(3600)

    scene.run(use)


def test_a_list_that_nobody_has_seen_for_a_day_ends_the_search(scene: Scene, emulator: Threaded) -> None:
    """The wave stays open. A run that looked for ever would never end."""
    emulator.set_faults(Rule(fault="404", path=CREATE[scene.dialect], method="GET"))
    wave = scene.wave(3)

    async def use(transport: BatchTransport) -> None:
        assert isinstance(await transport.adopt(forgotten(wave)), Undecided)
        scene.clock.move(SILENCE + 1)
        with pytest.raises(WaveOutOfReach, match="the list of batches could not be checked"):
            await transport.adopt(forgotten(wave))

    scene.run(use)


def test_a_clock_in_the_wrong_time_zone(scene: Scene) -> None:
    """What was ordered while our clock was ahead by hours is found all the same."""
    wave = msgspec.structs.replace(scene.wave(3), at=scene.clock.wall() + 14 * 3600.0)
    receipt = scene.run(lambda transport: transport.dispatch(wave))
    assert scene.run(lambda transport: decided(scene, transport, forgotten(wave))) == Found(receipt)


def test_a_key_that_may_not_look(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="403", path=CREATE[scene.dialect], method="GET"))
    with pytest.raises(WaveOutOfReach) as raised:
        scene.run(lambda transport: transport.adopt(forgotten(scene.wave(3))))
    assert raised.value.fault.kind is FaultKind.AUTH


# What people may want.


def test_looking_at_a_batch(scene: Scene, emulator: Threaded) -> None:
    async def use(transport: BatchTransport) -> None:
        receipt = await transport.dispatch(scene.wave(3))
        emulator.set_faults(Rule(fault="503", method="GET", times=2))
        info = await transport.look(receipt.data["batch"])
        assert info is not None
        assert info.open
        assert info.expires_at == pytest.approx(info.created_at + DAY)
        assert info.created_at == receipt.data["created_at"]
        assert await transport.look("batch_unheard_of") is None
        assert await transport.look("../models") is None

    scene.run(use)


def test_batches_are_listed_newest_first(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"groundswell.providers.{scene.dialect}.PER_PAGE", 2)
    times: list[float] = []

    async def use(transport: BatchTransport) -> None:
        for number in range(5):
            receipt = await transport.dispatch(scene.wave(number + 1, number))
            times.append(receipt.data["created_at"])
            scene.clock.move(100)
        found = [info.created_at async for info in transport.listed(times[1] - 1)]
        assert found == times[:0:-1]

    scene.run(use)


def test_a_batch_that_has_ended_is_cancelled_in_vain(scene: Scene) -> None:
    async def use(transport: BatchTransport) -> None:
        wave = scene.wave(3)
        receipt = await transport.dispatch(wave)
        await gathered(transport, wave, receipt)
        await transport.cancel(receipt.data["batch"])
        info = await transport.look(receipt.data["batch"])
        assert info is not None
        assert info.state == "completed"

    scene.run(use)


@pytest.mark.parametrize("batch", ["batch_unheard_of", "../models"])
def test_there_is_nothing_to_cancel(scene: Scene, batch: str) -> None:
    with pytest.raises(WaveFailed) as raised:
        scene.run(lambda transport: transport.cancel(batch))
    assert raised.value.fault.kind is FaultKind.NOT_FOUND


@pytest.mark.parametrize(
    "use",
    [lambda transport: transport.look("batch_1"), lambda transport: transport.cancel("batch_1")],
    ids=["look", "cancel"],
)
def test_what_cannot_be_seen_is_out_of_reach(
    scene: Scene, emulator: Threaded, use: Callable[[BatchTransport], Any]
) -> None:
    emulator.set_faults(Rule(fault="503"))
    with pytest.raises(WaveOutOfReach):
        scene.run(use)


def test_a_list_that_cannot_be_seen_is_out_of_reach(scene: Scene, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="401"))
    with pytest.raises(WaveOutOfReach):
        batches(scene)
