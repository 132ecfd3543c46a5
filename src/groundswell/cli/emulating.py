"""Runs the emulator in the foreground, and prints its addresses, its activity and its usage ledger."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from typing import Any

from rich.live import Live
from rich.table import Table
from rich.text import Text

from groundswell.cli import output
from groundswell.emulator.faults import KINDS
from groundswell.emulator.server import Emulator
from groundswell.emulator.settings import Settings
from groundswell.loop import new_event_loop, on_stop_signals, tuned_collector

EVERY = 0.25
COLUMNS = ("live", "batch", "repeated", "tokens in", "tokens out", "dollars")


def serve(settings: Settings, *, host: str, port: int, seconds: float | None, json: bool) -> None:
    """Serve until interrupted, or for a number of seconds."""
    with tuned_collector(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        books = runner.run(_serve(Emulator(settings, host=host, port=port), seconds, json=json))
    if json:
        output.print_json(books)
    else:
        print_books(books)


async def _serve(emulator: Emulator, seconds: float | None, *, json: bool) -> dict[str, Any]:
    ended = asyncio.Event()
    with on_stop_signals(ended.set):
        async with emulator:
            _say_ready(emulator, json=json)
            watching = asyncio.create_task(_watch(emulator)) if output.err.is_terminal else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), seconds)
            if watching is not None:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            return await emulator.ledger()


def _say_ready(emulator: Emulator, *, json: bool) -> None:
    url, named = emulator.url, emulator.world.settings.keys
    key = f"'<the key of {' or '.join(named)}>'" if named else "emulated"
    if json:
        output.print_json({"url": url, "pid": os.getpid()})
        return
    output.say(f"Emulating OpenAI, Anthropic and Ollama on {url}. No request leaves this machine.")
    if not re.match(r"http://(127\.|localhost|\[::1\])", url):
        output.say("warning: other machines can reach this address, and anybody can use the emulator")
    output.say("To use it:")
    output.line(f"export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY={key}")
    output.line(f"export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key}")
    output.line(f"export OLLAMA_HOST={url}")
    output.say(f"Ledger: {url}/emulator/ledger    Faults: {url}/emulator/faults    Stop: Ctrl-C")


async def _watch(emulator: Emulator) -> None:
    """One live status line."""
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
    """The usage ledger: a table of the billed requests, then notes on the others."""
    table = Table(box=None, pad_edge=False)
    table.add_column("account", no_wrap=True)
    table.add_column("model", overflow="fold")
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    notes = []
    for account, models in books["accounts"].items():
        for model, entry in models.items():
            paid = entry["requests"] + entry["batch_requests"]
            tokens = entry["input_tokens"], entry["output_tokens"]
            if paid:
                counts = (entry["requests"], entry["batch_requests"], entry["paid_again"], *tokens)
                table.add_row(
                    _plain(account), _plain(model), *(f"{count:,}" for count in counts), f"{entry['dollars']:.6f}"
                )
            notes += [f"{_plain(account)} {_plain(model)}: {note}".replace(" :", ":") for note in _notes(entry)]
    if table.row_count:
        output.print_table(table)
    for note in notes:
        output.line(note)
    if not table.row_count and not notes:
        output.say("no requests were received")


def _plain(name: str) -> Text:
    """A name from a client, without markup and control characters."""
    return Text("".join(letter if letter.isprintable() else "?" for letter in name))


def _notes(entry: dict[str, Any]) -> list[str]:
    """What the table does not show about an entry."""
    told = {
        "refused": ", ".join(f"{count:,} with {status}" for status, count in entry["refused"].items()),
        "over a limit": ", ".join(f"{count:,} ({name})" for name, count in entry["limits_broken"].items()),
        "unanswered": f"{entry['unanswered']:,}" if entry["unanswered"] else "",
        "abandoned by the client": f"{entry['abandoned']:,}" if entry["abandoned"] else "",
    }
    return [f"{what} {how}" for what, how in told.items() if how]


def list_faults(*, json: bool) -> None:
    """Print the available faults."""
    if json:
        output.print_json({name: {"stage": kind.stage, "meaning": kind.meaning} for name, kind in KINDS.items()})
        return
    table = Table(box=None, pad_edge=False)
    for name in ("fault", "when", "meaning"):
        table.add_column(name)
    for name, kind in KINDS.items():
        table.add_row(name, kind.stage, kind.meaning)
    output.print_table(table)
