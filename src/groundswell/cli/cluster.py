"""`groundswell cluster`: a Ray cluster on this machine, to try workers in one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Group
from groundswell.cli.options import Json
from groundswell.errors import SettingsError
from groundswell.experiments.needed import check_installed
from groundswell.experiments.options import Flag

app = Group("cluster", "Start and stop a Ray cluster on this machine, to try `--cluster ray`.")


@app.add()
def up(
    *,
    workers: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Number of workers that it has room for. The default is the number of CPUs."),
        Flag(metavar="N", usual=True),
    ] = None,
    json: Json = False,
) -> None:
    """Start Ray on this machine. It runs until `groundswell cluster down`.

    Workers that Ray starts have the environment of this command, with the keys of the accounts.
    """
    check_installed("`groundswell cluster` needs", ("ray",), "cluster")
    room = workers or os.cpu_count() or 1
    with output.working("starting Ray"):
        _ray("start", "--head", f"--num-cpus={room}", "--include-dashboard=false", "--disable-usage-stats")
    if json:
        output.print_json({"workers": room})
        return
    output.line(f"Ray runs on this machine, with room for {room} workers")
    output.line("to use it: add --cluster ray to a command that runs something")


@app.add()
def down(*, json: Json = False) -> None:
    """Stop Ray on this machine, and all that it runs."""
    check_installed("`groundswell cluster` needs", ("ray",), "cluster")
    with output.working("stopping Ray"):
        _ray("stop")
    if json:
        output.print_json({"stopped": True})
        return
    output.line("Ray is stopped")


def _ray(*words: str) -> None:
    """Call Ray's own command."""
    command = Path(sys.executable).with_name("ray")
    done = subprocess.run([str(command), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise SettingsError(f"ray {' '.join(words)}: {said[-1] if said else 'it failed'}")
