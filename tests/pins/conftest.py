"""The command line in this process, in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.pins.product import COMMAND, Settings, Threaded, running


class CommandLine:
    """Calls commands in a folder, on the store `runs.db` in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, status: int = 0) -> Result:
        """Run a command. It must end with this exit status."""
        result = CliRunner().invoke(COMMAND, list(words), env={"GROUNDSWELL_STORE": "runs.db"})
        assert result.exit_code == status, f"{result.exit_code}: {result.stdout}\n{result.stderr}\n{result.exception!r}"
        return result

    def json(self, *words: str, status: int = 0) -> Any:
        """Run a command with --json: the object that it prints."""
        result = self(*words, "--json", status=status)
        assert result.stdout.count("\n") == 1
        return json.loads(result.stdout)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line in an empty folder, which is the home too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("COLUMNS", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return CommandLine(tmp_path)


@pytest.fixture(scope="session")
def _emulator() -> Iterator[Threaded]:
    with running(Settings()) as emulator:
        yield emulator


@pytest.fixture
def emulator(_emulator: Threaded, monkeypatch: pytest.MonkeyPatch) -> Threaded:
    """An emulator of the providers, to which the keys and addresses of the environment lead."""
    _emulator.reset()
    url = _emulator.url
    variables = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "OLLAMA_HOST": url}
    for name, value in {**variables, "OPENAI_API_KEY": "a-key", "ANTHROPIC_API_KEY": "a-key"}.items():
        monkeypatch.setenv(name, value)
    return _emulator
