"""Tables: read as they were written, whatever is in them; and what is wrong with a file is told with its place."""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.prompting.sheets import guarded_cell, sheet
from groundswell.experiments.prompting.tables import Format, Source, check_unchanged, format_of, rows, survey
from tests.properties import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.lists(TEXT, min_size=1, max_size=4, unique=True)
CELLS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
NESTED = st.recursive(CELLS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2))
QUICK = settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
NO_SOURCE = Source("", "csv", "", 0)


Made = tuple[list[str], list[dict[str, Any]]]


def table(cells: st.SearchStrategy[Any]) -> st.SearchStrategy[Made]:
    return NAMES.flatmap(
        lambda names: st.tuples(
            st.just(names),
            st.lists(st.tuples(*[cells] * len(names)).map(lambda row: dict(zip(names, row, strict=True))), min_size=1),
        )
    )


def write(path: Path, form: Format, names: Sequence[str], given: list[dict[str, Any]]) -> None:
    with sheet(path, form, NO_SOURCE, names, []) as out:
        for row in given:
            out.add(row, {})


def read(path: Path, form: Format) -> Made:
    found = survey(path, form)
    return found.columns, [dict(row) for row in rows(found.source)]


@pytest.mark.parametrize("form", ["csv", "tsv"])
@given(made=table(TEXT))
@QUICK
def test_text_in_any_cell_comes_back(tmp_path: Path, form: Format, made: Made) -> None:
    path = tmp_path / f"t.{form}"
    write(path, form, *made)
    assert read(path, form) == made


@pytest.mark.parametrize("form", ["jsonl", "json"])
@given(made=table(NESTED))
@QUICK
def test_any_json_comes_back(tmp_path: Path, form: Format, made: Made) -> None:
    path = tmp_path / f"t.{form}"
    write(path, form, *made)
    assert read(path, form) == made


@given(made=table(TEXT), numbers=st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=5))
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_in_parquet_comes_back(tmp_path: Path, made: Made, numbers: list[int | None]) -> None:
    path, (names, given_rows) = tmp_path / "t.parquet", made
    given_rows = [{**row, "a number": number} for row, number in zip(given_rows, numbers, strict=False)]
    write(path, "parquet", [*names, "a number"], given_rows)
    assert read(path, "parquet") == ([*names, "a number"], given_rows)


def test_a_parquet_table_keeps_its_types_and_repeats_its_rows(tmp_path: Path) -> None:
    path, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    frame = polars.DataFrame({"day": [date(2026, 1, 2), None], "many": [[1, 2], []], "x": [0.1, float("nan")]})
    frame.write_parquet(path)
    found = survey(path, "parquet")
    assert found.nested == "many"
    assert next(dict(row) for row in rows(found.source)) == {"day": "2026-01-02", "many": [1, 2], "x": 0.1}
    with sheet(out, "parquet", found.source, found.columns, ["model", "passed"]) as written:
        for row in rows(found.source):
            for model in ("a", "b"):
                written.add(row, {"model": model, "passed": model == "a"})
    again = polars.read_parquet(out)
    assert again.schema == {**frame.schema, "model": polars.String, "passed": polars.Boolean}
    assert again["day"].to_list() == [date(2026, 1, 2)] * 2 + [None] * 2
    assert again["model"].to_list() == ["a", "b"] * 2


BAD: list[tuple[str, bytes, str]] = [
    ("a.csv", b"a,b\n1,2\n3\n", "line 3: it has 1 cells, and the header has 2"),
    ("b.csv", b'a,b\n1,2\n"3,4\n', "unexpected end of data"),
    ("c.csv", b"a,a\n1,2\n", "two columns are called 'a'"),
    ("d.csv", b"", "it is empty; the first line must name the columns"),
    ("e.csv", b"a,b\n", "there are no rows in it"),
    ("f.csv", b"a\ncaf\xe9\n", "line 2: byte 0xe9 is not UTF-8"),
    ("g.csv", "a\n1\n".encode("utf-16"), "this is UTF-16"),
    ("h.jsonl", b'{"a": 1}\n{"a": \n', "line 2, character"),
    ("i.jsonl", b'{"a": 1}\n[1]\n', "line 2: a row must be an object with the columns' names, not a list"),
    ("j.jsonl", b"\n", "there are no rows in it"),
    ("k.jsonl", b'{"a": NaN}\n', "NaN is no JSON; write null"),
    ("l.jsonl", b'{"a": 1, "a": 2}\n', "'a' is there twice in one object"),
    ("m.jsonl", b'{"a": "\\ud800"}\n', "half of a surrogate pair"),
    ("m2.jsonl", b'{"a": 1e400}\n', "1e400 is larger than numbers can be"),
    ("n.json", b'{"a": 1}', "it must hold one JSON array of objects"),
    ("o.json", b'[{"a": 1},\n 2]', "row 2: a row must be an object"),
    ("p.json", b'[{"a": 1},\n oops]', "line 2, character 2: this is not JSON"),
    ("q.json", b"", "there are no rows in it"),
    ("r.parquet", b"PAR1 nonsense", "this cannot be read as Parquet"),
]


@pytest.mark.parametrize(("name", "body", "told"), BAD, ids=[name for name, _, _ in BAD])
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, name: str, body: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(body)
    with pytest.raises(SettingsError) as error:
        survey(path, format_of(path, "DATA"))
    assert str(path) in str(error.value)
    assert told in str(error.value)


def test_a_row_that_lacks_a_needed_column_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\n{"a": 1, "b": 2}\n')
    assert survey(path, "jsonl").columns == ["a", "b"]
    with pytest.raises(SettingsError, match="line 2: there is no 'a' here, which other rows have"):
        survey(path, "jsonl", ["a"])


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_data(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n1,"x\r\ny"\r\n\r\n2,z\r\n')
    assert read(path, "csv") == (["a", "b"], [{"a": "1", "b": "x\r\ny"}, {"a": "2", "b": "z"}])


@pytest.mark.parametrize(
    "body",
    ['a;b\r\n"x;y";1,5\r\n', "a\tb\nx;y\t1,5\n", 'sep=;\n"a";"b"\n"x;y";1,5\n', '\n"a";b\n"x;y";"1,5"\n'],
    ids=["semicolons", "tabs", "said first", "quoted"],
)
def test_cells_may_be_parted_by_what_the_header_has_instead_of_commas(tmp_path: Path, body: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(body, encoding="utf-8")
    assert read(path, "csv") == (["a", "b"], [{"a": "x;y", "b": "1,5"}])


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    source = survey(path, "csv").source
    check_unchanged(source)
    path.write_text("a\n2\n")
    with pytest.raises(SettingsError, match="has changed since this run was started"):
        check_unchanged(source)


def test_a_name_that_says_nothing_is_refused() -> None:
    assert format_of(Path("X.NDJSON"), "DATA") == "jsonl"
    with pytest.raises(SettingsError, match=r"DATA: its name must end in \.csv"):
        format_of(Path("table.xlsx"), "DATA")


def test_parquet_without_polars_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise builtins.ImportError(name)

    (tmp_path / "t.parquet").write_bytes(b"")
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(SettingsError, match="Parquet needs polars, which is not installed"):
        survey(tmp_path / "t.parquet", "parquet")


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-5", "-5"),
        ("+1.5", "+1.5"),
        ("-5+3", "'-5+3"),
        (-5, "-5"),
        (None, ""),
        (True, "true"),
        (["=1"], '["=1"]'),
        ("text", "text"),
    ],
)
def test_what_models_write_is_no_formula(value: Any, cell: str) -> None:
    assert guarded_cell(value) == cell


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    def fail() -> None:
        with sheet(tmp_path / "out.csv", "csv", NO_SOURCE, ["a"], []) as out:
            out.add({"a": "1"}, {})
            assert not (tmp_path / "out.csv").exists()
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert list(tmp_path.iterdir()) == []
