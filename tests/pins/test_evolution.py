"""`evolve`: the objects that its commands print and the folder that it writes."""

from __future__ import annotations

from pathlib import Path

from tests.pins.conftest import CommandLine
from tests.pins.expectations import check
from tests.pins.folders import contents
from tests.pins.shapes import shape

EVOLVE = (
    *("evolve", "--model", "emulated/gpt-4o-mini", "--population-size", "3", "--max-generations", "2"),
    *("--train", "4", "--validation", "3", "--test", "4", "--preset", "conservative", "--seed", "1"),
)
MAPPINGS = ("models",)


def test_an_evolution_its_folder_and_its_report(cli: CommandLine) -> None:
    found = cli.json(*EVOLVE, "--name", "first", "--detailed-performance-logging", "--out", "out")
    report = cli.json("evolve", "report", "first", "--out", "again")
    check(
        {
            "json/evolve.txt": shape(found, MAPPINGS),
            "json/evolve-report.txt": shape(report, MAPPINGS),
            "folders/evolve.txt": contents(Path("out")),
            "folders/evolve-report.txt": contents(Path("again")),
        }
    )


def test_a_benchmark(cli: CommandLine) -> None:
    words = ("evolve", "bench", "--population-size", "2", "--problems", "2", "--model", "emulated/gpt-4o-mini")
    found = cli.json(*words)
    assert {"sequential", "batches", "ours"} <= set(found["ways"])
    check({"json/evolve-bench.txt": shape(found, ("ways",))})
