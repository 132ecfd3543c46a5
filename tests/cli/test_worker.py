"""`groundswell worker`, and the options that need workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import CommandLine
from tests.stores import new_database, rows

PLAY = ("play", "--model", "emulated/leaker:0.5", "--interactions", "4", "--messages", "2")


@pytest.mark.parametrize(
    "words",
    [("worker",), (*PLAY, "--workers", "2"), (*PLAY, "--cluster", "ray"), ("runs", "resume", "x", "--workers", "2")],
)
def test_workers_on_a_file_are_refused_with_what_to_do(cli: CommandLine, words: tuple[str, ...]) -> None:
    if words[0] == "runs":
        cli(*PLAY, "--name", "x", "--max-calls", "3", "--out", str(cli.folder / "out"), status=3)
    refused = cli(*words, status=2)
    assert "workers need a store in PostgreSQL" in refused.stderr
    assert "groundswell postgres up" in refused.stderr


def test_batches_and_workers_together_are_refused(cli: CommandLine) -> None:
    refused = cli(*PLAY, "--workers", "2", "--via", "batch", "--store", new_database(), status=2)
    assert "batches are sent by one process" in refused.stderr


@pytest.mark.slow
def test_a_worker_serves_all_runs_until_it_is_told_to_end(tmp_path: Path) -> None:
    store = new_database()
    groundswell = [sys.executable, "-m", "groundswell"]
    worker = subprocess.Popen([*groundswell, "worker", "--store", store], stderr=subprocess.PIPE, text=True)
    try:
        for name in ("one", "two"):
            out = ["--name", name, "--out", str(tmp_path / name), "--store", store, "--json"]
            done = subprocess.run([*groundswell, *PLAY, *out, "--workers", "0"], capture_output=True, check=True)
            assert msgspec.json.decode(done.stdout)["trials"]["usable"] == 4
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=60)
    finally:
        worker.kill()
    assert worker.returncode == 0
    assert "run one: shard 1" in said
    assert "run two: shard 1" in said


@pytest.mark.slow
def test_an_attached_worker_ends_with_its_standard_input(tmp_path: Path) -> None:
    store = new_database()
    command = [sys.executable, "-m", "groundswell", "worker", "--attached", "--store", store]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert worker.stdin is not None
    time.sleep(0.1)
    worker.stdin.close()
    assert worker.wait(60) == 0


@pytest.mark.slow
def test_a_worker_of_a_run_ends_with_it_and_refuses_other_code(tmp_path: Path) -> None:
    """Its file is not trusted there, as on a machine of somebody else."""
    store = new_database()
    study = tmp_path / "study.py"
    study.write_text(
        "from groundswell import driver, program\n\n\n"
        "@program('study/p')\n"
        "async def p(trial, spec: int) -> int:\n    return spec\n\n\n"
        "@driver('study/main')\n"
        "async def main(run, settings: dict) -> int:\n"
        "    return len([outcome async for outcome in run.map(p, range(3))])\n"
    )
    elsewhere = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    head = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "groundswell",
            "run",
            f"{study}:main",
            "--name",
            "s",
            "--workers",
            "0",
            "--store",
            store,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not rows(store, "SELECT 1 FROM pg_tables WHERE tablename = 'work'") or not rows(store, "TABLE work"):
            time.sleep(0.05)
        command = [sys.executable, "-m", "groundswell", "worker", "--run", "s", "--store", store]
        refused = subprocess.run(command, env=elsewhere, capture_output=True, text=True, check=False)
        assert refused.returncode != 0
        assert "have not trusted" in refused.stderr
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert head.wait(60) == 0
    finally:
        head.kill()
        head.communicate()
