"""Cost of the secret game: `python bench/game.py` (two or three minutes), `--quick` (a tenth of the size).

Measures `groundswell play` from outside, as a user calls it, with 6 messages per interaction; then the parts of the
work, on the interactions in its store.

  http       against the emulator over HTTP, which runs in this process and is not measured
  emulated   with `emulated/` models, which answer within the measured process

The first table has one row per command:

  seconds         of the whole command, including imports, figures and report
  playing         seconds of the run alone, and interactions per second
  CPU ms/message  of the whole command; the row `1` shows the fixed cost of every command
  peak MB         peak memory

The second table has the parts: seconds for all interactions of the largest run, and milliseconds per interaction.
`detectors` is the detection in `duel`; `tally` and `figures` make the analysis; `report` writes the page and the
tables. Then follow the slowest calls within the detectors, from a profile. `others` is the number of cores that were
busy with other work. Results are written to bench/out/game.json.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import groundswell
from emulator import memory_of
from groundswell.cli.stored import opened
from groundswell.emulator.server import Threaded, running
from groundswell.engine.summary import summarise
from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.experiment import GameResults
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.played import Duel, Played
from groundswell.experiments.secret_game.scoring import score
from groundswell.experiments.secret_game.tally import Tally
from groundswell.store.journal import Store
from live import cpu_of_all

OUT = Path(__file__).parent / "out"
MESSAGES, IN_FLIGHT = 6, 100
MODELS = {"http": "openai/leaker:0.2,anthropic/trader", "emulated": "emulated/leaker:0.2,emulated/trader"}
POLL = 0.02
SHOWN = 12
DETECTORS = "detectors"

Row = dict[str, Any]
Interactions = Sequence[tuple[Duel, Played]]


class Course(NamedTuple):
    """The folder of the commands, and the emulator that they use."""

    folder: Path
    server: Threaded

    def store(self, way: str, interactions: int) -> str:
        """The store of one command."""
        return str(self.folder / f"{way}-{interactions}.db")

    @property
    def variables(self) -> dict[str, str]:
        """The emulator is on this machine, and reached without a proxy."""
        there = {"OPENAI_BASE_URL": f"{self.server.url}/v1", "ANTHROPIC_BASE_URL": self.server.url}
        keys = {"OPENAI_API_KEY": "any", "ANTHROPIC_API_KEY": "any"}
        same = {"PYTHONPATH": str(Path(groundswell.__file__).parents[1])}
        return os.environ | there | keys | same | {"NO_PROXY": "*", "no_proxy": "*"}


def play(course: Course, way: str, interactions: int) -> Row:
    """One command from its start to its end."""
    count = ["-n", str(interactions), "--messages", str(MESSAGES), "--max-concurrent", str(IN_FLIGHT)]
    kept = ["--store", course.store(way, interactions), "--out", str(course.folder / f"{way}-{interactions}")]
    call = [sys.executable, "-m", "groundswell", "play", "-m", MODELS[way], *count, *kept, "--json"]
    course.server.reset()
    busy, own, start, peak = cpu_of_all(), time.process_time(), time.perf_counter(), 0.0
    said = course.folder / "said.txt"
    with said.open("w") as out:
        process = subprocess.Popen(call, env=course.variables, cwd=course.folder, stdout=out)
        ended, used = 0, None
        while not ended:
            peak = peak_so_far(process.pid, peak)
            time.sleep(POLL)
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or used is None:
        sys.exit(f"{way}, {interactions} interactions: status {process.returncode}")
    seconds = time.perf_counter() - start
    cpu = used.ru_utime + used.ru_stime
    summary = json.loads(said.read_text())
    others = max(0.0, cpu_of_all() - busy - cpu - (time.process_time() - own)) / seconds
    return {
        "way": way,
        "interactions": interactions,
        "seconds": seconds,
        "playing": summary["seconds"],
        "per_second": interactions / summary["seconds"],
        "cpu": cpu,
        "cpu_ms": cpu / interactions / MESSAGES * 1000,
        "peak_mb": peak,
        "others": others,
    }


def peak_so_far(pid: int, before: float) -> float:
    """The peak memory of a process so far; `before` if it has just ended."""
    try:
        return max(before, memory_of(pid))
    except (OSError, IndexError):
        return before


class Timed:
    """Call a function once, and measure its time."""

    def __init__(self, work: Callable[[], Any]) -> None:
        start = time.perf_counter()
        self.result = work()
        self.seconds = time.perf_counter() - start


def take_apart(course: Course, way: str, interactions: int) -> tuple[list[Row], Interactions]:
    """Measure the parts of the work on the interactions in a store, and return the interactions."""
    store, tally = course.store(way, interactions), Tally("normalised", Points())
    with opened(store) as held:
        (record,) = held.runs.list()
        summary = summarise(record)
        reading = Timed(lambda: [(row.spec(Duel), row.result(Played)) for row in held.results(record)])
    found: Interactions = reading.result

    def report() -> None:
        held = Store(store)
        GameResults(course.folder / "report").write(held, [held.runs.get(summary.run_id)])

    parts = {
        "reading the store": reading,
        "detectors": Timed(
            lambda: [score([seat.secret for seat in duel.seats], played.lines) for duel, played in found]
        ),
        "tally": Timed(lambda: [tally.add(duel, played) for duel, played in found]),
        "import of scipy": Timed(lambda: importlib.import_module("scipy.stats")),
        "figures": Timed(lambda: all_figures(tally)),
        "import of matplotlib, polars": Timed(import_libraries),
        "report": Timed(report),
    }
    rows: list[Row] = [{"part": name, "seconds": part.seconds} for name, part in parts.items()]
    return [row | {"each_ms": row["seconds"] / interactions * 1000} for row in rows], found


def import_libraries() -> None:
    """Import what draws and writes tables."""
    for name in ("matplotlib.backends.backend_svg", "matplotlib.figure", "polars"):
        importlib.import_module(name)


def all_figures(tally: Tally) -> None:
    """Everything that an analysis has, in its order."""
    tally.close()
    figures.overall(tally)
    figures.models(tally)
    figures.pairs(tally)
    figures.tiers(tally)
    figures.comparisons(tally)
    figures.seats(tally)
    figures.ratings(tally, 0)
    figures.survival_p(tally)


def profile_detectors(found: Interactions) -> list[Row]:
    """The functions of the detectors that take longest, with what they call."""
    profile = cProfile.Profile()
    profile.runcall(lambda: [score([seat.secret for seat in duel.seats], played.lines) for duel, played in found])
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    whole = max(spent for _, _, _, spent, _ in stats.values())
    rows: list[Row] = [
        {"call": f"{Path(file).stem}.{name}", "share": spent / whole, "calls": calls / len(found)}
        for (file, _, name), (_, calls, _, spent, _) in stats.items()
        if DETECTORS in file
    ]
    return sorted(rows, key=lambda row: -row["share"])[:SHOWN]


def print_commands(rows: Sequence[Row]) -> None:
    """The first table."""
    heads = ("interactions", "seconds", "playing", "inter./s", "CPU s", "CPU ms/message", "peak MB", "others")
    print(f"\ngroundswell play, {MESSAGES} messages each, at most {IN_FLIGHT} requests in flight")
    print(f"  {'way':10}" + "".join(f"{head:>15}" for head in heads))
    for row in rows:
        print(
            f"  {row['way']:10}{row['interactions']:15,}{row['seconds']:15.2f}{row['playing']:15.2f}"
            f"{row['per_second']:15,.0f}{row['cpu']:15.2f}{row['cpu_ms']:15.3f}{row['peak_mb']:15.0f}{row['others']:15.2f}"
        )


def print_parts(interactions: int, parts: Sequence[Row], cpu: float, calls: Sequence[Row]) -> None:
    """The second table, and the profile."""
    print(f"\nthe parts, of {interactions:,} interactions")
    for part in parts:
        share = f"{part['seconds'] / cpu:8.1%} of the CPU of the command"
        print(f"  {part['part']:30}{part['seconds']:8.2f} s{part['each_ms']:10.3f} ms each{share}")
    print("\nprofile of the detectors: share of their time, calls per interaction")
    for call in calls:
        print(f"  {call['call']:40}{call['share']:8.1%}{call['calls']:10.1f}")


def main() -> None:
    """Play, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    scale = 10 if parser.parse_args().quick else 1
    courses = [("http", 1), ("emulated", 2_000 // scale), ("http", 2_000 // scale)]
    courses += [("http", 1_000 // scale), ("http", 10_000 // scale)]
    with tempfile.TemporaryDirectory() as name, running() as server:
        course = Course(Path(name), server)
        rows = []
        for way, interactions in courses:
            rows.append(play(course, way, interactions))
            print(f"{way}, {interactions:,}: {rows[-1]['seconds']:.1f} s", file=sys.stderr)
        parts, found = take_apart(course, "http", courses[-1][1])
    calls = profile_detectors(found[:1_000])
    print_commands(rows)
    print_parts(courses[-1][1], parts, rows[-1]["cpu"], calls)
    OUT.mkdir(exist_ok=True)
    told = {"messages": MESSAGES, "in_flight": IN_FLIGHT, "commands": rows, "parts": parts, "detectors": calls}
    (OUT / "game.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
