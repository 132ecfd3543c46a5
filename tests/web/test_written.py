"""Entities that a model writes in the background: kept once, whatever becomes of the server meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundswell.experiments.simulations.catalogue import ENTITY, KEPT
from groundswell.program.request import Chat, Fault, FaultKind, Request
from groundswell.transports.scripted import Answer, scripted_model
from groundswell.web.entities import NOT_KEPT
from tests.web.scene import Api, Gate, gated, serving
from tests.web.test_background import stored
from tests.web.test_entity_types import fields

ROBOT: dict[str, Any] = {
    "id": "robot",
    "name": "Robot",
    "dimensions": [{"name": "wheels", "type": "int", "min_value": 1, "max_value": 6}],
}
WANTED: dict[str, Any] = {"entity_type_id": "robot", "count": 3, "seed": 7, "model": "scripted/writes"}


def draft(number: int) -> str:
    return json.dumps({"name": f"Unit <b>{number}</b>", "description": "=SUM(A1)"})


class Writer:
    """A model that writes, waits for a gate if there is one, and fails if it is told to."""

    def __init__(self) -> None:
        self.gate: Gate | None = None
        self.failing: set[int] = set()
        self.asked: list[str] = []

    async def __call__(self, request: Request) -> Answer:
        assert isinstance(request, Chat)
        self.asked.append(str(request.messages[0].content))
        number = len(self.asked)
        if self.gate is not None:
            await self.gate.passed()
        return Fault(FaultKind.FILTERED, "not about this") if number in self.failing else draft(number)


@pytest.fixture
def writer() -> Writer:
    writer = Writer()
    scripted_model("writes")(writer)
    return writer


def start(api: Api, **changes: Any) -> str:
    """Have entities of the type written; the id of the run."""
    if not any(each["id"] == "robot" for each in api("GET", "/entity-types")):
        api("POST", "/entity-types", 201, json=ROBOT)
    found = api("POST", "/entities/generate", 202, json={**WANTED, **changes})
    assert found == {"id": found["run_id"], "run_id": found["run_id"], "message": "Entities are being written"}
    return str(found["run_id"])


def ended(api: Api, id_: str) -> Any:
    """The run, once it has ended."""
    assert list(api.events(f"/runs/{id_}"))[-1][0] == "end"
    return api("GET", f"/runs/{id_}")


def robots(api: Api) -> list[str]:
    return [each["id"] for each in api("GET", "/entities?entity_type_id=robot")]


def ids(run: str, *numbers: int) -> list[str]:
    return [f"entity-{run}-{number}" for number in numbers]


def forget(api: Api, run: str) -> None:
    """Make the store what it is when the server is killed after the end of a run, before its entities are kept."""
    documents = api.server.services.store.documents
    documents.delete(KEPT, run)
    documents.delete(ENTITY, *robots(api))


def test_a_run_writes_entities(api: Api, writer: Writer) -> None:
    id_ = start(api, wishes="They are all rusty.")
    run = ended(api, id_)
    assert (run["status"], run["error"], run["seed"]) == ("completed", None, 7)
    assert run["trials"] == {"planned": 3, "usable": 3, "missing": 0}
    found = api("GET", "/entities?entity_type_id=robot")
    assert [each["id"] for each in found] == ids(id_, 1, 2, 3)
    assert {each["name"] for each in found} == {f"Unit <b>{number}</b>" for number in (1, 2, 3)}
    assert all(each["description"] == "=SUM(A1)" and 1 <= each["attributes"]["wheels"] <= 6 for each in found)
    assert all("They are all rusty." in asked for asked in writer.asked)


def test_they_are_there_as_soon_as_the_run_has_ended(api: Api, writer: Writer) -> None:
    writer.gate = Gate()
    id_ = start(api, count=20)
    writer.gate.open()
    while api("GET", f"/runs/{id_}")["status"] in ("pending", "running", "interrupted"):
        pass
    assert len(robots(api)) == 20


def test_the_type_of_a_template_is_added(api: Api) -> None:
    found = api("POST", "/entities/generate", 202, json={"template": "human", "count": 2})
    assert ended(api, found["run_id"])["status"] == "completed"  # by the model of the server
    assert [each["id"] for each in api("GET", "/entity-types")] == ["human"]
    assert all(each["attributes"]["background"] for each in api("GET", "/entities?entity_type_id=human"))


def test_without_a_seed_others_are_written(api: Api, writer: Writer) -> None:
    runs = [start(api, seed=None, count=1) for _ in range(2)]
    seeds = [ended(api, id_)["seed"] for id_ in runs]
    assert seeds[0] != seeds[1]
    assert len(writer.asked) == 2


def test_free_lets_the_model_choose(api: Api, writer: Writer) -> None:
    id_ = start(api, count=1, free=True)
    run = ended(api, id_)
    assert "- wheels: a whole number from 1 to 6" in writer.asked[0]
    assert run["trials"]["missing"] == 1  # this one chose nothing, twice
    assert robots(api) == []


def test_a_budget_goes_with_the_run(api: Api, writer: Writer) -> None:
    id_ = start(api, budget=2.5)
    options = api.server.services.run(id_).options
    assert options["limits"]["usd"] == 2.5
    assert options["unattended"] is True
    ended(api, id_)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"model": "nowhere/at-all"}, "model"),
        ({"model": "local//etc/passwd"}, "model"),
        ({"budget": 0}, "budget"),
        ({"wishes": "x" * 10_001}, "wishes"),
        ({"wishes": "\0"}, "wishes"),
        ({"free": "yes"}, "free"),
    ],
    ids=str,
)
def test_what_cannot_be_written(api: Api, changes: Any, wrong: str) -> None:
    api("POST", "/entity-types", 201, json=ROBOT)
    assert fields(api("POST", "/entities/generate", 422, json={**WANTED, **changes})) == [wrong]
    assert api("GET", "/runs") == []


def test_too_much_that_waits_is_refused(tmp_path: Path, writer: Writer) -> None:
    writer.gate = Gate()
    with serving(tmp_path, max_running=1, max_waiting=0) as api:
        id_ = start(api)
        assert "waiting already" in api("POST", "/entities/generate", 429, json=WANTED)["message"]
        writer.gate.open()
        assert ended(api, id_)["status"] == "completed"


def test_a_server_that_was_stopped_goes_on_writing(tmp_path: Path, writer: Writer) -> None:
    writer.gate = Gate()
    with serving(tmp_path, stop_patience=0.01) as api:
        id_ = start(api)
        while not writer.gate.asked:
            api("GET", "/health")
        assert robots(api) == []
    writer.gate = None
    with serving(tmp_path) as api:
        assert ended(api, id_)["status"] == "completed"
        assert robots(api) == ids(id_, 1, 2, 3)


def test_what_ended_and_was_not_kept_is_kept_at_the_next_start(tmp_path: Path, writer: Writer) -> None:
    with serving(tmp_path) as api:
        id_ = start(api)
        ended(api, id_)
        forget(api, id_)
        assert robots(api) == []
    for _ in range(2):
        with serving(tmp_path) as api:
            assert robots(api) == ids(id_, 1, 2, 3)
            assert api("GET", f"/runs/{id_}")["error"] is None
    assert len(writer.asked) == 3


@pytest.mark.slow
def test_what_another_server_ended_and_did_not_keep_is_kept(tmp_path: Path, writer: Writer) -> None:
    with serving(tmp_path) as api:
        id_ = start(api)
        ended(api, id_)
        forget(api, id_)
    with stored(tmp_path) as runs:
        record = runs.get(id_)
        runs.change(record, status="running")
        lock = runs.lock(record)  # as the other server has it
        try:
            with serving(tmp_path) as api:
                assert robots(api) == []
                runs.change(record, status="completed")
                lock.release()
                while not robots(api):
                    api("GET", "/health")
                assert robots(api) == ids(id_, 1, 2, 3)
        finally:
            lock.release()


def test_what_was_deleted_stays_so(tmp_path: Path, writer: Writer) -> None:
    with serving(tmp_path) as api:
        id_ = start(api)
        ended(api, id_)
        api("DELETE", f"/entities/entity-{id_}-2")
        changed = api("PUT", f"/entities/entity-{id_}-3", json={"name": "Mine", "entity_type_id": "robot"})
    with serving(tmp_path) as api:
        assert robots(api) == ids(id_, 1, 3)
        assert api("GET", f"/entities/entity-{id_}-3") == changed


def test_runs_of_the_command_line_are_left_alone(tmp_path: Path, writer: Writer) -> None:
    with serving(tmp_path) as api:
        id_ = start(api)
        ended(api, id_)
        forget(api, id_)
        store = api.server.services.store
        store.runs.change(store.runs.get(id_), options={})
    with serving(tmp_path) as api:
        assert robots(api) == []


def test_what_is_written_later_is_added(api: Api, writer: Writer) -> None:
    writer.failing = {2}
    id_ = start(api)
    run = ended(api, id_)
    assert (run["status"], run["trials"]["missing"]) == ("partial", 1)
    first = robots(api)
    assert len(first) == 2
    api("DELETE", f"/entities/{first[0]}")
    api("POST", f"/runs/{id_}/resume", json={"retry_missing": True})
    assert ended(api, id_)["status"] == "completed"
    [late] = set(ids(id_, 1, 2, 3)) - set(first)
    assert robots(api) == [first[1], late]


def test_nothing_could_be_written(api: Api, writer: Writer) -> None:
    writer.failing = {1, 2, 3}
    run = ended(api, start(api))
    assert run["trials"] == {"planned": 3, "usable": 0, "missing": 3}
    assert robots(api) == []


def test_cancelled_before_its_turn(tmp_path: Path, writer: Writer) -> None:
    writer.gate = Gate()
    with serving(tmp_path, max_running=1) as api:
        first, second = start(api), start(api, seed=8)
        api("POST", f"/runs/{second}/cancel")
        writer.gate.open()
        assert ended(api, first)["status"] == "completed"
        assert ended(api, second)["status"] == "stopped"
        assert robots(api) == ids(first, 1, 2, 3)


def test_cancelled_while_it_writes(api: Api, writer: Writer) -> None:
    writer.gate = Gate()
    id_ = start(api)
    while writer.gate.asked < 3:
        api("GET", "/health")
    api("POST", f"/runs/{id_}/cancel")
    writer.gate.open()
    assert ended(api, id_)["status"] == "stopped"
    before = robots(api)
    api("POST", f"/runs/{id_}/resume")
    assert ended(api, id_)["status"] == "completed"
    assert sorted(robots(api)) == ids(id_, 1, 2, 3)
    assert set(before) <= set(robots(api))
    assert len(writer.asked) == 3


def test_a_run_that_is_deleted_leaves_its_entities(api: Api, writer: Writer) -> None:
    id_ = start(api)
    ended(api, id_)
    api("DELETE", f"/runs/{id_}")
    assert robots(api) == ids(id_, 1, 2, 3)


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["resumed", "started again"])
def test_a_type_that_went_meanwhile(tmp_path: Path, writer: Writer, how: str) -> None:
    writer.gate = Gate()
    with serving(tmp_path) as api:
        id_ = start(api)
        api("DELETE", "/entity-types/robot")
        writer.gate.open()
        run = ended(api, id_)
        assert run["status"] == "completed"
        assert run["error"].startswith(f"{NOT_KEPT}: ")
        assert "'robot'" in run["error"]
        assert robots(api) == []
        api("POST", "/entity-types", 201, json=ROBOT)
        if how == "resumed":
            api("POST", f"/runs/{id_}/resume")
            assert ended(api, id_)["error"] is None
            assert robots(api) == ids(id_, 1, 2, 3)
    with serving(tmp_path) as api:
        assert api("GET", f"/runs/{id_}")["error"] is None
        assert robots(api) == ids(id_, 1, 2, 3)
    assert len(writer.asked) == 3


def test_batches_go_on_beside_it(api: Api, writer: Writer) -> None:
    writer.gate, gate = Gate(), gated("beside")
    id_ = start(api)
    batch = api.create(model="scripted/waits-beside")
    gate.open()
    assert api.ended(batch)["status"] == "completed"
    assert api("GET", f"/runs/{id_}")["status"] in ("pending", "running")
    writer.gate.open()
    assert ended(api, id_)["status"] == "completed"
