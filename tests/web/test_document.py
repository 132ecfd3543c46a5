"""The requests and responses of the document on batch simulations, literally."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.web.scene import REQUEST, Api

CREATED = '{"status": "success", "data": {"id": "batch-12345", "message": "Batch simulation started"}}'
BATCH = """{
      "id": "batch-12345",
      "name": "Climate Change Discussion",
      "timestamp": "2025-03-07T12:34:56Z",
      "description": "Simulating how different entities discuss climate change solutions",
      "context": "A panel discussion about potential solutions to climate change",
      "status": "completed",
      "metadata": {"category": "climate", "tags": ["environment", "discussion"]}
}"""
SIMULATION = r"""{
        "id": "sim-12345",
        "sequence_number": 1,
        "timestamp": "2025-03-07T12:35:23Z",
        "interaction_type": "dyadic",
        "entity_ids": ["entity-id-1", "entity-id-2"],
        "content": "Entity 1: *thinking*\n\"Dialog content...\"\n\nEntity 2: *thinking*\n\"Dialog response...\"",
        "metadata": {"n_turns": 2, "simulation_rounds": 1, "final_turn_number": 2}
}"""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture(scope="module")
def batch(shared: Api) -> str:
    id_: str = shared.create()
    assert shared.ended(id_)["status"] == "completed"
    return id_


def same_shape(found: Any, shown: Any, where: str = "$") -> None:
    """Everything that the document shows is there, in its type; there may be more."""
    assert type(found) is type(shown), where
    if isinstance(shown, dict):
        for key, value in shown.items():
            assert key in found, f"{where}.{key}"
            same_shape(found[key], value, f"{where}.{key}")
    elif isinstance(shown, list):
        for each in found:
            same_shape(each, shown[0], f"{where}[]")


def test_create(shared: Api) -> None:
    response = shared.http.post("/api/batch-simulations", json=REQUEST)
    assert response.status_code == 201
    body, shown = response.json(), json.loads(CREATED)
    assert body == {**shown, "data": {**shown["data"], "id": body["data"]["id"]}}
    assert re.fullmatch(r"batch-[a-z0-9]+", body["data"]["id"])
    shared.ended(body["data"]["id"])


def test_optional_fields_have_the_defaults_of_the_document(shared: Api) -> None:
    least = {key: REQUEST[key] for key in ("name", "context", "entity_ids", "interaction_size", "num_simulations")}
    id_ = shared("POST", "/batch-simulations", 201, json=least)["id"]
    shared.ended(id_)
    found = shared.batch(id_)
    assert (found["description"], found["metadata"]) == ("", {})
    about = found["simulations"][0]["metadata"]
    assert (about["n_turns"], about["simulation_rounds"]) == (1, 1)


def test_get_all(shared: Api, batch: str) -> None:
    response = shared.http.get("/api/batch-simulations")
    assert response.json()["status"] == "success"
    found = {each["id"]: each for each in response.json()["data"]}
    assert int(response.headers["X-Total-Count"]) == len(found)
    shown = json.loads(BATCH)
    same_shape(found[batch], shown)
    for key in ("name", "description", "context", "status", "metadata"):
        assert found[batch][key] == shown[key]
    assert TIME.fullmatch(found[batch]["timestamp"])
    assert "simulations" not in found[batch]


def test_get_all_with_simulations(shared: Api, batch: str) -> None:
    found = shared("GET", "/batch-simulations?include_simulations=true")
    mine = next(each for each in found if each["id"] == batch)
    assert mine == shared.batch(batch)
    assert len(mine["simulations"]) == 3


def test_get_one(shared: Api, batch: str) -> None:
    found, shown = shared.batch(batch), json.loads(SIMULATION)
    same_shape(found, json.loads(BATCH))
    same_shape(found["simulations"], [shown])
    assert [each["sequence_number"] for each in found["simulations"]] == [1, 2, 3]
    for simulation in found["simulations"]:
        assert {key: simulation["metadata"][key] for key in shown["metadata"]} == shown["metadata"]
        assert simulation["interaction_type"] == "dyadic"
        assert len(set(simulation["entity_ids"])) == 2
        assert TIME.fullmatch(simulation["timestamp"])
        blocks = re.findall(r'^(Entity \d): (?:\*[^*]+\*\n)?"', simulation["content"], re.MULTILINE)
        names = [f"Entity {id_[-1]}" for id_ in simulation["entity_ids"]]
        assert blocks == names * 2


def test_combinations_do_not_repeat(shared: Api) -> None:
    id_ = shared.create(num_simulations=6)
    shared.ended(id_)
    pairs = [frozenset(each["entity_ids"]) for each in shared.batch(id_)["simulations"]]
    assert len(set(pairs)) == 6


def test_delete(shared: Api) -> None:
    id_ = shared.create()
    shared.ended(id_)
    response = shared.http.delete(f"/api/batch-simulations/{id_}")
    assert response.json() == {
        "status": "success",
        "data": {"message": f"Batch simulation {id_} deleted successfully"},
    }
    shared("GET", f"/batch-simulations/{id_}", 404)
    shared("DELETE", f"/batch-simulations/{id_}", 404)
