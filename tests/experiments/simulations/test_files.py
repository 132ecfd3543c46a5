"""Entities as files: what is written comes back, nothing runs as a formula, and errors say where they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.entities import Dimension, Entity, EntityType, Value
from groundswell.experiments.simulations.files import (
    format_of,
    read,
    read_csv,
    read_json,
    read_type,
    value_of,
    write_csv,
    write_json,
)
from groundswell.experiments.simulations.sampling import sample
from groundswell.experiments.simulations.templates import template
from groundswell.store.journal import Store
from groundswell.store.tables import RUNS_AS_FORMULA
from tests.properties import examples

AGE = Dimension("age", "int", min_value=0, max_value=120)
PERSON = EntityType(
    "person",
    "Person",
    dimensions=(
        AGE,
        Dimension("size", "float", min_value=-1, max_value=1),
        Dimension("kind", "categorical", options=("1", "true", "=x", "", "plain")),
        Dimension("happy", "boolean"),
        Dimension("motto", "text"),
        Dimension("name", "text"),
    ),
)
TYPES = {"person": PERSON}
BOOLEAN, SHARE = Dimension("urban", "boolean"), Dimension("share", "float", min_value=-1, max_value=1)

NASTY = st.sampled_from(
    [
        *("=1+1", "+1", "-1", "@x", "\t=1", " =1", "\n=1", "\r", "'", "''", "'=1", "'tis", "12", "007", "-0", "1e5"),
        *(
            "true",
            "TRUE",
            "False",
            "yes",
            ".5",
            "0.5",
            "1e999",
            "",
            " ",
            ",",
            '"',
            "a,b",
            'say "hi"',
            "line\nline",
            "a\r\nb",
            "é",
        ),
        *("日本", "\u202e", "id", "name", "9007199254740993", "٣"),
    ]
)
TEXT = NASTY | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
NAME = st.text("ab ='\",;é-+@1", min_size=1, max_size=8).filter(str.strip)
COLUMN = NAME | st.sampled_from(
    ["name", "id", "attributes.name", "attributes.", "model", "type", "Entity_Type", "=x", "'x"]
)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(-1e308, 1e308)
VALUES: st.SearchStrategy[Value] = st.booleans() | NUMBERS | TEXT


@st.composite
def entities(draw: st.DrawFn) -> list[Entity]:
    found: list[Entity] = []
    for number in range(draw(st.integers(0, 4))):
        typed = draw(st.booleans())
        attributes = draw(attributes_of_a_person() if typed else st.dictionaries(COLUMN, VALUES, max_size=4))
        model = draw(st.none() | st.sampled_from(["openai/gpt-4o", "=m", "'m"]))
        text = draw(TEXT)
        found.append(Entity(f"e{number}", draw(NAME), text, attributes, "person" if typed else None, model))
    return found


def attributes_of_a_person() -> st.SearchStrategy[dict[str, Value]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "age": st.integers(0, 120),
            "size": st.floats(-1, 1) | st.integers(-1, 1),
            "kind": st.sampled_from(PERSON.dimensions[2].options),
            "happy": st.booleans(),
            "motto": TEXT,
            "name": TEXT,
        },
    )


def exactly(entities: Sequence[Entity]) -> list[Any]:
    """Entities so that 1, 1.0 and true differ; the order of attributes does not count, as columns have one order."""
    return [(each, {name: (type(value), value) for name, value in each.attributes.items()}) for each in entities]


@settings(max_examples=examples(150))
@given(entities())
@example([Entity("e", "E", "", {"a": -0.0, "b": 5e-324, "c": 1e22, "d": 2**53, "e": "1e22"})])
def test_a_table_comes_back_as_it_was(given: list[Entity]) -> None:
    assert exactly(read_csv(write_csv(given), "x.csv", TYPES).entities) == exactly(given)


@settings(max_examples=examples(50))
@given(entities())
def test_json_comes_back_as_it_was(given: list[Entity]) -> None:
    loaded = read_json(write_json([PERSON], given), "x.json")
    assert loaded.types == [PERSON]
    assert exactly(loaded.entities) == exactly(given)


@settings(max_examples=examples(100))
@given(entities())
def test_no_cell_runs_as_a_formula(given: list[Entity]) -> None:
    for row in csv.reader(io.StringIO(write_csv(given), newline="")):
        for cell in row:
            formula = cell.startswith(("\t", "\r", "\n")) or cell.lstrip().startswith(RUNS_AS_FORMULA)
            assert not formula or is_number(cell)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_samples_of_the_templates_come_back() -> None:
    for name in ("human", "organization"):
        drawn = sample(template(name), 30, 1)
        assert exactly(read_csv(write_csv(drawn), "x.csv", {name: template(name)}).entities) == exactly(drawn)


@pytest.mark.parametrize(
    ("cell", "kind", "value"),
    [("yes", BOOLEAN, True), ("No", BOOLEAN, False), ("yes", None, "yes"), (".1", None, 0.1), ("-.5", SHARE, -0.5)],
)
def test_a_cell_may_be_written_as_people_do(cell: str, kind: Dimension | None, value: Value) -> None:
    found = value_of(cell, kind)
    assert (found, type(found)) == (value, type(value))


def test_an_attribute_that_is_called_much_like_a_column_comes_back() -> None:
    attributes: dict[str, Value] = {"type": "round", "ID": 7, "Entity Type": "x", "age": 3}
    given = Entity("a", "Ann", attributes=attributes)
    assert read_csv(write_csv([given]), "x.csv", {}).entities == [given]


def test_a_dimension_of_an_unknown_type_is_told_what_there_are() -> None:
    text = '{"name": "T", "dimensions": [{"name": "a", "type": "integer"}]}'
    with pytest.raises(SettingsError) as refused:
        read_type(text, "t.json")
    assert str(refused.value) == (
        "t.json: dimensions[0].type: unknown value 'integer'; choose from boolean, categorical, int, float, text"
    )


def test_a_table_has_one_row_for_each_entity() -> None:
    found = write_csv([Entity("a", "Ann", "Two\nlines", {"age": 3, "ok": True}), Entity("b", "=Bob", model="m")])
    rows = list(csv.reader(io.StringIO(found, newline="")))
    assert rows == [
        ["id", "entity_type_id", "name", "description", "model", "age", "ok"],
        ["a", "", "Ann", "Two\nlines", "", "3", "true"],
        ["b", "", "'=Bob", "", "m", "", ""],
    ]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("12", 12),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("007", "007"),
        ("+3", "+3"),
        ("'12", "12"),
        ("'tis", "'tis"),
        ("", ""),
        ("12345678901234567890", "12345678901234567890"),
        ("1e999", "1e999"),
        ("nan", "nan"),
        ("1_000", "1_000"),
        ("٣", "٣"),
    ],
)
def test_without_a_type_a_value_is_what_it_looks_like(cell: str, value: Value) -> None:
    found = value_of(cell, None)
    assert (type(found), found) == (type(value), value)


def test_with_a_type_a_value_is_what_its_dimension_says() -> None:
    kinds = {dimension.name: dimension for dimension in PERSON.dimensions}
    assert value_of("1", kinds["kind"]) == "1"
    assert value_of("12", kinds["motto"]) == "12"
    assert value_of("1", kinds["age"]) == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_that_others_made_are_read(delimiter: str) -> None:
    rows = [["name", "entity_type_id", "age", "attributes.motto"], ["Ann", "person", "30", "'tis so"], ["", "", "", ""]]
    text = "\ufeff" + "\r\n".join(delimiter.join(row) for row in rows)
    [entity] = read_csv(text, "x.csv", TYPES).entities
    assert entity.id.startswith("entity-")
    assert (entity.name, entity.attributes) == ("Ann", {"age": 30, "motto": "'tis so"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.csv, row 1: the column 'name' is missing"),
        ("id,age\na,3\n", "x.csv, row 1: the column 'name' is missing"),
        ("name,,age\n", "x.csv, row 1: column 2 has no name"),
        ("name,age,age\n", "x.csv, row 1: column 'age' occurs twice"),
        ("name,age,attributes.age\n", "x.csv, row 1: column 'attributes.age' occurs twice"),
        ("name,age\nAnn,1\nBob,2,3\n", "x.csv, row 3: 3 cells, but the header has 2 columns"),
        ("name,entity_type_id,age\n\nAnn,person,300\n", "x.csv, row 3, column 'age': 300 is not from 0 to 120"),
        ("name,entity_type_id,age\nAnn,person,old\n", "x.csv, row 2, column 'age': 'old' is no whole number"),
        ("name,entity_type_id,agee\nAnn,person,3\n", "x.csv, row 2, column 'agee': type 'Person' has no such"),
        ("name,entity_type_id\nAnn,ghost\n", "x.csv, row 2, column 'entity_type_id': no entity type 'ghost'"),
        ("name,id\nAnn,a b\n", "x.csv, row 2: id 'a b'"),
        ("name,id\n,a\n", "x.csv, row 2, column 'name': is empty"),
        ("name,age,town\nAnn,3\n", "x.csv, row 2: 2 cells, but the header has 3 columns"),
        ("name,type\nAnn,person\n", "x.csv, row 1: column 'type' must be called entity_type_id; .* attributes.type"),
        ("name,Entity Type\nAnn,person\n", "row 1: column 'Entity Type' must be called entity_type_id"),
        ("name,ID\nAnn,ann\n", "row 1: column 'ID' must be called id"),
        ("Name,age\nAnn,3\n", "row 1: column 'Name' must be called name"),
        ("name,id\nA,a\nB,b c\nC,d\nD,e f\n", "^x.csv: 2 rows are invalid\n  row 3: id 'b c'.*\n  row 5: id 'e f'.*$"),
        (
            "name,id\n" + ",x\n" * 8,
            "^x.csv: 8 rows are invalid(\n  row [2-6], column 'name': is empty){5}\n  and 3 more$",
        ),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_csv(text, "x.csv", TYPES)


def test_a_cell_without_end_is_no_table() -> None:
    with pytest.raises(SettingsError, match=r"x.csv, line 3: unexpected end of data"):
        read_csv('name\nAnn\n"Bob\n', "x.csv", TYPES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "x.json: not valid JSON"),
        ('"\\ud800"', "x.json: "),
        ("3", "x.json: must be"),
        ('{"entitys": []}', "x.json: unknown field 'entitys'; allowed are entity_types, entities"),
        ('{"entities": {}}', "x.json: entities: must be a list"),
        ('[{"name": "A"}, 3]', r"x.json: entities\[1\]: must be an object"),
        ('[{"name": "A", "atributes": {}}]', r"x.json: entities\[0\]: unknown field 'atributes'"),
        ('[{"name": 3}]', r"x.json: entities\[0\]: name: must be text, and is a whole number"),
        ('[{"name": "A", "attributes": {"x": null}}]', r"x.json: entities\[0\]: attributes.*: must be .*, and is null"),
        ('[{"name": "A", "id": "/etc"}]', r"x.json: entities\[0\]: id '/etc'"),
        (
            '{"entity_types": [{"name": "A", "dimensions": [{"name": "d", "type": "boolean", "true_share": 1}]}]}',
            r"x.json: entity_types\[0\]: dimensions\[0\]: unknown field 'true_share'",
        ),
        (
            '{"entity_types": [{"name": "A", "dimensions": [{"name": "d", "type": "int"}]}]}',
            r"x.json: entity_types\[0\]: dimension 'd', min_value",
        ),
    ],
)
def test_what_is_wrong_with_json_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_json(text, "x.json")


def test_a_bare_list_is_a_list_of_entities_and_ids_are_made() -> None:
    types, found = read_json('[{"name": "Ann"}, {"name": "Bob", "id": "bob"}]', "x.json")
    assert types == []
    assert [each.name for each in found] == ["Ann", "Bob"]
    assert found[0].id.startswith("entity-")
    assert found[1].id == "bob"


def test_a_type_in_a_file() -> None:
    found = read_type('{"name": "Person", "dimensions": [{"name": "happy", "type": "boolean"}]}', "t.json")
    assert found.id.startswith("type-")
    assert found.dimensions == (Dimension("happy", "boolean"),)
    with pytest.raises(SettingsError, match=r"t\.json: must be an object"):
        read_type("[]", "t.json")


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    store = Store(tmp_path / "s.db")
    yield Catalogue(store.documents)
    store.close_reading()


def test_a_store_goes_through_a_file_into_another(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.add_type(PERSON)
    catalogue.add_entities(Entity("a", "Ann", "", {"age": 3, "kind": "1"}, "person"), Entity("b", "Bob"))
    other = Catalogue(Store(tmp_path / "other.db").documents)
    other.bring(*read(write_json(catalogue.types(), catalogue.entities()), "json", "x", other))
    assert (other.types(), other.entities()) == (catalogue.types(), catalogue.entities())
    loaded = read(write_csv(catalogue.entities()), "csv", "x", other)
    assert other.bring(*loaded, "replace").replaced == 2
    assert other.entities() == catalogue.entities()


@pytest.mark.parametrize(("name", "form"), [("a.json", "json"), ("A.CSV", "csv"), ("a.txt", None), ("-", None)])
def test_a_name_says_what_form_a_file_has(name: str, form: str | None) -> None:
    assert format_of(name) == form
