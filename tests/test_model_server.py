"""Model servers that workers start: small ones here, and llama.cpp with a real model."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from groundswell import attached
from groundswell.errors import SettingsError
from groundswell.model_server import ModelServer, served_account
from groundswell.store.journal import Store
from tests.local_model import WEIGHTS, needs_model
from tests.stores import new_database, rows

SMALL = """
import http.server, os, sys

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked for", self.path, flush=True)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

print(os.getpid(), flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


class Scene:
    """A store, a small server, and what was said about it."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "runs.db")
        self.script = folder / "small.py"
        self.script.write_text(SMALL)
        self.said: list[str] = []

    def start(self, command: str = "") -> ModelServer:
        account = served_account("vllm", ["vllm.base_url=workers"])
        path = self.store.database.path
        assert path is not None
        return ModelServer(path, account, command or f"{sys.executable} {self.script} {{port}}", say=self.said.append)

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.store.servers.of("vllm")]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.store.close_reading()


def test_a_server_is_listed_while_it_answers_and_started_again_if_it_fails(scene: Scene) -> None:
    with scene.start():
        until(lambda: scene.urls)
        first = scene.urls
        process = _pid_of(scene.script)
        assert process
        os.kill(process, signal.SIGKILL)
        until(lambda: not scene.urls)
        until(lambda: scene.urls)
        assert "the model server has ended with status 137" in " ".join(scene.said)
        assert first[0].startswith("http://127.0.0.1:")
    assert not scene.urls
    assert _pid_of(scene.script) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_ends_with_the_script_that_it_is_attached_to(scene: Scene, number: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, attached.__file__, sys.executable, str(scene.script), str(port)]
    script = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert script.stdout is not None
    assert script.stdin is not None
    script.stdout.readline()
    script.send_signal(number)
    script.wait(30)
    until(lambda: not _pid_of(scene.script))
    script.stdin.close()
    script.stdout.close()


def test_a_server_that_never_answers_is_given_up_with_its_last_line(scene: Scene) -> None:
    with scene.start(f"{sys.executable} -c 'raise SystemExit(\"no such model\")' {{port}}") as server:
        until(lambda: server.gave_up)
    assert server.gave_up == "the model server has ended with status 1: no such model"
    with scene.start("no-such-command {port}") as server:
        until(lambda: server.gave_up)
    assert server.gave_up == "the model server has ended with status 127: no-such-command: No such file or directory"


def test_what_cannot_work_is_refused_at_once(scene: Scene) -> None:
    with pytest.raises(SettingsError, match=r"must contain \{port\}"):
        scene.start("vllm serve some/model")
    with pytest.raises(SettingsError, match="No closing quotation"):
        scene.start("vllm 'serve {port}")
    with pytest.raises(SettingsError, match=r'account llamacpp has the address http.* set base_url = "workers"'):
        served_account("llamacpp")
    account = served_account("vllm", ["vllm.base_url=workers"])
    for host in ("gpu 7", "http://gpu7", "gpu7/v1", "me@gpu7", ""):
        with pytest.raises(SettingsError, match="must be a host name or an IP address"):
            ModelServer("runs.db", account, "serve {port}", host=host)
    for host in ("gpu7", "GPU7.lab", "10.0.0.7", "[::1]"):
        ModelServer("runs.db", account, "serve {port}", host=host)


def _pid_of(script: Path) -> int:
    """The process of a script; 0 if there is none."""
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = found.read_bytes().split(b"\0")
        except OSError:
            continue
        if len(words) > 1 and words[1] == str(script).encode():
            return int(found.parent.name)
    return 0


GROUNDSWELL = [sys.executable, "-m", "groundswell"]
BY_WORKERS = ["--account", "vllm.base_url=workers"]


def start_worker(store: str, command: str) -> subprocess.Popen[bytes]:
    serving = ["--server", command, "--server-account", "vllm"]
    return subprocess.Popen([*GROUNDSWELL, "worker", "--store", store, *serving, *BY_WORKERS])


@pytest.mark.slow
def test_the_server_of_a_killed_worker_ends_with_it(scene: Scene) -> None:
    store = new_database()
    worker = start_worker(store, f"{sys.executable} {scene.script} {{port}}")
    try:
        until(lambda: rows(store, "SELECT 1 FROM pg_tables WHERE tablename = 'servers'"))
        until(lambda: rows(store, "TABLE servers"))
        assert _pid_of(scene.script)
    finally:
        worker.kill()
        worker.wait()
    until(lambda: not _pid_of(scene.script))
    reader = Store(store)
    assert reader.servers.of("vllm") == []
    reader.close_reading()


@pytest.mark.slow
def test_a_worker_whose_server_cannot_be_started_ends_with_an_error() -> None:
    command = [*GROUNDSWELL, "worker", "--store", new_database(), *BY_WORKERS]
    failed = subprocess.run(
        [*command, "--server", "false {port}", "--server-account", "vllm"], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[-1] == "error: the model server has ended with status 1"


@pytest.mark.campaign
@needs_model
def test_workers_with_llama_cpp_serve_a_run(tmp_path: Path) -> None:
    """A real model behind two servers, which end with their workers."""
    store = new_database()
    server = Path(__file__).parent / "transports" / "llamacpp_server.py"
    workers = [start_worker(store, f"{sys.executable} {server} {WEIGHTS} {{port}}") for _ in range(2)]
    try:
        remarks = tmp_path / "remarks.csv"
        remarks.write_text("remark\n" + "".join(f"Number {n} is nice.\n" for n in range(8)))
        until(lambda: rows(store, "SELECT 1 FROM pg_tables WHERE tablename = 'servers'"))
        until(lambda: len(rows(store, "TABLE servers")) == 2, 60.0)
        asked = ["map", str(remarks), "--prompt", "Answer yes or no: {remark}", "--model", "vllm/smollm2"]
        done = subprocess.run(
            [*GROUNDSWELL, *asked, "--store", store, "--workers", "0", "--json", *BY_WORKERS],
            capture_output=True,
            check=True,
        )
        assert msgspec.json.decode(done.stdout)["trials"]["usable"] == 8
        for worker in workers:
            worker.terminate()
        assert [worker.wait(60) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert _pid_of(server) == 0
    assert rows(store, "TABLE servers") == []
