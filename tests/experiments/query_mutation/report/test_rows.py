"""Rows of episodes and updates: the figures of the page can be got from them again."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars

from groundswell.experiments.query_mutation.report.rows import (
    EPISODES,
    OF_EPISODES,
    OF_UPDATES,
    UPDATES,
    episodes,
    updates,
)
from groundswell.experiments.query_mutation.report.writing import write_report
from tests.experiments.query_mutation.report.trainings import attempt, attempts, told


def test_every_column_has_a_meaning_and_every_row_every_column() -> None:
    about = told(attempts({"random": 0.5, "ppo": 0.75}))
    assert list(OF_EPISODES) == list(EPISODES)
    assert list(OF_UPDATES) == list(UPDATES)
    assert all(list(row) == list(EPISODES) for row in episodes(about))
    assert all(list(row) == list(UPDATES) for row in updates(about))


def test_what_a_fault_broke_off_is_missing() -> None:
    (row,) = episodes(told([attempt(end="fault")]))
    assert (row["status"], row["leaked"], row["total"]) == ("missing", None, None)
    assert row["fault"] == "target: timeout: took <too> long"
    assert row["queries"] == 1, "the one before it"


def test_all_formats_have_the_same_rows_and_the_figures_of_the_page(tmp_path: Path) -> None:
    about = told([*attempts({"random": 0.5, "ppo": 0.75}), attempt(number=200, end="fault")])
    write_report(tmp_path, about)
    frame = polars.read_parquet(tmp_path / "episodes.parquet")
    rows = json.loads((tmp_path / "episodes.json").read_bytes())
    cells = list(csv.DictReader(io.StringIO((tmp_path / "episodes.csv").read_text(), newline="")))
    assert len(frame) == len(rows) == len(cells) == len(about.attempts)
    rate = (
        frame.filter(polars.col("held_out"), polars.col("status") == "usable")
        .group_by("method")
        .agg(polars.mean("leaked"))
    )
    assert dict(rate.iter_rows()) == {"random": 0.5, "ppo": 0.75}
    assert frame["mutators"].to_list()[0] == rows[0]["mutators"] == json.loads(cells[0]["mutators"])
    assert json.loads(cells[0]["steps"]) == rows[0]["steps"]
    assert polars.read_parquet(tmp_path / "updates.parquet")["steps"].to_list() == [512, 1024, 1536] * 2
