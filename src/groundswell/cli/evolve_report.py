"""What an evolution came to, after its run: what is told in the terminal, and the folder of files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groundswell.cli import output
from groundswell.cli.evolve_views import print_analysis
from groundswell.cli.game_report import folder_of
from groundswell.cli.mutate_report import about

if TYPE_CHECKING:
    from groundswell.cli.running import Report
    from groundswell.engine.events import Listener
    from groundswell.engine.records import RunRecord
    from groundswell.engine.summary import Summary
    from groundswell.experiments.prompt_evolution.analysis import Analysis
    from groundswell.store.journal import Store
    from groundswell.store.results import FaultCount

DRIVER = "prompt-evolution/evolve"
EVALUATIONS = "evaluations.jsonl"


class WrittenFiles(NamedTuple):
    """A report: what it says, the page, and the files beside it."""

    analysis: Analysis
    page: Path
    files: list[Path]


def is_evolution(record: RunRecord) -> bool:
    """Whether a run is an evolution."""
    return record.driver == DRIVER


def log_in(folder: Path) -> list[Listener]:
    """Who writes a record of each evaluation."""
    from groundswell.engine.events import Event, RunEnded
    from groundswell.experiments.prompt_evolution.evaluations import Evaluations

    class Beside(Evaluations):
        """The records of one run, beside its report."""

        def path(self, run: str) -> Path:
            return folder / EVALUATIONS

        def __call__(self, event: Event) -> None:
            super().__call__(event)
            if isinstance(event, RunEnded):
                self.close()

    return [Beside(folder)]


def listeners_of(record: RunRecord) -> list[Listener]:
    """Who goes on with the records of an evolution that is resumed, where it had any."""
    folder = folder_of(record.title)
    return log_in(folder) if is_evolution(record) and (folder / EVALUATIONS).exists() else []


def report_to(folder: Path, summary: Summary, faults: Sequence[FaultCount], store: str) -> None:
    """Write the files of a run, and say what it came to. Files come first: whoever reads may stop reading."""
    import msgspec

    from groundswell.cli.stored import opened

    bare = msgspec.structs.replace(summary, analysis=None)
    if summary.analysis is None:
        output.print_outcome(bare, faults)
        return
    with opened(store) as held, output.working("writing the report"):
        written = write_files(folder, held.runs.get(summary.run_id), held)
    output.print_outcome(bare, faults)
    print_written(folder, written)


def print_written(folder: Path, written: WrittenFiles) -> None:
    """What was found, and where there is more of it."""
    print_analysis(written.analysis)
    output.line()
    output.line(f"report: {shlex.quote(str(written.page))}")
    output.line(f"beside it: {', '.join(str(file.relative_to(folder)) for file in written.files)}")


def write_to(folder: Path, summary: Summary, store: str) -> None:
    """Write the files of a run that has figures, and say nothing."""
    from groundswell.cli.stored import opened

    with opened(store) as held:
        write_files(folder, held.runs.get(summary.run_id), held)


def report_of(record: RunRecord, store: str) -> Report | None:
    """How an evolution says what it came to when it is resumed; None for a run of something else."""
    if not is_evolution(record):
        return None
    folder = folder_of(record.title)

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        report_to(folder, summary, faults, store)

    return report


def write_files(folder: Path, record: RunRecord, held: Store) -> WrittenFiles:
    """The report of a run. Files that are there are replaced."""
    from groundswell.experiments.prompt_evolution.report.told import told_of
    from groundswell.experiments.prompt_evolution.report.writing import write_report

    told = told_of(record, held.results(record), about=about([record]))
    written = write_report(folder, told)
    beside = [file for file in written.files if file != written.page]
    evaluations = folder / EVALUATIONS
    return WrittenFiles(told.analysis, written.page, [*beside, *([evaluations] if evaluations.exists() else [])])
