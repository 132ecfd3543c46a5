"""Live requests compared with other clients: `python bench/live.py` (full size), `--quick` (a tenth of the size).

One machine, one server that answers every chat after 50 ms, and several clients that hold the same conversations: a
system and a user message, then 6 requests in sequence, each with the whole history. Every measurement has its own
process, or two, which imports, connects and warms up before the clock starts. Rounds are interleaved and medians
reported. The clients:

  bare              pyreqwest on uvloop: a pool of workers; no retries, no journal, nothing stored
  bare-asyncio      the same on asyncio's own loop
  bare x2           two such processes, each with half the load: the capacity of the server
  openai            the official client, with as many connections as needed
  litellm           litellm.acompletion (from .venv-peers: make bench-peers)
  groundswell       the engine with its journal (SQLite, synced), cache and rate limiter
  groundswell x2    two such processes, each with half the load

`--clients` compares HTTP clients instead, without anything around them. The server is nginx with its echo module
(Debian: nginx, libnginx-mod-http-echo) if that is installed, otherwise this project's emulator. A slow client is
stopped after `--longest` seconds and measured up to then. `others` is the number of cores that were busy with other
work, other virtual machines included; a high number makes figures unreliable.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from live_clients import CLIENTS, GIVE_UP, HTTP_CLIENTS, PEER_CLIENTS, Job
from live_servers import DELAY, Server, emulator, has_nginx, nginx

OUT = Path(__file__).parent / "out"
PEERS = Path(__file__).parent.parent / ".venv-peers" / "bin" / "python"
TURNS = 6
LEVELS = {20: 1_000, 100: 1_000, 400: 4_000}
"""Requests in flight, and the number of conversations at that level."""
HEADS = ("req/s", "of ideal", "CPU us/req", "of bare", "x openai", "peak MB", "others")
WARM_TURNS, WARM_FIRST = 3, 10_000_000
"""Before the clock starts, there is one short conversation per request in flight. None is repeated later."""

Row = dict[str, Any]


async def hold(job: Job, told: Any) -> Row:
    """In a separate process: warm up, report it, wait for the signal, and measure."""
    async with CLIENTS[job.client].open(job) as converse:
        warm = WARM_FIRST + job.first
        await converse(range(warm, warm + job.in_flight), WARM_TURNS)
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        print("ready", file=told, flush=True)
        sys.stdin.readline()
        cpu, start = time.process_time(), time.perf_counter()
        requests = await converse(range(job.first, job.first + job.conversations), TURNS)
        end, cpu = time.perf_counter(), time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"requests": requests, "start": start, "end": end, "cpu": cpu, "peak_mb": peak}


def be_client(job: Job) -> None:
    """The main function of such a process. Output of the client must not mix with the results."""
    signal.alarm(GIVE_UP)
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if CLIENTS[job.client].loop == "uvloop":
        import uvloop

        row = uvloop.run(hold(job, told))
    else:
        import asyncio

        row = asyncio.run(hold(job, told))
    print(json.dumps(row), file=told, flush=True)


def interpreter(client: str) -> str | None:
    """The Python with the packages of a client: this one, or that of the peers."""
    code = f"import importlib.util as i, sys; sys.exit(not all(map(i.find_spec, {CLIENTS[client].needs!r})))"
    for python in (sys.executable, str(PEERS)):
        if Path(python).exists() and subprocess.run([python, "-c", code], check=False).returncode == 0:
            return python
    return None


def measure(client: str, server: Server, in_flight: int, conversations: int, longest: float) -> Row:
    """One measurement, or the error."""
    python = interpreter(client)
    if python is None:
        return {"failed": "not installed: make bench-peers"}
    parts = CLIENTS[client].processes
    share = conversations // parts
    with tempfile.TemporaryDirectory(dir=".") as folder, contextlib.ExitStack() as ended:
        jobs = [
            Job(client, server.url, in_flight // parts, part * share, share, longest, f"{folder}/{part}.db")
            for part in range(parts)
        ]
        errors = [ended.enter_context(open(f"{folder}/{part}.err", "w+")) for part in range(parts)]
        command = [python, __file__, "--job"]
        processes = [
            subprocess.Popen(
                [*command, json.dumps(job)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error, text=True
            )
            for job, error in zip(jobs, errors, strict=True)
        ]
        rows, used = start_together(processes, server.pid)
        for process, error in zip(processes, errors, strict=True):
            if process.returncode:
                error.seek(0)
                why = why_it_failed(error.read(), process.returncode)
                if len(rows) < parts:
                    return {"failed": why}
                print(f"{client} returned its figures, but failed at exit: {why}", file=sys.stderr)
    return summed(rows, used, in_flight, conversations)


def why_it_failed(errors: str, status: int) -> str:
    """The last line that names an error, or else the exit status."""
    named = [line for line in errors.splitlines() if re.match(r"[\w.]*(Error|Exception|Timeout|Failed)\b|Fatal", line)]
    return named[-1][:300] if named else f"ended with status {status}"


def start_together(processes: Sequence[subprocess.Popen[str]], server: int) -> tuple[list[Row], Row]:
    """Give the signal when all are ready. Return their results, and the CPU seconds of the server and in total."""
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    cpu, busy = cpu_of(server), cpu_of_all()
    for process in processes:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write("\n")
            process.stdin.flush()
    told = [process.communicate()[0] for process in processes]
    used = {"server": cpu_of(server) - cpu, "all": cpu_of_all() - busy}
    return [json.loads(each) for each in told if each.startswith("{")], used


def summed(rows: list[Row], used: Row, in_flight: int, conversations: int) -> Row:
    """The figures of one measurement."""
    requests = sum(row["requests"] for row in rows)
    own = sum(row["cpu"] for row in rows)
    seconds = max(row["end"] for row in rows) - min(row["start"] for row in rows)
    return {
        "requests": requests,
        "seconds": seconds,
        "per_second": requests / seconds,
        "of_ideal": requests / seconds / (in_flight / DELAY),
        "cpu_us": own / requests * 1e6,
        "server_cpu_us": used["server"] / requests * 1e6,
        "others_busy": max(0.0, used["all"] - used["server"] - own) / seconds,
        "peak_mb": sum(row["peak_mb"] for row in rows),
        "cut_off": requests < conversations * TURNS,
    }


def cpu_of(pid: int) -> float:
    """The CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_all() -> float:
    """CPU seconds used in total: user, nice, system, interrupts, and time stolen by other virtual machines."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()
    return sum(int(fields[number]) for number in (1, 2, 3, 6, 7, 8)) / os.sysconf("SC_CLK_TCK")


def median_row(rows: list[Row]) -> Row:
    """The median of every figure; a client that failed in any round failed."""
    for row in rows:
        if "failed" in row:
            return row
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def print_level(in_flight: int, conversations: int, rows: dict[str, Row]) -> None:
    """One table."""
    print(
        f"\n{in_flight} in flight, {conversations:,} conversations of {TURNS} turns; ideal {in_flight / DELAY:,.0f}/s"
    )
    print(f"  {'client':16}" + "".join(f"{head:>12}" for head in HEADS))
    for client, row in rows.items():
        if "failed" in row:
            print(f"  {client:16}{row['failed']}")
            continue
        ratios = [ratio(rows, client, other) for other in ("bare", "openai")]
        of_bare, of_openai = ("-" if each is None else f"{each:,.2f}" for each in ratios)
        print(
            f"  {client:16}{row['per_second']:12,.0f}{row['of_ideal']:12.2f}{row['cpu_us']:12,.0f}"
            f"{of_bare:>12}{of_openai:>12}{row['peak_mb']:12.0f}{row['others_busy']:12.2f}"
            + ("  cut off" if row["cut_off"] else "")
        )


def ratio(rows: dict[str, Row], client: str, other: str) -> float | None:
    """The rate of one client relative to another; None if either has none."""
    own, others = (rows.get(name, {}).get("per_second") for name in (client, other))
    return own / others if own and others else None


def goals(table: dict[int, dict[str, Row]]) -> list[Row]:
    """The goals and the measured values."""
    at_100, at_400 = table.get(100, {}), table.get(400, {})
    found: list[tuple[str, float, float | None]] = [
        ("100 in flight: share of the ideal", 0.95, at_100.get("groundswell", {}).get("of_ideal")),
        ("400 in flight: share of the bare client", 0.85, ratio(at_400, "groundswell", "bare")),
        ("400 in flight: share of the ideal, two processes", 0.9, at_400.get("groundswell x2", {}).get("of_ideal")),
        ("100 in flight: times the official client", 10.0, ratio(at_100, "groundswell", "openai")),
    ]
    return [
        {"goal": name, "wanted": wanted, "found": value, "reached": None if value is None else value >= wanted}
        for name, wanted, value in found
    ]


def print_goals(listed: list[Row]) -> None:
    """Each goal, reached or not."""
    print()
    for goal in listed:
        mark = {True: "reached", False: "not reached", None: "not measured"}[goal["reached"]]
        found = "-" if goal["found"] is None else f"{goal['found']:.2f}"
        print(f"{goal['goal']:50} goal {goal['wanted']:5.2f}   found {found:>6}   {mark}")


def check_server(server: Server) -> Row:
    """The time of a single request, and the CPU time of the server per request under load from two processes."""
    alone = measure("bare", server, 1, 4, 10)
    loaded = measure("bare x2", server, 400, 800, 10)
    for row in (alone, loaded):
        if "failed" in row:
            sys.exit(f"the bare client failed: {row['failed']}")
    found = {
        "server": server.name,
        "alone_ms": 1000 / alone["per_second"],
        "cpu_us": loaded["server_cpu_us"],
        "carries_per_core": 1e6 / loaded["server_cpu_us"],
    }
    print(
        f"{server.name}, replies after {DELAY * 1000:.0f} ms: a request alone takes {found['alone_ms']:.1f} ms.\n"
        f"With 400 at once the server needs {found['cpu_us']:.0f} us of CPU per request, "
        f"so one core serves {found['carries_per_core']:,.0f}/s."
    )
    return found


def compare(options: argparse.Namespace, names: Sequence[str], server: Server) -> None:
    """Run all rounds, then compute the results."""
    checked = check_server(server)
    levels = {level: LEVELS[level] // (10 if options.quick else 1) for level in options.at or LEVELS}
    rounds: dict[int, dict[str, list[Row]]] = {level: {name: [] for name in names} for level in levels}
    for number in range(options.rounds):
        for level, conversations in levels.items():
            for name in names:
                row = measure(name, server, level, max(conversations, level), options.longest)
                rounds[level][name].append(row)
                told = row.get("failed") or f"{row['per_second']:,.0f}/s, {row['cpu_us']:,.0f} us"
                print(f"round {number + 1}, {level} in flight, {name}: {told}", file=sys.stderr)
    table = {level: {name: median_row(rows) for name, rows in listed.items()} for level, listed in rounds.items()}
    for level, rows in table.items():
        print_level(level, max(levels[level], level), rows)
        if level / DELAY > checked["carries_per_core"]:
            print(f"  The server itself can serve at most {checked['carries_per_core']:,.0f}/s.")
    reached = [] if options.clients else goals(table)
    print_goals(reached)
    OUT.mkdir(exist_ok=True)
    figures = {"server": checked, "medians": table, "rounds": rounds, "goals": reached, "quick": options.quick}
    (OUT / ("live-clients.json" if options.clients else "live.json")).write_text(json.dumps(figures, indent=1) + "\n")


def main() -> None:
    """Compare the clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the conversations")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; medians are reported (3)")
    parser.add_argument("--longest", type=float, default=20, help="seconds after which a slow client is stopped (20)")
    parser.add_argument("--server", choices=("nginx", "emulator"))
    parser.add_argument("--clients", action="store_true", help="compare HTTP clients instead")
    parser.add_argument("--only", nargs="+", choices=CLIENTS, metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--at", nargs="+", type=int, choices=LEVELS, help="requests in flight (all levels)")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, most) if most > 0 else 8192, most))
    if options.job:
        be_client(Job(*json.loads(options.job)))
        return
    there = has_nginx()
    if options.server == "nginx" and not there:
        sys.exit("nginx with its echo module is not installed (Debian: nginx, libnginx-mod-http-echo)")
    with emulator() if options.server == "emulator" or not there else nginx() as server:
        compare(options, options.only or (HTTP_CLIENTS if options.clients else PEER_CLIENTS), server)


if __name__ == "__main__":
    main()
