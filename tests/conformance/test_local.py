"""The conformance suite over the local transport, with the real model: one token per reply."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from groundswell.program.request import Chat, Embedding, Fault, Reply, Request
from groundswell.testing.conformance import TransportCheck, check_name, transport_checks
from groundswell.transports.local import Local
from tests.local_model import WEIGHTS, held_model, needs_model

pytestmark = [needs_model, pytest.mark.usefixtures(held_model.__name__)]
__all__ = ["held_model"]


class Brief(Local):
    """Says little: the suite's requests name no limit."""

    async def _ask(self, request: Request, sample: int) -> Reply | Embedding | Fault:
        assert isinstance(request, Chat)
        return await super()._ask(msgspec.structs.replace(request, max_tokens=1), sample)


def brief() -> Local:
    assert WEIGHTS is not None
    transport = Brief()
    transport.models["m"] = WEIGHTS
    return transport


@pytest.mark.slow
@pytest.mark.parametrize("check", transport_checks, ids=check_name)
def test_transport(check: TransportCheck) -> None:
    made: list[Local] = []

    def make() -> Local:
        made.append(brief())
        return made[-1]

    async def main() -> None:
        try:
            await check(make)
        finally:
            for transport in made:
                await transport.close()

    asyncio.run(main())
