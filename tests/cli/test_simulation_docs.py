"""docs/simulations.md: its tables and limits are true. Its commands are run by tests/docs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from groundswell.experiments.options import Place
from groundswell.experiments.simulations import analysis, batch, dimensions, questions, simulation
from groundswell.experiments.simulations.exporting import LINES
from groundswell.experiments.simulations.options import read_questions
from tests.cli.conftest import CommandLine

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "simulations.md").read_text()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")


def test_the_files_are_those_that_are_listed(cli: CommandLine) -> None:
    people = ("--entities", "examples/historical_figures.json", "--interaction-size", "1", "--num-simulations", "2")
    asked = ("--questions", "examples/bridge_questions.json", "--model", "emulated/person", "--name", "bridge")
    cli("simulate", *people, "--context", "A bridge", *asked)
    (row,) = re.findall(r"^\| `lines.csv`.*$", GUIDE, re.MULTILINE)
    for column in ("speech", "thought", "cut", "overrun"):
        assert column in row
        assert column in LINES
    listed = {
        name
        for names in re.findall(r"^\| (`(?:\w+\.\w+|figures)`.*?) \|", GUIDE, re.MULTILINE)
        for name in names.split(", ")
    }
    assert {f"`{path.name}`" for path in Path("results/bridge").iterdir()} == listed


def test_what_is_amiss_with_lines_is_explained() -> None:
    (told,) = re.findall(r"^\| count \|.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    fields = set(analysis.LineFigures.__struct_fields__) - {"count", "words_per_line"}
    assert set(re.findall(r"^\| `(\w+)`", told, re.MULTILINE)) == fields


def test_what_makes_groups_is_what_is_said() -> None:
    (told,) = re.findall(r"^Booleans and numbers form groups.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    assert f"more than {dimensions.MOST_NUMBERS} values" in told
    assert f"most {dimensions.MOST_TEXTS} values" in told


def test_the_questionnaires_are_valid(tmp_path: Path) -> None:
    shown, written = re.findall(r"```json[^\n]*\n(.*?)```", GUIDE, re.DOTALL)
    assert json.loads(shown) == json.loads((ROOT / "examples" / "bridge_questions.json").read_text())
    path = tmp_path / "sheet.json"
    path.write_text(written)
    found = read_questions(str(path), Place("--questions"))
    assert found.before
    assert [each.type for each in found.questions] == ["scale", "choice", "text"]
    assert json.loads(written)["questions"][0]["high"] == found.questions[0].high


def test_limits_are_what_is_said() -> None:
    (limits,) = re.findall(r"^## Limits\n(.*?)^## ", GUIDE, re.MULTILINE | re.DOTALL)
    for limit in (
        *(batch.MOST_ENTITIES, batch.MOST_TOGETHER, batch.MOST_SIMULATIONS),
        *(simulation.MOST_TURNS, simulation.MOST_ROUNDS, simulation.LONGEST_CONTEXT),
        questions.MOST_QUESTIONS,
    ):
        assert f" {limit:,} " in limits.replace("\n", " ")


def test_every_method_style_and_type_is_named() -> None:
    for word in ("speaker", "narrator", "discussion", "debate", "negotiation", "choice", "scale", "text", "solo"):
        assert re.search(rf"`(--method )?{word}`", GUIDE), word
