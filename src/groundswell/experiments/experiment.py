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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from io import StringIO
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta
from rich.console import Console

from groundswell.engine.driver import (
    BUILT_IN,
    GROUP,
    Driver,
    driver_name,
    installed_experiments,
    settings_type,
)
from groundswell.engine.events import Listener
from groundswell.engine.options import RunOptions, Schedule
from groundswell.engine.records import RunRecord, Via
from groundswell.engine.summary import Summary
from groundswell.errors import SettingsError
from groundswell.experiments.named import trust_named
from groundswell.experiments.options import (
    COMMON,
    LIMITS,
    Field,
    Flag,
    Given,
    build,
    collect,
    fields_of,
    respelled,
)
from groundswell.program.request import canonical
from groundswell.providers.accounts.config import load_here
from groundswell.store.journal import Store
from groundswell.store.schema import database_path

if TYPE_CHECKING:
    from rich.console import RenderableType

RESULTS = Path("results")
LONGEST_NAME = 100
_STRANGE = re.compile(r"[^\w .,=+@…-]")
"""What is not put into the name of a folder."""
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


class HowToRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is carried out: options of every command that runs something. None of it changes what a run finds."""

    via: Annotated[
        Via | None,
        Meta(
            description="How models are reached: at once (live), by the provider's batch API at half price (batch), or "
            "whichever is better by --deadline and price (auto). (live)"
        ),
        Flag(group=COMMON, usual=True),
    ] = None
    batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The most requests in one batch. (What the provider takes: 50,000 or 100,000.)"),
        Flag(group=COMMON, metavar="N"),
    ] = None
    schedule: Annotated[
        Schedule | None,
        Meta(description="Send requests as they come up (stream), or all trials turn by turn (waves). (stream)"),
        Flag(group=COMMON),
    ] = None
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="The most live requests in flight on each account. (256, or what groundswell.toml says; "
            "locally 4.)"
        ),
        Flag(group=COMMON, metavar="N"),
    ] = None
    account: Annotated[
        tuple[str, ...],
        Meta(description="One setting of an account, as openai.rate_limit_per_minute=3500. May be repeated."),
        Flag(group=COMMON, metavar="NAME.SETTING=VALUE"),
    ] = ()
    no_cache: Annotated[
        bool,
        Meta(
            description="Use and keep no replies of other runs. (Those of scripted and emulated models are never kept.)"
        ),
        Flag(group=COMMON),
    ] = False
    budget: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="The most to spend. Models whose price is not known are not asked then."),
        Flag(group=LIMITS, metavar="USD", usual=True),
    ] = None
    max_calls: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="The most requests to send."),
        Flag(group=LIMITS, metavar="N"),
    ] = None
    max_tokens: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="The most tokens to use, in and out."),
        Flag(group=LIMITS, metavar="N"),
    ] = None
    deadline: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="Stop after this time; it counts anew when a run is resumed. Batches that would miss it are "
            "cancelled before, and the rest goes live."
        ),
        Flag(group=LIMITS, metavar="SECONDS"),
    ] = None
    max_reorder_usd: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="The most that batches which the provider no longer shows may cost to be ordered again without "
            "a question, since they may be paid for twice. Above it the run stops and says what to do. (1; inf: no "
            "limit.)"
        ),
        Flag(group=LIMITS, metavar="USD"),
    ] = None

    def run_options(self, base: RunOptions | None = None) -> RunOptions:
        """How the run is carried out: as `base` says, except for what was chosen."""
        base = base or RunOptions()
        limits = {"usd": self.budget, "calls": self.max_calls, "tokens": self.max_tokens, "seconds": self.deadline}
        given = {name: value for name, value in limits.items() if value is not None}
        said: dict[str, Any] = {"limits": msgspec.structs.replace(base.limits, **given)}
        said |= {
            name: value for name in ("schedule", "via", "batch_size") if (value := getattr(self, name)) is not None
        }
        if self.max_reorder_usd is not None:
            said["max_reorder_usd"] = None if self.max_reorder_usd == inf else self.max_reorder_usd
        if self.no_cache:
            said["cache"] = False
        changed = msgspec.structs.replace(base, **said)
        if self.batch_size is not None and changed.via == "live":
            raise SettingsError(
                f"batch_size {self.batch_size}: nothing travels in batches: set via to batch or auto",
                field="batch_size",
            )
        return changed


class RunChoices(HowToRun, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is named, seeded and carried out."""

    name: Annotated[
        str | None,
        Meta(description="A name for the run; a run of this name is continued. (Made from the settings.)"),
        Flag(metavar="NAME", usual=True),
    ] = None
    seed: Annotated[
        int,
        Meta(ge=-(2**63), le=2**63 - 1, description="The seed of all that is random."),
        Flag(metavar="N", usual=True),
    ] = 0


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

    @contextmanager
    def opened(self) -> Iterator[Store | None]:
        """The store, if there is one."""
        if not database_path(self.store).exists():
            yield None
            return
        held = Store(self.store)
        try:
            yield held
        finally:
            held.close_reading()

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
class Plan:
    """What `prepare` makes of options, where there is more to say than the settings."""

    settings: Any
    name: str = ""
    """How the name of the run begins, if nobody gives one."""
    seed: int | None = None
    notes: tuple[str, ...] = ()
    """What is said before the run begins."""
    choices: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the choices: `max_concurrent`, `account` and so on."""
    base: RunOptions = field(default_factory=RunOptions)
    """How the run is carried out where nothing was chosen."""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """Options as they came out, for the configuration that is written: the default model, entities of the store."""


@dataclass(frozen=True)
class Written:
    """The files of a report: the page to open first, and what is beside it."""

    page: Path | None = None
    files: tuple[Path, ...] = ()
    analysis: Any = None


class Plain(str):
    """Text in findings that is printed to the character, for those who pipe it on."""


class Aside(str):
    """What is said beside the findings, on standard error."""


class Results:
    """What a run leaves: files in its folder, and what is said of it. One object for each run that is carried out.

    Everything has a default, which suits any experiment.
    """

    title: str = ""
    """What `runs report` calls a run of this kind, as 'a game'."""
    keeps_folder: bool = True
    """Whether there is a folder at all."""
    tells_outcome: bool = True
    """Whether the findings come after what every run is told of: trials, requests, cost and time."""
    width: int | None = None
    """The columns of the terminal that findings are for; None if they go to a file or a pipe."""
    listeners: Sequence[Listener] = ()
    """Who hears of the run while it goes on."""

    def __init__(self, folder: Path, options: Any = None) -> None:
        """`options` are None when a run is resumed, or only looked at."""
        self.folder = folder
        self.options = options
        self.choices = HowToRun()
        self.say: Callable[[str], None] = lambda text: None
        """Says something to whoever waits for the run."""

    def check(self) -> None:
        """Find out before anything is paid for whether the files can be written."""
        if self.keeps_folder:
            check_writable(self.folder)

    def around(self, held: Store, before: RunRecord | None, name: str) -> AbstractContextManager[Any]:
        """What is done before and after the run is carried out; `before` is the run as it was, if there was one."""
        return nullcontext()

    def summary(self, summary: Summary, record: RunRecord) -> Summary:
        """The summary as people are told of it."""
        return summary

    def exit_code(self, summary: Summary) -> int:
        """The exit status of the command."""
        return summary.exit_code

    def write(self, held: Store, records: Sequence[RunRecord]) -> Written:
        """Write the files, of one run or of several that are pooled. Files that are there are replaced."""
        from groundswell.experiments.results import write_results

        if not self.keeps_folder:
            return Written()
        return write_results(self.folder, held, records)

    def findings(self, held: Store, records: Sequence[RunRecord], summary: Summary) -> Iterator[RenderableType]:
        """What came of it, for a terminal."""
        from groundswell.experiments.results import analysis_shown

        yield from analysis_shown(summary.analysis)

    def text(self, held: Store, records: Sequence[RunRecord], summary: Summary) -> str:
        """The findings as plain text."""
        console = Console(file=StringIO(), width=160, highlight=False, emoji=False, markup=False)
        for each in self.findings(held, records, summary):
            console.print(each, soft_wrap=isinstance(each, str))
        return console.file.getvalue().strip("\n")  # type: ignore[attr-defined]

    def hints(self, held: Store, record: RunRecord) -> Iterator[tuple[str, str]]:
        """What could be done next: what for, and the command."""
        return iter(())


@dataclass(frozen=True)
class Command:
    """One way to run an experiment.

    Of several drivers, the one that takes settings of the type that `prepare` returns is called.
    """

    name: str
    options: type[Any]
    drivers: Sequence[Driver]
    prepare: Callable[..., Any] | None = None
    results: Callable[[Path, Any], Results] = Results
    prefix: str = ""
    """How names of runs begin; otherwise the name of the experiment."""
    named: bool = True
    """Whether runs have a name if nobody gives one, so that the same command is the same run."""
    over_http: bool = True
    """Whether a request over HTTP can start it."""

    @property
    def keeps_folder(self) -> bool:
        """Whether runs have a folder for their results."""
        return getattr(self.results, "keeps_folder", True)

    @property
    def help(self) -> str:
        """What it does: the first lines of the options' docstring."""
        return inspect.getdoc(self.options) or ""

    @cached_property
    def fields(self) -> dict[str, Field]:
        """All options: its own, and those of every run."""
        own = fields_of(self.options)
        return own | {name: one for name, one in fields_of(RunChoices).items() if name not in own}

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
                found[name] = value
        for name, one in fields_of(RunChoices).items():
            value = getattr(self._context.choices, name)
            if name not in found and name not in own and value != one.default:
                found[name] = value
        plain = msgspec.to_builtins(found, builtin_types=(), enc_hook=str)
        return {name: value for name, value in plain.items() if value is not None}

    def value(self, name: str) -> Any:
        """The value of an option of its own, as it came out."""
        return self._resolved.get(name, getattr(self.options, _attribute(self.command.options, name)))

    def results(self, folder: Path | None = None) -> Results:
        """What the run will leave, in a folder of its own unless another one is given."""
        made = self.command.results(folder or folder_of(self.name or ""), self.options)
        made.choices = self.choices
        return made


def _attribute(options: type[Any], name: str) -> str:
    return next(each.name for each in msgspec.structs.fields(options) if each.encode_name == name)


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
            for driver in each.drivers:
                _name_driver(self, each, driver)

    def command(self, name: str) -> Command:
        """A command by its name."""
        for each in self.commands:
            if each.name == name:
                return each
        there = ", ".join(each.name for each in self.commands)
        raise SettingsError(f"experiment {self.name} has no command {name!r}; there are {there}", field="command")


def _name_driver(experiment: Experiment, command: Command, driver: Driver) -> None:
    """Give a user's driver the name that its runs store, unless it has one."""
    from groundswell.engine.driver import driver as register

    if driver_name(driver) in BUILT_IN or getattr(driver, "__groundswell_name__", None) is not None:
        return
    last = command.name if len(command.drivers) == 1 else driver.__name__.replace("_", "-")
    register(f"{experiment.name}/{last}")(driver)


_OWN: dict[str, Experiment] = {}


def register(experiment: Experiment) -> Experiment:
    """Make an experiment known in this process, to commands and to a server."""
    _OWN[experiment.name] = experiment
    return experiment


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
    return [*EXPERIMENTS, *(name for name in (*_OWN, *_installed()) if name not in EXPERIMENTS)]


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
    return Results(folder) if command is None else command.results(folder, None)


def collect_values(
    command: Command, given: Mapping[str, Any], *, text: bool, folder: Path | None = None
) -> dict[str, Given]:
    """Values of a TOML file, a JSON body or Python arguments, by field."""
    return collect(command.fields, given, what=command.name, folder=folder, text=text)


def made_name(prefix: str, ready: Ready) -> str:
    """A name that is the same for the same settings and seed, and another one for any other."""
    first = ready.driver is ready.command.drivers[0]
    kind = [] if first else [driver_name(ready.driver)]  # settings of two drivers may look the same
    digest = blake2b(canonical([ready.settings, ready.seed, *kind]), digest_size=4).hexdigest()
    return f"{plain_name(prefix)}-{digest}"


def plain_name(text: str) -> str:
    """Text as a part of a name that needs no quotes."""
    return _NOT_IN_A_NAME.sub("-", text.lower()).strip("-.")[:LONGEST_NAME].strip("-.") or "run"


def folder_of(name: str) -> Path:
    """Where the results of a run go unless something is said: a folder of its own, whatever the run is called."""
    plain = _STRANGE.sub("-", name).strip(" .")[:LONGEST_NAME]
    if plain == name:
        return RESULTS / name
    return RESULTS / f"{plain or 'run'}-{blake2b(name.encode(errors='surrogatepass'), digest_size=4).hexdigest()}"


def check_writable(folder: Path) -> None:
    """Find out whether files can be put into a folder, which need not be there yet."""
    from tempfile import NamedTemporaryFile

    place = folder.absolute()
    try:
        nearest = next(each for each in (place, *place.parents) if each.exists())  # the rest is made with the report
        with NamedTemporaryFile(dir=nearest):
            """It can be written to."""
    except OSError as error:
        raise SettingsError(f"--out {folder}: no report can be put there: {error.strerror or error}") from error


__all__ = [
    "EXPERIMENTS",
    "GROUP",
    "Aside",
    "Command",
    "Context",
    "Experiment",
    "Flag",
    "Plain",
    "Plan",
    "Ready",
    "Results",
    "RunChoices",
    "Written",
    "experiment_named",
    "register",
]
