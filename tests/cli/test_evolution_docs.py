"""docs/prompt-evolution.md names what exists. Its commands and code are run by tests/docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groundswell.experiments.prompt_evolution.config import PRESETS, AsyncEvolutionConfig
from groundswell.experiments.prompt_evolution.families import FAMILIES
from groundswell.experiments.prompt_evolution.fitness import COMPOSITE
from groundswell.experiments.prompt_evolution.population import SELECTIONS
from groundswell.experiments.prompt_evolution.problems import read_problems
from groundswell.experiments.prompt_evolution.settings import BASELINES, OPERATORS
from tests.cli.conftest import CommandLine

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "prompt-evolution.md").read_text()
MODULE = re.search(r'```python title="mine.py"\n(.*?)```', GUIDE, re.DOTALL)
SMALL = (
    *("--population-size", "4", "--max-generations", "2", "--train", "8", "--validation", "4", "--test", "6"),
    *("--name", "first"),
)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)
    (line,) = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    lines = [line.strip().replace("3 pens", f"{number} pens") for number in range(3, 23)]
    Path("mine.jsonl").write_text("\n".join(lines))
    assert MODULE is not None
    Path("mine.py").write_text(MODULE[1])


def test_the_answer_is_what_stands_after_the_mark() -> None:
    assert read_problems(Path("mine.jsonl"))[0].answer == "7"


@pytest.mark.slow
def test_metrics_of_ones_own_and_the_files_that_are_listed(cli: CommandLine) -> None:
    for metric in ("mine:close", "mine:judged"):
        assert f"--metric {metric}" in GUIDE
        words = ("--task", "mine.jsonl", "--metric", metric, *SMALL[:4], "--train", "6", "--name", metric[5:])
        assert cli.json("evolve", *words, "--validation", "4", "--test", "6")["status"] == "completed"
    cli("evolve", *SMALL)
    (files,) = re.findall(r"^\| file \| what is in it \|\n.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`.*?) \|", files, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.-]+)/?`", row)}
    assert listed == {path.name for path in Path("results/first").iterdir() if not path.name.startswith(".")}


def test_what_is_built_in_is_named() -> None:
    for name in (*FAMILIES, *OPERATORS, *SELECTIONS, *BASELINES, "number", "text", "contains"):
        assert f"`{name}`" in GUIDE, name


def test_presets_are_those_of_the_table() -> None:
    for name in PRESETS:
        config = AsyncEvolutionConfig.preset(name)
        row = (config.async_batch_size, config.max_concurrent_requests, config.genome_batch_size)
        row += (config.max_concurrent_genomes, int(config.rate_limit_per_minute or 0))  # type: ignore[assignment]
        assert f"| `{name}` | {' | '.join(map(str, row))} |" in GUIDE


def test_the_mixture_is_as_told() -> None:
    for part in ("accuracy", "consistency", "efficiency", "diversity", "length"):
        assert f"{getattr(COMPOSITE, part):.0%} {part}" in GUIDE
