"""Simulations one by one: those of batches, those on their own, and how they go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.web.simulations import _parts
from tests.web.scene import Api, gated, serving

ALONE: dict[str, Any] = {
    "context": "A walk in the park",
    "entity_ids": ["entity-id-2", "entity-id-1"],
    "n_turns": 2,
    "metadata": {"mine": True},
}


def begin(api: Api, **changes: Any) -> str:
    """The id of a simulation on its own."""
    begun = api("POST", "/simulations", 201, json={**ALONE, **changes})
    assert begun["id"] == f"sim-{begun['run_id']}-1"
    id_: str = begun["id"]
    return id_


def ended(api: Api, id_: str) -> Any:
    list(api.events(f"/runs/{id_.split('-')[1]}"))
    return api("GET", f"/simulations/{id_}")


def test_one_on_its_own(api: Api) -> None:
    found = ended(api, begin(api))
    assert (found["status"], found["interaction_type"], found["batch_id"]) == ("completed", "dyadic", None)
    assert found["entity_ids"] == ["entity-id-2", "entity-id-1"]
    assert [line["entity_id"] for line in found["lines"]] == ["entity-id-2", "entity-id-1"] * 2
    assert found["metadata"]["mine"] is True
    assert found["metadata"]["final_turn_number"] == 2


def test_one_that_waits_can_be_seen(tmp_path: Path) -> None:
    gate = gated("alone")
    with serving(tmp_path, max_running=1) as api:
        first, second = (begin(api, model="scripted/waits-alone") for _ in range(2))
        found = api("GET", f"/simulations/{second}")
        assert (found["status"], found["content"], found["lines"]) == ("in_progress", "", [])
        assert found["metadata"]["n_turns"] == 2
        assert {each["id"] for each in api("GET", "/simulations")} == {first, second}
        assert "in_progress" in api("POST", f"/simulations/{second}/continue", 409, json={})["message"]
        gate.open()
        done = ended(api, second)
        assert done["status"] == "completed"
        assert list(done["metadata"]) == list(found["metadata"])


def test_one_that_was_cancelled_on_its_way_is_cancelled(tmp_path: Path) -> None:
    gate = gated("cut-short")
    with serving(tmp_path) as api:
        id_ = begin(api, model="scripted/waits-cut-short")
        run = id_.split("-")[1]
        next(data for _, data in api.events(f"/runs/{run}") if data["trials"]["planned"])
        api("POST", f"/runs/{run}/cancel")
        gate.open()
        found = ended(api, id_)
        assert (found["status"], found["content"]) == ("cancelled", "")
        assert found["error"]


def test_batches_do_not_keep_one_waiting(tmp_path: Path) -> None:
    gate = gated("beside")
    with serving(tmp_path, max_running=1) as api:
        batches = [api.create(model="scripted/waits-beside") for _ in range(2)]
        assert ended(api, begin(api))["status"] == "completed"
        gate.open()
        assert api.ended(batches[1])["status"] == "completed"


def test_one_goes_on(api: Api) -> None:
    first = ended(api, begin(api))
    begun = api("POST", f"/simulations/{first['id']}/continue", 201, json={"n_turns": 1, "simulation_rounds": 2})
    second = ended(api, begun["id"])
    assert second["metadata"]["continues"] == first["id"]
    assert second["metadata"]["final_turn_number"] == 4
    assert second["lines"][:4] == first["lines"]
    assert [line["turn"] for line in second["lines"]] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert second["content"].startswith(first["content"])
    third = api("POST", f"/simulations/{second['id']}/continue", 201, json={"context": "Then it rained"})
    assert len(ended(api, third["id"])["lines"]) == 10


def test_one_of_a_batch_goes_on(api: Api) -> None:
    batch = api.create()
    api.ended(batch)
    first = api.batch(batch)["simulations"][1]
    begun = api("POST", f"/simulations/{first['id']}/continue", 201, json={})
    second = ended(api, begun["id"])
    assert second["lines"][: len(first["lines"])] == first["lines"]
    assert second["entity_ids"] == first["entity_ids"]


@pytest.mark.parametrize(
    ("body", "field"),
    [({"n_turns": 0}, "n_turns"), ({"n_turns": 200, "simulation_rounds": 2}, "n_turns"), ({"x": 1}, "x")],
)
def test_wrong_continuations(shared: Api, body: dict[str, Any], field: str) -> None:
    batch = shared.create(num_simulations=1)
    shared.ended(batch)
    id_ = shared.batch(batch)["simulations"][0]["id"]
    found = shared("POST", f"/simulations/{id_}/continue", 422, json=body)
    assert [each["field"] for each in found["errors"]] == [field]


def test_one_that_failed_has_nothing_to_go_on_with(api: Api) -> None:
    id_ = begin(api, model="scripted/fails")
    assert ended(api, id_)["status"] == "failed"
    api("POST", f"/simulations/{id_}/continue", 409, json={})


def test_all_of_them(api: Api) -> None:
    alone = begin(api)
    ended(api, alone)
    batch = api.create()
    api.ended(batch)
    response = api.http.get("/api/simulations")
    assert response.headers["X-Total-Count"] == "4"
    ids = [each["id"] for each in response.json()["data"]]
    assert ids == [each["id"] for each in api.batch(batch)["simulations"]] + [alone]
    paged = [api("GET", f"/simulations?limit=1&offset={at}")[0]["id"] for at in range(4)]
    assert paged == ids
    assert api("GET", "/simulations?offset=4") == []
    part = api.http.get("/api/simulations", params={"batch_id": batch, "limit": 2, "offset": 1})
    assert [each["id"] for each in part.json()["data"]] == ids[1:3]
    assert part.headers["X-Total-Count"] == "3"
    assert api("GET", f"/simulations/{ids[0]}")["batch_id"] == batch


def test_deleting(api: Api) -> None:
    alone = begin(api)
    ended(api, alone)
    batch = api.create(num_simulations=1)
    api.ended(batch)
    of_batch = api.batch(batch)["simulations"][0]["id"]
    assert batch in api("DELETE", f"/simulations/{of_batch}", 409)["message"]
    api("DELETE", f"/simulations/{alone}")
    api("GET", f"/simulations/{alone}", 404)
    assert len(api("GET", "/simulations")) == 1


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 10), st.integers(0, 20))
def test_a_page_is_a_part_of_all_in_order(sizes: list[int], limit: int, offset: int) -> None:
    every = [(str(run), number) for run, many in enumerate(sizes) for number in range(1, many + 1)]
    named = [(str(run), many) for run, many in enumerate(sizes)]
    found = [(id_, each) for id_, first, last in _parts(named, limit, offset) for each in range(first, last + 1)]
    assert found == every[offset : offset + limit]
