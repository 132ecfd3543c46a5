"""For all tests: nothing talks to a provider (there are no keys), and no deadline per example, for busy machines."""

from __future__ import annotations

from functools import cache
from uuid import uuid4

import pytest
import typer.testing
from hypothesis import settings
from typer.main import get_command

typer.testing._get_command = cache(get_command)  # type: ignore[attr-defined]  # else they are made anew at each call

settings.register_profile("groundswell", deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=500)  # pytest --hypothesis-profile=thorough
settings.load_profile("groundswell")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROUNDSWELL_STORE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _own_config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration folder of its own for every test: what one test trusts, another does not."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / f"config-{uuid4().hex}"))
