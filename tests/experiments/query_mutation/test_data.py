"""The data files: one row per episode, query and update; the figures of the page can be got from them again."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars

from groundswell.experiments.query_mutation.data import data_tables, episode_rows, query_rows
from tests.experiments.query_mutation.trainings import answers, attempt, attempts, report_data, write_report


def test_every_column_has_a_meaning_and_every_row_every_column() -> None:
    tables = list(data_tables(report_data(attempts({"random": 0.5, "ppo": 0.75}), answers=answers({"open": 20}))))
    assert [table.name for table in tables] == ["episodes", "queries", "ordinary", "updates"]
    for table in tables:
        assert list(table.meaning) == list(table.columns)
        rows = list(table.rows())
        assert rows
        assert all(list(row) == list(table.columns) for row in rows)


def test_what_a_fault_broke_off_is_missing() -> None:
    data = report_data([attempt(end="fault")])
    (row,) = episode_rows(data)
    assert (row["status"], row["leaked"], row["total"]) == ("missing", None, None)
    assert row["fault"] == "target: timeout: took <too> long"
    assert row["queries"] == 1, "the one before it"
    assert [(row["number"], row["usable"]) for row in query_rows(data)] == [(1, True), (2, False)]


def test_rows_name_the_model_that_was_asked_behind_their_guard() -> None:
    data = report_data([attempt(guard=guard) for guard in ("open", "warned")])
    assert [(row["guard"], row["target"], row["held_out"]) for row in episode_rows(data)] == [
        ("open", "emulated/guard:0.3:courtesy", False),
        ("warned", "emulated/guard:0.75:courtesy", True),
    ]


def test_all_formats_have_the_same_rows_and_the_figures_of_the_page(tmp_path: Path) -> None:
    data = report_data([*attempts({"random": 0.5, "ppo": 0.75}), attempt(number=200, end="fault")])
    write_report(tmp_path, data)
    frame = polars.read_parquet(tmp_path / "episodes.parquet")
    rows = json.loads((tmp_path / "episodes.json").read_bytes())
    cells = list(csv.DictReader(io.StringIO((tmp_path / "episodes.csv").read_text(), newline="")))
    assert len(frame) == len(rows) == len(cells) == len(data.attempts)
    rate = (
        frame.filter(polars.col("held_out"), polars.col("status") == "usable")
        .group_by("method")
        .agg(polars.mean("leaked"))
    )
    assert dict(rate.iter_rows()) == {"random": 0.5, "ppo": 0.75}
    assert frame["mutators"].to_list()[0] == rows[0]["mutators"]
    assert json.loads(cells[0]["steps"]) == rows[0]["steps"]
    queries = polars.read_parquet(tmp_path / "queries.parquet")
    assert len(queries) == sum(len(each["steps"]) for each in rows)
    gained = queries.filter(polars.col("usable")).group_by("key").agg(polars.sum("reward"))
    totals = {each["key"]: each["total"] for each in rows if each["status"] == "usable"}
    assert {key: value for key, value in gained.iter_rows() if key in totals} == totals
    assert polars.read_parquet(tmp_path / "updates.parquet")["steps"].to_list() == [512, 1024, 1536] * 2
