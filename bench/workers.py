"""What workers bring: `python bench/workers.py`; `--quick` (a quarter of the size), `--ray` (also on a local Ray).

Every figure compares configurations of one run of this script, on a private PostgreSQL server. Measured for one process
without workers, and for 1, 2 and 4 workers, with three loads of three requests per trial:

  asks       a model in the process that answers at once: the cost of the engine and of the store
  computes   3 ms of computing per request, as in programs that score or parse: CPU is the limit
  waits      a model that takes a second, with 256 requests in flight per worker: also with 8 workers

Throughput is that of the middle 80% of the trials, so that starting processes does not count. CPU per request is that
of all processes, without what the same command needs for 30 trials, and that of the database server apart.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psycopg

from groundswell.store.local_postgres import LocalServer
from store import server_cpu
from workers_load import TURNS, Load

OUT = Path(__file__).parent / "out"
LOAD = Path(__file__).with_name("workers_load.py")
COMPUTES = 0.003
SMALL = 30


def run_once(server: LocalServer, wanted: Load, how: Sequence[str]) -> dict[str, float]:
    """One run: its requests per second, and CPU seconds of its processes and of the server."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    settings = OUT / "workers-settings.json"
    settings.write_text(msgspec.json.encode(wanted).decode())
    command = ["run", f"{LOAD}:load", "--settings", str(settings), "--no-cache", "--store", server.url, *how]
    before = server_cpu(server), cpu_of_children()
    subprocess.run([sys.executable, "-m", "groundswell", *command], check=True, capture_output=True)
    with psycopg.connect(server.url, autocommit=True) as connection:
        ended = [at for (at,) in connection.execute("SELECT ended_at FROM outcomes ORDER BY ended_at").fetchall()]
    assert len(ended) == wanted.trials
    first, last = wanted.trials // 10, wanted.trials * 9 // 10
    rate = TURNS * (last - first) / max(ended[last] - ended[first], 1e-9)
    return {"rate": rate, "cpu": cpu_of_children() - before[1], "server": server_cpu(server) - before[0]}


def cpu_of_children() -> float:
    """CPU seconds of all processes that this one has waited for, and of those that they have."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(server: LocalServer, wanted: Load, how: Sequence[str]) -> dict[str, float]:
    """A run without what it takes to start the same processes."""
    small = run_once(server, msgspec.structs.replace(wanted, trials=SMALL), how)
    whole = run_once(server, wanted, how)
    asks = TURNS * (wanted.trials - SMALL)
    return {
        "requests per second": round(whole["rate"]),
        "CPU per request, microseconds": round((whole["cpu"] - small["cpu"]) / asks * 1e6),
        "CPU of the server": round((whole["server"] - small["server"]) / asks * 1e6),
    }


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a quarter of the size")
    parser.add_argument("--ray", action="store_true", help="also with two workers on a local Ray")
    given = parser.parse_args()
    size = 4 if given.quick else 1
    loads = {
        "asks": (Load(40_000 // size, "scripted/at_once"), (0, 1, 2, 4)),
        "computes": (Load(8_000 // size, "scripted/at_once", COMPUTES), (0, 1, 2, 4)),
        "waits": (Load(16_000 // size, "scripted/in_a_second"), (0, 1, 2, 4, 8)),
    }
    OUT.mkdir(exist_ok=True)
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="gs-") as folder:
        Path(folder).chmod(0o755)
        server = LocalServer(Path(folder) / "pg")
        server.up()
        try:
            for name, (wanted, counts) in loads.items():
                ways = {("one process" if not n else f"{n} workers"): ["--workers", str(n)] * (n > 0) for n in counts}
                if given.ray:
                    ways["2 on Ray"] = ["--cluster", "ray", "--workers", "2"]
                found[name] = {way: measure(server, wanted, how) for way, how in ways.items()}
                show(name, found[name])
        finally:
            server.down()
    (OUT / "workers.json").write_text(json.dumps(found, indent=2))


def show(name: str, ways: dict[str, dict[str, float]]) -> None:
    """Print a table of one load."""
    alone = ways["one process"]["requests per second"]
    print(f"\n{name}")
    for way, figures in ways.items():
        shown = ", ".join(f"{what} {figure:,}" for what, figure in figures.items())
        print(f"  {way:12} {figures['requests per second'] / alone:5.2f} times one process; {shown}", flush=True)


if __name__ == "__main__":
    main()
