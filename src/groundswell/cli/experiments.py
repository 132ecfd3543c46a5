"""The commands of experiments: one implementation, from the description of each."""

from __future__ import annotations

import asyncio
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import click
import msgspec
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Command, Group
from groundswell.cli.estimating import show_estimate
from groundswell.cli.options import Estimate, StoreFlags
from groundswell.cli.reports import Reporting
from groundswell.cli.running import run_and_report
from groundswell.engine.engine import Engine
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import SettingsError
from groundswell.estimate.declared import estimate_of
from groundswell.experiments import experiment as described
from groundswell.experiments.experiment import Context, experiment_named
from groundswell.experiments.options import COMMON, Flag, Given, build, collect, fields_of, read_text
from groundswell.store.journal import Store

if TYPE_CHECKING:
    from groundswell.experiments.experiment import Experiment


class Terminal(StoreFlags, frozen=True, kw_only=True):
    """What commands of experiments take on the command line alone."""

    estimate: Estimate = False
    out: Annotated[
        Path | None,
        Meta(description="Where the results go. (results/NAME.)"),
        Flag("-o", metavar="FOLDER", usual=True, completes="files"),
    ] = None
    config: Annotated[
        Path | None,
        Meta(description="Options from a TOML file; flags go before it."),
        Flag(metavar="FILE.toml", group=COMMON, usual=True, completes="files"),
    ] = None
    print_config: Annotated[
        bool,
        Meta(description="Print the options as a TOML file, with what they stand for; start nothing."),
        Flag(group=COMMON),
    ] = False


def command_for(experiment: Experiment, name: str, words: str) -> Command:
    """A command of an experiment; `words` are those that call it, as `play` or `mutate train`."""
    made = experiment.command(name)
    left_out = () if made.keeps_folder else ("out",)
    terminal = {key: one for key, one in fields_of(Terminal).items() if key not in (*made.fields, *left_out)}

    def run(given: Mapping[str, Given]) -> None:
        flags = build(Terminal, {key: one for key, one in given.items() if key in terminal})
        own = {key: one for key, one in given.items() if key not in terminal}
        if flags.config is not None:
            own = {**configured(made, flags.config), **own}
        _run(made, own, flags, words)

    return Command(words.rpartition(" ")[2], run, [*made.fields.values(), *terminal.values()], made.help)


def configured(command: described.Command, path: Path) -> dict[str, Given]:
    """What a TOML file says. Paths in it are relative to its folder."""
    try:
        said = tomllib.loads(read_text(path, "--config"))
        return collect(command.fields, said, what=command.name, folder=path.parent)
    except (tomllib.TOMLDecodeError, SettingsError) as error:
        told = str(error).removeprefix(f"--config {path}: ")
        raise SettingsError(f"--config {path}: {told}", field=getattr(error, "field", None)) from error


def _run(command: described.Command, given: Mapping[str, Given], flags: Terminal, words: str) -> None:
    """From the options to the report."""
    estimating = flags.estimate or flags.print_config
    context = Context(store=flags.store, origin="command", estimating=estimating, ask=_ask)
    ready = command.ready(given, context)
    if flags.print_config:
        output.echo(ready.config_text(words), nl=False)
        return
    if not flags.json:
        for note in ready.notes:
            output.say(note)
    if flags.estimate:
        show_estimate(
            lambda: estimate_of(ready.driver, ready.settings, seed=ready.seed), ready.choices, json=flags.json
        )
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
            output.say(f"nothing was asked: {ready.name} is a run that you have; its files are written anew")
        if flags.json and summary.analysis is not None:  # else they are written before their figures are told
            await asyncio.to_thread(reporting.write, summary)
        return summary

    run_and_report(
        work,
        flags,
        ready.choices,
        report=reporting.report,
        code=reporting.results.exit_code,
        listeners=reporting.listeners,
    )


@contextmanager
def _respelling(command: described.Command, given: Mapping[str, Given]) -> Iterator[None]:
    """Have errors name options as they were written."""
    try:
        yield
    except SettingsError as error:
        raise command.respelled(error, given) from error


def _ask(question: str) -> bool:
    """Ask the user, where somebody is there."""
    if not sys.stdin.isatty():
        return False
    output.confirm(question)
    return True


def load(where: str) -> click.Command:
    """The command of a built-in experiment, as `secret-game/play`."""
    experiment, _, name = where.partition("/")
    return command_for(experiment_named(experiment), name, name)


class WithDefault(Group):
    """A group that is a command too: `evolve` evolves, and `evolve bench` measures."""

    def __init__(self, command: Command, more: Sequence[click.Command]) -> None:
        super().__init__(command.name or "", command.help or "")
        self.default = command
        command.epilog = f"Also: {', '.join(f'{command.name} {each.name}' for each in more)}."
        self.params = command.params
        for each in more:
            self.add_command(each)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Choose by the first word."""
        if args and args[0] in self.commands:
            return super().make_context(info_name, args, parent, **extra)
        try:
            return self.default.make_context(info_name, [*args], parent, **extra)
        except click.UsageError as error:
            late = next((word for word in args if word in self.commands), None)
            if late is not None and "unexpected extra argument" in error.message:
                said = f"{args[0]}: write options of `{late}` after it: {info_name} {late} ..."
                raise SettingsError(said) from error
            raise

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Only the name of a command is left to be parsed."""
        self.params, kept = [], self.params
        try:
            return super().parse_args(ctx, args)
        finally:
            self.params = kept


def __getattr__(name: str) -> click.Command:
    """The groups of experiments with several commands, made when they are called."""
    from groundswell.cli import reports

    if name == "mutate":
        mutation = experiment_named("query-mutation")
        group = Group("mutate", mutation.about)
        for each in ("train", "evaluate"):
            group.add_command(command_for(mutation, each, f"mutate {each}"))
        group.add_command(reports.command("query-mutation"))
        return group
    if name == "evolve":
        from groundswell.cli.commands import command_of
        from groundswell.cli.evolve_bench import bench

        evolve = command_for(experiment_named("prompt-evolution"), "evolve", "evolve")
        return WithDefault(evolve, [command_of(bench), reports.command("prompt-evolution", several=False)])
    raise AttributeError(name)


__all__ = ["COMMON", "command_for", "load", "msgspec"]
