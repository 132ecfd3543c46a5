"""The dashboard: how fast its pages load, and what viewers cost a run. `python bench/dashboard.py`, about five minutes.

  pages    a store with 1,000 runs, one of which has 10,000 trials. Chromium opens every page several times. The time is
           from the start of the navigation to the `load` event, and to the first paint with content. Goal: 1 second.
  viewers  a server runs 10,000 trials of a program that does nothing but two requests to a model inside the server,
           several times: by itself, and with five viewers of the live page. The CPU time of the server is divided by
           the number of requests. Runs with and without viewers alternate, and each pair gives a ratio. On a machine
           that others use too, equal runs differ by half, and always upwards, so the ratio of the cheapest run with
           viewers to the cheapest without is what counts (as in timeit). Goal: 1.05.

`--part pages` or `--part viewers` measures one of them, `--quick` measures less. Results: bench/out/dashboard.json.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, sync_playwright

from groundswell.cli.stored import opened
from live import cpu_of

OUT = Path(__file__).parent / "out"
VIEWERS = 5
LOADS = 5
TIMES = """() => {
  const [navigation] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return {load: navigation.loadEventEnd, paint: paint ? paint.startTime : null};
}"""
WATCH = """
import sys, urllib.request
for line in urllib.request.urlopen(sys.argv[1]):
    if line.startswith(b"event: end"):
        break
"""


EXPERIMENT = """
import msgspec
from groundswell import Command, Experiment, Run, Trial, program


class Twice(msgspec.Struct, frozen=True):
    \"\"\"Two requests per trial.\"\"\"

    trials: int = 100


@program("viewed/twice", version=1)
async def twice(trial: Trial, spec: int) -> int:
    said = [(await trial.ask("emulated/echo", f"{spec} {number}")).text for number in range(2)]
    return sum(map(len, said))


async def drive(run: Run, settings: Twice) -> int:
    run.expected = settings.trials
    return sum([1 async for _ in run.map(twice, range(settings.trials))])


experiment = Experiment("viewed", [Command("twice", Twice, drivers=[drive])])
"""


@contextmanager
def server(store: Path, *more: str) -> Iterator[tuple[str, int]]:
    """A server on this store: its address and process id."""
    options = ["--port", "0", "--store", str(store), "-m", "emulated/keeper", *more]
    command = [sys.executable, "-m", "groundswell", "serve", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if " listens on " in line:
                yield line.split(" listens on ")[1].split()[0], process.pid
                return
        raise SystemExit("the server did not start")
    finally:
        process.terminate()
        process.wait()


def started(url: str, command: str = "secret-game/play", **options: Any) -> str:
    """Start a run, and return its id."""
    answer = httpx.post(f"{url}/api/experiments/{command}", json=options, timeout=60)
    answer.raise_for_status()
    found: str = answer.json()["data"]["run_id"]
    return found


def ended(url: str, run: str) -> dict[str, Any]:
    """The run, once it has ended."""
    while True:
        found: dict[str, Any] = httpx.get(f"{url}/api/runs/{run}", timeout=60).json()["data"]
        if found["status"] not in ("pending", "running"):
            return found
        time.sleep(0.2)


def filled(store: Path, runs: int, trials: int) -> str:
    """A store with many runs, and one with many trials: the id of that one."""
    with server(store) as (url, _):
        run = started(url, interactions=trials, messages=4, models=["emulated/leaker", "emulated/keeper"], name="large")
        if (status := ended(url, run)["status"]) != "completed":
            raise SystemExit(f"the large run is {status}")
    with opened(str(store)) as held:
        record = held.runs.get(run)
        for number in range(1, runs):
            made = held.runs.create(f"run {number}", number, driver=record.driver, settings=record.settings)
            held.runs.change(made, status="completed", counters=record.counters)
    return run


def pages(folder: Path, *, quick: bool) -> dict[str, Any]:
    """How long every page takes to load."""
    store = folder / "pages.db"
    run = filled(store, 100 if quick else 1_000, 500 if quick else 10_000)
    found: dict[str, Any] = {}
    chromium = shutil.which("chromium")
    with server(store) as (url, _), sync_playwright() as playwright:
        trial = httpx.get(f"{url}/api/runs/{run}/trials?limit=1").json()["data"][0]["key"]
        other = httpx.get(f"{url}/api/runs?limit=1").json()["data"][0]["run_id"]
        paths = {
            "runs": "/runs",
            "runs, searched": "/runs?q=run+99",
            "one run": f"/runs/{run}",
            "results": f"/runs/{run}/results",
            "trials": f"/runs/{run}/trials",
            "one trial": f"/runs/{run}/trials/{trial}",
            "start": "/start",
            "start a game": "/start/secret-game/play",
            "compare": f"/compare?run={run}&run={other}",
            "entities": "/entities",
            "labels": "/labels",
            "batches": "/batches",
            "models": "/models",
            "cache": "/cache",
        }
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, path in paths.items():
            times = [loaded(browser, f"{url}{path}") for _ in range(2 if quick else LOADS)]
            found[name] = {
                "first_load_ms": round(times[0]["load"]),
                "load_ms": round(statistics.median(each["load"] for each in times)),
                "paint_ms": round(statistics.median(each["paint"] or each["load"] for each in times)),
            }
            shown = found[name]
            print(
                f"  {name:16} load {shown['load_ms']:5} ms (first time {shown['first_load_ms']:5} ms), "
                f"first paint {shown['paint_ms']:5} ms",
                flush=True,
            )
        browser.close()
    return found


def loaded(browser: Browser, address: str) -> dict[str, float]:
    """Open a page without a browser cache, and return its times."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    answer = tab.goto(address, wait_until="load")
    if answer is None or answer.status != 200:
        raise SystemExit(f"{address}: {answer and answer.status}")
    found: dict[str, float] = tab.evaluate(TIMES)
    context.close()
    return found


def viewers(folder: Path, *, quick: bool) -> dict[str, Any]:
    """The CPU time of a server per request, with and without viewers."""
    trials, repeats = (500, 2) if quick else (10_000, 30)
    own = folder / "viewed.py"
    own.write_text(EXPERIMENT)
    ratios, plain, viewed = [], [], []
    with server(folder / "viewers.db", "--experiment", str(own)) as (url, pid):
        measure(url, pid, trials, 0, 0)  # warm up
        for number in range(repeats):
            order = (0, VIEWERS) if number % 2 else (VIEWERS, 0)
            used = {many: measure(url, pid, trials, many, number + 1) for many in order}
            ratios.append(used[VIEWERS] / used[0])
            plain.append(used[0])
            viewed.append(used[VIEWERS])
            print(
                f"  {1e6 * used[0]:6.0f} us per request alone, {1e6 * used[VIEWERS]:6.0f} us with {VIEWERS} viewers, "
                f"ratio {ratios[-1]:.3f}",
                flush=True,
            )
    ratio, (low, high) = statistics.median(ratios), middle(ratios)
    least = min(viewed) / min(plain)
    print(f"  median ratio {ratio:.3f}, with an interval of {low:.3f} to {high:.3f}", flush=True)
    print(f"  ratio of the least disturbed runs {least:.3f} (goal: at most 1.05)", flush=True)
    return {
        "us_per_request": round(1e6 * min(plain)),
        "ratios": ratios,
        "median_ratio": ratio,
        "interval": [low, high],
        "ratio": least,
    }


def middle(values: list[float]) -> tuple[float, float]:
    """An interval for the median that holds in at least 95% of the cases, from the order of the values alone."""
    ordered, many = sorted(values), len(values)
    cut = 0
    while cut + 1 < many / 2 and 2 * sum(math.comb(many, each) for each in range(cut + 1)) / 2**many <= 0.05:
        cut += 1
    first = max(0, cut - 1)
    return ordered[first], ordered[many - 1 - first]


def measure(url: str, pid: int, trials: int, many: int, seed: int) -> float:
    """The CPU seconds of the server per request, for a run with so many viewers."""
    before = cpu_of(pid)
    run = started(url, "viewed/twice", trials=trials, seed=1000 * many + seed)
    watching = [subprocess.Popen([sys.executable, "-c", WATCH, f"{url}/runs/{run}/stream"]) for _ in range(many)]
    found = ended(url, run)
    for each in watching:
        each.wait(timeout=30)
    return (cpu_of(pid) - before) / float(found["asks"]["sent"])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--part", choices=["pages", "viewers"])
    arguments.add_argument("--quick", action="store_true")
    chosen = arguments.parse_args()
    parts = {"pages": pages, "viewers": viewers}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, part in parts.items():
            if chosen.part in (None, name):
                print(f"{name}:", flush=True)
                found[name] = part(Path(folder), quick=chosen.quick)
    OUT.mkdir(exist_ok=True)
    (OUT / "dashboard.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
