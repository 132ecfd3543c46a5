"""Commands of experiments. Their flags and help are available before the experiment itself is imported."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click

from groundswell.cli.commands import Command, Group
from groundswell.cli.options import Terminal
from groundswell.errors import SettingsError
from groundswell.experiments.options import Given, all_fields, fields_of


def lazy_command(
    words: str, options: type[Any], run: Callable[[Mapping[str, Given]], None], *, keeps_folder: bool = True
) -> Command:
    """A command with its own options, those of every run, and those of the command line."""
    own = all_fields(options)
    left_out = () if keeps_folder else ("out",)
    terminal = {name: one for name, one in fields_of(Terminal).items() if name not in (*own, *left_out)}
    help = inspect.getdoc(options) or ""
    return Command(words.rpartition(" ")[2], run, [*own.values(), *terminal.values()], help)


def built_in(where: str, options: str, words: str) -> Command:
    """A command of a built-in experiment, for example `secret-game/play`. `options` is `module:class`."""
    module, _, name = options.partition(":")
    found = getattr(importlib.import_module(module), name)

    def run(given: Mapping[str, Given]) -> None:
        importlib.import_module("groundswell.cli.experiments").run_built_in(where, words, given)

    return lazy_command(words, found, run, keeps_folder=getattr(found, "keeps_folder", True))


class WithDefault(Group):
    """A group that is also a command: `evolve` runs the search, `evolve bench` measures throughput."""

    def __init__(self, command: Command, lazy: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(command.name or "", command.help or "", lazy)
        self.default = command
        command.epilog = f"Also: {', '.join(f'{command.name} {name}' for name in lazy)}."
        self.params = command.params

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Choose the command by the first word."""
        if args and args[0] in self.lazy:
            return super().make_context(info_name, args, parent, **extra)
        try:
            return self.default.make_context(info_name, [*args], parent, **extra)
        except click.UsageError as error:
            late = next((word for word in args if word in self.lazy), None)
            if late is not None and "unexpected extra argument" in error.message:
                said = f"{args[0]}: options of `{late}` come after it: {info_name} {late} ..."
                raise SettingsError(said) from error
            raise

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse only the name of the subcommand."""
        self.params, kept = [], self.params
        try:
            return super().parse_args(ctx, args)
        finally:
            self.params = kept


OPTIONS = {
    "ask": ("prompting/ask", "groundswell.experiments.prompting.options:Ask"),
    "map": ("prompting/map", "groundswell.experiments.prompting.options:Map"),
    "play": ("secret-game/play", "groundswell.experiments.secret_game.options:Play"),
    "compare": ("secret-game/compare", "groundswell.experiments.secret_game.options:Compare"),
    "score": ("secret-game/score", "groundswell.experiments.secret_game.options:Score"),
    "simulate": ("simulations/simulate", "groundswell.experiments.simulations.options:Simulate"),
    "study": ("simulations/study", "groundswell.experiments.simulations.options:Study"),
    "mutate train": ("query-mutation/train", "groundswell.experiments.query_mutation.options:Train"),
    "mutate evaluate": ("query-mutation/evaluate", "groundswell.experiments.query_mutation.options:Evaluate"),
    "mutate test": ("query-mutation/test", "groundswell.experiments.query_mutation.options:Probe"),
    "evolve": ("prompt-evolution/evolve", "groundswell.experiments.prompt_evolution.options:Evolve"),
}
"""The commands of the built-in experiments and the location of their options."""
LAZY = "groundswell.cli.lazy"
MUTATE = {
    "train": (f"{LAZY}:mutate train", "Train policies with PPO, and compare them with a bandit and baselines."),
    "evaluate": (f"{LAZY}:mutate evaluate", "Evaluate the policies of a run again, with the baselines."),
    "test": (f"{LAZY}:mutate test", "Test a model or an application with the baselines, without a training."),
    "report": ("groundswell.cli.reports:mutate_report", "Write the report of one or more runs again."),
}
EVOLVE = {
    "bench": ("groundswell.cli.evolve_bench:bench", "Measure how fast prompts are evaluated."),
    "report": ("groundswell.cli.reports:evolve_report", "Write the report of a run again."),
}


def __getattr__(name: str) -> click.Command:
    """A command by the words that call it."""
    if name == "mutate":
        about = "Learn which rewordings of a query make a guarded model reveal a planted dummy secret."
        return Group("mutate", about, MUTATE)
    if name == "evolve":
        return WithDefault(built_in(*OPTIONS[name], name), EVOLVE)
    if name in OPTIONS:
        return built_in(*OPTIONS[name], name)
    raise AttributeError(name)
