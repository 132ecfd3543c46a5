"""Runs that are left while batches are at the providers: taken up with another key, a day later, a month later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import SettingsError
from tests.crash.batch_experiment import POLL, SETTLES, Settings
from tests.crash.batch_scene import SPEED, Provider, Staged, undisturbed, wait_for
from tests.crash.nursery import ROOT
from tests.patience import PATIENCE
from tests.transports.scene import environment

RUN = ("run", "tests.crash.batch_experiment:driver", "--name", "left", "--via", "batch")
MAIN = "from groundswell.cli.app import main; main()"
SETTINGS = Settings()
A_DAY, A_MONTH = 86_400.0, 31 * 86_400.0
ANOTHER = "sk-of-somebody-else"


PLACES = [
    ("intent-durable", 2, 0.0),
    ("after-create", 2, 0.0),
    ("receipt-durable", 2, 0.0),
    ("line", 2, SPEED),
    ("downloaded", 1, SPEED),
]
"""Where a session dies, and how fast the provider's clock runs: where it stands still, the batches are in progress."""
REFUSED = r"a wave of 3 requests is in flight on \w+ by \w+_batch, but it was sent with another key"


@pytest.mark.sampled
@pytest.mark.parametrize(("place", "nth", "speed"), PLACES)
def test_another_key_is_refused(staged: Staged, provider: Provider, place: str, nth: int, speed: float) -> None:
    provider.clock.run_at(speed)
    scene = staged(SETTINGS)
    assert scene.killed_at(place, nth)
    with pytest.raises(SettingsError, match=REFUSED):
        scene.finish(key=ANOTHER)
    assert not [visit for visit in provider.visits if visit.key == ANOTHER]
    provider.clock.run_at(SPEED)
    scene.check(scene.finish())


class Laptop:
    """The command line in a folder."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self._folder = folder
        self._provider = provider
        self._variables = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            **environment(provider.url),
            "GROUNDSWELL_STORE": str(folder / "runs.db"),
            "PYTHONPATH": os.pathsep.join([str(Path(groundswell.__file__).parents[1]), str(ROOT)]),
        }

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        fields = (f"batch_poll={POLL}", f"batch_patience={SETTLES}")
        said = [f"{name}.{field}" for name in ("openai", "anthropic") for field in fields]
        flags = [word for one in said for word in ("--account", one)]
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *words, *flags, "--json"],
            cwd=self._folder,
            env={**self._variables, **variables},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str) -> dict[str, Any]:
        """A command that ends well: the object that it prints."""
        with self.start(*words) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        said: dict[str, Any] = json.loads(out)
        return said

    def check(self, summary: dict[str, Any]) -> None:
        """All is as if nothing had happened, and each ask was paid for once."""
        assert summary["status"] == "completed"
        assert summary["analysis"] == undisturbed(SETTINGS)
        assert (summary["asks"]["resent"], summary["asks"]["failed"]) == (0, 0)
        books = self._provider.books
        assert (books["batch_requests"], books["paid_again"], books["requests"]) == (SETTINGS.asks, 0, 0)


@pytest.mark.slow
def test_a_command_that_is_killed_again_and_again(tmp_path: Path, provider: Provider) -> None:
    opened = Laptop(tmp_path, provider)
    for requests in (2, 7):
        provider.await_requests(requests)
        with opened.start(*RUN) as process:
            provider.doom(process.pid)
            process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL
    opened.check(opened.run("runs", "resume", "left"))


@pytest.fixture
def laptop(tmp_path: Path, provider: Provider) -> Laptop:
    """A laptop that was closed while the first batches of a run were being worked on."""
    provider.clock.run_at(0)
    opened = Laptop(tmp_path, provider)
    with opened.start(*RUN) as process:
        wait_for(lambda: len({visit.path for visit in provider.seen("poll")}) == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    return opened


@pytest.mark.slow
def test_a_laptop_that_is_opened_the_next_day(laptop: Laptop, provider: Provider) -> None:
    with laptop.start("runs", "resume", "left", OPENAI_API_KEY=ANOTHER, ANTHROPIC_API_KEY=ANOTHER) as refused:
        _, err = refused.communicate(timeout=PATIENCE)
    assert (refused.returncode, "another key" in " ".join(err.split())) == (2, True), err
    provider.emulator.advance(A_DAY)
    provider.clock.run_at(SPEED)
    laptop.check(laptop.run("runs", "resume", "left"))


@pytest.mark.slow
def test_a_laptop_that_is_opened_when_the_results_are_gone(laptop: Laptop, provider: Provider) -> None:
    provider.emulator.advance(A_MONTH)
    provider.clock.run_at(SPEED)
    summary = laptop.run("runs", "resume", "left")
    assert summary["status"] == "completed"
    assert summary["trials"] == {"planned": SETTINGS.trials, "usable": SETTINGS.trials, "missing": 0}
    books = provider.books
    assert (books["paid_again"], books["requests"]) == (SETTINGS.trials, 0)
    assert summary["asks"]["resent"] == SETTINGS.trials


@pytest.mark.sampled
@pytest.mark.parametrize("pair", ["openai", "anthropic"])
@pytest.mark.parametrize("place", ["after-create", "receipt-durable"])
def test_results_that_are_gone_are_asked_for_again(staged: Staged, provider: Provider, pair: Any, place: str) -> None:
    provider.clock.run_at(0)
    scene = staged(Settings(pair))
    assert scene.killed_at(place)
    provider.emulator.advance(A_MONTH)
    provider.clock.run_at(SPEED)
    outcomes = scene.finish()
    assert all(outcome.result is not None for outcome in outcomes)
    books, counters = provider.books, scene.counters()
    assert (books["batch_requests"], books["paid_again"], books["requests"]) == (24, 6, 0)
    assert (counters.resent, counters.failed) == (6, 0)
