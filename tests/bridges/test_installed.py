"""A bridge whose package is not installed says what to install, before anything is sent."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from groundswell.errors import SettingsError
from tests.cli.conftest import CommandLine


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a package impossible to import, also if it is imported already."""
    monkeypatch.delitem(sys.modules, f"groundswell.bridges.{package}", raising=False)
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("package", ["gepa", "dspy", "mlflow", "wandb"])
def test_a_package_that_is_not_installed_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(package, monkeypatch)
    with pytest.raises(SettingsError, match=rf"this needs {package}, .* pip install 'groundswell\[{package}\]'"):
        import_module(f"groundswell.bridges.{package}")


def test_no_run_is_created_without_it(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    hide("wandb", monkeypatch)
    said = cli("ask", "Hello", "-m", "emulated/keeper", "--log", "wandb", status=2).stderr
    assert "pip install 'groundswell[wandb]'" in said
    assert not cli.store.exists()


def test_other_trackers_are_refused(cli: CommandLine) -> None:
    assert "mlflow" in cli("ask", "Hello", "-m", "emulated/keeper", "--log", "paper", status=2).stderr
