"""The demo: runs in seconds, the same for everyone, and the commands that it prints work."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import groundswell
from tests.cli.conftest import CommandLine

DEMO = Path(__file__).parents[2] / "examples" / "duel.py"


def demo(folder: Path) -> str:
    source = str(Path(groundswell.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(DEMO)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    return done.stdout


def test_the_demo_is_deterministic_and_its_commands_work(cli: CommandLine, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    first, second = [demo(folder) for folder in folders]
    assert first.partition("asks in")[0] == second.partition("asks in")[0]
    assert "One of 200 duels; Ada keeps" in first
    assert "emulated/keeper          200       0%" in first

    commands = [line.strip().partition("#")[0] for line in first.splitlines() if line.startswith("  groundswell ")]
    cli.store = folders[0] / "demo.db"
    outputs = [cli(*_words(command)).stdout for command in commands]
    assert "completed" in outputs[0]
    assert "[0] Ada (emulated/" in outputs[1]
    assert "1600 sent\n" in outputs[2]
    assert "800 sent, 1600 cached" in outputs[3]


def _words(command: str) -> list[str]:
    """The words of a printed command, with the store left to the environment."""
    words = shlex.split(command)[1:]
    at = words.index("--store")
    return words[:at] + words[at + 2 :]
