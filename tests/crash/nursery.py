"""Sessions in processes of their own, forked from one that has everything imported already.

To start an interpreter takes most of a second, to fork one a few milliseconds, and either can be killed as well. The
nursery is told by lines what to do, and answers each with a line: a job as JSON is started (answer: its process id),
an empty line waits for its end (answer: its status). Nobody else waits for it: until then its id is its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import msgspec

import groundswell
from tests.crash.batch_experiment import Job, doomed

ROOT = Path(__file__).parents[2]


class Nursery:
    """Starts sessions, one at a time."""

    def __init__(self) -> None:
        paths = [str(Path(groundswell.__file__).parents[1]), str(ROOT)]
        variables = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"],
            cwd=ROOT,
            env={**variables, "PYTHONPATH": os.pathsep.join(paths)},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def start(self, job: Job) -> int:
        """Begin a session; gives the id of its process."""
        return self._tell(msgspec.json.encode(job).decode())

    def wait(self) -> int:
        """Wait for the end of the session; gives the status that it ended with, below zero for a signal."""
        return self._tell("")

    def close(self) -> None:
        """End the nursery."""
        self._process.communicate()

    def _tell(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def main() -> None:
    """Do as the lines say, until there are no more."""
    child = 0
    for line in sys.stdin:
        if line.strip():
            child = os.fork()
            if not child:
                run(msgspec.json.decode(line, type=Job))
            print(child, flush=True)
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def run(job: Job) -> None:
    """All that a forked process does."""
    signal.alarm(100)  # a session that hangs ends by itself
    try:
        asyncio.run(doomed(job))
    except BaseException:  # noqa: BLE001  the outer edge of a process: whoever waits for it is told
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
