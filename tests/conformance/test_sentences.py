"""The conformance suite over the transport of sentence-transformers. It is asked to talk, and says that it cannot."""

from __future__ import annotations

import asyncio

import pytest

from groundswell.testing.conformance import TransportCheck, check_name, transport_checks
from groundswell.transports.sentences import Sentences


@pytest.mark.parametrize("check", transport_checks, ids=check_name)
def test_transport(check: TransportCheck) -> None:
    asyncio.run(check(Sentences))
