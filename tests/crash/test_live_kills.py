"""`groundswell run` on a live provider, killed for real at any moment: what the provider's books say afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell.emulator.latency import Latency
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.engine.rate_limit import most_uncommitted
from tests.crash import live_experiment
from tests.patience import PATIENCE

ROOT = Path(live_experiment.__file__).parents[2]
MAIN = "from groundswell.cli.app import main; main()"


class Sessions:
    """One experiment, carried on by process after process."""

    def __init__(self, folder: Path, emulator: Threaded, *flags: str, store: str | Path | None = None) -> None:
        self.folder = folder
        self.store = str(store or folder / "runs.db")
        self.emulator = emulator
        self.flags = flags

    def start(self, *flags: str) -> subprocess.Popen[str]:
        words = ["run", "tests.crash.live_experiment:driver", "--name", "r", "--store", self.store]
        variables = {
            **os.environ,
            "OPENAI_BASE_URL": f"{self.emulator.url}/v1",
            "OPENAI_API_KEY": "sk-of-a-test",
            "PYTHONPATH": os.pathsep.join([str(Path(groundswell.__file__).parents[1]), str(ROOT)]),
        }
        command = [sys.executable, "-c", MAIN, *words, "--json", *self.flags, *flags]
        return subprocess.Popen(
            command, cwd=self.folder, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def kill_when_paid(self, requests: int, *flags: str) -> None:
        """A session that is killed once the provider has been paid for so many replies."""
        with self.start(*flags) as process:
            until = time.monotonic() + PATIENCE
            while self.paid < requests:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until
                time.sleep(0.001)
            process.kill()
            process.communicate()
        assert process.returncode == -signal.SIGKILL

    def finish(self, *flags: str) -> dict[str, Any]:
        """A session that may end by itself; its summary."""
        with self.start(*flags) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        summary: dict[str, Any] = json.loads(out)
        return summary

    @property
    def paid(self) -> int:
        requests: int = self.emulator.ledger()["totals"]["requests"]
        return requests

    @property
    def paid_again(self) -> int:
        again: int = self.emulator.ledger()["totals"]["paid_again"]
        return again


@pytest.fixture(scope="module")
def slow() -> Iterator[Threaded]:
    with running(Settings(latency=Latency(0.02))) as emulator:
        yield emulator


@pytest.fixture
def emulator(slow: Threaded) -> Threaded:
    slow.reset()
    return slow


def check(sessions: Sessions, summary: dict[str, Any], asks: int, most_again: int) -> None:
    """Every ask has its reply, none that was durable is paid again, and what may have been paid twice is told."""
    assert summary["trials"] == {"planned": 60, "usable": 60, "missing": 0}
    assert sessions.paid == asks + sessions.paid_again
    assert sessions.paid_again <= summary["asks"]["resent"]
    assert sessions.paid_again <= most_again


def lost(cap: int) -> int:
    """What one kill may lose."""
    return cap + most_uncommitted(cap)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(("cap", "children", "kills"), [(16, 0, (30, 80, 150)), (4, 6, (100, 300))])
def test_what_was_durable_is_not_paid_again(
    tmp_path: Path, store: str | Path, emulator: Threaded, cap: int, children: int, kills: tuple[int, ...]
) -> None:
    flags = ("--max-concurrent", str(cap), "--set", f"children={children}")
    sessions = Sessions(tmp_path, emulator, *flags, store=store)
    for requests in kills:
        sessions.kill_when_paid(requests)
    check(sessions, sessions.finish(), 60 * (3 + children), len(kills) * lost(cap))


@pytest.mark.slow
def test_a_resumption_with_fewer_slots_tells_what_more_of_them_had_sent(tmp_path: Path, emulator: Threaded) -> None:
    sessions = Sessions(tmp_path, emulator)
    sessions.kill_when_paid(100, "--max-concurrent", "48")
    check(sessions, sessions.finish("--max-concurrent", "2"), 180, lost(48))


@pytest.mark.slow
def test_a_session_that_cannot_begin_does_not_forget_the_kill_before_it(tmp_path: Path, emulator: Threaded) -> None:
    sessions = Sessions(tmp_path, emulator, "--max-concurrent", "16")
    sessions.kill_when_paid(60)
    with sessions.start("--account", "misspelt.rate_limit_per_minute=10") as refused:
        _, err = refused.communicate(timeout=PATIENCE)
    assert "there is no account 'misspelt'" in err
    check(sessions, sessions.finish(), 180, lost(16))
