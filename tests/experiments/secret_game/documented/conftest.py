"""An emulator over real HTTP, on whose clock a batch of ten minutes takes a fraction of a second."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from tests.experiments.secret_game.documented.scene import Room


@pytest.fixture(scope="package")
def _quick() -> Iterator[Threaded]:
    with running(Settings(speed=3000)) as emulator:
        yield emulator


@pytest.fixture
def emulator(_quick: Threaded) -> Threaded:
    """An emulator with empty books and no faults."""
    _quick.reset()
    _quick.set_faults()
    return _quick


@pytest.fixture
def room(tmp_path: Path, emulator: Threaded, monkeypatch: pytest.MonkeyPatch) -> Room:
    """A working folder from which the emulator is asked."""
    return Room(tmp_path, emulator, monkeypatch)
