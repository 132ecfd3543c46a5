"""Entity types and templates over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.scene import Api

AGE: dict[str, Any] = {"name": "age", "type": "int", "min_value": 18, "max_value": 90, "distribution": "normal"}
PARTY: dict[str, Any] = {"name": "party", "type": "categorical", "options": ["left", "right"], "weights": [3, 1]}
VOTER: dict[str, Any] = {
    "id": "voter",
    "name": "Voter",
    "description": "Somebody who may vote.",
    "dimensions": [
        AGE,
        PARTY,
        {"name": "owns a home", "type": "boolean", "true_percentage": 0.6},
        {"name": "income", "type": "float", "min_value": 0, "max_value": 250_000, "distribution": "skewed"},
        {"name": "biography", "type": "text"},
    ],
    "names": ["Ana Silva", "=cmd()", "<b>Ben</b>"],
}
LEFT_OUT: dict[str, Any] = {"margins": {}, "margins_source": "", "checks": [], "person_names": None}
SHOWN = {**VOTER, **LEFT_OUT}


def fields(error: Any) -> list[str]:
    return [each["field"] for each in error["errors"]]


def test_templates_are_listed_and_shown(shared: Api) -> None:
    listed = shared("GET", "/templates")
    assert [each["id"] for each in listed] == ["fantasy_character", "human", "organization"]
    human = shared("GET", "/templates/human")
    assert human == listed[1]
    assert human["person_names"] == {"gender": "gender", "region": "region"}
    assert human["checks"]
    assert human["dimensions"][3]["tables"][0]["when"] == {"age": "..20"}
    assert human["dimensions"][0] == {
        "name": "age",
        "type": "int",
        "description": "Age in years.",
        "min_value": 18,
        "max_value": 90,
        "distribution": "uniform",
        "source": "Round figures chosen for variety and plausibility, not those of any country.",
    }


@pytest.mark.parametrize("name", ["martian", "..%2Fhuman", "human.toml", "%00"])
def test_a_template_that_is_not_there(shared: Api, name: str) -> None:
    shared("GET", f"/templates/{name}", 404)


def test_those_that_are_there_are_named(shared: Api) -> None:
    assert "templates: fantasy_character, human" in shared("GET", "/templates/martian", 404)["message"]


def test_a_type_is_made_shown_changed_and_deleted(api: Api) -> None:
    assert api("POST", "/entity-types", 201, json=VOTER) == SHOWN
    assert api("GET", "/entity-types/voter") == SHOWN
    changed = {**SHOWN, "name": "Citizen", "names": []}
    assert api("PUT", "/entity-types/voter", json=changed) == changed
    assert api("GET", "/entity-types") == [changed]
    told = api("DELETE", "/entity-types/voter")
    assert told == {"message": "Entity type voter deleted successfully"}
    api("GET", "/entity-types/voter", 404)
    assert api("GET", "/entity-types") == []


def test_what_is_left_out_is_filled_in(api: Api) -> None:
    made = api("POST", "/entity-types", 201, json={"name": "Robot"})
    assert made["id"].startswith("type-")
    bare = {"id": "?", "name": "Robot", "description": "", "dimensions": [], "names": [], **LEFT_OUT}
    assert {**made, "id": "?"} == bare
    assert api("PUT", f"/entity-types/{made['id']}", json={"name": "Android"})["id"] == made["id"]


def test_a_type_from_a_template(api: Api) -> None:
    human = api("GET", "/templates/human")
    assert api("POST", "/entity-types", 201, json={"template": "human"}) == human
    own = api("POST", "/entity-types", 201, json={"template": "human", "id": "townspeople", "name": "Townspeople"})
    assert own == {**human, "id": "townspeople", "name": "Townspeople"}
    assert "use another id" in api("POST", "/entity-types", 409, json={"template": "human"})["message"]


def test_pages_of_types(api: Api) -> None:
    for number in range(5):
        api("POST", "/entity-types", 201, json={"id": f"type-{number}", "name": "Some"})
    response = api.http.get("/api/entity-types", params={"limit": 2, "offset": 3})
    assert [each["id"] for each in response.json()["data"]] == ["type-3", "type-4"]
    assert response.headers["X-Total-Count"] == "5"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["name"]),
        ({"name": ""}, ["name"]),
        ({"name": "a\nb"}, ["name"]),
        ({"name": "x", "id": "../x"}, ["id"]),
        ({"name": "x", "id": 7}, ["id"]),
        ({"name": "x", "colour": "red"}, ["colour"]),
        ({"name": "x", "description": "\0"}, ["description"]),
        ({"name": "x", "names": ["Ana", " "]}, ["names"]),
        ({"name": "x", "dimensions": [AGE, AGE]}, ["dimensions"]),
        ({"name": "x", "dimensions": [{"name": "a", "type": "colour"}]}, ["dimensions.0.type"]),
        ({"name": "x", "dimensions": [{"name": " ", "type": "text"}]}, ["dimensions.0.name"]),
        (
            {
                "name": "x",
                "dimensions": [
                    {**AGE, "max_value": 1},
                    PARTY,
                    {**PARTY, "name": "other", "weights": [1]},
                    {"name": "b", "type": "boolean", "true_percentage": 60},
                    {"name": "t", "type": "text", "options": ["a"]},
                ],
            },
            ["dimensions.0.max_value", "dimensions.2.weights", "dimensions.3.true_percentage", "dimensions.4.options"],
        ),
        ({"template": "martian"}, ["template"]),
        ({"template": "human", "dimensions": [AGE]}, ["dimensions"]),
    ],
    ids=lambda each: None if isinstance(each, list) else str(each)[:60],
)
def test_a_type_that_is_refused(shared: Api, body: Any, wrong: list[str]) -> None:
    before = shared("GET", "/entity-types")
    assert fields(shared("POST", "/entity-types", 422, json=body)) == wrong
    assert shared("GET", "/entity-types") == before


def test_a_type_that_is_there_already(api: Api) -> None:
    api("POST", "/entity-types", 201, json=VOTER)
    assert "'voter' already" in api("POST", "/entity-types", 409, json={**VOTER, "name": "Other"})["message"]
    assert api("GET", "/entity-types/voter")["name"] == "Voter"


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)])
def test_a_type_that_is_not_there(shared: Api, method: str, body: Any) -> None:
    assert "'nobody'" in shared(method, "/entity-types/nobody", 404, json=body)["message"]
    assert fields(shared(method, "/entity-types/no%00body", 422, json=body)) == ["entity_type_id"]
    assert fields(shared(method, f"/entity-types/{'x' * 65}", 422, json=body)) == ["entity_type_id"]


def test_the_id_of_a_type_stays(api: Api) -> None:
    api("POST", "/entity-types", 201, json=VOTER)
    assert fields(api("PUT", "/entity-types/voter", 422, json={**VOTER, "id": "other"})) == ["id"]
    assert fields(api("PUT", "/entity-types/voter", 422, json={"description": "no name"})) == ["name"]


def test_a_type_that_its_entities_would_not_fit(api: Api) -> None:
    api("POST", "/entity-types", 201, json=VOTER)
    api("POST", "/entities", 201, json={"name": "Ana", "entity_type_id": "voter", "attributes": {"age": 80}})
    told = api("PUT", "/entity-types/voter", 422, json={**VOTER, "dimensions": [{**AGE, "max_value": 70}]})
    assert fields(told) == ["dimensions"]
    assert "would no longer conform" in told["message"]
    assert api("GET", "/entity-types/voter") == SHOWN


def test_a_type_with_entities_goes_only_with_them(api: Api) -> None:
    api("POST", "/entity-types", 201, json=VOTER)
    for name in ("Ana", "Ben"):
        api("POST", "/entities", 201, json={"id": name, "name": name, "entity_type_id": "voter"})
    told = api("DELETE", "/entity-types/voter", 409)
    assert "2 entities" in told["message"]
    assert fields(told) == ["with_entities"]
    assert told["message"].endswith(": ?with_entities=true")
    assert api("GET", "/entities/Ana")["name"] == "Ana"
    assert "with 2 entities" in api("DELETE", "/entity-types/voter?with_entities=true")["message"]
    api("GET", "/entities/Ana", 404)
    assert api("GET", "/entities/entity-id-1")["name"] == "Entity 1"


SCHOOLING = ["primary", "secondary", "university"]
DEPENDENT: dict[str, Any] = {
    "id": "townspeople",
    "name": "Townspeople",
    "dimensions": [
        {**AGE, "distribution": "uniform", "source": "made up"},
        {"name": "gender", "type": "categorical", "options": ["woman", "man"]},
        {
            "name": "schooling",
            "type": "categorical",
            "options": SCHOOLING,
            "tables": [{"when": {"age": "..24"}, "weights": [1, 1, 0], "source": "made up"}],
        },
    ],
    "margins": {"gender": {"woman": 0.8, "man": 0.2}},
    "margins_source": "made up",
    "checks": [{"when": {"schooling": ["primary"]}, "never": {"age": "80.."}, "reason": "too old"}],
    "person_names": {"gender": "gender", "region": "East Asia"},
}


def test_a_type_with_tables_margins_and_checks_is_kept_and_sampled(api: Api) -> None:
    made = api("POST", "/entity-types", 201, json=DEPENDENT)
    assert {name: made[name] for name in LEFT_OUT} == {name: DEPENDENT[name] for name in LEFT_OUT}
    assert made["dimensions"][2]["tables"] == DEPENDENT["dimensions"][2]["tables"]
    assert api("PUT", "/entity-types/townspeople", json=made) == made
    people = api("POST", "/entities/sample", 201, json={"entity_type_id": "townspeople", "count": 400, "seed": 1})
    found = [each["attributes"] for each in people]
    assert {each["schooling"] for each in found} == set(SCHOOLING)
    assert {each["schooling"] for each in found if each["age"] <= 24} == {"primary", "secondary"}
    assert not [each for each in found if each["schooling"] == "primary" and each["age"] >= 80]
    assert 0.73 < sum(each["gender"] == "woman" for each in found) / 400 < 0.87


@pytest.mark.parametrize(
    ("changed", "field", "said"),
    [
        ({"margins": {"gender": {"woman": 0.8}}}, "margins", "add up"),
        ({"margins": {"schooling": {"primary": 1}, "age": {"80..": 1}}}, "margins", "none of"),
        ({"margins": {"ghost": {"a": 1}}}, "margins", "no such dimension"),
        ({"checks": [{"when": {"age": "x"}, "never": {"age": 20}, "reason": ""}]}, "checks", "no range"),
        ({"checks": [{"when": {"age": [18] * 101}, "never": {"age": 20}, "reason": ""}]}, "checks.0.when.age", ""),
        ({"person_names": {"gender": "sex"}}, "person_names", "no such dimension"),
        ({"person_names": {"region": "Mars"}}, "person_names", "or give a region: North America"),
    ],
)
def test_what_cannot_be_sampled_is_refused(api: Api, changed: Any, field: str, said: str) -> None:
    told = api("POST", "/entity-types", 422, json={**DEPENDENT, **changed})
    assert any(each.startswith(field) for each in fields(told))
    assert said in str(told)
