"""The server, killed with five batches in flight and one waiting: started again, it finishes all, each thing once."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import groundswell
from groundswell.emulator.latency import Latency
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.entities import Entity
from groundswell.store.journal import Store
from tests.patience import PATIENCE
from tests.shows.desk import Desk

RUNNING, WAITING, SIMULATIONS, TURNS = 5, 1, 16, 3
BATCHES = RUNNING + WAITING
ASKS = BATCHES * SIMULATIONS * 2 * TURNS
CAP = 8
MOST_AT_ONCE = 1.5 * CAP + 2
"""Asks that may be in flight, and so be lost by one kill."""
SERVER = """
import sys
from groundswell.web.serving import serve
from groundswell.web.settings import ServerSettings
serve(
    ServerSettings(store="runs.db", port=0, model="openai/gpt-4o-mini", max_running=RUNNING, max_concurrent=CAP),
    ready=lambda url: print(url, flush=True),
)
""".replace("CAP", str(CAP)).replace("RUNNING", str(RUNNING))


@pytest.fixture(scope="module")
def slow() -> Iterator[Threaded]:
    with running(Settings(latency=Latency(0.03))) as emulator:
        yield emulator


class Site(Desk):
    """A folder with a store, and servers on it, one after another."""

    @contextmanager
    def server(self) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            cwd=self.folder,
            env={**self.variables, "PYTHONPATH": str(Path(groundswell.__file__).parents[1])},
            text=True,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url, "the server did not start"
            with httpx.Client(base_url=f"{url}/api", timeout=PATIENCE, trust_env=False) as client:
                yield process, client
        finally:
            process.kill()
            process.communicate()

    def asked_to_stop(self) -> bool:
        """Whether some run in the store is marked as one that is to stop."""
        with closing(sqlite3.connect(self.folder / "runs.db")) as connection:
            return connection.execute("SELECT 1 FROM runs WHERE cancel").fetchone() is not None

    def add_entities(self) -> None:
        store = Store(self.folder / "runs.db")
        Catalogue(store.documents).add_entities(*(Entity(f"e{at}", f"Person {at}") for at in range(10)))
        store.close_reading()


def create(client: httpx.Client, number: int) -> str:
    """A batch like no other: another context gives other requests."""
    body = {
        "name": f"batch {number}",
        "context": f"Discussion number {number}",
        "entity_ids": [f"e{at}" for at in range(10)],
        "interaction_size": 2,
        "num_simulations": SIMULATIONS,
        "n_turns": TURNS,
        "seed": number,
    }
    made = client.post("/batch-simulations", json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["data"]["id"])


def statuses(client: httpx.Client) -> dict[str, str]:
    return {each["id"]: each["status"] for each in client.get("/batch-simulations").json()["data"]}


def follow(client: httpx.Client, batch: str) -> None:
    """Wait until a batch has ended."""
    with client.stream("GET", f"/batch-simulations/{batch}/events") as response:
        assert [line for line in response.iter_lines() if line.startswith("event: ")][-1] == "event: end"


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_batches_in_flight_all_finish(tmp_path: Path, slow: Threaded) -> None:
    site = Site(tmp_path / "site", slow)
    site.add_entities()
    with site.server() as (process, client):
        ids = [create(client, number) for number in range(BATCHES)]
        until = time.monotonic() + PATIENCE
        while site.books["requests"] < ASKS // 4:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.005)
        before = Counter(statuses(client).values())
        process.kill()
        process.wait()
    assert before == {"in_progress": RUNNING, "pending": WAITING}

    with site.server() as (process, client):
        for id_ in ids:
            follow(client, id_)
        assert statuses(client) == dict.fromkeys(reversed(ids), "completed")
        for id_ in ids:
            check(client.get(f"/batch-simulations/{id_}").json()["data"])
        runs = client.get("/runs").json()["data"]
        process.terminate()
        assert process.wait(PATIENCE) == 0

    assert len(runs) == BATCHES
    assert all(run["trials"] == {"planned": SIMULATIONS, "usable": SIMULATIONS, "missing": 0} for run in runs)
    books, resent = site.books, sum(run["asks"]["resent"] for run in runs)
    assert books["requests"] - books["paid_again"] == ASKS
    assert books["paid_again"] <= MOST_AT_ONCE
    assert books["paid_again"] <= resent <= RUNNING * MOST_AT_ONCE  # each run fears for what all may have lost


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_a_server_that_is_told_to_stop_leaves_batches_to_be_found_again(tmp_path: Path, how: signal.Signals) -> None:
    with running(Settings(latency=Latency(600.0))) as endless:
        site = Site(tmp_path / "site", endless)
        site.add_entities()
        with site.server() as (process, client):
            id_ = create(client, 1)
            with client.stream("GET", f"/batch-simulations/{id_}/events") as response:
                lines = response.iter_lines()
                assert any('"in_progress"' in line for line in lines)
                process.send_signal(how)
                assert not any(line == "event: end" for line in lines)
            assert process.wait(PATIENCE) == 0
    assert [run["status"] for run in site.runs] == ["interrupted"]
    with running(Settings()) as quick:
        site = Site(tmp_path / "site", quick)
        with site.server() as (_, client):
            follow(client, id_)
            assert statuses(client) == {id_: "completed"}


@pytest.mark.slow
def test_a_batch_that_was_cancelled_does_not_come_back_after_a_kill(tmp_path: Path) -> None:
    with running(Settings(latency=Latency(600.0))) as endless:
        site = Site(tmp_path / "site", endless)
        site.add_entities()
        with site.server() as (process, client):
            cancelled, other = create(client, 1), create(client, 2)
            until(lambda: statuses(client)[cancelled] == "in_progress")
            assert client.post(f"/batch-simulations/{cancelled}/cancel").status_code == 200
            process.kill()
            process.wait()
    with running(Settings()) as quick:
        site = Site(tmp_path / "site", quick)
        with site.server() as (_, client):
            for id_ in (cancelled, other):
                follow(client, id_)
            assert statuses(client) == {other: "completed", cancelled: "failed"}
            runs = {run["run_id"]: run for run in client.get("/runs").json()["data"]}
            assert runs[cancelled.removeprefix("batch-")]["status"] == "stopped"
            assert site.books["requests"] == SIMULATIONS * 2 * TURNS  # those of the other batch
            assert client.post(f"/batch-simulations/{cancelled}/resume").status_code == 200
            follow(client, cancelled)
            assert statuses(client)[cancelled] == "completed"


@pytest.mark.slow
def test_a_batch_whose_deletion_was_cut_short_by_a_kill_is_deleted(tmp_path: Path) -> None:
    with running(Settings(latency=Latency(600.0))) as endless:
        site = Site(tmp_path / "site", endless)
        site.add_entities()
        with site.server() as (process, client), ThreadPoolExecutor(1) as beside:
            id_ = create(client, 1)
            until(lambda: statuses(client)[id_] == "in_progress")
            deleting = beside.submit(client.delete, f"/batch-simulations/{id_}")  # waits for what is in flight
            until(lambda: site.asked_to_stop() or deleting.done())
            assert not deleting.done(), "it was not written down that the batch is to be deleted"
            process.kill()
            process.wait()
            assert isinstance(deleting.exception(), httpx.TransportError)
    assert len(site.runs) == 1
    with running(Settings()) as quick:
        site = Site(tmp_path / "site", quick)
        with site.server() as (_, client):
            until(lambda: statuses(client) == {})
            follow(client, create(client, 2))
        assert len(site.runs) == 1
        assert site.books["requests"] == SIMULATIONS * 2 * TURNS  # those of the new batch


def until(condition: Callable[[], Any]) -> None:
    """Wait for something that another process does."""
    last = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.01)


def check(batch: Any) -> None:
    """Every simulation is there once, whole, and no pair talked twice."""
    simulations = batch["simulations"]
    assert [each["sequence_number"] for each in simulations] == list(range(1, SIMULATIONS + 1))
    assert all(each["status"] == "completed" for each in simulations)
    assert all(len(each["lines"]) == 2 * TURNS for each in simulations)
    assert len({frozenset(each["entity_ids"]) for each in simulations}) == SIMULATIONS
