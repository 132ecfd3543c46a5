"""`run`, `runs`, `batches`, `cache` and `--estimate`: the objects that they print and the files that they export."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import RunOptions, RunStopped
from tests.pins.conftest import CommandLine
from tests.pins.expectations import check
from tests.pins.experiment import Settings, driver
from tests.pins.folders import content
from tests.pins.product import Threaded
from tests.pins.shapes import shape

DRIVER = f"{Path(__file__).with_name('experiment.py')}:driver"
FORMATS = ("jsonl", "json", "csv", "parquet")
MAPPINGS = ("models", "settings", "runs[].models")


def test_a_run_and_what_can_be_done_with_it(cli: CommandLine) -> None:
    run = ("run", DRIVER, "--set", "faulty=[1]")
    found = {
        "run": cli.json(*run, "--name", "r", status=3),
        "runs-list": cli.json("runs", "list"),
        "runs-show": cli.json("runs", "show", "r"),
        "runs-resume": cli.json("runs", "resume", "r", status=3),
        "runs-verify": cli.json("runs", "verify", "r"),
        "runs-export": cli.json("runs", "export", "r", "-o", "all.csv"),
        "runs-fork": cli.json("runs", "fork", "r", "--name", "fork", "--set", "faulty=[]"),
        "runs-cancel": cli.json("runs", "cancel", "r"),
        "runs-delete": cli.json("runs", "delete", "fork", "--yes"),
        "run-failed": cli.json("run", DRIVER, "--set", "faulty=[0,1,2]", status=1),
        "run-limited": cli.json("run", DRIVER, "--max-calls", "3", status=3),
    }
    check({f"json/{name}.txt": shape(value, MAPPINGS) for name, value in found.items()})


def test_exports_in_every_format_and_the_trials_of_a_run(cli: CommandLine) -> None:
    cli("run", DRIVER, "--set", "faulty=[1]", "--name", "r", status=3)
    for ending in FORMATS:
        cli("runs", "export", "r", "--format", ending, "-o", f"all.{ending}")
    rows = {row["status"]: row for row in _rows(Path("all.json"))}
    trials = {status: cli.json("runs", "show", "r", "--trial", row["key"]) for status, row in rows.items()}
    assert set(trials) == {"usable", "missing"}
    files = {f"folders/export-{ending}.txt": content(Path(f"all.{ending}")) for ending in FORMATS}
    check({**files, **{f"json/runs-show-trial-{name}.txt": shape(trial) for name, trial in trials.items()}})


def _rows(path: Path) -> Any:
    return json.loads(path.read_bytes())


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run", DRIVER, "--set", "model=openai/gpt-4o-mini"], id="run"),
        pytest.param(["ask", "Hello", "-m", "openai/gpt-4o-mini"], id="ask"),
        pytest.param(["map", "t.csv", "-p", "{word}", "-m", "openai/gpt-4o-mini"], id="map"),
        pytest.param(["play", "-m", "openai/gpt-4o-mini", "-n", "4", "--messages", "2"], id="play"),
        pytest.param(["evolve", "-m", "openai/gpt-4o-mini", "--population-size", "3"], id="evolve"),
    ],
)
def test_estimates(cli: CommandLine, words: list[str]) -> None:
    Path("t.csv").write_text("word\nhello\n")
    check({f"json/estimate-{words[0]}.txt": shape(cli.json(*words, "--estimate"))})


def test_the_cache(cli: CommandLine, emulator: Threaded) -> None:
    cli("ask", "Hello", "-m", "openai/gpt-4o-mini")
    stats, cleared = cli.json("cache", "stats"), cli.json("cache", "clear", "--yes")
    assert cleared["removed"] == stats["replies"] == 1
    check({"json/cache-stats.txt": shape(stats), "json/cache-clear.txt": shape(cleared)})


def test_batches_in_flight(cli: CommandLine, emulator: Threaded) -> None:
    run = leave_batches_in_flight()
    listed = cli.json("batches", "list")
    (batch,) = [row["batch"] for row in listed["batches"]]
    found = {
        "batches-list": listed,
        "batches-list-all": cli.json("batches", "list", "--all"),
        "batches-list-offline": cli.json("batches", "list", "--offline"),
        "batches-show": cli.json("batches", "show", batch),
        "batches-adopt": cli.json("batches", "adopt", run),
        "batches-cancel": cli.json("batches", "cancel", batch, "--yes"),
    }
    check({f"json/{name}.txt": shape(value, ("accounts_not_listed",)) for name, value in found.items()})


def leave_batches_in_flight() -> str:
    """Begin a run over the batch API, and stop it once the provider has the batch: the id of the run."""

    def stop_when_sent(event: object) -> None:
        if type(event).__name__ == "BatchSent":
            for run in engine.runs:
                run.stop("interrupted", "interrupted")

    engine = groundswell.open("runs.db", options=RunOptions(via="batch"), listeners=[stop_when_sent])

    async def main() -> str:
        async with engine:
            with suppress(RunStopped):
                await engine.drive(driver, Settings(model="openai/gpt-4o-mini"), name="left")
            assert engine.latest is not None
            return engine.latest

    return asyncio.run(main())
