"""`groundswell batches`: list, show, cancel and recover provider batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import click
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Group
from groundswell.cli.options import RunName, StoreFlags, Yes
from groundswell.cli.stored import opened
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.options import Flag

if TYPE_CHECKING:
    from groundswell.batch_lookup import FoundBatch, Problem, Providers
    from groundswell.engine.records import BatchInfo
    from groundswell.store.journal import Store
    from groundswell.store.waves import StoredWave

T = TypeVar("T")

Batch = Annotated[
    str,
    Meta(description="The provider's batch id, or RUN/WAVE, for example duels/3."),
    Flag(argument=True, metavar="BATCH"),
]
Account = Annotated[
    str | None,
    Meta(description="Account of the batch. Only needed for batches that are not in this store."),
    Flag(metavar="NAME", usual=True),
]

app = Group("batches", "List, show and cancel provider batches, and recover those that a crash left unassigned.")


@app.add("list")
def list_batches(
    flags: StoreFlags,
    *,
    run: Annotated[
        str | None,
        Meta(description="List only the batches of this run."),
        Flag(metavar="RUN", usual=True, completes="runs"),
    ] = None,
    all_: Annotated[
        bool,
        Meta(description="Include batches of the last two days that are not in this store, on every account."),
        Flag(long="--all", usual=True),
    ] = False,
    offline: Annotated[
        bool,
        Meta(description="Show only what is recorded in the store. Sends nothing and needs no key."),
        Flag(usual=True),
    ] = False,
) -> None:
    """List the batches in flight, with their progress and approximate cost. Changes nothing."""
    from groundswell import batch_lookup
    from groundswell.cli import batch_views

    if all_ and (offline or run is not None):
        raise SettingsError(
            f"--all queries every account and cannot be combined with "
            f"{'--offline' if offline else '--run'}; omit one of them"
        )

    async def work(providers: Providers) -> tuple[list[FoundBatch], dict[str, Problem]]:
        found = await batch_lookup.look_at(waves, providers)
        return await batch_lookup.with_unknown_batches(found, known, providers) if all_ else (found, {})

    with opened(flags.store) as store:
        waves = store.waves.open(None if run is None else store.runs.get(run))
        known = store.waves.batches() if all_ else set()
    problems: dict[str, Problem] = {}
    if offline:
        found = [batch_lookup.FoundBatch(w.account, w.transport, w, problem=batch_lookup.NOT_ASKED) for w in waves]
    else:
        with output.working("querying the providers"):
            found, problems = _ask(work)
    now = time.time()
    if flags.json:
        said = {name: problem.message for name, problem in problems.items()}
        shown = [batch_lookup.described(each, now) for each in found]
        output.print_json({"batches": shown, "total": batch_lookup.total(found), "accounts_not_listed": said})
        return
    batch_views.print_rows(found, now)
    for name, problem in problems.items():
        output.say(f"could not list the batches of {name}: {problem.message}")


@app.add()
def show(flags: StoreFlags, batch: Batch, *, account: Account = None) -> None:
    """Show one batch: its progress, trials and cost, and what to do next."""
    from groundswell import batch_lookup
    from groundswell.cli import batch_views

    with opened(flags.store) as store:
        found = _find(store, batch, account)
        wave = found.wave
        details = batch_lookup.described(found, time.time())
        if wave is not None:
            details |= batch_views.more(store, wave)
        advice = list(batch_views.advice(store, found, flags.store))
    if flags.json:
        output.print_json(details | {"advice": advice})
        return
    batch_views.print_one(found, details)
    for line in advice:
        output.say(line)


@app.add()
def cancel(flags: StoreFlags, batch: Batch, *, account: Account = None, yes: Yes = False) -> None:
    """Cancel a batch at its provider. Completed requests are kept, and you are billed for them."""
    from groundswell import batch_lookup
    from groundswell.cli import batch_views

    with opened(flags.store) as store:
        found = _find(store, batch, account)
        wave, info = found.wave, found.info
        at_work = wave is not None and store.runs.is_held(store.runs.get(wave.run))
        resume = "" if wave is None else batch_views.resume(store, wave, flags.store)
    if info is None:
        why = f"batch {batch} cannot be cancelled: " + (found.problem.message if found.problem else "it is unknown")
        raise RunError(why)
    cancelled = info.open and info.state != "cancelling"
    if cancelled:
        if not yes:
            output.confirm(_question(found, at_work=at_work))
        found = _ask(lambda providers: providers.cancel(found))
        info = found.info or info
    if flags.json:
        output.print_json(batch_lookup.described(found, time.time()) | {"cancelled": cancelled})
        return
    stands = batch_lookup.state(found)
    if cancelled:
        output.line(f"batch {info.id}: {stands}; completed requests are kept, and you are billed for them")
    else:
        output.line(f"batch {info.id}: {'already being cancelled' if info.open else 'has already ended'}: {stands}")
    if wave is not None and wave.ended_at is None:
        output.say(_then(wave, info, resume, at_work=at_work))


@app.add()
def adopt(
    flags: StoreFlags,
    run: RunName,
    wave: Annotated[
        str | None, Meta(description="Number of one of its waves."), Flag(argument=True, metavar="WAVE")
    ] = None,
    batch: Annotated[
        str | None,
        Meta(description="The provider's batch id."),
        Flag(argument=True, metavar="BATCH"),
    ] = None,
    *,
    lost: Annotated[
        bool, Meta(description="Mark the wave as lost. Resuming the run sends its requests again."), Flag(usual=True)
    ] = False,
    yes: Yes = False,
) -> None:
    """Assign a provider batch to a wave whose batch is unknown, after a crash or with another key.

    Without BATCH, the account's batches are searched. The run must not be in progress. Resume the run
    afterwards to collect the batch.
    """
    from groundswell.cli import adopting

    if wave is not None and batch is None and not wave.isdecimal():
        wave, batch = None, wave
    wanted = adopting.Wanted(run, wave, batch, lost=lost)
    with opened(flags.store) as store:
        record = store.runs.get(run)
        lock = store.runs.lock(record)
        try:
            chosen = _ask(lambda providers: adopting.choose(store, record, wanted, providers))
            if lost and chosen and not yes:
                output.confirm(adopting.question(record, chosen))
            found = _ask(lambda providers: adopting.carry_out(store, chosen, wanted, providers))
        finally:
            lock.release()
    if flags.json:
        each = [one.described() for one in found]
        output.print_json({"run_id": record.id, "run": record.name, "waves": each})
    else:
        adopting.report(record, found, flags.store)
    raise click.exceptions.Exit(0 if all(one.done for one in found) else 3)


def _ask(work: Callable[[Providers], Coroutine[Any, Any, T]]) -> T:
    """Run `work` with the providers of the configured accounts."""
    from groundswell.batch_lookup import Providers

    async def main() -> T:
        async with Providers() as providers:
            return await work(providers)

    return asyncio.run(main())


def _find(store: Store, batch: str, account: str | None) -> FoundBatch:
    """A batch by its id or by run and wave, with its current state at the provider."""
    from groundswell import batch_lookup

    wave = batch_lookup.named(store, batch)
    if wave is not None:
        with output.working(f"querying {wave.account}"):
            return _ask(lambda providers: providers.look(wave))
    with output.working("querying the providers"):
        found = _ask(lambda providers: providers.search(batch, account))
    if found is None:
        raise batch_lookup.no_such(store, batch)
    return found


def _question(found: FoundBatch, *, at_work: bool) -> str:
    wave, info = found.wave, found.info
    assert info is not None
    text = f"Cancel batch {info.id} of {found.account}, {info.total or (wave.size if wave else 0):,} requests? "
    text += "Replies to requests that have already completed are kept, and you are billed for them."
    if wave is not None and wave.ended_at is None:
        run = wave.name or wave.run
        text += f" Run {run} then stops." * at_work + f" Resuming {run} sends the remaining requests again."
    return text


def _then(wave: StoredWave, info: BatchInfo, resume: str, *, at_work: bool) -> str:
    """What happens to the run of a batch that was cancelled or has ended."""
    if info.state not in ("cancelling", "cancelled"):
        return f"to collect it: {resume}"
    if at_work:
        return f"its run will stop; to send the remaining requests again: {resume}"
    return f"to collect what is done and send the remaining requests again: {resume}"
