"""All four experiments with workers as processes: their analysis is that of one process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.stores import new_database

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPERIMENTS = {
    "play": "play --model emulated/leaker:0.5 --interactions 30 --messages 4",
    "simulate": f"simulate --entities {EXAMPLES}/historical_figures.json --interaction-size 2 --num-simulations 12 "
    f"--n-turns 2 --context bridge --questions {EXAMPLES}/bridge_questions.json --model emulated/gpt-4o-mini",
    "mutate": "mutate train --num-env-steps 64 --num-processes 4 --num-steps 8 --baselines random --eval-episodes 2",
    "evolve": "evolve --model emulated/gpt-4o-mini --population-size 4 --max-generations 2 --train 8 --validation 8 "
    "--test 8",
}


def analysis(words: str, store: str, folder: Path, *how: str) -> Any:
    """What a command finds."""
    given = [*words.split(), "--store", store, "--json", "--no-cache", "--name", "run", "--out", str(folder / "out")]
    command = [sys.executable, "-m", "groundswell", *given, *how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode(done.stdout)
    return found["analysis"], found["trials"]


@cache
def alone(name: str, folder: Path) -> Any:
    """What one process finds."""
    return analysis(EXPERIMENTS[name], str(folder / f"{name}.db"), folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experiments")


@pytest.mark.parametrize(
    "workers",
    [2, pytest.param(1, marks=pytest.mark.campaign), pytest.param(4, marks=pytest.mark.campaign)],
)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_finds_the_same_with_workers(folder: Path, tmp_path: Path, name: str, workers: int) -> None:
    found = analysis(EXPERIMENTS[name], new_database(), tmp_path, "--workers", str(workers))
    assert found == alone(name, folder)


@pytest.fixture
def ray() -> Iterator[None]:
    """A Ray cluster on this machine. No two tests may use it at a time."""
    command = [sys.executable, "-m", "groundswell", "cluster"]
    subprocess.run([*command, "up", "--workers", "2"], check=True, capture_output=True)
    yield
    subprocess.run([*command, "down"], check=True, capture_output=True)


@pytest.mark.campaign
def test_all_experiments_find_the_same_on_ray(folder: Path, tmp_path: Path, ray: None) -> None:
    for name, words in EXPERIMENTS.items():
        found = analysis(words, new_database(), tmp_path / name, "--cluster", "ray", "--workers", "2")
        assert found == alone(name, folder)
