"""The commands of experiments: one implementation for all of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import click

from groundswell.cli import output
from groundswell.cli.commands import Command
from groundswell.cli.estimating import quietly, show_estimate
from groundswell.cli.lazy import lazy_command
from groundswell.cli.options import Terminal
from groundswell.cli.reports import Reporting
from groundswell.cli.running import carry_out, finish, run_and_report
from groundswell.compose import look_into
from groundswell.engine.engine import Engine
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import SettingsError
from groundswell.estimate.bill import Bill
from groundswell.experiments import experiment as described
from groundswell.experiments.experiment import Context, experiment_named
from groundswell.experiments.options import Given, build
from groundswell.experiments.pilot import estimate_run, pilot_options
from groundswell.store.journal import Store

if TYPE_CHECKING:
    from groundswell.experiments.experiment import Experiment, Ready


def command_for(experiment: Experiment, name: str, words: str) -> Command:
    """A command of an experiment. `words` calls it on the command line, for example `run mine.py`."""
    made = experiment.command(name)
    return lazy_command(words, made.options, lambda given: run(made, given, words), keeps_folder=made.keeps_folder)


def run_built_in(where: str, words: str, given: Mapping[str, Given]) -> None:
    """Run a command of a built-in experiment, for example `secret-game/play`."""
    experiment, _, name = where.partition("/")
    run(experiment_named(experiment).command(name), given, words)


def run(command: described.Command, given: Mapping[str, Given], words: str) -> None:
    """Run a command with the values given on the command line."""
    terminal = {key: one for key, one in given.items() if key not in command.fields}
    flags = build(Terminal, terminal)
    own = {key: one for key, one in given.items() if key in command.fields}
    if flags.config is not None:
        own = {**command.configured(flags.config), **own}
    _run(command, own, flags, words)


def _run(command: described.Command, given: Mapping[str, Given], flags: Terminal, words: str) -> None:
    """From the options to the report."""
    estimating = (flags.estimate and not flags.pilot) or flags.print_config
    context = Context(store=flags.store, origin="command", estimating=estimating, ask=_ask)
    ready = command.ready(given, context)
    if flags.print_config:
        output.echo(ready.config_text(words), nl=False)
        return
    if not flags.json:
        for note in ready.notes:
            output.say(note)
    if flags.estimate or flags.pilot:
        if flags.pilot:
            _pilot(ready, flags)
        show_estimate(_estimated(ready, flags), pilot=True, json=flags.json)
        return
    config = ready.config_text(words) if command.keeps_folder else ""
    reporting = Reporting(ready.results(flags.out), flags.store, config=config)
    with _respelling(command, given):
        reporting.results.check()

    async def work(engine: Engine) -> Summary:
        before = None if ready.name is None else engine.store.runs.find(ready.name)
        with _respelling(command, given), reporting.results.around(cast(Store, engine.store), before, ready.name or ""):
            summary = await engine.drive(
                ready.driver, ready.settings, name=ready.name, seed=ready.seed, options=ready.run_options
            )
        if before is not None and summarise(before).asks == summary.asks:
            output.say(output.already_done(summary, "its files were rewritten"))
        if flags.json and reporting.results.has_report(summary):  # without --json, `report` writes them
            await asyncio.to_thread(reporting.write, summary)
        return summary

    run_and_report(
        work,
        flags,
        ready.choices,
        report=reporting.report,
        code=reporting.results.exit_code,
        more=reporting.more,
        listeners=reporting.listeners,
        log=flags.log,
    )


def _estimated(ready: Ready, flags: Terminal) -> Bill:
    """The estimate of a run, with what its run in the store has measured."""
    with look_into(flags.store) as held:
        return quietly(lambda: estimate_run(ready, held, ready.choices.account, ready.choices.max_concurrent))


def _pilot(ready: Ready, flags: Terminal) -> None:
    """Send the first requests of a run, unless it has sent them already."""
    bill = _estimated(ready, flags)
    if bill.measured is not None:
        return
    options = pilot_options(ready, bill)

    async def work(engine: Engine) -> Summary:
        return await engine.drive(ready.driver, ready.settings, name=ready.name, seed=ready.seed, options=options)

    ended = carry_out(
        work,
        store=flags.store,
        how=ready.choices.for_engine,
        verbose=flags.verbose,
    )
    if ended.summary is None or ended.error is not None or ended.summary.status not in ("partial", "completed"):
        raise click.exceptions.Exit(finish(ended, store=flags.store, json=flags.json, verbose=flags.verbose))


@contextmanager
def _respelling(command: described.Command, given: Mapping[str, Given]) -> Iterator[None]:
    """Make errors name options the way the user wrote them."""
    try:
        yield
    except SettingsError as error:
        raise command.respelled(error, given) from error


def _ask(question: str) -> bool:
    """Ask the user, if there is a terminal."""
    if not sys.stdin.isatty():
        return False
    output.confirm(question)
    return True
