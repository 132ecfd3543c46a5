"""`groundswell batches`: what waits at the providers, what it will cost, and what to do about it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from groundswell.cli import output
from groundswell.cli.options import RunName, StoreFlags, takes
from groundswell.cli.stored import opened
from groundswell.errors import RunError

if TYPE_CHECKING:
    from groundswell.cli.looking import Problem, Providers, Sight
    from groundswell.store.journal import Store
    from groundswell.store.waves import StoredWave

T = TypeVar("T")

SHOWN_TRIALS = 8
KEPT = {"openai_batch": "30 days", "anthropic_batch": "29 days"}
"""How long providers keep the results of a batch after it was made."""

Batch = Annotated[
    str,
    typer.Argument(metavar="BATCH", help="The provider's id of a batch, or RUN/WAVE, as duels/3.", show_default=False),
]
Account = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The account that has it, if no run of this store does.", show_default=False),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

app = typer.Typer(
    no_args_is_help=True,
    help="Look at batches that wait at the providers, cancel them, and find those that were lost.",
)


@app.command("list")
@takes(StoreFlags)
def list_batches(
    flags: StoreFlags,
    *,
    run: Annotated[
        str | None, typer.Option(metavar="RUN", help="Only the batches of this run.", show_default=False)
    ] = None,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Also batches of the last two days that no run of this store knows, on every account."
        ),
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask nobody: only what the store knows. Needs no key.")
    ] = False,
) -> None:
    """Show the batches in flight: how far they are, and about what they will cost. Changes nothing."""
    from groundswell.cli import looking

    async def work(providers: Providers) -> tuple[list[Sight], dict[str, Problem]]:
        sights = await looking.look_at(waves, providers)
        return await looking.look_around(sights, known, providers) if all_ else (sights, {})

    with opened(flags.store) as store:
        waves = store.waves.open(None if run is None else store.runs.get(run))
        known = store.waves.batches() if all_ else set()
    problems: dict[str, Problem] = {}
    if offline:
        sights = [looking.Sight(w.account, w.transport, w, problem=looking.NOT_ASKED) for w in waves]
    else:
        with output.working("asking the providers"):
            sights, problems = _ask(work)
    now = time.time()
    if flags.json:
        said = {name: problem.message for name, problem in problems.items()}
        each = [looking.described(sight, now) for sight in sights]
        output.print_json({"batches": each, "total": _total(sights), "accounts_not_listed": said})
        return
    _print_rows(sights, now)
    for name, problem in problems.items():
        output.say(f"the batches of {name} cannot be listed: {problem.message}")


@app.command()
@takes(StoreFlags)
def show(flags: StoreFlags, batch: Batch, *, account: Account = None) -> None:
    """Show one batch: how far it is, which trials it carries, what it cost, and what to do next."""
    from groundswell.cli import looking

    with opened(flags.store) as store:
        sight = _find(store, batch, account)
        wave = sight.wave
        details = looking.described(sight, time.time())
        if wave is not None:
            details |= _more(store, wave)
        advice = list(_advice(store, sight, flags.store))
    if flags.json:
        output.print_json(details | {"advice": advice})
        return
    _print_one(sight, details)
    for line in advice:
        output.say(line)


@app.command()
@takes(StoreFlags)
def cancel(flags: StoreFlags, batch: Batch, *, account: Account = None, yes: Yes = False) -> None:
    """Cancel a batch at its provider. What was done by then is kept, and paid for."""
    from groundswell.cli import looking

    with opened(flags.store) as store:
        sight = _find(store, batch, account)
    wave, info = sight.wave, sight.info
    if info is None:
        why = f"batch {batch} cannot be cancelled: " + (sight.problem.message if sight.problem else "it is not known")
        raise RunError(why)
    cancelled = info.open and info.state != "cancelling"
    if cancelled:
        if not yes:
            typer.confirm(_question(sight), abort=True, err=True)
        sight = _ask(lambda providers: _cancel(providers, sight))
        info = sight.info or info
    if flags.json:
        output.print_json(looking.described(sight, time.time()) | {"cancelled": cancelled})
        return
    title = f"batch {info.id}"
    if not cancelled:
        output.line(f"{title}: {'is being cancelled' if info.open else 'has ended'} already: {looking.state(sight)}")
    else:
        output.line(f"{title}: {looking.state(sight)}; what is done by then is kept and paid for")
    if wave is not None and wave.ended_at is None:
        rest = "" if info.state == "completed" else ", and send the rest again"
        output.say(f"to collect what is done{rest}: {looking.resume(wave, flags.store)}")


@app.command()
@takes(StoreFlags)
def adopt(
    flags: StoreFlags,
    run: RunName,
    wave: Annotated[
        str | None, typer.Argument(metavar="[WAVE]", help="Which of its waves.", show_default=False)
    ] = None,
    batch: Annotated[
        str | None, typer.Argument(metavar="[BATCH]", help="The provider's id of its batch.", show_default=False)
    ] = None,
    *,
    lost: Annotated[
        bool, typer.Option("--lost", help="Give it up: resuming the run sends its requests again.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Say which batch a wave is, where its run does not know: after a crash, or with another key.

    Without BATCH, the account's batches are searched for it. The run must not be at work meanwhile; resume it
    afterwards, and it collects the batch.
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
                typer.confirm(adopting.question(record, chosen), abort=True, err=True)
            found = _ask(lambda providers: adopting.carry_out(store, chosen, wanted, providers))
        finally:
            lock.release()
    if flags.json:
        each = [one.described() for one in found]
        output.print_json({"run_id": record.id, "run": record.name, "waves": each})
    else:
        adopting.report(record, found, flags.store)
    raise typer.Exit(0 if all(one.done for one in found) else 3)


def _ask(work: Callable[[Providers], Coroutine[Any, Any, T]]) -> T:
    """Do something with the providers of the accounts that are set up."""
    from groundswell.cli.looking import Providers

    async def main() -> T:
        async with Providers() as providers:
            return await work(providers)

    return asyncio.run(main())


def _find(store: Store, batch: str, account: str | None) -> Sight:
    """A batch by its id or by run and wave, as its provider shows it now."""
    from groundswell.cli import looking

    wave = looking.named(store, batch)
    if wave is not None:
        with output.working(f"asking {wave.account}"):
            return _ask(lambda providers: providers.look(wave))
    with output.working("asking the providers"):
        found = _ask(lambda providers: providers.search(batch, account))
    if found is None:
        raise looking.no_such(store, batch)
    return found


async def _cancel(providers: Providers, sight: Sight) -> Sight:
    """Cancel a batch, and look what became of it."""
    from groundswell.cli.looking import Problem

    assert sight.info is not None
    way = providers.way(sight.transport, sight.account)
    if isinstance(way, Problem):
        raise RunError(way.message)
    await way.cancel(sight.info.id)
    return sight._replace(info=await way.look(sight.info.id))


def _question(sight: Sight) -> str:
    wave, info = sight.wave, sight.info
    assert info is not None
    text = f"Cancel batch {info.id} of {sight.account}, {info.total or (wave.size if wave else 0):,} requests? "
    text += "What was done until then is kept and paid for."
    if wave is not None and wave.ended_at is None:
        text += f" Run {wave.name or wave.run} stops when it sees that; resuming it sends the rest again."
    return text


def _total(sights: Sequence[Sight]) -> dict[str, Any]:
    """What all batches come to. Those of nobody here have no cost that we know."""
    ours = [sight.wave for sight in sights if sight.wave is not None]
    known = [wave.about.usd for wave in ours if wave.about.usd is not None]
    return {
        "batches": len(sights),
        "requests": sum(s.wave.size if s.wave else s.info.total if s.info else 0 for s in sights),
        "usd": sum(known) if known else None,
        "unknown": len(sights) - len(known),
    }


def _print_rows(sights: Sequence[Sight], now: float) -> None:
    from rich.markup import escape
    from rich.table import Table

    from groundswell.cli import looking

    if not sights:
        output.line("no batch is in flight")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "wave", "account", "model", "requests", "batch", "state", "age", "expires in", "about"):
        right = column in ("wave", "requests", "age", "expires in", "about")
        table.add_column(column, justify="right" if right else "left")
    for sight in sights:
        told = looking.described(sight, now)
        table.add_row(
            escape(_whose(told)),
            "" if told["wave"] is None else str(told["wave"]),
            sight.account,
            escape(told["model"] or ""),
            f"{told['requests']:,}",
            escape(sight.batch or "not known yet"),
            looking.state(sight),
            "" if told["age_seconds"] is None else output.age(told["age_seconds"]),
            _until(sight, now),
            "" if told["usd"] is None else output.cost(told["usd"], 0),
        )
    output.print_table(table)
    _print_total(sights)
    for sight in sights:
        if sight.wave is not None and sight.problem is not None and sight.problem.message:
            output.say(f"{sight.wave.title}: {sight.problem.message}")


def _print_total(sights: Sequence[Sight]) -> None:
    total = _total(sights)
    count, unknown = total["batches"], total["unknown"]
    price = "of unknown cost" if total["usd"] is None else f"about {output.cost(total['usd'], 0)}"
    if total["usd"] is not None and unknown:
        price += f", and {unknown} of unknown cost"
    output.line(f"{count:,} {'batch' if count == 1 else 'batches'}, {total['requests']:,} requests, {price}")


def _whose(told: dict[str, Any]) -> str:
    if told["known"]:
        return str(told["run"] or told["run_id"])
    return f"{told['run_id']}, not in this store" if told["run_id"] else "none of this store"


def _until(sight: Sight, now: float) -> str:
    info = sight.info
    if info is None or info.expires_at is None or not info.open:
        return ""
    return output.age(info.expires_at - now)


def _more(store: Store, wave: StoredWave) -> dict[str, Any]:
    """What the store can tell of a wave beside what is in the list."""
    from groundswell.accounts.config import load_here
    from groundswell.prices import ModelPrices
    from groundswell.program.request import Embedding, Fault, Reply

    kinds: Counter[str] = Counter()
    spent, unknown = 0.0, 0
    prices, model = ModelPrices(load_here), f"{wave.account}/{wave.about.model}"
    for settlement in store.waves.settled(wave):
        kinds[settlement.kind.value if isinstance(settlement, Fault) else "reply"] += 1
        if isinstance(settlement, Reply | Embedding):
            price = prices(model, settlement.usage, wave.transport)
            spent, unknown = spent + (price or 0.0), unknown + (price is None)
    return {
        "status": store.runs.state(store.runs.get(wave.run)),
        "trials": store.waves.trials(wave, SHOWN_TRIALS),
        "intended_at": wave.at,
        "collected_at": wave.ended_at,
        "settled": dict(kinds),
        "waiting": store.waves.waiting(wave) if wave.ended_at is None else 0,
        "cost": {"usd": None if unknown and not spent else spent, "unknown_asks": unknown},
    }


def _print_one(sight: Sight, told: dict[str, Any]) -> None:
    from groundswell.cli import looking

    wave, info, now = sight.wave, sight.info, time.time()
    standing = looking.state(sight) if sight.info or wave is None or wave.ended_at is None else "collected"
    output.line(f"batch {sight.batch or 'not known yet'}: {standing}")
    if sight.problem is not None and sight.problem.message:
        output.line(f"  problem   {sight.problem.message}", "yellow")
    if wave is None:
        output.line(f"  run       {_whose(told)}")
        output.line(f"  account   {sight.account}, {told['requests']:,} requests")
    else:
        output.line(f"  run       {wave.name or wave.run}, wave {wave.number}; the run is {told['status']}")
        output.line(f"  account   {sight.account}, {wave.about.model or 'model unknown'}, {wave.size:,} requests")
        output.line(f"  trials    {_some(told['trials'], wave.size)}")
        output.line(f"  intended  {_moment(wave.at, now)}")
    if info is not None:
        for word, at in (("created", info.created_at), ("expires", info.expires_at), ("ended", info.ended_at)):
            if at:
                output.line(f"  {word:9} {_moment(at, now)}")
    if wave is not None:
        _print_results(wave, told, now)


def _print_results(wave: StoredWave, told: dict[str, Any], now: float) -> None:
    if wave.ended_at is not None:
        output.line(f"  collected {_moment(wave.ended_at, now)}")
    counted = ", ".join(f"{count:,} x {kind}" for kind, count in told["settled"].items()) or "none"
    output.line(f"  results   {counted} in the store, {told['waiting']:,} awaited")
    about = "unknown" if wave.about.usd is None else f"about {output.cost(wave.about.usd, 0)}"
    paid = f"{output.cost(told['cost']['usd'], told['cost']['unknown_asks'])} for what is in the store"
    output.line(f"  cost      {paid if told['settled'] else about}")


def _advice(store: Store, sight: Sight, path: str) -> Iterator[str]:
    """Where the results are, and what to do next."""
    from groundswell.cli import looking

    wave, info = sight.wave, sight.info
    if wave is None:
        if info is not None and info.open:
            yield f"to cancel it: groundswell batches cancel {info.id} --account {sight.account}"
        return
    if wave.ended_at is not None:
        yield f"its results are in the store: {output.command(f'runs show {wave.run}', path)}"
    elif store.runs.state(store.runs.get(wave.run)) == "completed":
        lost = output.command(f"batches adopt {wave.run} {wave.number} --lost", path)
        yield f"its run is complete and does not need it any more; to take it off the list: {lost}"
    elif store.runs.is_held(store.runs.get(wave.run)):
        yield "a process works on its run and collects it"
    else:
        if info is not None and not info.open and wave.transport in KEPT:
            yield f"{sight.account} keeps the results for {KEPT[wave.transport]} after the batch was made"
        yield f"to collect it: {looking.resume(wave, path)}"


def _some(keys: Sequence[str], size: int) -> str:
    return ", ".join(keys) + (f" and more, {size:,} requests in all" if len(keys) < size else "")


def _moment(at: float, now: float) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    return f"{when}, {output.age(now - at)} ago" if at <= now else f"{when}, in {output.age(at - now)}"
