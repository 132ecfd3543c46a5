"""docs/prompt-evolution.md: its commands are ones that there are, what it names exists, and its code works."""

from __future__ import annotations

import re
import shlex
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
SHELL = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = [line for block in SHELL for line in block.splitlines() if line.startswith("groundswell evolve --")]
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
    for name in ("mine.jsonl", "gsm8k.jsonl"):
        Path(name).write_text("\n".join(lines))
    Path("prompt.txt").write_text("Solve it.")
    Path("mine.py").write_text(next(each for each in PYTHON if "@metric" in each))


def test_commands_are_found() -> None:
    assert len(COMMANDS) >= 5


@pytest.mark.sampled
@pytest.mark.parametrize("command", COMMANDS)
def test_every_evolution_is_one_that_there_is(command: str, cli: CommandLine) -> None:
    words = [word for word in shlex.split(command)[1:] if word != "--estimate"]
    assert cli(*words, "--estimate").exit_code == 0


def test_the_answer_is_what_stands_after_the_mark() -> None:
    assert read_problems(Path("mine.jsonl"))[0].answer == "7"


@pytest.mark.slow
def test_metrics_of_ones_own_and_the_files_that_are_listed(cli: CommandLine) -> None:
    for metric in ("mine:close", "mine:judged"):
        assert f"`--metric {metric}`" in GUIDE
        words = ("--task", "mine.jsonl", "--metric", metric, *SMALL[:4], "--train", "6", "--name", metric[5:])
        assert cli.json("evolve", *words, "--validation", "4", "--test", "6")["status"] == "completed"
    done = cli("evolve", *SMALL)
    (files,) = re.findall(r"^\| file \| what is in it \|\n.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`.*?) \|", files, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.-]+)/?`", row)}
    assert listed == {path.name for path in Path("results/first").iterdir() if not path.name.startswith(".")}
    (shown,) = re.findall(r"^prompt +sealed.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    (table,) = re.findall(r"^prompt +sealed.*?\n\n", done.stdout, re.MULTILINE | re.DOTALL)
    assert [line.split()[:2] for line in table.splitlines()] == [line.split()[:2] for line in shown.splitlines()]


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_first_command_prints_what_is_shown(cli: CommandLine) -> None:
    done = cli(*shlex.split(COMMANDS[0])[1:])
    shown = re.search(r"```\n(On the sealed .*?)```", GUIDE, re.DOTALL)
    assert shown is not None
    told = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    assert shown[1].strip() in told


@pytest.mark.slow
@pytest.mark.parametrize("code", [each for each in PYTHON if "asyncio.run" in each], ids=["evolve", "try"])
def test_code_works_as_shown(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    quick = "population_size=3, max_generations=1, finalists=1, baselines=()"
    small = code.replace("population_size=8, max_generations=4", quick)
    exec(compile(small, "guide", "exec"), {})
    assert capsys.readouterr().out


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
