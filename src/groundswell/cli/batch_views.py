"""How batches are printed: as a table with a total, one in full, and what to do next."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from groundswell.batch_lookup import FoundBatch, described, state, total
from groundswell.cli import output
from groundswell.experiments.results import cost_of
from groundswell.program.request import Fault
from groundswell.providers.registry import BATCH_FORMATS
from groundswell.reporting.words import visible
from groundswell.store.journal import Store
from groundswell.store.waves import StoredWave

SHOWN_TRIALS = 8
SCRIPT = "run its script again"
RIGHT = ("wave", "requests", "age", "expires in", "about")


def resume(store: Store, wave: StoredWave, path: str) -> str:
    """How to collect a wave: a command, or the script that started its run."""
    if store.runs.get(wave.run).driver is None:
        return SCRIPT
    return output.command(f"runs resume {wave.run}", path)


def print_rows(batches: Sequence[FoundBatch], now: float) -> None:
    if not batches:
        output.line("no batches in flight")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "wave", "account", "model", "requests", "batch", "state", "age", "expires in", "about"):
        table.add_column(column, justify="right" if column in RIGHT else "left")
    for found in batches:
        told = described(found, now)
        table.add_row(
            escape(_whose(told)),
            "" if told["wave"] is None else str(told["wave"]),
            found.account,
            escape(told["model"] or ""),
            f"{told['requests']:,}",
            escape(found.batch or "not known yet"),
            state(found),
            "" if told["age_seconds"] is None else output.age(told["age_seconds"]),
            _until(found, now),
            "" if told["usd"] is None else output.cost(told["usd"], 0),
        )
    output.print_table(table)
    _print_total(batches)
    for found in batches:
        if found.wave is not None and found.problem is not None and found.problem.message:
            output.say(f"{found.wave.title}: {found.problem.message}")


def _print_total(batches: Sequence[FoundBatch]) -> None:
    sums = total(batches)
    count, unknown = sums["batches"], sums["unknown"]
    price = "of unknown cost" if sums["usd"] is None else f"about {output.cost(sums['usd'], 0)}"
    if sums["usd"] is not None and unknown:
        price += f", and {unknown} of unknown cost"
    output.line(f"{count:,} {'batch' if count == 1 else 'batches'}, {sums['requests']:,} requests, {price}")


def _whose(told: dict[str, Any]) -> str:
    if told["known"]:
        return str(told["run"] or told["run_id"])
    return f"{visible(told['run_id'])}, not in this store" if told["run_id"] else "not in this store"


def _until(found: FoundBatch, now: float) -> str:
    info = found.info
    if info is None or info.expires_at is None or not info.open:
        return ""
    return output.age(info.expires_at - now)


def more(store: Store, wave: StoredWave) -> dict[str, Any]:
    """What the store knows about a wave, beyond its row in the list."""
    kinds: Counter[str] = Counter()
    for settlement in store.waves.settled(wave):
        kinds[settlement.kind.value if isinstance(settlement, Fault) else "reply"] += 1
    usd, unknown = cost_of(store, wave)
    return {
        "status": store.runs.state(store.runs.get(wave.run)),
        "trials": store.waves.trials(wave, SHOWN_TRIALS),
        "intended_at": wave.at,
        "collected_at": wave.ended_at,
        "settled": dict(kinds),
        "waiting": store.waves.waiting(wave) if wave.ended_at is None else 0,
        "cost": {"usd": usd, "unknown_asks": unknown},
    }


def print_one(found: FoundBatch, told: dict[str, Any]) -> None:
    wave, info, now = found.wave, found.info, time.time()
    standing = state(found) if found.info or wave is None or wave.ended_at is None else "collected"
    output.line(f"batch {found.batch or 'not known yet'}: {standing}")
    if found.problem is not None and found.problem.message:
        output.line(f"  problem   {found.problem.message}", "yellow")
    if wave is None:
        output.line(f"  run       {_whose(told)}")
        output.line(f"  account   {found.account}, {told['requests']:,} requests")
    else:
        output.line(f"  run       {wave.name or wave.run} ({told['status']}), wave {wave.number}")
        output.line(f"  account   {found.account}, {wave.about.model or 'model unknown'}, {wave.size:,} requests")
        output.line(f"  trials    {_some(told['trials'], wave.size)}")
        output.line(f"  recorded  {_moment(wave.at, now)}")
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
    output.line(f"  results   in the store: {counted}; outstanding: {told['waiting']:,}")
    about = "unknown" if wave.about.usd is None else f"about {output.cost(wave.about.usd, 0)}"
    paid = f"{output.cost(told['cost']['usd'], told['cost']['unknown_asks'])} for the results in the store"
    output.line(f"  cost      {paid if told['settled'] else about}")


def advice(store: Store, found: FoundBatch, path: str) -> Iterator[str]:
    """Where the results are and what to do next."""
    wave, info = found.wave, found.info
    if wave is None:
        if info is not None and info.open:
            yield f"to cancel it: groundswell batches cancel {info.id} --account {found.account}"
        return
    if wave.ended_at is not None:
        yield f"results are in the store: {output.command(f'runs show {wave.run}', path)}"
    elif store.runs.state(store.runs.get(wave.run)) == "completed":
        lost = output.command(f"batches adopt {wave.run} {wave.number} --lost", path)
        yield f"its run is complete without it; to remove it from the list: {lost}"
    elif store.runs.is_held(store.runs.get(wave.run)):
        yield "another process is working on its run and will collect it"
    else:
        batch = BATCH_FORMATS.get(wave.transport)
        if info is not None and not info.open and batch is not None:
            yield f"{found.account} keeps the results for {batch.days_kept} days after the batch was created"
        yield f"to collect it: {resume(store, wave, path)}"


def _some(keys: Sequence[str], size: int) -> str:
    return ", ".join(keys) + (f" and more ({size:,} requests)" if len(keys) < size else "")


def _moment(at: float, now: float) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    return f"{when}, {output.age(now - at)} ago" if at <= now else f"{when}, in {output.age(at - now)}"
