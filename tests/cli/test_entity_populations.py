"""`groundswell entities`: survey microdata, and implausible entities."""

from __future__ import annotations

from pathlib import Path

from statsmodels.datasets import anes96  # type: ignore[import-untyped]

from tests.cli.conftest import CommandLine
from tests.experiments.simulations.test_microdata import CODEBOOK


def test_a_survey_on_the_command_line(cli: CommandLine, tmp_path: Path) -> None:
    data, book = tmp_path / "anes 96.csv", tmp_path / "book.toml"
    survey = anes96.load_pandas().data
    survey.assign(weight=1.0 + (survey["age"] < 35)).to_csv(data, index=False)
    book.write_text(CODEBOOK)
    words = ("entities", "import", str(data), "--microdata", "--codebook", str(book))
    brought = cli.json(*words, "--count", "40", "--seed", "3")
    assert (brought["types_added"], brought["added"], brought["implausible"]) == (1, 40, 0)
    people = cli.json("entities", "list")["entities"]
    assert people[0]["id"] == "anes-96-3-1"
    assert people[0]["attributes"].keys() <= {"age", "education", "vote", "TVnews"}
    assert cli.json(*words, "--count", "5", "--seed", "4")["types_added"] == 0, "the same type is used again"
    assert "source: American National" in cli("entities", "types", "show", "anes-96").stdout
    learned = cli.json("entities", "types", "learn", words[2], "--columns", "age,vote", "--id", "learned")
    assert {each["name"] for each in learned["dimensions"]} == {"age", "vote"}
    cli("entities", "sample", "--type", "learned", "--count", "3")
    assert "--microdata" in cli("entities", "import", words[2], "--columns", "age", status=2).stderr
    assert "--count" in cli("entities", "import", words[2], "--microdata", "--weight", "weight", status=2).stderr


def test_implausible_entities_are_listed_on_the_command_line(cli: CommandLine) -> None:
    cli("entities", "sample", "--type", "human", "--count", "5")
    assert "0 of 5 entities are implausible" in cli("entities", "check").stdout
    words = ("--id", "odd", "--type", "human", "--attribute", "gender=man", "--attribute", "age=30")
    assert "1 entity is implausible" in cli("entities", "add", "--name", "Astrid Haugland", *words).stderr
    shown = cli("entities", "check", "--type", "human").stdout
    assert "odd  Astrid Haugland: Astrid is the name of a woman, but gender is man" in shown
    assert "1 of 6 entities is implausible" in shown
    assert cli.json("entities", "check", "odd", "human-0-1") == {
        "checked": 2,
        "implausible": [
            {"id": "odd", "name": "Astrid Haugland", "reasons": ["Astrid is the name of a woman, but gender is man"]}
        ],
    }
    assert "no entity 'ghost'" in cli("entities", "check", "ghost", status=1).stderr
