"""Writers of results: pure functions of an iterable."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.engine.records import TrialRow
from groundswell.errors import SettingsError
from groundswell.program.request import Fault, FaultKind
from groundswell.store.tables import (
    TrialResult,
    cells,
    columns,
    guarded,
    pandas_frame,
    polars_frame,
    write_csv,
    write_json,
    write_jsonl,
    write_parquet,
)
from tests.properties import examples

FAULT = Fault(FaultKind.TIMEOUT, 'too, "late"\nby far')


def trial(key: str, spec: Any, result: Any = None, *, fault: Fault | None = None, open_: bool = False) -> TrialResult:
    body = None if open_ else msgspec.json.encode(fault or result).decode()
    row = TrialRow(1, key, "p@1", msgspec.json.encode(spec).decode(), 0, body, fault.kind.value if fault else None)
    return TrialResult(row, fault)


MIXED = [
    trial("a", {"n": 1, "who": "=SUM(A1)"}, {"score": 0.5, "tags": ["x"], "ok": True}),
    trial("b", {"n": -2, "who": "ann"}, fault=FAULT),
    trial("c", {"n": 3, "who": None}, 7),
    trial("-d", {"n": 4, "more": "ü"}, open_=True),
]


def test_json_lines() -> None:
    out = io.StringIO()
    assert write_jsonl(MIXED, out) == 4
    first, second, third, fourth = [json.loads(line) for line in out.getvalue().splitlines()]
    assert first == {
        "key": "a",
        "program": "p@1",
        "status": "usable",
        "fault_kind": None,
        "fault_message": None,
        "spec": {"n": 1, "who": "=SUM(A1)"},
        "result": {"score": 0.5, "tags": ["x"], "ok": True},
    }
    assert (second["status"], second["fault_kind"], second["fault_message"]) == ("missing", "timeout", FAULT.message)
    assert (second["result"], third["result"]) == (None, 7)
    assert fourth["status"] == "unfinished"


@pytest.mark.parametrize("rows", [MIXED, MIXED[:1], []], ids=["several", "one", "none"])
def test_json_is_an_array_of_the_same(rows: list[TrialResult]) -> None:
    lines, array = io.StringIO(), io.StringIO()
    assert write_jsonl(rows, lines) == write_json(rows, array) == len(rows)
    assert json.loads(array.getvalue()) == [json.loads(line) for line in lines.getvalue().splitlines()]


@pytest.mark.parametrize("one_shot", [False, True], ids=["rereadable", "iterator"])
def test_csv_has_a_column_for_every_field(one_shot: bool) -> None:
    out = io.StringIO()
    assert write_csv(iter(MIXED) if one_shot else MIXED, out) == 4
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert list(rows[0]) == [
        "key", "program", "status", "fault_kind", "fault_message",
        "spec.n", "spec.who", "spec.more", "result.score", "result.tags", "result.ok", "result",
    ]  # fmt: skip
    assert [row["spec.n"] for row in rows] == ["1", "-2", "3", "4"]
    assert (rows[0]["result.tags"], rows[0]["result.ok"], rows[0]["result"]) == ('["x"]', "true", "")
    assert (rows[2]["result"], rows[2]["spec.who"], rows[3]["spec.more"]) == ("7", "", "ü")
    assert rows[1]["fault_message"] == FAULT.message


def test_csv_guards_cells_that_would_run() -> None:
    out = io.StringIO()
    write_csv(MIXED, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert (rows[0]["spec.who"], rows[3]["key"]) == ("'=SUM(A1)", "'-d")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("  =1", "'  =1"),
        ("a=1", "a=1"),
        ("", ""),
        ("'=1", "'=1"),
    ],
)
def test_the_guard(text: str, safe: str) -> None:
    assert guarded(text) == safe


@given(st.text(), st.text())
def test_no_text_cell_starts_like_a_formula_and_none_is_lost(key: str, word: str) -> None:
    out = io.StringIO()
    write_csv([trial(key, {"word": word})], out)
    (row,) = csv.DictReader(io.StringIO(out.getvalue(), newline=""))
    for cell, text in ((row["key"], key), (row["spec.word"], word)):
        assert cell in (text, "'" + text)
        assert not cell.lstrip().startswith(("=", "+", "-", "@"))


def test_parquet_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(SettingsError, match=r"pip install 'groundswell\[report\]'"):
        write_parquet(MIXED, io.BytesIO())


def test_parquet_columns_have_types() -> None:
    polars = pytest.importorskip("polars")
    out = io.BytesIO()
    rows = [*MIXED, trial("e", {"n": 2**70}, {"score": 1})]
    assert write_parquet(rows, out) == 5
    frame = polars.read_parquet(io.BytesIO(out.getvalue()))
    assert frame["result.score"].to_list() == [0.5, None, None, None, 1.0]
    assert frame["result.ok"].dtype == polars.Boolean
    assert frame["spec.n"].to_list() == ["1", "-2", "3", "4", str(2**70)]
    assert frame["spec.who"].to_list()[0] == "=SUM(A1)"


def test_columns_are_of_the_widest_kind_that_loses_nothing() -> None:
    values: dict[str, list[Any]] = {
        "gap": [1, None, 3],
        "numbers": [1, 0.5, 2],
        "flags": [True, None, False],
        "words": ["a", "b", None],
        "flag_or_number": [True, 1, None],
        "big": [1, 2**63, -(2**63)],
        "nested": [{"b": [1]}, None, ["x"]],
        "nothing": [None, None, None],
    }
    specs = [{name: column[at] for name, column in values.items()} for at in range(3)]
    found = columns(trial(str(at), spec) for at, spec in enumerate(specs))
    assert {name: found[f"spec.{name}"] for name in values} == {
        "gap": ("int", [1, None, 3]),
        "numbers": ("float", [1.0, 0.5, 2.0]),
        "flags": ("bool", [True, None, False]),
        "words": ("text", ["a", "b", None]),
        "flag_or_number": ("json", ["true", "1", None]),
        "big": ("json", ["1", str(2**63), str(-(2**63))]),
        "nested": ("json", ['{"b":[1]}', None, '["x"]']),
        "nothing": ("text", [None, None, None]),
    }


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DATA = st.dictionaries(st.sampled_from("abc"), PLAIN | st.lists(PLAIN, max_size=2)) | PLAIN


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(DATA, DATA), max_size=6))
def test_a_frame_has_what_the_csv_has(pairs: list[tuple[Any, Any]]) -> None:
    polars = pytest.importorskip("polars")
    rows = [trial(str(at), spec, result) for at, (spec, result) in enumerate(pairs)]
    frame, out = polars_frame(rows), io.StringIO()
    write_csv(rows, out)
    header = next(csv.reader(io.StringIO(out.getvalue(), newline="")))
    assert [guarded(name) for name in frame.columns] == header
    assert frame.height == len(rows)
    assert set(frame.dtypes) <= {polars.String, polars.Int64, polars.Float64, polars.Boolean}
    for at, row in enumerate(rows):
        given_ = dict(cells(row))
        for name in frame.columns:
            shown, value = frame[name][at], given_.get(name)
            same = shown == value and isinstance(shown, bool) == isinstance(value, bool)
            assert same or json.loads(shown) == value, name


def test_pandas_has_the_same_and_keeps_gaps_apart_from_numbers() -> None:
    pytest.importorskip("pandas")
    frame = pandas_frame([*MIXED, trial("e", {"n": 5}, {"score": 1, "ok": False, "tries": 3})])
    assert list(frame["spec.n"]) == [1, -2, 3, 4, 5]
    assert str(frame["spec.n"].dtype) == "int64"
    assert (str(frame["result.ok"].dtype), str(frame["result.tries"].dtype)) == ("boolean", "Int64")
    assert (frame["result.ok"].sum(), frame["result.tries"].sum(), frame["result.score"].mean()) == (1, 3, 0.75)
    assert frame["result"].isna().sum() == 4


def test_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingsError, match=r"needs pandas.*pip install 'groundswell\[report\]'"):
        pandas_frame(MIXED)
