"""Entities over HTTP: by hand, drawn from a type, and as files. Those that models write are in `test_written.py`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.web.scene import ENTITIES, Api, serving
from tests.web.test_entity_types import VOTER, fields

ANA: dict[str, Any] = {
    "id": "ana",
    "name": "Ana Silva",
    "description": "A nurse.",
    "attributes": {"age": 41, "party": "left", "owns a home": True, "income": 30_000.5, "biography": "Long."},
    "entity_type_id": "voter",
    "model": None,
}
NASTY: dict[str, Any] = {
    "id": "nasty",
    "name": '=HYPERLINK("http://x","<script>alert(1)</script>")',
    "description": "+1;\n@SUM(A1)\t'quoted' <img src=x>",
    "attributes": {"=cmd|' /C calc'!A0": "-2+3", "text": "007", "number": -3, "yes": "true", "no": False},
    "entity_type_id": None,
    "model": None,
}
CSV = {"Content-Type": "text/csv; charset=utf-8"}


@pytest.fixture
def town(api: Api) -> Api:
    """A server with a type of its own."""
    api("POST", "/entity-types", 201, json=VOTER)
    return api


def test_an_entity_is_made_shown_changed_and_deleted(town: Api) -> None:
    assert town("POST", "/entities", 201, json=ANA) == ANA
    assert town("GET", "/entities/ana") == ANA
    changed = {**ANA, "name": "Ana Costa", "attributes": {"age": 42}, "model": "emulated/keeper"}
    assert town("PUT", "/entities/ana", json=changed) == changed
    assert town("GET", "/entities/ana") == changed
    assert town("DELETE", "/entities/ana") == {"message": "Entity ana deleted successfully"}
    town("GET", "/entities/ana", 404)


def test_an_entity_without_id_and_type(api: Api) -> None:
    made = api("POST", "/entities", 201, json={"name": "Zoe", "attributes": {"anything": 1}})
    assert made["id"].startswith("entity-")
    assert {**made, "id": "?"} == {
        "id": "?",
        "name": "Zoe",
        "description": "",
        "attributes": {"anything": 1},
        "entity_type_id": None,
        "model": None,
    }
    assert api("GET", f"/entities/{made['id']}") == made


def test_markup_and_formulas_come_back_as_they_are(api: Api) -> None:
    assert api("POST", "/entities", 201, json=NASTY) == NASTY
    response = api.http.get("/api/entities/nasty")
    assert response.json()["data"] == NASTY
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.slow
def test_pages_of_entities_and_those_of_a_type(town: Api) -> None:
    town("POST", "/entities", 201, json=ANA)
    response = town.http.get("/api/entities", params={"limit": 2, "offset": 3})
    assert [each["id"] for each in response.json()["data"]] == ["entity-id-4", "ana"]
    assert response.headers["X-Total-Count"] == "5"
    response = town.http.get("/api/entities", params={"entity_type_id": "voter"})
    assert response.json()["data"] == [ANA]
    assert response.headers["X-Total-Count"] == "1"
    assert town("GET", "/entities?entity_type_id=nobody") == []


@pytest.mark.parametrize(
    ("query", "wrong"),
    [("limit=0", "limit"), ("limit=1001", "limit"), ("offset=-1", "offset"), ("entity_type_id=a/b", "entity_type_id")],
)
def test_a_page_that_cannot_be(shared: Api, query: str, wrong: str) -> None:
    assert fields(shared("GET", f"/entities?{query}", 422)) == [wrong]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"name": None}, ["name"]),
        ({"name": "  "}, ["name"]),
        ({"name": "a\tb"}, ["name"]),
        ({"id": ".hidden"}, ["id"]),
        ({"id": "a/b"}, ["id"]),
        ({"id": "export"}, ["id"]),
        ({"description": 3}, ["description"]),
        ({"description": "x" * 10_001}, ["description"]),
        ({"colour": "red"}, ["colour"]),
        ({"model": ""}, ["model"]),
        ({"model": "local//etc/passwd"}, ["model"]),
        ({"entity_type_id": "martian"}, ["entity_type_id"]),
        ({"entity_type_id": "../voter"}, ["entity_type_id"]),
        ({"attributes": {"age": 17}}, ["attributes.age"]),
        ({"attributes": {"age": 41.5}}, ["attributes.age"]),
        ({"attributes": {"age": "41"}}, ["attributes.age"]),
        (
            {"attributes": {"age": 17, "party": "none", "owns a home": 1, "agge": 3, "biography": "fine"}},
            ["attributes.age", "attributes.party", "attributes.owns a home", "attributes.agge"],
        ),
        ({"entity_type_id": None, "attributes": {"big": 2**60}}, ["attributes.big"]),
        ({"entity_type_id": None, "attributes": {"\n": 1}}, ["attributes"]),
    ],
    ids=str,
)
def test_an_entity_that_is_refused(town: Api, changes: Any, wrong: list[str]) -> None:
    assert fields(town("POST", "/entities", 422, json={**ANA, **changes})) == wrong
    assert town("GET", "/entities?entity_type_id=voter") == []
    town("POST", "/entities", 201, json=ANA)
    if "id" not in changes:
        assert fields(town("PUT", "/entities/ana", 422, json={**ANA, **changes})) == wrong
    assert town("GET", "/entities/ana") == ANA


def test_a_value_of_no_kind_is_refused(shared: Api) -> None:
    for value in (None, [1], {"a": 1}):
        told = shared("POST", "/entities", 422, json={"name": "x", "attributes": {"age": value}})
        assert all(field.startswith("attributes.age") for field in fields(told))


def test_an_id_that_is_taken(town: Api) -> None:
    town("POST", "/entities", 201, json=ANA)
    assert "'ana'" in town("POST", "/entities", 409, json={**ANA, "name": "Other"})["message"]
    assert town("GET", "/entities/ana") == ANA
    assert fields(town("PUT", "/entities/ana", 422, json={**ANA, "id": "other"})) == ["id"]


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)])
def test_an_entity_that_is_not_there(shared: Api, method: str, body: Any) -> None:
    assert "'nobody'" in shared(method, "/entities/nobody", 404, json=body)["message"]
    for odd in ("no%00body", "%2e%2e", "a%20b", "%ff", "x" * 65):
        assert fields(shared(method, f"/entities/{odd}", 422, json=body)) == ["entity_id"]


def test_entities_are_drawn_from_a_type(town: Api) -> None:
    made = town("POST", "/entities/sample", 201, json={"entity_type_id": "voter", "count": 3, "seed": 7})
    assert [each["id"] for each in made] == ["voter-7-1", "voter-7-2", "voter-7-3"]
    assert {each["name"] for each in made} == set(VOTER["names"])
    assert all(set(each["attributes"]) == {"age", "party", "owns a home", "income"} for each in made)
    assert town("GET", "/entities?entity_type_id=voter") == made
    more = town("POST", "/entities/sample", 201, json={"entity_type_id": "voter", "count": 1, "seed": 7, "first": 4})
    assert more[0]["id"] == "voter-7-4"


def test_drawn_twice_nothing_is_added(town: Api) -> None:
    wanted = {"entity_type_id": "voter", "count": 3, "seed": 7}
    town("POST", "/entities/sample", 201, json=wanted)
    town("DELETE", "/entities/voter-7-2")
    told = town("POST", "/entities/sample", 409, json={**wanted, "count": 5})
    assert "another seed" in told["message"]
    assert "`first` to 4" in told["message"]
    assert len(town("GET", "/entities?entity_type_id=voter")) == 2


def test_without_a_seed_others_are_drawn(api: Api) -> None:
    first, second = (api("POST", "/entities/sample", 201, json={"template": "human", "count": 2}) for _ in range(2))
    assert len({each["id"] for each in first + second}) == 4
    assert [each["id"] for each in api("GET", "/entity-types")] == ["human"]


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("route", ["sample", "generate"])
@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"count": 1}, "entity_type_id"),
        ({"count": 1, "entity_type_id": "voter", "template": "human"}, "entity_type_id"),
        ({"count": 1, "entity_type_id": "martian"}, "entity_type_id"),
        ({"count": 1, "template": "martian"}, "template"),
        ({"template": "human"}, "count"),
        ({"template": "human", "count": 0}, "count"),
        ({"template": "human", "count": 10_001}, "count"),
        ({"template": "human", "count": "3"}, "count"),
        ({"template": "human", "count": 1, "seed": 0.5}, "seed"),
        ({"template": "human", "count": 1, "colour": "red"}, "colour"),
    ],
    ids=str,
)
def test_members_that_cannot_be_made(shared: Api, route: str, body: Any, wrong: str) -> None:
    before = shared("GET", "/entity-types?limit=1000")
    assert fields(shared("POST", f"/entities/{route}", 422, json=body)) == [wrong]
    assert shared("GET", "/entity-types?limit=1000") == before


def test_as_many_as_one_request_may_draw(shared: Api) -> None:
    assert fields(shared("POST", "/entities/sample", 422, json={"template": "human", "count": 1_001})) == ["count"]


def test_json_goes_out_and_comes_in(town: Api, tmp_path: Path) -> None:
    for each in (ANA, NASTY):
        town("POST", "/entities", 201, json=each)
    response = town.http.get("/api/entities/export")
    assert response.headers["Content-Disposition"] == 'attachment; filename="entities.json"'
    assert response.headers["Content-Type"] == "application/json"
    file = response.json()
    assert [each["id"] for each in file["entity_types"]] == ["voter"]
    (tmp_path / "other").mkdir()
    with serving(tmp_path / "other") as other:
        _empty(other)
        counts = other("POST", "/entities/import", json=file)
        assert counts == _counts(types_added=1, added=len(ENTITIES) + 2)
        assert other("GET", "/entities") == town("GET", "/entities")
        assert other("GET", "/entity-types") == town("GET", "/entity-types")


def test_csv_goes_out_guarded_and_comes_in(town: Api) -> None:
    for each in (ANA, NASTY):
        town("POST", "/entities", 201, json=each)
    response = town.http.get("/api/entities/export", params={"format": "csv"})
    assert response.headers["Content-Disposition"] == 'attachment; filename="entities.csv"'
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    cells = [cell for row in csv.reader(io.StringIO(response.text, newline="")) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "@", "-"))] == ["-3"]
    before = town("GET", "/entities")
    _empty(town)
    assert town("POST", "/entities/import", content=response.content, headers=CSV) == _counts(added=len(before))
    assert town("GET", "/entities") == before


def test_an_export_of_one_type(town: Api) -> None:
    town("POST", "/entities", 201, json=ANA)
    town("POST", "/entity-types", 201, json={"template": "human"})
    file = town.http.get("/api/entities/export", params={"entity_type_id": "voter"}).json()
    assert [each["id"] for each in file["entities"]] == ["ana"]
    assert [each["id"] for each in file["entity_types"]] == ["voter"]
    table = town.http.get("/api/entities/export", params={"entity_type_id": "voter", "format": "csv"}).text
    assert len(list(csv.reader(io.StringIO(table)))) == 2
    assert fields(town("GET", "/entities/export?format=xml", 422)) == ["format"]


def test_a_bare_list_is_imported(api: Api) -> None:
    assert api("POST", "/entities/import", json=[{"name": "Zoe"}, {"name": "Yan"}]) == _counts(added=2)
    assert [each["name"] for each in api("GET", "/entities?offset=4")] == ["Zoe", "Yan"]


@pytest.mark.parametrize(
    ("on_conflict", "counts", "name"),
    [
        ("skip", {"types_skipped": 1, "added": 1, "skipped": 1}, "Ana Silva"),
        ("replace", {"types_replaced": 1, "added": 1, "replaced": 1}, "Other"),
    ],
)
def test_what_is_there_already(town: Api, on_conflict: str, counts: Any, name: str) -> None:
    town("POST", "/entities", 201, json=ANA)
    file = {"entity_types": [VOTER], "entities": [{**ANA, "name": "Other"}, {**ANA, "id": "ben"}]}
    assert "'voter'" in town("POST", "/entities/import", 409, json=file)["message"]
    assert "'ana'" in town("POST", "/entities/import", 409, json=file["entities"])["message"]
    town("GET", "/entities/ben", 404)
    assert town("POST", f"/entities/import?on_conflict={on_conflict}", json=file) == _counts(**counts)
    assert town("GET", "/entities/ana")["name"] == name
    assert town("GET", "/entities/ben")["name"] == "Ana Silva"


def test_entities_are_checked_by_the_type_that_will_be_there(town: Api) -> None:
    wide = {**VOTER, "dimensions": [{**VOTER["dimensions"][0], "max_value": 120}, *VOTER["dimensions"][1:]]}
    file = {"entity_types": [wide], "entities": [{**ANA, "attributes": {"age": 100}}]}
    told = town("POST", "/entities/import?on_conflict=skip", 422, json=file)
    assert fields(told) == ["entities.0.attributes.age"]
    town("POST", "/entities/import?on_conflict=replace", json=file)
    assert town("GET", "/entities/ana")["attributes"] == {"age": 100}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("file", "wrong"),
    [
        (7, ["body"]),
        ({"people": []}, ["people"]),
        ({"entities": {}}, ["entities"]),
        ([ANA, {"name": ""}, {"nam": "x"}], ["entities.1.name", "entities.2.name", "entities.2.nam"]),
        ([{**ANA, "entity_type_id": "martian"}], ["entities.0.entity_type_id"]),
        ([{**ANA, "model": "local/a/b.gguf"}, {**ANA, "id": "export"}], ["entities.0.model", "entities.1.id"]),
        (
            [ANA, {**ANA, "id": "b", "attributes": {"age": 3, "party": "none"}}],
            ["entities.1.attributes.age", "entities.1.attributes.party"],
        ),
        (
            {"entity_types": [{"name": "x", "dimensions": [{"name": "a", "type": "int"}]}, {"name": " "}]},
            ["entity_types.0.dimensions.0.min_value", "entity_types.1.name"],
        ),
    ],
    ids=lambda each: str(each)[:60],
)
def test_a_file_that_is_refused(town: Api, file: Any, wrong: list[str]) -> None:
    before = town("GET", "/entities")
    assert fields(town("POST", "/entities/import", 422, json=file)) == wrong
    assert town("GET", "/entities") == before


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("table", "wrong", "told"),
    [
        ("id,description\nx,y\n", [], "the column 'name' is missing"),
        ("name,entity_type_id,age\nAna,voter,41\nBen,voter,300\n", ["attributes.age"], "row 3, column 'age'"),
        ("name,entity_type_id\nAna,martian\n", ["entity_type_id"], "'martian'"),
        ("name,model\nAna,local//etc/x\n", ["entities.0.model"], "model"),
        ("name,id\nAna,a/b\n", ["id"], "row 2"),
        ("name\nAna,b\n", [], "2 cells"),
    ],
    ids=["no name", "value", "type", "file", "id", "cells"],
)
def test_a_table_that_is_refused(town: Api, table: str, wrong: list[str], told: str) -> None:
    error = town("POST", "/entities/import", 422, content=table, headers=CSV)
    assert fields(error) == wrong
    assert told in error["message"]
    assert town("GET", "/entities?entity_type_id=voter") == []


@pytest.mark.parametrize(
    ("path", "status", "kind", "body"),
    [
        ("/entities/import", 400, "text/csv", b"name\nAn\xff\n"),
        ("/entities/import", 400, "application/json", b"[1,"),
        ("/entities/import", 415, "text/plain", b"name\nAna\n"),
        ("/entities/import", 413, "text/csv", b"x" * 1_000_001),
        ("/entities/import", 422, "text/csv", b""),
        ("/entities", 415, "text/csv", b"name\nAna\n"),
    ],
    ids=["latin", "half", "text", "large", "empty", "elsewhere"],
)
def test_a_body_that_is_no_file(shared: Api, path: str, status: int, kind: str, body: bytes) -> None:
    shared("POST", path, status, content=body, headers={"Content-Type": kind})


def test_what_can_be_done_about_ids_that_are_taken(shared: Api) -> None:
    assert fields(shared("POST", "/entities/import?on_conflict=merge", 422, json=[])) == ["on_conflict"]
    assert shared("POST", "/entities/import", json=[]) == _counts()


def test_entities_made_here_can_talk(town: Api) -> None:
    made = town("POST", "/entities/sample", 201, json={"entity_type_id": "voter", "count": 2, "seed": 1})
    id_ = town.create(entity_ids=[each["id"] for each in made], num_simulations=1)
    assert town.ended(id_)["status"] == "completed"


def test_the_examples_of_the_api_are_taken(api: Api) -> None:
    """Those of OpenAPI, in the order in which somebody would try them."""
    schemas = api.http.get("/openapi.json").json()
    examples = {name: each.get("examples", []) for name, each in schemas["components"]["schemas"].items()}
    for type_ in examples["NewTypeBody"]:
        api("POST", "/entity-types", 201, json={"id": "voter", **type_})
    for entity in examples["EntityBody"]:
        api("POST", "/entities", 201, json=entity)
    taken = schemas["paths"]["/api/entities/import"]["post"]["requestBody"]["content"]
    for kind, each in taken.items():
        example = each["example"]
        content = example if isinstance(example, str) else json.dumps(example)
        target = "/entities/import?on_conflict=replace"
        api("POST", target, content=content, headers={"Content-Type": kind})
    for sampled in examples["SampleBody"]:
        assert len(api("POST", "/entities/sample", 201, json=sampled)) == sampled["count"]


def _counts(**given: int) -> dict[str, int]:
    names = ("types_added", "types_replaced", "types_skipped", "added", "replaced", "skipped", "implausible")
    return {**dict.fromkeys(names, 0), **given}


def _empty(api: Api) -> None:
    for each in api("GET", "/entities"):
        api("DELETE", f"/entities/{each['id']}")
