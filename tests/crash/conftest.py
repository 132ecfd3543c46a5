"""A provider over real HTTP, and a nursery of processes that ask it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash import batch_scene
from tests.crash.batch_experiment import Settings
from tests.crash.batch_scene import Provider, Scene, Staged
from tests.crash.nursery import Nursery
from tests.stores import new_store


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    opened = Nursery()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def _provider() -> Iterator[Provider]:
    with batch_scene.provider() as opened:
        yield opened


@pytest.fixture
def provider(_provider: Provider) -> Provider:
    """A provider with empty books; it may be another test's as well."""
    _provider.reset()
    return _provider


@pytest.fixture
def staged(tmp_path: Path, provider: Provider, nursery: Nursery, database: str) -> Staged:
    """Makes the scene of an experiment."""

    def stage(settings: Settings | None = None, **job: Any) -> Scene:
        return Scene(tmp_path, provider, nursery, settings or Settings(), database=database, **job)

    return stage


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.campaign)])
def database(request: pytest.FixtureRequest) -> str:
    """The kind of a store. Most of what can go wrong does not depend on it: few modules test both in test-all."""
    kind: str = request.param
    return kind


@pytest.fixture
def store(tmp_path: Path, database: str) -> str | Path:
    """What `--store` takes."""
    return new_store(database, tmp_path)
