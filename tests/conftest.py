"""Settings of all tests. Nothing talks to a provider: there are no keys, and no configuration is read."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("groundswell", deadline=None)  # machines may be busy
settings.load_profile("groundswell")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROUNDSWELL_STORE"):
        monkeypatch.delenv(name, raising=False)
