"""docs/simulations.md: its commands are ones that there are, and print what stands below them; its limits are true."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from groundswell.experiments.options import Place
from groundswell.experiments.simulations import analysis, batch, dimensions, questions, simulation
from groundswell.experiments.simulations.exporting import LINES
from groundswell.experiments.simulations.options import read_questions
from tests.cli.conftest import CommandLine

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "simulations.md").read_text()
SHELL = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
SHOWN, CONTRASTED = re.findall(r"```\n(.*?)```", re.sub(r"```(sh|json)\n.*?```", "", GUIDE, flags=re.DOTALL), re.DOTALL)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "examples").symlink_to(ROOT / "examples")


def commands() -> list[str]:
    lines = [line.partition("  #")[0].strip() for block in SHELL for line in block.splitlines()]
    return [line for line in lines if line.startswith("groundswell simulate --entities examples/")]


def named(name: str) -> list[str]:
    """The words of the command that makes a batch."""
    (command,) = [line for line in commands() if line.endswith(f"--name {name}")]
    return shlex.split(command)[1:]


def test_what_is_shown_is_what_is_printed(cli: CommandLine) -> None:
    done = cli(*named("ethics"))
    assert SHOWN.strip() in done.stdout
    (announced,) = re.findall(r"it says `(.*?)`", GUIDE)
    assert announced in done.stderr
    (row,) = re.findall(r"^\| `lines.csv`.*$", GUIDE, re.MULTILINE)
    for column in ("speech", "thought", "cut", "overrun"):
        assert column in row
        assert column in LINES
    listed = {
        name
        for names in re.findall(r"^\| (`(?:\w+\.\w+|figures)`.*?) \|", GUIDE, re.MULTILINE)
        for name in names.split(", ")
    }
    assert {f"`{path.name}`" for path in Path("results/ethics").iterdir()} == listed


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one_that_there_is(command: str, cli: CommandLine) -> None:
    words = [word for word in shlex.split(command)[1:] if word != "--estimate"]
    assert cli(*words, "--estimate").exit_code == 0


@pytest.mark.slow
def test_two_batches_differ_as_shown(cli: CommandLine) -> None:
    for name in ("ethics", "alone"):
        cli(*named(name))
    (compared,) = [line for block in SHELL for line in block.splitlines() if line.startswith("groundswell contrast")]
    assert cli(*shlex.split(compared)[1:]).stdout.startswith(CONTRASTED.strip())


def test_what_is_amiss_with_lines_is_explained() -> None:
    (told,) = re.findall(r"^\| count \|.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    fields = set(analysis.LineFigures.__struct_fields__) - {"count", "words_per_line"}
    assert set(re.findall(r"^\| `(\w+)`", told, re.MULTILINE)) == fields


def test_what_makes_groups_is_what_is_said() -> None:
    (told,) = re.findall(r"^Booleans and numbers make groups.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    assert f"more than {dimensions.MOST_NUMBERS} values" in told
    assert f"at most {dimensions.MOST_TEXTS} values" in told


def test_people_drawn_from_a_template_talk(cli: CommandLine) -> None:
    (block,) = [block for block in SHELL if "entities export" in block]
    *made, command = block.splitlines()
    for each in made:
        cli(*shlex.split(each)[1:])
    assert cli.json(*shlex.split(command)[1:])["trials"] == {"planned": 10, "usable": 10, "missing": 0}


def test_the_original_command_works_with_what_is_made_for_it(cli: CommandLine) -> None:
    (block,) = [block for block in SHELL if "run_batch_simulation.py" in block]
    sample, echo, command = map(shlex.split, block.splitlines())
    cli(*sample[1:])
    assert (echo[0], echo[2:]) == ("echo", [">", "entity_ids.json"])
    Path("entity_ids.json").write_text(echo[1])
    assert command[:2] == ["python3", "examples/run_batch_simulation.py"]
    done = cli.json("simulate", *command[2:], "--model", "emulated/gpt-4o-mini")
    assert done["trials"] == {"planned": 3, "usable": 3, "missing": 0}


def test_one_that_has_ended_goes_on_as_shown(cli: CommandLine) -> None:
    found = cli.json(*named("ethics"))
    (going_on,) = [line for block in SHELL for line in block.splitlines() if "--continue" in line]
    done = cli.json(*shlex.split(going_on.replace("sim-RUN-1", f"sim-{found['run_id']}-1"))[1:])
    assert done["analysis"]["turns"] == 3


def test_the_questionnaire_is_one(tmp_path: Path) -> None:
    (written,) = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
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
