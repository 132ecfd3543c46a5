"""The command line, as in tests/cli."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)
