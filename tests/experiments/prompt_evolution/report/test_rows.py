"""Rows: the figures of the page can be got from them again."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars
import pytest

from groundswell.experiments.prompt_evolution.report.rows import (
    BIRTHS,
    CURVE,
    OF_BIRTHS,
    OF_CURVE,
    births,
    curve,
    judged,
    of_judged,
)
from groundswell.experiments.prompt_evolution.report.writing import write_report
from tests.experiments.prompt_evolution.report.evolutions import BEST, EVIL, SCORES, told


def test_every_column_has_a_meaning_and_every_row_every_column() -> None:
    about = told()
    columns, meaning = of_judged(about.analysis)
    assert list(OF_BIRTHS) == list(BIRTHS)
    assert list(OF_CURVE) == list(CURVE)
    assert list(meaning) == list(columns) == ["problem", "question", "answer", "seed", "evolution", "random"]
    assert all(list(row) == list(BIRTHS) for row in births(about))
    assert all(list(row) == list(CURVE) for row in curve(about))
    assert all(list(row) == list(columns) for row in judged(about))


def test_only_the_fitness_of_those_who_met_all_problems_is_told() -> None:
    rows = [row for row in births(told()) if row["search"] == "evolution"]
    assert [row["fitness"] is not None for row in rows] == [True, True, False, True, False, False]
    assert rows[2]["accuracy"] == 0.0
    assert rows[3]["parents"] == ["1", "0"]
    assert rows[3]["usd"] is None
    assert rows[5]["why"] == f"no prompt: {EVIL}"


def test_all_formats_have_the_same_rows_and_the_figures_of_the_page(tmp_path: Path) -> None:
    about = told()
    write_report(tmp_path, about)
    frame = polars.read_parquet(tmp_path / "tests.parquet")
    for each in about.analysis.tested:
        assert each.accuracy == pytest.approx(frame[each.name].mean())
        assert frame[each.name].to_list() == list(SCORES[each.name])
    rows = json.loads((tmp_path / "births.json").read_bytes())
    cells = list(csv.DictReader(io.StringIO((tmp_path / "births.csv").read_text(), newline="")))
    born = polars.read_parquet(tmp_path / "births.parquet")
    assert len(rows) == len(cells) == len(born) == sum(len(each.members) for each in about.analysis.searches)
    assert rows[3]["prompt"] == born["prompt"][3] == BEST.text
    assert polars.read_parquet(tmp_path / "curve.parquet")["best"].to_list() == [0.2, 0.5] * 2
    again = json.loads((tmp_path / "settings.json").read_bytes())
    assert len(again["problems"]["test"]) == len(frame)
