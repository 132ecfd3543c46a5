"""Bad weather: `python bench/storm.py` (10,000 asks in about a minute), `--quick` (2,000 asks at a fifth of the rate).

The emulator keeps a rate limit and goes through phases: calm; a storm of 429s; a server that is gone for some seconds
and comes back on the same port; stragglers that take 20 times as long; faults at random until the end. The engine
asks from another process. Once a second the emulator's books are read. What is checked:

  lost      every ask has its reply, and the emulator was paid for each of them
  refused   requests that broke the rate limit outside the storm, as a share of those accepted (at most 0.01)
  after     requests accepted in the 10 s after each fault ended, as a share of what the limit allows

A plot is made where matplotlib is installed (`pip install 'groundswell[report]'`).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import groundswell
from groundswell import Trial, program, system, user
from groundswell.emulator.app import App
from groundswell.emulator.faults import Rule
from groundswell.emulator.http import HttpServer
from groundswell.emulator.latency import Latency
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.settings import Settings
from groundswell.emulator.world import World
from groundswell.loop import new_event_loop, tuned_collector

OUT = Path(__file__).parent / "out"
MODEL = "gpt-4o-mini"
ASKS, PER_SECOND = 10_000, 180.0
IN_FLIGHT = 400
AFTER = 10.0
GIVE_UP = 300
CALM = Latency(median=0.5)
SLOW = Latency(median=0.5, stragglers=0.05, factor=20)
STORM = (Rule(fault="429", rate=0.9, retry_after=1.0),)
RANDOM = tuple(Rule(fault=name, rate=0.01) for name in ("500", "503", "drop", "truncated", "malformed"))

Row = dict[str, Any]


@program("bench/storm")
async def ask_once(trial: Trial, spec: int) -> int:
    """One ask that no other trial makes."""
    said = [system("You are a player in a game of secrets."), user(f"Number {spec}: what do you say?")]
    return len((await trial.ask(f"openai/{MODEL}", said, max_tokens=100)).text)


async def groundswell_client(url: str, store: str, asks: int) -> Row:
    """Everything that is asked, through the engine."""
    os.environ |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "bench"}
    usable, faults = 0, []
    async with groundswell.open(store, max_concurrent=IN_FLIGHT) as engine:
        run = engine.run("storm")
        async for outcome in run.map(ask_once, range(asks)):
            usable += outcome.ok
            if outcome.fault is not None:
                faults.append(str(outcome.fault))
    return {"usable": usable, "faults": faults[:20], "counters": msgspec.to_builtins(run.counters)}


class Provider:
    """The emulator on a thread of its own; its server can die and come back while its books go on."""

    def __init__(self, settings: Settings) -> None:
        self.world = World(settings)
        self._app = App(self.world)
        self._server = HttpServer(self._app)
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._run(self._server.listen("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.port}"

    def die(self) -> None:
        """Close all connections and stop listening."""
        self._run(self._server.close())

    def come_back(self) -> None:
        """Listen on the same port again."""
        self._server = HttpServer(self._app)
        self._run(self._server.listen("127.0.0.1", self.port))

    def set_faults(self, *rules: Rule) -> None:
        """Put other rules in the place of those in force."""
        self._loop.call_soon_threadsafe(self._app.set_faults, rules)

    def set_latency(self, latency: Latency) -> None:
        """Let replies take another time from now on."""
        self.world.settings = msgspec.structs.replace(self.world.settings, latency=latency)

    def books(self) -> Row:
        """The ledger as it stands."""
        books: Row = self._run(self._app.books())
        return books

    def close(self) -> None:
        """End it."""
        self.die()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class Phase(NamedTuple):
    """Some seconds of weather; the last phase lasts until everything is answered."""

    name: str
    seconds: float
    begin: Callable[[Provider], None] = lambda provider: None
    end: Callable[[Provider], None] = lambda provider: None


PHASES = (
    Phase("calm", 8),
    Phase("storm", 3, lambda provider: provider.set_faults(*STORM), lambda provider: provider.set_faults()),
    Phase("after the storm", AFTER),
    Phase("gone", 3, Provider.die, Provider.come_back),
    Phase("after the outage", AFTER),
    Phase(
        "stragglers",
        8,
        lambda provider: provider.set_latency(SLOW),
        lambda provider: provider.set_latency(CALM),
    ),
    Phase("after the stragglers", AFTER),
    Phase("random faults", 1e9, lambda provider: provider.set_faults(*RANDOM), lambda provider: provider.set_faults()),
)


def watch(provider: Provider, client: subprocess.Popen[str]) -> list[Row]:
    """Go through the phases while the client is at work, and read the books every second."""
    samples: list[Row] = []
    start = at = time.monotonic()
    before = provider.books()["totals"]
    for phase in PHASES:
        if client.poll() is not None:
            break
        print(f"{at - start:5.0f} s: {phase.name}", file=sys.stderr)
        phase.begin(provider)
        until = at + phase.seconds
        while at < until and client.poll() is None:
            at += 1
            time.sleep(max(0.0, at - time.monotonic()))
            now = provider.books()["totals"]
            grown = {name: now[name] - before[name] for name in ("requests", "refused", "limits_broken", "unanswered")}
            samples.append({"second": round(at - start), "phase": phase.name, **grown})
            before = now
        phase.end(provider)
    return samples


def judge(samples: list[Row], paid: int, told: Row, asks: int, limit: float) -> list[Row]:
    """What is wanted, beside what was found."""
    fair = [row for row in samples if row["phase"] != "storm"]
    accepted = sum(row["requests"] for row in fair)
    broken = sum(row["limits_broken"] for row in fair)
    checks: list[Row] = [
        {"check": "asks with a reply", "wanted": asks, "found": told["usable"], "ok": told["usable"] == asks},
        {"check": "asks paid for", "wanted": asks, "found": paid, "ok": paid == asks},
        {
            "check": "share refused outside the storm",
            "wanted": 0.01,
            "found": broken / max(1, accepted),
            "ok": broken <= 0.01 * accepted,
        },
    ]
    for phase in PHASES:
        if phase.name.startswith("after"):
            seconds = [row["requests"] for row in samples if row["phase"] == phase.name]
            share = sum(seconds) / (len(seconds) * limit) if seconds else None
            checks.append({"check": f"{phase.name}: share of the limit", "wanted": None, "found": share, "ok": None})
    return checks


def plot(samples: list[Row], limit: float) -> None:
    """Accepted and refused requests by the second, over the phases."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no plot: matplotlib is not installed (pip install 'groundswell[report]')", file=sys.stderr)
        return
    importlib.import_module("matplotlib").use("Agg")
    drawing = importlib.import_module("matplotlib.pyplot")
    figure, axes = drawing.subplots(figsize=(10, 4))
    seconds = [row["second"] for row in samples]
    for name, colour in (("requests", "tab:blue"), ("refused", "tab:red"), ("unanswered", "tab:gray")):
        axes.plot(seconds, [row[name] for row in samples], color=colour, label=name)
    axes.axhline(limit, color="black", linestyle=":", label="limit")
    for row, before in zip(samples[1:], samples, strict=False):
        if row["phase"] != before["phase"]:
            axes.axvline(row["second"] - 1, color="lightgray")
            axes.text(row["second"] - 0.8, limit * 1.2, row["phase"], rotation=90, fontsize=7, va="bottom")
    axes.set(xlabel="seconds", ylabel="per second")
    axes.legend(loc="upper right")
    figure.savefig(OUT / "storm.png", dpi=120, bbox_inches="tight")


def be_client(url: str, store: str, asks: int) -> None:
    """The engine's side, in a process of its own."""
    signal.alarm(GIVE_UP)
    import uvloop

    with tuned_collector():
        print(json.dumps(uvloop.run(groundswell_client(url, store, asks))))


def main() -> None:
    """Go through the weather and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 asks at a fifth of the rate")
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        url, store, count = options.client
        be_client(url, store, int(count))
        return
    scale = 5 if options.quick else 1
    asks, limit = ASKS // scale, PER_SECOND / scale
    limits = RateLimits(requests_per_minute=limit * 60, burst=1.0)
    provider = Provider(Settings(latency=CALM, limits=limits))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        command = [sys.executable, __file__, "--client", provider.url, f"{folder}/storm.db", str(asks)]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        samples = watch(provider, client)
        told = client.communicate()[0]
    if client.returncode and not told:
        sys.exit(f"the client ended with status {client.returncode}")
    report(provider.books(), samples, json.loads(told), asks, limit)
    provider.close()


def report(books: Row, samples: list[Row], told: Row, asks: int, limit: float) -> None:
    """Print what was found and keep it."""
    entries = [models[MODEL] for models in books["accounts"].values() if MODEL in models]
    paid = sum(entry["distinct_requests"] for entry in entries)
    checks = judge(samples, paid, told, asks, limit)
    for check in checks:
        found = "-" if check["found"] is None else f"{check['found']:,.4g}"
        wanted = "" if check["wanted"] is None else f"wanted {check['wanted']:,g}"
        mark = {True: "ok", False: "NOT OK", None: ""}[check["ok"]]
        print(f"{check['check']:44} {found:>8}   {wanted:16} {mark}")
    OUT.mkdir(exist_ok=True)
    figures = {"limit": limit, "asks": asks, "checks": checks, "seconds": samples, "client": told, "books": books}
    (OUT / "storm.json").write_text(json.dumps(figures, indent=1) + "\n")
    plot(samples, limit)


if __name__ == "__main__":
    main()
