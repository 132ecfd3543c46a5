"""Response times of the API under load: `python bench/api.py` (a minute or two), `--quick` (a tenth of the batch).

`--in-process` measures something else, in half a minute: calls that change runs, while a model inside the server
(`emulated/keeper`) executes four batches on the engine's loop.

A server (`groundswell serve`) executes a batch of 1,000 simulations against an emulator over HTTP, while 200 clients
call the API, each on its own connection. Server, emulator and clients are three processes.

  alone      the batch without clients, for comparison
  polling    every client calls a route, then waits a second on average: 200 calls per second in total
  flat out   clients never wait: the capacity of the server. A request then waits for 199 others

Routes are drawn by the weights below, which imitate people and pages: progress often, all 1,000 conversations at once
3 times in 1,000 calls. The seed is fixed. For each part there is a table with calls, failures, median, 95th and 99th
percentile and maximum, in milliseconds. Exports are listed separately, because they take as long as there is to
write. Results are written to bench/out/api.json. The goal is a median below 50 ms for polling clients, without
exports, and no failure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError
from pyreqwest.proxy import ProxyBuilder

import groundswell
from emulator import memory_of
from live import cpu_of_all

OUT = Path(__file__).parent / "out"
CLIENTS, ENTITIES, TURNS, LATENCY = 200, 60, 8, "0.2"
THINKING = 1.0
FLAT_OUT = 10.0
GOAL = 50.0
EXPORT = "export"
ROUTES: dict[str, tuple[int, str]] = {
    "batch list": (250, "/api/batch-simulations?limit=20"),
    "batch progress": (250, "/api/batch-simulations?limit=1"),
    "simulations, a page": (150, "/api/simulations?batch_id={batch}&limit=20&offset={offset}"),
    "one simulation": (150, "/api/simulations/{simulation}"),
    "run": (100, "/api/runs/{run}"),
    "entities, a page": (60, "/api/entities?limit=20"),
    "health": (30, "/api/health"),
    "an estimate": (4, "POST /api/batch-simulations/estimate"),
    "whole batch": (3, "/api/batch-simulations/{batch}"),
    EXPORT: (3, "/api/batch-simulations/{batch}/export?format=csv"),
}

Took = dict[str, list[float]]


class Site(NamedTuple):
    """A server, a batch on it, and its number of simulations."""

    url: str
    batch: str
    size: int

    @property
    def first(self) -> int:
        """Clients request the simulations before this one."""
        return max(2, self.size // 20)

    def path(self, route: str, chance: random.Random) -> str:
        """A call of a route."""
        begun = chance.randrange(1, self.first)
        run = self.batch.removeprefix("batch-")
        return ROUTES[route][1].format(batch=self.batch, run=run, simulation=f"sim-{run}-{begun}", offset=begun)


def body(simulations: int, name: str) -> dict[str, Any]:
    """A batch of pairs."""
    return {
        "name": name,
        "context": "A panel discussion about the price of bread",
        "entity_ids": [f"e{number}" for number in range(ENTITIES)],
        "interaction_size": 2,
        "num_simulations": simulations,
        "n_turns": TURNS,
        "model": "openai/gpt-4o-mini",
        "seed": len(name),
    }


async def send(client: Client, site: Site, path: str, given: Any = None) -> Any:
    """Call the API; raises if that fails. Bodies are read whole."""
    if path.startswith("POST ") or given is not None:
        call = client.post(site.url + path.removeprefix("POST ")).body_json(given or body(10, "estimate"))
    else:
        call = client.get(site.url + path)
    response = await call.build().send()
    read = await response.bytes()
    if response.status >= 400:
        raise RuntimeError(f"{path}: {response.status} {bytes(read)[:200]!r}")
    return read


async def has_begun(client: Client, site: Site) -> bool:
    """Whether the simulations that clients request exist: they start after the batch was created."""
    run = json.loads(bytes(await send(client, site, f"/api/runs/{site.batch.removeprefix('batch-')}")))
    return bool(run["data"]["trials"]["planned"] >= site.first)


async def one_client(
    client: Client, site: Site, met: tuple[Took, list[str]], number: int, ends: asyncio.Event, think: float
) -> None:
    """Call routes until the measurement ends."""
    took, failed = met
    chance = random.Random(number)
    names, weights = list(ROUTES), [weight for weight, _ in ROUTES.values()]
    if think:
        await asyncio.sleep(chance.uniform(0, 2 * think))
    while not ends.is_set():
        route = chance.choices(names, weights)[0]
        start = time.perf_counter()
        try:
            await send(client, site, site.path(route, chance))
        except (PyreqwestError, RuntimeError) as error:
            failed.append(f"{route}: {error}")
        else:
            took[route].append((time.perf_counter() - start) * 1000)
        if think:
            await asyncio.sleep(chance.uniform(0, 2 * think))


def connection() -> Client:
    """A client with one connection."""
    return (
        ClientBuilder()
        .max_connections(1)
        .timeout(timedelta(seconds=120))
        .proxy(ProxyBuilder.custom(lambda _: None))
        .build()
    )


async def clients(made: list[Client], site: Site, think: float, ends: asyncio.Event) -> tuple[Took, list[str]]:
    """Run all clients at once, until the measurement ends."""
    met: tuple[Took, list[str]] = (defaultdict(list), [])
    await asyncio.gather(*(one_client(each, site, met, number, ends, think) for number, each in enumerate(made)))
    return met


async def carried_out(url: str, simulations: int, name: str, made: list[Client]) -> dict[str, Any]:
    """Create a batch and wait for it, with or without clients. Return its times and theirs."""
    async with connection() as client:
        start, cpu = time.perf_counter(), cpu_of_all()
        batch = json.loads(
            bytes(await send(client, Site(url, "", 0), "/api/batch-simulations", body(simulations, name)))
        )
        site, ends = Site(url, batch["data"]["id"], simulations), asyncio.Event()
        while not await has_begun(client, site):
            await asyncio.sleep(0.01)
        calling = asyncio.create_task(clients(made, site, THINKING, ends))
        listed: dict[str, Any] = {"status": "pending"}
        while listed["status"] in ("pending", "in_progress"):
            await asyncio.sleep(0.5)
            listed = json.loads(bytes(await send(client, site, "/api/batch-simulations?limit=1")))["data"][0]
        row: dict[str, Any] = {"seconds": time.perf_counter() - start, "status": listed["status"]}
        ends.set()
        took, failed = await calling
        row["cores"] = (cpu_of_all() - cpu) / (time.perf_counter() - start)
        return row | {"batch": site.batch, "completed": listed["progress"]["completed"], **summed_up(took, failed)}


async def flat_out(url: str, batch: str, simulations: int, made: list[Client]) -> dict[str, Any]:
    """All clients without pauses, for some seconds, on an otherwise idle server."""
    ends = asyncio.Event()
    asyncio.get_running_loop().call_later(FLAT_OUT, ends.set)
    start = time.perf_counter()
    took, failed = await clients(made, Site(url, batch, simulations), 0.0, ends)
    every = sum(len(each) for each in took.values())
    return {"per_second": every / (time.perf_counter() - start), **summed_up(took, failed)}


def summed_up(took: Took, failed: list[str]) -> dict[str, Any]:
    """Times by route, and of all routes except exports."""
    rows = {route: spread(took[route]) for route in ROUTES if took.get(route)}
    every = [each for route, times in took.items() if route != EXPORT for each in times]
    return {"routes": rows, "all but exports": spread(every) if every else None, "failed": failed}


def spread(times: list[float]) -> dict[str, float]:
    """Percentiles of times."""
    ordered = sorted(times)
    return {
        "calls": len(ordered),
        "median": statistics.median(ordered),
        "p95": ordered[int(len(ordered) * 0.95)],
        "p99": ordered[int(len(ordered) * 0.99)],
        "most": ordered[-1],
    }


def show(title: str, figures: dict[str, Any]) -> None:
    """Print one table."""
    print(f"\n{title}")
    print(f"  {'':24}{'calls':>8}{'median':>9}{'95%':>9}{'99%':>9}{'longest':>9}  ms")
    rows = dict(figures["routes"])
    if figures["all but exports"] is not None:
        rows["all but exports"] = figures["all but exports"]
    for route, row in rows.items():
        times = "".join(f"{row[key]:>9.1f}" for key in ("median", "p95", "p99", "most"))
        print(f"  {route:24}{row['calls']:>8,}{times}")
    print(f"  failures: {len(figures['failed'])}", *figures["failed"][:3], sep="\n    " if figures["failed"] else "")


@contextmanager
def process(arguments: list[str], variables: dict[str, str], ready: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command that serves at an address, and wait until it does."""
    command = [sys.executable, "-m", "groundswell", *arguments]
    started = subprocess.Popen(command, env=variables, text=True, stdout=subprocess.DEVNULL)
    try:
        host, port = ready.rsplit("/", 1)[-1].split(":")
        for _ in range(600):
            with socket.socket() as trying:
                if trying.connect_ex((host, int(port))) == 0:
                    break
            if started.poll() is not None:
                raise SystemExit(f"{' '.join(arguments)} ended with {started.returncode}")
            time.sleep(0.05)
        yield started
    finally:
        started.terminate()
        started.wait(20)


def free_port() -> int:
    """A free port."""
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return int(trying.getsockname()[1])


async def add_entities(client: Client, url: str) -> None:
    """Create the entities that take part."""
    for number in range(ENTITIES):
        entity = {"id": f"e{number}", "name": f"Person {number}", "description": "Has a view on bread."}
        await send(client, Site(url, "", 0), "/api/entities", entity)


async def measured(url: str, simulations: int) -> dict[str, Any]:
    """All parts, one after another."""
    async with connection() as client:
        await add_entities(client, url)
    found = {"alone": await carried_out(url, simulations, "alone", [])}
    async with AsyncExitStack() as stack:  # created before measuring: creating a client takes longer than a call
        made = [await stack.enter_async_context(connection()) for _ in range(CLIENTS)]
        found["polling"] = await carried_out(url, simulations, "polling", made)
        found["flat out"] = await flat_out(url, found["polling"]["batch"], simulations, made)
    return found


async def timed(client: Client, site: Site, method: str, path: str, given: Any = None) -> tuple[float, bytes]:
    """The milliseconds of a call, and its answer."""
    call = {"GET": client.get, "POST": client.post, "DELETE": client.delete}[method](site.url + path)
    start = time.perf_counter()
    response = await (call if given is None else call.body_json(given)).build().send()
    read = bytes(await response.bytes())
    if response.status >= 400:
        raise RuntimeError(f"{method} {path}: {response.status} {read[:200]!r}")
    return (time.perf_counter() - start) * 1000, read


async def in_process(url: str, simulations: int) -> dict[str, Any]:
    """Calls that change runs, one after another, while an in-process model executes batches."""
    site, took, batches = Site(url, "", 0), dict[str, list[float]](), "/api/batch-simulations"

    async def call(route: str, method: str, path: str, given: Any = None) -> Any:
        ms, read = await timed(client, site, method, path, given)
        took.setdefault(route, []).append(ms)
        return json.loads(read)["data"]

    def wanted(name: str) -> dict[str, Any]:
        return body(simulations, name) | {"model": "emulated/keeper", "interaction_size": 4}

    async with connection() as client:
        await add_entities(client, url)
        ids = [(await call("POST", "POST", batches, wanted("running" + "!" * at)))["id"] for at in range(4)]
        await asyncio.sleep(3)
        for at in range(5):
            ids.append((await call("POST, busy", "POST", batches, wanted("waiting" + "!" * at)))["id"])
            await call("GET list, busy", "GET", f"{batches}?limit=20")
        await call("cancel, running", "POST", f"{batches}/{ids[0]}/cancel", {})
        for at in (1, 2, 3):
            await call("DELETE, running", "DELETE", f"{batches}/{ids[at]}")
        await call("DELETE, waiting", "DELETE", f"{batches}/{ids[-1]}")
    return {"routes": {route: spread(times) for route, times in took.items()}, "all but exports": None, "failed": []}


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the batch")
    parser.add_argument("--in-process", action="store_true", help="calls while an in-process model computes")
    given = parser.parse_args()
    simulations = 100 if given.quick else 1000
    asked, serving = free_port(), free_port()
    url, emulator = f"http://127.0.0.1:{serving}", f"http://127.0.0.1:{asked}"
    variables = os.environ | {
        "OPENAI_BASE_URL": f"{emulator}/v1",
        "OPENAI_API_KEY": "any",
        "PYTHONPATH": str(Path(groundswell.__file__).parents[1]),
        "NO_PROXY": "*",
        "no_proxy": "*",
    }
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stack.enter_context(
            process(["emulate", "--port", str(asked), "--latency", LATENCY, "--for", "600"], variables, emulator)
        )
        store = str(Path(folder) / "api.db")
        server = stack.enter_context(process(["serve", "--port", str(serving), "--store", store], variables, url))
        if given.in_process:
            show("four batches of emulated/keeper are running", asyncio.run(in_process(url, 5 * simulations)))
            return
        found = asyncio.run(measured(url, simulations))
        found["memory_mb"] = memory_of(server.pid)
    alone, polling = found["alone"], found["polling"]
    print(f"{simulations:,} simulations of {2 * TURNS} messages, {LATENCY} s each, at most 256 in flight")
    print(
        f"  alone          {alone['seconds']:6.1f} s, {alone['completed']} completed, {alone['cores']:.1f} cores busy"
    )
    print(
        f"  with clients   {polling['seconds']:6.1f} s, {polling['completed']} completed, {polling['cores']:.1f} cores "
        f"busy: {polling['seconds'] / alone['seconds']:.2f} times as long"
    )
    show(f"{CLIENTS} clients that poll, one call a second each", polling)
    show(f"{CLIENTS} clients flat out: {found['flat out']['per_second']:,.0f} calls a second", found["flat out"])
    median = polling["all but exports"]["median"]
    print(f"\nmedian {median:.1f} ms (goal: {GOAL:.0f} ms); peak memory of the server: {found['memory_mb']:.0f} MB")
    OUT.mkdir(exist_ok=True)
    (OUT / "api.json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
