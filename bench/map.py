"""One prompt for every row of a table, compared with other tools: `python bench/map.py`, `--rows 500` (a quarter).

One machine, one server that answers every chat after 50 ms (nginx with its echo module; Debian: nginx,
libnginx-mod-http-echo), a table of 2,000 rows, 100 requests at once. Each tool is used as its own documentation
shows, and stores what it stores by default (bench/map_clients.py):

  groundswell     `groundswell map`: journal, fully synced to disk, and cache
  openai          a script around the official client: a semaphore, a gather, a file at the end; stores nothing
  litellm         the same around litellm.acompletion; stores nothing
  litellm+cache   the same with its disk cache on
  curator         Bespoke Curator: an LLM over a dataset; stores replies in its cache
  inspect         Inspect: an eval set of one task that generates; stores its log, written every few samples

Each is a whole command, measured from outside, by its process and by the server's log:

  first     in a new folder: seconds of the whole command; rows per second between the first and the last request, and
            their share of the ideal with 100 at once; CPU per row and peak memory of the whole command
  again     the same command in the same folder: seconds, and the requests that the server received
  killed    in a new folder, SIGKILL when the server has received half of the rows, then the same command again: the
            requests that the server received in total, per row. This is what is paid for; 1.00 is every row once.

Rounds are interleaved and medians reported. `others` is the number of cores that were busy with other work.
"""

from __future__ import annotations

import argparse
import compileall
import csv
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from live import cpu_of, cpu_of_all
from live_servers import DELAY, SAID, Server, has_nginx, nginx
from map_clients import CLIENTS, COLUMN, KEY, LOGS, MODEL, REPLIES, ROWS

HERE = Path(__file__).parent.absolute()
OUT = HERE / "out"
PEERS = (".venv-peers", ".venv-peers-curator", ".venv-peers-inspect")
PYTHONS = (sys.executable, *(str(HERE.parent / name / "bin" / "python") for name in PEERS))
IN_FLIGHT = 100
POLL = 0.005
SETTLES = 4 * DELAY
"""Seconds after which the server has finished all requests."""
CUT_OFF = "took longer than {} s"

Row = dict[str, Any]


class Found(NamedTuple):
    """Where a client is installed, and in which version."""

    python: str
    version: str


class Ended(NamedTuple):
    """The figures of a command, and its requests at the server."""

    status: int
    seconds: float
    cpu: float
    peak_mb: float
    others: float
    moments: list[float]


class Failed(Exception):
    """A client did not produce the expected result."""


class Course(NamedTuple):
    """What all commands of a comparison have in common."""

    server: Server
    rows: int
    longest: float

    @property
    def ideal(self) -> float:
        """Seconds for all requests at full concurrency."""
        return self.rows / IN_FLIGHT * DELAY


def find(client: str) -> Found | None:
    """The first Python with all packages of a client."""
    needs = CLIENTS[client].needs
    code = f"from importlib.metadata import version; print(*map(version, {needs!r}))"
    for python in PYTHONS:
        if not Path(python).exists():
            continue
        asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return Found(python, asked.stdout.split()[0])
    return None


def command(client: str, python: str, url: str) -> list[str]:
    """The command that a user would run."""
    if client != "groundswell":
        return [python, str(HERE / "map_clients.py"), client, url, str(IN_FLIGHT)]
    flags = ["--prompt", "{question}", "--model", f"openai/{MODEL}", "--out", REPLIES]
    return [python, "-m", "groundswell", "map", ROWS, *flags, "--max-concurrent", str(IN_FLIGHT)]


def environment(url: str) -> dict[str, str]:
    """The server is on this machine, and reached without a proxy."""
    return os.environ | {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "NO_PROXY": "*", "no_proxy": "*"}


def write_rows(folder: Path, rows: int) -> None:
    """The table. No two rows are the same, so that no cache answers one with the other's reply."""
    with (folder / ROWS).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "question"])
        writer.writerows([number, question(number)] for number in range(rows))


def question(number: int) -> str:
    """What is asked about a row."""
    return f"Report {number}: the light at the harbour was out again last night. What does that tell you about the map?"


def measure(course: Course, folder: Path, call: Sequence[str], until: Callable[[], bool] | None = None) -> Ended:
    """Run a command to its end, or kill it when `until` holds."""
    server, before, busy = course.server, course.server.seen(), cpu_of_all()
    served, start = cpu_of(server.pid), time.perf_counter()
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(
            call, cwd=folder, env=environment(server.url), stdout=said, stderr=said, start_new_session=True
        )
        status, used = 0, None
        while used is None:
            time.sleep(POLL)
            late = time.perf_counter() - start > course.longest
            if late or (until is not None and until()):
                os.killpg(process.pid, signal.SIGKILL)
            pid, status, spent = os.wait4(process.pid, 0 if late else os.WNOHANG)
            used = spent if pid else None
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    own = used.ru_utime + used.ru_stime
    others = max(0.0, cpu_of_all() - busy - own - (cpu_of(server.pid) - served)) / seconds
    time.sleep(SETTLES)
    return Ended(process.returncode, seconds, own, used.ru_maxrss / 1024, others, server.moments()[before:])


def finish(course: Course, folder: Path, call: Sequence[str]) -> Ended:
    """Run a command to its end, and look at what it wrote."""
    ended = measure(course, folder, call)
    if ended.status:
        last = (folder / "said.txt").read_text(errors="replace").strip().splitlines()[-1:]
        late = ended.seconds > course.longest
        raise Failed(CUT_OFF.format(course.longest) if late else f"status {ended.status}: {' '.join(last)[:200]}")
    written = replies_in(folder)
    if written != course.rows:
        raise Failed(f"wrote {written} replies to {course.rows} rows")
    return ended


def replies_in(folder: Path) -> int:
    """How many rows have their reply in what a client wrote. Inspect writes a log, a zip of samples, some twice."""
    if (folder / REPLIES).exists():
        with (folder / REPLIES).open(newline="") as file:
            return sum(row[COLUMN] == SAID for row in csv.DictReader(file))
    newest = sorted((folder / LOGS).glob("*.eval"))[-1:]
    return len({name for log in newest for name in zipfile.ZipFile(log).namelist() if name.startswith("samples/")})


def try_out(client: str, course: Course, python: str) -> Row:
    """Both tests of one client: run twice; and killed half way, then run again."""
    call = command(client, python, course.server.url)
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        write_rows(folder, course.rows)
        first, again = finish(course, folder, call), finish(course, folder, call)
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        write_rows(folder, course.rows)
        half = course.server.seen() + course.rows // 2
        killed = measure(course, folder, call, lambda: course.server.seen() >= half)
        rest = finish(course, folder, call)
    return figures(course, first, again, killed, rest)


def figures(course: Course, first: Ended, again: Ended, killed: Ended, rest: Ended) -> Row:
    """The figures of one round. Requests before those for the rows, as Curator's one, are not part of the asking."""
    moments = sorted(first.moments[-course.rows :])
    asking = moments[-1] - moments[0] + DELAY
    return {
        "seconds": first.seconds,
        "asking_seconds": asking,
        "per_second": course.rows / asking,
        "of_ideal": course.ideal / asking,
        "of_ideal_whole": course.ideal / first.seconds,
        "cpu_ms": first.cpu / course.rows * 1000,
        "peak_mb": first.peak_mb,
        "requests": len(first.moments),
        "again_seconds": again.seconds,
        "again_requests": len(again.moments),
        "killed_after": len(killed.moments),
        "rest_seconds": rest.seconds,
        "rest_requests": len(rest.moments),
        "paid_for": (len(killed.moments) + len(rest.moments)) / course.rows,
        "others": first.others,
    }


def median_row(rounds: Sequence[Row]) -> Row:
    """The median of every figure; a client that failed in any round failed."""
    for row in rounds:
        if "failed" in row:
            return row
    return {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}


def goals(course: Course, table: dict[str, Row]) -> list[Row]:
    """The goals and the measured values."""
    own, other = table.get("groundswell", {}), table.get("openai", {})
    times = None if not own.get("seconds") or not other.get("seconds") else other["seconds"] / own["seconds"]
    found: list[tuple[str, float, float | None, bool]] = [
        ("first: times as fast as the script", 3.0, times, True),
        ("again: requests", 0.0, own.get("again_requests"), False),
        ("killed: requests over rows", 1 + IN_FLIGHT / course.rows, own.get("paid_for"), False),
    ]
    return [
        {"goal": goal, "wanted": wanted, "found": value, "reached": reached(value, wanted, least)}
        for goal, wanted, value, least in found
    ]


def reached(value: float | None, wanted: float, least: bool) -> bool | None:
    """Whether a figure reaches its goal."""
    return None if value is None else value >= wanted if least else value <= wanted


def print_table(course: Course, table: dict[str, Row], versions: dict[str, str]) -> None:
    """The table, and what each client keeps."""
    heads = ("seconds", "rows/s", "of ideal", "CPU ms/row", "peak MB", "again s", "requests", "killed: x", "others")
    print(f"\n{course.rows:,} rows, {IN_FLIGHT} at once; ideal {course.ideal:.2f} s, {IN_FLIGHT / DELAY:,.0f} rows/s")
    print(f"  {'client':24}" + "".join(f"{head:>11}" for head in heads))
    for client, row in table.items():
        name = f"{client} {versions.get(client, '')}"
        if "failed" in row:
            print(f"  {name:24}{row['failed']}")
            continue
        print(
            f"  {name:24}{row['seconds']:11.2f}{row['per_second']:11,.0f}{row['of_ideal']:11.2f}{row['cpu_ms']:11.2f}"
            f"{row['peak_mb']:11.0f}{row['again_seconds']:11.2f}{row['again_requests']:11,.0f}{row['paid_for']:11.2f}"
            f"{row['others']:11.2f}"
        )
    print("\nstored: " + "; ".join(f"{client}: {CLIENTS[client].keeps}" for client in table))


def print_goals(listed: Sequence[Row]) -> None:
    """Each goal, reached or not."""
    print()
    for goal in listed:
        mark = {True: "reached", False: "not reached", None: "not measured"}[goal["reached"]]
        found = "-" if goal["found"] is None else f"{goal['found']:.3f}"
        print(f"{goal['goal']:40} goal {goal['wanted']:6.3f}   found {found:>6}   {mark}")


def compile_sources() -> None:
    """Packages are compiled when they are installed; so is this project, however it is installed here."""
    found = importlib.util.find_spec("groundswell")
    for folder in [] if found is None else found.submodule_search_locations or []:
        compileall.compile_dir(folder, quiet=2)


def compare(course: Course, clients: Sequence[str], rounds: int) -> None:
    """Run all rounds, then compute the results."""
    compile_sources()
    found = {client: find(client) for client in clients}
    tried: dict[str, list[Row]] = {client: [] for client in clients}
    for number in range(rounds):
        for client in clients:
            there = found[client]
            try:
                row = {"failed": "not installed: make bench-peers"}
                if there is not None:
                    row = try_out(client, course, there.python)
            except Failed as error:
                row = {"failed": str(error)}
            tried[client].append(row)
            said = row.get("failed") or f"{row['seconds']:.2f} s, {row['cpu_ms']:.2f} ms CPU per row"
            print(f"round {number + 1}, {client}: {said}", file=sys.stderr)
    table = {client: median_row(listed) for client, listed in tried.items()}
    versions = {client: there.version for client, there in found.items() if there is not None}
    print_table(course, table, versions)
    reachable = goals(course, table)
    print_goals(reachable)
    OUT.mkdir(exist_ok=True)
    told: Row = {"rows": course.rows, "in_flight": IN_FLIGHT, "delay": DELAY, "server": course.server.name}
    told |= {"versions": versions, "medians": table, "rounds": tried, "goals": reachable}
    (OUT / "map.json").write_text(json.dumps(told, indent=1) + "\n")


def main() -> None:
    """Compare the clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000, help="number of rows of the table (2,000)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; medians are reported (3)")
    parser.add_argument("--longest", type=float, default=180, help="seconds after which a command is stopped (180)")
    parser.add_argument("--only", nargs="+", choices=CLIENTS, metavar="CLIENT", help=", ".join(CLIENTS))
    options = parser.parse_args()
    if not has_nginx():
        sys.exit("nginx with its echo module is not installed (Debian: nginx, libnginx-mod-http-echo)")
    with nginx(logged=True) as server:
        compare(Course(server, options.rows, options.longest), options.only or tuple(CLIENTS), options.rounds)


if __name__ == "__main__":
    main()
