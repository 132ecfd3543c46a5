"""Running the command line in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from groundswell.cli.app import app
from groundswell.emulator.server import Threaded, running
from tests.cli.batch_office import Office

EXPERIMENT = Path(__file__).with_name("cli_experiment.py")
DRIVER = f"{EXPERIMENT}:driver"


class CommandLine:
    """Calls commands on a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "runs.db"

    def __call__(self, *words: str, answer: str | None = None, status: int = 0) -> Result:
        """Run a command; it must end with this exit status."""
        result = CliRunner().invoke(app, list(words), input=answer, env={"GROUNDSWELL_STORE": str(self.store)})
        assert result.exit_code == status, f"{result.exit_code}: {result.stdout}\n{result.stderr}\n{result.exception!r}"
        return result

    def json(self, *words: str, status: int = 0) -> Any:
        """Run a command with --json; what it prints must be one object on one line."""
        result = self(*words, "--json", status=status)
        assert result.stdout.count("\n") == 1
        return json.loads(result.stdout)

    def run(self, *sets: str, name: str = "r", status: int = 0) -> Any:
        """Run the experiment with changed settings."""
        changes = [word for change in sets for word in ("--set", change)]
        return self.json("run", DRIVER, "--name", name, *changes, status=status)


@pytest.fixture(autouse=True)
def _own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules that a test wrote, as users do, are that test's: another's of the same name is another module."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__dict__", {}).get("__file__") or "").startswith(f"{tmp_path}/"):
            del sys.modules[name]


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def rewrite(tmp_path: Path) -> Callable[..., str]:
    """A copy of the experiment with a text replaced; returns the driver's name."""

    def write(old: str = "", new: str = "") -> str:
        source = EXPERIMENT.read_text()
        assert old in source
        path = tmp_path / "copied_experiment.py"
        path.write_text(source.replace(old, new) if old else source)
        return f"{path}:driver"

    return write


@pytest.fixture(scope="session")
def _slow_emulator() -> Iterator[Threaded]:
    with running() as emulator:
        yield emulator


@pytest.fixture
def office(tmp_path: Path, _slow_emulator: Threaded, monkeypatch: pytest.MonkeyPatch) -> Office:
    """A folder with no runs yet, at an emulator with no batches."""
    monkeypatch.delenv("COLUMNS", raising=False)
    _slow_emulator.reset()
    _slow_emulator.set_faults()
    return Office(tmp_path, _slow_emulator)
