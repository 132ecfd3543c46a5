"""Games that are given odd names, folders and prompts: nothing is written where nobody wants it, and errors say why."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

GAME = ("play", "--models", "emulated/leaker:0.5,emulated/keeper", "-n", "2", "--messages", "2")
LONG = "n" * 300


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to play in."""
    folder = tmp_path / "place" / "inner"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../../up", "..", ".", "a/b", "/rooted", LONG, "a\nb\x1b[31m", "<i>x</i>", "CON."])
def test_the_report_of_any_name_is_in_one_folder_of_results(cli: CommandLine, place: Path, name: str) -> None:
    said = cli(*GAME, "--name", name).stdout
    assert [path.name for path in place.parent.rglob("report.html")] == ["report.html"]
    [folder] = (place / "results").iterdir()
    assert (folder / "report.html").exists()
    assert "\x1b" not in said
    assert len(folder.name) <= 120


@pytest.mark.slow
def test_names_that_differ_have_folders_that_differ(cli: CommandLine, place: Path) -> None:
    for name in ("a b", "a/b", "a:b", "a_b"):
        cli(*GAME, "--name", name)
    assert len(list((place / "results").iterdir())) == 4


def test_a_folder_that_cannot_be_is_refused_before_anything_is_played(cli: CommandLine, place: Path) -> None:
    assert "--out" in cli(*GAME, "--out", LONG, status=2).stderr
    assert not cli.store.exists()


@pytest.mark.slow
def test_a_batch_and_a_tournament_of_the_same_settings_are_two_runs(cli: CommandLine) -> None:
    assert cli.json(*GAME)["run_id"] != cli.json(*GAME, "--agents", "2")["run_id"]


def test_a_report_that_does_not_fit_says_so(cli: CommandLine, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    said = cli(*GAME, "--out", "there", status=1).stderr
    assert "there" in said
    assert "No space left" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_run_that_was_watched_tells_the_intervals_that_hold_for_it(
    cli: CommandLine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    said = cli(*GAME[:3], "-n", "200", "--messages", "2", "--stop-at-width", "0.5", "--out", "there").stdout
    arms = json.loads((place / "there" / "analysis.json").read_text())["stopping"]["arms"]
    for model, arm in arms.items():
        row = next(line for line in said.splitlines() if re.match(rf"{re.escape(model)} +\d", line))
        assert f"{arm['low']:.1%} to {arm['high']:.1%}" in row
    assert "declared, watched" in said
    assert "not valid for a run that a stopping rule may end" in said
