"""Shell completion: its script, and the names of runs and models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from click import Command
from click.shell_completion import get_completion_class

from groundswell.cli import output
from groundswell.errors import SettingsError

VARIABLE = "_GROUNDSWELL_COMPLETE"
STARTED = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/completions/groundswell.fish"}


def show(app: Command) -> None:
    """Print the completion script for the current shell."""
    output.echo(_script(app, _shell()))


def install(app: Command) -> None:
    """Add the completion script to the start-up file of the shell."""
    shell = _shell()
    file = Path.home() / STARTED[shell]
    line = _script(app, shell) if shell == "fish" else f'eval "$({VARIABLE}={shell}_source groundswell)"'
    there = file.read_text() if file.exists() else ""
    if line in there:
        output.line(f"completion is already installed in {file}")
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(f"\n{line}\n")
    output.line(f"completion was added to {file}; open a new shell to use it")


def _shell() -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in STARTED:
        said = f"the shell {shell}" if shell else "SHELL is not set, so your shell"
        raise SettingsError(f"{said} is not supported; completion works for {', '.join(STARTED)}")
    return shell


def _script(app: Command, shell: str) -> str:
    found = get_completion_class(shell)
    assert found is not None
    return found(app, {}, "groundswell", VARIABLE).source()


def runs(given: Mapping[str, Any]) -> Iterable[str]:
    """The names and ids of the runs in the store."""
    from groundswell.cli.stored import opened

    with opened(given.get("store") or os.environ.get("GROUNDSWELL_STORE") or output.DEFAULT_STORE) as store:
        return [record.title for record in store.runs.list(limit=200)]


def models(given: Mapping[str, Any]) -> Iterable[str]:
    """Aliases, short names, and models with a fixed name."""
    from groundswell.known_models import examine

    found = examine()
    fixed = [one["model"] for one in found["local"] if not one["model"].endswith("/PATH")]
    return [*found["aliases"], *found["short_names"], *fixed, *found["emulated"]]


RUNS_AND_MODELS: dict[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {"runs": runs, "models": models}
