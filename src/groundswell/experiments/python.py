"""Experiments as functions: `groundswell.play(models=["openai/gpt-4o-mini"], interactions=100)`.

The arguments have the names and values of the command line options, with underscores. A call blocks until the run has
ended; use `await play.run(...)` in async code. Both return a `Finished`. Calling a function again with the same
arguments continues the same run.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import msgspec

from groundswell import compose
from groundswell.engine.driver import analysis_type
from groundswell.engine.engine import Engine
from groundswell.engine.events import Listener
from groundswell.engine.records import RunRecord
from groundswell.engine.stored import StoredRun
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import SettingsError
from groundswell.estimate.bill import Bill
from groundswell.experiments.experiment import Command, Context, Experiment, Ready, experiment_named
from groundswell.experiments.options import collect
from groundswell.experiments.pilot import estimate_run, pilot_options
from groundswell.experiments.report import ReportFormat
from groundswell.experiments.results import Outputs, Results, Written
from groundswell.portal import open_sync
from groundswell.reporting import notebook
from groundswell.reporting.blocks import Report
from groundswell.reporting.console import SafeConsole
from groundswell.reporting.progress import Progress
from groundswell.store.journal import Store

STORE = "groundswell.db"


class Finished(StoredRun):
    """A run that has ended: its summary, its analysis (in the type that its driver returns), rows and transcripts."""

    def __init__(self, record: RunRecord, held: Store, ready: Ready, written: Written, results: Results) -> None:
        super().__init__(record, held.results(record))
        self._held = held
        self._results_of = results
        self._analysis_type = analysis_type(ready.driver)
        self.settings = ready.settings
        self.folder = results.folder if results.keeps_folder else None
        """The folder with the report and the data files."""
        self.files = tuple(path for path in (written.page, *written.files) if path is not None)

    @property
    def summary(self) -> Summary:
        """How the run ended, as `--json` prints it."""
        return summarise(self.record, self._analysis_type)

    @property
    def status(self) -> str:
        """The status of the run, for example `completed` or `partial`."""
        return self.record.status

    @property
    def analysis(self) -> Any:
        """The return value of the driver; None if the run ended before it returned."""
        return self.summary.analysis

    @property
    def findings(self) -> str:
        """The findings as text."""
        if not self._results_of.has_report(self.record):
            return ""
        return self._results_of.text(self.blocks)

    @property
    def blocks(self) -> Report:
        """The report as blocks: key figures, texts, tables, figures and transcripts."""
        return self._results_of.report(self._held, [self.record])

    def report(self, folder: str | Path | None = None, format: ReportFormat = "html") -> Path | None:
        """Write the report again, or to another folder, as html, md or json. Returns its path, or None."""
        if not self._results_of.has_report(self.record):
            raise SettingsError(f"run {self.record.title!r} has no results yet; its status is {self.record.status}")
        results = self._results_of
        if folder is not None:
            results = results.elsewhere(Path(folder))
        return results.write(self._held, [self.record], format).page

    def __str__(self) -> str:
        return self.findings or repr(self)

    def _repr_html_(self) -> str:
        head = super()._repr_html_()
        return head + notebook.report(self.blocks) if self._results_of.has_report(self.record) else head


class Function:
    """A command of an experiment as a Python function."""

    def __init__(self, find: Callable[[], Command], name: str, words: str) -> None:
        """`find` returns the command and imports its experiment. `words` calls it on the command line."""
        self._find = find
        self._command = name
        self._words = words
        self.__name__ = name

    @classmethod
    def of(cls, command: Command) -> Function:
        """A command of your own experiment as a function."""
        return cls(lambda: command, command.name, f"run FILE.py {command.name}")

    @classmethod
    def named(cls, experiment: str, command: str, words: str = "") -> Function:
        """A command of an experiment by name."""
        return cls(lambda: experiment_named(experiment).command(command), command, words or command)

    @cached_property
    def command(self) -> Command:
        """The command that this function calls."""
        return self._find()

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        options = "\n".join(f"    {name}: {one.description}" for name, one in self.command.fields.items())
        return f"{self.command.help}\n\n{options}"

    @property
    def __signature__(self) -> inspect.Signature:
        fields = self.command.fields.values()
        kinds = {True: inspect.Parameter.POSITIONAL_OR_KEYWORD, False: inspect.Parameter.KEYWORD_ONLY}
        made = [
            inspect.Parameter(one.name, kinds[one.flag.argument], default=None)
            for one in sorted(fields, key=lambda one: not one.flag.argument)
            if one.name.isidentifier()
        ]
        return inspect.Signature(made)

    def __call__(
        self,
        *arguments: Any,
        store: str | Path = STORE,
        out: str | Path | None = None,
        progress: bool = True,
        listeners: Sequence[Listener] = (),
        **options: Any,
    ) -> Finished:
        """Start or continue the run, and wait until it has ended. Files go to `out`, by default results/NAME."""
        ready, outputs = self._begun(arguments, store, out, options)
        with open_sync(
            store,
            listeners=[*outputs.listeners, *listeners],
            **ready.choices.for_engine,
        ) as engine:
            return engine.work(lambda engine: _carried_out(engine, ready, outputs, progress=progress))

    async def run(
        self,
        *arguments: Any,
        store: str | Path = STORE,
        out: str | Path | None = None,
        progress: bool = True,
        listeners: Sequence[Listener] = (),
        **options: Any,
    ) -> Finished:
        """Start or continue the run in async code."""
        ready, outputs = self._begun(arguments, store, out, options)
        async with compose.open(
            store,
            listeners=[*outputs.listeners, *listeners],
            **ready.choices.for_engine,
        ) as engine:
            return await _carried_out(engine, ready, outputs, progress=progress)

    def _begun(
        self, arguments: tuple[Any, ...], store: str | Path, out: str | Path | None, options: Mapping[str, Any]
    ) -> tuple[Ready, Outputs]:
        if "out" in self.command.fields and out is not None:  # the command's own option: a file, not a folder
            options, out = {**options, "out": out}, None
        ready = self._ready(arguments, store, options)
        results = ready.results(None if out is None else Path(out))
        results.check()
        return ready, Outputs(results, lambda: _opened(str(store)), ready.config_text(self._words))

    def estimate(self, *arguments: Any, store: str | Path = STORE, pilot: bool = False, **options: Any) -> Bill:
        """Predict requests, tokens, cost and time. Without `pilot`, this sends nothing and needs no key.

        With `pilot`, the first few requests of the run are sent, and the rest is predicted from what they use. The run
        continues from there when it is called, and does not pay for them again.
        """
        ready = self._ready(arguments, store, options, estimating=not pilot)
        found = _estimated(ready, store)
        if pilot and found.measured is None:
            limited = pilot_options(ready, found)
            with open_sync(store, **ready.choices.for_engine) as engine:
                engine.work(
                    lambda engine: engine.drive(
                        ready.driver, ready.settings, name=ready.name, seed=ready.seed, options=limited
                    )
                )
            found = _estimated(ready, store)
        return found

    def _ready(
        self, arguments: tuple[Any, ...], store: str | Path, options: Mapping[str, Any], *, estimating: bool = False
    ) -> Ready:
        names = [name for name, one in self.command.fields.items() if one.flag.argument]
        if len(arguments) > len(names):
            raise TypeError(
                f"{self._command}() takes {len(names)} positional arguments, but {len(arguments)} were given"
            )
        given = dict(zip(names, arguments, strict=False))
        for name in given:
            if name in options:
                raise TypeError(f"{self._command}() got multiple values for argument {name!r}")
        said = {name: value for name, value in {**given, **options}.items() if value is not None}
        values = collect(self.command.fields, _plain(said), what=self._command)
        return self.command.ready(values, Context(store=str(store), origin="python", estimating=estimating))

    def __repr__(self) -> str:
        return f"<{self._command}: {self.command.help.partition('.')[0]}>"


def _estimated(ready: Ready, store: str | Path) -> Bill:
    with compose.look_into(str(store)) as held:
        return estimate_run(ready, held, ready.choices.account, ready.choices.max_concurrent)


def _plain(said: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as plain data. Strings and paths are left unchanged."""
    return {
        name: value if isinstance(value, str | Path) else msgspec.to_builtins(value, enc_hook=str)
        for name, value in said.items()
    }


@contextmanager
def _opened(store: str) -> Iterator[Store]:
    with compose.look_into(store) as held:
        assert held is not None, "the engine has made it"
        yield held


async def _carried_out(engine: Engine, ready: Ready, outputs: Outputs, *, progress: bool) -> Finished:
    held = cast(Store, engine.store)
    before = None if ready.name is None else held.runs.find(ready.name)
    async with _shown(engine, progress):
        with outputs.results.around(held, before, ready.name or ""):
            summary = await engine.drive(
                ready.driver, ready.settings, name=ready.name, seed=ready.seed, options=ready.run_options
            )
    record = held.runs.get(summary.run_id)
    written = outputs.write_with(held, record) if outputs.results.has_report(record) else Written()
    return Finished(record, held, ready, written, outputs.results)


@asynccontextmanager
async def _shown(engine: Engine, wanted: bool) -> AsyncIterator[None]:
    """Show progress: on a terminal, in a notebook, or as lines in a log."""
    if not wanted:
        yield
        return
    async with Progress(engine, SafeConsole(stderr=True, highlight=False, emoji=False)):
        yield


def as_function(experiment: Experiment, command: str | None = None) -> Function:
    """A command of your own experiment as a function. The default is its first command."""
    return Function.of(experiment.command(command or experiment.commands[0].name))


play = Function.named("secret-game", "play")
compare = Function.named("secret-game", "compare")
score = Function.named("secret-game", "score")
simulate = Function.named("simulations", "simulate")
study = Function.named("simulations", "study")
mutate = Function.named("query-mutation", "train", "mutate train")
evolve = Function.named("prompt-evolution", "evolve")
map = Function.named("prompting", "map")
ask = Function.named("prompting", "ask")
