"""docs/query-mutation.md: what it names exists, and it names everything built in. tests/docs runs its code."""

from __future__ import annotations

import re
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
SHORT = ("--num-processes", "2", "--num-steps", "4", "--num-env-steps", "8", "--eval-episodes", "1", "--max-steps", "2")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.slow
def test_all_files_are_listed(cli: CommandLine) -> None:
    cli("mutate", "train", *SHORT, "--name", "first")
    (files,) = re.findall(r"^\| file \| content \|\n.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`.*?) \|", files, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.-]+)/?`", row)}
    assert listed == {path.name for path in Path("results/first").iterdir() if not path.name.startswith(".")}


def test_guards_of_ones_own_can_be_read(tmp_path: Path) -> None:
    (written,) = re.findall(r'```toml title="guards.toml"\n(.*?)```', GUIDE, re.DOTALL)
    (tmp_path / "guards.toml").write_text(written)
    found = read_guards("guards.toml", Place("--guards"))
    given = [guard for guard in found if isinstance(guard, GivenGuard)]
    assert [(guard.name, guard.held_out) for guard in given] == [("billing", False), ("stern billing", True)]
    for guard in given:
        assert given_secret(guard.brief.replace("{secret}", "quartz")) == "quartz", "the emulator finds it"


@pytest.mark.slow
def test_mutators_and_rewards_of_ones_own_are_such(cli: CommandLine) -> None:
    (code,) = re.findall(r'```python title="mine.py"\n(.*?)```', GUIDE, re.DOTALL)
    Path("mine.py").write_text(code)
    own = ("--mutators", "noop,indirect,mine:please", "--reward", "mine:length")
    assert " ".join(own) in GUIDE
    assert cli.json("mutate", "train", *SHORT, *own)["status"] == "completed"


def test_what_is_built_in_is_named() -> None:
    for name in (
        *mutators.GROUPS,
        *mutators.GROUPS["all"],
        *(guard.name for guard in (*guards.training_guards(), *guards.held_out_guards())),
    ):
        assert f"`{name}`" in GUIDE, name
    assert f"after `--max-steps` steps ({MOST_STEPS})" in GUIDE
    assert f"{Evaluation().episodes} episodes for each guard" in GUIDE
