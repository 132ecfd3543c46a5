"""Rows to files: all formats have the same, whatever the columns."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.errors import StoreError
from groundswell.experiments.reporting.tables import FORMATS, Columns, Row, paths, tables
from tests.properties import examples

COLUMNS: Columns = {
    "name": "text",
    "n": "int",
    "x": "float",
    "yes": "bool",
    "some": "list",
    "more": "json",
    "what": "any",
}
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": TEXT,
            "n": st.none() | st.integers(-(2**40), 2**40),
            "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "yes": st.none() | st.booleans(),
            "some": st.lists(TEXT, max_size=3),
            "more": st.none() | st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
            "what": st.none() | st.booleans() | st.integers(0, 9) | TEXT,
        }
    ),
    max_size=4,
)


def written(rows: list[Row]) -> dict[str, bytes]:
    found = {}
    for name, form in FORMATS.items():
        out = io.BytesIO()
        taker = form(out, COLUMNS)
        for row in rows:
            taker.take(row)
        taker.close()
        found[name] = out.getvalue()
    return found


@settings(max_examples=examples(40), deadline=None)
@given(ROWS)
def test_all_formats_agree(rows: list[Row]) -> None:
    files = written(rows)
    assert json.loads(files["json"]) == rows
    frame = polars.read_parquet(io.BytesIO(files["parquet"]))
    assert frame.columns == list(COLUMNS)
    for name in ("name", "n", "x", "yes", "some"):
        assert frame[name].to_list() == [row[name] for row in rows]
    assert [each and json.loads(each) for each in frame["more"].to_list()] == [row["more"] for row in rows]
    cells = list(csv.DictReader(io.StringIO(files["csv"].decode(), newline="")))
    assert [cell["n"] for cell in cells] == ["" if row["n"] is None else str(row["n"]) for row in rows]


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([True, None], polars.Boolean),
        ([1, 2], polars.Int64),
        ([1, 2.5], polars.Float64),
        ([1, "a"], polars.String),
        ([True, 1], polars.String),
        ([], polars.String),
    ],
    ids=["bool", "int", "float", "mixed", "bool and int", "nothing"],
)
def test_a_column_of_anything_is_as_narrow_as_its_values(values: list[Any], type_: type[polars.DataType]) -> None:
    rows = [dict.fromkeys(COLUMNS) | {"what": value} for value in values]
    assert polars.read_parquet(io.BytesIO(written(rows)["parquet"])).schema["what"] == type_


def test_lists_are_joined_and_guarded_in_csv() -> None:
    row = dict.fromkeys(COLUMNS) | {"some": ["=1", "b"], "yes": False}
    (cells,) = csv.DictReader(io.StringIO(written([row])["csv"].decode(), newline=""))
    assert (cells["some"], cells["yes"], cells["more"]) == ("'=1; b", "false", "")


def test_a_row_may_go_into_tables_otherwise_than_into_json(tmp_path: Path) -> None:
    with tables(tmp_path, "x", {"said": "text"}, lambda row: {"said": "".join(row["said"])}) as take:
        take({"said": ["a", "b"]})
    assert json.loads((tmp_path / "x.json").read_bytes()) == [{"said": ["a", "b"]}]
    assert (tmp_path / "x.csv").read_text() == "said\nab\n"
    assert polars.read_parquet(tmp_path / "x.parquet")["said"].to_list() == ["ab"]


def test_files_are_all_whole_or_all_as_they_were(tmp_path: Path) -> None:
    def fail() -> None:
        with tables(tmp_path, "x", {"n": "int"}) as take:
            take({"n": 1})
            raise OSError("full")

    with pytest.raises(StoreError, match="cannot be written: full"):
        fail()
    assert list(tmp_path.iterdir()) == []
    assert [path.name for path in paths(tmp_path, "x")] == ["x.json", "x.csv", "x.parquet"]
