"""Workers as processes on this machine, started for a run and ended with it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from groundswell.store.names import revealed

RESTARTS = 20
"""How often a worker that was killed is started again."""
ENDED = "all workers have ended"
PATIENCE = 60.0
"""Seconds to wait for a worker whose run has ended, before it is killed."""


class LocalWorkers:
    """Keeps a number of workers running. `size` 0: others start them.

    `of`: how many workers there will be on all machines.
    """

    def __init__(
        self,
        store: str | Path,
        size: int,
        *,
        of: int | None = None,
        max_concurrent: int | None = None,
        account: Sequence[str] = (),
    ) -> None:
        self.size = size
        self._environment = {**os.environ, "GROUNDSWELL_STORE": revealed(store)}
        self._options = ["--of", str(of or size), "--attached"]
        self._options += [] if max_concurrent is None else ["--max-concurrent", str(max_concurrent)]
        self._options += [word for setting in account for word in ("--account", setting)]
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._threads: list[threading.Thread] = []
        self._problem = ""
        self._ending = False

    def start(self, run: str) -> None:
        """Start workers for a run."""
        command = [sys.executable, "-m", "groundswell", "worker", "--run", run, *self._options]
        self._ending = False
        self._problem = ""
        self._threads = [
            threading.Thread(target=self._keep, args=(command,), name="groundswell-worker", daemon=True)
            for _ in range(self.size)
        ]
        for thread in self._threads:
            thread.start()

    def problem(self) -> str | None:
        """Why no worker runs, if none does and none will."""
        if not self._threads or any(thread.is_alive() for thread in self._threads):
            return None
        return self._problem or ENDED

    async def stop(self) -> None:
        """The run has ended: tell the workers to end, and wait for them."""
        self.tell()
        await asyncio.to_thread(self._wait_and_kill)

    def tell(self) -> None:
        """Tell the workers to end, after the replies in flight."""
        with self._lock:
            self._ending = True
            for process in self._processes:
                if process.stdin is not None:
                    process.stdin.close()

    def wait(self) -> None:
        """Wait until all workers have ended by themselves."""
        for thread in self._threads:
            thread.join()

    def _wait_and_kill(self) -> None:
        end = time.monotonic() + PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        with self._lock:
            for process in self._processes:
                process.kill()

    def _keep(self, command: Sequence[str]) -> None:
        """The thread of one worker: start it again if it is killed."""
        for _ in range(RESTARTS):
            with self._lock:
                if self._ending:
                    return
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    env=self._environment,
                    start_new_session=True,  # Ctrl-C reaches the head alone, which tells the workers
                )
                self._processes.add(process)
            assert process.stderr is not None
            assert process.stdin is not None
            with process.stderr:
                said = process.stderr.read()
            status = process.wait()
            with self._lock:
                process.stdin.close()
                self._processes.discard(process)
            if status == 0:
                return
            lines = [line for line in said.splitlines() if line.strip()]
            self._problem = lines[-1].removeprefix("error: ") if lines else f"a worker ended with status {status}"
            if status > 0:
                return
            time.sleep(0.2)
