"""Writers of results: pure functions of an iterable."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.engine.records import TrialRow
from groundswell.errors import SettingsError
from groundswell.program.request import Fault, FaultKind
from groundswell.store.results import TrialResult, trials_frame, write_trials
from groundswell.store.tables import Format, guarded
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


def written(results: Iterable[TrialResult], format: Format) -> tuple[int, bytes]:
    out = io.BytesIO()
    return write_trials(results, out, format), out.getvalue()


def csv_rows(results: Iterable[TrialResult]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written(results, "csv")[1].decode(), newline="")))


def test_json_lines() -> None:
    count, text = written(MIXED, "jsonl")
    assert count == 4
    first, second, third, fourth = [json.loads(line) for line in text.splitlines()]
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
    (some, lines), (same, array) = written(rows, "jsonl"), written(rows, "json")
    assert some == same == len(rows)
    assert json.loads(array) == [json.loads(line) for line in lines.splitlines()]


@pytest.mark.parametrize("one_shot", [False, True], ids=["rereadable", "iterator"])
def test_csv_has_a_column_for_every_field(one_shot: bool) -> None:
    rows = csv_rows(iter(MIXED) if one_shot else MIXED)
    assert len(rows) == 4
    assert list(rows[0]) == [
        "key", "program", "status", "fault_kind", "fault_message",
        "spec.n", "spec.who", "spec.more", "result.score", "result.tags", "result.ok", "result",
    ]  # fmt: skip
    assert [row["spec.n"] for row in rows] == ["1", "-2", "3", "4"]
    assert (rows[0]["result.tags"], rows[0]["result.ok"], rows[0]["result"]) == ('["x"]', "true", "")
    assert (rows[2]["result"], rows[2]["spec.who"], rows[3]["spec.more"]) == ("7", "", "ü")
    assert rows[1]["fault_message"] == FAULT.message


def test_csv_guards_cells_that_would_run() -> None:
    rows = csv_rows(MIXED)
    assert (rows[0]["spec.who"], rows[3]["key"]) == ("'=SUM(A1)", "'-d")


@given(st.text(), st.text())
def test_text_cells_are_guarded_and_none_is_lost(key: str, word: str) -> None:
    (row,) = csv_rows([trial(key, {"word": word})])
    assert (row["key"], row["spec.word"]) == (guarded(key), guarded(word))


def test_parquet_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(SettingsError, match=r"pip install 'groundswell\[report\]'"):
        written(MIXED, "parquet")


def test_parquet_columns_have_types() -> None:
    polars = pytest.importorskip("polars")
    count, body = written([*MIXED, trial("e", {"n": 2**70}, {"score": 1})], "parquet")
    assert count == 5
    frame = polars.read_parquet(body)
    assert frame["result.score"].to_list() == [0.5, None, None, None, 1.0]
    assert frame["result.ok"].dtype == polars.Boolean
    assert frame["spec.n"].to_list() == ["1", "-2", "3", "4", str(2**70)]
    assert frame["spec.who"].to_list()[0] == "=SUM(A1)"


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DATA = st.dictionaries(st.sampled_from("abc"), PLAIN | st.lists(PLAIN, max_size=2)) | PLAIN


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(DATA, DATA), max_size=6))
def test_a_frame_has_what_the_csv_has(pairs: list[tuple[Any, Any]]) -> None:
    polars = pytest.importorskip("polars")
    rows = [trial(str(at), spec, result) for at, (spec, result) in enumerate(pairs)]
    frame = trials_frame(rows)
    header = next(csv.reader(io.StringIO(written(rows, "csv")[1].decode(), newline="")))
    assert [guarded(name) for name in frame.columns] == header
    assert frame.height == len(rows)
    assert set(frame.dtypes) <= {polars.String, polars.Int64, polars.Float64, polars.Boolean}
    for at, row in enumerate(rows):
        given_ = row.flat()
        for name in frame.columns:
            shown, value = frame[name][at], given_.get(name)
            same = shown == value and isinstance(shown, bool) == isinstance(value, bool)
            assert same or json.loads(shown) == value, name


def test_pandas_has_the_same_and_keeps_gaps_apart_from_numbers() -> None:
    pytest.importorskip("pandas")
    frame = trials_frame([*MIXED, trial("e", {"n": 5}, {"score": 1, "ok": False, "tries": 3})], pandas=True)
    assert list(frame["spec.n"]) == [1, -2, 3, 4, 5]
    assert str(frame["spec.n"].dtype) == "int64"
    assert (str(frame["result.ok"].dtype), str(frame["result.tries"].dtype)) == ("boolean", "Int64")
    assert (frame["result.ok"].sum(), frame["result.tries"].sum(), frame["result.score"].mean()) == (1, 3, 0.75)
    assert frame["result"].isna().sum() == 4


def test_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingsError, match=r"needs pandas.*pip install 'groundswell\[report\]'"):
        trials_frame(MIXED, pandas=True)
