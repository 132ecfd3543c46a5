"""THE way of a report: everything to a folder, each file whole or not at all, and the same whenever it is written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from groundswell.experiments.needed import REPORT, check_installed
from groundswell.experiments.prompt_evolution.report import plots, searches
from groundswell.experiments.prompt_evolution.report.findings import grouped
from groundswell.experiments.prompt_evolution.report.page import page
from groundswell.experiments.prompt_evolution.report.rows import BIRTHS, CURVE, births, curve, judged, of_judged
from groundswell.experiments.prompt_evolution.report.told import Told
from groundswell.experiments.reporting.drawing import Drawing
from groundswell.experiments.reporting.files import put, put_figures
from groundswell.store.tables import Columns, Row, table_files, table_paths

PAGE, PROMPT, ANALYSIS, SETTINGS, FIGURES = (
    "report.html",
    "best_prompt.txt",
    "analysis.json",
    "settings.json",
    "figures",
)


class Written(NamedTuple):
    """What was written: the page, and every file with it."""

    page: Path
    files: tuple[Path, ...]


def write_report(folder: Path, told: Told) -> Written:
    """Write the report of an evolution. Files that are there already are replaced, one by one."""
    check_installed("reports need", REPORT)
    files = [
        put(folder / PROMPT, told.evolved.genome.text.encode(errors="surrogatepass")),
        put(folder / ANALYSIS, _indented(told.analysis)),
        put(folder / SETTINGS, _indented(told.settings)),
        *_write_rows(folder, "births", BIRTHS, births(told)),
        *_write_rows(folder, "curve", CURVE, curve(told)),
        *_write_rows(folder, "tests", of_judged(told.analysis)[0], judged(told)),
    ]
    drawn = drawings(told)
    files += put_figures(folder / FIGURES, drawn, plots.NAMES)
    shown = put(folder / PAGE, page(told, {each.name: each for each in drawn}).encode())
    return Written(shown, (shown, *files))


def _indented(data: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


def _write_rows(folder: Path, name: str, columns: Columns, rows: Iterable[Row]) -> list[Path]:
    with table_files(folder, name, columns) as take:
        for row in rows:
            take(row)
    return table_paths(folder, name)


def drawings(told: Told) -> list[Drawing]:
    """Everything that can be drawn."""
    analysis, settings = told.analysis, told.settings
    every = [
        plots.accuracies(analysis),
        plots.gains(analysis),
        searches.curves(analysis, settings),
        searches.genealogy(analysis.evolution, settings),
        plots.front(analysis, grouped(analysis)),
    ]
    return [each for each in every if each is not None]
