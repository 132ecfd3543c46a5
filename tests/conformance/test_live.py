"""The conformance suite over the live transport, against an emulator of each provider."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.providers.accounts.account import Account, Key
from groundswell.providers.registry import WIRE_FORMATS
from groundswell.testing.conformance import TransportCheck, check_name, transport_checks
from groundswell.transports.live import Live
from tests.emulator.emulated import EMULATED

DIALECTS = [name for name in WIRE_FORMATS if name in EMULATED]


@pytest.fixture(scope="module")
def emulator() -> Iterator[Threaded]:
    """Some of its replies are faults: they settle an ask as well."""
    with running(Settings(models=("*",), faults=(Rule(fault="500", rate=0.2),))) as emulator:
        yield emulator


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("check", transport_checks, ids=check_name)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("endpoints", [1, 2], ids=["one endpoint", "two endpoints"])
def test_live(emulator: Threaded, dialect: str, endpoints: int, check: TransportCheck) -> None:
    urls = (emulator.url, emulator.url.replace("127.0.0.1", "localhost"))[:endpoints]
    account = Account(name="box", dialect=dialect, endpoints=urls, key=Key("sk-of-no-worth"))
    made: list[Live] = []

    def make() -> Live:
        made.append(Live(account))
        return made[-1]

    async def main() -> None:
        try:
            await check(make)
        finally:
            for live in made:
                await live.close()

    asyncio.run(main())
