"""The provider of batches for tests does what real ones do, and the mishaps that it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.engine.batch_quota import Capacity
from groundswell.engine.ports import Batching
from groundswell.engine.records import Absent, Found, Receipt
from groundswell.errors import NoBatches, QueueFull, WaveFailed, WaveOutOfReach, WaveUnsure
from groundswell.program.request import FaultKind, Request
from groundswell.testing.batch import ProviderBooks
from groundswell.testing.clock import FakeClock, pause
from groundswell.testing.conformance import TransportCheck, check_name, transport_checks
from groundswell.testing.provider import Mishap, ProviderBatches
from groundswell.testing.transport_checks import gather, intent_of, make_wave


def yes(request: Request, nth: int) -> str:
    return "yes"


def provider(folder: Path, clock: FakeClock, **knobs: object) -> ProviderBatches:
    return ProviderBatches(ProviderBooks(folder / "books.jsonl"), yes, clock, **({"takes": 60.0} | knobs))  # type: ignore[arg-type]


@pytest.mark.parametrize("check", transport_checks, ids=check_name)
def test_it_is_a_transport(tmp_path: Path, check: TransportCheck) -> None:
    clock = FakeClock()
    clock.run(check(lambda: provider(tmp_path, clock)))


REFUSALS: list[tuple[Mishap, type[Exception]]] = [
    ("full", QueueFull),
    ("none", NoBatches),
    ("unsent", WaveFailed),
    ("lost", WaveUnsure),
    ("taken", WaveUnsure),
]


@pytest.mark.parametrize(("mishap", "error"), REFUSALS)
def test_mishaps_when_a_batch_is_made(tmp_path: Path, mishap: Mishap, error: type[Exception]) -> None:
    clock = FakeClock()

    async def main() -> None:
        way = provider(tmp_path, clock, mishaps=[mishap])
        assert isinstance(way, Batching)
        wave = make_wave(way, 1, 4)
        with pytest.raises(error):
            await way.dispatch(wave)
        assert way.books.placed().total() == (4 if mishap == "taken" else 0)
        assert isinstance(await way.adopt(intent_of(wave)), Found if mishap == "taken" else Absent)

    clock.run(main())


LATER: list[tuple[Mishap, type[Exception], int]] = [("full later", QueueFull, 0), ("out of reach", WaveOutOfReach, 4)]


@pytest.mark.parametrize(("mishap", "error", "paid"), LATER)
def test_mishaps_when_a_batch_is_collected(tmp_path: Path, mishap: Mishap, error: type[Exception], paid: int) -> None:
    clock = FakeClock()

    async def main() -> None:
        way = provider(tmp_path, clock, mishaps=[mishap])
        wave = make_wave(way, 1, 4)
        receipt = await way.dispatch(wave)
        with pytest.raises(error):
            await gather(way, wave, receipt)
        assert way.books.paid().total() == paid

    clock.run(main())


@pytest.mark.parametrize(("mishap", "kind"), [("expires", FaultKind.EXPIRED), ("cancelled", FaultKind.CANCELLED)])
def test_half_a_batch_is_paid_for(tmp_path: Path, mishap: Mishap, kind: FaultKind) -> None:
    clock = FakeClock()

    async def main() -> None:
        way = provider(tmp_path, clock, mishaps=[mishap])
        wave = make_wave(way, 1, 4)
        found = await gather(way, wave, await way.dispatch(wave))
        assert sorted(str(getattr(end, "kind", "reply")) for end in found.values()) == [kind, kind, "reply", "reply"]
        assert way.books.paid().total() == 2

    clock.run(main())


def test_a_batch_can_be_watched_and_cancelled(tmp_path: Path) -> None:
    clock = FakeClock()

    async def main() -> None:
        way = provider(tmp_path, clock, lengths={"m": 40.0})
        receipt = await way.dispatch(make_wave(way, 1, 4))
        await pause(clock, 10.0)
        info = await way.look("batch-0")
        assert info is not None
        assert (info.state, info.total, info.done, info.open) == ("in_progress", 4, 1, True)
        await way.cancel("batch-0")
        again = provider(tmp_path, clock)
        info = again.seen(receipt)
        assert info is not None
        assert (info.state, info.done, info.failed, info.open) == ("cancelled", 4, 3, False)
        assert [batch.id async for batch in again.listed(0.0)] == ["batch-0"]
        assert await again.look("batch-9") is None
        await again.cancel("batch-0")
        assert way.books.paid().total() == 1

    clock.run(main())


def test_no_more_waits_than_the_provider_allows(tmp_path: Path) -> None:
    clock = FakeClock()

    async def main() -> None:
        way = provider(tmp_path, clock, queue=5, tells=True, capacity=Capacity(4, 1 << 20, None, "requests"))
        first = make_wave(way, 1, 4)
        receipt = await way.dispatch(first)
        with pytest.raises(QueueFull) as full:
            await way.dispatch(make_wave(way, 2, 2))
        assert full.value.limit == 5
        await gather(way, first, receipt)
        assert await way.dispatch(make_wave(way, 3, 2)) == Receipt({"batch": "batch-1"})
        with pytest.raises(AssertionError):
            await way.dispatch(make_wave(way, 4, 5))

    clock.run(main())
