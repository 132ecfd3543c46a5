"""`groundswell run`: targets, settings, the JSON object, exit statuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DRIVER, CommandLine

COST = {"usd": 0.0, "unknown_asks": 0, "possible_usd": 0.0, "possible_asks": 0, "possible_unknown_asks": 0}


def test_the_json_object_field_by_field(cli: CommandLine) -> None:
    found = cli.run("trials=3", "faulty=[1]", status=3)
    run_id, seconds, models = found.pop("run_id"), found.pop("seconds"), found.pop("models")
    assert found == {
        "status": "partial",
        "trials": {"planned": 3, "usable": 2, "missing": 1},
        "asks": {"sent": 6, "resent": 0, "cached": 0, "replayed": 0, "failed": 1},
        "cost": COST,
        "analysis": {"said": ["you said 'hello 0.1'", "you said 'hello 2.1'"]},
        "name": "r",
        "error": None,
    }
    ((model, paid),) = models.items()
    assert (model.partition("/")[0], paid["replies"], paid["cost"]) == ("scripted", 5, {"usd": 0.0, "unknown_asks": 0})
    assert len(run_id) == 10
    assert 0 < seconds < 60


def test_what_a_driver_prints_goes_to_standard_error_with_json_and_to_standard_output_without(cli: CommandLine) -> None:
    assert "the driver talks" in cli("run", DRIVER, "--json").stderr
    assert "the driver talks" in cli("run", DRIVER).stdout


def test_people_get_a_summary_and_progress_on_standard_error(cli: CommandLine) -> None:
    result = cli("run", DRIVER, "--name", "seen")
    assert "4 usable of 4 planned" in result.stdout
    assert "cost      $0.00" in result.stdout
    assert "seen: 4 of 4 trials done; 0 running; 0 missing; 8 requests sent" in result.stderr


def test_why_trials_are_missing_is_told_with_the_summary(cli: CommandLine) -> None:
    lines = cli("run", DRIVER, "--set", "faulty=[1, 2]", status=3).stdout.splitlines()
    told = lines[lines.index("  missing") + 1]
    assert told.startswith("    2 x bad_request, for example trial ")
    assert told.endswith(": this model refuses")
    assert "  missing" not in cli("run", DRIVER).stdout.splitlines()


def test_a_run_that_is_done_is_not_taken_for_one_that_was_paid_again(cli: CommandLine) -> None:
    told = "Run seen already exists and is complete. No request was sent."
    assert told not in cli("run", DRIVER, "--name", "seen").stderr
    assert told in cli("run", DRIVER, "--name", "seen").stderr
    cli("run", DRIVER, "--name", "begun", "--max-calls", "3", status=3)
    assert "No request was sent" not in cli("run", DRIVER, "--name", "begun", "--max-calls", "20").stderr


def test_settings_come_from_a_file_and_flags_change_them(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"trials": 1, "word": "file", "inner": {"depth": 3}}')
    found = cli.json("run", DRIVER, "--settings", str(file), "--set", "word=flag", "--name", "r")
    assert found["analysis"] == {"said": ["you said 'flag 0.1'"]}
    settings = cli.json("runs", "show", "r")["settings"]
    assert (settings["trials"], settings["word"], settings["inner"]) == (1, "flag", {"depth": 3})


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["run", DRIVER, "--set", "trails=3"], 2, "unknown field 'trails'; known fields: trials, asks"),
        (["run", DRIVER, "--set", "trials=many"], 2, "$.trials"),
        (["run", DRIVER, "--set", "trials"], 2, "--set trials: must have the form field=value"),
        (["run", DRIVER, "--set", "word.x=1"], 2, "$.word"),
        (["run", DRIVER, "--set", "word=a", "--set", "word.x=1"], 2, "word is a plain value and has no fields"),
        (["run", DRIVER, "--settings", "nowhere.json"], 2, "--settings nowhere.json: No such file"),
        (["run", DRIVER, "--settings", __file__], 2, "must contain one JSON object"),
        (["run", "nowhere.py:driver"], 2, "nowhere.py:driver: file not found"),
        (["run", "no_such_module:driver"], 1, "No module named 'no_such_module'"),
        (["run", "driver"], 2, "write it as file.py, file.py:function or module:function"),
        (["run", DRIVER, "--set", "model=scripted/nobody"], 2, "there is no scripted model with this name"),
        (["run", DRIVER, "--set", "model=elsewhere/x"], 2, "no provider or account 'elsewhere'"),
        (["run", DRIVER, "--store", "/nowhere/at/all.db"], 1, "the folder /nowhere/at does not exist"),
        (["run", DRIVER, "--store", "mysql://x/y"], 2, "give the path of a SQLite file"),
    ],
    ids=lambda value: " ".join(value[2:]) or value[1] if isinstance(value, list) else None,
)
def test_errors_are_one_line_that_names_the_thing(cli: CommandLine, words: list[str], status: int, told: str) -> None:
    lines = [line for line in cli(*words, status=status).stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert told in lines[0]


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("nonsense", "write it as NAME.SETTING=VALUE"),
        ("opnai.timeout=3", "there is no account 'opnai'; did you mean 'openai'?"),
        ("openai.timeout=soon", "openai.timeout: must be a number above 0"),
    ],
)
def test_a_wrong_account_flag_leaves_no_run_behind(cli: CommandLine, flag: str, told: str) -> None:
    cli.run(name="earlier")
    assert told in cli("run", DRIVER, "--name", "r", "--account", flag, status=2).stderr
    assert [run["name"] for run in cli.json("runs", "list")["runs"]] == ["earlier"]


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", DRIVER, "--via", "pigeon"],
        ["run", DRIVER, "--max-concurrent", "0"],
        ["runs", "frobnicate"],
    ],
    ids=["no target", "via", "no concurrency", "no such command"],
)
def test_usage_errors_exit_with_2(cli: CommandLine, words: list[str]) -> None:
    cli(*words, status=2)


def test_verbose_adds_the_traceback_and_what_happens(cli: CommandLine) -> None:
    words = ("run", DRIVER, "--set", "model=scripted/nobody")
    assert "Traceback" not in cli(*words, status=2).stderr
    told = cli(*words, "-v", status=2).stderr
    assert "Traceback" in told
    assert "opened" in told
    assert "wave 1: 4 requests, scripted" in cli("run", DRIVER, "-v").stderr


def test_a_broken_driver_shows_its_traceback_and_leaves_a_failed_run(cli: CommandLine) -> None:
    result = cli("run", DRIVER, "--set", "broken=true", "--json", status=1)
    assert "LookupError: the driver is broken" in result.stderr
    assert '"status":"failed"' in result.stdout
    assert '"error":"LookupError: the driver is broken"' in result.stdout


@pytest.mark.parametrize(
    ("flag", "value", "why"),
    [
        ("--max-calls", "3", "budget of 3 calls"),
        ("--max-tokens", "1", "budget of 1 tokens"),
        ("--deadline", "0", "time limit"),
    ],
    ids=["calls", "tokens", "deadline"],
)
def test_a_limit_ends_the_run_with_status_3(cli: CommandLine, flag: str, value: str, why: str) -> None:
    found = cli.json("run", DRIVER, flag, value, status=3)
    assert found["status"] == "partial"
    assert why in found["error"]


def test_what_costs_nothing_fits_any_budget(cli: CommandLine) -> None:
    found = cli.json("run", DRIVER, "--budget", "0")
    assert (found["status"], found["cost"]) == ("completed", COST)


def test_a_budget_refuses_a_model_whose_price_nobody_knows(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "groundswell.toml").write_text('[accounts.lab]\ndialect = "openai"\nbase_url = "http://127.0.0.1:9"\n')
    told = cli("run", DRIVER, "--budget", "1", "--set", "model=lab/x", "--name", "r", status=2).stderr
    assert "model 'lab/x': its price is unknown" in told
    assert "[prices] in groundswell.toml" in told
    assert cli.json("runs", "list") == {"runs": []}, "nothing was sent"


@pytest.mark.parametrize(
    ("flag", "value", "advice"),
    [
        ("--max-calls", "3", "--max-calls N"),
        ("--max-tokens", "1", "--max-tokens N"),
        ("--deadline", "0", "--deadline SECONDS"),
    ],
)
def test_the_limit_that_was_reached_is_the_one_to_raise(cli: CommandLine, flag: str, value: str, advice: str) -> None:
    told = cli("run", DRIVER, flag, value, status=3).stderr
    assert re.search(rf"to resume with a larger limit: groundswell runs resume \w+ .*{advice}$", told.strip())


@pytest.mark.parametrize("schedule", ["stream", "waves"])
def test_both_schedules_find_the_same(cli: CommandLine, schedule: str) -> None:
    found = cli.json("run", DRIVER, "--schedule", schedule, "--no-cache", "--via", "live", "--max-concurrent", "2")
    assert found["analysis"]["said"] == [f"you said 'hello {n}.1'" for n in range(4)]


def test_a_name_continues_its_run_and_refuses_another_experiment(cli: CommandLine) -> None:
    first = cli.run("trials=2")
    again = cli.run("trials=2")
    assert (again["run_id"], again["asks"]["sent"]) == (first["run_id"], 4)
    assert (
        "exists with another driver, settings or seed"
        in cli("run", DRIVER, "--name", "r", "--seed", "9", status=1).stderr
    )


def test_a_module_target_is_found_in_the_current_folder(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside_me.py").write_text("WORD = 'beside'\n")
    (tmp_path / "own_driver.py").write_text(
        "import beside_me\nasync def driver(run, settings: dict) -> str:\n    return beside_me.WORD\n"
    )
    monkeypatch.chdir(tmp_path)
    assert cli.json("run", "own_driver:driver")["analysis"] == "beside"


def test_help_imports_no_database() -> None:
    code = "from groundswell.cli.app import app; app(standalone_mode=False); print('sqlalchemy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}", "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage" in done.stdout
    assert done.stdout.rstrip().endswith("False")


def test_version(cli: CommandLine) -> None:
    assert cli("--version").stdout.startswith("groundswell 0.")


def test_resuming_is_not_advised_where_something_must_be_mended_first(cli: CommandLine) -> None:
    told = cli("run", DRIVER, "--set", "model=scripted/misspelt", status=2).stderr
    assert "there is no scripted model with this name" in told
    assert "to go on" not in told


def test_a_misspelt_model_costs_nothing_and_leaves_its_name_free(cli: CommandLine) -> None:
    told = cli("run", DRIVER, "--name", "mine", "--set", "model=opnai/gpt-4o", status=2).stderr
    assert "'opnai'" in told
    assert "Traceback" not in told
    assert cli.json("runs", "list") == {"runs": []}
    cli("run", DRIVER, "--name", "mine")


def test_a_missing_key_is_told_by_the_name_of_its_variable(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    told = cli("run", DRIVER, "--name", "mine", "--set", "model=openai/gpt-4o", status=2).stderr
    assert "OPENAI_API_KEY" in told
    assert cli.json("runs", "list") == {"runs": []}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", DRIVER, "--set", "model=nobody/x"), "nobody/x"),
        (("run", DRIVER, "--seed", "x"), "--seed x: must be a whole number"),
        (("run",), "Missing argument 'TARGET'."),
    ],
    ids=["run", "option", "usage"],
)
def test_an_error_before_a_run_is_an_object_with_json(cli: CommandLine, words: tuple[str, ...], told: str) -> None:
    assert told in cli.json(*words, status=2)["error"]
