"""Runs work from the command line: event loop, progress, signals, and the final summary."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click
import msgspec

from groundswell import compose
from groundswell.cli import output
from groundswell.cli.log import Log
from groundswell.cli.stored import opened
from groundswell.cli.trust import confirmed
from groundswell.engine.engine import Engine
from groundswell.engine.events import Event, Listener, RunOpened
from groundswell.engine.records import EndpointFigures
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import NotTrusted, ProgramError, RunError, SettingsError, StoreError
from groundswell.experiments.needed import explained
from groundswell.loop import new_event_loop, stop_signals, tuned_collector
from groundswell.program.request import FaultKind
from groundswell.providers.accounts.config import load_here
from groundswell.reporting.progress import Progress

if TYPE_CHECKING:
    from groundswell.bridges.tracking import Tracker
    from groundswell.cli.options import StoreFlags
    from groundswell.engine.run import Run
    from groundswell.experiments.options import HowToRun
    from groundswell.store.results import FaultCount


Work = Callable[[Engine], Awaitable[Summary]]
Code = Callable[[Summary], int]
Report = Callable[[Summary, "Sequence[FaultCount]"], None]
"""Prints the outcome of a run, without --json."""
More = Callable[[Summary], Mapping[str, Any]]
"""What --json prints in addition to the summary."""

UNFINISHED = ("interrupted", "stopped", "failed")
STOPPING = "stopping: waiting for the replies in flight; press Ctrl-C again to stop at once"
LEFT = "stopping without waiting for provider batches; they continue"
ALL_LIVE = "all requests were sent live, despite --via batch; -v logs the reason during a run"
LIMITS = {
    "time limit": "--deadline SECONDS",
    "calls is used up": "--max-calls N",
    "tokens is used up": "--max-tokens N",
    "budget of $": "--budget USD",
}
"""Words in the reason why a run ended, and the flag of that limit."""
HELD_UP = 1.0
"""Seconds after which a pending signal means that the event loop is blocked."""
ENDING = "stopping at once; all replies received so far are in the store"
TRACKERS = {"mlflow": "MlflowTracker", "wandb": "WandbTracker"}
"""The modules in `groundswell.bridges` that log runs, and their classes."""


class Ended(NamedTuple):
    """How work ended: with the summary of a run, with an error, or with both if a run failed."""

    summary: Summary | None
    error: Exception | None = None
    at_once: bool = False
    figures: Mapping[str, Sequence[EndpointFigures]] = {}


def no_more(_: Summary) -> Mapping[str, Any]:
    """Nothing in addition to the summary."""
    return {}


def exit_code_of(summary: Summary) -> int:
    """The exit status of a command that ran something."""
    return summary.exit_code


def run_and_report(
    work: Work,
    flags: StoreFlags,
    choices: HowToRun,
    *,
    report: Report = output.print_outcome,
    code: Code = exit_code_of,
    more: More = no_more,
    listeners: Sequence[Listener] = (),
    log: Sequence[str] = (),
) -> NoReturn:
    """Do work on the store, print how it ended, and exit with its status. `log` names experiment trackers."""
    if choices.account:
        load_here(choices.account)  # report a wrong flag before a run exists
    with contextlib.ExitStack() as trackers:  # they end last, with the files of the report
        latest = Latest()
        heard: list[Listener] = [*listeners, latest]
        heard += [trackers.enter_context(_tracker(name, flags.store)) for name in dict.fromkeys(log)]
        above = contextlib.redirect_stdout(sys.stderr) if flags.json else contextlib.nullcontext()
        with interruptible(latest, flags.store):
            with above:  # output of an experiment must not mix with the JSON
                ended = None
                while ended is None or _may_go_on(ended):
                    ended = carry_out(
                        work,
                        store=flags.store,
                        how=choices.for_engine,
                        verbose=flags.verbose,
                        listeners=heard,
                    )
            status = finish(
                ended, store=flags.store, json=flags.json, verbose=flags.verbose, report=report, code=code, more=more
            )
    raise click.exceptions.Exit(status)


def _tracker(name: str, store: str) -> Tracker:
    """A listener that logs to an experiment tracker. Raises `SettingsError` if its package is not installed."""
    made: Tracker = getattr(importlib.import_module(f"groundswell.bridges.{name}"), TRACKERS[name])(store)
    return made


def _may_go_on(ended: Ended) -> bool:
    """Whether the user has just confirmed the trust that was missing, so that the work can be tried again."""
    return ended.summary is None and isinstance(ended.error, NotTrusted) and confirmed(ended.error)


def carry_out(
    work: Work,
    *,
    store: str,
    how: Mapping[str, Any] | None = None,
    verbose: bool = False,
    listeners: Sequence[Listener] = (),
) -> Ended:
    """Open an engine and do work with it, on the fastest available event loop. `how`: options of `groundswell.open`."""

    def make() -> Engine:
        told: list[Listener] = [Log(verbose=verbose), *listeners]
        return compose.open(store, listeners=told, **(how or {}))

    with tuned_collector():
        runner = asyncio.Runner(loop_factory=new_event_loop)
        ended = None
        try:
            ended = runner.run(_supervise(work, make))
        finally:
            if ended is None or not ended.at_once:  # closing waits for threads, which may take long
                runner.close()
        return ended


async def _supervise(work: Work, make: Callable[[], Engine]) -> Ended:
    async with make() as engine:
        task = asyncio.ensure_future(work(engine))
        error: Exception | None = None
        with Interruption(engine, task) as interruption:
            async with Progress(engine, output.err, above=sys.stdout.isatty()):
                try:
                    return Ended(await task, figures=engine.figures)
                except asyncio.CancelledError:
                    if not interruption.count:
                        raise
                except Exception as raised:  # noqa: BLE001  the edge of the experiment: printed by `finish`
                    error = explained(raised)
        return Ended(_summary(engine, error), error, at_once=interruption.count > 1, figures=engine.figures)


def _summary(engine: Engine, error: Exception | None) -> Summary | None:
    """The summary of the latest run, if the store can still be read."""
    if engine.latest is None:
        return None
    try:
        return summarise(engine.store.runs.get(engine.latest))
    except StoreError:
        if isinstance(error, StoreError):
            return None
        raise


class Interruption:
    """Ctrl-C, SIGTERM and SIGHUP. The first stops the open runs, the second ends at once. Both can be resumed.

    After the second, nothing is waited for: a third ends the process where it is. `_arrived` runs even if a
    computation blocks the event loop.
    """

    def __init__(self, engine: Engine, task: asyncio.Future[Any]) -> None:
        self._engine = engine
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._before = {number: signal.getsignal(number) for number in stop_signals()}
        self.count = 0
        self._waiting_since: float | None = None

    def __enter__(self) -> Interruption:
        for number in self._before:
            self._loop.add_signal_handler(number, self._signalled)
            signal.signal(number, self._arrived)  # the loop still receives it through its wake-up descriptor
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            self._loop.remove_signal_handler(number)
            signal.signal(number, _end if self.count > 1 else handler)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        """End at once if the loop has not handled an earlier signal for a while."""
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        elif now - self._waiting_since >= HELD_UP:
            with contextlib.suppress(RuntimeError):  # the interrupted code may hold the stream
                output.say(ENDING)
            os._exit(output.INTERRUPTED)

    def _signalled(self) -> None:
        self._waiting_since = None
        self.count += 1
        runs = self._engine.runs
        if self.count > 2:
            leave_at_once()
        if self.count == 1 and runs:
            output.say(_stopping(runs))
            for run in runs:
                run.stop("interrupted", "interrupted")
        else:
            output.say(ENDING)
            self._task.cancel()


def _stopping(runs: Sequence[Run]) -> str:
    """What is waited for: replies in flight, but not provider batches."""
    batches = [batch.account for run in runs for batch in run.batches_in_flight]
    if not batches:
        return STOPPING
    said = STOPPING if any(run.live_in_flight for run in runs) else LEFT
    return f"{said} ({output.in_flight(batches)})"


def finish(
    ended: Ended,
    *,
    store: str,
    json: bool = False,
    verbose: bool = False,
    report: Report = output.print_outcome,
    code: Code = exit_code_of,
    more: More = no_more,
) -> int:
    """Print how work ended, and return the exit status."""
    summary, error, at_once, figures = ended
    if summary is not None and json:
        shown, added = _stored(summary, store), more(summary)
        output.print_json({**msgspec.to_builtins(shown), **added} if added else shown)
    elif summary is not None and error is None:
        report(summary, _missing(summary, store))
        _say_travelled(summary, store)
        output.print_endpoints(figures, verbose=verbose)
    if error is not None:
        output.print_error(error, verbose=verbose)
        if json and summary is None:
            output.print_json_error(error)
    elif summary is not None and summary.status == "failed":  # the driver still ended, with the results so far
        output.echo(f"error: {summary.error}", err=True)
    mended_first = isinstance(error, RunError | SettingsError | ProgramError)
    if summary is not None and not mended_first and (advice := _advice(summary, store)) is not None:
        output.say(advice)
    if at_once:
        leave_at_once()
    if error is not None:
        return output.exit_code(error)
    return output.INTERRUPTED if summary is None else code(summary)


def _stored(summary: Summary, store: str) -> Summary:
    """A summary with its analysis exactly as it is stored."""
    with opened(store) as held:
        return summarise(held.runs.get(summary.run_id))


def _say_travelled(summary: Summary, store: str) -> None:
    """Print how many replies came in batches, if any did or should have: only those are half price."""
    with opened(store) as held:
        record = held.runs.get(summary.run_id)
        came = held.waves.came(record)
    if came.batches:
        output.say(output.travelled(came))
    elif record.options.get("via") == "batch" and summary.status == "completed" and summary.asks.sent:
        output.say(ALL_LIVE)


def _missing(summary: Summary, store: str) -> Sequence[FaultCount]:
    """Why trials of a run are missing."""
    if not summary.trials.missing:
        return ()
    with opened(store) as held:
        return held.results(held.runs.get(summary.run_id)).fault_counts()


class Latest:
    """A listener that remembers the run that was opened last."""

    def __init__(self) -> None:
        self.run: str | None = None

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        if isinstance(event, RunOpened):
            self.run = event.run


@contextlib.contextmanager
def interruptible(latest: Latest, store: str) -> Iterator[None]:
    """Handle a signal that arrives before or after the work itself, for example while the report is written."""
    before = {number: signal.signal(number, _interrupt) for number in stop_signals()}
    try:
        yield
    except KeyboardInterrupt:
        resume = "" if latest.run is None else output.command(f"runs resume {latest.run}", store)
        output.say("interrupted" + (resume and f"; the run is in the store; to write its report: {resume}"))
        raise click.exceptions.Exit(output.INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _end(*_: object) -> NoReturn:
    """End the process from a signal handler. It must not flush, since it may have interrupted a flush."""
    os._exit(output.INTERRUPTED)


def leave_at_once() -> NoReturn:
    """End the process without waiting for functions that still run in threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(output.INTERRUPTED)


def _advice(summary: Summary, store: str) -> str | None:
    """What to do about a run that is not complete."""
    resume = output.command(f"runs resume {summary.run_id}", store)
    trials = summary.trials
    if summary.status in UNFINISHED and trials.usable + trials.missing < trials.planned:
        if accounts := _waiting_at(summary, store):
            return f"{output.in_flight(accounts)}\n{_to_collect(accounts)}: {resume}"
        return f"to resume: {resume}"
    if trials.missing:
        show = output.command(f"runs show {summary.run_id}", store)
        again = any(fault.kind != FaultKind.UNUSABLE for fault in _missing(summary, store))
        return f"to see why trials are missing: {show}" + (f"\nto try them again: {resume} --retry-missing" * again)
    if summary.status == "completed" and (accounts := _waiting_at(summary, store)):
        show = output.command("batches list", store)
        return f"{output.in_flight(accounts)}, which could not be cancelled: {show}"
    if summary.status == "partial":
        more = f"{resume} {_limit_reached(summary.error or '')}"
        if accounts := _waiting_at(summary, store):
            return f"{output.in_flight(accounts)}\n{_to_collect(accounts)} with a larger limit: {more}"
        return f"to resume with a larger limit: {more}"
    return None


def _to_collect(accounts: Sequence[str]) -> str:
    return f"to collect {'it' if len(accounts) == 1 else 'them'} and resume"


def _waiting_at(summary: Summary, store: str) -> list[str]:
    """The accounts of the open batches of a run, one entry per batch."""
    with opened(store) as held:
        return [wave.account for wave in held.waves.open(held.runs.get(summary.run_id))]


def _limit_reached(why: str) -> str:
    """The flag of the limit that ended a run."""
    return next((flag for words, flag in LIMITS.items() if words in why), " ".join(LIMITS.values()))
