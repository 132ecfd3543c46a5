"""`groundswell serve`: where it listens, what it refuses, and how it stops."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import groundswell
from tests.cli.conftest import CommandLine
from tests.patience import PATIENCE


class Server:
    """A server in a process of its own, up to where it says how to stop it."""

    def __init__(self, folder: Path, *words: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDSWELL")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "groundswell", "serve", "--port", "0", "--model", "emulated/keeper", *words],
            cwd=folder,
            env={**kept, "PYTHONPATH": str(Path(groundswell.__file__).parents[1])},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.said = ""
        for line in self.process.stderr:
            self.said += line
            if line.startswith("press Ctrl-C to stop"):
                break
        listening = re.search(r"listens on (http://\S+) ", self.said)
        assert listening is not None, self.said
        self.url = listening[1]

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Press Ctrl-C, or send another signal; the exit status, and what it said then."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    """Servers that end with the test."""
    begun: list[Server] = []
    yield begun
    for server in begun:
        server.close()


def test_it_says_where_it_listens_answers_and_stops(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(server := Server(tmp_path))
    found = httpx.get(f"{server.url}/api/health", timeout=PATIENCE).json()
    assert (found["status"], found["data"]["model"]) == ("success", "emulated/keeper")
    assert "(store: groundswell.db)" in server.said
    assert f"{server.url}/docs" in server.said
    assert "goes on with" not in server.said
    status, said = server.stop()
    assert (status, said.strip()) == (0, "stopped")
    assert (tmp_path / "groundswell.db").exists()


@pytest.mark.slow
def test_what_had_not_ended_is_told_and_a_token_is_asked_for(tmp_path: Path, servers: list[Server]) -> None:
    token = "a-token-of-24-characters"
    _plan(tmp_path)
    servers.append(server := Server(tmp_path, "--token", token, "--host", "127.0.0.1"))
    assert "resuming 1 unfinished run\n" in server.said
    assert httpx.get(f"{server.url}/api/runs", timeout=PATIENCE).status_code == 401
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{server.url}/api/runs", headers=headers, timeout=PATIENCE).status_code == 200
    status, said = server.stop(signal.SIGHUP)
    assert (status, said.strip()) == (0, "stopped")
    assert token not in server.said


def _plan(folder: Path) -> None:
    """Leave a batch in a store, as a server that was killed would."""
    from groundswell.experiments.simulations.batch import Batch
    from groundswell.experiments.simulations.entities import Entity
    from groundswell.experiments.simulations.reading import BATCH
    from groundswell.experiments.simulations.simulation import Rules
    from groundswell.program.request import canonical
    from groundswell.store.journal import Store

    batch = Batch("b", "c", (Entity("a", "A"), Entity("b", "B")), 2, 1, Rules("emulated/keeper"))
    store = Store(folder / "groundswell.db")
    store.runs.create(None, 0, driver=BATCH, settings=canonical(batch).decode(), options={"unattended": True})
    store.close_reading()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0: other machines can reach this address, so a token is required"),
        (["--host", "0.0.0.0", "--token", "short"], "must have at least 16"),
        (["--token", ""], "--token: must not be empty"),
    ],
    ids=["open", "short", "empty"],
)
def test_a_server_that_anybody_could_use_is_refused(cli: CommandLine, words: list[str], said: str) -> None:
    assert said in cli("serve", "--port", "0", *words, status=2).stderr


def test_a_port_that_is_taken(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = cli("serve", "--port", str(port), status=2).stderr
    assert f"error: port {port} on 127.0.0.1 is already in use: give another --port" in told
