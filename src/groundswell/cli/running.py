"""Running anything from the command line: the event loop, progress, signals, and what is said at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from groundswell import compose
from groundswell.cli import output
from groundswell.cli.log import Log
from groundswell.cli.stored import opened
from groundswell.cli.trust import confirmed
from groundswell.engine.engine import Engine
from groundswell.engine.events import Listener
from groundswell.engine.records import EndpointFigures
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import NotTrusted, ProgramError, RunError, SettingsError, StoreError
from groundswell.experiments.needed import explained
from groundswell.loop import new_event_loop, stop_signals, tuned_collector
from groundswell.providers.accounts.config import load_here
from groundswell.reporting.progress import Progress

if TYPE_CHECKING:
    from groundswell.cli.options import StoreFlags
    from groundswell.engine.run import Run
    from groundswell.experiments.options import HowToRun
    from groundswell.store.results import FaultCount


Work = Callable[[Engine], Awaitable[Summary]]
Code = Callable[[Summary], int]
Report = Callable[[Summary, "Sequence[FaultCount]"], None]
"""How a command says what a run came to, where it is not JSON."""

UNFINISHED = ("interrupted", "stopped", "failed")
STOPPING = "stopping: waiting for the replies in flight; press Ctrl-C again to end at once"
LEFT = "stopping; what is in batches is not waited for"
ALL_LIVE = "all requests went live, in spite of --via batch: -v says why while a run goes on"
LIMITS = {
    "budget of $": "--budget USD",
    "calls is used up": "--max-calls N",
    "tokens is used up": "--max-tokens N",
    "time limit": "--deadline SECONDS",
}
HELD_UP = 1.0
"""Seconds after which a signal that the event loop has not taken means that the loop is held up."""
ENDING = "ending at once; everything that was acknowledged is in the store"


class Ended(NamedTuple):
    """How work ended: with a run's summary, with an error, or, when a run failed, with both."""

    summary: Summary | None
    error: Exception | None = None
    at_once: bool = False
    figures: Mapping[str, Sequence[EndpointFigures]] = {}


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
    listeners: Sequence[Listener] = (),
) -> NoReturn:
    """Do work on the store, say how it ended, and exit with the status of that."""
    if choices.account:
        load_here(choices.account)  # a mistake in a flag is told before there is a run
    above = contextlib.redirect_stdout(sys.stderr) if flags.json else contextlib.nullcontext()
    with above:  # what an experiment prints must not get into the JSON
        ended = None
        while ended is None or _may_go_on(ended):
            ended = carry_out(
                work,
                store=flags.store,
                max_concurrent=choices.max_concurrent,
                account=choices.account,
                verbose=flags.verbose,
                listeners=listeners,
            )
    with interruptible(ended, flags.store):
        status = finish(ended, store=flags.store, json=flags.json, verbose=flags.verbose, report=report, code=code)
    raise click.exceptions.Exit(status)


def _may_go_on(ended: Ended) -> bool:
    """Whether work that was refused before it began may be done after all, because the user has just said so."""
    return ended.summary is None and isinstance(ended.error, NotTrusted) and confirmed(ended.error)


def carry_out(
    work: Work,
    *,
    store: str,
    max_concurrent: int | None = None,
    account: Sequence[str] = (),
    verbose: bool = False,
    listeners: Sequence[Listener] = (),
) -> Ended:
    """Open an engine and do work with it, on the fastest loop there is."""

    def make() -> Engine:
        told: list[Listener] = [Log(verbose=verbose), *listeners]
        return compose.open(store, max_concurrent=max_concurrent, account=account, listeners=told)

    with tuned_collector():
        runner = asyncio.Runner(loop_factory=new_event_loop)
        ended = None
        try:
            ended = runner.run(_supervise(work, make))
        finally:
            if ended is None or not ended.at_once:  # closing waits for threads, and these may take long
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
                except Exception as raised:  # noqa: BLE001  the edge of the experiment: told to the user by `finish`
                    error = explained(raised)
        return Ended(_summary(engine, error), error, at_once=interruption.count > 1, figures=engine.figures)


def _summary(engine: Engine, error: Exception | None) -> Summary | None:
    """The run that was worked on last, if the store can still be read."""
    if engine.latest is None:
        return None
    try:
        return summarise(engine.store.runs.get(engine.latest))
    except StoreError:
        if isinstance(error, StoreError):
            return None
        raise


class Interruption:
    """Ctrl-C, SIGTERM and SIGHUP: the first stops the open runs, the second ends at once. Both leave them resumable.

    After the second, nothing is waited for: a third ends the process where it is. A computation that holds up the event
    loop keeps it from taking signals. `_arrived` runs even then.
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
            signal.signal(number, self._arrived)  # beside the loop's own way to hear of it
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            self._loop.remove_signal_handler(number)
            signal.signal(number, _end if self.count > 1 else handler)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        """End at once if the loop has not taken an earlier signal for a while."""
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        elif now - self._waiting_since >= HELD_UP:
            with contextlib.suppress(RuntimeError):  # the stream may be in use by what was interrupted
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
    """What is waited for, and what is not: batches go on without us."""
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
) -> int:
    """Say how work ended; returns the exit status."""
    summary, error, at_once, figures = ended
    if summary is not None and json:
        output.print_json(_stored(summary, store))
    elif summary is not None and error is None:
        report(summary, _missing(summary, store))
        _say_travelled(summary, store)
        output.print_endpoints(figures, verbose=verbose)
    if error is not None:
        output.print_error(error, verbose=verbose)
    elif summary is not None and summary.status == "failed":  # the driver ended all the same, with what there was
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
    """A summary with its analysis as it is stored, to the letter."""
    with opened(store) as held:
        return summarise(held.runs.get(summary.run_id))


def _say_travelled(summary: Summary, store: str) -> None:
    """Say how many replies came in batches, where any did or should have: that is what half the price depends on."""
    with opened(store) as held:
        record = held.runs.get(summary.run_id)
        came = held.waves.came(record)
    if came.batches:
        output.say(output.travelled(came))
    elif record.options.get("via") == "batch" and summary.status == "completed" and summary.asks.sent:
        output.say(ALL_LIVE)


def _missing(summary: Summary, store: str) -> Sequence[FaultCount]:
    """Why trials of a run are missing: a model that is not there, or an address, should be seen at once."""
    if not summary.trials.missing:
        return ()
    with opened(store) as held:
        return held.results(held.runs.get(summary.run_id)).fault_counts()


@contextlib.contextmanager
def interruptible(ended: Ended, store: str) -> Iterator[None]:
    """Say what is left to do if a signal comes while the results of a run are printed and its report is written."""
    before = {} if ended.at_once else {number: signal.signal(number, _interrupt) for number in stop_signals()}
    try:
        yield
    except KeyboardInterrupt:
        resume = "" if ended.summary is None else output.command(f"runs resume {ended.summary.run_id}", store)
        output.say("interrupted; the run is in the store" + (resume and f"; to see its results: {resume}"))
        raise click.exceptions.Exit(output.INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _end(*_: object) -> NoReturn:
    """End the process from a handler, which must not flush: it may have come in the middle of that."""
    os._exit(output.INTERRUPTED)


def leave_at_once() -> NoReturn:
    """End the process without waiting for functions that still run in threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(output.INTERRUPTED)


def _advice(summary: Summary, store: str) -> str | None:
    """What can be done about a run that is not complete."""
    resume = output.command(f"runs resume {summary.run_id}", store)
    trials = summary.trials
    if summary.status in UNFINISHED and trials.usable + trials.missing < trials.planned:
        if accounts := _waiting_at(summary, store):
            go_on = "goes" if len(accounts) == 1 else "go"
            return f"{output.in_flight(accounts)}, which {go_on} on without us\n{_to_collect(accounts)}: {resume}"
        return f"to go on where it stopped: {resume}"
    if trials.missing:
        show = output.command(f"runs show {summary.run_id}", store)
        return f"to look into trials that are missing: {show}\nto try them again: {resume} --retry-missing"
    if summary.status == "completed" and (accounts := _waiting_at(summary, store)):
        show = output.command("batches list", store)
        return f"{output.in_flight(accounts)}, which could not be called off: {show}"
    if summary.status == "partial":
        more = f"{resume} {_limit_reached(summary.error or '')}"
        if accounts := _waiting_at(summary, store):
            return f"{output.in_flight(accounts)}\n{_to_collect(accounts)} with a larger limit: {more}"
        return f"to go on with a larger limit: {more}"
    return None


def _to_collect(accounts: Sequence[str]) -> str:
    return f"to collect {'it' if len(accounts) == 1 else 'them'} and go on"


def _waiting_at(summary: Summary, store: str) -> list[str]:
    """The accounts that have batches of a run, each as often as it has one."""
    with opened(store) as held:
        return [wave.account for wave in held.waves.open(held.runs.get(summary.run_id))]


def _limit_reached(why: str) -> str:
    """The flag of the limit that ended a run, by what was said of it."""
    return next((flag for words, flag in LIMITS.items() if words in why), " ".join(LIMITS.values()))
