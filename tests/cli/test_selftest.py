"""`groundswell selftest`: the table, the files, the exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from groundswell.cli.app import app
from groundswell.cli.running import Ended
from groundswell.cli.selftest import _ended_early
from groundswell.errors import SettingsError
from groundswell.experiments.checks import Check
from groundswell.experiments.secret_game.selftest import driving, games, ordinary, reckoning
from groundswell.experiments.simulations import selftest
from tests.cli.conftest import CommandLine


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test with hardly any games, for what happens around it."""
    monkeypatch.setattr(driving, "plan", lambda seed, size: [])
    monkeypatch.setattr(ordinary, "READ", 50)
    monkeypatch.setattr(reckoning, "checks", lambda: iter(()))


@pytest.fixture
def holding(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, with games that prove what they should."""
    monkeypatch.setattr(games, "checks", lambda _: [Check("leaks", "a leaker", "100%", "9 of 9", 9, True)])


@pytest.mark.slow
def test_everything_holds_in_a_quick_one(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    result = cli("selftest", "--quick", "--seed", "3", "--out", str(tmp_path / "new" / "out"))
    assert "FAILED" not in result.stdout
    assert "All 60 checks passed" in result.stdout
    assert result.stdout.splitlines()[0].split() == ["check", "expected", "found", "n", "verdict"]
    assert re.search("base64: found in this form only +100% +20 of 20 +20 +ok", result.stdout)
    written = json.loads((tmp_path / "new" / "out" / "selftest.json").read_bytes())
    assert written["analysis"]["passed"] is True
    page = (tmp_path / "new" / "out" / "selftest.md").read_text()
    assert page.count("| ok |") == len(written["analysis"]["checks"])
    assert cli.json("runs", "list")["runs"][0]["run_id"] == written["run_id"]


@pytest.mark.usefixtures("holding")
def test_json_is_the_summary_of_the_run(cli: CommandLine) -> None:
    found = cli.json("selftest", "--quick")
    assert found["status"] == "completed"
    assert found["analysis"]["passed"] is True
    assert found["analysis"]["false_alarms"]["messages"] == 5


@pytest.mark.usefixtures("short")
def test_what_does_not_hold_is_told_and_exits_with_1(cli: CommandLine, tmp_path: Path) -> None:
    result = cli("selftest", "--quick", "--out", str(tmp_path / "o"), status=1)
    assert "FAILED" in result.stdout
    assert "checks failed" in result.stdout
    assert "**FAILED**" in (tmp_path / "o" / "selftest.md").read_text()
    assert cli.json("selftest", "--quick", status=1)["analysis"]["passed"] is False


@pytest.mark.usefixtures("holding")
def test_without_a_store_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["selftest", "--quick"], env={"GROUNDSWELL_STORE": ""})
    assert result.exit_code == 0, result.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told_first(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = cli("selftest", "--out", str(tmp_path / "file" / "o"), status=2)
    assert "--out" in result.stderr


@pytest.mark.parametrize(
    ("ended", "status", "said"),
    [
        (Ended(None), 130, "Nothing was saved; use --store FILE"),
        (Ended(None, SettingsError("size: no")), 2, "error: size: no"),
    ],
    ids=["interrupted", "error"],
)
def test_a_test_that_ended_early(ended: Ended, status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended_early(ended, verbose=False) == status
    assert said in capsys.readouterr().err


def test_simulations_are_tested_with_the_same_options(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "DESIGNS", [])
    monkeypatch.delenv("COLUMNS", raising=False)
    result = cli("selftest", "simulations", "--quick", "--out", str(tmp_path / "o"))
    assert "All 11 checks passed" in result.stdout
    assert re.search("those who said no are asked more +100% +34 of 34 +34 +ok", result.stdout)
    assert "conforms with 80%" in (tmp_path / "o" / "selftest.md").read_text()
    again = cli.json("selftest", "simulations", "--quick", "--seed", "1")
    assert again["analysis"]["passed"] is True
    assert again["analysis"] != json.loads((tmp_path / "o" / "selftest.json").read_bytes())["analysis"]


def test_an_experiment_without_a_self_test_is_an_error(cli: CommandLine) -> None:
    assert "game, simulations" in cli("selftest", "weather", status=2).stderr
