"""Workers as actors of a Ray cluster, which places them, starts them again when they die, and adds machines for them.

Ray gets the address of the store without its password, and no key of an account: each machine has these in its own
environment.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import Any

from groundswell.errors import RunError, SettingsError
from groundswell.local_workers import ENDED, LocalWorkers
from groundswell.store.names import shown

RUNNING = "ray"
"""The cluster that runs on this machine, or that RAY_ADDRESS names."""
_connected: list[RayWorkers] = []
"""The workers of all runs of this process, which share a connection."""
PATIENCE = 60.0
"""Seconds to wait for the workers of a run that has ended."""


class RayWorkers:
    """Keeps a number of workers running in a cluster."""

    def __init__(
        self,
        store: str,
        size: int | None,
        cluster: str,
        *,
        max_concurrent: int | None = None,
        account: Sequence[str] = (),
    ) -> None:
        """`size`: how many workers; None: one for each CPU of the cluster."""
        self._ray = connect(cluster)
        self.size = size or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._how = {"max_concurrent": max_concurrent, "account": tuple(account), "of": self.size}
        self._store = shown(store)
        _connected.append(self)
        self._actors: list[Any] = []
        self._ends: list[Any] = []

    def start(self, run: str) -> None:
        """Place workers for a run. Those for which there is no room yet start when there is."""
        actor = self._ray.remote(Actor).options(num_cpus=1, max_restarts=-1, max_task_retries=-1, max_concurrency=2)
        self._actors = [actor.remote(self._store, run, self._how) for _ in range(self.size)]
        self._ends = [each.work.remote() for each in self._actors]

    def problem(self) -> str | None:
        """Why no worker runs, if none does and none will."""
        ended, left = self._ray.wait(self._ends, num_returns=len(self._ends), timeout=0)
        if left or not ended:
            return None
        found: list[str] = []
        for end in ended:
            try:
                self._ray.get(end)
            except Exception as error:  # noqa: BLE001  whatever it was that a worker raised in another process
                found.append(str(getattr(error, "cause", None) or error))
        return found[0] if found else ENDED

    async def stop(self) -> None:
        """The run has ended: wait for the workers, and remove them."""
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        for actor in self._actors:
            actor.stop.remote()
        self._ray.wait(self._ends, num_returns=len(self._ends), timeout=PATIENCE)
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors, self._ends = [], []
        _connected.remove(self)
        if not _connected:
            self._ray.shutdown()  # it would go on to print what it has to say of its processes


class Actor:
    """One worker, as a process of its own below one of Ray's. If Ray's process is killed, it ends by itself."""

    def __init__(self, store: str, run: str, how: dict[str, Any]) -> None:
        self._workers = LocalWorkers(os.environ.get("GROUNDSWELL_STORE", store), 1, **how)
        self._run = run
        self._stopped = False

    def work(self) -> None:
        """Run trials until the run has ended."""
        if not self._stopped:
            self._workers.start(self._run)
            self._workers.wait()
        if not self._stopped and (problem := self._workers.problem()) != ENDED:
            raise RunError(problem)

    def stop(self) -> None:
        """Send nothing more, and end."""
        self._stopped = True
        self._workers.tell()


def connect(cluster: str) -> Any:
    """Ray, connected to a cluster: `ray` for the one that runs here, or an address."""
    try:
        import ray
    except ModuleNotFoundError:
        raise SettingsError("--cluster needs Ray: pip install 'groundswell[cluster]'") from None
    if not ray.is_initialized():
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            ray.init("auto" if cluster == RUNNING else cluster, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            said = str(error).splitlines()[0]
            raise SettingsError(
                f"--cluster {cluster}: there is no Ray cluster ({said}). Start one on this machine with "
                "`groundswell cluster up --workers N`, or with `ray start --head`"
            ) from None
    return ray
