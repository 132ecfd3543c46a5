"""Extras: those that are declared are used and known, and what one lacks is told in one line."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell.cli import doctor
from groundswell.errors import SettingsError
from groundswell.experiments.needed import CURVES, EXTRAS, REPORT, explained
from tests.cli.conftest import CommandLine
from tests.patience import PATIENCE

SOURCE = Path(groundswell.__file__).parent
PROJECT = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
DECLARED = {extra: needs for extra, needs in PROJECT["optional-dependencies"].items() if extra not in ("all", "dev")}
BRIDGES = ("gepa", "dspy", "mlflow", "wandb")
"""Extras for users of other packages, which have these. They are not part of `all`."""
APART = (*BRIDGES, "postgres-local", "cluster")
"""The latter is large, and only for those who have no server."""
PACKAGES = sorted({package for packages in EXTRAS.values() for package in packages})


def name_of(requirement: str) -> str:
    found = re.match(r"[\w-]+", requirement)
    assert found is not None
    return found[0]


def module_of(package: str) -> str:
    return package.removesuffix("-skinny").replace("-", "_")


def named_in(tree: ast.AST) -> set[str]:
    """The packages that a module imports, or looks for by their names."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                found |= {alias.name.partition(".")[0] for alias in node.names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.partition(".")[0])
            case ast.Constant(value=str(text)):
                found.add(text)
    return found


@pytest.mark.slow
def test_every_extra_is_known_and_used() -> None:
    modules = {extra: {module_of(name_of(each)) for each in needs} for extra, needs in DECLARED.items()}
    assert modules == {extra: set(packages) for extra, packages in EXTRAS.items()}
    known = SOURCE / "experiments" / "needed.py"
    sources = [path for path in SOURCE.rglob("*.py") if path != known]
    used = set[str]().union(*(named_in(ast.parse(path.read_text())) for path in sources))
    unused = set(PACKAGES) - used
    assert unused <= {"tensorboard"}  # which is imported by torch
    assert PROJECT["optional-dependencies"]["all"] == [
        f"groundswell[{','.join(extra for extra in DECLARED if extra not in APART)}]"
    ]


def test_every_package_that_is_needed_is_looked_for() -> None:
    assert {*doctor.NEEDED, "uvloop"} == {name_of(each) for each in PROJECT["dependencies"]}


def test_doctor_calls_what_is_here_installed(cli: CommandLine) -> None:
    found = cli.json("doctor")
    assert {extra: state["missing"] for extra, state in found["extras"].items()} == {extra: [] for extra in DECLARED}
    assert "needs" not in cli("doctor").stdout
    assert all(found["packages"].values())


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModuleNotFoundError("x", name="torch.utils"), "this needs torch, which is not installed: pip install "),
        (ModuleNotFoundError("x", name="mine"), None),
        (ImportError("x", name="torch"), None),
    ],
    ids=["of an extra", "somebody else's", "that is there and broken"],
)
def test_errors_are_explained_where_an_extra_helps(error: Exception, told: str | None) -> None:
    found = explained(error)
    assert isinstance(found, SettingsError) if told else found is error
    assert told is None or str(found).startswith(told)


def ended(folder: Path, left_out: str, *missing: str) -> Any:
    """How every command ended in a process that lacks packages."""
    command = [sys.executable, "-m", "tests.cli.without_packages", str(folder), left_out, *missing]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=SOURCE.parents[1])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(found: Any) -> None:
    for name, how in found.items():
        assert (name, how["raised"]) == (name, None)
        assert "Traceback" not in how["said"], f"{name}: {how['said']}"
        lacks = re.search(r"error: .* is not installed: pip install 'groundswell\[\w+\]'|pip install '", how["said"])
        assert how["status"] == 0 or lacks or "no run " in how["said"] or name in REFUSED, f"{name}: {how['said']}"


REFUSED = ("ask, local", "ask, embeddings", "serve")
"""Commands that would not work here with all packages either."""


@pytest.mark.slow
def test_without_any_extra_no_command_ends_in_a_traceback(tmp_path: Path) -> None:
    found = ended(tmp_path, "selftest", *PACKAGES)
    check(found)
    assert "torch, which is not installed: pip install 'groundswell[rl]'" in found["mutate train"]["said"]
    assert "reports need matplotlib, which is not installed" in found["simulate, asked"]["said"]
    for name in ("mutate train, estimated", "power", "doctor"):
        assert (name, found[name]["status"]) == (name, 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs that reports and contrasts are about, made where everything is installed."""
    folder = tmp_path_factory.mktemp("whole")
    found = ended(folder, "selftest")
    assert {name for name, how in found.items() if how["status"]} <= {*REFUSED, "runs show"}
    return folder


@pytest.mark.campaign
@pytest.mark.parametrize("package", sorted({*REPORT, *CURVES}))  # the others are asked for by one command each
def test_without_one_package_no_command_ends_in_a_traceback(tmp_path: Path, whole: Path, package: str) -> None:
    check(ended(shutil.copytree(whole, tmp_path / "copy"), "selftest", package))
