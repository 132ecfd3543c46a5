"""What `groundswell.experiments.query_mutation` offers, what it takes to import it, and nothing by accident."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from groundswell.experiments import query_mutation

PACKAGE = "groundswell.experiments.query_mutation"
NAMES = [
    "BatchedQueryMutationEnv",
    "DEFAULT_REFUSAL",
    "Evaluation",
    "Guard",
    "MaskedRolloutBuffer",
    "QueryMutationEnv",
    "QueryMutationVecEnv",
    "Session",
    "Task",
    "Training",
    "batch_encode_queries",
    "batch_mutate_queries",
    "batch_query_target_model",
    "mutator",
    "reward",
    "train",
]
KNOWN_BY = {
    "gymnasium": {"documented.py", "stable.py"},
    "stable_baselines3": {"stable.py"},
    "torch": {"board.py", "learning/ppo.py", "stable.py"},
}
"""The only files that import a package which is optional."""
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys(["gymnasium", "stable_baselines3", "torch"]))
from {PACKAGE} import DEFAULT_REFUSAL, Evaluation, Guard, Session, Task, Training, mutator, reward, train
import {PACKAGE} as package
assert set(package.__all__) <= set(dir(package))
for name in ("QueryMutationEnv", "BatchedQueryMutationEnv", "QueryMutationVecEnv", "MaskedRolloutBuffer"):
    try:
        getattr(package, name)
    except ModuleNotFoundError as error:
        assert f"{{name}} needs " in str(error) and "pip install 'groundswell[rl]'" in str(error), error
    else:
        raise AssertionError(name)
"""


def test_the_public_names_are_these() -> None:
    assert sorted(query_mutation.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(query_mutation, name)
    assert thing.__doc__
    assert len(thing.__doc__.strip()) > 6


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Queries'"):
        query_mutation.Queries  # noqa: B018


@pytest.mark.slow
def test_most_of_it_needs_no_optional_package() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, timeout=60)


def imports(path: Path) -> Iterator[str]:
    """The packages that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.sampled
@pytest.mark.parametrize("package", KNOWN_BY)
def test_who_knows_an_optional_package(package: str) -> None:
    folder = Path(inspect.getfile(query_mutation)).parent
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if package in imports(path)}
    assert found == KNOWN_BY[package]
