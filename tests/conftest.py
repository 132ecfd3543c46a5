"""Nothing in the tests talks to a provider: there are no keys, and configuration of the user is not read."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROUNDSWELL_STORE"):
        monkeypatch.delenv(name, raising=False)
