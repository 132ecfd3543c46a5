"""The table that `map` reads and the one that it writes: rows as they were, with new cells beside them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.prompting.tables import Source, check_unchanged, rows, sheet, survey
from groundswell.store.tables import Format
from tests.properties import examples

NO_SOURCE = Source("", "csv", "", 0)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl", "parquet"])
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=st.lists(st.fixed_dictionaries({"=a": TEXT, "b;c": TEXT}), min_size=1))
def test_the_cells_of_users_stay_as_they_are(tmp_path: Path, form: Format, made: list[dict[str, str]]) -> None:
    path = tmp_path / f"t.{form}"
    with sheet(path, form, NO_SOURCE, ["=a", "b;c"], ["new"]) as add:
        for number, row in enumerate(made):
            add(number, row, {"new": "x"})
    found = survey(path, form)
    assert (sorted(found.columns), found.source.rows) == (["=a", "b;c", "new"], len(made))
    assert list(rows(found.source)) == [{**row, "new": "x"} for row in made]
    assert len(list(rows(found.source, 1))) == 1


def test_a_parquet_table_keeps_its_types_and_repeats_its_rows(tmp_path: Path) -> None:
    path, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    frame = polars.DataFrame({"day": [date(2026, 1, 2), None], "many": [[1, 2], []], "x": [0.1, float("nan")]})
    frame.write_parquet(path)
    found = survey(path, "parquet")
    assert found.nested == "many"
    assert next(dict(row) for row in rows(found.source)) == {"day": "2026-01-02", "many": [1, 2], "x": 0.1}
    with sheet(out, "parquet", found.source, found.columns, ["model", "passed"]) as add:
        for number, row in enumerate(rows(found.source)):
            for model in ("a", "b"):
                add(number, row, {"model": model, "passed": model == "a"})
    again = polars.read_parquet(out)
    assert again.schema == {**frame.schema, "model": polars.String, "passed": polars.Boolean}
    assert again["day"].to_list() == [date(2026, 1, 2)] * 2 + [None] * 2
    assert again["model"].to_list() == ["a", "b"] * 2


@pytest.mark.parametrize(("name", "body"), [("e.csv", "a,b\n"), ("j.jsonl", "\n"), ("q.json", ""), ("r.json", "[]")])
def test_a_table_without_rows_is_refused(tmp_path: Path, name: str, body: str) -> None:
    path = tmp_path / name
    path.write_text(body)
    with pytest.raises(SettingsError, match="the table has no rows"):
        survey(path, "csv" if path.suffix == ".csv" else "json")


def test_a_row_that_lacks_a_needed_column_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\n{"a": 1, "b": 2}\n')
    assert survey(path, "jsonl").columns == ["a", "b"]
    with pytest.raises(SettingsError, match="line 2: column 'a' is missing, but other rows have it"):
        survey(path, "jsonl", ["a"])


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    source = survey(path, "csv").source
    check_unchanged(source)
    path.write_text("a\n2\n")
    with pytest.raises(SettingsError, match="has changed since this run was started"):
        check_unchanged(source)


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
def test_what_models_write_is_no_formula(tmp_path: Path, value: Any, cell: str) -> None:
    path = tmp_path / "t.csv"
    with sheet(path, "csv", NO_SOURCE, ["own"], ["new"]) as add:
        add(0, {"own": "=1"}, {"new": value})
    (row,) = rows(survey(path, "csv").source)
    assert row == {"own": "=1", "new": cell}


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    def fail() -> None:
        with sheet(tmp_path / "out.csv", "csv", NO_SOURCE, ["a"], []) as add:
            add(0, {"a": "1"}, {})
            assert not (tmp_path / "out.csv").exists()
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert list(tmp_path.iterdir()) == []
