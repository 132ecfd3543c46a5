"""`groundswell contrast`: how batches are named, what is told of two, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

PEOPLE = [
    {"id": name.lower(), "name": name, "attributes": {"parent": at % 2 == 0, "motto": f"motto {at}"}}
    for at, name in enumerate(["Ann", "Bob", "Cleo", "Dan", "Eve", "Fred", "Gil", "Hal", "Ida", "Jo"])
]
SHEET = [
    {"id": "agree", "text": "Do you agree?", "type": "choice", "options": ["yes", "no"]},
    {"id": "warm", "text": "How warm was it?", "type": "scale"},
    {"id": "why", "text": "Why?"},
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)
    Path("people.json").write_text(json.dumps(PEOPLE))
    Path("sheet.json").write_text(json.dumps({"questions": SHEET, "before": True}))


def simulated(cli: CommandLine, name: str, size: int, *more: str) -> str:
    """A batch; returns the id of its run."""
    words = ["simulate", "--entities", "people.json", "--context", "A talk", "--interaction-size", str(size)]
    words += ["--num-simulations", "10", "--model", "emulated/keeper", "--questions", "sheet.json", "--name", name]
    return str(cli.json(*words, *more)["run_id"])


@pytest.mark.slow
def test_methods_are_compared_in_the_same_combinations(cli: CommandLine) -> None:
    first = simulated(cli, "spoken", 2)
    simulated(cli, "narrated", 2, "--method", "narrator")
    told = cli("contrast", "spoken", "narrated").stdout
    assert told.startswith("spoken minus narrated\n  method: speaker and narrator\n  entities: 10 and 10, 10 in both\n")
    assert (
        told.count("paired by simulation: 20 pairs of answers by the same entity in the same combination and replicate")
        == 2
    )
    heads = r"^spoken +narrated +difference \(95% interval\) +in the change\n +\d\.\d\d +\d\.\d\d +[+−]?\d\.\d\d "
    assert re.search(heads, told, re.MULTILINE)
    assert re.search(r"^option +spoken +narrated +difference", told, re.MULTILINE)
    assert "why was left out: free text cannot be compared" in told
    for name in (first, f"batch-{first}"):
        assert cli("contrast", name, "narrated").stdout == told


@pytest.mark.slow
def test_alone_and_in_pairs_by_what_was_named(cli: CommandLine) -> None:
    alone, pairs = simulated(cli, "alone", 1), simulated(cli, "pairs", 2, "--by", "parent")
    told = cli("contrast", "alone", "pairs", "--by", "motto").stdout
    assert "interaction_size: 1 and 2" in told
    assert re.search(r"^paired by entity: \d+ entities that answered in both batches", told, re.MULTILINE)
    assert len(re.findall(r"^by parent: .* \(p = [\d.]+; Holm-adjusted p = [\d.]+, 1 test\)$", told, re.MULTILINE)) == 2
    assert re.search(r"^parent +entities +alone +pairs +difference .* less that of the others$", told, re.MULTILINE)
    assert "by motto: no breakdown: its values" in told
    found = cli.json("contrast", "alone", "pairs")
    assert (found["run"], found["other_run"]) == (alone, pairs)
    assert [each["pairing"] for each in found["contrast"]["questions"]] == ["entity", "entity"]
    assert found["contrast"]["differ"] == {"interaction_size": [1, 2]}


@pytest.mark.slow
def test_what_cannot_be_compared_is_refused(cli: CommandLine) -> None:
    simulated(cli, "one", 1)
    Path("sheet.json").write_text(json.dumps(SHEET[2:]))
    simulated(cli, "other", 1)
    assert (
        "one and one are the same batch; give two different batches" in cli("contrast", "one", "one", status=2).stderr
    )
    assert "error: no run 'gone'" in cli("contrast", "one", "gone", status=1).stderr
    told = cli("contrast", "one", "other", status=2).stderr
    assert "the two batches have no question that can be compared: agree: the second batch does not" in told
    sim = cli.json("runs", "show", "one")["run_id"]
    single = cli.json("simulate", "--continue", f"sim-{sim}-1")["run_id"]
    assert f"{single} is not a simulation batch" in cli("contrast", "one", single, status=2).stderr


@pytest.mark.slow
def test_an_attribute_that_nobody_has_is_told_by_its_flag(cli: CommandLine) -> None:
    simulated(cli, "one", 1)
    simulated(cli, "other", 1, "--method", "narrator")
    told = cli("contrast", "one", "other", "--by", "parent,sex", status=2).stderr
    assert told == "error: --by: no entity has an attribute 'sex'\n"
