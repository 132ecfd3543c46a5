"""Emulators over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from groundswell.emulator.latency import Latency
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings


@pytest.fixture(scope="session")
def _emulator() -> Iterator[Threaded]:
    with running(Settings(latency=Latency(0.005))) as emulator:
        yield emulator


@pytest.fixture
def emulator(_emulator: Threaded) -> Threaded:
    """An emulator with empty books and no faults."""
    _emulator.reset()
    _emulator.set_faults()
    return _emulator
