"""`groundswell runs`: list, show, compare, resume, cancel, delete, export, fork."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from groundswell.cli.stored import opened
from tests.cli.conftest import DRIVER, CommandLine


def keys(cli: CommandLine, run: str = "r") -> list[str]:
    return [json.loads(line)["key"] for line in cli("runs", "export", run).stdout.splitlines()]


def test_list_shows_every_run_newest_first(cli: CommandLine) -> None:
    cli.run("trials=3", "faulty=[1]", name="old", status=3)
    cli.run("trials=2", name="young")
    young, old = cli("runs", "list").stdout.splitlines()[1:]
    assert young.split()[1:7] == ["young", "completed", "2/2", "0", "4", "$0.00"]
    assert old.split()[1:7] == ["old", "partial", "3/3", "1", "6", "$0.00"]
    listed = cli.json("runs", "list")["runs"]
    assert [(run["name"], run["status"], run["trials"]["planned"]) for run in listed] == [
        ("young", "completed", 2),
        ("old", "partial", 3),
    ]


def test_a_killed_run_says_that_requests_may_have_been_paid_for(cli: CommandLine) -> None:
    cli.run(name="r")
    assert "was killed" not in cli("runs", "show", "r").stderr
    with sqlite3.connect(cli.store) as store:  # as a process leaves it that is killed while it sends
        store.execute(
            "UPDATE runs SET status = 'running', counters = json_set(counters, '$.at_risk', json(?))", ['{"a m":8}']
        )
    store.close()
    told = cli("runs", "show", "r").stderr
    assert "Requests that were in flight may be billed" in told
    assert "groundswell runs resume" in told


def test_a_name_that_looks_like_markup_is_listed_as_it_is(cli: CommandLine) -> None:
    cli.run(name="[/red][bold]x")
    assert "[/red][bold]x" in cli("runs", "list").stdout


@pytest.mark.parametrize(
    "words",
    [["list"], ["show", "r"], ["resume", "r"], ["cancel", "r"], ["delete", "r"], ["export", "r"], ["fork", "r"]],
    ids=lambda words: words[0],
)
def test_a_store_that_is_not_there_is_not_created(cli: CommandLine, words: list[str]) -> None:
    assert "there is no store" in cli("runs", *words, status=1).stderr
    assert not cli.store.exists()


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("command", ["show", "resume", "cancel", "delete", "export", "fork"])
def test_a_run_that_is_not_there_is_named(cli: CommandLine, command: str) -> None:
    cli.run()
    assert "no run 'nobody'" in cli("runs", command, "nobody", status=1).stderr


def test_show_says_why_trials_are_missing(cli: CommandLine) -> None:
    cli.run("trials=4", "faulty=[1,2]", status=3)
    missing = cli.json("runs", "show", "r")["missing"]
    assert missing == [{"kind": "bad_request", "trials": 2, "key": keys(cli)[1], "message": "this model refuses"}]
    told = cli("runs", "show", "r").stdout
    assert f"2 x bad_request, for example trial {keys(cli)[1]}: this model refuses" in told
    assert '"trials":4' in told


def test_show_counts_replies_and_says_nothing_more_where_trials_differ(cli: CommandLine) -> None:
    cli.run("trials=3", "faulty=[1]", status=3)
    assert cli.json("runs", "show", "r")["replies"] == {"n": 5, "distinct": 5, "trials": 2, "distinct_trials": 2}
    told = cli("runs", "show", "r").stdout
    assert "  replies 5 (5 distinct pairs" in told
    assert "warning" not in told


def test_show_warns_where_trials_share_their_replies(cli: CommandLine, rewrite: Callable[..., str]) -> None:
    same = rewrite("tests/", "alike/")
    path = Path(same.rpartition(":")[0])
    path.write_text(path.read_text().replace('f"{spec.word} {spec.number}.{turn}"', "spec.word"))
    cli.json("run", same, "--name", "r", "--set", "trials=4")
    assert cli.json("runs", "show", "r")["replies"] == {"n": 8, "distinct": 1, "trials": 4, "distinct_trials": 1}
    told = cli("runs", "show", "r").stdout
    assert "  replies 8 (1 distinct pairs" in told
    assert "  warning 4 usable trials have only 1 distinct sequence of replies." in told
    assert "may not be independent samples" in told


def test_show_of_a_run_without_replies_has_no_line_for_them(cli: CommandLine) -> None:
    cli.run("trials=2", "asks=0", name="r", status=1)
    assert "replies" not in cli("runs", "show", "r").stdout


def test_show_trial_is_a_replay_that_asks_no_model(cli: CommandLine) -> None:
    cli.run("trials=2", "faulty=[1]", status=3)
    good, bad = keys(cli)
    text = cli("runs", "show", "r", "--trial", good).stdout
    first = "[0] turn 0 (scripted/echo)\n    user: hello 0.0\n    => you said 'hello 0.0'\n"
    second = "[1] turn 1 (scripted/echo)\n    user: hello 0.1\n    => you said 'hello 0.1'\n"
    assert f"{first}\n{second}\nresult {{" in text
    failed = cli("runs", "show", "r", "--trial", bad[:12]).stdout
    assert "=> failed: bad_request: this model refuses\n\nmissing: bad_request: this model refuses" in failed
    assert cli.json("runs", "show", "r")["asks"]["sent"] == 4


def test_show_trial_as_json(cli: CommandLine) -> None:
    cli.run("trials=1", "asks=1")
    shown = cli.json("runs", "show", "r", "--trial", keys(cli)[0])
    assert (shown["status"], shown["result"]) == ("usable", {"number": 0, "said": ["you said 'hello 0.0'"]})
    exchange = shown["exchanges"][0]
    assert (exchange["path"], exchange["label"], exchange["settlement"]["text"]) == (
        "0",
        "turn 0",
        "you said 'hello 0.0'",
    )


@pytest.mark.parametrize(("key", "told"), [("zzz", "has no trial 'zzz'"), ("", "several keys start with")])
def test_a_trial_key_must_fit_one_trial(cli: CommandLine, key: str, told: str) -> None:
    cli.run("trials=2")
    assert told in cli("runs", "show", "r", "--trial", key, status=1).stderr


def test_compare_shows_the_settings_that_differ(cli: CommandLine) -> None:
    cli.run("trials=2", name="few")
    cli.run("trials=3", name="many")
    told = cli("runs", "compare", "few", "many").stdout
    assert "Settings that differ\nsetting  A: few  B: many\ntrials   2       3" in told
    blocks = {block["id"]: block for block in cli.json("runs", "compare", "few", "many")["blocks"]}
    assert blocks["settings"]["rows"] == [["trials", "2", "3"]]


def test_compare_needs_two_different_runs(cli: CommandLine) -> None:
    cli.run(name="r")
    assert "give 2 to 8 different runs to compare, not 1" in cli("runs", "compare", "r", "r", status=2).stderr
    assert "no run 'nobody'" in cli("runs", "compare", "r", "nobody", status=1).stderr


def test_resuming_a_finished_run_prints_the_same_object(cli: CommandLine) -> None:
    first = cli.run("faulty=[1]", status=3)
    assert cli.json("runs", "resume", "r", status=3) == first
    assert cli.json("runs", "resume", first["run_id"], status=3) == first


def test_resume_goes_on_after_a_limit_and_asks_nothing_twice(cli: CommandLine) -> None:
    cli.json("run", DRIVER, "--name", "r", "--max-calls", "5", status=3)
    ended = cli.json("runs", "resume", "r", "--max-calls", "50")
    assert (ended["status"], ended["asks"]["sent"], ended["asks"]["resent"]) == ("completed", 8, 0)


def test_changed_code_is_refused_until_accepted_and_then_scored_anew(
    cli: CommandLine, rewrite: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = rewrite("tests/", "copied/")
    cli.json("run", name, "--name", "r", "--max-calls", "5", status=3)
    path = Path(name.rpartition(":")[0])
    path.write_text(path.read_text().replace("return Result(spec.number, said)", "return Result(spec.number, ['new'])"))
    monkeypatch.delitem(sys.modules, "groundswell_script_copied_experiment")
    refused = cli("runs", "resume", "r", "--max-calls", "50", status=1).stderr
    assert "has changed since run 'r' was started" in refused
    assert "--accept-changes" in refused
    ended = cli.json("runs", "resume", "r", "--max-calls", "50", "--accept-changes")
    assert (ended["asks"]["sent"], ended["analysis"]) == (8, {"said": ["new"] * 4})


def test_retry_missing_gives_only_missing_trials_a_new_attempt(cli: CommandLine) -> None:
    cli.run("trials=3", "faulty=[1]", status=3)
    again = cli.json("runs", "resume", "r", "--retry-missing", status=3)
    assert again["trials"] == {"planned": 3, "usable": 2, "missing": 1}
    assert (again["asks"]["sent"], again["asks"]["replayed"]) == (7, 1)


def test_a_run_whose_deletion_was_cut_short_can_only_be_deleted(cli: CommandLine) -> None:
    cli.run()
    with opened(str(cli.store)) as store:
        store.runs.request_delete(store.runs.get("r"))
    assert "groundswell runs delete" in cli("runs", "resume", "r", "--accept-changes", status=1).stderr
    assert cli.json("runs", "delete", "r", "--yes")["deleted"] is True
    assert cli.json("runs", "list")["runs"] == []


def test_cancel_without_a_process_says_so(cli: CommandLine) -> None:
    cli.run()
    assert "no process is working on it; its status is completed" in cli("runs", "cancel", "r").stdout
    assert cli.json("runs", "cancel", "r")["process"] is False


def test_delete_asks_first(cli: CommandLine) -> None:
    cli.run()
    cli("runs", "delete", "r", answer="n\n", status=1)
    assert len(cli.json("runs", "list")["runs"]) == 1
    cli("runs", "delete", "r", answer="y\n")
    assert cli.json("runs", "list") == {"runs": []}
    assert "no runs" in cli("runs", "list").stdout


def test_delete_yes_does_not_ask(cli: CommandLine) -> None:
    cli.run()
    assert cli.json("runs", "delete", "r", "--yes")["deleted"] is True
    assert "no run 'r'" in cli("runs", "show", "r", status=1).stderr


def test_a_fork_reuses_what_its_parent_has(cli: CommandLine) -> None:
    cli.run("trials=3")
    fork = cli.json("runs", "fork", "r", "--name", "f", "--set", "trials=4")
    assert (fork["asks"]["cached"], fork["asks"]["sent"]) == (6, 2)
    assert fork["analysis"]["said"] == [f"you said 'hello {n}.1'" for n in range(4)]
    shown = cli.json("runs", "show", "f")
    assert (shown["parent"], shown["cut"]) == (cli.json("runs", "show", "r")["run_id"], None)
    assert "already exists" in cli("runs", "fork", "r", "--name", "f", status=1).stderr


@pytest.mark.sampled
@pytest.mark.parametrize(("at", "cached", "sent"), [("0", 0, 6), ("1", 3, 3), ("2", 6, 0)])
def test_a_fork_at_a_position_asks_anew_from_there(cli: CommandLine, at: str, cached: int, sent: int) -> None:
    cli.run("trials=3")
    fork = cli.json("runs", "fork", "r", "--at", at)
    assert (fork["asks"]["cached"], fork["asks"]["sent"]) == (cached, sent)


def test_a_fork_names_a_field_that_is_wrong(cli: CommandLine) -> None:
    cli.run()
    assert "unknown field 'trails'" in cli("runs", "fork", "r", "--set", "trails=1", status=2).stderr
    assert len(cli.json("runs", "list")["runs"]) == 1


def test_export_to_files_in_every_text_format(cli: CommandLine, tmp_path: Path) -> None:
    cli.run("trials=2", "faulty=[1]", "word==1+1", status=3)
    told = {
        kind: cli.json("runs", "export", "r", "--format", kind, "--output", str(tmp_path / f"out.{kind}"))
        for kind in ("jsonl", "json", "csv")
    }
    assert {one["rows"] for one in told.values()} == {2}
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert json.loads((tmp_path / "out.json").read_text()) == lines
    assert (lines[0]["status"], lines[0]["result"]["number"], lines[0]["fault_kind"]) == ("usable", 0, None)
    assert (lines[1]["status"], lines[1]["result"], lines[1]["fault_message"]) == (
        "missing",
        None,
        "this model refuses",
    )
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["spec.word"], rows[0]["result.number"]) == ("'=1+1", "0")
    assert (rows[1]["fault_kind"], rows[1]["result.number"]) == ("bad_request", "")
    assert sorted(path.name for path in tmp_path.glob("out.*")) == ["out.csv", "out.json", "out.jsonl"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "parquet"], "give a file for --format parquet"),
        (["--output", "/nowhere/at/all.csv"], "--output /nowhere/at/all.csv: No such file"),
        (["--json"], "give a file for --json"),
    ],
    ids=["binary", "folder", "json"],
)
def test_export_says_what_is_wrong(cli: CommandLine, words: list[str], told: str) -> None:
    cli.run()
    assert told in cli("runs", "export", "r", *words, status=2).stderr


def test_a_trial_whose_code_is_gone_shows_its_replies(cli: CommandLine, tmp_path: Path) -> None:
    source = Path(DRIVER.rpartition(":")[0]).read_text().replace("tests/", "vanishing/")
    path = tmp_path / "vanishing_experiment.py"
    path.write_text(source)
    cli.json("run", f"{path}:driver", "--name", "r", "--set", "trials=1")
    path.unlink()
    key = keys(cli)[0]
    for module in [name for name in sys.modules if name.endswith("vanishing_experiment")]:
        del sys.modules[module]
    shown = cli("runs", "show", "r", "--trial", key, "--prompts")
    assert "you said 'hello 0.0'" in shown.stdout
    assert "cannot be loaded" in shown.stderr
