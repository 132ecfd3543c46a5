"""Real processes and real signals: a first Ctrl-C waits for replies, a second does not; both can be resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell.cli.running import ENDING, STOPPING
from tests.cli.conftest import EXPERIMENT, CommandLine
from tests.patience import PATIENCE


class Process:
    """`groundswell run` in a process of its own, with a model that answers once the gate is open."""

    def __init__(self, cli: CommandLine, driver: str, *sets: str, before: Sequence[str] = ()) -> None:
        self.folder = cli.folder
        code = "from groundswell.cli.app import main; main()"
        words = ["run", f"{EXPERIMENT}:{driver}", "--name", "r", "--store", str(cli.store), "--json", "-v"]
        for change in (f"folder={cli.folder}", "model=scripted/gated", *sets):
            words += ["--set", change]
        source = str(Path(groundswell.__file__).parents[1])
        self.process = subprocess.Popen(
            [*before, sys.executable, "-c", code, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source},
        )

    def wait_for_asks(self, count: int) -> None:
        """Wait until the model has been asked this often."""
        until = time.monotonic() + PATIENCE
        while not (arrived := self.folder / "arrived").exists() or arrived.stat().st_size < count:
            assert time.monotonic() < until
            assert self.process.poll() is None
            time.sleep(0.005)

    def signal(self, number: signal.Signals, then: str) -> None:
        """Send a signal and wait until the process has said this."""
        self.process.send_signal(number)
        self.wait_for_line(then)

    def wait_for_line(self, ending: str) -> None:
        """Read standard error up to a line that ends so."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.rstrip().endswith(ending):
                return
        pytest.fail(f"the process never said {ending!r}")

    def open_gate(self) -> None:
        (self.folder / "gate").touch()

    def end(self) -> tuple[int, Any, str]:
        """Exit status, the JSON object, and the rest of standard error."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, json.loads(out), err


@contextmanager
def started(cli: CommandLine, driver: str = "driver", *sets: str, before: Sequence[str] = ()) -> Iterator[Process]:
    process = Process(cli, driver, *sets, before=before)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.communicate()


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["Ctrl-C", "SIGTERM", "SIGHUP"])
def test_a_first_signal_waits_for_the_replies_in_flight(cli: CommandLine, number: signal.Signals) -> None:
    with started(cli) as process:
        process.wait_for_asks(4)
        process.signal(number, then=STOPPING)
        process.open_gate()
        status, found, told = process.end()
    assert (status, found["status"], found["trials"]) == (
        130,
        "interrupted",
        {"planned": 4, "usable": 0, "missing": 0},
    )
    assert f"to resume: groundswell runs resume {found['run_id']} --store {cli.store}" in told
    ended = cli.json("runs", "resume", "r")
    assert (ended["status"], ended["trials"]["usable"]) == ("completed", 4)
    assert (ended["asks"]["sent"], ended["asks"]["resent"], ended["asks"]["replayed"]) == (8, 0, 4)


@pytest.mark.slow
def test_a_second_signal_ends_at_once_and_the_run_can_be_resumed(cli: CommandLine) -> None:
    with started(cli) as process:
        process.wait_for_asks(4)
        process.signal(signal.SIGINT, then=STOPPING)
        process.signal(signal.SIGINT, then=ENDING)
        status, found, told = process.end()
    assert (status, found["status"], found["trials"]["planned"]) == (130, "interrupted", 4)
    assert "groundswell runs resume" in told
    (cli.folder / "gate").touch()
    ended = cli.json("runs", "resume", "r")
    assert (ended["status"], ended["trials"]["usable"], ended["asks"]["resent"]) == ("completed", 4, 4)


@pytest.mark.slow
def test_a_run_under_nohup_goes_on_when_the_terminal_hangs_up(cli: CommandLine) -> None:
    with started(cli, before=["nohup"]) as process:
        process.wait_for_asks(4)
        process.process.send_signal(signal.SIGHUP)
        process.open_gate()
        status, found, _ = process.end()
    assert (status, found["status"], found["trials"]["usable"]) == (0, "completed", 4)


@pytest.mark.slow
def test_more_signals_end_the_process_without_a_traceback(cli: CommandLine) -> None:
    with started(cli, "stuck_driver") as process:
        process.wait_for_asks(1)
        process.signal(signal.SIGINT, then=STOPPING)
        process.signal(signal.SIGINT, then=ENDING)
        while process.process.poll() is None:  # whatever it does meanwhile
            process.process.send_signal(signal.SIGINT)
        _, told = process.process.communicate(timeout=PATIENCE)
    assert process.process.returncode == 130
    assert "Traceback" not in told
    assert cli.json("runs", "show", "r")["status"] == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_while_results_are_printed_says_how_to_see_them(cli: CommandLine, number: signal.Signals) -> None:
    with started(cli, "driver", "model=scripted/echo", f"word={'x' * 60_000}", "folder=") as process:
        assert process.process.stdout is not None
        os.read(process.process.stdout.fileno(), 1)  # it has begun, and cannot end: there is more than a pipe holds
        process.process.send_signal(number)
        _, told = process.process.communicate(timeout=PATIENCE)
    assert process.process.returncode == 130
    run = cli.json("runs", "show", "r")
    assert run["status"] == "completed"
    resume = f"groundswell runs resume {run['run_id']} --store {cli.store}"
    assert told.endswith(f"interrupted; the run is in the store; to write its report: {resume}\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_while_the_store_is_closed_says_so(cli: CommandLine, number: signal.Signals) -> None:
    with started(cli, "signalled_driver", f"trials={number:d}") as process:
        _, told = process.process.communicate(timeout=PATIENCE)
    assert process.process.returncode == 130
    run = cli.json("runs", "show", "r")
    assert run["status"] == "completed"
    resume = f"groundswell runs resume {run['run_id']} --store {cli.store}"
    assert told.endswith(f"interrupted; the run is in the store; to write its report: {resume}\n")


@pytest.mark.slow
def test_a_second_signal_does_not_wait_for_a_function_in_a_thread(cli: CommandLine) -> None:
    with started(cli, "stuck_driver") as process:
        process.wait_for_asks(1)
        process.signal(signal.SIGINT, then=STOPPING)
        process.signal(signal.SIGINT, then=ENDING)
        status, found, _ = process.end()
    assert (status, found["status"]) == (130, "interrupted")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_signals_end_a_process_that_computes_without_end(cli: CommandLine, number: signal.Signals) -> None:
    """The event loop is held up, so that it can take no signal; the second one ends the process all the same."""
    with started(cli, "computing_driver") as process:
        process.wait_for_asks(1)
        until = time.monotonic() + PATIENCE
        while process.process.poll() is None and time.monotonic() < until:
            process.process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                process.process.wait(0.2)
        assert process.process.returncode == 130
        assert process.process.stderr is not None
        assert ENDING in process.process.stderr.read()
    assert cli.json("runs", "show", "r")["status"] == "interrupted"


@pytest.mark.slow
def test_cancel_stops_another_process_and_delete_refuses_meanwhile(cli: CommandLine) -> None:
    with started(cli) as process:
        process.wait_for_asks(4)
        assert cli.json("runs", "list")["runs"][0]["status"] == "running"
        assert "cancel it first" in cli("runs", "delete", "r", "--yes", status=1).stderr
        assert "is open in process" in cli("runs", "resume", "r", status=1).stderr
        assert cli.json("runs", "cancel", "r")["process"] is True
        process.wait_for_line("run 'r' was cancelled")
        process.open_gate()
        status, found, told = process.end()
    assert (status, found["status"], found["error"]) == (3, "stopped", "run 'r' was cancelled")
    assert "groundswell runs resume" in told


@pytest.mark.slow
def test_a_run_that_is_killed_after_it_was_asked_to_stop_has_stopped_and_a_user_can_resume_it(cli: CommandLine) -> None:
    with started(cli) as process:
        process.wait_for_asks(4)
        assert cli.json("runs", "cancel", "r")["process"] is True
        process.process.kill()
        process.process.wait()
    assert cli.json("runs", "show", "r")["status"] == "stopped"
    (cli.folder / "gate").touch()
    assert cli.json("runs", "resume", "r")["status"] == "completed"


@pytest.mark.slow
def test_a_killed_run_is_shown_as_interrupted_and_resumed(cli: CommandLine) -> None:
    with started(cli) as process:
        process.wait_for_asks(4)
        process.process.kill()
        process.process.wait()
    assert cli.json("runs", "show", "r")["status"] == "interrupted"
    (cli.folder / "gate").touch()
    assert cli.json("runs", "resume", "r")["asks"]["resent"] == 4


def test_a_signal_while_python_exits_prints_no_traceback() -> None:
    code = (
        "import atexit, os, signal, sys\n"
        "from groundswell.cli.app import main\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "sys.argv = ['groundswell', '--version']\n"
        "main()\n"
    )
    source = str(Path(groundswell.__file__).parents[1])
    ended = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
        timeout=PATIENCE,
    )
    assert (ended.returncode, ended.stderr) == (130, "")
