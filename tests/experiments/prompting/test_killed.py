"""`groundswell map`, killed in the middle: the same command again writes what a run that was left alone writes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import groundswell
from groundswell.emulator.latency import Latency
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from tests.transports.scene import environment

ROWS = 1_000
CAP = 32
PATIENCE = 30.0
MAIN = "from groundswell.cli.app import main; main()"


@pytest.fixture
def emulator() -> Iterator[Threaded]:
    with running(Settings(latency=Latency(0.01))) as started:
        yield started


class Desk:
    """One table in one folder, and the command over it in processes of their own."""

    def __init__(self, folder: Path, emulator: Threaded) -> None:
        self.folder, self.emulator = folder, emulator
        folder.mkdir()
        lines = [f'{number},"word {number}, and ""more"""\n' for number in range(ROWS)]
        (folder / "t.csv").write_text("id,word\n" + "".join(lines))

    def start(self) -> subprocess.Popen[str]:
        words = ["map", "t.csv", "-p", "Say {word}", "-m", "openai/echo", "--check", "same: contains {word}"]
        source = str(Path(groundswell.__file__).parents[1])
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *words, "--store", "runs.db", "--max-concurrent", str(CAP)],
            cwd=self.folder,
            env={**os.environ, **environment(self.emulator.url), "PYTHONPATH": source},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def kill_when_paid(self, requests: int) -> None:
        with self.start() as process:
            until = time.monotonic() + PATIENCE
            while self.emulator.ledger()["totals"]["requests"] < requests:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until
                time.sleep(0.002)
            process.kill()
            process.communicate()

    def finish(self) -> bytes:
        with self.start() as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert "same" in out
        return (self.folder / "t.replies.csv").read_bytes()


def test_a_killed_run_goes_on_to_the_same_file_and_pays_hardly_anything_twice(
    tmp_path: Path, emulator: Threaded
) -> None:
    killed = Desk(tmp_path / "killed", emulator)
    killed.kill_when_paid(300)
    assert not (killed.folder / "t.replies.csv").exists()
    killed.kill_when_paid(650)
    written = killed.finish()
    books = emulator.ledger()["totals"]
    assert books["requests"] == ROWS + books["paid_again"]
    assert books["paid_again"] <= 2 * (1.5 * CAP + 2)

    assert written == Desk(tmp_path / "whole", emulator).finish()
    assert written.count(b"usable") == ROWS
    assert not list(killed.folder.glob("*.part"))
