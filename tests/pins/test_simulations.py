"""`simulate`, `contrast` and `entities`: the objects that they print and the files that they write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pins.conftest import CommandLine
from tests.pins.expectations import check
from tests.pins.folders import content, contents
from tests.pins.shapes import shape

PEOPLE = [
    {"id": name.lower(), "name": name, "attributes": {"age": 30 + at, "town": ("Ulm", "Rom")[at % 2]}}
    for at, name in enumerate(["Ann", "Bob", "Cleo", "Dan", "Eve", "Fred"])
]
QUESTIONS = [
    {"id": "agree", "text": "Do you agree?", "type": "choice", "options": ["yes", "no"]},
    {"id": "warm", "text": "How warm was it?", "type": "scale"},
    {"id": "why", "text": "Why?"},
]


@pytest.fixture(autouse=True)
def _files(cli: CommandLine) -> None:
    Path("people.json").write_text(json.dumps({"entities": PEOPLE}))
    Path("sheet.json").write_text(json.dumps({"questions": QUESTIONS, "before": True}))


def simulate(size: int, name: str) -> list[str]:
    """The words of a small batch with a questionnaire."""
    words = ["simulate", "--entities", "people.json", "--context", "A talk.", "--interaction-size", str(size)]
    words += ["--num-simulations", "6", "--questions", "sheet.json", "--by", "town"]
    return [*words, "--model", "emulated/keeper", "--name", name, "--out", name]


def test_batches_their_folders_and_their_contrast(cli: CommandLine) -> None:
    pairs = cli.json(*simulate(2, "pairs"))
    cli.json(*simulate(1, "alone"))
    contrast = cli.json("contrast", "pairs", "alone", "--by", "town")
    check(
        {
            "json/simulate.txt": shape(pairs, ("models",)),
            "folders/simulate.txt": contents(Path("pairs")),
            "json/contrast.txt": shape(contrast, ("contrast.differ", "contrast.left_out")),
        }
    )


def test_entities_and_their_types(cli: CommandLine) -> None:
    found = {
        "types-add": cli.json("entities", "types", "add", "--template", "human"),
        "types-list": cli.json("entities", "types", "list"),
        "types-show": cli.json("entities", "types", "show", "human"),
        "templates": cli.json("entities", "templates"),
        "templates-one": cli.json("entities", "templates", "human"),
        "sample": cli.json("entities", "sample", "--type", "human", "--count", "2"),
        "add": cli.json("entities", "add", "--name", "Ada", "--attribute", "age=34", "--id", "ada"),
        "list": cli.json("entities", "list"),
        "show": cli.json("entities", "show", "ada"),
        "import": cli.json("entities", "import", "people.json"),
        "export": cli.json("entities", "export", "all.csv"),
    }
    cli("entities", "export", "all.json")
    described = cli.json("entities", "types", "show", "human")
    Path("human.json").write_text(json.dumps(described))
    found["types-change"] = cli.json("entities", "types", "change", "human.json")
    found["delete"] = cli.json("entities", "delete", "ada", "--yes")
    found["types-delete"] = cli.json("entities", "types", "delete", "human", "--with-entities", "--yes")
    shapes = {f"json/entities-{name}.txt": shape(value) for name, value in found.items()}
    files = {f"folders/entities-{name}.txt": content(Path(f"all.{name}")) for name in ("csv", "json")}
    check({**shapes, **files})


def test_entities_that_a_model_writes(cli: CommandLine) -> None:
    words = ("--type", "human", "--count", "2", "--model", "emulated/keeper", "--name", "written")
    cli("entities", "types", "add", "--template", "human")
    written = cli.json("entities", "write", *words)
    kept = cli.json("entities", "keep", "written")
    check({"json/entities-write.txt": shape(written, ("models",)), "json/entities-keep.txt": shape(kept)})
