"""`groundswell study`: from a file to answers and contrasts, and one condition against another."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import groundswell
from groundswell.errors import SettingsError
from groundswell.store.journal import Store
from tests.cli.conftest import CommandLine

FRAMING = """
name = "framing"
description = "Which programme, and how sure?"
entities = "people.json"
context = "In this study, {who} asks."
questions = "sheet.json"
within = ["who"]
stratify = ["urban"]

[factors.frame]
gain = "200 people are saved"
loss = { text = "400 people die", temperature = 0.5 }

[factors.who]
doctor = "a doctor"
paper = "a newspaper"

[[contrasts]]
name = "loss aversion"
question = "plan"
compare = ["gain", "loss"]
effect = 0.4

[[contrasts]]
name = "who asks"
question = "sure"
compare = ["doctor", "paper"]
effect = 1
"""
SHEET = {
    "shuffle_questions": True,
    "decline": True,
    "questions": [
        {"id": "plan", "text": "With A, {frame}. Choose.", "type": "choice", "options": ["yes", "no"]},
        {"id": "sure", "text": "How sure are you of {plan}?", "type": "scale", "high": 7},
        {"id": "ways", "text": "Rank.", "type": "ranking", "options": ["bus", "tram", "car"]},
        {"id": "grid", "text": "How good is", "type": "matrix", "rows": {"bus": "the bus?", "tram": "the tram?"}},
        {"id": "cost", "text": "How much, at most?", "type": "number", "min": 0, "when": {"plan": "yes"}},
    ],
}
MODEL = "emulated/person:hears=400 people die:-0.9+declines:0.05"
PEOPLE = [{"id": f"p{at}", "name": f"Person {at}", "attributes": {"urban": at % 2 == 0}} for at in range(40)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in. The study is in a folder inside, beside the files that it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)
    Path("design").mkdir()
    Path("design/framing.toml").write_text(FRAMING)
    Path("design/people.json").write_text(json.dumps(PEOPLE))
    Path("design/sheet.json").write_text(json.dumps(SHEET))


def rows(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def answers(folder: str) -> list[tuple[str, ...]]:
    """Who answered what in which condition."""
    names = ("condition", "entity_id", "question", "value", "missing")
    return sorted(tuple(row[name] for name in names) for row in rows(f"{folder}/answers.csv"))


def test_an_estimate_tells_the_power_and_sends_nothing(cli: CommandLine) -> None:
    done = cli("study", "design/framing.toml", "-m", "openai/gpt-4o-mini", "--estimate")
    assert "40 entities in 4 conditions, 20 in each; 80 simulations\n" in done.stderr
    assert re.search(
        r"^Power of 'loss aversion': \d+% to detect a difference of 40 percentage points, 80% to detect",
        done.stderr,
        re.M,
    )
    assert "alpha 0.025" in done.stderr
    assert "correlation 0.5 between conditions" in done.stderr
    assert "nothing was sent" in done.stdout
    assert not cli.store.exists()


def test_a_study_finds_what_was_planted_and_its_files_reproduce_it(cli: CommandLine) -> None:
    done = cli("study", "design/framing.toml", "-m", MODEL)
    assert "80 of 80 simulations are usable: 40 entities in 4 conditions.\n" in done.stdout
    assert re.search(
        r"^loss aversion: plan ‘yes’: \+\d\d\.\d percentage points .*Holm-adjusted p < 0.001, 2 tests",
        done.stdout,
        re.M,
    )
    assert re.search(r"^who asks: no significant difference in mean sure: ", done.stdout, re.M)
    found = rows("results/framing/answers.csv")
    assert len(found) == 80 * 6
    assert list(found[0])[:8] == [
        *("condition", "model", "replicate", "seat", "question_type", "factor.frame", "factor.who", "simulation_id"),
    ]
    assert {(row["condition"], row["factor.frame"], row["factor.who"]) for row in found} == {
        (f"{frame}, {who}", frame, who) for frame in ("gain", "loss") for who in ("doctor", "paper")
    }
    assert {(row["model"], row["replicate"], row["seat"]) for row in found} == {(MODEL, "1", "1")}
    kinds = {
        "plan": "choice",
        "sure": "scale",
        "ways": "ranking",
        "grid.bus": "scale",
        "grid.tram": "scale",
        "cost": "number",
    }
    assert {row["question"]: row["question_type"] for row in found} == kinds
    assert {row["missing"] for row in found} == {"", "declined", "skipped"}
    assert all((row["value"] == "") == (row["missing"] != "") for row in found)
    assert {row["missing"] for row in found if row["question"] != "cost"} == {"", "declined", "skipped"}
    analysis = json.loads(Path("results/framing/analysis.json").read_bytes())
    assert [each["name"] for each in analysis["conditions"]] == [
        *("gain, doctor", "gain, paper", "loss, doctor", "loss, paper")
    ]
    aversion = analysis["contrasts"][0]
    assert aversion["difference"]["low"] > 0.5, "0.9 is planted"
    assert [each["contrast"] for each in analysis["power"]] == ["loss aversion", "who asks"]

    cli("study", "--config", "results/framing/config.toml", "--out", "again", "--store", "other.db")
    assert answers("again") == answers("results/framing")

    cli("runs", "report", "framing", "--format", "md", "--out", "md")
    text = Path("md/report.md").read_text()
    assert "### Planned contrasts of shares" in text
    assert "| gain | doctor |" in text
    assert "### Power before the study" in text
    assert text.count("### What differs between the conditions") == 1
    assert "| loss, paper | temperature | 0.5 |" in text
    assert "| gain, paper | context | In this study, a newspaper asks. |" in text

    one, other = "framing:gain, doctor", "framing:loss, doctor"
    told = cli("contrast", one, other).stdout
    assert told.startswith(f"{one} minus {other}\n")
    assert "temperature: none and 0.5" in told
    assert re.search(r"^yes +\d+\.\d% +\d+\.\d% +\+", told, re.M)
    same = cli("contrast", "framing:gain, doctor", "framing:gain, paper").stdout
    assert "context: In this study, a doctor asks. and In this study, a newspaper asks." in same
    assert "paired by " in same
    assert (
        "has no condition 'win'; the conditions are 'gain, doctor', "
        in cli("contrast", one, "framing:win", status=2).stderr
    )
    assert "are the same batch; give two different batches" in cli("contrast", one, one, status=2).stderr
    assert "overlap; give two conditions of the study" in cli("contrast", one, "framing", status=2).stderr


def test_a_study_that_a_limit_stopped_goes_on(cli: CommandLine) -> None:
    words = ("study", "design/framing.toml", "-m", MODEL)
    stopped = cli.json(*words, "--max-calls", "30", status=3)
    usable = [each["simulations"]["usable"] for each in stopped["analysis"]["conditions"]]
    assert max(usable) - min(usable) <= 3, "conditions take turns"
    done = cli.json("runs", "resume", "framing", "--max-calls", "999")
    assert [each["simulations"]["usable"] for each in done["analysis"]["conditions"]] == [20] * 4


def test_options_replace_those_of_the_file(cli: CommandLine) -> None:
    done = cli("study", "design/framing.toml", "-m", MODEL, "--within", "who,frame", "--replicates", "2", "--estimate")
    assert "40 entities in 4 conditions, 40 in each; 320 simulations\n" in done.stderr
    Path("factors.json").write_text(json.dumps({"who": {"a": "A", "b": "B", "c": "C"}}))
    more = ("--factors", "factors.json", "--name", "other", "--estimate")
    told = cli("study", "design/framing.toml", "-m", MODEL, *more, status=2).stderr
    assert "'gain' is neither a condition nor a level of exactly one factor; the conditions are 'a', 'b', 'c'" in told


WRONG = {
    "no file": ("gone.toml", None, "gone.toml"),
    "no TOML": ("x.toml", "name = ", "x.toml: Invalid value"),
    "an unknown option": ("x.toml", 'qestions = "x"', "did you mean questions?"),
    "a wrong type": ("x.toml", "within = 3", "within"),
    "an unknown field": ("x.toml", '[[contrasts]]\nname = "a"\nquestion = "b"\nwights = {}', "wights"),
    "a contrast": ("x.toml", '[[contrasts]]\nname = "a"\nquestion = "b"', "give either `compare` or `weights`"),
}


@pytest.mark.parametrize(("name", "text", "said"), WRONG.values(), ids=WRONG)
def test_a_file_that_is_wrong_is_refused(cli: CommandLine, name: str, text: str | None, said: str) -> None:
    if text is not None:
        Path(name).write_text(text)
    assert said in cli("study", name, "-m", MODEL, status=2).stderr


def test_a_study_in_python(tmp_path: Path) -> None:
    store = tmp_path / "python.db"
    bill = groundswell.study.estimate("design/framing.toml", model="emulated/person", store=store)
    assert (bill.trials.low, bill.trials.high) == (80, 80)
    found = groundswell.study(
        "design/framing.toml", model="emulated/person", store=store, out="mine", progress=False, contrasts=[]
    )
    assert found.analysis.conditions[0].name == "gain, doctor"
    assert not any(each.planned for each in found.analysis.contrasts)
    assert len(rows("mine/answers.csv")) == 480
    with pytest.raises(SettingsError, match="there is no factor 'when'"):
        groundswell.study("design/framing.toml", model="emulated/person", within=["when"], store=store)


def test_a_run_whose_name_has_a_colon_is_still_found(cli: CommandLine) -> None:
    Path("one.json").write_text(json.dumps([SHEET["questions"][1]]))  # type: ignore[index]
    words = ("--entities", "design/people.json", "--questions", "one.json", "-m", "emulated/person")
    designed = ("--context", "{x}", "--factors", "factors.json")
    Path("factors.json").write_text(json.dumps({"x": {"a:b": "A", "c": "C"}}))
    for name in ("study:one", "study"):
        cli.json("study", *words, *designed, "--name", name)
    for one, other in (("study:one:a:b", "study:c"), ("study:one", "study"), ("study:a:b", "study:one:c")):
        assert cli("contrast", one, other).stdout.startswith(f"{one} minus {other}\n")
    cli.json(
        "simulate", *words, "--context", "x", "--interaction-size", "1", "--num-simulations", "40", "--name", "batch"
    )
    assert "paired by" in cli("contrast", "batch", "study").stdout
    assert "batch has no condition 'a'; it is not a study" in cli("contrast", "batch:a", "study", status=2).stderr
    assert "no run 'gone:a'" in cli("contrast", "gone:a", "study", status=1).stderr
    store = Store(cli.store)
    assert len(store.runs.list()) == 3
    store.close_reading()


EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "studies").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_can_be_run(cli: CommandLine, path: Path) -> None:
    done = cli("study", str(path), "-m", "emulated/person", "--estimate")
    assert "nothing was sent" in done.stdout
    assert "Power of " in done.stderr
