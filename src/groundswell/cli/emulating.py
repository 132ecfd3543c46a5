"""Runs the emulator in the foreground: what it says when it is ready, while it works, and at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from typing import Any

from rich.live import Live
from rich.table import Table
from rich.text import Text

from groundswell.cli import output
from groundswell.emulator.faults import KINDS
from groundswell.emulator.server import Emulator
from groundswell.emulator.settings import Settings
from groundswell.loop import new_event_loop, tuned_collector

EVERY = 0.25
COLUMNS = ("requests", "in batches", "refused", "over limits", "paid again", "tokens in", "tokens out", "dollars")


def serve(settings: Settings, *, host: str, port: int, seconds: float | None, json: bool) -> None:
    """Serve until interrupted, or for so many seconds."""
    with tuned_collector(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        books = runner.run(_serve(Emulator(settings, host=host, port=port), seconds, json=json))
    if json:
        output.print_json(books)
    else:
        print_books(books)


async def _serve(emulator: Emulator, seconds: float | None, *, json: bool) -> dict[str, Any]:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with emulator:
        _say_ready(emulator.url, json=json)
        watching = asyncio.create_task(_watch(emulator)) if output.err.is_terminal else None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), seconds)
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        return await emulator.ledger()


def _say_ready(url: str, *, json: bool) -> None:
    if json:
        output.print_json({"url": url, "pid": os.getpid()})
        return
    output.say(f"OpenAI, Anthropic and Ollama, emulated on {url}: nothing leaves this machine. Point clients here:")
    output.line(f"export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=emulated")
    output.line(f"export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=emulated")
    output.line(f"export OLLAMA_HOST={url}")
    output.say(f"books: {url}/emulator/ledger    faults: {url}/emulator/faults    Ctrl-C ends it")


async def _watch(emulator: Emulator) -> None:
    """One line that moves while requests come in."""
    start, before = time.monotonic(), 0
    with Live(console=output.err, auto_refresh=False, transient=True) as live:
        while True:
            await asyncio.sleep(EVERY)
            totals = emulator.world.ledger.totals()
            now, received = time.monotonic(), totals["received"]
            rate, start, before = (received - before) / max(now - start, 1e-9), now, received
            live.update(Text(describe(totals, emulator.connections, rate)), refresh=True)


def describe(totals: dict[str, Any], connections: int, rate: float) -> str:
    """The state of the emulator in one line."""
    parts = [f"{totals['received']:,} requests ({rate:,.0f}/s)", f"{connections} connections"]
    if totals["batch_requests"]:
        parts.append(f"{totals['batch_requests']:,} in batches")
    if totals["refused"]:
        parts.append(f"{totals['refused']:,} refused")
    if totals["limits_broken"]:
        parts.append(f"{totals['limits_broken']:,} over a limit")
    parts.append(output.cost(totals["dollars"], 0))
    return "  ".join(parts)


def print_books(books: dict[str, Any]) -> None:
    """The books as a table."""
    table = Table(box=None, pad_edge=False)
    table.add_column("account")
    table.add_column("model")
    for name in (
        "requests",
        "in batches",
        "refused",
        "over limits",
        "paid again",
        "tokens in",
        "tokens out",
        "dollars",
    ):
        table.add_column(name, justify="right")
    for account, models in books["accounts"].items():
        for model, entry in models.items():
            counts = (
                entry["requests"],
                entry["batch_requests"],
                sum(entry["refused"].values()),
                sum(entry["limits_broken"].values()),
                entry["paid_again"],
                entry["input_tokens"],
                entry["output_tokens"],
            )
            cost = f"{entry['dollars']:.6f}"
            table.add_row(account, model or "(files, batches)", *(f"{count:,}" for count in counts), cost)
    output.print_table(table) if table.row_count else output.say("nothing was asked")


def list_faults(*, json: bool) -> None:
    """What can go wrong."""
    if json:
        output.print_json({name: {"stage": kind.stage, "meaning": kind.meaning} for name, kind in KINDS.items()})
        return
    table = Table(box=None, pad_edge=False)
    for name in ("fault", "strikes", "meaning"):
        table.add_column(name)
    for name, kind in KINDS.items():
        table.add_row(name, kind.stage, kind.meaning)
    output.print_table(table)
