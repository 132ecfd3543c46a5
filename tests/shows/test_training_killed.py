"""A training, killed for real in rollouts, within an update and round a checkpoint: it ends as one left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell.compose import look_into
from groundswell.emulator.server import Threaded
from groundswell.engine.rate_limit import most_uncommitted
from tests.patience import PATIENCE
from tests.shows import doomed_training
from tests.shows.desk import Desk

ROOT = Path(doomed_training.__file__).parents[2]
Kills = tuple[tuple[str, int], ...]
FEW: Kills = (("paid", 40), ("learn", 10), ("keep", 2))
MANY: Kills = (("paid", 40), ("learn", 10), ("kept", 1), ("keep", 2), ("paid", 350), ("kept", 3))
"""Where each session ends: at so many paid requests in all, or at the so-manieth such moment of its own."""
STEPS = doomed_training.SETTINGS.updates * doomed_training.SETTINGS.each * 2
LOST = doomed_training.CAP + most_uncommitted(doomed_training.CAP)
"""What one kill may lose: asks that were in flight."""
EMBEDDER = "text-embedding-3-small"


class Site(Desk):
    """A folder with a store, and trainings on it, one after another."""

    def session(self, moment: str = "never", number: int = 0) -> int:
        """One process; the status that it ended with."""
        with self._process(moment, number) as process:
            if moment == "paid":
                self._kill_when_paid(process, number)
            _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, -signal.SIGKILL), err
        return process.returncode

    def _process(self, moment: str, number: int) -> subprocess.Popen[str]:
        paths = [str(Path(groundswell.__file__).parents[1]), str(ROOT)]
        moment = "never" if moment == "paid" else moment
        return subprocess.Popen(
            [sys.executable, "-m", "tests.shows.doomed_training", moment, str(number)],
            cwd=self.folder,
            env={**self.variables, "PYTHONPATH": os.pathsep.join(paths)},
            text=True,
            stderr=subprocess.PIPE,
        )

    def _kill_when_paid(self, process: subprocess.Popen[str], requests: int) -> None:
        until = time.monotonic() + PATIENCE
        while self.books["requests"] < requests:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.002)
        process.kill()

    @property
    def chats(self) -> dict[str, int]:
        """How often each chat was paid for. Embeddings travel together, and not always the same ones."""
        [account] = self.emulator.ledger(each=True)["accounts"].values()
        return {
            one: times for model, entry in account.items() if model != EMBEDDER for one, times in entry["paid"].items()
        }

    @property
    def checkpoints(self) -> dict[str, str | None]:
        with look_into(self.folder / "runs.db") as store:
            assert store is not None
            results = store.results(store.runs.get("r"))
            return {name: results.kept(name) for name in ("ppo.0", "bandit.0")}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", [FEW, pytest.param(MANY, marks=pytest.mark.campaign)], ids=["few", "many"])
def test_a_training_that_is_killed_ends_as_one_that_was_not(tmp_path: Path, emulator: Threaded, kills: Kills) -> None:
    whole = Site(tmp_path / "whole", emulator)
    assert whole.session() == 0
    alone: Any = whole.json("runs", "resume", "r")
    chats, tokens = whole.chats, whole.books["input_tokens"]
    assert set(chats.values()) == {1}
    emulator.reset()

    killed = Site(tmp_path / "killed", emulator)
    for moment, number in kills:
        assert killed.session(moment, number) == -signal.SIGKILL, f"{moment} {number} did not come"
    found: Any = killed.json("runs", "resume", "r")

    assert killed.checkpoints == whole.checkpoints
    assert found["analysis"] == alone["analysis"]
    assert found["status"] == "completed"
    assert found["trials"] == alone["trials"]
    assert found["trials"]["planned"] > STEPS
    again = killed.chats
    assert again.keys() == chats.keys()
    assert sum(again.values()) - len(again) <= found["asks"]["resent"] <= len(kills) * LOST
    assert killed.books["input_tokens"] < 1.2 * tokens
    assert killed.json("runs", "verify", "r")["ok"]

    assert killed.json("runs", "resume", "r") == found
    assert killed.chats == again
