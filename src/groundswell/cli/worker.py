"""`groundswell worker`: a process that runs trials of runs that other processes drive."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Annotated

from msgspec import Meta

from groundswell import compose
from groundswell.cli import output
from groundswell.cli.log import Log
from groundswell.cli.options import COMMON, StoreFlags
from groundswell.engine.worker import Worker
from groundswell.errors import LeaseLost, SettingsError
from groundswell.experiments.options import Flag
from groundswell.loop import new_event_loop, stop_signals, tuned_collector
from groundswell.model_server import ModelServer, served_account
from groundswell.store.names import is_postgres


def worker(
    flags: StoreFlags,
    *,
    run: Annotated[
        str | None,
        Meta(description="Id or name of a run. The worker ends with it. By default it works on all runs of the store."),
        Flag(metavar="RUN", completes="runs", usual=True),
    ] = None,
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of live requests in flight per account."),
        Flag(metavar="N"),
    ] = None,
    account: Annotated[
        list[str] | None,
        Meta(description="Override one setting of an account. May be repeated."),
        Flag(group=COMMON, metavar="NAME.SETTING=VALUE"),
    ] = None,
    server: Annotated[
        str | None,
        Meta(
            description="Start a model server with this command, in which {port} stands for a free port, and let all "
            "processes on the store that reach it use it as long as this worker runs."
        ),
        Flag(metavar="COMMAND", usual=True),
    ] = None,
    server_account: Annotated[
        str | None,
        Meta(description='The account that the server is for. Its base_url is "workers".'),
        Flag(metavar="NAME", usual=True),
    ] = None,
    server_host: Annotated[
        str,
        Meta(description="Name or address under which others reach the server. By default only this machine uses it."),
        Flag(metavar="HOST", usual=True),
    ] = "127.0.0.1",
    of: Annotated[
        Annotated[int, Meta(ge=0)],
        Meta(description="Number of workers that will work on the run, so that the first ones do not take all trials."),
        Flag(metavar="N"),
    ] = 0,
    attached: Annotated[
        bool,
        Meta(description="End when standard input is closed, for example because the process that started this ended."),
        Flag(),
    ] = False,
) -> None:
    """Run trials of runs that were started with --workers or --cluster on the same PostgreSQL store.

    Start it on any machine that has the same packages and the keys of the accounts in its environment. It runs until
    it is interrupted; it then waits for the replies in flight and leaves its trials to other workers.
    """
    say = output.say if not (flags.json or attached) else _silent
    if (server is None) != (server_account is None):
        raise SettingsError("--server and --server-account: give both or neither")
    models = None
    if server is not None and server_account is not None:
        if not is_postgres(flags.store):
            raise SettingsError(compose.NEEDS_POSTGRES)
        of_server = served_account(server_account, account or ())
        models = ModelServer(flags.store, of_server, server, host=server_host, say=say)

    async def serve() -> None:
        async with compose.open(
            flags.store, max_concurrent=max_concurrent, account=account or (), listeners=[Log(verbose=flags.verbose)]
        ) as engine:
            if engine.store.work is None:
                raise SettingsError(compose.NEEDS_POSTGRES)
            wanted = None if run is None else engine.store.runs.get(run).id
            serving = Worker(engine, engine.store.work, run=wanted, workers=of, say=say)
            loop = asyncio.get_running_loop()

            def stop() -> None:
                serving.stop()
                if models is not None:
                    models.leave()

            for number in stop_signals():
                loop.add_signal_handler(number, stop)
            if attached:
                threading.Thread(target=_watch, args=(loop, stop), daemon=True).start()
            if models is not None:
                models.failed = lambda: _call(loop, stop)
                if models.gave_up is not None:
                    stop()
            say(f"waiting for work in {compose.shown_place(flags.store)}")
            await serving.serve()

    with tuned_collector(), models or nullcontext():
        while True:
            try:
                with asyncio.Runner(loop_factory=new_event_loop) as runner:
                    runner.run(serve())
                break
            except LeaseLost as lost:  # it was paused, and others have taken its trials over
                say(f"{lost}. Going on as another worker")
    if models is not None and models.gave_up is not None:
        raise SettingsError(models.gave_up)


def _silent(_: str) -> None:
    """Say nothing."""


def _watch(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Stop the worker when standard input is closed."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    _call(loop, stop)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call a function on the loop, if it has not ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
