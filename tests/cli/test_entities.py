"""`groundswell entities`: from nothing to a file and back; and that its guide is true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from groundswell.experiments.simulations.templates import template
from tests.cli.conftest import CommandLine

GUIDE = (Path(__file__).parents[2] / "docs" / "entities.md").read_text()


@pytest.fixture
def people(cli: CommandLine) -> CommandLine:
    cli("entities", "sample", "--type", "human", "--count", "3", "--seed", "7")
    return cli


def ids(cli: CommandLine, *words: str) -> list[str]:
    return [entity["id"] for entity in cli.json("entities", "list", *words)["entities"]]


def test_an_empty_store_says_what_to_do_and_is_not_made(cli: CommandLine) -> None:
    shown = cli("entities", "list").stdout
    assert "groundswell entities sample --type human --count 10" in shown
    assert "groundswell entities import FILE.csv" in shown
    assert "types add --template human" in cli("entities", "types", "list").stdout
    assert cli.json("entities", "list") == {"total": 0, "entities": []}
    assert cli.json("entities", "types", "list") == {"total": 0, "types": [], "entities": {}}
    assert not cli.store.exists()


def test_sampled_entities_are_listed_and_shown(people: CommandLine) -> None:
    assert ids(people) == ["human-7-1", "human-7-2", "human-7-3"]
    assert ids(people, "--limit", "1", "--offset", "1") == ["human-7-2"]
    shown = people("entities", "list", "--limit", "2")
    assert "human-7-2" in shown.stdout
    assert "2 of 3" in shown.stderr
    entity = people.json("entities", "show", "human-7-3")
    assert entity["name"] in people("entities", "show", "human-7-3").stdout
    assert entity["attributes"].keys() == {each.name for each in template("human").dimensions} - {"background"}


def test_samples_go_on_and_do_not_repeat(people: CommandLine) -> None:
    again = people("entities", "sample", "--type", "human", "--count", "3", "--seed", "7", status=1)
    assert "use another --seed, or continue with --first 4" in again.stderr
    more = people("entities", "sample", "--type", "human", "--count", "9", "--seed", "7", status=1)
    assert "continue with --first 4 " in more.stderr
    added = people.json("entities", "sample", "--type", "human", "--count", "2", "--seed", "7", "--first", "4")
    assert [entity["id"] for entity in added["entities"]] == ["human-7-4", "human-7-5"]
    assert people.json("entities", "types", "list")["entities"] == {"human": 5}


def test_an_entity_by_hand(cli: CommandLine) -> None:
    words = ("--name", "Ada", "--id", "ada", "--description", "Keeps bees.", "--model", "emulated/keeper")
    values = ("--attribute", "age=34", "--attribute", "urban=true", "--attribute", "background=12")
    cli("entities", "add", *words, "--type", "human", *values)
    assert cli.json("entities", "show", "ada") == {
        "id": "ada",
        "name": "Ada",
        "description": "Keeps bees.",
        "attributes": {"age": 34, "urban": True, "background": "12"},
        "entity_type_id": "human",
        "model": "emulated/keeper",
    }
    shown = cli("entities", "show", "ada").stdout
    for text in ("Ada  (ada)", "Keeps bees.", "emulated/keeper", "age: 34", "urban: true"):
        assert text in shown
    made = cli.json("entities", "add", "--name", "Bo", "--attribute", "x=0.5")
    assert made["id"].startswith("entity-")
    assert made["attributes"] == {"x": 0.5}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("add", "--name", "A", "--type", "human", "--attribute", "age=3"), 2, "attributes.age: 3 is not from 18"),
        (("add", "--name", "A", "--attribute", "age"), 2, "--attribute age: write it as NAME=VALUE"),
        (("add", "--name", "A", "--type", "ghost"), 1, "no entity type 'ghost'"),
        (("add", "--name", "A", "--id", "human-7-1"), 1, "'human-7-1' already exists"),
        (("add", "--name", " "), 2, "name ' '"),
        (("show", "ghost"), 1, "no entity 'ghost'"),
        (("delete", "human-7-1", "ghost", "--yes"), 1, "no entity 'ghost'"),
        (("delete", "ghost"), 1, "no entity 'ghost'"),
        (("types", "delete", "ghost"), 1, "no entity type 'ghost'"),
        (("list", "--type", "humna"), 1, "no entity type 'humna'; the store has 'human'"),
        (("types", "show", "ghost"), 1, "no entity type 'ghost'"),
        (("types", "add"), 2, "either FILE.json or --template NAME"),
        (("types", "add", "--template", "ghost"), 2, "must be one of fantasy_character, human, organization"),
        (("types", "add", "--template", "human"), 1, "'human' already.*groundswell entities types change FILE.json"),
        (("types", "delete", "human", "--yes"), 2, "3 entities have this type.*--with-entities"),
        (("export", "x.txt"), 2, "x.txt: unknown file extension.*--format"),
        (("export", "-", "--format", "csv", "--json"), 2, "--json"),
        (("import", "nowhere.csv"), 2, "nowhere.csv: No such file"),
        (("templates", "ghost"), 2, "template 'ghost'"),
        (("write", "--type", "ghost", "--model", "emulated/keeper"), 1, "no entity type 'ghost'"),
        (("write", "--type", "human", "--model", "a,b"), 2, "--model: 2 models given, only one is allowed"),
        (("keep", "ghost"), 1, "ghost"),
    ],
)
def test_mistakes_are_told(people: CommandLine, words: tuple[str, ...], status: int, message: str) -> None:
    assert re.search(message, people("entities", *words, status=status).stderr)
    assert len(ids(people)) == 3


def test_what_others_wrote_does_nothing_to_the_terminal(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(json.dumps([{"id": "e", "name": "[red]E", "description": "\x1b[2J[b]x[/b]"}]))
    cli("entities", "import", str(tmp_path / "e.json"))
    for shown in (cli("entities", "list").stdout, cli("entities", "show", "e").stdout):
        assert "[red]E" in shown
        assert "\x1b" not in shown
        assert "\\x1b[2J[b]x[/b]" in shown


def test_types_come_and_go(people: CommandLine, tmp_path: Path) -> None:
    block = re.search(r"```json[^\n]*\n(.*?)```", GUIDE, re.DOTALL)
    assert block is not None
    (tmp_path / "shopper.json").write_text(block[1])
    people("entities", "types", "add", str(tmp_path / "shopper.json"))
    people("entities", "types", "add", "--template", "human", "--id", "people")
    listed = people.json("entities", "types", "list")
    assert [each["id"] for each in listed["types"]] == ["human", "shopper", "people"]
    shown = people("entities", "types", "show", "shopper").stdout
    for text in ("16 to 90, normal", "0 to 1, uniform", "cash, card", "true for 40%", "written by a model"):
        assert text in shown
    assert "shopper" in people("entities", "types", "list").stdout
    people("entities", "types", "delete", "shopper", "--yes")
    gone = people.json("entities", "types", "delete", "human", "--with-entities", "--yes")
    assert gone == {"deleted": "human", "entities": 3}
    assert ids(people) == []


def test_a_type_is_changed_where_its_entities_still_fit(people: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "human.json"
    human = people.json("entities", "types", "show", "human")
    file.write_text(json.dumps(human | {"name": "Person", "person_names": None}))
    done = people("entities", "types", "change", str(file))
    assert done.stdout.startswith("Changed human: Person, ")
    assert "Sampled entities will be called Person 1, Person 2 and so on" in done.stderr
    assert people.json("entities", "types", "show", "human")["name"] == "Person"
    file.write_text(json.dumps(human | {"dimensions": [], "checks": [], "person_names": None}))
    assert "would no longer conform" in people("entities", "types", "change", str(file), status=2).stderr
    file.write_text(json.dumps(human | {"id": "ghost"}))
    assert "no entity type 'ghost'" in people("entities", "types", "change", str(file), status=1).stderr
    file.write_text(json.dumps({"name": "Person"}))
    assert "human.json: id is missing" in people("entities", "types", "change", str(file), status=2).stderr


def test_a_conflict_names_a_few_ids_and_counts_the_rest(cli: CommandLine, tmp_path: Path) -> None:
    cli("entities", "sample", "--type", "human", "--count", "16")
    cli("entities", "export", str(tmp_path / "e.csv"))
    told = cli("entities", "import", str(tmp_path / "e.csv"), status=1).stderr
    assert "'human-0-5' and 11 more already exist" in told
    assert "human-0-6" not in told


def test_nothing_is_removed_unasked(people: CommandLine) -> None:
    people("entities", "delete", "human-7-1", answer="n\n", status=1)
    people("entities", "types", "delete", "human", "--with-entities", answer="n\n", status=1)
    assert len(ids(people)) == 3
    people("entities", "delete", "human-7-1", "human-7-2", answer="y\n")
    assert ids(people) == ["human-7-3"]


def test_templates_are_shown(cli: CommandLine) -> None:
    assert "fantasy_character" in cli("entities", "templates").stdout
    assert "political_leaning" in cli("entities", "templates", "human").stdout
    assert [each["id"] for each in cli.json("entities", "templates")["templates"]] == [
        "fantasy_character",
        "human",
        "organization",
    ]


def test_entities_are_written_once_however_often_that_is_said(cli: CommandLine) -> None:
    words = (
        "entities",
        "write",
        "--type",
        "human",
        "--count",
        "4",
        "--model",
        "emulated/keeper",
        "--wishes",
        "Sailors.",
    )
    first = cli(*words)
    assert "4 entities" in first.stdout
    assert "entities list --type human" in first.stderr
    made = ids(cli)
    assert len(made) == 4
    assert "0 entities, 4 added earlier" in cli(*words).stdout
    assert ids(cli) == made
    other = cli.json(*words, "--seed", "1")
    assert other["analysis"]["usable"] == 4
    assert len(ids(cli)) == 8
    run = other["run_id"]
    assert cli.json("entities", "keep", run) == {"run_id": run, "total": 0, "entities": []}


def test_a_run_that_wrote_nothing_has_nothing_to_keep(cli: CommandLine) -> None:
    run = cli.run()["run_id"]
    assert "is not a completed" in cli("entities", "keep", run, status=1).stderr


def test_what_a_resumed_run_wrote_is_kept_by_hand(cli: CommandLine) -> None:
    words = ("entities", "write", "--type", "organization", "--count", "6", "--model", "emulated/keeper", "--name", "w")
    cli(*words, "--max-calls", "2", "--max-concurrent", "1", status=3)
    before = len(ids(cli))
    assert before < 6
    cli.json("runs", "resume", "w", "--max-calls", "100")
    assert cli.json("entities", "keep", "w")["total"] == 6 - before
    assert len(ids(cli)) == 6


def test_an_estimate_makes_nothing(cli: CommandLine) -> None:
    found = cli.json("entities", "write", "--type", "human", "--model", "openai/gpt-4o-mini", "--estimate")
    assert found["trials"] == [10, 10]
    assert not cli.store.exists()
    cli("entities", "add", "--name", "A")
    cli("entities", "write", "--type", "human", "--model", "openai/gpt-4o-mini", "--estimate")
    assert cli.json("entities", "types", "list")["total"] == 0


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_file_brings_entities_back(people: CommandLine, tmp_path: Path, form: str) -> None:
    people("entities", "add", "--name", "=HYPER()", "--id", "bad", "--description", 'a,"b"\r\nc')
    before = people.json("entities", "list")
    file = str(tmp_path / f"people.{form}")
    told = people.json("entities", "export", file)
    assert told == {"output": file, "format": form, "entities": 4, "types": 1 if form == "json" else 0}
    assert "--on-conflict" in people("entities", "import", file, status=1).stderr
    people("entities", "delete", "human-7-2", "bad", "--yes")
    brought = people.json("entities", "import", file, "--on-conflict", "skip")
    assert (brought["added"], brought["skipped"]) == (2, 2)
    people("entities", "import", file, "--on-conflict", "replace")
    key: Any = lambda entity: entity["id"]  # noqa: E731
    assert sorted(people.json("entities", "list")["entities"], key=key) == sorted(before["entities"], key=key)


def test_an_export_goes_to_standard_output_too(people: CommandLine) -> None:
    shown = people("entities", "export", "-", "--format", "csv", "--type", "human").stdout
    assert shown.startswith("id,entity_type_id,name,description,model,age")
    assert len(shown.splitlines()) == 4
    held = json.loads(people("entities", "export", "-", "--format", "json").stdout)
    assert (len(held["entities"]), held["entity_types"][0]["id"]) == (3, "human")


def test_an_import_is_all_or_nothing(people: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("name,entity_type_id,age\nAnn,human,30\nBob,human,300\n")
    wrong = people("entities", "import", str(tmp_path / "e.csv"), status=2)
    assert "e.csv, row 3, column 'age': 300 is not from 18 to 90" in wrong.stderr
    (tmp_path / "e.csv").write_bytes(b"name\nAnn \xe9\n")
    assert "byte 9 is not UTF-8" in people("entities", "import", str(tmp_path / "e.csv"), status=2).stderr
    assert len(ids(people)) == 3
