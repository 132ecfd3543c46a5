"""An emulator over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from groundswell.emulator.server import Threaded, running


@pytest.fixture(scope="session")
def emulator() -> Iterator[Threaded]:
    with running() as opened:
        yield opened
