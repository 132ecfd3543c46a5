"""Results of runs: their folder, their files, the summary at the end, and `runs report`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import RunName, StoreFlags
from groundswell.cli.stored import opened
from groundswell.cli.targets import load_driver_of
from groundswell.engine.events import Listener
from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import command_of_run
from groundswell.experiments.options import Flag
from groundswell.experiments.report import ReportFormat
from groundswell.experiments.results import (
    Aside,
    Outputs,
    Plain,
    Results,
    Written,
    folder_of,
    remembered_folder,
)
from groundswell.reporting.blocks import Report
from groundswell.store.journal import Store

if TYPE_CHECKING:
    from groundswell.store.results import FaultCount

RunNames = Annotated[
    list[str],
    Meta(description="Ids or names of runs. Several runs are pooled. They may differ only in their seed."),
    Flag(argument=True, metavar="RUN...", completes="runs"),
]
Out = Annotated[
    Path | None,
    Meta(description="Folder for the report and the data files. The default is the folder of the run."),
    Flag("-o", metavar="FOLDER", usual=True, completes="files"),
]


ReportForm = Annotated[
    ReportFormat,
    Meta(description="Format of the report. The data files are the same for all of them."),
    Flag(usual=True),
]


class Reporting(Outputs):
    """Writes the results of one run, and prints its findings."""

    def __init__(self, results: Results, store: str, *, config: str) -> None:
        super().__init__(results, lambda: opened(store), config)
        self._store = store
        results.say = output.say

    @property
    def listeners(self) -> list[Listener]:
        """The listeners of the results, and one that records their folder."""
        with output.working("preparing"):
            return super().listeners

    def more(self, summary: Summary) -> Mapping[str, Any]:
        """What --json prints in addition to the summary of a run."""
        with opened(self._store) as held:
            record = held.runs.get(summary.run_id)
            return self.results.more(held, record) if self.results.has_report(record) else {}

    def report(self, summary: Summary, faults: Sequence[FaultCount]) -> None:
        """Write the files, then print the findings. Files come first, since the reader of a pipe may stop early."""
        with opened(self._store) as held:
            record = held.runs.get(summary.run_id)
            written = Written()
            if self.results.has_report(summary):
                with output.working("writing the results"):
                    written = self.write_with(held, record)
            shown = self.results.summary(summary, record)
            if self.results.tells_outcome:
                output.print_outcome(msgspec.structs.replace(shown, analysis=None), faults)
                if not self.results.has_report(summary):
                    return
            show(self.results, held, [record], written, self._store)


def show(results: Results, held: Store, records: Sequence[RunRecord], written: Written, store: str) -> None:
    """Print the findings of runs, the files, and further commands."""
    report = written.report or results.report(held, records)
    print_findings(results, report)
    more = [] if written.page is None else [f"report: {shlex.quote(str(written.page))}"]
    if written.files:
        names = ", ".join(_within(file, results.folder) for file in written.files)
        where = f"files in {shlex.quote(str(results.folder))}" if written.page is None else "files beside it"
        more.append(f"{where}: {names}")
    for what, command in results.hints(held, records[0], report):
        more.append(f"{what}: {output.command(command, store) if not command.startswith('$ ') else command[2:]}")
    for each in ["", *more] if more else ():
        output.line(each)


def print_findings(results: Results, report: Report) -> None:
    """Print the findings of runs."""
    from rich.table import Table
    from rich.text import Text

    results.width = output.out.width if output.out.is_terminal else None
    results.columns = output.room()
    for each in results.findings(report):
        match each:
            case Table():
                output.print_table(each)
            case Aside():
                output.say(each)
            case Plain():
                output.echo(each)
            case str() | Text():
                output.line(each)
            case _:
                output.out.print(each)


def results_of(record: RunRecord, held: Store, out: Path | None = None) -> Results | None:
    """The results of a stored run in its folder; None if its experiment is unknown."""
    command = command_of_run(record)
    if command is None:
        return None
    return command.results_in(out or remembered_folder(held, record) or folder_of(record.title))


def report(flags: StoreFlags, runs: RunNames, *, out: Out = None, format: ReportForm = "html") -> None:
    """Write the report and data files of one or more runs again, and print their findings."""
    write_again(flags, runs, out, format)


def write_again(
    flags: StoreFlags,
    runs: Sequence[str],
    out: Path | None,
    format: ReportFormat = "html",
    experiment: str | None = None,
    told: Sequence[str] = ("run", "runs"),
) -> None:
    """Write and show the results of stored runs. `told` names the JSON keys that identify the runs."""
    with opened(flags.store) as held:
        records = [held.runs.get(run) for run in dict.fromkeys(runs)]
        for record in records:
            load_driver_of(record)
            _check_experiment(record, experiment)
        title = "+".join(record.title for record in records)
        results = results_of(records[0], held, out or (folder_of(title) if len(records) > 1 else None))
        assert results is not None
        for record in records:
            _check_finished(record, results, flags.store)
        results.check()
        with output.working("writing the report"):
            written = results.write(held, records, format)
        if flags.json:
            files = [str(path) for path in (written.page, *written.files) if path is not None]
            ids = [record.id for record in records]
            analysis = written.analysis if written.analysis is not None else summarise(records[0]).analysis
            which = {name: ids if name == "runs" else ids[0] for name in told}
            output.print_json({**which, "files": files, "analysis": analysis})
        else:
            show(results, held, records, written, flags.store)


def _check_experiment(record: RunRecord, experiment: str | None) -> None:
    known = command_of_run(record) is not None and (record.driver or "").partition("/")[0]
    if not known or experiment not in (None, known):
        kind = f"of experiment {experiment}" if experiment else "of a known experiment"
        raise SettingsError(f"run {record.title!r} is not a run {kind}, so it has no report")


def _check_finished(record: RunRecord, results: Results, store: str) -> None:
    if not results.has_report(record):
        resume = output.command(f"runs resume {record.id}", store)
        raise SettingsError(f"run {record.title!r} is not finished, so it has no report yet; to resume it: {resume}")


def mutate_report(flags: StoreFlags, runs: RunNames, *, out: Out = None, format: ReportForm = "html") -> None:
    """Write the report of a run again. Several runs that differ only in their seed are pooled."""
    write_again(flags, runs, out, format, "query-mutation", ("runs",))


def evolve_report(flags: StoreFlags, run: RunName, *, out: Out = None, format: ReportForm = "html") -> None:
    """Write the report of a run again."""
    write_again(flags, [run], out, format, "prompt-evolution", ("run",))


def _within(file: Path, folder: Path) -> str:
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else str(file)
