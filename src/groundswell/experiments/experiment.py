"""The description of an experiment: commands with their options, drivers and results.

The command line, the REST API, the Python functions, estimates, run names, results folders, `runs resume` and `runs
report` are all derived from the description, for built-in experiments and for your own:

    class Play(msgspec.Struct, frozen=True, kw_only=True):
        \"\"\"Two agents divide ten dollars.\"\"\"

        model: Annotated[str, Meta(description="Model that plays both sides.")] = "local/smollm2"
        rounds: Annotated[int, Meta(ge=1, description="Number of rounds per game.")] = 3

    experiment = Experiment("ultimatum", [Command("play", Play, drivers=[play])])

Options are what the user writes. `prepare` turns them into the driver's settings, which are stored with the run: it
reads files and resolves names, so settings contain no paths. Without `prepare`, the options are the settings.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import tomllib
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
from groundswell.experiments.labelling import Labelling
from groundswell.experiments.named import trust_named
from groundswell.experiments.options import (
    Field,
    Flag,
    Given,
    Place,
    Plan,
    RunChoices,
    WithoutFiles,
    all_fields,
    attributes_of,
    build,
    collect,
    fields_of,
    literal,
    read_text,
    respelled,
)
from groundswell.experiments.report import DataTable, Found
from groundswell.experiments.results import Aside, Blocks, Plain, Results, folder_of
from groundswell.program.request import canonical
from groundswell.providers.accounts.config import load_here
from groundswell.store.journal import Store

LONGEST_NAME = 100
_NOT_IN_A_NAME = re.compile(r"[^\w.=+@-]+")
"""Characters that generated names do not contain, so that they need no quotes."""

EXPERIMENTS = {
    "secret-game": "groundswell.experiments.secret_game.experiment",
    "simulations": "groundswell.experiments.simulations.experiment",
    "query-mutation": "groundswell.experiments.query_mutation.experiment",
    "prompt-evolution": "groundswell.experiments.prompt_evolution.experiment",
    "prompting": "groundswell.experiments.prompting.experiment",
}
"""The built-in experiments and their modules."""

Origin = Literal["command", "python", "request"]


@dataclass
class Context:
    """What `prepare` may need in addition to the options."""

    choices: RunChoices = field(default_factory=RunChoices)
    store: str = "groundswell.db"
    origin: Origin = "python"
    estimating: bool = False
    given: frozenset[str] = frozenset()
    """The names of the options that the user set."""
    ask: Callable[[str], bool] | None = None
    """Asks the user a question; None if there is no user to ask."""
    default: str | None = None
    """The default model of a server."""
    account: tuple[str, ...] = ()
    """Account settings from the command line of a server."""

    @property
    def accounts(self) -> tuple[str, ...]:
        """Account settings: those of the run, else those of the server."""
        return self.choices.account or self.account

    @cached_property
    def default_model(self) -> str:
        """The model to use if none is named."""
        return self.default or load_here(self.accounts).default_model

    def place(self, spelled: str) -> Place:
        """Where an option was written. A request cannot name files."""
        return WithoutFiles(spelled) if self.origin == "request" else Place(spelled)

    def models(self, named: Sequence[str]) -> tuple[str, ...]:
        """The named models without duplicates; the default model if there are none."""
        if any(not name.strip() for name in named):
            raise SettingsError("model: a name is empty", field="model")
        return tuple(dict.fromkeys(name.strip() for name in named)) or (self.default_model,)

    def provider_of(self, model: str) -> str:
        """The provider of a model."""
        return provider_of(model, None, self.accounts)

    def opened(self) -> AbstractContextManager[Store | None]:
        """The store, if it exists."""
        return look_into(self.store)

    def allow_own_modules(self, names: Iterable[str]) -> None:
        """Allow the import of modules that the user names as `module:name`. HTTP requests cannot do that."""
        named = [name for name in names if ":" in name]
        if not named:
            return
        if self.origin == "request":
            unseen = [name for name in named if name.rpartition(":")[0] not in sys.modules]
            if unseen:
                raise SettingsError(
                    f"{unseen[0]}: this module is not loaded in the server, and HTTP requests cannot import "
                    f"modules; use a built-in name"
                )
            return
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        trust_named(named)


@dataclass(frozen=True)
class Command:
    """One way to run an experiment.

    If there are several drivers, the type of the settings that `prepare` returns selects one.
    """

    name: str
    options: type[Any]
    drivers: Sequence[Driver]
    prepare: Callable[..., Any] | None = None
    results: type[Results] = Results
    blocks: Blocks | None = None
    """Makes the blocks of the report from a `Found`. For data files of your own, subclass `results` instead."""
    prefix: str = ""
    """Prefix of generated run names. The default is the name of the experiment."""
    named: bool = True
    """Whether a run gets a generated name, so that the same command continues the same run."""
    over_http: bool = True
    """Whether the REST API can start it."""
    labelling: Labelling | None = None
    """How people label the results of its runs; None if they cannot."""
    spelled: str = ""
    """Its words on the command line, if they are not its name: `mutate train`."""
    function: str = ""
    """The function of `groundswell` that runs it. Commands without one are called with `as_function`."""
    marked_by: str = ""
    """A field of the settings that only its runs have, if another command has the same driver."""

    @property
    def keeps_folder(self) -> bool:
        """Whether runs have a folder for their results."""
        return self.results.keeps_folder

    def results_in(self, folder: Path, options: Any = None) -> Results:
        """The results of a run of this command in this folder. `options` is None for a stored run."""
        made = self.results(folder, options, self.blocks)
        made.analyses = {driver_name(driver): analysis_type(driver) for driver in self.drivers}
        return made

    @property
    def help(self) -> str:
        """The help text: the docstring of the options."""
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

    def configured(self, path: Path, spelled: str = "--config") -> dict[str, Given]:
        """The options in a TOML file. Paths in it are relative to its folder."""
        try:
            said = tomllib.loads(read_text(path, spelled))
            return collect(self.fields, said, what=self.name, folder=path.parent, source=f"{spelled} {path}")
        except (tomllib.TOMLDecodeError, SettingsError) as error:
            told = str(error).removeprefix(f"{spelled} {path}: ")
            raise SettingsError(f"{spelled} {path}: {told}", field=getattr(error, "field", None)) from error

    def ready(self, given: Mapping[str, Given], context: Context) -> Ready:
        """Everything needed to start a run with the given values. Sends nothing and creates no run."""
        for name, one in given.items():
            if self.fields[name].flag.config and context.origin != "request":
                given = {**self.configured(one.place.file(str(one.value)), one.place.spelled), **given}
        own, flags = fields_of(self.options), False if context.origin == "request" else None
        options = build(self.options, {name: one for name, one in given.items() if name in own}, flags=flags)
        shared = {name: one for name, one in given.items() if name not in own}
        context.choices = build(RunChoices, shared, flags=flags)
        context.given = frozenset(given)
        try:
            plan = self._planned(options, context)
            return Ready(self, options, context, plan)
        except SettingsError as error:
            raise respelled(error, self.fields, given, flags=flags) from error

    def respelled(self, error: SettingsError, given: Mapping[str, Given]) -> SettingsError:
        """An error that names options the way the user wrote them."""
        return respelled(error, self.fields, given)

    def _planned(self, options: Any, context: Context) -> Plan:
        if self.prepare is None:
            return Plan(options)
        takes_context = len(inspect.signature(self.prepare).parameters) > 1
        made = self.prepare(options, context) if takes_context else self.prepare(options)
        return made if isinstance(made, Plan) else Plan(made)


class Ready:
    """A run that is ready to start: the driver, its settings and its run options."""

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
        """The options that differ from their defaults, as in a TOML file that reproduces the run."""
        found: dict[str, Any] = {"seed": self.seed}
        own = fields_of(self.command.options)
        for name, one in own.items():
            value = self.value(name)
            if not one.flag.local and (name in self._resolved or value != one.default):
                found[name] = literal(one, value, self._context.place(name))
        for name, one in fields_of(RunChoices).items():
            value = getattr(self._context.choices, name)
            if name not in found and name not in own and value != one.default:
                found[name] = value
        plain = msgspec.to_builtins(found, builtin_types=(), enc_hook=str)
        return {name: value for name, value in plain.items() if value is not None}

    def config_text(self, words: str) -> str:
        """The configuration that reproduces the run, as TOML. `words` calls the command on the command line."""
        return f"# To reproduce this run: groundswell {words} --config FILE\n" + tomli_w.dumps(self.config)

    def value(self, name: str) -> Any:
        """The resolved value of one of the command's own options."""
        return self._resolved.get(name, getattr(self.options, attributes_of(self.command.options)[name]))

    @property
    def models(self) -> dict[str, Any]:
        """The options that name models, with the models that the run uses."""
        fields = fields_of(self.command.options).items()
        named = {name: self.value(name) for name, one in fields if one.flag.completes == "models"}
        return {name: value if isinstance(value, str) else list(value) for name, value in named.items() if value}

    def results(self, folder: Path | None = None) -> Results:
        """The results of the run, in its own folder unless another one is given."""
        made = self.command.results_in(folder or folder_of(self.name or ""), self.options)
        made.choices = self.choices
        return made


_OWN: dict[str, Experiment] = {}
"""Your own experiments that this process has loaded, by name."""


@dataclass(frozen=True)
class Experiment:
    """An experiment: a name and the commands that run it."""

    name: str
    commands: Sequence[Command]
    about: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.name):
            said = "use lower-case letters, digits and dashes, for example my-study"
            raise SettingsError(f"experiment {self.name!r}: {said}")
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
        raise SettingsError(f"experiment {self.name} has no command {name!r}; commands: {there}", field="command")


def _name_driver(experiment: Experiment, command: Command, driver: Driver) -> None:
    """Give a user's driver the name that is stored with its runs, unless it has one."""
    if driver_name(driver) in BUILT_IN or getattr(driver, "__groundswell_name__", None) is not None:
        return
    last = command.name if len(command.drivers) == 1 else driver.__name__.replace("_", "-")
    register_driver(f"{experiment.name}/{last}")(driver)


def experiment_named(name: str) -> Experiment:
    """An experiment by name: built in, loaded, or from an installed package."""
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
    raise SettingsError(f"there is no experiment {name!r}; experiments: {there}", field="experiment")


def experiment_names() -> list[str]:
    """The names of all known experiments."""
    return list(dict.fromkeys((*EXPERIMENTS, *_OWN, *_installed())))


def _installed() -> dict[str, str]:
    """Experiments of installed packages: entry points that are not drivers."""
    return {name: where for name, where in installed_experiments().items() if "/" not in name}


def command_of_run(record: RunRecord) -> Command | None:
    """The command that started a stored run, found by its driver. Never imports the user's code."""
    if record.driver is None:
        return None
    name = record.driver.partition("/")[0]
    if record.driver not in BUILT_IN and name not in _OWN:
        return None
    experiment = experiment_named(name) if name in EXPERIMENTS or name in _OWN else None
    commands = () if experiment is None else experiment.commands
    found = [each for each in commands if record.driver in map(driver_name, each.drivers)]
    if any(each.marked_by for each in found):
        settings = msgspec.json.decode(record.settings or "{}", type=dict[str, msgspec.Raw])
        found = [each for each in found if each.marked_by in settings] or [each for each in found if not each.marked_by]
    return next(iter(found), None)


def results_of(record: RunRecord, folder: Path) -> Results:
    """The results of a stored run in this folder. If its experiment is unknown, the default results."""
    command = command_of_run(record)
    return Results(folder) if command is None else command.results_in(folder)


def made_name(prefix: str, ready: Ready) -> str:
    """A name that is unique to the settings and seed."""
    first = ready.driver is ready.command.drivers[0]
    kind = [] if first else [driver_name(ready.driver)]  # settings of two drivers may be equal
    digest = blake2b(canonical([ready.settings, ready.seed, *kind]), digest_size=4).hexdigest()
    return f"{plain_name(prefix)}-{digest}"


def plain_name(text: str) -> str:
    """Text as part of a name that needs no quotes."""
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
