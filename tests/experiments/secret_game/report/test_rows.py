"""One row per interaction: what is in it, and that all formats have the same."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.errors import StoreError
from groundswell.experiments.secret_game.modes import STANDARD_POINTS, Points
from groundswell.experiments.secret_game.report.rows import COLUMNS, Row, row_of, rows
from groundswell.experiments.secret_game.report.told import Interaction
from groundswell.store.atomic import replacing
from groundswell.store.tables import Format, write_table
from tests.experiments.secret_game.report.games import every_kind, game, missing, told, unfinished
from tests.properties import examples


def the_row(interaction: Interaction, points: Points = STANDARD_POINTS) -> Row:
    return row_of(interaction, "normalised", points, counted=True)


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
    first, bluffed, guessed, _, _ = (the_row(each) for each in every_kind())
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


def test_what_came_after_the_figures_were_made_is_not_counted() -> None:
    every = [game(number=number) for number in range(4)]
    few = told(every)
    analysed = told(every[:2]).analysis
    changed = type(few)("t", "r", 0, analysed, few.summary, few.interactions)
    assert [row["counted"] for _, row in rows(changed)] == [True, True, False, False]


def written(interactions: list[Interaction]) -> dict[str, bytes]:
    formats: tuple[Format, ...] = ("json", "csv", "parquet")
    outs = {name: io.BytesIO() for name in formats}
    for name, out in outs.items():
        write_table(out, name, map(the_row, interactions), COLUMNS)
    return {str(name): out.getvalue() for name, out in outs.items()}


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
def test_json_csv_and_parquet_agree_row_by_row(talks: list[list[str]]) -> None:
    interactions = [*(game(texts, number=at) for at, texts in enumerate(talks)), *every_kind()]
    wanted = [in_a_table(the_row(each)) for each in interactions]
    files = written(interactions)
    assert polars.read_parquet(io.BytesIO(files["parquet"])).to_dicts() == wanted
    assert from_csv(files["csv"]) == [emptied(row) for row in wanted]
    for row, found in zip(wanted, json.loads(files["json"]), strict=True):
        for name, value in found.items():
            assert value == (json.loads(row[name]) if COLUMNS[name] == "json" and row[name] else row[name])


def test_no_interactions_are_empty_files_with_all_columns() -> None:
    files = written([])
    assert json.loads(files["json"]) == []
    assert files["csv"].decode().strip().split(",") == list(COLUMNS)
    assert polars.read_parquet(io.BytesIO(files["parquet"])).columns == list(COLUMNS)


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-x", "@x", "\t=1", " =1"])
def test_no_cell_is_run_by_a_spreadsheet(text: str) -> None:
    interaction = game((text,), names=(text, text))
    (row,) = csv.DictReader(io.StringIO(written([interaction])["csv"].decode(), newline=""))
    assert row["first_name"] == f"'{text}"
    assert all(not cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row.values())


def test_the_talk_as_text_has_thoughts_between_stars() -> None:
    row = the_row(game(("Hi.", "Ho."), thoughts=("hm",)))
    assert row["transcript"] == "Agent 1: *hm* Hi.\nAgent 2: Ho."


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
