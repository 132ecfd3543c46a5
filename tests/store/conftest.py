"""An empty store of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groundswell.store.database import Database
from groundswell.store.open import open_database
from tests.stores import MOSTLY_SQLITE, new_store


@pytest.fixture(params=MOSTLY_SQLITE)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """What `--store` takes."""
    return new_store(request.param, tmp_path)


@pytest.fixture
def database(place: str | Path) -> Iterator[Database]:
    """The store, opened."""
    opened = open_database(place)
    yield opened
    opened.close()
