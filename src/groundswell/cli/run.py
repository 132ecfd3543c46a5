"""`groundswell run`: run your own experiment or driver from a file or a module."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click
import msgspec
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.commands import Command, Group
from groundswell.cli.estimating import estimate_driver
from groundswell.cli.experiments import command_for
from groundswell.cli.options import Estimate, RunFlags
from groundswell.cli.running import run_and_report
from groundswell.cli.targets import build_settings, find_driver, find_experiment, read_settings
from groundswell.engine.driver import Driver, settings_type
from groundswell.engine.engine import Engine
from groundswell.engine.summary import Summary, summarise
from groundswell.experiments.experiment import Experiment
from groundswell.experiments.options import Field, Flag, Given, RunChoices, build, fields_of, value_of

T = TypeVar("T")


class OfDriver(msgspec.Struct, frozen=True, kw_only=True):
    """Options that set the driver's settings, in addition to one flag per field."""

    settings: Annotated[
        Path | None,
        Meta(description="JSON file with the settings of the driver."),
        Flag(metavar="FILE.json", completes="files"),
    ] = None
    change: Annotated[
        tuple[str, ...],
        Meta(description="Set one field of the settings. The value is read as JSON, else as text. May be repeated."),
        Flag(long="--set", metavar="FIELD=VALUE"),
    ] = ()
    estimate: Estimate = False


class Run(Command):
    """The command `run`. Its further options depend on the target."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Load the target, if there is one, and continue with the command made from it."""
        if not args or args[0].startswith("-"):
            return super().make_context(info_name, args, parent, **extra)
        target, rest = args[0], args[1:]
        found = find_experiment(target)
        if found is not None and len(found.commands) == 1 and rest[:1] == [found.commands[0].name]:
            rest = rest[1:]
        own: click.Command = _of_driver(find_driver(target), target) if found is None else _of_experiment(found, target)
        return own.make_context(f"{info_name} {target}", rest, parent, **extra)


def _of_experiment(experiment: Experiment, target: str) -> click.Command:
    """The command of an experiment. If it has several, the next word chooses one."""
    words = f"run {os.path.basename(target)}"
    if len(experiment.commands) == 1:
        return command_for(experiment, experiment.commands[0].name, words)
    group = Group(target, experiment.about)
    for each in experiment.commands:
        group.add_command(command_for(experiment, each.name, f"{words} {each.name}"))
    return group


def _of_driver(driver: Driver, target: str) -> Command:
    """A command with a flag for each field of the driver's settings."""
    shared = {**fields_of(RunFlags), **fields_of(RunChoices), **fields_of(OfDriver)}
    known = _settings_fields(driver)
    if "log" in known:
        del shared["log"]  # a common name for a setting
    own = {name: one for name, one in known.items() if name not in shared}

    def run(given: Mapping[str, Given]) -> None:
        flags = _part(RunFlags, {name: one for name, one in given.items() if name not in own})
        choices, how = _part(RunChoices, given), _part(OfDriver, given)
        base = {} if how.settings is None else read_settings(how.settings)
        base |= {name: msgspec.to_builtins(value_of(own[name], one)) for name, one in given.items() if name in own}
        _drive(driver, build_settings(driver, base, list(how.change)), flags, choices, estimate=how.estimate)

    described = (driver.__doc__ or f"Run the driver {target}.").strip()
    return Command("run", run, [*own.values(), *shared.values()], described)


def _part(kind: type[T], given: Mapping[str, Given]) -> T:
    return build(kind, {name: one for name, one in given.items() if name in fields_of(kind)})


def _settings_fields(driver: Driver) -> dict[str, Field]:
    """The fields of a driver's settings as flags. None is required here, since --settings may contain it."""
    kind = settings_type(driver)
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return {}
    return {
        name: Field(name, one.kind, None, one.description, Flag(*one.flag.names, metavar=one.flag.metavar, usual=True))
        for name, one in fields_of(kind).items()
    }


def _drive(driver: Driver, settings: Any, flags: RunFlags, choices: RunChoices, *, estimate: bool) -> None:
    options = choices.run_options()
    if estimate:
        estimate_driver(driver, settings, choices, seed=choices.seed, json=flags.json)
        return

    async def work(engine: Engine) -> Summary:
        before = None if choices.name is None else engine.store.runs.find(choices.name)
        summary = await engine.drive(driver, settings, name=choices.name, seed=choices.seed, options=options)
        if before is not None and summarise(before).asks == summary.asks:
            output.say(output.already_done(summary))
        return summary

    run_and_report(work, flags, choices, log=flags.log)


def _without_target(given: Mapping[str, Given]) -> None:
    raise click.UsageError("Missing argument 'TARGET'.")


TARGET = Field(
    "target",
    str,
    description="An experiment or a driver: file.py, file.py:driver or module:driver. To see its flags: run TARGET "
    "--help.",
    flag=Flag(argument=True, metavar="TARGET", completes="files"),
)
run = Run(
    "run",
    _without_target,
    [TARGET, *fields_of(RunFlags).values(), *fields_of(RunChoices).values(), *fields_of(OfDriver).values()],
    "Run your own experiment, or an `async def driver(run, settings)`.",
)
