"""The demo: the same for everyone, and the commands that it prints work."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import groundswell
from tests.cli.conftest import CommandLine
from tests.local_model import needs_model

DEMO = Path(__file__).parents[2] / "examples" / "duel.py"


def demo(folder: Path, *models: str) -> str:
    source = str(Path(groundswell.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(DEMO), *models],
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
    first, second = [demo(folder, "emulated/keeper", "emulated/leaker:0.1") for folder in folders]
    assert first.partition("replies in")[0] == second.partition("replies in")[0]
    assert "One of 4 duels; Ada keeps" in first
    assert "emulated/keeper         4           0 (0%)" in first

    commands = [
        line.strip().partition("#")[0] for line in first.splitlines() if line.endswith("demo.db") or "#" in line
    ]
    cli.store = folders[0] / "demo.db"
    outputs = [cli(*_words(command)).stdout for command in commands]
    assert "[0] Ada (emulated/" in outputs[0]
    assert "24 sent\n" in outputs[1]
    assert "12 sent, 24 cached" in outputs[2]


@pytest.mark.slow
@pytest.mark.timeout(600)
@needs_model
def test_the_demo_plays_a_real_model(tmp_path: Path) -> None:
    told = demo(tmp_path)
    assert "One of 4 duels; Ada keeps" in told
    assert "24 replies in" in told
    assert "local/smollm2" in told


def _words(command: str) -> list[str]:
    """The words of a printed command, with the store left to the environment."""
    words = shlex.split(command)[1:]
    at = words.index("--store")
    return words[:at] + words[at + 2 :]
