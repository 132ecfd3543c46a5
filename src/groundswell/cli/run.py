"""`groundswell run`: any driver, from a file or a module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from groundswell.cli.options import RunFlags, takes

if TYPE_CHECKING:
    from groundswell.engine.engine import Engine
    from groundswell.engine.summary import Summary


@takes(RunFlags)
def run(
    flags: RunFlags,
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="The driver: file.py:driver or module:driver.", show_default=False),
    ],
    *,
    name: Annotated[
        str | None,
        typer.Option(help="A name for the run. If it exists, it is continued where it was left.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    settings: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="The driver's settings, as a JSON object.", show_default=False),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="One field of the settings; the value is JSON, or else text. May be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run an experiment: an `async def driver(run, settings)` of your own."""
    from groundswell.cli import output
    from groundswell.cli.running import run_and_report
    from groundswell.cli.targets import build_settings, find_driver, read_settings
    from groundswell.engine.options import RunOptions
    from groundswell.engine.summary import summarise
    from groundswell.estimate.declared import estimate_of

    driver = find_driver(target)
    base = {} if settings is None else read_settings(settings)
    built = build_settings(driver, base, change or [])
    options = flags.run_options(RunOptions())

    async def work(engine: Engine) -> Summary:
        before = None if name is None else engine.store.runs.find(name)
        summary = await engine.drive(driver, built, name=name, seed=seed, options=options)
        if before is not None and summarise(before).asks == summary.asks:
            output.say(f"nothing was asked: {name} is a run that you have, and these are its figures")
        return summary

    run_and_report(work, flags, estimate=lambda: estimate_of(driver, built, seed=seed))
