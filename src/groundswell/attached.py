"""Runs a command, and ends it when standard input is closed: `python attached.py COMMAND...`.

So the command does not outlive the process that has the other end, however that one ends. It is a script of its own,
which imports nothing of Groundswell, so that it needs little memory.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

GRACE = 20.0
"""Seconds that the command has to end by itself."""
DIES_WITH_PARENT = 1
"""Linux: PR_SET_PDEATHSIG of prctl."""


def main(command: list[str]) -> int:
    """Run the command. Returns its exit status, as a shell would."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509  no other thread has been started
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: threading.Thread(target=_end, args=(process,), daemon=True).start())
    threading.Thread(target=_watch, args=(process,), daemon=True).start()
    status = process.wait()
    _signal(process, signal.SIGKILL)  # what it has started
    return 128 - status if status < 0 else status


def _die_with_parent() -> None:
    """In the child: end it even if this script is killed, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)


def _watch(process: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal(process, signal.SIGTERM)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the command and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
