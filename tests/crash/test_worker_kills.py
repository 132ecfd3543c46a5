"""Workers, the head of a run and the database are killed with SIGKILL: nothing is lost, and nothing is paid twice
that was stored."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from groundswell.emulator.latency import Latency
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.engine.rate_limit import most_uncommitted
from groundswell.engine.records import Counters
from groundswell.store.local_postgres import LocalServer
from tests.crash.worker_experiment import TURNS
from tests.stores import rows, server_of_its_own

pytestmark = pytest.mark.slow
DRIVER = f"{Path(__file__).with_name('worker_experiment.py')}:chats"
CAP = 16
"""Requests that all workers together may have in flight."""
MAY_BE_LOST = CAP + most_uncommitted(CAP)
"""Replies that the kill of one worker may lose."""
TRIALS = 300
HOLDERS = "SELECT process::json->>'pid', holder FROM shards JOIN holders ON holders.id = holder"


def environment(emulator: Threaded) -> dict[str, str]:
    """That of processes that send requests to the emulator."""
    return {**os.environ, "OPENAI_BASE_URL": f"{emulator.url}/v1", "OPENAI_API_KEY": "x"}


def call(emulator: Threaded, *command: str) -> str:
    """What a command prints."""
    whole = [sys.executable, "-m", "groundswell", *command]
    return subprocess.run(whole, env=environment(emulator), capture_output=True, check=True, text=True).stdout


def parent_of(pid: int) -> int:
    """The process that has started another one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Cluster:
    """A run on a database of its own, with a head and workers as processes."""

    def __init__(
        self, server: LocalServer, emulator: Threaded, *, cluster: tuple[str, ...] = ("--workers", "2")
    ) -> None:
        self.server = server
        self.emulator = emulator
        self.lost = 0
        """How many requests the kills so far may have lost."""
        self._cluster = cluster
        self._environment = environment(emulator)
        self.head = self.start("run", DRIVER, "--name", "run", "--no-cache")

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a process of the command line."""
        how = [*command, *self._cluster, "--max-concurrent", str(CAP), "--store", self.server.url, "--json"]
        return subprocess.Popen(
            [sys.executable, "-m", "groundswell", *how],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended_trials(self) -> int:
        """How many trials have an outcome."""
        with suppress(psycopg.Error):
            return int(rows(self.server.url, "SELECT count(*) FROM outcomes")[0][0])
        return 0

    def wait_for(self, trials: int) -> None:
        """Wait until so many trials have ended, or the run."""
        while self.ended_trials() < trials and self.head.poll() is None:
            time.sleep(0.02)

    def kill_worker(self, draw: random.Random) -> None:
        """Kill one worker; in a cluster, the actor that has started it, which lets it end by itself."""
        with suppress(psycopg.Error):
            held = rows(self.server.url, HOLDERS)
            if held:
                pid = draw.choice(sorted({pid for pid, _ in held}))
                self.lost += MAY_BE_LOST * sum(each == pid for each, _ in held)
                with suppress(ProcessLookupError, FileNotFoundError):
                    os.kill(parent_of(int(pid)) if "ray" in self._cluster else int(pid), signal.SIGKILL)

    def kill_head(self) -> None:
        """Kill the head, and continue the run. Its workers end by themselves."""
        self.head.kill()
        self.head.communicate()
        until = time.monotonic() + 60
        while True:
            self.head = self.start("runs", "resume", "run")
            time.sleep(0.1)
            if self.head.poll() is None or time.monotonic() > until:
                return
            self.head.communicate()

    def kill_database(self) -> None:
        """Kill the server and start it again."""
        os.kill(self.server.pid, signal.SIGKILL)
        time.sleep(0.2)
        self.server.up()

    def finish(self) -> Any:
        """Wait for the end of the run."""
        out, err = self.head.communicate(timeout=240)
        assert self.head.returncode == 0, err
        return msgspec.json.decode(out)

    def check(self, expected: Any) -> None:
        """What must hold at the end."""
        found = self.finish()
        assert found["analysis"] == expected
        journal = rows(self.server.url, "SELECT count(*), count(DISTINCT (trial, path)) FROM asks")
        assert journal == [(TURNS * TRIALS, TURNS * TRIALS)]
        assert rows(self.server.url, "SELECT (SELECT count(*) FROM work), (SELECT count(*) FROM shards)") == [(0, 0)]
        counters = msgspec.json.decode(rows(self.server.url, "SELECT counters FROM runs")[0][0], type=Counters)
        assert (counters.planned, counters.usable, counters.missing) == (TRIALS, TRIALS, 0)
        books = self.emulator.ledger()["totals"]
        again = books["requests"] - TURNS * TRIALS
        assert 0 <= again <= counters.resent <= self.lost
        assert counters.used.calls >= books["requests"], "what may have been sent is counted"


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with server_of_its_own() as started:
        yield started


@pytest.fixture
def emulator() -> Iterator[Threaded]:
    with running(Settings(latency=Latency(0.05))) as started:
        yield started


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one process finds."""
    place = tmp_path_factory.mktemp("alone") / "store.db"
    with running(Settings()) as started:
        done = call(started, "run", DRIVER, "--no-cache", "--json", "--store", str(place))
    return msgspec.json.decode(done)["analysis"]


def campaign(cluster: Cluster, kills: list[str], draw: random.Random, expected: Any) -> None:
    """Kill what the list says, spread over the run, and check what it finds."""
    for number, kill in enumerate(kills):
        cluster.wait_for((number + 1) * TRIALS // (len(kills) + 2))
        if kill == "worker":
            cluster.kill_worker(draw)
        elif kill == "head":
            cluster.kill_head()
        else:
            cluster.kill_database()
    cluster.check(expected)


@pytest.mark.parametrize("kill", ["worker", "head", "database"])
def test_a_run_with_workers_survives_a_kill(server: LocalServer, emulator: Threaded, expected: Any, kill: str) -> None:
    campaign(Cluster(server, emulator), [kill], random.Random(1), expected)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(25))
def test_a_run_with_workers_survives_many_kills(
    server: LocalServer, emulator: Threaded, expected: Any, seed: int
) -> None:
    draw = random.Random(seed)
    kills = draw.choices(["worker", "head", "database"], weights=[2, 1, 1], k=4)
    campaign(Cluster(server, emulator), kills, draw, expected)


@pytest.fixture
def on_ray(emulator: Threaded) -> Iterator[tuple[str, ...]]:
    """The options of runs on a Ray cluster of this machine. There is only one: no two tests may use it at a time."""
    call(emulator, "cluster", "up", "--workers", "3")
    yield "--cluster", "ray", "--workers", "2"
    call(emulator, "cluster", "down")


def test_a_run_on_ray_survives_the_kill_of_an_actor(
    server: LocalServer, emulator: Threaded, expected: Any, on_ray: tuple[str, ...]
) -> None:
    campaign(Cluster(server, emulator, cluster=on_ray), ["worker"], random.Random(1), expected)


@pytest.mark.campaign
def test_runs_on_ray_survive_many_kills(emulator: Threaded, expected: Any, on_ray: tuple[str, ...]) -> None:
    for seed in range(5):
        emulator.reset()
        draw = random.Random(seed)
        kills = draw.choices(["worker", "head", "database"], weights=[2, 1, 1], k=4)
        with server_of_its_own() as server:
            campaign(Cluster(server, emulator, cluster=on_ray), kills, draw, expected)
