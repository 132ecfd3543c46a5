"""The demo: what `make demo` runs, as it stands in the Makefile."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import groundswell
from tests.local_model import needs_model

ROOT = Path(__file__).parents[2]


def recipe() -> list[str]:
    """The command of the demo, without the program."""
    made = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made is not None
    lines = made[1].replace("\\\n", " ").splitlines()
    return shlex.split(lines[-1])[1:]


def demo(folder: Path, *more: str) -> str:
    source = str(Path(groundswell.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "groundswell", *recipe(), *more],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    return done.stdout


def checked(told: str, folder: Path, model: str) -> None:
    """The demo tells a rate with its interval, and writes a page."""
    assert "8 usable of 8 planned" in told
    assert re.search(rf"^{model} +16 +[\d.]+% \([\d.]+% to [\d.]+%\)", told, re.MULTILINE)
    page = (folder / "results" / "demo" / "report.html").read_text()
    assert page.count("<svg") >= 3
    assert model in page


@pytest.mark.slow
def test_the_demo_with_another_model(tmp_path: Path) -> None:
    told = demo(tmp_path, "--models", "emulated/leaker:0.3")
    checked(told, tmp_path, "emulated/leaker:0.3")
    assert "leaked in message" in told, "one of the conversations is shown"


@pytest.mark.campaign
@pytest.mark.timeout(600)
@needs_model
def test_the_demo_plays_a_real_model(tmp_path: Path) -> None:
    checked(demo(tmp_path), tmp_path, "local/smollm2")
