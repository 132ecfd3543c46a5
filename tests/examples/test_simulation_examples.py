"""The command line of the description of batch simulations, and its scenario, as they stand there."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.local_model import needs_model

import groundswell
from groundswell.store.journal import Store

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import historical_figures  # noqa: E402

DOCUMENTED = r"""
python3 examples/run_batch_simulation.py \
    --entities "entity_ids.json" \
    --context "A panel discussion about climate change solutions" \
    --interaction-size 2 \
    --num-simulations 3 \
    --name "Climate Change Discussions" \
    --description "Testing how different entities discuss climate solutions" \
    --n-turns 2 \
    --simulation-rounds 1
"""
PATIENCE = 3000.0
"""Seconds: a few minutes on a laptop that has nothing else to do, and many times that on a busy machine."""


class Place:
    """A folder that has the examples where a checkout has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "examples").symlink_to(ROOT / "examples")

    def __call__(self, command: str) -> tuple[str, str]:
        """What a line typed into a shell prints, on either channel."""
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "GROUNDSWELL_STORE")}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**kept, "PATH": path, "PYTHONPATH": str(Path(groundswell.__file__).parents[1])},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


@pytest.mark.slow
def test_the_documented_command(place: Place) -> None:
    ids = [f"entity-id-{number}" for number in range(1, 5)]
    store = Store(place.folder / "groundswell.db")
    store.documents.add(*(("entity", each, json.dumps({"id": each, "name": each.title()})) for each in ids))
    store.close_reading()
    (place.folder / "entity_ids.json").write_text(json.dumps(ids))
    (place.folder / "groundswell.toml").write_text('[models]\ndefault = "emulated/keeper"\n')
    out, err = place(DOCUMENTED)
    assert "4 entities in pairs: 6 combinations, 3 of them drawn" in err
    folder = place.folder / "results" / "climate-change-discussions"
    found = json.loads((folder / "simulations.json").read_bytes())
    assert [(each["condition"], each["final_turn_number"]) for each in found] == [("Climate Change Discussions", 2)] * 3
    assert "Testing how different entities discuss climate solutions" in (folder / "report.html").read_text()
    assert "results/climate-change-discussions/report.html" in out
    assert "No request was sent" in place(DOCUMENTED)[1]


def test_it_takes_every_documented_option() -> None:
    flags = {word for word in shlex.split(DOCUMENTED.replace("\\\n", " ")) if word.startswith("--")}
    assert len(flags) == 8


@pytest.mark.slow
def test_ten_figures_and_twenty_of_their_pairs(place: Place) -> None:
    out, err = place("python examples/historical_figures.py --model emulated/keeper")
    assert "10 entities in pairs: 45 combinations, 20 of them drawn" in err
    assert "20 usable of 20 planned" in out
    assert "40 of 40 answered" in out
    assert re.search(r"^question +option +answers +share *$", out, re.MULTILINE)
    (folder,) = (place.folder / "results").iterdir()
    pairs = [row["entity_ids"] for row in rows(folder / "simulations.csv")]
    assert len({frozenset(pair.split("; ")) for pair in pairs}) == 20
    assert {row["attribute.region"] for row in rows(folder / "answers.csv")} == {"Europe", "Asia", "Africa", "Americas"}


def test_speeches_are_short_on_the_model_of_this_machine() -> None:
    words = historical_figures.command(historical_figures.parse_options([]))
    assert words[words.index("--reply-tokens") + 1] == str(historical_figures.LOCAL_WORDS)
    assert "--model" not in words
    elsewhere = historical_figures.command(historical_figures.parse_options(["--model", "openai/gpt-4o-mini"]))
    assert "--no-thoughts" not in elsewhere
    assert elsewhere[-2:] == ["--model", "openai/gpt-4o-mini"]


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@needs_model
def test_the_figures_talk_on_the_model_of_this_machine(place: Place) -> None:
    out, _ = place("python examples/historical_figures.py")
    assert "20 usable of 20 planned" in out
    (folder,) = (place.folder / "results").iterdir()
    said = [row["speech"] for row in rows(folder / "lines.csv")]
    assert len(said) == 40
    assert sum(bool(speech) for speech in said) >= 38
    answers = rows(folder / "answers.csv")
    assert sum(bool(row["value"]) for row in answers) >= 0.9 * len(answers)
