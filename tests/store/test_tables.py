"""Tables: all formats have the same rows, what was written is read again, and what is wrong is told with its place."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundswell.errors import SettingsError, StoreError
from groundswell.store.tables import (
    Columns,
    CsvWriter,
    Format,
    Row,
    csv_text,
    format_of,
    frame,
    guarded,
    kind_of,
    read_table,
    rows_or_errors,
    table_files,
    table_paths,
    write_table,
)
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
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.lists(TEXT, min_size=1, max_size=4, unique=True)
CELLS = st.one_of(st.none(), st.booleans(), st.integers(), FINITE, TEXT)
NESTED = st.recursive(CELLS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": TEXT,
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "x": st.none() | FINITE,
            "yes": st.none() | st.booleans(),
            "some": st.none() | st.lists(TEXT, max_size=3),
            "more": st.none() | st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
            "what": st.none() | st.booleans() | st.integers(0, 9) | TEXT,
        }
    ),
    max_size=4,
)
QUICK = settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def tables(cells: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows with the same columns, whatever these are called."""
    return NAMES.flatmap(lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, cells)), min_size=1))


def written(format: Format, rows: Any, columns: Columns | None = None) -> bytes:
    out = io.BytesIO()
    write_table(out, format, rows, columns)
    return out.getvalue()


def read(path: Path, format: Format) -> list[dict[str, Any]]:
    return [row for _, row in read_table(path, format)]


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.csv", "csv"), ("A.CSV", "csv"), ("b.ndjson", "jsonl"), ("c.pq", "parquet"), ("d.xlsx", None), ("-", None)],
)
def test_the_end_of_a_name_says_the_format(name: str, format: Format | None) -> None:
    assert format_of(name) == format_of(Path(name)) == format


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-5+3", "'-5+3"),
        ("-cmd", "'-cmd"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("  =1", "'  =1"),
        ("-5\n=1", "'-5\n=1"),
        ("-5", "-5"),
        ("+1.5", "+1.5"),
        ("a=1", "a=1"),
        ("", ""),
        ("'=1", "'=1"),
    ],
)
def test_the_guard(text: str, safe: str) -> None:
    assert guarded(text) == safe


@given(TEXT)
def test_no_guarded_text_runs_unless_it_is_a_number(text: str) -> None:
    cell = guarded(text)
    assert cell in (text, "'" + text)
    if cell.lstrip().startswith(("=", "+", "-", "@")):
        float(cell)


@QUICK
@given(ROWS)
def test_all_formats_have_the_same_rows(rows: list[Row]) -> None:
    assert json.loads(written("json", rows, COLUMNS)) == rows
    assert [json.loads(line) for line in written("jsonl", rows, COLUMNS).split(b"\n") if line] == rows
    found = polars.read_parquet(written("parquet", rows, COLUMNS))
    assert found.columns == list(COLUMNS)
    for name in ("name", "n", "x", "yes", "some"):
        assert found[name].to_list() == [row[name] for row in rows]
    assert [each and json.loads(each) for each in found["more"].to_list()] == [row["more"] for row in rows]
    for delimiter, format in ((",", "csv"), ("\t", "tsv")):
        text = written(format, rows, COLUMNS).decode()  # type: ignore[arg-type]
        cells = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        assert [cell["name"].removeprefix("'") for cell in cells] == [row["name"].removeprefix("'") for row in rows]
        for name in ("n", "x", "yes", "some", "more"):
            assert [json.loads(cell[name] or "null") for cell in cells] == [row[name] for row in rows]


@pytest.mark.parametrize("format", ["csv", "tsv"])
@QUICK
@given(rows=tables(TEXT))
def test_text_comes_back_from_csv(tmp_path: Path, format: Format, rows: list[dict[str, Any]]) -> None:
    path, names = tmp_path / f"t.{format}", dict.fromkeys(rows[0], "any")
    for line_end in ("\n", "\r\n"):
        with path.open("wb") as out:
            delimiter = "\t" if format == "tsv" else ","
            writer = CsvWriter(out, names, delimiter=delimiter, line_end=line_end, unguarded=names)  # type: ignore[arg-type]
            for row in rows:
                writer.add(row)
        assert read(path, format) == rows


@pytest.mark.parametrize("format", ["jsonl", "json"])
@QUICK
@given(rows=tables(NESTED))
def test_any_json_comes_back_whatever_the_ending_says(
    tmp_path: Path, format: Format, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path / "t"
    path.write_bytes(written(format, rows))
    assert read(path, "json") == read(path, "jsonl") == rows


@settings(QUICK, max_examples=examples(15))
@given(rows=ROWS)
def test_typed_columns_come_back_from_parquet(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(written("parquet", rows, {name: COLUMNS[name] for name in ("name", "n", "x", "yes", "some")}))
    assert read(path, "parquet") == [
        {name: value for name, value in row.items() if name not in ("more", "what")} for row in rows
    ]


@pytest.mark.parametrize(
    ("values", "kind", "held"),
    [
        ([True, None], "bool", [True, None]),
        ([1, 2, None], "int", [1, 2, None]),
        ([1, 2.5], "float", [1.0, 2.5]),
        (["a", None], "text", ["a", None]),
        ([1, "a"], "text", ["1", "a"]),
        ([True, 1], "text", ["true", "1"]),
        ([1, 2**63], "text", ["1", str(2**63)]),
        ([0.5, 2**70], "text", ["0.5", str(2**70)]),
        ([["x"], {"a": 1}, None], "json", ['["x"]', '{"a":1}', None]),
        (["a", [1]], "json", ['"a"', "[1]"]),
        ([None], "text", [None]),
        ([], "text", []),
    ],
)
def test_a_column_is_as_narrow_as_its_values(values: list[Any], kind: str, held: list[Any]) -> None:
    assert kind_of(values) == kind
    found = frame([{"what": value} for value in values], {"what": "any"})["what"]
    types: dict[str, Any] = {"bool": polars.Boolean, "int": polars.Int64, "float": polars.Float64}
    assert (found.to_list(), found.dtype) == (held, types.get(kind, polars.String))


def test_lists_are_json_in_csv_and_what_is_missing_is_empty() -> None:
    row = {"some": ["a; b", "=1"], "yes": False, "more": "text"}
    (cells,) = csv.DictReader(io.StringIO(written("csv", [row], COLUMNS).decode(), newline=""))
    assert (cells["some"], cells["yes"], cells["more"], cells["n"]) == ('["a; b","=1"]', "false", '"text"', "")


@pytest.mark.parametrize("given_as", ["list", "iterator", "function"])
def test_without_columns_a_table_has_all_that_occur(given_as: str) -> None:
    rows: list[Row] = [{"a": 1}, {"b": 2.5, "a": 3}, {}]
    for format in ("csv", "parquet"):
        rows_given = {"list": rows, "iterator": iter(rows), "function": lambda: iter(rows)}[given_as]
        made = written(format, rows_given)
        if format == "csv":
            assert made == b"a,b\r\n1,\r\n3,2.5\r\n,\r\n"
        else:
            assert polars.read_parquet(made).to_dict(as_series=False) == {"a": [1, 3, None], "b": [None, 2.5, None]}


@pytest.mark.parametrize(("format", "bare"), [("json", b"[]\n"), ("jsonl", b""), ("csv", b"a\r\n")])
def test_a_table_without_rows(format: Format, bare: bytes) -> None:
    assert written(format, [], {"a": "int"}) == bare
    assert polars.read_parquet(written("parquet", [], {"a": "int"})).schema == {"a": polars.Int64}


def test_csv_as_text() -> None:
    assert csv_text(["=a", "b"], [[1, "=1"], [None, ["x"]]]) == '\'=a,b\r\n1,\'=1\r\n,"[""x""]"\r\n'


def test_rows_are_written_as_they_come() -> None:
    out, seen = io.BytesIO(), list[int]()

    def rows() -> Iterator[Row]:
        for number in range(3):
            seen.append(len(out.getvalue()))
            yield {"a": number}

    write_table(out, "csv", rows(), {"a": "int"})
    assert seen == sorted(set(seen))


def test_files_are_all_whole_or_all_as_they_were(tmp_path: Path) -> None:
    def fail() -> None:
        with table_files(tmp_path, "x", {"n": "int"}) as add:
            add({"n": 1})
            raise OSError("full")

    with pytest.raises(StoreError, match="cannot be written: full"):
        fail()
    assert list(tmp_path.iterdir()) == []
    with table_files(tmp_path, "x", {"n": "int"}, ("csv", "jsonl")) as add:
        add({"n": 1})
    assert sorted(tmp_path.iterdir()) == table_paths(tmp_path, "x", ("csv", "jsonl"))
    assert [path.name for path in table_paths(tmp_path, "x")] == ["x.csv", "x.json", "x.parquet"]


def test_pandas_keeps_gaps_apart_from_numbers() -> None:
    pytest.importorskip("pandas")
    found = frame([{"n": 1, "yes": True, "whole": 2}, {"n": None, "yes": None, "whole": 3}], pandas=True)
    assert [str(found[name].dtype) for name in ("n", "yes", "whole")] == ["Int64", "boolean", "int64"]
    assert (found["n"].sum(), found["yes"].isna().sum()) == (1, 1)


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    told = rf"needs {package}, which is not installed: pip install 'groundswell\[report\]'"
    with pytest.raises(SettingsError, match=told):
        frame([], pandas=package == "pandas")
    if package == "polars":
        with pytest.raises(SettingsError, match=told):
            written("parquet", [])
        with pytest.raises(SettingsError, match=told):
            read(tmp_path / "t.parquet", "parquet")


BAD: list[tuple[str, bytes, str]] = [
    ("a.csv", b"a,b\n1,2\n3\n", "line 3: it has 1 cells, but the header has 2"),
    ("b.csv", b'a,b\n1,2\n"3,4\n', "unexpected end of data"),
    ("c.csv", b"a,a\n1,2\n", "two columns are named 'a'"),
    ("d.csv", b"", "the file is empty; the first line must name the columns"),
    ("f.csv", b"a\ncaf\xe9\n", "line 2: byte 0xe9 is not valid UTF-8"),
    ("g.csv", "a\n1\n".encode("utf-16"), "the file is UTF-16"),
    ("h.jsonl", b'{"a": 1}\n{"a": \n', "line 2, character"),
    ("i.jsonl", b'{"a": 1}\n[1]\n', "line 2: a row must be an object with column names as keys, not a list"),
    ("k.jsonl", b'{"a": NaN}\n', "NaN is not allowed; use null"),
    ("l.jsonl", b'{"a": 1, "a": 2}\n', "key 'a' occurs twice in one object"),
    ("m.jsonl", b'{"a": "\\ud800"}\n', "an unpaired surrogate"),
    ("m2.jsonl", b'{"a": 1e400}\n', "number 1e400 is too large"),
    ("m3.jsonl", b'{"a": 1}\n' + b"[" * 100_000, "line 2: invalid JSON"),
    ("n.json", b'\n[{"a": 1},\n 2]', "row 2: a row must be an object"),
    ("o.json", b'\n[{"a": 1},\n oops]', "line 3, character 2: invalid JSON"),
    ("p.json", b'[{"a": NaN}]', "the array: invalid JSON: NaN is not allowed"),
    ("r.parquet", b"PAR1 nonsense", "cannot be read as Parquet"),
]


@pytest.mark.parametrize(("name", "body", "told"), BAD, ids=[name for name, _, _ in BAD])
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, name: str, body: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(body)
    format = format_of(path)
    assert format is not None
    with pytest.raises(SettingsError) as error:
        read(path, format)
    assert str(path) in str(error.value)
    assert told in str(error.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    for format in ("csv", "jsonl", "parquet"):
        with pytest.raises(SettingsError, match=r"none: .*No such file"):
            read(tmp_path / "none", format)


def test_reading_can_go_on_after_a_row_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("a,b\n1\n1,2\n")
    assert [(where, isinstance(row, ValueError)) for where, row in rows_or_errors(path, "csv")] == [
        ("line 2", True),
        ("line 3", False),
    ]
    path.write_text('oops\n{"a": 1}\n')
    assert [(where, isinstance(row, ValueError)) for where, row in rows_or_errors(path, "jsonl")] == [
        ("line 1, character 1", True),
        ("line 2", False),
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_data(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n1,"x\r\ny"\r\n\r\n2,z\r\n')
    assert read(path, "csv") == [{"a": "1", "b": "x\r\ny"}, {"a": "2", "b": "z"}]


@pytest.mark.parametrize(
    "body",
    ['a;b\r\n"x;y";1,5\r\n', "a\tb\nx;y\t1,5\n", 'sep=;\n"a";"b"\n"x;y";1,5\n', '\n"a";b\n"x;y";"1,5"\n'],
    ids=["semicolons", "tabs", "said first", "quoted"],
)
def test_cells_may_be_parted_by_what_the_header_has_instead_of_commas(tmp_path: Path, body: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(body, encoding="utf-8")
    assert read(path, "csv") == [{"a": "x;y", "b": "1,5"}]


def test_what_json_cannot_hold_is_text_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    polars.DataFrame({"day": ["2026-01-02"], "x": [float("nan")]}).with_columns(
        polars.col("day").str.to_date()
    ).write_parquet(path)
    assert read(path, "parquet") == [{"day": "2026-01-02", "x": None}]
