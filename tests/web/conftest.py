"""Servers for tests: one for all that leave nothing behind, and one for each that does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groundswell.web import background, events
from tests.web.scene import Api, serving


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROUNDSWELL_TOKEN", raising=False)


@pytest.fixture(scope="session", autouse=True)
def _watchful() -> Iterator[None]:
    """Servers that look more often whether something is new: tests wait for what they see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "EVERY", 0.02)
        patch.setattr(background, "LOOK_EVERY", 0.05)
        yield


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server that tests share: for questions, and for batches of their own."""
    with serving(tmp_path_factory.mktemp("shared")) as api:
        yield api


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    """A server with an empty store."""
    with serving(tmp_path) as api:
        yield api
