"""What the shows share: a folder with a table, an emulator with books, and the command line between them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import groundswell
from groundswell.cli.app import app
from groundswell.emulator.server import Threaded
from tests.patience import PATIENCE
from tests.transports.scene import environment

OPENAI, ANTHROPIC = "openai/gpt-4o-mini", "anthropic/claude-3-5-haiku-latest"
EMBEDDER = "openai/text-embedding-3-small"
SCHEMA = {
    "type": "object",
    "properties": {"mood": {"enum": ["calm", "cross"]}, "score": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["mood", "score"],
    "additionalProperties": False,
}


class Desk:
    """One folder: a table of so many rows in it, its own store, and commands that ask the emulator."""

    def __init__(self, folder: Path, emulator: Threaded, rows: int = 0) -> None:
        self.folder, self.emulator = folder, emulator
        folder.mkdir(exist_ok=True)
        (folder / "schema.json").write_text(json.dumps(SCHEMA))
        lines = [f'{number},"word {number}, and ""more"" {"so " * (number % 7)}"\n' for number in range(rows)]
        (folder / "t.csv").write_text("id,word\n" + "".join(lines))
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            **environment(emulator.url),
            "HOME": str(folder),
            "GROUNDSWELL_STORE": str(folder / "runs.db"),
        }

    def __call__(self, *words: str, status: int = 0) -> Result:
        """A command in this process; it must end with this exit status."""
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            result = CliRunner().invoke(app, list(words), env=_in_place_of(os.environ, self.variables))
        finally:
            os.chdir(here)
        assert result.exit_code == status, f"{result.exit_code}: {result.stdout}\n{result.stderr}\n{result.exception!r}"
        return result

    def json(self, *words: str, status: int = 0) -> Any:
        """A command with --json: the object that it prints."""
        return json.loads(self(*words, "--json", status=status).stdout)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command in a process of its own."""
        source = str(Path(groundswell.__file__).parents[1])
        return subprocess.Popen(
            [sys.executable, "-m", "groundswell", *words],
            cwd=self.folder,
            env={**self.variables, "PYTHONPATH": source},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def kill_when_paid(self, requests: int, *words: str) -> None:
        """A process that is killed once the emulator has been paid for so many replies."""
        with self.start(*words) as process:
            until = time.monotonic() + PATIENCE
            while self.books["requests"] < requests:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until
                time.sleep(0.002)
            process.kill()
            process.communicate()

    def finish(self, *words: str) -> Any:
        """A process that may end by itself: the object that it prints."""
        with self.start(*words, "--json") as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        return json.loads(out)

    @property
    def books(self) -> dict[str, Any]:
        """The sums of the emulator's ledger."""
        totals: dict[str, Any] = self.emulator.ledger()["totals"]
        return totals

    @property
    def written(self) -> bytes:
        """The file that `map` wrote."""
        return (self.folder / "t.replies.csv").read_bytes()

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows of that file."""
        with (self.folder / "t.replies.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs in the store."""
        if not (self.folder / "runs.db").exists():
            return []
        found: list[dict[str, Any]] = self.json("runs", "list")["runs"]
        return found


def _in_place_of(there: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """What turns variables into those that are wanted: the others are taken away."""
    return {**dict.fromkeys(there), **wanted}


def graded(models: Sequence[str] = (OPENAI, ANTHROPIC)) -> list[str]:
    """The words of a `map` with everything: several models, a schema, a check that code makes and one by a judge."""
    checks = ["--check", "high: json.score >= 5", "--check", 'sure: judge "Is it sure?"']
    return ["map", "t.csv", "-p", "How is {word}?", "-m", ",".join(models), "--schema", "schema.json", *checks]
