"""Emulators in a hurry, and a scene in front of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groundswell.emulator.server import Threaded, running
from tests.troubles.scene import HURRIED, Scene


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be behind one."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def _emulator() -> Iterator[Threaded]:
    with running(HURRIED) as emulator:
        yield emulator


@pytest.fixture
def emulator(_emulator: Threaded) -> Threaded:
    """An emulator with empty books and no faults."""
    _emulator.reset()
    _emulator.set_faults()
    return _emulator


@pytest.fixture
def scene(tmp_path: Path, emulator: Threaded) -> Scene:
    return Scene(tmp_path, emulator)
