"""An evolution on a real model within this process, from end to end, with its report; and its questions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.local_model import MODEL, needs_model

import groundswell
from groundswell.experiments.prompt_evolution import read_problems

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import evolve_embedded  # noqa: E402

SMALL = (
    *("--train", "4", "--validation", "3", "--test", "5", "--async-batch-size", "2"),
    *("--population-size", "3", "--max-generations", "2", "--finalists", "1"),
)
FILES = (
    *("report.html", "best_prompt.txt", "analysis.json", "settings.json"),
    *(f"{name}.csv" for name in ("births", "curve", "tests")),
)
TIME = re.compile(r" +time ")
"""The line that another session changes: the others, with the number of asks, stay as they are."""


def typed(folder: Path) -> tuple[str, str]:
    """What the example prints in a folder, on either channel."""
    done = subprocess.run(
        [sys.executable, "examples/evolve_embedded.py", *SMALL],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(groundswell.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def test_no_question_gives_its_answer_away() -> None:
    problems = read_problems(evolve_embedded.TASK)
    assert len(problems) == 160
    assert [each for each in problems if each.answer.lower() in each.question.lower()] == []


@needs_model
@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_it_evolves_on_the_embedded_model_and_again_asks_nothing(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    out, err = typed(tmp_path)
    folder = tmp_path / "results" / "embedded-evolution"
    assert [name for name in FILES if not (folder / name).is_file()] == []
    assert list((folder / "figures").iterdir())
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["models"] == [MODEL]
    assert settings["problems"]["source"] == "examples/one_word.jsonl"
    analysis = (folder / "analysis.json").read_text()
    assert {each["name"]: each["n"] for each in json.loads(analysis)["tested"]} == {
        "seed": 5,
        "evolution": 5,
        "random": 5,
    }
    assert "No request was sent" not in err
    again, told = typed(tmp_path)
    assert "No request was sent" in told
    assert [line for line in again.splitlines() if not TIME.match(line)] == [
        line for line in out.splitlines() if not TIME.match(line)
    ]
    assert (folder / "analysis.json").read_text() == analysis
