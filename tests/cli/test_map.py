"""`groundswell map`: rows in, rows with replies out; checks, stops, resumption, and mistakes."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import polars
import pytest

from groundswell import Chat, Fault, FaultKind, Reply, Usage, scripted_model
from tests.cli.conftest import CommandLine

SEEN: list[str] = []


@scripted_model("shouting")
def shouting(request: Chat) -> Reply | Fault:
    said = str(request.messages[-1].content)
    SEEN.append(said)
    if "forbidden" in said:
        return Fault(FaultKind.FILTERED, "not that")
    return Reply(said.upper(), Usage(10, 2))


@scripted_model("formula")
def formula(request: Chat) -> str:
    return '=HYPERLINK("http://example.org")'


@scripted_model("scoring")
def scoring(request: Chat) -> str:
    said = str(request.messages[0].content)
    return "I will not." if "forbidden" in said else json.dumps({"score": len(said), "word": f"={said}"})


MOODS: list[bool] = []


@scripted_model("moody")
def moody(request: Chat) -> str | Fault:
    said = str(request.messages[0].content)
    return said if MOODS.pop(0) else Fault(FaultKind.FILTERED, "not now")


@pytest.fixture(autouse=True)
def seen() -> None:
    SEEN.clear()


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.csv"
    path.write_text('id,the word,note\n1,apple,"a, b"\n2,pear,=SUM(A1)\n3,fig,\n', encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_replies_are_written_beside_the_rows(cli: CommandLine, words: Path) -> None:
    shown = cli("map", str(words), "--prompt", "Say {the word}", "-m", "scripted/shouting").stdout
    assert (words.parent / "words.replies.csv").read_text() == (
        "id,the word,note,model,reply,status,fault\n"
        '1,apple,"a, b",scripted/shouting,SAY APPLE,usable,\n'
        "2,pear,=SUM(A1),scripted/shouting,SAY PEAR,usable,\n"
        "3,fig,,scripted/shouting,SAY FIG,usable,\n"
    )
    assert "3 rows written to" in shown
    assert "scripted/shouting     3       3        0         30    6  $0.00" in shown


def test_several_models_give_a_row_each(cli: CommandLine, words: Path) -> None:
    cli("map", str(words), "--prompt", "{the word}", "-m", "scripted/shouting,emulated/echo", "--limit", "2")
    found = read(words.parent / "words.replies.csv")
    assert [(row["id"], row["model"], row["reply"]) for row in found] == [
        ("1", "scripted/shouting", "APPLE"),
        ("1", "emulated/echo", "apple"),
        ("2", "scripted/shouting", "PEAR"),
        ("2", "emulated/echo", "pear"),
    ]


def test_templates_come_from_files_and_the_system_prompt_is_one(cli: CommandLine, words: Path) -> None:
    (words.parent / "prompt.txt").write_text("{{word}}: {the word}")
    words.write_text("the word\nx\n")
    cli("map", str(words), "-p", f"@{words.parent}/prompt.txt", "--system", "As {the word}", "-m", "scripted/shouting")
    assert SEEN == ["{word}: x"]
    trial = cli.json("runs", "show", cli.json("runs", "list")["runs"][0]["name"])["settings"]
    assert trial["system"] == "As {the word}"


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "json", "tsv", "parquet"])
def test_every_form_of_table_comes_out_as_it_went_in(cli: CommandLine, tmp_path: Path, ending: str) -> None:
    path, out = tmp_path / f"t.{ending}", tmp_path / f"t.replies.{ending}"
    rows: list[dict[str, Any]] = [{"a": "x", "n": 1}, {"a": "y", "n": None}]
    bodies = {
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "ndjson": "".join(json.dumps(row) + "\n" for row in rows),
        "json": json.dumps(rows),
        "tsv": "a\tn\nx\t1\ny\t\n",
    }
    if ending == "parquet":
        polars.DataFrame(rows).write_parquet(path)
    else:
        path.write_text(bodies[ending])
    cli("map", str(path), "-p", "{a}{n}", "-m", "scripted/shouting", "--check", 'ok: contains "X"')
    new = [
        {"model": "scripted/shouting", "reply": "X1", "ok": True, "status": "usable", "fault": None},
        {"model": "scripted/shouting", "reply": "YNULL", "ok": False, "status": "usable", "fault": None},
    ]
    if ending == "parquet":
        assert polars.read_parquet(out).to_dicts() == [{**row, **more} for row, more in zip(rows, new, strict=True)]
    elif ending == "tsv":
        assert out.read_text().splitlines()[1:] == [
            "x\t1\tscripted/shouting\tX1\ttrue\tusable\t",
            "y\t\tscripted/shouting\tY\tfalse\tusable\t",
        ]
    else:
        text = out.read_text()
        found = json.loads(text) if ending == "json" else [json.loads(line) for line in text.splitlines()]
        assert found == [{**row, **more} for row, more in zip(rows, new, strict=True)]


def test_missing_rows_are_apart_and_no_failures(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\nx\nforbidden\ny\n")
    words = ["map", str(path), "-p", "{a}", "-m", "scripted/shouting", "--check", "same: icontains {a}"]
    found = cli.json(*words, status=3)
    assert found["trials"] == {"planned": 3, "usable": 2, "missing": 1}
    (model,) = found["analysis"]["figures"]["models"]
    assert (model["usable"], model["missing"], model["faults"]) == (2, 1, {"content_filter": 1})
    assert (model["checks"][0]["passed"], model["checks"][0]["n"], model["checks"][0]["high"]) == (2, 2, 1.0)
    row = read(tmp_path / "t.replies.csv")[1]
    assert (row["reply"], row["same"], row["status"], row["fault"]) == (
        "",
        "",
        "missing",
        "content_filter: not that",
    )
    shown = cli(*words, status=3)
    assert "1 x content_filter" in shown.stdout
    assert "No request was sent" in shown.stderr


def test_a_schemas_fields_become_columns_and_what_models_write_is_no_formula(cli: CommandLine, tmp_path: Path) -> None:
    path, schema = tmp_path / "t.csv", tmp_path / "s.json"
    path.write_text("score,a\n=1,x\n2,forbidden\n")
    fields = {"score": {"type": "integer"}, "word": {"type": "string"}}
    schema.write_text(json.dumps({"type": "object", "properties": fields, "required": ["score", "word"]}))
    words = ["map", str(path), "-p", "{a}", "-m", "scripted/scoring", "--schema", str(schema)]
    result = cli(*words, "--check", "json.score == 1", status=3)
    assert "the data already has a column 'score', so the new one is named 'reply_score'" in result.stderr
    lines = (tmp_path / "t.replies.csv").read_text().splitlines()
    assert lines[0] == "score,a,model,reply_score,word,json.score == 1,status,fault"
    assert lines[1] == "=1,x,scripted/scoring,1,'=x,true,usable,"
    assert lines[2].startswith("2,forbidden,scripted/scoring,,,,missing,malformed_reply: ")
    assert "1 x malformed_reply" in result.stdout


def test_models_are_compared_on_the_rows_that_both_have(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "".join(f"word{n}\n" for n in range(40)) + "forbidden\n")
    words = ["map", str(path), "-p", "{a}", "-m", "scripted/shouting,emulated/echo", "--check", "same: equals {a}"]
    shown = cli(*words, status=3).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["same", "scripted/shouting", "0", "40", "0.0%", "(0.0%", "to", "8.8%)"] in lines
    assert ["same", "emulated/echo", "41", "41", "100.0%", "(91.4%", "to", "100.0%)"] in lines
    better = "same: emulated/echo passes more often than scripted/shouting, by 100.0 percentage points"
    assert f"{better} (95% CI 87.6 to 100.0; n = 40 rows)" in shown


def test_judges_and_likenesses(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,ref\nI am sorry but I cannot help,I cannot help\nCertainly here it is,nothing alike at all\n")
    checks = ["--check", 'refused: judge "Does it refuse?"', "--check", "near: similar {ref} >= 0.6"]
    models = ["-m", "emulated/echo", "--judge", "emulated/judge", "--embedder", "emulated/text-embedding-3-small"]
    cli("map", str(path), "-p", "{a}", *models, *checks)
    first, second = read(tmp_path / "t.replies.csv")
    assert (first["refused"], second["refused"]) == ("true", "false")
    assert first["refused reason"].startswith("The text says")
    assert (first["near"], second["near"]) == ("true", "false")


def test_a_judge_that_does_not_judge_leaves_the_row_usable(cli: CommandLine, words: Path) -> None:
    line = ["map", str(words), "-p", "{the word}", "-m", "emulated/echo", "--judge", "scripted/shouting"]
    shown = cli(*line, "--check", 'judge "is it fruit?"').stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["judge", '"is', "it", 'fruit?"', "emulated/echo", "0", "0", "–", "3"] in lines
    row = read(words.parent / "words.replies.csv")[0]
    assert (row["status"], row['judge "is it fruit?"']) == ("usable", "")
    assert row['judge "is it fruit?" reason'].startswith("undecided: the reply is not a valid")


def test_the_same_command_goes_on_and_another_is_another_run(cli: CommandLine, words: Path) -> None:
    line = ["map", str(words), "-p", "{the word}", "-m", "scripted/shouting"]
    stopped = cli.json(*line, "--max-calls", "2", status=3)
    assert [row["status"] for row in read(words.parent / "words.replies.csv")] == ["usable", "usable", "pending"]
    assert stopped["analysis"]["figures"]["models"][0]["pending"] == 1
    shown = cli(*line, "--max-calls", "2", status=3).stdout
    assert "pending" in shown
    assert [row["status"] for row in read(words.parent / "words.replies.csv")] == ["usable", "usable", "pending"]
    done = cli.json(*line)
    assert (done["run_id"], done["asks"]["sent"]) == (stopped["run_id"], 3)
    assert done["name"].startswith("words-")
    assert [row["reply"] for row in read(words.parent / "words.replies.csv")] == ["APPLE", "PEAR", "FIG"]
    assert len(SEEN) == 3
    other = cli.json("map", str(words), "-p", "the {the word}", "-m", "scripted/shouting", "--overwrite")
    assert other["run_id"] != done["run_id"]


def test_runs_resume_writes_the_same_file(cli: CommandLine, words: Path) -> None:
    line = ["map", str(words), "-p", "{the word}", "-m", "scripted/shouting"]
    whole = words.parent / "whole.csv"
    cli(*line, "--out", str(whole))
    run = cli.json(*line, "--max-calls", "1", status=3)["run_id"]
    cli("runs", "resume", run, "--max-calls", "9")
    assert (words.parent / "words.replies.csv").read_bytes() == whole.read_bytes()


def test_rows_that_were_tried_again_are_in_the_file(cli: CommandLine, words: Path) -> None:
    line = ["map", str(words), "-p", "{the word}", "-m", "scripted/moody"]
    MOODS[:] = [True, False, True]
    run = cli.json(*line, status=3)["run_id"]
    assert [row["status"] for row in read(words.parent / "words.replies.csv")] == ["usable", "missing", "usable"]
    MOODS[:] = [True]
    cli("runs", "resume", run, "--retry-missing")
    assert [row["reply"] for row in read(words.parent / "words.replies.csv")] == ["apple", "pear", "fig"]


def test_a_resumption_refuses_data_that_changed(cli: CommandLine, words: Path) -> None:
    line = ["map", str(words), "-p", "{the word}", "-m", "scripted/shouting"]
    run = cli.json(*line, "--max-calls", "1", status=3)["run_id"]
    before = words.read_text()
    words.write_text(before.replace("pear", "plum"))
    told = cli("runs", "resume", run, "--max-calls", "9", status=2).stderr
    assert "words.csv has changed since this run was started" in told
    words.write_text(before)
    cli("runs", "resume", run, "--max-calls", "9")
    words.write_text(before.replace("pear", "plum"))
    assert cli.json(*line, "--overwrite")["run_id"] != run


def test_a_file_that_the_run_did_not_write_is_left_alone(cli: CommandLine, words: Path) -> None:
    out = words.parent / "words.replies.csv"
    line = ["map", str(words), "-p", "{the word}", "-m", "scripted/shouting"]
    out.write_text("mine")
    assert "this file exists" in cli(*line, status=2).stderr
    assert (out.read_text(), SEEN) == ("mine", [])
    assert not cli.store.exists() or cli.json("runs", "list")["runs"] == []
    cli(*line, "--overwrite")
    cli(*line)
    out.write_text(out.read_text() + "edited\n")
    assert "this file exists" in cli(*line, status=2).stderr
    assert out.read_text().endswith("edited\n")


def test_formulas_of_models_are_guarded_and_those_of_the_data_are_not(cli: CommandLine, words: Path) -> None:
    cli("map", str(words), "-p", "{the word}", "-m", "scripted/formula")
    row = read(words.parent / "words.replies.csv")[1]
    assert (row["note"], row["reply"][:2]) == ("=SUM(A1)", "'=")


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["-p", "{teh word}"], "-p: the data has no column 'teh word'; did you mean {the word}? (columns: id"),
        (["-p", "{id}", "--system", "{x}"], "--system: the data has no column 'x'"),
        (["-p", "{id}", "--check", "equals {x}"], "--check equals {x}: the data has no column 'x'"),
        (["-p", "{id}", "--check", "polite"], "--check, character 1: expected contains"),
        (["-p", "{id}", "--check", "a: equals 1", "--check", "a: equals 2"], "two checks are named 'a'"),
        (["-p", "{id}", "--check", "similar {id} > 0.5"], "--embedder: `similar` checks need an embedding model"),
        (["-p", "{id"], "-p: unclosed { at character 1"),
        (["-p", "@nowhere.txt"], "-p @nowhere.txt: No such file"),
        (["-p", "{id}", "--out", "words.csv"], "this is the input file"),
        (["-p", "{id}", "--out", "x/y.csv"], "the folder x does not exist"),
        (["-p", "{id}", "--out", "y.xlsx"], "unknown file ending; use one of .csv"),
        (["-p", "{id}", "--out", "-"], "--out -: the table cannot go to standard output"),
        (["-p", "{id}", "--out", "pipe.csv"], "pipe.csv: not a regular file"),
        (["-p", "{id}", "--out", "folder.csv"], "folder.csv: not a regular file"),
        (["-p", "{id}", "--out", f"{'y' * 300}.csv"], "cannot create the file: File name too long"),
        (["-p", "{id}", "--out", "/proc/y.csv"], "cannot create the file"),
        (["-p", " "], "-p: must not be empty"),
        (["-p", "caf\udce9 {id}"], "-p: contains the byte 0xe9, which is not valid UTF-8"),
        (["-p", "{id}", "--check", 'contains "\udce9"'], "--check: contains the byte 0xe9, which is not valid UTF-8"),
        (["-p", "{id}", "--format", "jsonl"], "line 1, character 1: invalid JSON"),
        (["-p", "{id}", "--judge", "nobody/x"], "no provider or account 'nobody'"),
        (["-p", "{id}", "--embedder", "nobody/x"], "no provider or account 'nobody'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_mistakes_are_told_before_anything_is_sent(
    cli: CommandLine, words: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], told: str
) -> None:
    monkeypatch.chdir(words.parent)
    os.mkfifo("pipe.csv")
    Path("folder.csv").mkdir()
    assert told in cli("map", "words.csv", "-m", "scripted/shouting", *flags, status=2).stderr
    assert SEEN == []


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("-", "DATA -: the table is read more than once, so it must be a file"),
        (".", "DATA .: the table is read more than once, so it must be a file"),
        ("pipe.csv", "pipe.csv: not a regular file"),
        ("caf\udce9.csv", "DATA: contains the byte 0xe9, which is not valid UTF-8"),
    ],
)
def test_rows_that_cannot_be_read_again_are_refused(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.csv")
    assert told in cli("map", data, "-p", "x", "--format", "csv", "-m", "scripted/shouting", status=2).stderr


def test_a_link_is_replaced_and_what_it_leads_to_stays(cli: CommandLine, words: Path) -> None:
    link, far = words.parent / "link.csv", words.parent / "far.csv"
    far.write_text("mine")
    link.symlink_to(far)
    cli("map", str(words), "-p", "{id}", "-m", "scripted/shouting", "--overwrite", "--out", str(link))
    assert not link.is_symlink()
    assert far.read_text() == "mine"
    assert [row["reply"] for row in read(link)] == ["1", "2", "3"]


def test_semicolons_come_back_as_semicolons(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('\ufeffwort;menge\r\n"a;b";1,5\r\n', encoding="utf-8")
    cli("map", str(path), "-p", "{wort} {menge}", "-m", "scripted/shouting")
    assert (tmp_path / "t.replies.csv").read_text() == (
        'wort;menge;model;reply;status;fault\n"a;b";1,5;scripted/shouting;"A;B 1,5";usable;\n'
    )


def test_a_kill_between_the_file_and_the_note_of_it_leaves_a_file_that_is_known(cli: CommandLine, words: Path) -> None:
    line = ["map", str(words), "-p", "{the word}", "-m", "scripted/shouting", "--name", "killed"]
    out = words.parent / "words.replies.csv"
    cli(*line, "--max-calls", "2", status=3)
    forget_the_end(cli.store)
    cli(*line)
    forget_the_end(cli.store)
    whole = out.read_bytes()
    cli(*line)
    assert (out.read_bytes(), len(SEEN)) == (whole, 3)
    forget_the_end(cli.store)
    out.write_text("mine")
    assert "this file exists" in cli(*line, status=2).stderr
    assert out.read_text() == "mine"


def forget_the_end(store: Path) -> None:
    """What a kill leaves behind that came after the file was in its place, and before the run was ended."""
    with sqlite3.connect(store) as held:
        held.execute("UPDATE runs SET status = 'running', analysis = NULL, checksum = NULL")
    held.close()


def test_nested_cells_do_not_go_into_csv(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": [1, {"b": 2}]}\n')
    line = ["map", str(path), "-p", "{a}", "-m", "scripted/shouting"]
    told = cli(*line, "--out", str(tmp_path / "o.csv"), status=2).stderr
    assert "column 'a' contains lists or objects, which CSV cannot" in told
    cli(*line)
    assert json.loads((tmp_path / "t.replies.jsonl").read_text())["a"] == [1, {"b": 2}]


def test_a_missing_file_is_told(cli: CommandLine) -> None:
    assert (
        "nowhere.csv: No such file" in cli("map", "nowhere.csv", "-p", "x", "-m", "scripted/shouting", status=2).stderr
    )


def test_a_file_that_another_run_wrote_is_replaced_and_can_be_had_again(cli: CommandLine, words: Path) -> None:
    out = words.parent / "words.replies.csv"
    line = ["map", str(words), "-p", "{the word}", "-m", "scripted/shouting"]
    cli(*line, "--limit", "1")
    short = out.read_bytes()
    told = cli(*line).stderr
    assert "will be replaced; it was written by run words-" in told
    assert len(read(out)) == 3
    cli(*line, "--limit", "1")
    assert out.read_bytes() == short


def test_a_configuration_is_the_same_run_from_any_folder(
    cli: CommandLine, words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["map", "words.csv", "-p", "@say.txt", "-m", "scripted/shouting", "--check", 'contains "A"']
    monkeypatch.chdir(words.parent)
    Path("say.txt").write_text("Say {the word}")
    Path("map.toml").write_text(cli(*line, "--print-config").stdout)
    Path("short.toml").write_text('data = "words.csv"\nprompt = "@say.txt"\nmodel = "scripted/shouting"\n')
    done = cli.json(*line)
    short = cli.json("map", "--config", "short.toml", "--check", 'contains "A"')
    assert short["run_id"] == done["run_id"]
    assert not Path("results").exists()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    again = cli.json("map", "--config", "../map.toml")
    assert (again["run_id"], again["asks"]["sent"], len(SEEN)) == (done["run_id"], 3, 3)


def test_what_is_missing_is_told(cli: CommandLine, words: Path) -> None:
    assert "--prompt: is required" in cli("map", str(words), status=2).stderr
    assert "Missing argument 'DATA'" in cli("map", "-p", "x", status=2).stderr


def test_a_run_is_shown_with_its_figures(cli: CommandLine, words: Path) -> None:
    line = ["map", str(words), "-p", "{the word}", "-m", "scripted/shouting", "--name", "mine"]
    told = cli(*line).stdout.partition("\n\n")[2]
    for again in (("runs", "show", "mine"), ("runs", "resume", "mine")):
        assert told in cli(*again).stdout


def test_a_store_of_somebody_else_has_no_file_written_elsewhere(
    cli: CommandLine, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(here)
    out = ["--out", str(elsewhere / "replies.csv"), "--name", "theirs", "--max-calls", "1"]
    cli("map", str(words), "-p", "{the word}", "-m", "scripted/shouting", *out, status=3)
    (elsewhere / "replies.csv").unlink(missing_ok=True)
    told = cli("runs", "resume", "theirs", "--max-calls", "99", status=2).stderr
    assert f"writes to {elsewhere}/replies.csv, which is outside the current folder" in told
    assert list(elsewhere.iterdir()) == []
    monkeypatch.chdir(elsewhere)
    cli("runs", "resume", "theirs", "--max-calls", "99")
    assert (elsewhere / "replies.csv").exists()
