"""The command `groundswell`. Subcommands are imported when they are called, to keep `--help` fast."""

from __future__ import annotations

import os
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
    print_json,
    print_json_error,
    show_warnings,
)
from groundswell.cli.streams import keep_standard_streams
from groundswell.errors import GroundswellError, SettingsError
from groundswell.experiments.needed import explained
from groundswell.version import __version__

HELP = "Run thousands of LLM conversations as one experiment. Resume after any crash, and never pay twice for a reply."
COMMANDS = {
    "ask": ("groundswell.cli.lazy:ask", "Send one prompt to one or more models and compare their replies."),
    "map": ("groundswell.cli.lazy:map", "Send one prompt for every row of a table."),
    "play": ("groundswell.cli.lazy:play", "Play the secret game: two agents each try to learn the other's code word."),
    "compare": ("groundswell.cli.lazy:compare", "Compare models in the secret game, each against each."),
    "score": ("groundswell.cli.lazy:score", "Score conversations of the secret game that were held elsewhere."),
    "label": ("groundswell.cli.label:label", "Label conversations, to measure how good the scores are."),
    "simulate": ("groundswell.cli.lazy:simulate", "Run conversations between entities, and question them."),
    "study": ("groundswell.cli.lazy:study", "Run a study: questions and conversations in several conditions."),
    "contrast": ("groundswell.cli.contrast:contrast", "Compare the answers of two simulation batches."),
    "mutate": (
        "groundswell.cli.lazy:mutate",
        "Learn which rewordings make a guarded model reveal a planted secret.",
    ),
    "evolve": ("groundswell.cli.lazy:evolve", "Evolve a prompt and test it on held-out problems."),
    "run": ("groundswell.cli.run:run", "Run your own experiment or driver."),
    "new": ("groundswell.cli.new:new", "Create a file with your own experiment, and its test."),
    "runs": ("groundswell.cli.runs:app", "List, show, resume, export and delete runs."),
    "batches": ("groundswell.cli.batches:app", "List, show, cancel and recover provider batches."),
    "entities": ("groundswell.cli.entities:app", "Create, list and edit the entities of simulations."),
    "models": ("groundswell.cli.models:app", "List the available models, and download local ones."),
    "cache": ("groundswell.cli.cache:app", "Show or clear the replies that runs share."),
    "store": ("groundswell.cli.store:app", "Copy runs between stores."),
    "postgres": ("groundswell.cli.postgres:app", "Start and stop a private PostgreSQL server."),
    "power": ("groundswell.cli.power:power", "Compute how many trials are needed to detect a difference."),
    "selftest": ("groundswell.cli.selftest:selftest", "Check detectors and intervals with planted agents."),
    "worker": ("groundswell.cli.worker:worker", "Run trials for runs that other processes drive."),
    "cluster": ("groundswell.cli.cluster:app", "Start and stop a Ray cluster on this machine."),
    "serve": ("groundswell.cli.serve:serve", "Serve the REST API."),
    "emulate": ("groundswell.cli.emulate:emulate", "Serve an emulator of OpenAI, Anthropic and Ollama."),
    "trust": ("groundswell.cli.trust:app", "Allow a host to receive keys, or a file to be executed."),
    "doctor": ("groundswell.cli.doctor:doctor", "Check this installation and the store."),
}
"""The commands: where each is implemented, and its line in `--help`."""


class Commands(Group):
    """The root command. It turns known errors into one line and an exit status."""

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
        except click.UsageError as error:
            if ctx.meta.get(JSON, False):
                print_json({"error": error.format_message()})
            raise


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
        help="Install shell completion for commands, flags, runs and models.",
    ),
    click.Option(
        ["--show-completion"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_completion,
        help="Print the shell completion script.",
    ),
]


def main() -> None:
    """The console script."""
    keep_standard_streams()
    show_warnings()
    try:
        app(prog_name="groundswell")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001  a bug: its traceback may contain control characters of a provider
        print_error(error, verbose=True)
        sys.exit(1)
    finally:
        signal.signal(signal.SIGINT, _end)  # another Ctrl-C while Python exits must not print a traceback


def _end(*_: object) -> None:
    os._exit(INTERRUPTED)
