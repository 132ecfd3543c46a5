"""The conformance suite over the batch transports, against an emulator of each provider."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import BatchTimes, Settings
from groundswell.engine.ports import Batching
from groundswell.providers.accounts.account import Account, Key
from groundswell.testing.conformance import TransportCheck, check_name, transport_checks
from groundswell.transports.batch import BatchTransport
from tests.transports.batch_scene import KINDS, MovedClock

AT_ONCE = BatchTimes(validating=0, working=0, finalizing=0)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Threaded]:
    """Some of its results are faults: they settle an ask as well. Its batches are done when one looks."""
    rules = (Rule(fault="line-500", rate=0.2), Rule(fault="503", rate=0.1, path="*/batches/*"))
    with running(Settings(models=("*",), batch=AT_ONCE, faults=rules)) as emulator:
        yield emulator


@pytest.mark.parametrize("check", transport_checks, ids=check_name)
@pytest.mark.parametrize("kind", KINDS)
def test_batches(emulator: Threaded, kind: str, check: TransportCheck) -> None:
    account = Account(name="box", dialect=kind, endpoints=(emulator.url,), key=Key(f"sk-{check.__name__}"))
    clock = MovedClock(emulator)
    made: list[BatchTransport] = []

    def make() -> BatchTransport:
        made.append(BatchTransport(account, clock=clock))
        assert isinstance(made[-1], Batching)
        return made[-1]

    async def main() -> None:
        try:
            await check(make)
        finally:
            for transport in made:
                await transport.close()

    asyncio.run(main())
