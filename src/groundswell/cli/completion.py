"""Shell completion: the script for it, and the names of runs and models."""

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
    """Print the script for the shell that is used."""
    output.echo(_script(app, _shell()))


def install(app: Command) -> None:
    """Have the shell run the script whenever it starts."""
    shell = _shell()
    file = Path.home() / STARTED[shell]
    line = _script(app, shell) if shell == "fish" else f'eval "$({VARIABLE}={shell}_source groundswell)"'
    there = file.read_text() if file.exists() else ""
    if line in there:
        output.line(f"{file} has it already")
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(f"\n{line}\n")
    output.line(f"written to {file}: open a new shell to use it")


def _shell() -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in STARTED:
        raise SettingsError(f"SHELL {shell or 'is not set'}: there is completion for {', '.join(STARTED)}")
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
    """Aliases, and models that are known by name."""
    from groundswell.providers.accounts.config import load_here

    return [*load_here().aliases, "local/smollm2"]


RUNS_AND_MODELS: dict[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {"runs": runs, "models": models}
