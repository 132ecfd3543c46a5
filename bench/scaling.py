"""What limits many workers: `python bench/scaling.py`; `--quick` (up to 16 workers, shorter).

First it measures, on a private PostgreSQL server, what a run costs the workers, the head and the database:

  a second       of 1, 16 and 64 workers, with 256 requests in flight each and none that comes back: renewing leases,
                 looking for news
  a request,     fitted to what is left of the CPU of six runs: with a model that answers at once, where a transaction
  a transaction  stores the replies to many requests, and with one that takes a second, where it stores few

Then it simulates 1,000,000 conversations of three requests on 1 to 64 workers with these costs. Each worker and the
head have one core, and the database has 8. Each worker has 256 requests in flight. It stores the replies that have come
since its last transaction in the next one, which takes 3 ms to be synced besides its CPU. The table says how busy
everything is; the busiest is the next bottleneck. Last, what was simulated is compared with what was measured on this
machine, where all of them share its cores.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec
import psycopg

from groundswell.store.journal import Store
from groundswell.store.local_postgres import LocalServer
from store import server_cpu
from workers_load import TURNS, Load

OUT = Path(__file__).parent / "out"
LOAD = Path(__file__).with_name("workers_load.py")
GROUNDSWELL = [sys.executable, "-m", "groundswell"]
IN_FLIGHT = 256
PACKET = 4
"""Requests that are simulated as one."""
CORES = 8
SYNC = 0.003
CONVERSATIONS = 1_000_000
TICKS = os.sysconf("SC_CLK_TCK")
AT_ONCE, A_SECOND, NEVER = "scripted/at_once", "scripted/in_a_second", "scripted/in_an_hour"


class Costs(NamedTuple):
    """CPU seconds of the workers together, of the head and of the database server."""

    workers: float
    head: float
    server: float


class Measured(NamedTuple):
    """Requests and transactions per second, the costs of a second, and the connections to the database."""

    requests: float
    transactions: float
    costs: Costs
    connections: int


class Prices(NamedTuple):
    """What a request costs, and a transaction of a worker."""

    request: Costs
    transaction: Costs


def measure(server: LocalServer, model: str, workers: int, seconds: float) -> Measured:
    """Measure for some seconds of a run that would last longer."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    Store(server.url).close_reading()  # which creates its tables
    settings = OUT / "scaling-settings.json"
    settings.write_text(msgspec.json.encode(Load(CONVERSATIONS, model)).decode())
    run = ["run", f"{LOAD}:load", "--settings", str(settings), "--no-cache", "--workers", "0", "--name", "load"]
    with ExitStack() as stack:

        def start(*words: str) -> subprocess.Popen[bytes]:
            command = [*GROUNDSWELL, *words, "--store", server.url, "--max-concurrent", str(IN_FLIGHT)]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        crew = [start("worker", "--of", str(workers)) for _ in range(workers)]
        head = start(*run)
        database = stack.enter_context(psycopg.connect(server.url, autocommit=True))
        store = Store(server.url)
        stack.callback(store.close_reading)

        def number(query: str) -> int:
            (found,) = database.execute(query).fetchone() or (0,)
            return int(found)

        taken = "SELECT count(*) FROM (SELECT shard FROM work GROUP BY shard HAVING shard IS NOT NULL) AS of_shards"
        while number(taken) < workers:
            assert head.poll() is None
            time.sleep(1.0)
        time.sleep(seconds)

        def now() -> tuple[float, ...]:
            cpu = (sum(cpu_of(one.pid) for one in crew), cpu_of(head.pid), server_cpu(server))
            made = number("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
            return time.monotonic(), store.runs.get("load").counters.sent, made, *cpu

        began = now()
        time.sleep(seconds)
        connections = number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        lasted, sent, made, *cpu = (then - before for before, then in zip(began, now(), strict=True))
    return Measured(sent / lasted, made / lasted, Costs(*(each / lasted for each in cpu)), connections)


def cpu_of(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def prices(runs: dict[int, Measured], others: dict[int, Measured], idle: dict[int, Measured]) -> Prices:
    """What a request and a transaction cost, by least squares of relative errors over runs, by number of workers.

    What an idle second of as many workers costs is taken away first.
    """
    fitted = []
    for which in range(len(Costs._fields)):
        points = []
        for count, run in (*runs.items(), *others.items()):
            made = run.transactions - idle[1].transactions * count
            left = run.costs[which] - between(idle, count)[which]
            if left > 0:
                points.append((run.requests / left, made / left))
        xx, xy, yy = (sum(p[i] * p[j] for p in points) for i, j in ((0, 0), (0, 1), (1, 1)))
        x, y = sum(p[0] for p in points), sum(p[1] for p in points)
        whole = xx * yy - xy * xy
        request, transaction = (x * yy - y * xy) / whole, (y * xx - x * xy) / whole
        if min(request, transaction) < 0:  # only one of them then
            request, transaction = (0.0, y / yy) if request < 0 else (x / xx, 0.0)
        fitted.append((request, transaction))
    return Prices(Costs(*(request for request, _ in fitted)), Costs(*(each for _, each in fitted)))


class Station:
    """Some cores that work on one thing after the other, at a speed."""

    def __init__(self, cores: int, idle: float) -> None:
        """`idle`: cores that are in use without requests."""
        self.cores = cores
        self.used = 0.0
        self.idle = idle
        self._free = [0.0] * cores
        self._speed = max(0.01, 1 - idle / cores)

    def work(self, now: float, seconds: float) -> float:
        """When something is done that comes now and takes so much CPU."""
        self.used += seconds
        end = max(now, heapq.heappop(self._free)) + seconds / self._speed
        heapq.heappush(self._free, end)
        return end

    def busy(self, seconds: float) -> float:
        """The part of some time that its cores were in use."""
        return (self.used / seconds + self.idle) / self.cores


class Simulated(NamedTuple):
    """Requests per second, and which part of the time each of them was busy; of the workers, on average."""

    requests: float
    busy: Costs


def simulate(
    conversations: int, workers: int, latency: float, cost: Prices, idle: Costs, *, shared_cores: int = 0
) -> Simulated:
    """Run conversations through the head, the workers, the model and the database.

    `idle`: what a second of so many workers costs. With `shared_cores`, all of them share so many cores.
    """
    if shared_cores:
        pool = Station(shared_cores, sum(idle))
        head, database, crew = pool, pool, [pool] * workers
    else:
        head, database = Station(1, idle.head), Station(CORES, idle.server)
        crew = [Station(1, idle.workers / workers) for _ in range(workers)]
    chance = random.Random(1)
    events: list[tuple[float, int, Callable[[float], None]]] = []
    waiting: list[list[int]] = [[] for _ in crew]
    storing = [False] * workers
    left, serial, last, looks_until = conversations // PACKET, 0, 0.0, 0.0

    def at(when: float, then: Callable[[float], None]) -> None:
        nonlocal serial
        serial += 1
        heapq.heappush(events, (when, serial, then))

    def look(now: float) -> None:
        """The head has been told that there are outcomes. While it looks for them, it hears nothing more."""
        nonlocal looks_until
        if now >= looks_until:
            looks_until = head.work(now, cost.transaction.head)

    def give_out(worker: int, now: float) -> None:
        """The head gives a packet of conversations to a worker that has room for it."""
        nonlocal left
        if left:
            left -= 1
            at(head.work(now, PACKET * TURNS * cost.request.head), lambda then: ask(worker, TURNS, then))

    def ask(worker: int, turns: int, now: float) -> None:
        sent = crew[worker].work(now, PACKET * cost.request.workers)
        at(sent + latency * chance.uniform(0.9, 1.1), lambda then: replied(worker, turns - 1, then))

    def replied(worker: int, turns: int, now: float) -> None:
        waiting[worker].append(turns)
        if not storing[worker]:
            store(worker, now)

    def store(worker: int, now: float) -> None:
        """Store all that waits."""
        storing[worker] = True
        several, waiting[worker] = waiting[worker], []
        size = PACKET * len(several)
        look(now)
        crew[worker].work(now, cost.transaction.workers)  # on a thread, while others are asked
        done = database.work(now, cost.transaction.server + size * cost.request.server)
        at(done + SYNC, lambda then: stored(worker, several, then))

    def stored(worker: int, several: list[int], now: float) -> None:
        nonlocal last
        last = now
        for turns in several:
            if turns:
                ask(worker, turns, now)
            else:
                give_out(worker, now)
        storing[worker] = False
        if waiting[worker]:
            store(worker, now)

    for _ in range(IN_FLIGHT // PACKET):
        for worker in range(workers):
            give_out(worker, 0.0)
    while events:
        now, _, then = heapq.heappop(events)
        then(now)
    busy = Costs(sum(one.busy(last) for one in crew) / workers, head.busy(last), database.busy(last))
    return Simulated(conversations * TURNS / last, busy)


def main() -> None:
    """Measure, simulate and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="up to 16 workers, and shorter")
    given = parser.parse_args()
    counts = (1, 16) if given.quick else (1, 16, 64)
    seconds = 8.0 if given.quick else 15.0
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gs-") as folder:
        Path(folder).chmod(0o755)
        server = LocalServer(Path(folder) / "pg", max_connections="1000")
        server.up()
        try:
            idle = {count: told(f"{count} idle", measure(server, NEVER, count, seconds)) for count in counts}
            at_once = {n: told(f"{n} at once", measure(server, AT_ONCE, n, seconds)) for n in (1, 2, 4)}
            a_second = {n: told(f"{n} that wait", measure(server, A_SECOND, n, seconds)) for n in (1, 4, 8)}
        finally:
            server.down()
    cost = prices(at_once, a_second, idle)
    print(f"\na request costs {shown(cost.request, 1e6, 0)} microseconds of CPU")
    print(f"a transaction costs {shown(cost.transaction, 1e6, 0)} microseconds of CPU")
    tables: dict[str, dict[int, Simulated]] = {}
    for latency in (1.0, 0.05):
        print(f"\n{CONVERSATIONS:,} conversations, a model that takes {latency:g} s (simulated)")
        tables[str(latency)] = {}
        for count in (1, 4, 16, 64):
            found = simulate(CONVERSATIONS, count, latency, cost, between(idle, count))
            tables[str(latency)][count] = found
            minutes = CONVERSATIONS * TURNS / found.requests / 60
            busy = ", ".join(f"{name} {part:.0%}" for name, part in found.busy._asdict().items())
            print(f"  {count:2} workers {minutes:6.1f} min, {found.requests:7,.0f} requests per second; busy: {busy}")
    print("\nthis machine, requests per second")
    for name, latency, some in (("at once", 0.0, at_once), ("that wait", 1.0, a_second)):
        for count, measured in some.items():
            made = 20_000 * (count if latency else 1)
            found = simulate(made, count, latency, cost, between(idle, count), shared_cores=os.cpu_count() or 1)
            cores = sum(measured.costs), found.busy.head * (os.cpu_count() or 1)
            print(
                f"  {count:2} workers {name}: measured {measured.requests:6,.0f}, simulated {found.requests:6,.0f}; "
                f"cores {cores[0]:.2f}, simulated {cores[1]:.2f}"
            )
    kept = {"cost": cost, "idle": idle, "at once": at_once, "that wait": a_second, "simulated": tables}
    (OUT / "scaling.json").write_text(json.dumps(kept, indent=2))


def between(idle: dict[int, Measured], count: int) -> Costs:
    """What an idle second of so many workers costs, from the counts that were measured."""
    near = min(idle, key=lambda known: abs(known - count))
    costs = idle[near].costs
    return Costs(costs.workers * count / near, costs.head, costs.server * count / near)


def told(name: str, found: Measured) -> Measured:
    rates = f"{found.requests:6,.0f} requests and {found.transactions:6,.0f} transactions per second"
    print(f"{name:12} {rates}; cores in use {shown(found.costs, 1, 3)}; {found.connections} connections", flush=True)
    return found


def shown(costs: Costs, times: float, digits: int) -> str:
    return ", ".join(f"{name} {each * times:.{digits}f}" for name, each in costs._asdict().items())


if __name__ == "__main__":
    main()
