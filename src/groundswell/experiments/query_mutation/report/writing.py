"""THE way of a report: everything to a folder, each file whole or not at all, and the same whenever it is written."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from groundswell.experiments.needed import REPORT, check_installed
from groundswell.experiments.query_mutation.report import plots
from groundswell.experiments.query_mutation.report.page import page
from groundswell.experiments.query_mutation.report.rows import EPISODES, UPDATES, episodes, updates
from groundswell.experiments.query_mutation.report.told import Told
from groundswell.experiments.reporting.drawing import Drawing
from groundswell.experiments.reporting.files import put, put_figures
from groundswell.store.tables import table_files, table_paths

PAGE, ANALYSIS, FIGURES = "report.html", "analysis.json", "figures"


class Written(NamedTuple):
    """What was written: the page, and every file with it."""

    page: Path
    files: tuple[Path, ...]
    episodes: int


def write_report(folder: Path, told: Told) -> Written:
    """Write the report of a training. Files that are there already are replaced, one by one."""
    check_installed("reports need", REPORT)
    files = _write_rows(folder, told)
    files.append(put(folder / ANALYSIS, msgspec.json.format(msgspec.json.encode(told.analysis), indent=2) + b"\n"))
    drawn = drawings(told)
    files += put_figures(folder / FIGURES, drawn, plots.NAMES)
    shown = put(folder / PAGE, page(told, {each.name: each for each in drawn}).encode())
    return Written(shown, (shown, *files), len(told.attempts))


def _write_rows(folder: Path, told: Told) -> list[Path]:
    with table_files(folder, "episodes", EPISODES) as take:
        for row in episodes(told):
            take(row)
    with table_files(folder, "updates", UPDATES) as take:
        for row in updates(told):
            take(row)
    return [*table_paths(folder, "episodes"), *table_paths(folder, "updates")]


def drawings(told: Told) -> list[Drawing]:
    """Everything that can be drawn."""
    analysis, trained = told.analysis, [guard.name for guard in told.settings.task.guards]
    every = [
        plots.methods(analysis, trained),
        plots.learning(analysis),
        plots.steps(analysis),
        plots.operators(analysis),
    ]
    return [each for each in every if each is not None]
