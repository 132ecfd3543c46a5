"""docs/query-mutation.md: its commands are ones that there are, what it names exists, and its code works."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from groundswell.emulator.skills.secrets import given_secret
from groundswell.experiments.options import Place
from groundswell.experiments.query_mutation import guards, mutators
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.options import GivenGuard, read_guards
from groundswell.experiments.query_mutation.task import MOST_STEPS
from tests.cli.conftest import CommandLine

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "query-mutation.md").read_text()
SHELL = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = [line for block in SHELL for line in block.splitlines() if line.startswith("groundswell mutate")]
TRAIN = [line for line in COMMANDS if " train " in line]
EVALUATE = [line for line in COMMANDS if " evaluate " in line]
SHORT = ("--num-processes", "2", "--num-steps", "4", "--num-env-steps", "8", "--eval-episodes", "1", "--max-steps", "2")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "words.txt").write_text("quartz\nzephyr\n")


def test_commands_are_found() -> None:
    assert len(TRAIN) >= 6
    assert len(EVALUATE) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("command", TRAIN)
def test_every_training_is_one_that_there_is(command: str, cli: CommandLine) -> None:
    words = [word for word in shlex.split(command)[1:] if word != "--estimate"]
    assert cli(*words, "--estimate").exit_code == 0


@pytest.mark.slow
def test_policies_are_tried_as_shown(cli: CommandLine) -> None:
    cli("mutate", "train", *SHORT, "--name", "first")
    for command in EVALUATE:
        assert cli(*shlex.split(command)[1:], "--estimate").exit_code == 0
    done = cli.json(*shlex.split(EVALUATE[1])[1:], "--episodes", "1")
    assert {each["guard"] for each in done["analysis"]["uses"]} == {"open", "asked", "firm", "filtered"}
    code = next(each for each in PYTHON if "np.load" in each)
    exec(compile(code, "guide", "exec"), {})


def plain(text: str) -> list[str]:
    """Lines without their figures."""
    return sorted(re.sub(r" +", " ", re.sub(r"[-+]?[\d.,]+%?", "N", line)) for line in text.strip().splitlines())


@pytest.mark.slow
def test_the_table_has_the_rows_that_are_shown(cli: CommandLine) -> None:
    (shown,) = re.findall(r"^method +guards.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    done = cli("mutate", "train", *SHORT, "--name", "first")
    (table,) = re.findall(r"^method +guards.*?\n\n", done.stdout, re.MULTILINE | re.DOTALL)
    assert [line.split()[:2] for line in plain(table)] == [line.split()[:2] for line in plain(shown)]
    assert table.splitlines()[0].split() == shown.splitlines()[0].split()
    (files,) = re.findall(r"^\| file \| what is in it \|\n.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`.*?) \|", files, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.-]+)/?`", row)}
    assert listed == {path.name for path in Path("results/first").iterdir() if not path.name.startswith(".")}


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_first_command_prints_what_is_shown(cli: CommandLine) -> None:
    done = cli(*shlex.split(COMMANDS[0])[1:])
    shown = re.search(r"```\n(method .*?)```", GUIDE, re.DOTALL)
    assert shown is not None
    assert shown[1].strip() in done.stdout


def test_guards_of_ones_own_can_be_read(tmp_path: Path) -> None:
    (written,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert tomllib.loads(written)
    (tmp_path / "guards.toml").write_text(written)
    found = read_guards("guards.toml", Place("--guards"))
    given = [guard for guard in found if isinstance(guard, GivenGuard)]
    assert [(guard.name, guard.held_out) for guard in given] == [("billing", False), ("stern billing", True)]
    for guard in given:
        assert given_secret(guard.brief.replace("{secret}", "quartz")) == "quartz", "the emulator finds it"
    assert given_secret("Your API token is quartz.") is None, "the guide says that it does not find this"


@pytest.mark.slow
def test_mutators_and_rewards_of_ones_own_are_such(cli: CommandLine) -> None:
    Path("mine.py").write_text(next(each for each in PYTHON if "@mutator" in each))
    own = ("--mutators", "noop,indirect,mine:please", "--reward", "mine:length")
    assert all(f"`{flag} {value}`" in GUIDE for flag, value in zip(own[::2], own[1::2], strict=True))
    assert cli.json("mutate", "train", *SHORT, *own)["status"] == "completed"


def test_environments_are_used_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(next(each for each in PYTHON if "QueryMutationEnv(render_mode" in each), "guide", "exec"), {})
    assert "indirect: " in capsys.readouterr().out
    exec(compile(next(each for each in PYTHON if "batch_mutate_queries(" in each), "guide", "exec"), {})
    assert "(2, 64)" in capsys.readouterr().out


@pytest.mark.slow
def test_stable_baselines_learns_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code = next(each for each in PYTHON if "stable_baselines3" in each)
    short = code.replace("n_steps=64", "n_steps=4").replace("learn(2048)", "learn(64)")
    assert short.count("=4,") == short.count("learn(64)") == 1
    exec(compile(short, "guide", "exec"), {})
    assert "total_timesteps | 64" in capsys.readouterr().out


def test_what_is_built_in_is_named() -> None:
    for name in (*mutators.BUILT_IN, *(guard.name for guard in (*guards.training_guards(), *guards.held_out_guards()))):
        assert f"`{name}`" in GUIDE, name
    assert f"after `--max-steps` steps ({MOST_STEPS})" in GUIDE
    assert f"{Evaluation().episodes} for each guard" in GUIDE
