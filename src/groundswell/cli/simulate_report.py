"""What simulations came to, after their run: what is told in the terminal, and the folder with the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from groundswell.cli import output
from groundswell.cli.simulate_figures import print_figures
from groundswell.cli.simulate_views import print_sample

if TYPE_CHECKING:
    from groundswell.cli.running import Report
    from groundswell.engine.records import RunRecord
    from groundswell.engine.summary import Summary
    from groundswell.experiments.simulations.reading import Readings
    from groundswell.store.results import FaultCount

ANALYSIS, TRANSCRIPTS = "analysis.json", "transcripts.html"


def report_to(folder: Path, summary: Summary, faults: Sequence[FaultCount], store: str) -> None:
    """Say what a run came to, and write its files."""
    import msgspec

    from groundswell.cli.stored import opened
    from groundswell.experiments.simulations.analysis import Analysis
    from groundswell.experiments.simulations.reading import BATCH, Readings

    output.print_outcome(msgspec.structs.replace(summary, analysis=None), faults)
    if summary.analysis is None:
        return
    with opened(store) as held:
        record, readings = held.runs.get(summary.run_id), Readings(held)
        sample = next((each for each in readings.simulations(record) if each.status == "completed"), None)
        if sample is not None:
            print_sample(sample)
        if record.driver == BATCH:
            print_figures(msgspec.convert(summary.analysis, Analysis), folder / ANALYSIS)
        with output.working("writing the files"):
            files = _write(folder, readings, record, summary)
    output.line()
    output.line(f"to read: {folder / TRANSCRIPTS}")
    output.line(f"beside it: {', '.join(file.name for file in files if file.name != TRANSCRIPTS)}")
    if sample is not None:
        output.line(f"to have one go on: {output.command(f'simulate --continue {sample.id} --n-turns 2', store)}")


def report_of(record: RunRecord, store: str) -> Report | None:
    """How simulations say what they came to when they are resumed; None for a run of something else."""
    from groundswell.cli.game_report import folder_of
    from groundswell.experiments.simulations.reading import BATCH, SINGLE

    if record.driver not in (BATCH, SINGLE):
        return None
    folder = folder_of(record.title)

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        report_to(folder, summary, faults, store)

    return report


def write_to(folder: Path, summary: Summary, store: str) -> list[Path]:
    """Write the files of a run that has ended, and say nothing."""
    from groundswell.cli.stored import opened
    from groundswell.experiments.simulations.reading import Readings

    with opened(store) as held:
        return _write(folder, Readings(held), held.runs.get(summary.run_id), summary)


def _write(folder: Path, readings: Readings, record: RunRecord, summary: Summary) -> list[Path]:
    """Tables, figures and transcripts. Files that are there already are replaced, one by one."""
    import msgspec

    from groundswell.experiments.replacing import replacing
    from groundswell.experiments.simulations.exporting import Table, write_export
    from groundswell.experiments.simulations.transcripts import write_transcripts

    written = [folder / TRANSCRIPTS]
    with replacing(written[0]) as out:
        write_transcripts(readings, record, out)
    for table in get_args(Table):
        for format in ("csv", "json"):
            path = folder / f"{table}.{format}"
            if table == "answers" and not _asked(record):
                path.unlink(missing_ok=True)  # of an earlier run, which had a questionnaire
                continue
            with replacing(path) as out:
                write_export(readings, record, format, table, out)
            written.append(path)
    with replacing(folder / ANALYSIS) as out:
        out.write(msgspec.json.format(msgspec.json.encode(summary.analysis), indent=2) + b"\n")
    return [*written, folder / ANALYSIS]


def _asked(record: RunRecord) -> bool:
    """Whether there is a questionnaire."""
    import msgspec

    settings = msgspec.json.decode(record.settings or "{}")
    return "questionnaire" in (settings.get("simulation") or settings)["rules"]
