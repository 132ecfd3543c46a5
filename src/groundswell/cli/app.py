"""The command `groundswell`. A command is loaded when it is called: `--help` must be quick."""

from __future__ import annotations

import signal
import sys
from typing import Any

import click

from groundswell.cli.commands import JSON, VERBOSE, Group
from groundswell.cli.output import (
    INTERRUPTED,
    echo,
    exit_code,
    is_of_disk,
    print_error,
    print_json_error,
    show_warnings,
)
from groundswell.cli.streams import keep_standard_streams
from groundswell.errors import GroundswellError, SettingsError
from groundswell.experiments.needed import explained
from groundswell.version import __version__

HELP = "Run thousands of LLM conversations as one experiment; resume it after any crash; never pay twice for a reply."
COMMANDS = {
    "ask": ("groundswell.cli.lazy:ask", "Ask one or more models the same thing, and see their replies side by side."),
    "map": ("groundswell.cli.lazy:map", "Ask the same about every row of a table."),
    "play": ("groundswell.cli.lazy:play", "Two agents keep a code word each and try to get the other's."),
    "compare": ("groundswell.cli.lazy:compare", "Every model against every other in the secret game."),
    "simulate": ("groundswell.cli.lazy:simulate", "Have entities talk in a context, many times over; then ask them."),
    "contrast": ("groundswell.cli.contrast:contrast", "Compare what was answered in two batches of simulations."),
    "mutate": (
        "groundswell.cli.lazy:mutate",
        "Learn which rewordings get a guarded model to give a secret away.",
    ),
    "evolve": ("groundswell.cli.lazy:evolve", "Evolve a prompt, and test it on problems it never met."),
    "run": ("groundswell.cli.run:run", "Run an experiment or a driver of your own."),
    "new": ("groundswell.cli.new:new", "Write a file with an experiment of your own and its test, ready to run."),
    "runs": ("groundswell.cli.runs:app", "Look at runs, go on with them, export their results."),
    "batches": ("groundswell.cli.batches:app", "Look at batches that wait at the providers, cancel and find them."),
    "entities": ("groundswell.cli.entities:app", "Make the entities that talk in simulations, look at them."),
    "models": ("groundswell.cli.models:app", "See which models can be asked, and fetch the weights of local ones."),
    "cache": ("groundswell.cli.cache:app", "Look at the replies that runs share, and remove them."),
    "power": ("groundswell.cli.power:power", "How many trials are needed to find a difference."),
    "selftest": ("groundswell.cli.selftest:selftest", "Check detectors and intervals with planted agents."),
    "serve": ("groundswell.cli.serve:serve", "Serve the REST API, until it is stopped."),
    "emulate": ("groundswell.cli.emulate:emulate", "Serve an emulator of the providers on this machine."),
    "trust": ("groundswell.cli.trust:app", "Trust a host with keys, or a file with running its code."),
    "doctor": ("groundswell.cli.doctor:doctor", "Check this installation and the store."),
}
"""The commands, where each one is, and what the help says of it."""


class Commands(Group):
    """The top of the command tree, where known errors become one readable line and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        """Call a command."""
        try:
            return super().invoke(ctx)
        except (GroundswellError, ModuleNotFoundError, OSError) as raised:
            error = explained(raised)
            if not (isinstance(error, GroundswellError) or is_of_disk(error)):
                raise
            print_error(error, verbose=ctx.meta.get(VERBOSE, False))
            if ctx.meta.get(JSON, False):
                print_json_error(error)
            raise click.exceptions.Exit(exit_code(error)) from None


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        echo(f"groundswell {__version__}")
        ctx.exit()


def _completion(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from groundswell.cli import completion

        work = completion.install if param.name == "install_completion" else completion.show
        try:
            work(ctx.find_root().command)
        except SettingsError as error:
            raise click.UsageError(str(error), ctx) from error
        ctx.exit()


app = Commands("groundswell", HELP, COMMANDS)
app.params = [
    click.Option(["--version"], is_flag=True, is_eager=True, callback=_print_version, help="Print the version."),
    click.Option(
        ["--install-completion"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_completion,
        help="Have your shell complete commands, flags, runs and models.",
    ),
    click.Option(
        ["--show-completion"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_completion,
        help="Print the script that does that.",
    ),
]


def main() -> None:
    """The console script."""
    keep_standard_streams()
    show_warnings()
    try:
        app(prog_name="groundswell")
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # else another one would end Python with a signal's status
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001  a mistake of ours: its traceback may hold what a provider said
        print_error(error, verbose=True)
        sys.exit(1)
