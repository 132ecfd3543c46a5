"""What a training came to, after its run, or an evaluation: what is told in the terminal, and the folder of files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from groundswell.cli import output
from groundswell.cli.game_report import folder_of
from groundswell.cli.mutate_board import Board
from groundswell.cli.mutate_views import print_analysis

if TYPE_CHECKING:
    from groundswell.cli.running import Report
    from groundswell.engine.records import RunRecord
    from groundswell.engine.summary import Summary
    from groundswell.store.journal import Store
    from groundswell.store.results import FaultCount

DRIVERS = (
    "groundswell.experiments.query_mutation.training:train",
    "groundswell.experiments.query_mutation.evaluating:evaluate",
)
ANALYSIS, CURVES = "analysis.json", "tensorboard"


def is_mutation(record: RunRecord) -> bool:
    """Whether a run is a training or an evaluation."""
    return record.driver in DRIVERS


def is_training(record: RunRecord) -> bool:
    """Whether a run trained policies."""
    return record.driver == DRIVERS[0]


def curves_in(folder: Path, given: Path | None = None) -> list[Board]:
    """Who writes the curves; nobody, with a line that says so, where they were not asked for and cannot be had."""
    from groundswell.experiments.query_mutation.needed import CURVES as NEEDED
    from groundswell.experiments.query_mutation.needed import check_installed, lacking

    if given is not None:
        check_installed("--tensorboard", NEEDED)
    elif (package := lacking(NEEDED)) is not None:
        output.say(f"no curves for TensorBoard: {package} is not installed: pip install 'groundswell[rl]'")
        return []
    with output.working("loading torch"):
        import torch.utils.tensorboard  # noqa: F401  before a learner's thread does: two that begin at once fail
    return [Board(given or folder / CURVES)]


def report_to(folder: Path, summary: Summary, faults: Sequence[FaultCount], store: str) -> None:
    """Write the files of a run, and say what it came to. Files come first: whoever reads may stop reading."""
    import msgspec

    from groundswell.cli.stored import opened
    from groundswell.experiments.query_mutation.analysis import Analysis

    bare = msgspec.structs.replace(summary, analysis=None)
    if summary.analysis is None:
        output.print_outcome(bare, faults)
        return
    with opened(store) as held, output.working("writing the report"):
        record = held.runs.get(summary.run_id)
        files = _write(folder, record, summary, held)
    output.print_outcome(bare, faults)
    print_analysis(msgspec.convert(summary.analysis, Analysis))
    output.line()
    output.line(f"files: {', '.join(str(file) for file in files)}")
    if (folder / CURVES).is_dir():
        output.line(f"curves: tensorboard --logdir {shlex.quote(str(folder / CURVES))}")
    if is_training(record):
        again = f"mutate evaluate {shlex.quote(summary.name or summary.run_id)} --episodes 200"
        output.line(f"to try the policies again: {output.command(again, store)}")


def write_to(folder: Path, summary: Summary, store: str) -> list[Path]:
    """Write the files of a run that has figures, and say nothing."""
    from groundswell.cli.stored import opened

    with opened(store) as held:
        return _write(folder, held.runs.get(summary.run_id), summary, held)


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


def _write(folder: Path, record: RunRecord, summary: Summary, held: Store) -> list[Path]:
    """Figures and policies. Files that are there already are replaced, one by one."""
    import msgspec

    from groundswell.cli.mutate_inputs import trained
    from groundswell.experiments.query_mutation.saving import saved
    from groundswell.experiments.replacing import replacing

    written = [folder / ANALYSIS]
    with replacing(written[0]) as out:
        out.write(msgspec.json.format(msgspec.json.encode(summary.analysis), indent=2) + b"\n")
    base = trained(record, held)
    for number, policy in enumerate(base.policies):
        path = folder / f"policy-{number}.npz"
        with replacing(path) as out:
            out.write(saved(policy, base.task))
        written.append(path)
    return written
