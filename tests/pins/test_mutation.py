"""`mutate`: the objects that its commands print and the folders that they write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pins.conftest import CommandLine
from tests.pins.expectations import check
from tests.pins.folders import contents
from tests.pins.shapes import shape

SHORT = (
    *("--num-processes", "2", "--num-steps", "4", "--num-env-steps", "8", "--eval-episodes", "1"),
    *("--max-steps", "2", "--hidden", "4", "--ppo-epoch", "1", "--num-mini-batch", "1"),
)
MAPPINGS = ("models",)


def test_a_training_and_its_folder(cli: CommandLine) -> None:
    trained = cli.json("mutate", "train", *SHORT, "--name", "training", "--out", "training")
    check(
        {
            "json/mutate-train.txt": shape(trained, MAPPINGS),
            "folders/mutate-train.txt": contents(Path("training")),
        }
    )


@pytest.mark.slow
def test_an_evaluation_and_a_report_of_two_trainings(cli: CommandLine) -> None:
    for seed in ("0", "1"):
        cli("mutate", "train", *SHORT, "--name", f"training-{seed}", "--seed", seed)
    evaluated = cli.json("mutate", "evaluate", "training-0", "--episodes", "1", "--name", "again", "--out", "again")
    report = cli.json("mutate", "report", "training-0", "training-1", "--out", "both")
    check(
        {
            "json/mutate-evaluate.txt": shape(evaluated, MAPPINGS),
            "json/mutate-report.txt": shape(report, MAPPINGS),
            "folders/mutate-evaluate.txt": contents(Path("again")),
            "folders/mutate-report.txt": contents(Path("both")),
        }
    )
