"""What a training came to, after its run, or an evaluation: what is told in the terminal, and the folder of files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groundswell.cli import output
from groundswell.cli.game_report import folder_of
from groundswell.cli.mutate_board import Board
from groundswell.cli.mutate_views import print_analysis
from groundswell.experiments.replacing import own_folder

if TYPE_CHECKING:
    from groundswell.cli.running import Report
    from groundswell.engine.records import RunRecord
    from groundswell.engine.summary import Summary
    from groundswell.experiments.query_mutation.analysis import Analysis
    from groundswell.store.journal import Store
    from groundswell.store.results import FaultCount

DRIVERS = ("query-mutation/train", "query-mutation/evaluate")
CURVES = "tensorboard"
OURS = re.compile(r"policy-\d+\.npz")
"""What the files of policies are called here; what is called otherwise is not ours to remove."""


def is_mutation(record: RunRecord) -> bool:
    """Whether a run is a training or an evaluation."""
    return record.driver in DRIVERS


def is_training(record: RunRecord) -> bool:
    """Whether a run trained policies."""
    return record.driver == DRIVERS[0]


def curves_in(folder: Path, given: Path | None = None) -> list[Board]:
    """Who writes the curves; nobody, with a line that says so, where they were not asked for and cannot be had."""
    from groundswell.experiments.needed import CURVES as NEEDED
    from groundswell.experiments.needed import check_installed, lacking

    if given is not None:
        check_installed("--tensorboard needs", NEEDED, "rl")
    elif (package := lacking(NEEDED)) is not None:
        output.say(f"no curves for TensorBoard: {package} is not installed: pip install 'groundswell[rl]'")
        return []
    with output.working("loading torch"):
        import torch.utils.tensorboard  # noqa: F401  before a learner's thread does: two that begin at once fail
    return [Board(given or own_folder(folder / CURVES))]


def report_to(folder: Path, summary: Summary, faults: Sequence[FaultCount], store: str) -> None:
    """Write the files of a run, and say what it came to. Files come first: whoever reads may stop reading."""
    import msgspec

    from groundswell.cli.stored import opened

    bare = msgspec.structs.replace(summary, analysis=None)
    if summary.analysis is None:
        output.print_outcome(bare, faults)
        return
    with opened(store) as held, output.working("writing the report"):
        record = held.runs.get(summary.run_id)
        written = write_files(folder, [record], held)
    output.print_outcome(bare, faults)
    print_written(folder, written)
    if is_training(record):
        again = f"mutate evaluate {shlex.quote(summary.name or summary.run_id)} --episodes 200"
        output.line(f"to try the policies again: {output.command(again, store)}")


def print_written(folder: Path, written: WrittenFiles) -> None:
    """What was found, and where there is more of it."""
    print_analysis(written.analysis)
    output.line()
    output.line(f"report: {shlex.quote(str(written.page))}")
    output.line(f"beside it: {', '.join(str(file.relative_to(folder)) for file in written.files)}")
    if (folder / CURVES).is_dir():
        output.line(f"curves: tensorboard --logdir {shlex.quote(str(folder / CURVES))}")


def write_to(folder: Path, summary: Summary, store: str) -> None:
    """Write the files of a run that has figures, and say nothing."""
    from groundswell.cli.stored import opened

    with opened(store) as held:
        write_files(folder, [held.runs.get(summary.run_id)], held)


def report_of(record: RunRecord, store: str) -> Report | None:
    """How a training says what it came to when it is resumed; None for a run of something else."""
    if not is_mutation(record):
        return None
    folder = folder_of(record.title)

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        report_to(folder, summary, faults, store)

    return report


def listeners_of(record: RunRecord) -> list[Board]:
    """Who writes the curves of a training that is resumed."""
    return curves_in(folder_of(record.title)) if is_training(record) else []


class WrittenFiles(NamedTuple):
    """A report: what it says, the page, and the files beside it."""

    analysis: Analysis
    page: Path
    files: list[Path]


def write_files(folder: Path, records: Sequence[RunRecord], held: Store) -> WrittenFiles:
    """The report of a run, or of several that differ in their seed alone, and the policies. Files are replaced."""
    from groundswell.experiments.query_mutation.report.told import told_of
    from groundswell.experiments.query_mutation.report.writing import write_report

    told = told_of([(record, held.results(record)) for record in records], about=about(records))
    policies = _write_policies(folder, records, held)
    written = write_report(folder, told)
    beside = [file for file in written.files if file != written.page]
    return WrittenFiles(told.analysis, written.page, [*beside, *policies])


def _write_policies(folder: Path, records: Sequence[RunRecord], held: Store) -> list[Path]:
    """The policies of all runs, numbered on."""
    from groundswell.cli.mutate_inputs import trained
    from groundswell.experiments.query_mutation.saving import saved
    from groundswell.experiments.replacing import replacing

    found = [trained(record, held) for record in records]
    pairs = [(policy, each.task) for each in found for policy in each.policies]
    paths = [folder / f"policy-{number}.npz" for number in range(len(pairs))]
    for path, (policy, task) in zip(paths, pairs, strict=True):
        with replacing(path) as out:
            out.write(saved(policy, task))
    for old in folder.glob("policy-*.npz"):
        if old not in paths and OURS.fullmatch(old.name):
            old.unlink()  # of an earlier report, which had more of them
    return paths


def about(records: Sequence[RunRecord]) -> list[tuple[str, str]]:
    """What else there is to say of runs, for those who want to do them again."""
    first = records[0]
    begun = ", ".join(f"{datetime.fromtimestamp(each.created_at, UTC):%Y-%m-%d %H:%M} UTC" for each in records)
    full = {name.removeprefix("model "): model for name, model in first.sources.items() if name.startswith("model ")}
    rows = [
        ("begun", begun),
        ("version", f"groundswell {version('groundswell')}"),
        ("in full", ", ".join(f"{name} is {model}" for name, model in full.items())),
    ]
    return [(name, value) for name, value in rows if value]
