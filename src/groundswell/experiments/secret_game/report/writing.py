"""THE way of a report: everything to a folder, each file whole or not at all, and the same whenever it is written.

write_report    rows to JSON, CSV and Parquet as they go by, keeping what may be shown ...
drawings        ... the drawings ...
page            ... the page
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from groundswell.experiments.needed import REPORT, check_installed
from groundswell.experiments.reporting.drawing import Drawing
from groundswell.experiments.reporting.files import put, put_figures
from groundswell.experiments.secret_game.report import more_plots, plots
from groundswell.experiments.secret_game.report.page import page
from groundswell.experiments.secret_game.report.rows import COLUMNS, rows
from groundswell.experiments.secret_game.report.selection import Selection
from groundswell.experiments.secret_game.report.told import Told
from groundswell.store.tables import table_files, table_paths

PAGE, ANALYSIS, FIGURES, INTERACTIONS = "report.html", "analysis.json", "figures", "interactions"


class Written(NamedTuple):
    """What was written: the page, and every file with it."""

    page: Path
    files: tuple[Path, ...]
    interactions: int


def write_report(folder: Path, told: Told) -> Written:
    """Write the report of an experiment. Files that are there already are replaced, one by one."""
    check_installed("reports need", REPORT)
    selection = Selection(told.analysis.tier)
    files, count = _write_rows(folder, told, selection)
    files.append(put(folder / ANALYSIS, msgspec.json.format(msgspec.json.encode(told.analysis), indent=2) + b"\n"))
    drawn = drawings(told)
    files += put_figures(folder / FIGURES, drawn, plots.NAMES)
    words = page(told, {each.name: each for each in drawn}, selection)
    shown = put(folder / PAGE, words.encode())
    return Written(shown, (shown, *files), count)


def _write_rows(folder: Path, told: Told, selection: Selection) -> tuple[list[Path], int]:
    """Every interaction to every format, in one go through the store."""
    count = 0
    with table_files(folder, INTERACTIONS, COLUMNS) as take:
        for interaction, row in rows(told):
            count += 1
            selection.take(interaction, counted=row["counted"])
            take(row)
    return table_paths(folder, INTERACTIONS), count


def drawings(told: Told) -> list[Drawing]:
    """Everything that can be drawn."""
    analysis = told.analysis
    every = [
        plots.leak_rates(analysis),
        plots.pair_matrix(analysis),
        plots.survival(analysis),
        more_plots.comparisons(analysis),
        None if analysis.strengths is None else more_plots.strengths(analysis.strengths),
        more_plots.turns(analysis),
        more_plots.waves(told.waves),
    ]
    return [each for each in every if each is not None]
