"""An evolution, killed for real in its races, at a birth and before the sealed test: it ends as one left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import groundswell
from groundswell.compose import look_into
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.engine.rate_limit import most_uncommitted
from tests.patience import PATIENCE
from tests.shows import doomed_evolution
from tests.shows.desk import Desk

ROOT = Path(doomed_evolution.__file__).parents[2]
LOST = doomed_evolution.CAP + most_uncommitted(doomed_evolution.CAP)
"""What one kill may lose: asks that were in flight."""
PRICES = '[prices]\n"openai/gpt-4o-mini" = { input = 0.15, output = 0.60 }\n'
POLL = 0.002
Kills = Sequence[tuple[str, int]]


def moments(asks: int, seed: int) -> Kills:
    """Where each session ends: at so many paid requests in all, or at the so-manieth such moment of its own."""
    chance = Random(seed)
    return (
        ("paid", chance.randrange(asks // 10, asks // 3)),
        ("born", chance.randrange(8, 24)),
        ("tested", chance.randrange(1, 4)),
    )


class Site(Desk):
    """A folder with a store, and sessions of one evolution on it, one after another."""

    def __init__(self, folder: Path, emulator: Threaded, way: str = "live") -> None:
        super().__init__(folder, emulator)
        (folder / "groundswell.toml").write_text(PRICES)
        self._way = way

    def session(self, moment: str = "never", number: int = 0) -> int:
        """One process; the status that it ended with."""
        with self._process("never" if moment == "paid" else moment, number) as process:
            if moment == "paid":
                self._kill_when_paid(process, number)
            _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, -signal.SIGKILL), err
        return process.returncode

    def _process(self, moment: str, number: int) -> subprocess.Popen[str]:
        paths = [str(Path(groundswell.__file__).parents[1]), str(ROOT)]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.shows.doomed_evolution", self._way, moment, str(number)],
            cwd=self.folder,
            env={**self.variables, "PYTHONPATH": os.pathsep.join(paths)},
            text=True,
            stderr=subprocess.PIPE,
        )

    def _kill_when_paid(self, process: subprocess.Popen[str], requests: int) -> None:
        until = time.monotonic() + PATIENCE
        while self.paid < requests:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(POLL)
        process.kill()

    @property
    def paid(self) -> int:
        books = self.books
        return int(books["requests"] + books["batch_requests"])

    @property
    def committed(self) -> int:
        """How many replies that were paid for are in the store."""
        with look_into(self.folder / "runs.db") as store:
            assert store is not None
            return sum(spent.replies for spent in store.runs.get("r").counters.spent.values())

    @property
    def lost(self) -> int:
        """How many were paid for in vain until now, once the server has seen all that a killed process sent."""
        before = -1
        while before != (before := self.paid):
            time.sleep(10 * POLL)
        return before - self.committed


def kill_again_and_again(site: Site, kills: Kills) -> tuple[Any, list[int]]:
    """Evolve to the end with these kills: what is found, and how many replies were lost by then, after each of them."""
    lost: list[int] = []
    for moment, number in kills:
        assert site.session(moment, number) == -signal.SIGKILL, f"{moment} {number} did not come"
        lost.append(site.lost)
    found = site.json("runs", "resume", "r")
    books = site.books
    assert found["status"] == "completed"
    assert books["distinct_requests"] == site.committed
    assert site.json("runs", "verify", "r")["ok"]
    assert site.json("runs", "resume", "r") == found
    assert site.books == books
    return found, lost


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_evolution_that_is_killed_ends_as_one_that_was_not(tmp_path: Path, emulator: Threaded) -> None:
    whole = Site(tmp_path / "whole", emulator)
    assert whole.session() == 0
    alone, asks = whole.json("runs", "resume", "r"), whole.paid
    assert (whole.committed, whole.books["paid_again"]) == (asks, 0)
    emulator.reset()

    killed = Site(tmp_path / "killed", emulator)
    found, lost = kill_again_and_again(killed, moments(asks, seed=3))
    assert found["analysis"] == alone["analysis"]
    assert found["trials"] == alone["trials"]
    assert all(0 <= after - before <= LOST for before, after in pairwise([0, *lost]))
    assert killed.lost == lost[-1], "the last session was not killed, and paid only for what the store lacked"
    assert killed.books["paid_again"] == lost[-1] <= found["asks"]["resent"] <= len(lost) * LOST
    assert killed.committed == asks


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_one_in_batches_that_is_killed_pays_for_nothing_twice(tmp_path: Path) -> None:
    with running(Settings(speed=2000)) as emulator:
        whole = Site(tmp_path / "whole", emulator, "batch")
        assert whole.session() == 0
        alone, asks = whole.json("runs", "resume", "r"), whole.paid
        emulator.reset()

        killed = Site(tmp_path / "killed", emulator, "batch")
        found, _ = kill_again_and_again(killed, moments(asks, seed=3))
        assert found["analysis"] == alone["analysis"]
        assert (killed.lost, killed.books["paid_again"], found["asks"]["resent"]) == (0, 0, 0)
