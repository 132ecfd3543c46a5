"""The command `groundswell`. What takes long to import is imported inside the commands: `--help` must be quick."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from groundswell.cli import (
    ask,
    batches,
    cache,
    contrast,
    doctor,
    emulate,
    entities,
    evolve,
    game,
    map,
    models,
    mutate,
    power,
    run,
    runs,
    selftest,
    serve,
    simulate,
    trust,
)
from groundswell.cli.options import VERBOSE
from groundswell.cli.output import INTERRUPTED, echo, exit_code, is_of_disk, print_error, show_warnings
from groundswell.cli.streams import keep_standard_streams
from groundswell.errors import GroundswellError
from groundswell.experiments.needed import explained
from groundswell.version import __version__


class Commands(TyperGroup):
    """The top of the command tree, where known errors become one readable line and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (GroundswellError, ModuleNotFoundError, OSError) as raised:
            error = explained(raised)
            if not (isinstance(error, GroundswellError) or is_of_disk(error)):
                raise
            print_error(error, verbose=ctx.meta.get(VERBOSE, False))
            raise typer.Exit(exit_code(error)) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("ask")(ask.ask)
app.command("map")(map.map_table)
app.command("play")(game.play)
app.command("compare")(game.compare)
app.command("simulate")(simulate.simulate)
app.command("contrast")(contrast.contrast)
app.add_typer(mutate.app, name="mutate")
app.add_typer(evolve.app, name="evolve")
app.command("serve")(serve.serve)
app.add_typer(entities.app, name="entities")
app.command("power")(power.power)
app.command("selftest")(selftest.selftest)
app.command("run")(run.run)
app.add_typer(runs.app, name="runs")
app.add_typer(batches.app, name="batches")
app.add_typer(cache.app, name="cache")
app.add_typer(models.app, name="models")
app.add_typer(trust.app, name="trust")
app.command("emulate")(emulate.emulate)
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"groundswell {__version__}")
        raise typer.Exit


@app.callback()
def groundswell(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run thousands of LLM conversations as one experiment; resume it after any crash; never pay twice for a reply."""


def main() -> None:
    """The console script."""
    keep_standard_streams()
    show_warnings()
    try:
        app()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # else another one would end Python with a signal's status
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001  a mistake of ours: its traceback may hold what a provider said
        print_error(error, verbose=True)
        sys.exit(1)
