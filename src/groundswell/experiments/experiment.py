"""An experiment, described once: commands with their options, drivers and results.

The command line, the REST API, the Python functions, estimates, run names, results folders, `runs resume` and `runs
report` are all derived from the description. The built-in experiments have no other way, and a user's own experiment
gets the same:

    class Play(msgspec.Struct, frozen=True, kw_only=True):
        \"\"\"Two agents divide ten dollars.\"\"\"

        model: Annotated[str, Meta(description="Who plays.")] = "local/smollm2"
        rounds: Annotated[int, Meta(ge=1, description="Rounds of a game.")] = 3

    experiment = Experiment("ultimatum", [Command("play", Play, drivers=[play])])

Options are what a person writes. `prepare` makes the driver's settings of them, which the record of the run holds:
files are read and names resolved, so that the settings hold no path. Without `prepare`, the options are the settings.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import msgspec
import tomli_w

from groundswell.compose import look_into, provider_of
from groundswell.engine.driver import (
    BUILT_IN,
    Driver,
    analysis_type,
    driver_name,
    installed_experiments,
    settings_type,
)
from groundswell.engine.driver import driver as register_driver
from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.named import trust_named
from groundswell.experiments.options import (
    Field,
    Flag,
    Given,
    Plan,
    RunChoices,
    all_fields,
    build,
    fields_of,
    literal,
    respelled,
)
from groundswell.experiments.report import DataTable, Found
from groundswell.experiments.results import Aside, Blocks, Plain, Results, folder_of
from groundswell.program.request import canonical
from groundswell.providers.accounts.config import load_here
from groundswell.store.journal import Store

LONGEST_NAME = 100
_NOT_IN_A_NAME = re.compile(r"[^\w.=+@-]+")
"""What is not put into a name that is made up, so that it needs no quotes."""

EXPERIMENTS = {
    "secret-game": "groundswell.experiments.secret_game.experiment",
    "simulations": "groundswell.experiments.simulations.experiment",
    "query-mutation": "groundswell.experiments.query_mutation.experiment",
    "prompt-evolution": "groundswell.experiments.prompt_evolution.experiment",
    "prompting": "groundswell.experiments.prompting.experiment",
}
"""Groundswell's own experiments, and the modules that describe them."""

Origin = Literal["command", "python", "request"]


@dataclass
class Context:
    """What `prepare` may need besides the options."""

    choices: RunChoices = field(default_factory=RunChoices)
    store: str = "groundswell.db"
    origin: Origin = "python"
    estimating: bool = False
    given: frozenset[str] = frozenset()
    """The names of the options that were given."""
    ask: Callable[[str], bool] | None = None
    """Asks the user a question, where there is one to be asked."""
    default: str | None = None
    """The default model of a server."""
    account: tuple[str, ...] = ()
    """Changes to accounts that a server was started with."""

    @property
    def accounts(self) -> tuple[str, ...]:
        """Changes to accounts: those that were chosen, or the server's."""
        return self.choices.account or self.account

    @cached_property
    def default_model(self) -> str:
        """The model that is asked where nobody names one."""
        return self.default or load_here(self.accounts).default_model

    def models(self, named: Sequence[str]) -> tuple[str, ...]:
        """The models that were named, each once; else the default."""
        if any(not name.strip() for name in named):
            raise SettingsError("model: a name is empty", field="model")
        return tuple(dict.fromkeys(name.strip() for name in named)) or (self.default_model,)

    def provider_of(self, model: str) -> str:
        """The provider that a model leads to."""
        return provider_of(model, None, self.accounts)

    def opened(self) -> AbstractContextManager[Store | None]:
        """The store, if there is one."""
        return look_into(self.store)

    def allow_own_modules(self, names: Iterable[str]) -> None:
        """Let modules that the user names, as `module:name`, be imported. A request over HTTP cannot do that."""
        named = [name for name in names if ":" in name]
        if not named:
            return
        if self.origin == "request":
            unseen = [name for name in named if name.rpartition(":")[0] not in sys.modules]
            if unseen:
                raise SettingsError(f"{unseen[0]}: a request cannot have a module imported; name what is built in")
            return
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        trust_named(named)


@dataclass(frozen=True)
class Command:
    """One way to run an experiment.

    Of several drivers, the one that takes settings of the type that `prepare` returns is called.
    """

    name: str
    options: type[Any]
    drivers: Sequence[Driver]
    prepare: Callable[..., Any] | None = None
    results: type[Results] = Results
    blocks: Blocks | None = None
    """Makes the blocks of the report, from a `Found`. An experiment with files of its own has its own `results`."""
    prefix: str = ""
    """How names of runs begin; otherwise with the name of the experiment."""
    named: bool = True
    """Whether runs have a name if nobody gives one, so that the same command is the same run."""
    over_http: bool = True
    """Whether a request over HTTP can start it."""

    @property
    def keeps_folder(self) -> bool:
        """Whether runs have a folder for their results."""
        return self.results.keeps_folder

    def results_in(self, folder: Path, options: Any = None) -> Results:
        """What a run of this command leaves, in this folder; `options` are None for a stored run."""
        made = self.results(folder, options, self.blocks)
        made.analyses = {driver_name(driver): analysis_type(driver) for driver in self.drivers}
        return made

    @property
    def help(self) -> str:
        """What it does: the first lines of the options' docstring."""
        return inspect.getdoc(self.options) or ""

    @cached_property
    def fields(self) -> dict[str, Field]:
        """All options: its own, and those of every run."""
        return all_fields(self.options)

    def driver_for(self, settings: Any) -> Driver:
        """The driver that takes these settings."""
        for driver in self.drivers:
            kind = settings_type(driver)
            if kind is Any or not isinstance(kind, type) or isinstance(settings, kind):
                return driver
        raise SettingsError(f"{self.name}: no driver takes settings of type {type(settings).__name__}")

    def ready(self, given: Mapping[str, Given], context: Context) -> Ready:
        """All that a run needs, from what was given. Nothing is sent, and no run is made."""
        own = fields_of(self.options)
        options = build(self.options, {name: one for name, one in given.items() if name in own})
        shared = {name: one for name, one in given.items() if name not in own}
        context.choices = build(RunChoices, shared)
        context.given = frozenset(given)
        try:
            plan = self._planned(options, context)
            return Ready(self, options, context, plan)
        except SettingsError as error:
            raise self.respelled(error, given) from error

    def respelled(self, error: SettingsError, given: Mapping[str, Given]) -> SettingsError:
        """An error of settings or of the run, with options spelled as they were written."""
        return respelled(error, self.fields, given)

    def _planned(self, options: Any, context: Context) -> Plan:
        if self.prepare is None:
            return Plan(options)
        takes_context = len(inspect.signature(self.prepare).parameters) > 1
        made = self.prepare(options, context) if takes_context else self.prepare(options)
        return made if isinstance(made, Plan) else Plan(made)


class Ready:
    """A run that could begin: the driver, its settings, and how it is carried out."""

    def __init__(self, command: Command, options: Any, context: Context, plan: Plan) -> None:
        self.command = command
        self.options = options
        self.choices = msgspec.structs.replace(context.choices, **plan.choices)
        self.settings = plan.settings
        self.driver = command.driver_for(plan.settings)
        self.seed = context.choices.seed if plan.seed is None else plan.seed
        self.notes = plan.notes
        self.run_options = self.choices.run_options(plan.base)
        self.named = context.choices.name is not None
        made = made_name(plan.name or command.prefix or command.name, self) if command.named else None
        self.name = context.choices.name or made
        self._resolved = plan.resolved
        self._context = context

    @property
    def config(self) -> dict[str, Any]:
        """The options that differ from their defaults, as a TOML file that gives the same run has them."""
        found: dict[str, Any] = {"seed": self.seed}
        own = fields_of(self.command.options)
        for name, one in own.items():
            value = self.value(name)
            if not one.flag.local and (name in self._resolved or value != one.default):
                found[name] = literal(one, value)
        for name, one in fields_of(RunChoices).items():
            value = getattr(self._context.choices, name)
            if name not in found and name not in own and value != one.default:
                found[name] = value
        plain = msgspec.to_builtins(found, builtin_types=(), enc_hook=str)
        return {name: value for name, value in plain.items() if value is not None}

    def config_text(self, words: str) -> str:
        """The configuration that gives the same run again, as TOML; `words` are those that call the command."""
        return f"# To do the same again: groundswell {words} --config FILE\n" + tomli_w.dumps(self.config)

    def value(self, name: str) -> Any:
        """The value of an option of its own, as it came out."""
        return self._resolved.get(name, getattr(self.options, _attribute(self.command.options, name)))

    def results(self, folder: Path | None = None) -> Results:
        """What the run will leave, in a folder of its own unless another one is given."""
        made = self.command.results_in(folder or folder_of(self.name or ""), self.options)
        made.choices = self.choices
        return made


def _attribute(options: type[Any], name: str) -> str:
    return next(each.name for each in msgspec.structs.fields(options) if each.encode_name == name)


_OWN: dict[str, Experiment] = {}
"""Experiments of users that this process has loaded, by name."""


@dataclass(frozen=True)
class Experiment:
    """A name, and the commands that run it."""

    name: str
    commands: Sequence[Command]
    about: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.name):
            raise SettingsError(f"experiment {self.name!r}: a name has small letters, digits and dashes, as my-study")
        for each in self.commands:
            if not each.prefix:
                several = f"{self.name}-{each.name}"
                object.__setattr__(each, "prefix", self.name if len(self.commands) == 1 else several)
            for driver in each.drivers:
                _name_driver(self, each, driver)
        if self.name not in EXPERIMENTS:
            _OWN[self.name] = self

    def command(self, name: str) -> Command:
        """A command by its name."""
        for each in self.commands:
            if each.name == name:
                return each
        there = ", ".join(each.name for each in self.commands)
        raise SettingsError(f"experiment {self.name} has no command {name!r}; there are {there}", field="command")


def _name_driver(experiment: Experiment, command: Command, driver: Driver) -> None:
    """Give a user's driver the name that its runs store, unless it has one."""
    if driver_name(driver) in BUILT_IN or getattr(driver, "__groundswell_name__", None) is not None:
        return
    last = command.name if len(command.drivers) == 1 else driver.__name__.replace("_", "-")
    register_driver(f"{experiment.name}/{last}")(driver)


def experiment_named(name: str) -> Experiment:
    """An experiment by its name: built in, registered, or of an installed package."""
    if name in _OWN:
        return _OWN[name]
    if name in EXPERIMENTS:
        found: Experiment = importlib.import_module(EXPERIMENTS[name]).experiment
        return found
    installed = _installed()
    if name in installed:
        module, _, attribute = installed[name].partition(":")
        found = getattr(importlib.import_module(module), attribute)
        if isinstance(found, Experiment):
            return found
    there = ", ".join(experiment_names())
    raise SettingsError(f"there is no experiment {name!r}; there are {there}", field="experiment")


def experiment_names() -> list[str]:
    """The names of all experiments that are known."""
    return list(dict.fromkeys((*EXPERIMENTS, *_OWN, *_installed())))


def _installed() -> dict[str, str]:
    """Experiments of installed packages: entry points whose name is not that of a driver."""
    return {name: where for name, where in installed_experiments().items() if "/" not in name}


def command_of_run(record: RunRecord) -> Command | None:
    """The command that a stored run was started by, as far as its driver tells. Imports nothing of a user's."""
    if record.driver is None:
        return None
    name = record.driver.partition("/")[0]
    if record.driver not in BUILT_IN and name not in _OWN:
        return None
    experiment = experiment_named(name) if name in EXPERIMENTS or name in _OWN else None
    for each in () if experiment is None else experiment.commands:
        if record.driver in [driver_name(driver) for driver in each.drivers]:
            return each
    return None


def results_of(record: RunRecord, folder: Path) -> Results:
    """What a stored run leaves, in this folder. A run of no known experiment leaves what any run does."""
    command = command_of_run(record)
    return Results(folder) if command is None else command.results_in(folder)


def made_name(prefix: str, ready: Ready) -> str:
    """A name that is the same for the same settings and seed, and another one for any other."""
    first = ready.driver is ready.command.drivers[0]
    kind = [] if first else [driver_name(ready.driver)]  # settings of two drivers may look the same
    digest = blake2b(canonical([ready.settings, ready.seed, *kind]), digest_size=4).hexdigest()
    return f"{plain_name(prefix)}-{digest}"


def plain_name(text: str) -> str:
    """Text as a part of a name that needs no quotes."""
    return _NOT_IN_A_NAME.sub("-", text.lower()).strip("-.")[:LONGEST_NAME].strip("-.") or "run"


__all__ = [
    "EXPERIMENTS",
    "Aside",
    "Command",
    "Context",
    "DataTable",
    "Experiment",
    "Flag",
    "Found",
    "Plain",
    "Plan",
    "Ready",
    "Results",
    "RunChoices",
    "experiment_named",
]
