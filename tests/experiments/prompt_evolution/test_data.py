"""The data files: the figures of the page can be got from them again."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars
import pytest

from groundswell.experiments.prompt_evolution.data import birth_rows, data_tables, reply_rows
from tests.experiments.prompt_evolution.evolutions import BEST, EVIL, SCORES, evolved, write_report


def test_every_column_has_a_meaning_and_every_row_every_column() -> None:
    for table in data_tables(evolved()):
        assert list(table.meaning) == list(table.columns)
        rows = list(table.rows())
        assert rows
        assert all(set(row) == set(table.columns) for row in rows)


def test_only_the_fitness_of_those_who_met_all_problems_is_told() -> None:
    rows = [row for row in birth_rows(evolved()) if row["search"] == "evolution"]
    assert [row["fitness"] is not None for row in rows] == [True, True, False, True, False, False]
    assert rows[2]["accuracy"] == 0.0
    assert rows[3]["parents"] == ["1", "0"]
    assert rows[3]["usd"] is None
    assert rows[5]["why"] == f"no prompt: {EVIL}"


def test_a_reply_that_is_missing_has_its_reason_and_no_score() -> None:
    (row,) = [row for row in reply_rows(evolved()) if row["status"] == "missing"]
    assert (row["problem"], row["condition"], row["score"], row["counted"]) == (9, "random", None, False)
    assert (row["fault_kind"], row["fault_message"], row["reply"]) == ("timeout", f"too late {EVIL}", None)


def test_all_formats_have_the_same_rows_and_the_figures_of_the_page(tmp_path: Path) -> None:
    about = evolved()
    write_report(tmp_path, about)
    frame = polars.read_parquet(tmp_path / "tests.parquet")
    for each in about.analysis.tested:
        own = frame.filter(condition=each.name)
        assert each.accuracy == pytest.approx(own.filter("counted")["score"].mean())
        assert own["score"].to_list() == list(SCORES[each.name])
    rows = json.loads((tmp_path / "births.json").read_bytes())
    cells = list(csv.DictReader(io.StringIO((tmp_path / "births.csv").read_text(), newline="")))
    born = polars.read_parquet(tmp_path / "births.parquet")
    assert len(rows) == len(cells) == len(born) == sum(len(each.members) for each in about.analysis.searches)
    assert rows[3]["prompt"] == born["prompt"][3] == BEST.text
    assert polars.read_parquet(tmp_path / "curve.parquet")["best"].to_list() == [0.2, 0.5] * 2
    again = json.loads((tmp_path / "settings.json").read_bytes())
    assert len(again["problems"]["test"]) * len(about.analysis.tested) == len(frame)
