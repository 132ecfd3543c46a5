"""What workers bring: `python bench/workers.py`; `--quick` (a quarter of the size), `--ray` (also on a local Ray).

Every figure compares configurations of one run of this script, on a private PostgreSQL server. Measured for one process
without workers, and for 1, 2 and 4 workers, with three loads of three requests per trial:

  asks       a model in the process that answers at once: the cost of the engine and of the store
  computes   3 ms of computing per request, as in programs that score or parse: CPU is the limit
  waits      a model that takes a second, with 256 requests in flight per worker: also with 8 workers

Time and CPU are those of a run without those of the same command with 30 trials, so that starting processes does not
count. CPU per request is that of all processes, and that of the database server apart.
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
from typing import NamedTuple

import msgspec
import psycopg

from groundswell.store.local_postgres import LocalServer
from store import server_cpu
from workers_load import TURNS, Load

OUT = Path(__file__).parent / "out"
LOAD = Path(__file__).with_name("workers_load.py")
COMPUTES = 0.003
SMALL = 30
CLUSTER = [sys.executable, "-m", "groundswell", "cluster"]


class Found(NamedTuple):
    """What a run took: its time, the CPU seconds of its processes, and those of the server."""

    seconds: float
    cpu: float
    server: float

    def __sub__(self, other: Found) -> Found:
        return Found(self.seconds - other.seconds, self.cpu - other.cpu, self.server - other.server)


def run_once(server: LocalServer, wanted: Load, how: Sequence[str]) -> Found:
    """One run."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    settings = OUT / "workers-settings.json"
    settings.write_text(msgspec.json.encode(wanted).decode())
    command = ["run", f"{LOAD}:load", "--settings", str(settings), "--no-cache", "--store", server.url, "--json", *how]
    before = Found(0.0, cpu_of_children(), server_cpu(server))
    done = subprocess.run([sys.executable, "-m", "groundswell", *command], check=True, capture_output=True)
    summary = json.loads(done.stdout)
    assert summary["analysis"] == wanted.trials
    return Found(summary["seconds"], cpu_of_children(), server_cpu(server)) - before


def cpu_of_children() -> float:
    """CPU seconds of all processes that this one has waited for, and of those that they have."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(server: LocalServer, wanted: Load, how: Sequence[str]) -> dict[str, float]:
    """A run without what it takes to start the same processes."""
    small = run_once(server, msgspec.structs.replace(wanted, trials=SMALL), how)
    net = run_once(server, wanted, how) - small
    asks = TURNS * (wanted.trials - SMALL)
    return {
        "requests per second": round(asks / net.seconds),
        "CPU per request, microseconds": round(net.cpu / asks * 1e6),
        "CPU of the server": round(net.server / asks * 1e6),
    }


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a quarter of the size")
    parser.add_argument("--ray", action="store_true", help="also with two workers on a local Ray")
    parser.add_argument("--only", nargs="*", choices=["asks", "computes", "waits"], help="these loads alone")
    given = parser.parse_args()
    size = 4 if given.quick else 1
    loads = {
        "asks": (Load(80_000 // size, "scripted/at_once"), (0, 1, 2, 4)),
        "computes": (Load(8_000 // size, "scripted/at_once", COMPUTES), (0, 1, 2, 4)),
        "waits": (Load(4_000 // size, "scripted/in_a_second"), (0, 1, 2, 4, 8)),
    }
    OUT.mkdir(exist_ok=True)
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="gs-") as folder:
        Path(folder).chmod(0o755)
        server = LocalServer(Path(folder) / "pg")
        server.up()
        try:
            if given.ray:
                subprocess.run([*CLUSTER, "up", "--workers", "2"], check=True, capture_output=True)
            for name, (wanted, counts) in loads.items():
                if given.only and name not in given.only:
                    continue
                found[name] = {}
                for count in counts:
                    # What waits takes as many trials for each worker, and so as long.
                    trials = wanted.trials * max(1, count) if name == "waits" else wanted.trials
                    load = msgspec.structs.replace(wanted, trials=trials)
                    how = ["--workers", str(count)] if count else []
                    found[name][f"{count} workers" if count else "one process"] = measure(server, load, how)
                if given.ray:
                    trials = wanted.trials * 2 if name == "waits" else wanted.trials
                    load = msgspec.structs.replace(wanted, trials=trials)
                    figures = measure(server, load, ["--cluster", "ray", "--workers", "2"])
                    del figures["CPU per request, microseconds"]  # its workers are no children of this process
                    found[name]["2 on Ray"] = figures
                show(name, found[name])
        finally:
            if given.ray:
                subprocess.run([*CLUSTER, "down"], check=True, capture_output=True)
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
