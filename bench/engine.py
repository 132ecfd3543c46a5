"""Overhead of the engine: `python bench/engine.py` (full size), `--quick` (a tenth of the size).

Every figure is a ratio, or is compared with one, from the same run on the same machine. Each measurement runs in its
own process, so peak memory is meaningful. Measured:

  ask       CPU per journalled request with a scripted transport that answers at once, compared with the same programs
            on bare asyncio without a journal, and with raw SQLite inserts of the same rows
  commit    rows per second through the group-committing journal, as a share of raw inserts of the same rows
  growth    CPU per request at 1,000,000 trials relative to 10,000 trials; peak memory
  verify    requests per second when every trial is replayed over its journal and every request and result is compared
  rescore   the same through a driver, as `runs resume --accept-changes` does
  resume    seconds from opening a store with 3 million requests until all of 10,000 unfinished trials send a request
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

import groundswell
from groundswell import Reply, Trial, Usage, assistant, program, system, user
from groundswell.program.request import Request
from groundswell.program.traps import Ask
from groundswell.store.journal import INSERTS
from groundswell.store.open import open_database
from groundswell.store.writer import Writer

OUT = Path(__file__).parent / "out"
REPLY = Reply("That is an interesting thought. Let me answer with a question of my own.", Usage(120, 18))
TURNS = 3


@program("bench/talk")
async def talk(trial: Trial, spec: int) -> int:
    """A conversation of three requests with a growing history."""
    said = [system(f"You are player {spec} in a game of secrets. Keep yours, and get the other's.")]
    for turn in range(TURNS):
        said.append(user(f"Turn {turn}: what do you say?"))
        reply = await trial.ask("scripted/at_once", said, max_tokens=200)
        said.append(assistant(reply.text))
    return len(said)


def answer(_: Request) -> Reply:
    """The model: answers at once."""
    return REPLY


def tune() -> None:
    """Configure the garbage collector as the command line does before a run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


async def run_trials(store: Path, trials: int) -> dict[str, float]:
    """A fresh run."""
    async with groundswell.open(store, script=answer) as engine:
        run = engine.run("bench", seed=7)
        cpu, wall = time.process_time(), time.perf_counter()
        count = 0
        async for outcome in run.map(talk, range(trials)):
            count += outcome.ok
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert count == trials == run.counters.usable
    asks = trials * TURNS
    return {"cpu_us": cpu / asks * 1e6, "wall_us": wall / asks * 1e6, "asks": asks, "waves": run.counters.waves}


async def run_bare(_: Path, trials: int) -> dict[str, float]:
    """The same programs and calls on bare asyncio: one task per trial, 328 at once, nothing written."""

    async def one(number: int) -> int:
        coroutine = talk(Trial(str(number), 7), number)
        reply: Reply | None = None
        while True:
            try:
                trap = coroutine.send(reply)
            except StopIteration as stop:
                return int(stop.value)
            assert isinstance(trap, Ask)
            await asyncio.sleep(0)
            reply = answer(trap.request)

    cpu = time.process_time()
    for start in range(0, trials, 328):
        await asyncio.gather(*(one(number) for number in range(start, min(start + 328, trials))))
    return {"cpu_us": (time.process_time() - cpu) / (trials * TURNS) * 1e6}


GROUP = 300
COLUMNS = {table: ", ".join(INSERTS[table].columns) for table in ("trials", "asks", "outcomes", "waves")}


def load_rows(store: Path) -> dict[str, list[Any]]:
    """Every row that a run wrote, table by table."""
    with sqlite3.connect(store) as reading:
        return {table: reading.execute(f"SELECT {names} FROM {table}").fetchall() for table, names in COLUMNS.items()}


async def raw_inserts(store: Path, _: int) -> dict[str, float]:
    """Insert the rows of a finished run with sqlite3: one synced commit per 300 rows of each table."""
    rows = load_rows(store)
    connection = open_database(store.with_name("raw.db")).engine.connect()
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    statements = {
        table: f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * (names.count(',') + 1))})"
        for table, names in COLUMNS.items()
    }
    total = sum(map(len, rows.values()))
    wall, cpu = time.perf_counter(), time.process_time()
    rounds = len(rows["asks"]) // GROUP + 1
    for number in range(rounds):
        driver.execute("BEGIN IMMEDIATE")
        for table, listed in rows.items():
            driver.executemany(statements[table], _share(listed, number, rounds))
        driver.execute("COMMIT")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    connection.close()
    return {"rows_per_s": total / wall, "cpu_us_per_ask": cpu / len(rows["asks"]) * 1e6}


async def group_commit(store: Path, _: int) -> dict[str, float]:
    """Write the same rows through the journal. Each group waits until the one before is durable."""
    rows = load_rows(store)
    writer = Writer(open_database(store.with_name("group.db")), INSERTS)
    total = sum(map(len, rows.values()))
    rounds = len(rows["asks"]) // GROUP + 1
    wall = time.perf_counter()
    told = 0

    def durable(_row: Any) -> None:
        nonlocal told
        told += 1

    for number in range(rounds):
        batch = writer.batch()
        for table, listed in rows.items():
            flat = batch.rows[table]
            for row in _share(listed, number, rounds):
                flat.extend(row)
                batch.after.append((durable, (row,)))
        await writer.flush()
    wall = time.perf_counter() - wall
    await writer.close()
    assert told == total
    return {"rows_per_s": total / wall}


def _share(listed: list[Any], number: int, rounds: int) -> list[Any]:
    return listed[len(listed) * number // rounds : len(listed) * (number + 1) // rounds]


async def rescore(store: Path, trials: int) -> dict[str, float]:
    """Run every trial again through a driver, as after a change of scoring."""
    talk.source = "changed"
    sent = 0

    def refuse(_: Request) -> Reply:
        nonlocal sent
        sent += 1
        return REPLY

    async with groundswell.open(store, script=refuse) as engine:
        run = engine.run("bench", seed=7, accept_changes=True)
        wall = time.perf_counter()
        async for outcome in run.map(talk, range(trials)):
            assert outcome.ok
        wall = time.perf_counter() - wall
    assert sent == 0
    assert run.counters.replayed == trials * TURNS
    return {"asks_per_s": trials * TURNS / wall}


async def verify(store: Path, trials: int) -> dict[str, float]:
    """Replay every trial over its journal, and compare every request and result."""
    async with groundswell.open(store, script=answer) as engine:
        wall = time.perf_counter()
        found = await engine.verify("bench")
        wall = time.perf_counter() - wall
    assert found.ok
    assert found.same == trials
    return {"asks_per_s": found.asks / wall}


async def resume(store: Path, trials: int) -> dict[str, float]:
    """Reopen a run with 10,000 unfinished trials, and wait until all of them send a request."""
    lost = min(10_000, trials // 2)
    with sqlite3.connect(store) as damage:
        first = damage.execute("SELECT min(id) FROM trials").fetchone()[0]
        step = trials // lost
        damage.execute("CREATE TEMP TABLE lost AS SELECT id FROM trials WHERE (id - ?) % ? = 0", (first, step))
        unfinished = damage.execute("SELECT count(*) FROM lost").fetchone()[0]
        damage.execute("DELETE FROM outcomes WHERE trial IN (SELECT id FROM lost)")
        damage.execute("DELETE FROM asks WHERE trial IN (SELECT id FROM lost) AND path = '2'")
        damage.execute(
            "UPDATE runs SET status = 'running', counters = json_set(counters, '$.usable', ?)", (trials - unfinished,)
        )
    damage.close()
    asked = 0
    done: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def count(_: Request) -> Reply:
        nonlocal asked
        asked += 1
        if asked == unfinished:
            done.set_result(time.perf_counter())
        return REPLY

    start = time.perf_counter()
    async with groundswell.open(store, script=count) as engine:
        run = engine.run("bench", seed=7)

        async def drive() -> int:
            return sum([outcome.ok async for outcome in run.map(talk, range(trials))])

        driver = asyncio.ensure_future(drive())
        asking = await done - start
        assert await driver == trials
        whole = time.perf_counter() - start
    return {"asking_again_s": asking, "driver_caught_up_s": whole, "unfinished": unfinished}


STEPS: dict[str, Callable[[Path, int], Any]] = {
    "run": run_trials,
    "bare": run_bare,
    "raw": raw_inserts,
    "group": group_commit,
    "verify": verify,
    "rescore": rescore,
    "resume": resume,
}


def measure(step: str, store: Path, trials: int) -> dict[str, float]:
    """Run one step in a separate process."""
    done = subprocess.run(
        [sys.executable, __file__, "--step", step, "--store", str(store), "--trials", str(trials)],
        check=True,
        stdout=subprocess.PIPE,
    )
    result: dict[str, float] = json.loads(done.stdout)
    print(f"  {step:7} {trials:>9,} trials  " + "  ".join(f"{key} {value:,.1f}" for key, value in result.items()))
    return result


def main() -> None:
    """Measure everything and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100,000 trials instead of 1,000,000")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--trials", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        tune()
        result = uvloop.run(STEPS[options.step](options.store, options.trials))
        result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(result))
        return
    small, large = 10_000, 100_000 if options.quick else 1_000_000
    with tempfile.TemporaryDirectory(dir=".") as folder:
        report(Path(folder), small, large)


def report(folder: Path, small: int, large: int) -> None:
    """Run all steps, then compute the ratios."""
    few, many = folder / "few.db", folder / "many.db"
    runs = []
    for _ in range(3):
        few.unlink(missing_ok=True)
        runs.append(measure("run", few, small))
    first = sorted(runs, key=lambda each: each["cpu_us"])[1]
    bare, raw, group = (measure(step, few, small) for step in ("bare", "raw", "group"))
    large_run = measure("run", many, large)
    shutil.copy(few, folder / "copy.db")
    again = measure("verify", folder / "copy.db", small)
    scored = measure("rescore", folder / "copy.db", small)
    resumed = measure("resume", many, large)
    figures = {
        "CPU per ask, microseconds": round(first["cpu_us"], 1),
        "  over bare asyncio plus raw inserts": round(first["cpu_us"] / (bare["cpu_us"] + raw["cpu_us_per_ask"]), 2),
        "group commit over raw inserts (goal 0.6)": round(group["rows_per_s"] / raw["rows_per_s"], 2),
        f"CPU per ask at {large:,} trials over {small:,} (goal 1.1)": round(large_run["cpu_us"] / first["cpu_us"], 2),
        "peak memory, MB (goal 200)": round(large_run["peak_mb"]),
        "verified replay, asks per second (goal 60,000)": round(again["asks_per_s"]),
        "  the same through a driver that scores anew": round(scored["asks_per_s"]),
        f"seconds until {resumed['unfinished']:,.0f} unfinished trials ask again (goal 2)": round(
            resumed["asking_again_s"], 2
        ),
    }
    print()
    for name, value in figures.items():
        print(f"{name:64} {value:>10,}")
    OUT.mkdir(exist_ok=True)
    (OUT / "engine.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
