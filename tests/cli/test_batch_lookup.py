"""Looking at batches: what is made of providers that are slow, odd or not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from groundswell import batch_lookup
from groundswell.batch_lookup import MOST_ENDED, BatchStates, Problem, Providers
from groundswell.engine.batch_quota import Capacity
from groundswell.engine.ports import Route, Transport
from groundswell.engine.records import Absent, BatchInfo, EndpointFigures, Intent, Receipt, Settled, Via, Wave
from groundswell.errors import WaveOutOfReach
from groundswell.program.request import Fault, FaultKind, Request
from groundswell.store.journal import Store
from groundswell.store.waves import StoredWave
from tests.store.planted import OWNER, Planted

Look = Callable[[str], Coroutine[Any, Any, BatchInfo | None]]


class FakeBatches:
    """Batches of one account, looked at as a test says."""

    name = "openai_batch"
    barrier, cached, vectorised, ready = True, True, False, True
    max_wave = 10
    capacity = Capacity(10, 1000)

    def __init__(self, look: Look, owner: str = OWNER) -> None:
        self.owner = owner
        self._look = look
        self.most = self.now = 0

    async def look(self, batch: str) -> BatchInfo | None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self._look(batch)
        finally:
            self.now -= 1

    def listed(self, since: float) -> AsyncIterator[BatchInfo]:
        raise NotImplementedError

    async def cancel(self, batch: str) -> None:
        raise NotImplementedError

    def size(self, request: Request) -> int | Fault:
        raise NotImplementedError

    def seen(self, receipt: Receipt) -> BatchInfo | None:
        return None

    async def dispatch(self, wave: Wave) -> Receipt:
        raise NotImplementedError

    def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        raise NotImplementedError

    async def adopt(self, intent: Intent) -> Absent:
        raise NotImplementedError


class FakeRouter:
    """Leads to one transport, or to none."""

    def __init__(self, transport: Transport | None) -> None:
        self._transport = transport
        self.closed = False

    def route(self, request: Request, via: Via = "live") -> Route:
        raise NotImplementedError

    def transport(self, name: str, account: str) -> Transport | None:
        return self._transport

    def figures(self) -> Mapping[str, Sequence[EndpointFigures]]:
        return {}

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def waves(tmp_path: Path) -> list[StoredWave]:
    planted = Planted(tmp_path / "s.db")
    record = planted.run("duels")
    for number in range(1, 21):
        planted.send(record, number, 2, f"batch_{number}")
    store = Store(planted.path)
    found = store.waves.open()
    store.close_reading()
    return found


def look_at(waves: Sequence[StoredWave], transport: Transport | None) -> list[batch_lookup.FoundBatch]:
    router = FakeRouter(transport)

    async def main() -> list[batch_lookup.FoundBatch]:
        async with Providers(router) as providers:
            return await batch_lookup.look_at(waves, providers)

    found = asyncio.run(main())
    assert router.closed
    return found


async def never(batch: str) -> BatchInfo | None:
    await asyncio.Event().wait()
    raise AssertionError


async def unreachable(batch: str) -> BatchInfo | None:
    raise WaveOutOfReach(Fault(FaultKind.CONNECTION, "nobody is there"))


async def unknown(batch: str) -> BatchInfo | None:
    return None


async def working(batch: str) -> BatchInfo | None:
    await asyncio.sleep(0)
    return BatchInfo(batch, "in_progress", 2, 0, 0, 5.0)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("transport", "problem"),
    [
        (FakeBatches(never), Problem("no answer", "openai did not answer within 0 s")),
        (FakeBatches(unreachable), Problem("not reached", "openai: connection: nobody is there")),
        (
            FakeBatches(unknown),
            Problem("not found", "the current key of openai sees no batch batch_1"),
        ),
        (
            None,
            Problem("not set up", "account openai, as configured now, has no batch API of type openai_batch"),
        ),
    ],
    ids=["silent", "out of reach", "unknown", "none"],
)
def test_what_cannot_be_seen_is_said(
    waves: list[StoredWave], monkeypatch: pytest.MonkeyPatch, transport: Transport | None, problem: Problem
) -> None:
    monkeypatch.setattr(batch_lookup, "PATIENCE", 0.01)
    (found,) = look_at(waves[:1], transport)
    assert (found.problem, found.info, found.batch) == (problem, None, "batch_1")


def test_another_owners_batch_is_not_looked_at(waves: list[StoredWave]) -> None:
    (found,) = look_at(waves[:1], FakeBatches(never, owner="another"))
    assert found.problem is not None
    assert found.problem.short == "another key"


def test_many_are_looked_at_side_by_side_and_not_all_at_once(waves: list[StoredWave]) -> None:
    transport = FakeBatches(working)
    batches = look_at(waves, transport)
    assert [each.batch for each in batches] == [wave.batch for wave in waves]
    assert transport.most == batch_lookup.AT_ONCE


@pytest.mark.parametrize(
    ("text", "number"), [("3", 3), ("0", 0), ("x", 0), ("-1", 0), ("²", 0), ("", 0), ("9" * 99, 0)]
)
def test_numbers_of_waves_as_people_write_them(text: str, number: int) -> None:
    assert batch_lookup.number_of(text) == number


def test_ended_batches_are_forgotten_after_many_others() -> None:
    states = BatchStates()
    states.record(BatchInfo("open", "in_progress", 1, 0, 0, 0.0))
    for number in range(MOST_ENDED + 1):
        states.record(BatchInfo(str(number), "completed", 1, 1, 0, 0.0))
    assert set(states._infos) == {"open", *map(str, range(1, MOST_ENDED + 1))}
