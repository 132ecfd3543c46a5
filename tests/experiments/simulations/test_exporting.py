"""Batches as files: what is written is what was said, and nothing in it runs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import msgspec
import pandas  # type: ignore[import-untyped]
import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.batch import Batch, Single
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.exporting import Format, Table, write_export
from groundswell.experiments.simulations.questions import Answer
from groundswell.experiments.simulations.reading import Readings
from groundswell.experiments.simulations.simulation import Line, Rules, Simulation, Talked
from groundswell.program.request import Fault, FaultKind
from groundswell.store.journal import Store
from groundswell.store.tables import guarded
from tests.experiments.simulations.finished import plant_batch, plant_single
from tests.properties import examples

NASTY = '=HYPERLINK("http://x.example","a, b")\r\n<script>alert(1)</script>\tü 漢 \U0001f600'
ANN = Entity("ann", "Ann", attributes={"age": 41, "rich": True, "job": "=cmd|' /C calc'!A1"})
BOB = Entity("bob", "+Bob", attributes={"age": 7.5, "rich": False, "town": "Łódź"})
ANN_TOO = Entity("ann2", "Ann", attributes={"mood": "good"}, model="emulated/other")
BATCH = Batch(
    "three",
    "A talk",
    (ANN, BOB, ANN_TOO),
    2,
    3,
    Rules("emulated/a", n_turns=2),
    metadata={"tags": ["x"]},
    order="given",
)
TALKED = Talked(
    (Line(0, 1, 1, NASTY, "@thought", cut=True), Line(1, 1, 1, '"quoted", and more')),
    1,
    (Answer(0, "agree", 4), Answer(1, "agree", None, "is missing", before=True), Answer(1, "why", "-because")),
)
WORDS = st.text(st.characters(exclude_categories=["Cs"]))
LOST = Fault(FaultKind.TIMEOUT, "too late")


class Place:
    """A store with a batch in it."""

    def __init__(self, path: Path, record: RunRecord) -> None:
        self.record = record
        self._store = Store(path)
        self.readings = Readings(self._store)

    def export(self, format: Format, table: Table) -> bytes:
        out = io.BytesIO()
        self.rows = write_export(self.readings, self.record, format, table, out)
        return out.getvalue()

    def csv(self, table: Table) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.export("csv", table).decode(), newline=""), strict=True))

    def close(self) -> None:
        self._store.close_reading()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Of three simulations one has ended well, one is missing, and one goes on."""
    made = Place(tmp_path / "s.db", plant_batch(tmp_path / "s.db", BATCH, [TALKED, LOST, None]))
    yield made
    made.close()


def test_one_row_for_each_simulation(place: Place) -> None:
    first, lost, open_ = place.csv("simulations")
    names = {"ann": "Ann", "bob": "+Bob", "ann2": "Ann"}
    ids = json.loads(first["entity_ids"])
    assert first == {
        "condition": "three",
        "id": f"sim-{place.record.id}-1",
        "sequence_number": "1",
        "timestamp": first["timestamp"],
        "status": "completed",
        "interaction_type": "dyadic",
        "entity_ids": first["entity_ids"],
        "names": first["names"],
        "content": next(place.readings.simulations(place.record)).content,
        "n_turns": "2",
        "simulation_rounds": "1",
        "final_turn_number": "1",
        "method": "speaker",
        "style": "discussion",
        "replicate": "1",
        "models": first["models"],
        "error": "",
    }
    assert [names[each] for each in ids] == [name.removesuffix(" (2)") for name in json.loads(first["names"])]
    assert (lost["status"], lost["error"], lost["content"]) == ("failed", "timeout: too late", "")
    assert (open_["status"], open_["error"], open_["final_turn_number"]) == ("in_progress", "", "0")
    assert place.rows == 3


def test_names_that_are_alike_are_told_apart_and_a_model_of_ones_own_is_named(place: Place) -> None:
    rows = {row["entity_ids"]: row for row in place.csv("simulations")}
    both = rows['["ann","ann2"]']
    assert both["names"] == '["Ann","Ann (2)"]'
    assert both["models"] == '["emulated/a","emulated/other"]'


def test_one_row_for_each_line(place: Place) -> None:
    first, second = place.csv("lines")
    assert list(first) == [
        *("condition", "model", "replicate", "seat"),
        *("simulation_id", "sequence_number", "round", "turn", "entity_id", "name"),
        *("speech", "thought", "cut", "overrun", "group"),
    ]
    assert (first["speech"], first["thought"]) == ("'" + NASTY, "'@thought")
    assert (first["cut"], first["overrun"], second["cut"]) == ("true", "false", "false")
    assert second["speech"] == '"quoted", and more'


def test_answers_come_with_the_attributes_of_those_who_gave_them(place: Place) -> None:
    rows = place.csv("answers")
    assert list(rows[0]) == [
        *("condition", "model", "replicate", "seat", "question_type"),
        *("simulation_id", "sequence_number", "interaction_type", "entity_id", "name", "other_ids", "others"),
        *("attribute.age", "attribute.job", "attribute.rich", "attribute.town", "attribute.mood"),
        *("question", "before", "value", "problem", "missing"),
    ]
    own = {entity.id: entity.attributes for entity in BATCH.entities}
    for row in rows:
        age = own[row["entity_id"]].get("age")
        assert row["attribute.age"] == ("" if age is None else str(age))
    assert [(row["question"], row["before"], row["value"], row["problem"]) for row in rows] == [
        ("agree", "false", "4", ""),
        ("agree", "true", "", "is missing"),
        ("why", "false", "'-because", ""),
    ]


def test_answers_say_who_else_was_there(tmp_path: Path) -> None:
    spec = Simulation(1, "three", (ANN, BOB, ANN_TOO), Rules("emulated/a"))
    given = (Answer(0, "agree", 1), Answer(1, "agree", 2), Answer(2, "agree", 3))
    place = Place(tmp_path / "s.db", plant_single(tmp_path / "s.db", Single(spec), Talked((), 0, given)))
    rows, told = place.csv("answers"), json.loads(place.export("json", "answers"))
    typed = polars.read_parquet(place.export("parquet", "answers"))
    place.close()
    assert [row["other_ids"] for row in rows] == ['["bob","ann2"]', '["ann","ann2"]', '["ann","bob"]']
    assert [row["others"] for row in told] == [["+Bob", "Ann (2)"], ["Ann", "Ann (2)"], ["Ann", "+Bob"]]
    assert rows[0]["others"] == '["+Bob","Ann (2)"]'
    assert [row["name"] for row in told] == ["Ann", "+Bob", "Ann (2)"]
    assert {row["interaction_type"] for row in rows} == {"group"}
    assert typed["other_ids"].to_list()[1] == ["ann", "ann2"]


def test_one_who_was_alone_had_nobody_with_them(tmp_path: Path) -> None:
    spec = Simulation(1, "alone", (ANN,), Rules("emulated/a"))
    record = plant_single(tmp_path / "s.db", Single(spec), Talked((), 0, (Answer(0, "agree", 1),)))
    place = Place(tmp_path / "s.db", record)
    (row,) = place.csv("answers")
    place.close()
    assert (row["interaction_type"], row["other_ids"], row["others"]) == ("solo", "[]", "[]")


def test_json_has_the_batch_as_the_api_shows_it(place: Place) -> None:
    whole = json.loads(place.export("json", "simulations"))
    shown = place.readings.batch(place.record, simulations=True)
    assert whole == json.loads(msgspec.json.encode(shown))
    assert (len(whole["simulations"]), place.rows) == (3, 3)


def test_json_of_the_other_tables_is_a_list_of_rows(place: Place) -> None:
    lines = json.loads(place.export("json", "lines"))
    assert [line["speech"] for line in lines] == [NASTY, '"quoted", and more']
    answers = json.loads(place.export("json", "answers"))
    assert [answer["value"] for answer in answers] == [4, None, "-because"]
    assert answers[0].keys() == place.csv("answers")[0].keys()


def test_every_csv_is_one_table_of_rows_as_long_as_its_head(place: Place) -> None:
    for table in get_args(Table):
        text = place.export("csv", table).decode()
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        assert len(rows) == place.rows + 1
        assert {len(row) for row in rows} == {len(rows[0])}
        assert text.endswith("\r\n")
        frame = pandas.read_csv(io.StringIO(text, newline=""))
        assert (len(frame), list(frame.columns)) == (place.rows, rows[0])


def test_parquet_has_types(place: Place) -> None:
    lines = polars.read_parquet(place.export("parquet", "lines"))
    assert lines["speech"].to_list() == [NASTY, '"quoted", and more']
    assert lines.schema["turn"] == polars.Int64
    assert lines.schema["cut"] == polars.Boolean
    simulations = polars.read_parquet(place.export("parquet", "simulations"))
    assert simulations.schema["entity_ids"] == polars.List(polars.String)
    answers = polars.read_parquet(place.export("parquet", "answers"))
    assert answers.schema["attribute.rich"] == polars.Boolean
    assert answers.schema["attribute.age"] in (polars.Int64, polars.Float64)
    assert answers["value"].to_list() == ["4", None, "-because"]


@pytest.mark.parametrize("table", get_args(Table))
@pytest.mark.parametrize("format", get_args(Format))
def test_a_batch_that_has_not_begun_has_a_table_without_rows(tmp_path: Path, format: Format, table: Table) -> None:
    place = Place(tmp_path / "s.db", plant_batch(tmp_path / "s.db", BATCH, []))
    written = place.export(format, table)
    place.close()
    assert place.rows == 0
    if format == "parquet":
        assert polars.read_parquet(written).height == 0
    elif format == "csv":
        assert written.count(b"\r\n") == 1
    elif table == "simulations":
        assert json.loads(written)["simulations"] == []
    else:
        assert json.loads(written) == []


def test_a_simulation_on_its_own_whatever_its_metadata_says(tmp_path: Path) -> None:
    spec = Simulation(1, "alone", (ANN,), Rules("emulated/a"), past=(Line(0, 1, 1, "before"),))
    single = Single(spec, continues="sim-x-1", metadata={"id": "mine", "style": "mine"})
    record = plant_single(tmp_path / "s.db", single, Talked((Line(0, 2, 2, "after"),), 2))
    place = Place(tmp_path / "s.db", record)
    (row,) = place.csv("simulations")
    assert (row["id"], row["style"], row["names"]) == (f"sim-{record.id}-1", "discussion", '["Ann"]')
    assert [line["speech"] for line in place.csv("lines")] == ["before", "after"]
    whole = json.loads(place.export("json", "simulations"))
    place.close()
    assert (whole["id"], whole["metadata"]["continues"]) == (f"sim-{record.id}-1", "sim-x-1")


@pytest.mark.parametrize(("format", "table", "named"), [("xml", "lines", "format 'xml'"), ("csv", "x", "table 'x'")])
def test_what_there_is_not_is_refused(place: Place, format: Any, table: Any, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        place.export(format, table)


def test_parquet_without_polars_says_what_to_install(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(SettingsError, match=r"needs polars.*pip install 'groundswell\[report\]'"):
        place.export("parquet", "lines")


class Said(Readings):
    """Readings that show one simulation, in which this was said."""

    def __init__(self, whole: Readings, speech: str, answer: str) -> None:
        self._whole, self._words = whole, (speech, answer)

    def simulations(self, record: RunRecord, first: int = 1, last: int | None = None) -> Iterator[Any]:
        shown = next(self._whole.simulations(record))
        line = msgspec.structs.replace(shown.lines[0], speech=self._words[0])
        answer = msgspec.structs.replace(shown.answers[0], value=self._words[1])
        yield msgspec.structs.replace(shown, lines=(line,), answers=(answer,))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    speech=st.text(st.characters(exclude_categories=["Cs"])), answer=st.text(st.characters(exclude_categories=["Cs"]))
)
def test_whatever_is_said_comes_back_and_no_cell_begins_a_formula(place: Place, speech: str, answer: str) -> None:
    readings = Said(place.readings, speech, answer)
    for table, field, said in (("lines", "speech", speech), ("answers", "value", answer)):
        out = io.BytesIO()
        assert write_export(readings, place.record, "csv", table, out) == 1  # type: ignore[arg-type]
        (row,) = csv.DictReader(io.StringIO(out.getvalue().decode(), newline=""), strict=True)
        assert row[field] == guarded(said)


class Watched(io.BytesIO):
    """A file that counts what is in it."""

    def lines(self) -> int:
        return self.getvalue().count(b"\n")


@pytest.mark.sampled
@pytest.mark.parametrize(("format", "table"), [("json", "simulations"), ("csv", "simulations"), ("csv", "lines")])
def test_what_is_read_is_written_before_more_is_read(place: Place, format: Format, table: Table) -> None:
    out, seen = Watched(), list[int]()

    class Endless(Readings):
        def __init__(self) -> None:
            self.batch = place.readings.batch  # type: ignore[method-assign]

        def simulations(self, record: RunRecord, first: int = 1, last: int | None = None) -> Iterator[Any]:
            shown = next(place.readings.simulations(record))
            for _ in range(1000):
                seen.append(out.lines())
                yield shown

    assert write_export(Endless(), place.record, format, table, out) >= 1000
    assert all(before < after for before, after in pairwise(seen))
