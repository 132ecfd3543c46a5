"""What simulations came to, after their run: what is told in the terminal, and the folder with the files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from groundswell.cli import output
from groundswell.cli.game_report import RESULTS
from groundswell.cli.simulate_figures import print_figures
from groundswell.cli.simulate_views import print_sample

if TYPE_CHECKING:
    from groundswell.cli.running import Report
    from groundswell.engine.records import RunRecord
    from groundswell.engine.summary import Summary
    from groundswell.experiments.simulations.reading import Readings, SimulationShown
    from groundswell.store.results import FaultCount

ANALYSIS, TRANSCRIPTS = "analysis.json", "transcripts.html"
LONGEST_SLUG = 120
"""So many bytes of a title are in the name of a folder."""
_STRANGE = re.compile(r"[^\w.]+")


def folder_for(title: str, store: str) -> Path:
    """Where the files of a run go unless something is said: a plain name, and one that no earlier run has."""
    from groundswell.cli.catalogued import is_there
    from groundswell.cli.stored import opened
    from groundswell.experiments.simulations.reading import BATCH, SINGLE

    slug = _slug(title)
    if is_there(store):
        with opened(store) as held:
            names = [record.title for record in held.runs.list(drivers=(BATCH, SINGLE))]  # the newest come first
        earlier = names[names.index(title) + 1 :] if title in names else names
        if any(_slug(name) == slug for name in earlier if name != title):
            slug = f"{slug}-{blake2b(title.encode(errors='surrogatepass'), digest_size=4).hexdigest()}"
    return RESULTS / slug


def _slug(title: str) -> str:
    plain = _STRANGE.sub("-", title.lower()).strip("-.")
    return plain.encode()[:LONGEST_SLUG].decode(errors="ignore").strip("-.") or "simulations"


def report_to(folder: Path, summary: Summary, faults: Sequence[FaultCount], store: str) -> None:
    """Write the files of a run, and say what it came to. Files come first: whoever reads may stop reading."""
    from groundswell.cli.stored import opened
    from groundswell.experiments.simulations.reading import Readings

    with opened(store) as held:
        record, readings = held.runs.get(summary.run_id), Readings(held)
        files: list[Path] = []
        if summary.analysis is not None:
            with output.working("writing the files"):
                files = _write(folder, readings, record, summary)
        _print_outcome(summary, faults, readings, record)
        sample = print_findings(summary.analysis, readings, record, folder / ANALYSIS)
    if not files:
        return
    output.line()
    output.line(f"to read: {shlex.quote(str(folder / TRANSCRIPTS))}")
    output.line(f"beside it: {', '.join(file.name for file in files if file.name != TRANSCRIPTS)}")
    if sample is not None:
        output.line(f"to have one go on: {output.command(f'simulate --continue {sample.id} --n-turns 2', store)}")


def _print_outcome(summary: Summary, faults: Sequence[FaultCount], readings: Readings, record: RunRecord) -> None:
    """How a run ended. Of a batch all simulations are planned, also those that had not begun when it was stopped."""
    import msgspec

    from groundswell.experiments.simulations.reading import BATCH

    trials = summary.trials
    if record.driver == BATCH:
        trials = msgspec.structs.replace(trials, planned=readings.batch(record).num_simulations)
    output.print_outcome(msgspec.structs.replace(summary, analysis=None, trials=trials), faults)


def print_findings(analysis: Any, readings: Readings, record: RunRecord, more: Path | str) -> SimulationShown | None:
    """One of the talks, which is returned, and the figures of a batch; `more` says where the rest of them is."""
    import msgspec

    from groundswell.experiments.simulations.analysis import Analysis
    from groundswell.experiments.simulations.reading import BATCH

    if analysis is None:
        return None
    sample = next((each for each in readings.simulations(record) if each.status == "completed"), None)
    if sample is not None:
        print_sample(sample)
    if record.driver == BATCH:
        print_figures(msgspec.convert(analysis, Analysis), more)
    return sample


def is_simulation(record: RunRecord) -> bool:
    """Whether a run is a batch of simulations, or one of them on its own."""
    from groundswell.experiments.simulations.reading import BATCH, SINGLE

    return record.driver in (BATCH, SINGLE)


def report_of(record: RunRecord, store: str) -> Report | None:
    """How simulations say what they came to when they are resumed; None for a run of something else."""
    if not is_simulation(record):
        return None
    folder = folder_for(record.title, store)

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
