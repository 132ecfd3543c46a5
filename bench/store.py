"""SQLite and PostgreSQL as stores: `python bench/store.py` (full size), `--quick` (a tenth of the size).

Both are measured in one run on one machine, each step in its own process. The PostgreSQL server is a private one on the
same machine, with its usual settings: every commit is synced to the disk in both. Measured:

  run       CPU and time per request of a run with a scripted model that answers at once, on each store; for PostgreSQL
            also the CPU of the server
  commit    rows per second through the group-committing journal, in groups of 300 requests
  growth    CPU per request at 1,000,000 trials relative to 10,000 trials; peak memory of the process; disk space
  share     time to find 10,000 cached replies of another run
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import uvloop

import groundswell
from engine import GROUP, TURNS, answer, run_trials, talk, tune
from groundswell.program.request import Reply, encode_settlement
from groundswell.store.journal import Store
from groundswell.store.local_postgres import LocalServer
from groundswell.store.open import open_database
from groundswell.transports.scripted import Scripted

OUT = Path(__file__).parent / "out"
ROWS = 60_000


async def commit_rows(store: str, rows: int) -> dict[str, float]:
    """Write rows of requests through the journal. Each group waits until the one before is durable."""
    opened = Store(store)
    record = opened.runs.create("rows", 0)
    journal = opened.journal(record, print)
    reply = Reply("That is an interesting thought. " * 10)
    encode_settlement(reply)
    told = 0

    def durable() -> None:
        nonlocal told
        told += 1

    cpu, wall = time.process_time(), time.perf_counter()
    for start in range(0, rows, GROUP):
        for number in range(start, start + GROUP):
            journal.add_settlement((record.span[0] + number, "0"), b"f" * 16, None, reply, durable)
        await journal.flush()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert told == rows
    await opened.close()
    return {"rows_per_s": rows / wall, "cpu_us": cpu / rows * 1e6}


async def find_cached(store: str, trials: int) -> dict[str, float]:
    """Run the same trials twice under two names: the second time every reply is in the cache."""
    took, found = [], 0
    for name in ("first", "second"):
        async with groundswell.open(store, transport=Scripted(answer, cached=True)) as engine:
            run = engine.run(name, seed=7)
            wall = time.perf_counter()
            async for outcome in run.map(talk, range(trials)):
                assert outcome.ok
            took.append(time.perf_counter() - wall)
            found = run.counters.cached
    return {"first_us": took[0] / trials / TURNS * 1e6, "second_us": took[1] / trials / TURNS * 1e6, "found": found}


STEPS: dict[str, Callable[[Any, int], Any]] = {"run": run_trials, "commit": commit_rows, "share": find_cached}


def server_cpu(server: LocalServer) -> float:
    """Seconds of CPU that all processes of a server have used, those that have ended included."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(entry.name) == server.pid:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == server.pid:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def size_of(store: str) -> int:
    """The bytes of a store. Those that an empty one has are few."""
    with closing(open_database(store)) as database:
        return database.size()


def measure(step: str, store: str, count: int, server: LocalServer | None = None) -> dict[str, float]:
    """Run one step in a separate process."""
    before = 0.0 if server is None else server_cpu(server)
    done = subprocess.run(
        [sys.executable, __file__, "--step", step, "--store", store, "--count", str(count)],
        check=True,
        stdout=subprocess.PIPE,
    )
    result: dict[str, float] = json.loads(done.stdout)
    requests = count * {"run": TURNS, "commit": 1, "share": 2 * TURNS}[step]
    result["bytes"] = size_of(store) / requests
    if server is not None:
        result["server_us"] = (server_cpu(server) - before) / requests * 1e6
    kind = "sqlite" if server is None else "postgres"
    print(f"  {step:7} {kind:9} {count:>9,}  " + "  ".join(f"{key} {value:,.1f}" for key, value in result.items()))
    return result


def main() -> None:
    """Measure everything and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100,000 trials instead of 1,000,000")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        tune()
        result = uvloop.run(STEPS[options.step](options.store, options.count))
        result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(result))
        return
    with tempfile.TemporaryDirectory(prefix="gs-", dir=".") as folder:
        Path(folder).chmod(0o755)  # the server may have an account of its own
        server = LocalServer(Path(folder) / "pg")
        server.up()
        try:
            report(Path(folder), server, 100_000 if options.quick else 1_000_000)
        finally:
            server.down()


def databases(server: LocalServer) -> Callable[[], str]:
    """Makes new databases on a server."""
    import psycopg

    count = 0

    def make() -> str:
        nonlocal count
        count += 1
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE bench{count}")
        return server.url.replace("@/groundswell?", f"@/bench{count}?")

    return make


def report(folder: Path, server: LocalServer, large: int) -> None:
    """Run all steps on both stores, in turn, then compute the ratios."""
    new, small = databases(server), 10_000
    lite: list[dict[str, float]] = []
    post: list[dict[str, float]] = []
    for number in range(3):
        lite.append(measure("run", str(folder / f"{number}.db"), small))
        post.append(measure("run", new(), small, server))
    one, two = (sorted(each, key=lambda found: found["cpu_us"])[1] for each in (lite, post))
    rows = measure("commit", str(folder / "rows.db"), ROWS), measure("commit", new(), ROWS, server)
    share = measure("share", str(folder / "share.db"), small), measure("share", new(), small, server)
    many = measure("run", str(folder / "many.db"), large), measure("run", new(), large, server)
    figures = {
        "CPU per request, SQLite, microseconds": round(one["cpu_us"]),
        "CPU per request, PostgreSQL": round(two["cpu_us"]),
        "  of the server besides": round(two["server_us"]),
        "  ratio without the server": round(two["cpu_us"] / one["cpu_us"], 2),
        "time per request, PostgreSQL over SQLite": round(two["wall_us"] / one["wall_us"], 2),
        "rows per second, SQLite": round(rows[0]["rows_per_s"]),
        "rows per second, PostgreSQL": round(rows[1]["rows_per_s"]),
        "  ratio": round(rows[1]["rows_per_s"] / rows[0]["rows_per_s"], 2),
        "time per cached reply, PostgreSQL over SQLite": round(share[1]["second_us"] / share[0]["second_us"], 2),
        f"CPU per request at {large:,} trials over {small:,}, SQLite": round(many[0]["cpu_us"] / one["cpu_us"], 2),
        f"CPU per request at {large:,} trials over {small:,}, PostgreSQL": round(many[1]["cpu_us"] / two["cpu_us"], 2),
        "bytes of disk space per request, SQLite": round(many[0]["bytes"]),
        "bytes of disk space per request, PostgreSQL": round(many[1]["bytes"]),
        "peak memory, SQLite, MB": round(many[0]["peak_mb"]),
        "peak memory, PostgreSQL, MB": round(many[1]["peak_mb"]),
    }
    print()
    for name, value in figures.items():
        print(f"{name:64} {value:>10,}")
    OUT.mkdir(exist_ok=True)
    (OUT / "store.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
