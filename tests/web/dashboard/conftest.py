"""Runs to show on pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.web.scene import Api


@pytest.fixture(scope="session")
def game(shared: Api) -> str:
    """A run of the secret game that has ended."""
    body = {"models": ["emulated/keeper", "emulated/leaker:0.5"], "interactions": 12, "messages": 4, "name": "labelled"}
    run: str = shared("POST", "/experiments/secret-game/play", 201, json=body)["run_id"]
    list(shared.events(f"/runs/{run}"))
    return run


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)
