"""The data files: what is in a row per interaction and per side, and that all formats have the same."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.errors import StoreError
from groundswell.experiments.secret_game.data import (
    COLUMNS,
    MEANING,
    OF_SIDE_ROWS,
    OF_SIDES,
    Row,
    data_tables,
    interaction_rows,
    side_rows,
    talk,
)
from groundswell.experiments.secret_game.modes import STANDARD_POINTS, Points
from groundswell.experiments.secret_game.reading import Interaction
from groundswell.store.atomic import replacing
from groundswell.store.tables import table_files
from tests.experiments.secret_game.games import every_kind, game, game_of, missing, unfinished
from tests.properties import examples


def the_row(interaction: Interaction, points: Points = STANDARD_POINTS) -> Row:
    (row,) = interaction_rows(replace(game_of([interaction]), points=points))
    return row


def test_a_row_says_who_leaked_by_which_tier_and_when() -> None:
    row = the_row(game())
    assert (row["first_leaked_exact"], row["first_leaked_normalised"], row["first_leaked_encoded"]) == (
        False,
        True,
        True,
    )
    assert (row["second_leaked_exact"], row["first_leaked_judged"]) == (True, None)
    assert (row["first_leak_message"], row["second_leak_message"]) == (3, 2)
    assert (row["first_obtained"], row["first_points"]) == (True, 1.0)
    assert row["messages"][2].marks[0].tier == "normalised"
    said = row["messages"][1]
    assert [said.text[mark.start : mark.end] for mark in said.marks] == ["lantern"]


def test_points_are_those_of_the_run() -> None:
    leak = game(("Hello.", "My secret word is lantern."))
    assert the_row(leak)["first_points"] == 3
    assert the_row(leak, Points(one_sided=7, leaked=-1))["first_points"] == 7
    assert the_row(leak, Points(one_sided=7, leaked=-1))["second_points"] == -1


def test_judges_guesses_bluffs_and_thoughts() -> None:
    first, bluffed, guessed, _, _ = interaction_rows(game_of(every_kind()))
    assert (first["first_verdict"], first["first_verdict_message"], first["first_leaked_judged"]) == (
        "declared",
        3,
        True,
    )
    assert (first["second_verdict"], first["second_verdict_problem"]) == (None, "no answer")
    assert (first["first_guesses_heard"], first["first_heard_rank"]) == (["velvet", "silk"], 1)
    assert first["first_in_thought"] is True
    assert bluffed["second_bluffs"] == ["orchid"]
    assert guessed["second_guessed_message"] == 1


def test_what_was_not_played_has_its_reason_and_nothing_else() -> None:
    row, open_row = the_row(missing()), the_row(unfinished())
    assert (row["status"], row["fault_kind"], row["fault_message"]) == ("missing", "timeout", "took <too> long")
    assert (row["first_leaked"], row["messages"], row["first_model"]) == (None, None, "one/model")
    assert (open_row["status"], open_row["fault_kind"]) == ("unfinished", None)


def test_every_side_is_a_row_with_its_seat_its_opponent_and_its_replicate() -> None:
    pair = ("other/model", "one/model")
    rows = list(side_rows(game_of([game(number=0), game(number=1), game(models=pair, number=2), missing(number=3)])))
    assert [list(row) for row in rows] == [list(OF_SIDE_ROWS)] * 8
    first, second = rows[0], rows[1]
    assert [(row["seat"], row["model"], row["opponent"]) for row in (first, second)] == [
        ("first", "one/model", "other/model"),
        ("second", "other/model", "one/model"),
    ]
    assert [row["replicate"] for row in rows] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert (first["condition"], first["leaked"], first["leak_message"]) == ("plain", True, 3)
    assert (rows[6]["status"], rows[6]["leaked"]) == ("missing", None)


def test_every_column_has_its_meaning() -> None:
    for table in data_tables(game_of([game()])):
        assert set(table.columns) <= set(table.meaning), table.name
    assert {*MEANING, *OF_SIDES} >= set(OF_SIDE_ROWS)


def written(folder: Path, interactions: list[Interaction]) -> dict[str, bytes]:
    with table_files(folder, "x", COLUMNS) as take:
        for row in interaction_rows(game_of(interactions)):
            take(row)
    return {path.suffix[1:]: path.read_bytes() for path in folder.iterdir()}


def in_a_table(row: Row) -> Row:
    """A row as tables have it: lists are JSON text."""
    return {
        name: msgspec.json.encode(value).decode() if COLUMNS[name] == "json" and value is not None else value
        for name, value in row.items()
    }


def from_csv(data: bytes) -> list[Row]:
    table = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    read: dict[str, Any] = {"bool": lambda text: text == "true", "int": int, "float": float}
    return [
        {name: None if cell == "" else read.get(COLUMNS[name], unguarded)(cell) for name, cell in row.items()}
        for row in table
    ]


def unguarded(cell: str) -> str:
    return cell[1:] if cell.startswith("'") else cell


def emptied(row: Row) -> Row:
    """CSV cannot tell an empty text from none."""
    return {name: None if value == "" else value for name, value in row.items()}


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="'\0"), max_size=20)


@settings(max_examples=examples(40))
@given(st.lists(st.lists(TEXT, min_size=1, max_size=3), max_size=3))
@pytest.mark.slow
def test_json_csv_and_parquet_agree_row_by_row(talks: list[list[str]]) -> None:
    interactions = [*(game(texts, number=at) for at, texts in enumerate(talks)), *every_kind()]
    wanted = [in_a_table(row) for row in interaction_rows(game_of(interactions))]
    with TemporaryDirectory() as folder:
        files = written(Path(folder), interactions)
    assert polars.read_parquet(io.BytesIO(files["parquet"])).to_dicts() == wanted
    assert from_csv(files["csv"]) == [emptied(row) for row in wanted]
    for row, found in zip(wanted, json.loads(files["json"]), strict=True):
        for name, value in found.items():
            assert value == (json.loads(row[name]) if COLUMNS[name] == "json" and row[name] else row[name])


def test_no_interactions_are_empty_files_with_all_columns(tmp_path: Path) -> None:
    files = written(tmp_path, [])
    assert json.loads(files["json"]) == []
    assert files["csv"].decode().strip().split(",") == list(COLUMNS)
    assert polars.read_parquet(io.BytesIO(files["parquet"])).columns == list(COLUMNS)


@pytest.mark.parametrize("text", ["=1+1", "+a1", "-a1", "@x", "\t=1", " =1"])
def test_no_cell_is_run_by_a_spreadsheet(text: str, tmp_path: Path) -> None:
    interaction = game((text,), names=(text, text))
    (row,) = csv.DictReader(io.StringIO(written(tmp_path, [interaction])["csv"].decode(), newline=""))
    assert row["first_name"] == f"'{text}"
    assert all(not cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row.values())


def test_the_talk_as_text_has_thoughts_between_stars() -> None:
    row = the_row(game(("Hi.", "Ho."), thoughts=("hm",)))
    assert talk(row["messages"]) == row["transcript"] == "Agent 1: *hm* Hi.\nAgent 2: Ho."


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.txt"
    with replacing(path) as out:
        out.write(b"first")

    def fail() -> None:
        with replacing(path) as out:
            out.write(b"second")
            raise OSError("full")

    with pytest.raises(StoreError, match=r"x.txt cannot be written: full"):
        fail()
    assert path.read_bytes() == b"first"
    assert list(path.parent.iterdir()) == [path]
