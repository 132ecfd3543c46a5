"""Serves as a worker, in this process: opens an engine on a store and runs trials that heads of runs give out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from groundswell import compose
from groundswell.engine.events import Listener
from groundswell.engine.worker import Worker
from groundswell.errors import LeaseLost, SettingsError
from groundswell.loop import new_event_loop, tuned_collector

Say = Callable[[str], None]


def silent(_: str) -> None:
    """Say nothing."""


def serve(
    store: str,
    run: str | None = None,
    *,
    workers: int = 0,
    max_concurrent: int | None = None,
    account: Sequence[str] = (),
    listeners: Sequence[Listener] = (),
    say: Say = silent,
    started: Callable[[Worker], None] = lambda _: None,
) -> None:
    """Work until the run has ended, or the worker is stopped. `started` gets each worker that is made.

    A worker that was paused for so long that others have taken its trials over is replaced by another one.

    Args:
        store: URL of the store.
        run: Id or name of a run. None: all runs of the store.
        workers: How many workers there will be for the run; 0 if that is not known.
        max_concurrent: Maximum number of requests in flight for each account and model.
        account: Changes to account settings.
        listeners: Functions that receive the events of runs.
        say: Is told what happens, for people.
        started: Is told of the worker, on its event loop.
    """

    async def work() -> None:
        async with compose.open(store, max_concurrent=max_concurrent, account=account, listeners=listeners) as engine:
            if engine.store.work is None:
                raise SettingsError(compose.NEEDS_POSTGRES)
            wanted = None if run is None else engine.store.runs.get(run).id
            worker = Worker(engine, engine.store.work, run=wanted, workers=workers, say=say)
            started(worker)
            say(f"waiting for work in {compose.shown_place(store)}")
            await worker.serve()

    with tuned_collector():
        while True:
            try:
                with asyncio.Runner(loop_factory=new_event_loop) as runner:
                    runner.run(work())
                return
            except LeaseLost as lost:
                say(f"{lost}. Going on as another worker")
