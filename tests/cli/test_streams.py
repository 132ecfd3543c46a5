"""Real processes whose output nobody reads any more: a run goes on to its end, and its files are written."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import groundswell
from tests.cli.conftest import DRIVER, CommandLine
from tests.patience import PATIENCE

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(groundswell.__file__).parents[1])}
RUN = ("run", DRIVER, "--name", "r", "-v")
PLAY = ("play", "-m", "emulated/leaker:0.9", "--interactions", "2", "--messages", "2", "--name", "r")


def begin(
    words: tuple[str, ...], cwd: Path, stdout: int, stderr: int, *, wrapped: str = '"$@"'
) -> subprocess.Popen[str]:
    """A command in a session of its own, started by a shell that may close streams before."""
    command = ["sh", "-c", wrapped, "sh", sys.executable, "-m", "groundswell", *words, "--store", "runs.db"]
    return subprocess.Popen(
        command, cwd=cwd, env=ENVIRONMENT, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL, text=True,
        start_new_session=True,
    )  # fmt: skip


def closed_pipe() -> int:
    """The end to write to of a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    return write


def gone_terminal() -> int:
    """A terminal whose window was closed."""
    master, slave = pty.openpty()
    os.close(master)
    return slave


@pytest.mark.slow
def test_a_game_whose_reader_left_writes_its_report(cli: CommandLine) -> None:
    """As `groundswell play ... | head -1` does, once head has its line."""
    unread = closed_pipe()
    process = begin(PLAY, cli.folder, unread, subprocess.PIPE)
    os.close(unread)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    assert "BrokenPipe" not in told
    assert "Traceback" not in told
    assert cli.json("runs", "show", "r")["status"] == "completed"
    assert (cli.folder / "results" / "r" / "report.html").exists()


@pytest.mark.slow
def test_a_run_with_closed_output_and_error_goes_on(cli: CommandLine) -> None:
    process = begin(RUN, cli.folder, subprocess.DEVNULL, subprocess.DEVNULL, wrapped='exec "$@" >&- 2>&-')
    assert process.wait(timeout=PATIENCE) == 0
    assert cli.json("runs", "show", "r")["status"] == "completed"


@pytest.mark.slow
def test_a_run_whose_terminal_went_away_goes_on(cli: CommandLine) -> None:
    stream = gone_terminal()
    process = begin(RUN, cli.folder, stream, stream)
    os.close(stream)
    assert process.wait(timeout=PATIENCE) == 0
    found = cli.json("runs", "show", "r")
    assert (found["status"], found["trials"]["usable"]) == ("completed", 4)


@pytest.mark.slow
def test_an_exit_status_is_that_of_the_command_though_nobody_reads(cli: CommandLine) -> None:
    stream = closed_pipe()
    process = begin(("runs", "show", "nobody"), cli.folder, stream, stream)
    os.close(stream)
    assert process.wait(timeout=PATIENCE) == 1


def test_a_full_disk_is_not_a_reader_that_left() -> None:
    from groundswell.cli.streams import Lasting

    number = os.open("/dev/full", os.O_WRONLY)
    try:
        with Lasting(number) as stream, pytest.raises(OSError, match="No space") as raised:
            stream.write(b"rows")
    finally:
        os.close(number)
    assert raised.value.errno == errno.ENOSPC
