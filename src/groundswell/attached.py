"""Runs a command, and ends it when standard input is closed: `python attached.py COMMAND...`.

So the command does not outlive the process that has the other end, however that one ends. It is a script of its own,
which imports nothing of Groundswell, so that it needs little memory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

GRACE = 20.0
"""Seconds that the command has to end by itself."""


def main(command: list[str]) -> int:
    """Run the command. Returns its exit status, as a shell would."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    threading.Thread(target=_watch, args=(process,), daemon=True).start()
    status = process.wait()
    _signal(process, signal.SIGKILL)  # what it has started
    return 128 - status if status < 0 else status


def _watch(process: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    _signal(process, signal.SIGTERM)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the command and what it has started."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
