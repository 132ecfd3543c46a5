"""Writers of results: pure functions of an iterable."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.engine.records import TrialRow
from groundswell.errors import SettingsError
from groundswell.program.request import Fault, FaultKind
from groundswell.store.export import guarded, write_csv, write_json, write_jsonl, write_parquet
from groundswell.store.results import TrialResult

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
