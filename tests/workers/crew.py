"""Workers as tasks of the test's own event loop, each with an engine and a store of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from groundswell.compose import OneWay
from groundswell.engine.engine import Engine
from groundswell.engine.options import RunOptions
from groundswell.engine.ports import LoopClock, Router
from groundswell.engine.retry import RetryPolicy
from groundswell.engine.summary import Summary
from groundswell.engine.worker import Worker
from groundswell.program.request import Usage
from groundswell.store.journal import Store
from groundswell.transports.scripted import Scripted
from tests.workers.experiment import Wanted, answer

PATIENT = RunOptions(retry=RetryPolicy(first_wait=0.0, patience=0.0))
Route = Callable[[int], Router]


def one_way(_: int) -> Router:
    """How a worker of some number reaches models: all of them the same."""
    return OneWay(Scripted(answer), 32)


def price(model: str, usage: Usage, transport: str) -> float:
    """What every reply costs."""
    return 0.001


class TaskCrew:
    """So many workers. `route` gives each of them, by number, what it reaches models with."""

    def __init__(self, store: str, size: int, route: Route = one_way) -> None:
        self.size = size
        self.workers: list[Worker] = []
        self.said: list[str] = []
        self._store = store
        self._route = route
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = False

    def start(self, run: str) -> None:
        """Start them."""
        self._tasks = [asyncio.get_running_loop().create_task(self._work(run, number)) for number in range(self.size)]

    def problem(self) -> str | None:
        """Why none of them runs any more."""
        if not self._tasks or not all(task.done() for task in self._tasks):
            return None
        return "; ".join(str(task.exception()) for task in self._tasks)

    async def stop(self) -> None:
        """Wait for them."""
        self._ended = True
        for worker in self.workers:
            worker.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, run: str, number: int) -> None:
        engine = Engine(Store(self._store), self._route(number), LoopClock(), prices=price)
        async with engine:
            assert engine.store.work is not None
            worker = Worker(engine, engine.store.work, run=run, workers=self.size, say=self.said.append)
            self.workers.append(worker)
            if self._ended:
                worker.stop()
            await worker.serve()


def head(store: str, workers: int | None, route: Route = one_way, crew: TaskCrew | None = None) -> Engine:
    """An engine, with so many workers; None: it runs the trials itself."""

    def crew_of() -> TaskCrew:
        return crew or TaskCrew(store, workers or 0, route)

    made = None if workers is None else crew_of
    return Engine(Store(store), route(-1), LoopClock(), options=PATIENT, prices=price, crew=made)


def drive(store: str, driver: Any, workers: int | None, *, trials: int = 60, **how: Any) -> Summary:
    """Run a driver to its end."""

    async def main() -> Summary:
        async with head(store, workers) as engine:
            return await engine.drive(driver, Wanted(trials), name="run", **how)

    return asyncio.run(main())


def resume(store: str, workers: int | None, **how: Any) -> Summary:
    """Continue that run."""

    async def main() -> Summary:
        async with head(store, workers) as engine:
            return await engine.resume("run", **how)

    return asyncio.run(main())


def frame(store: str) -> Sequence[dict[str, Any]]:
    """The trials of the run as a table, in the order of their keys."""
    held = Store(store)
    try:
        table = held.results(held.runs.get("run")).frame()
        return table.sort("key").to_dicts()  # type: ignore[no-any-return]
    finally:
        held.close_reading()
