"""`groundswell simulate`: what it says, what it writes, what it refuses, and how it goes on."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Context, Ready
from groundswell.experiments.options import collect
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.experiment import experiment
from groundswell.store.journal import Store
from tests.cli.conftest import CommandLine
from tests.patience import PATIENCE
from tests.reporting.walked import Walked

PEOPLE = [
    {"id": name.lower(), "name": name, "attributes": {"age": 30 + number, "town": ["Ulm", "Rom"][number % 2]}}
    for number, name in enumerate(["Ann", "Bob", "Cleo", "Dan", "Eve", "Fred"])
]
CONTEXT = "A panel discussion about climate change solutions"
SHEET = [
    {"id": "agree", "text": "Do you agree?", "type": "choice", "options": ["yes", "no"]},
    {"id": "warm", "text": "How warm was it?", "type": "scale"},
    {"id": "why", "text": "Why?"},
]
FORMATS = ("csv", "json", "parquet")
FILES = {
    *("report.html", "analysis.json", "config.toml"),
    *(f"{table}.{format}" for table in ("simulations", "lines") for format in FORMATS),
}
ANSWERS = {"figures", *(f"answers.{format}" for format in FORMATS)}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, with entities and a questionnaire."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)
    Path("people.json").write_text(json.dumps({"entities": PEOPLE}))
    Path("sheet.json").write_text(json.dumps(SHEET))


def line(*more: str, entities: str = "people.json", context: str = CONTEXT, size: int = 2, count: int = 4) -> list[str]:
    words = ["simulate", "--entities", entities, "--context", context, "--interaction-size", str(size)]
    return [*words, "--num-simulations", str(count), "--model", "emulated/keeper", *more]


def rows(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def keep(store: Path, people: Sequence[dict[str, Any]]) -> None:
    """Put entities into a store."""
    held = Store(store)
    held.documents.add(*(("entity", each["id"], json.dumps(each)) for each in people))
    held.close_reading()


def test_a_batch_is_announced_told_and_written(cli: CommandLine) -> None:
    done = cli(*line("--n-turns", "2", "--simulation-rounds", "2", "--name", "climate"))
    assert "6 entities in pairs: 15 combinations, 4 of them drawn\n" in done.stderr
    assert re.search(r"^ +trials +4 usable of 4 planned$", done.stdout, re.MULTILINE)
    assert re.search(r"^1: \w+, \w+: sim-\w{10}-1, completed$", done.stdout, re.MULTILINE)
    assert "4 of 4 simulations are usable: 4 of 15 possible combinations of 6 entities, in pairs.\n" in done.stdout
    assert re.search(r"^The conversations have 32 lines of \d+\.\d words on average", done.stdout, re.MULTILINE)
    assert "report: results/climate/report.html\n" in done.stdout
    assert re.search(r"^continue a simulation: groundswell simulate --continue sim-\w{10}-1", done.stdout, re.MULTILINE)
    assert {path.name for path in Path("results/climate").iterdir()} == FILES
    assert len(rows("results/climate/lines.csv")) == 32
    found = json.loads(Path("results/climate/simulations.json").read_bytes())
    assert [(each["condition"], each["status"], each["final_turn_number"]) for each in found] == [
        ("climate", "completed", 4)
    ] * 4


@pytest.mark.parametrize(
    ("size", "count", "more", "said"),
    [
        (1, 6, [], "6 entities alone: 6 combinations, all of them"),
        (3, 1, [], "6 entities in groups of 3: 20 combinations, 1 of them drawn"),
        (
            2,
            6,
            ["--replicates", "3"],
            "6 entities in pairs: 15 combinations, 2 of them drawn, in 6 simulations: each 3 times",
        ),
        (2, 10, ["--replicates", "3"], "4 of them drawn, in 10 simulations: 2 run 3 times, 2 run 2 times"),
        (6, 1, [], "6 entities in groups of 6: 1 combination, all of them"),
    ],
    ids=["solo", "group", "replicates", "uneven", "everybody"],
)
def test_combinations_are_counted_before_the_run(
    cli: CommandLine, size: int, count: int, more: list[str], said: str
) -> None:
    assert f"{said}\n" in cli(*line(*more, "--estimate", size=size, count=count)).stderr


def test_figures_of_a_questionnaire(cli: CommandLine) -> None:
    told = cli(*line("--questions", "sheet.json", "--out", "mine", count=15)).stdout
    assert re.search(
        r"^agree \(Do you agree\?\): ‘(yes|no)’ [\d.]+% \(95% interval .*; 30 of 30 answered\.$", told, re.M
    )
    assert re.search(
        r"^question +option +answers +share *\nagree +(yes|no) +\d+ +[\d.]+% \([\d.]+% to [\d.]+%\)", told, re.M
    )
    mean = r"mean \d\.\d\d \(95% interval \d\.\d\d to \d\.\d\d\) on a scale from 1 to 5"
    assert re.search(rf"^warm \(How warm was it\?\): {mean}; 30 of 30 answered\.$", told, re.MULTILINE)
    nearest = r"^Exploratory: (no significant difference|\w+ differs by)"
    assert len(re.findall(nearest, told, re.MULTILINE)) == 2
    assert {path.name for path in Path("mine").iterdir()} == FILES | ANSWERS
    found = rows("mine/answers.csv")
    assert len(found) == 15 * 2 * 3
    assert {(row["entity_id"], row["attribute.town"]) for row in found} >= {("ann", "Ulm"), ("bob", "Rom")}
    analysis = json.loads(Path("mine/analysis.json").read_bytes())
    assert [each["id"] for each in analysis["questions"]] == ["agree", "warm", "why"]


def test_a_questionnaire_may_be_an_object_and_be_put_before_too(cli: CommandLine) -> None:
    Path("sheet.json").write_text(json.dumps({"questions": SHEET[1:2], "before": True}))
    told = cli(*line("--questions", "sheet.json", "--out", "mine", size=1)).stdout
    changed = r"No significant change in warm during the conversation: [+−]?\d\.\d\d .*, from a mean of .* before\."
    assert re.search(f"^{changed}$", told, re.MULTILINE)
    assert re.search(r"^question +scale +answers +mean +sd +before +change$", told, re.MULTILINE)
    assert [row["before"] for row in rows("mine/answers.csv")].count("true") == 4


@pytest.mark.slow
def test_what_was_named_in_advance_is_told_in_full(cli: CommandLine) -> None:
    Path("sheet.json").write_text(json.dumps({"questions": SHEET[:2], "before": True}))
    done = cli(*line("--questions", "sheet.json", "--by", "town", "--by", "age", "--out", "mine", count=15))
    values = r"\(p = [\d.]+; Holm-adjusted p = [\d.]+, 2 tests\)"
    for name in ("town", "age"):
        assert (
            len(re.findall(rf"^No significant difference in \w+ by .*{name} {values}", done.stdout, re.MULTILINE)) == 2
        )
        assert (
            len(re.findall(rf"^No significant difference in the change in .*by {name} {values}", done.stdout, re.M))
            == 2
        )
        assert len(re.findall(rf"^\w+: no significant difference by {name} {values}$", done.stdout, re.MULTILINE)) == 2
    assert re.search(r"^group +answers +mean +less the others +change *$", done.stdout, re.MULTILINE)
    assert re.search(r"^group +answers +option +share +less the others +change *$", done.stdout, re.MULTILINE)
    assert "Exploratory" not in done.stdout
    found = json.loads(Path("mine/analysis.json").read_bytes())
    assert found["by"] == ["town", "age"]


def test_the_nearest_of_what_was_not_named_in_advance_is_told(cli: CommandLine) -> None:
    told = cli(*line("--questions", "sheet.json", "--by", "town", count=15)).stdout
    assert len(re.findall(r"^Exploratory: .*\bage\b", told, re.MULTILINE)) == 2


@pytest.mark.parametrize("given", [["--by", "town,age"], ["--by", "town", "--by", " age"]], ids=["commas", "repeated"])
def test_attributes_may_have_commas_between_them(cli: CommandLine, given: list[str]) -> None:
    found = cli.json(*line(*given))
    assert cli.json("runs", "show", found["run_id"])["settings"]["by"] == ["town", "age"]


def test_what_by_will_not_do_is_said_before_the_run(cli: CommandLine) -> None:
    people = [{**each, "attributes": {"motto, short": f"motto {at}"}} for at, each in enumerate(PEOPLE)]
    Path("people.json").write_text(json.dumps(people))
    done = cli(*line("--by", "motto, short"))
    assert "--by motto, short has no effect without --questions" in done.stderr
    assert "--by motto, short does not form groups: its values are mostly unique" in done.stderr
    told = cli(*line("--by", "motto, short", "--questions", "sheet.json")).stdout
    assert "No breakdown by motto, short: its values are mostly unique" in told


def test_a_made_up_name_is_the_runs_and_the_same_command_goes_on_with_it(cli: CommandLine) -> None:
    first = cli.json(*line())
    assert re.fullmatch(r"a-panel-discussion-about-climate-[0-9a-f]{8}", first["name"])
    assert Path("results", first["name"], "lines.csv").exists()
    shown = cli.json("runs", "show", first["name"])
    assert shown["settings"]["name"] == "A panel discussion about climate…"
    again = cli(*line())
    assert f"Run {first['name']} already exists and is complete. No request was sent" in again.stderr
    other = cli.json(*line("--n-turns", "2"))
    assert cli.json(*line("--n-turns", "2"))["run_id"] == other["run_id"]
    cli.json(*line("--seed", "1"))
    assert len({run["name"] for run in cli.json("runs", "list")["runs"]}) == 3


@pytest.mark.slow
def test_the_configuration_of_a_run_gives_the_same_run_without_the_files_and_the_store(cli: CommandLine) -> None:
    keep(cli.store, PEOPLE)
    Path("scene.txt").write_text("It is late.\nThe fire is low.\n")
    more = ["--questions", "sheet.json", "--by", "town", "--no-thoughts", "--out", "mine"]
    first = cli.json(*line(*more, entities="ann,bob,cleo", context="scene.txt", count=3))
    Path("other").mkdir()
    shutil.copy("mine/config.toml", "other/config.toml")
    for name in ("people.json", "sheet.json", "scene.txt"):
        Path(name).unlink()
    other = CommandLine(Path("other").absolute())
    again = other.json("simulate", "--config", "other/config.toml", "--out", "again")
    assert again["name"] == first["name"]
    settings = cli.json("runs", "show", first["name"])["settings"]
    assert other.json("runs", "show", again["name"])["settings"] == settings


def test_options_as_data(cli: CommandLine) -> None:
    """As they come in a TOML file, a request or from Python."""
    people = [{key: value for key, value in each.items() if key != "id"} for each in PEOPLE]
    given = {"context": "A talk", "interaction_size": 2, "num_simulations": 3, "model": "emulated/keeper"}
    for entities in (people, {"entities": people}, {"csv": "name\nAnn\nBob\nCleo\n"}, [Entity("entity-1", "Ann")]):
        ready = made(given | {"entities": entities, "interaction_size": 1, "num_simulations": 1, "questions": SHEET})
        assert ready.settings.entities[0].id == "entity-1"
        assert [each.id for each in ready.settings.rules.questionnaire.questions] == ["agree", "warm", "why"]
        assert made(msgspec.to_builtins(ready.config)).name == ready.name
    for wrong, said in (
        ({"entities": [{"nam": "Ann"}]}, "entities: entities[0]: unknown field 'nam'; allowed are id, name"),
        ({"entities": people, "questions": [{"id": "a"}]}, "questions: [0]: text is missing"),
        ({"entities": people, "questions": {"question": []}}, "questions: unknown field question"),
        (
            {"entities": people, "questions": [{"id": "a", "text": " "}]},
            "questions: question 'a', text: must not be empty",
        ),
        ({"entities": people, "by": "sex"}, "by: no entity has an attribute 'sex'"),
        ({"entities": people, "num_simulations": 16}, "num_simulations 16: 6 entities have only 15"),
        ({"continue": "sim-x-1", "entities": people}, "entities cannot be combined with continue"),
        ({"continue": "sim-x-1"}, "interaction_size cannot be combined with continue"),
    ):
        with pytest.raises(SettingsError, match=re.escape(said)):
            made(given | wrong)


def made(given: dict[str, Any]) -> Ready:
    """What a request with these options would run."""
    command = experiment.command("simulate")
    return command.ready(
        collect(command.fields, given, what=command.name, text=False), Context(store="gone.db", origin="request")
    )


def test_a_limit_ends_a_batch_which_resume_goes_on_with_and_reports(cli: CommandLine) -> None:
    stopped = cli.json(*line("--max-calls", "5", "--name", "b"), status=3)
    assert stopped["analysis"]["simulations"]["unfinished"] > 0
    done = cli("runs", "resume", "b", "--max-calls", "99")
    assert re.search(r"^1: \w+, \w+: sim-\w+-1, completed$", done.stdout, re.MULTILINE)
    assert "report: results/b/report.html" in done.stdout
    assert len(rows("results/b/lines.csv")) == 8


def test_all_simulations_of_a_batch_are_planned_also_those_that_had_not_begun(cli: CommandLine) -> None:
    stopped = cli(*line("--max-calls", "3", "--name", "b", "--max-concurrent", "1", count=15), status=3)
    assert re.search(r"^ +trials +\d usable of 15 planned", stopped.stdout, re.MULTILINE)
    assert re.search(r"^ +trials +\d usable of 15 planned", cli("runs", "show", "b").stdout, re.MULTILINE)


def test_the_show_of_a_batch_ends_as_its_run_did(cli: CommandLine) -> None:
    told = cli(*line("--questions", "sheet.json", "--name", "b", count=15)).stdout
    findings = told[told.index("15 of 15 simulations are usable") : told.index("\nreport: ")]
    shown = cli("runs", "show", "b").stdout
    assert findings in shown
    assert '"analysis"' not in shown
    assert '"questions": [' not in shown


def test_the_report_of_a_batch_is_written_again(cli: CommandLine) -> None:
    cli.json(*line("--name", "b"))
    shutil.rmtree("results/b")
    assert "report: mine/report.html\n" in cli("runs", "report", "b", "--out", "mine").stdout
    assert {path.name for path in Path("mine").iterdir()} == FILES - {"config.toml"}
    cli.json(*line("--name", "c", "--seed", "1"))
    assert "simulation runs cannot be pooled" in cli("runs", "report", "b", "c", status=2).stderr


@pytest.mark.slow
def test_no_two_runs_have_the_same_folder(cli: CommandLine) -> None:
    folders = [
        re.findall(r"report: (.*)/report.html", cli(*line("--name", name, count=1)).stdout)[0]
        for name in ("A bridge? Now", "A bridge! Now", "../a bridge, now", "…", "Brücke 7.5", "A bridge? Now")
    ]
    assert folders[0] == folders[-1]
    assert len(set(folders)) == 5
    assert {folder.strip("'").count("/") for folder in folders} == {1}
    assert f"report: {folders[0]}/r" in cli("runs", "resume", "A bridge? Now").stdout
    assert f"report: {folders[2]}/r" in cli("runs", "resume", "../a bridge, now").stdout


def test_a_folder_is_quoted_where_that_is_needed(cli: CommandLine) -> None:
    assert "report: 'my files/report.html'\n" in cli(*line("--out", "my files", count=1)).stdout


@pytest.mark.slow
def test_files_are_there_also_where_nobody_reads_what_is_printed(cli: CommandLine) -> None:
    batch = cli.json(*line("--name", "before", count=1))
    for words, folder in (
        (line("--out", "one", count=1), "one"),
        (["simulate", "--continue", f"sim-{batch['run_id']}-1", "--out", "two"], "two"),
        (["play", "--model", "emulated/keeper", "--num-interactions", "2", "--out", "three"], "three"),
    ):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "groundswell", *words, "--store", str(cli.store)]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        os.close(writer)
        assert done.returncode == 0
        assert len(list(Path(folder).iterdir())) > 2, done.stderr


def test_json_is_the_summary_and_files_are_written_too(cli: CommandLine) -> None:
    found = cli.json(*line("--out", "mine"))
    assert found["trials"] == {"planned": 4, "usable": 4, "missing": 0}
    assert json.loads(Path("mine/analysis.json").read_bytes()) == found["analysis"]
    assert {path.name for path in Path("mine").iterdir()} == FILES


def test_settings_reach_the_batch(cli: CommandLine) -> None:
    more = [
        "--method",
        "narrator",
        "--style",
        "debate",
        "--language",
        "German",
        "--no-thoughts",
        "--temperature",
        "0.5",
    ]
    more += ["--reply-tokens", "77", "--order", "given", "--description", "why not"]
    found = cli.json(*line(*more))
    settings = cli.json("runs", "show", found["run_id"])["settings"]
    assert settings["rules"] == {
        "model": "emulated/keeper",
        "method": "narrator",
        "style": "debate",
        "language": "German",
        "thoughts": False,
        "temperature": 0.5,
        "max_tokens": 77,
    }
    assert (settings["order"], settings["description"]) == ("given", "why not")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("entities", "written"),
    [
        ("bob, ann", None),
        ("ids.json", ["bob", "ann"]),
        ("ids.json", {"entity_ids": ["bob", "ann"]}),
    ],
    ids=["commas", "list", "object"],
)
def test_entities_by_their_ids(cli: CommandLine, entities: str, written: Any) -> None:
    keep(cli.store, PEOPLE)
    Path("ids.json").write_text(json.dumps(written))
    found = cli.json(*line("--order", "given", entities=entities, count=1))
    settings = cli.json("runs", "show", found["run_id"])["settings"]
    assert [each["id"] for each in settings["entities"]] == ["bob", "ann"]
    assert settings["entities"][0]["attributes"] == {"age": 31, "town": "Rom"}


def test_entities_of_a_csv_file_and_ones_without_ids_are_the_same_every_time(cli: CommandLine) -> None:
    Path("people.csv").write_text("name,age,rich\nAnn,41,true\nBob,7,false\n")
    first = cli.json(*line(entities="people.csv", count=1))
    settings = cli.json("runs", "show", first["run_id"])["settings"]
    people = msgspec.convert(settings["entities"], list[Entity])
    assert [(each.id, each.name) for each in people] == [("entity-1", "Ann"), ("entity-2", "Bob")]
    assert people[0].attributes == {"age": 41, "rich": True}
    assert cli.json(*line(entities="people.csv", count=1))["run_id"] == first["run_id"]


def test_a_context_from_a_file(cli: CommandLine) -> None:
    Path("scene.txt").write_text("It is late.\nThe fire is low.\n")
    found = cli.json(*line(context="scene.txt", count=1))
    assert cli.json("runs", "show", found["run_id"])["settings"]["context"] == "It is late.\nThe fire is low."
    assert found["name"].startswith("it-is-late.-the-fire-is-low-")


def test_a_simulation_goes_on(cli: CommandLine) -> None:
    batch = cli.json(*line("--questions", "sheet.json", "--out", "mine", count=1))
    sim = f"sim-{batch['run_id']}-1"
    done = cli("simulate", "--continue", sim, "--n-turns", "2", "--out", "more")
    assert "continuing after 2 lines" in done.stderr
    (before,), (after,) = rows("mine/simulations.csv"), rows("more/simulations.csv")
    assert after["content"].startswith(before["content"])
    assert (after["entity_ids"], after["final_turn_number"], after["models"]) == (
        before["entity_ids"],
        "3",
        before["models"],
    )
    assert "2 earlier lines not shown." in done.stdout
    assert "now has 3 turns" in done.stdout
    assert len(rows("more/answers.csv")) == 6
    again = cli("simulate", "--continue", sim, "--n-turns", "2")
    assert re.search(rf"Run {sim}-continued-[0-9a-f]{{8}} already exists and is complete", again.stderr)
    third = cli.json("simulate", "--continue", after["id"], "--style", "debate", "--context", "And now?")
    assert third["analysis"]["turns"] == 4


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (line()[:1], "--entities is required; give comma-separated ids"),
        (line()[:3], "--context is required"),
        (line()[:5], "--interaction-size is required"),
        (line()[:7], "--num-simulations is required"),
        (line(count=16), "--num-simulations 16: 6 entities have only 15 different combinations of 2"),
        (
            line(size=6, count=3),
            "--num-simulations 3: 6 entities have only 1 different combination of 6; set it to at most 1, or set "
            "replicates to 3 to run",
        ),
        (line(size=7), "--interaction-size 7: must be from 1 to 6, the number of entities given"),
        (line(entities="gone.json"), "--entities gone.json: file not found"),
        (line(entities="ann,,bob"), "--entities: an id is empty"),
        (line(entities="ann,bob"), "--entities: store "),
        (line(context="gone.txt"), "--context gone.txt: file not found"),
        (line(context="  "), "--context is empty"),
        (line("--n-turns", "9999"), "--n-turns 9999: must be at most 200"),
        (line("--model", "emulated/echo"), "--model: 2 models given, only one is allowed"),
        (line("--questions", "gone.json"), "--questions gone.json: file not found"),
        (
            line("--questions", "people.json"),
            "--questions people.json: unknown field entities; choose from questions, before",
        ),
        (line("--by", "sex"), "--by: no entity has an attribute 'sex'; known attributes: age, town"),
        (line("--by", "age,age"), "--by: 'age' is listed twice"),
        (line("--out", "people.json"), "--out people.json"),
        (line("--name", "a\tb"), "--name 'a\\tb': must be 1 to 200 printable characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_told_by_its_flag(cli: CommandLine, words: list[str], said: str) -> None:
    assert f"error: {said}" in cli(*words, status=2).stderr
    assert not cli.store.exists()


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[1]", r"questions\[0\]: must be an object, and is a whole number"),
        ("[]", r"questions: 0 given \(the rows of a matrix count\); must be 1 to 200"),
        ("{", "not valid JSON|Input data was truncated"),
        ('[{"id": "a", "text": "b", "lowest": 1}]', r"questions\[0\]: unknown field lowest; choose from id, text"),
        ('[{"id": "a"}]', r"questions\[0\]: text is missing"),
        ('[{"id": "a", "text": "b", "low": "1"}]', r"questions\[0\].low: must be a whole number, and is text"),
        (
            '[{"id": "a", "text": "b", "type": "likert"}]',
            r"questions\[0\].type: unknown value 'likert'; choose from choice, multi, ranking, scale, number",
        ),
        ('[{"id": "a", "text": "b"}, {"id": "a", "text": "c"}]', "questions: the id 'a' is used twice"),
        ('[{"id": "a", "text": "b", "type": "choice"}]', "a choice question needs at least two"),
    ],
    ids=["number", "none", "broken", "field", "missing", "kind", "type", "twice", "options"],
)
def test_a_questionnaire_that_is_none(cli: CommandLine, written: str, said: str) -> None:
    Path("sheet.json").write_text(written)
    told = cli(*line("--questions", "sheet.json"), status=2).stderr
    assert re.search(f"error: --questions sheet.json: .*({said})", told), told


def test_ids_that_are_not_there_are_named(cli: CommandLine) -> None:
    keep(cli.store, PEOPLE[:1])
    told = cli(*line(entities="ann,zoe,yan"), status=2).stderr
    assert "error: --entities: no entities 'zoe', 'yan': list the entities with `groundswell entities list`" in told
    Path("ids.json").write_text('["ann", 1]')
    assert "ids and whole entities are mixed" in cli(*line(entities="ids.json"), status=2).stderr
    Path("ids.json").write_text('{"ids": ["ann"]}')
    assert "unknown field 'ids'; give ids as a plain list" in cli(*line(entities="ids.json"), status=2).stderr


def test_a_type_stands_for_all_its_entities(cli: CommandLine) -> None:
    cli("entities", "sample", "--type", "human", "--count", "4")
    cli("entities", "types", "add", "--template", "organization")
    assert "4 entities of type human in pairs: 6 combinations" in cli(*line("--estimate", entities="human")).stderr
    told = cli(*line(entities="humans,human-0-1,zoe"), status=2).stderr
    assert "no entities 'humans', 'zoe'; did you mean the entity type 'human'?" in told
    told = cli(*line(entities="organization"), status=2).stderr
    assert "--entities organization: this entity type has no entities yet; create some with" in told


def test_only_what_has_ended_goes_on_and_nobody_else_joins(cli: CommandLine) -> None:
    batch = cli.json(*line(count=1))
    sim = f"sim-{batch['run_id']}-1"
    assert "--order cannot be combined with" in cli("simulate", "--continue", sim, "--order", "given", status=2).stderr
    assert "--continue sim-x-1: no simulation has this id" in cli("simulate", "--continue", "sim-x-1", status=2).stderr
    beyond = cli("simulate", "--continue", f"sim-{batch['run_id']}-99", status=2).stderr
    assert f"-99: no simulation has this id; this run has {sim}\n" in beyond


def test_what_people_and_models_write_runs_nowhere(cli: CommandLine) -> None:
    nasty = {"id": "eve", "name": "=cmd()", "description": "<script>", "attributes": {"[red]x": "=1+1"}}
    Path("people.json").write_text(json.dumps({"entities": [nasty, {"id": "bob", "name": "<b onclick=x>Bob</b>"}]}))
    context = "<img src=x onerror=alert(1)> \x1b[31m red"
    told = cli(*line("--questions", "sheet.json", "--out", "mine", context=context, count=1)).stdout
    assert "\x1b[31m red" not in told
    page = Walked(Path("mine/report.html").read_text())
    assert page.well_formed
    assert not page.names & {"img", "b onclick"}
    assert not any(name.startswith("on") for _, of in page.elements for name in of)
    assert "<img src=x onerror=alert(1)> \\x1b[31m red" in page.text
    assert {each["messages"][0]["speaker"] for each in page.transcripts} <= {"=cmd()", "<b onclick=x>Bob</b>"}
    for path in Path("mine").glob("*.csv"):
        for row in rows(str(path)):
            assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values()), path


def test_an_estimate_sends_nothing_and_makes_no_store(cli: CommandLine) -> None:
    told = cli(*line("--estimate", "--questions", "sheet.json")).stdout
    assert "4 trials (estimate; nothing was sent)" in told
    assert not cli.store.exists()


def test_a_model_that_cannot_be_reached_is_told_before_anything_runs(cli: CommandLine) -> None:
    Path("people.json").write_text(json.dumps({"entities": [*PEOPLE[:2], {**PEOPLE[2], "model": "emulated/nobody"}]}))
    assert "emulated/nobody" in cli(*line(count=3), status=2).stderr
    assert cli.json("runs", "list")["runs"] == []


def test_few_entities_have_figures_and_no_intervals(cli: CommandLine) -> None:
    Path("people.json").write_text(json.dumps(PEOPLE[:3]))
    told = cli(*line("--questions", "sheet.json", count=3)).stdout
    assert re.search(r"^warm .*: mean \d\.\d\d \(no interval: fewer than 5 entities\) on", told, re.MULTILINE)
    assert "differ by" not in told
