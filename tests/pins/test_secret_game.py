"""`play`, `compare`, `power` and `selftest`: the objects that they print and the folders that they write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pins.conftest import CommandLine
from tests.pins.expectations import check
from tests.pins.folders import contents
from tests.pins.shapes import shape

TWO = ("-m", "emulated/keeper,emulated/leaker:0.3", "-n", "4", "--messages", "2")
MAPPINGS = (
    *("models", "analysis.forms", "analysis.models[].verdicts", "analysis.missing[].kinds", "analysis.prompts"),
    *("analysis.tiers", "analysis.models[].tiers"),
)


def test_a_game_and_its_folder(cli: CommandLine) -> None:
    found = cli.json("play", *TWO, "--judge", "emulated/judge", "--probe", "--thoughts", "--name", "game", "-o", "out")
    assert set(found["analysis"]["tiers"]) == {"declared", "exact", "normalised", "encoded", "judged"}
    check({"json/play.txt": shape(found, MAPPINGS), "folders/play.txt": contents(Path("out"))})


@pytest.mark.slow
def test_a_tournament(cli: CommandLine) -> None:
    words = ("--game-mode", "targeted", "--agents", "4", "--name", "tournament", "-o", "out")
    found = cli.json("play", *TWO, *words)
    check({"json/play-targeted.txt": shape(found, MAPPINGS), "folders/play-targeted.txt": contents(Path("out"))})


@pytest.mark.slow
def test_a_game_that_stops_when_enough_is_known(cli: CommandLine) -> None:
    found = cli.json("play", *TWO, "--stop-at-width", "0.9", "--name", "stopping", "-o", "out")
    check({"json/play-stopping.txt": shape(found, MAPPINGS), "folders/play-stopping.txt": contents(Path("out"))})


def test_a_comparison_and_its_folder(cli: CommandLine) -> None:
    found = cli.json("compare", *TWO, "--name", "comparison", "-o", "out")
    check({"json/compare.txt": shape(found, MAPPINGS), "folders/compare.txt": contents(Path("out"))})


def test_power(cli: CommandLine) -> None:
    check(
        {
            "json/power-rate.txt": shape(cli.json("power", "--rate", "0.3", "-n", "100")),
            "json/power-width.txt": shape(cli.json("power", "--rate", "0.3", "--width", "0.4")),
            "json/power-rates.txt": shape(cli.json("power", "--rates", "0.1,0.6")),
            "json/power-paired.txt": shape(cli.json("power", "--rates", "0.1,0.6", "--paired")),
        }
    )


@pytest.mark.slow
def test_the_self_test(cli: CommandLine) -> None:
    found = cli.json("selftest", "--quick", "--out", "out")
    mappings = ("analysis.false_alarms.forms", "analysis.false_alarms.tiers")
    whole = shape(found, ("models", *mappings))
    check({"json/selftest.txt": whole, "folders/selftest.txt": contents(Path("out"), ("models", *mappings))})
