"""A job whose process is killed goes on in another one: same results, and nothing that it has is paid for again."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import groundswell
from groundswell.emulator.latency import Latency
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.experiments.secret_game import BatchService, GameService
from tests.experiments.secret_game.documented import night_job
from tests.experiments.secret_game.documented.night_job import CAP, MESSAGES, TALKS
from tests.experiments.secret_game.documented.scene import Room, batches
from tests.patience import PATIENCE

FAST = 3000
SCRIPT = Path(night_job.__file__)


@pytest.fixture(scope="module")
def _quick() -> Iterator[Threaded]:
    """An emulator that takes its time for a reply, so that there is one to be killed in."""
    with running(Settings(speed=FAST, latency=Latency(0.02))) as emulator:
        yield emulator


def kill_when(reached: Callable[[], bool], way: str) -> None:
    """Run the job in a process of its own, which is killed as soon as something is so."""
    paths = os.pathsep.join([str(Path(groundswell.__file__).parents[1]), str(SCRIPT.parents[4])])
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), way], env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE
    ) as process:
        until = time.monotonic() + PATIENCE
        while not reached():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.002)
        process.kill()
        process.communicate()
    left = BatchService(GameService()).get_batch_job("night")
    assert left.status == "interrupted"
    assert left.counts["completed"] < TALKS
    assert not left.results_path.exists()


@pytest.mark.slow
def test_a_live_job_that_is_killed_pays_hardly_anything_twice(room: Room) -> None:
    whole = night_job.run("live")
    alone, expected, figures = room.books, whole.results_path.read_bytes(), whole.analysis_path.read_bytes()

    room.enter("killed")
    room.emulator.reset()
    moments = (TALKS // 2, TALKS * 2)
    for replies in moments:
        kill_when(lambda replies=replies: room.books["requests"] >= replies, "live")  # type: ignore[misc]
    done = night_job.run("live")
    assert (done.status, done.counts["completed"]) == ("completed", TALKS)
    assert done.results_path.read_bytes() == expected
    assert done.analysis_path.read_bytes() == figures
    again = room.books["paid_again"]
    assert room.books["requests"] - again == alone["requests"]
    assert again <= len(moments) * (1.5 * CAP + 2)
    assert done.summary is not None
    assert again <= done.summary.asks.resent


def set_clock(room: Room, **wanted: float) -> None:
    """Set the clock by which batches are worked on."""
    body = json.dumps(wanted).encode()
    with urllib.request.urlopen(f"{room.emulator.url}/emulator/clock", body) as answer:
        answer.read()


def waves_that_wait(count: int) -> bool:
    """Whether so many batches were ordered, of which the last is known by its receipt and has not ended."""
    if not Path("groundswell.db").exists():
        return False
    connection = sqlite3.connect("file:groundswell.db?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT receipt, ended_at FROM waves ORDER BY id").fetchall()
    except sqlite3.OperationalError:  # its tables are being made
        return False
    finally:
        connection.close()
    return len(rows) == count and rows[-1][0] is not None and rows[-1][1] is None


@pytest.mark.slow
def test_a_job_in_batches_that_is_killed_pays_nothing_twice(room: Room) -> None:
    whole = night_job.run("batch")
    alone, expected, figures = room.books, whole.results_path.read_bytes(), whole.analysis_path.read_bytes()
    sizes = batches()
    assert len(sizes) == MESSAGES

    room.enter("killed")
    room.emulator.reset()
    set_clock(room, speed=0)
    try:
        for wave in (1, 2):
            kill_when(lambda wave=wave: waves_that_wait(wave), "batch")  # type: ignore[misc]
            set_clock(room, advance=86_000)
        set_clock(room, speed=FAST)
        done = night_job.run("batch")
    finally:
        set_clock(room, speed=FAST)
    assert (done.status, done.counts["completed"]) == ("completed", TALKS)
    assert done.results_path.read_bytes() == expected
    assert done.analysis_path.read_bytes() == figures
    assert batches() == sizes
    assert room.books["batch_requests"] == alone["batch_requests"]
    assert (room.books["paid_again"], room.books["requests"]) == (0, alone["requests"])
