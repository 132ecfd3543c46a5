"""Batches in all their states: waiting, running, ended in every way, cancelled, resumed, deleted, followed."""

from __future__ import annotations

from pathlib import Path

import httpx
import msgspec
import pytest

from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.simulation import Rules
from tests.experiments.simulations.stage import drive
from tests.web.scene import ENTITIES, MODEL, REQUEST, Api, gated, serving


def test_pending_then_in_progress_then_completed(tmp_path: Path) -> None:
    gate = gated("turns")
    with serving(tmp_path, max_running=1) as api:
        first, second = (api.create(model="scripted/waits-turns") for _ in range(2))
        api.until(first, "in_progress")
        assert api.batch(second)["status"] == "pending"
        health = api("GET", "/health")
        assert (health["status"], health["running"], health["waiting"]) == ("ok", 1, 1)
        gate.open()
        assert api.ended(second)["status"] == "completed"
        assert api.batch(first)["status"] == "completed"


@pytest.mark.parametrize(
    ("model", "status", "completed"), [("scripted/fails", "failed", 0), ("scripted/half", "partial", 3)]
)
def test_simulations_that_fail_are_missing(api: Api, model: str, status: str, completed: int) -> None:
    id_ = api.create(model=model, num_simulations=6)
    assert api.ended(id_)["status"] == status
    found = api.batch(id_)
    assert found["progress"]["completed"] == completed
    assert found["progress"]["failed"] == 6 - completed
    failed = [each for each in found["simulations"] if each["status"] == "failed"]
    assert len(failed) == 6 - completed
    assert all(each["content"] == "" and "content_filter" in each["error"] for each in failed)


def test_what_failed_is_tried_again_only_if_that_is_asked_for(api: Api) -> None:
    id_ = api.create(model="scripted/fails")
    api.ended(id_)
    assert "retry_missing" in api("POST", f"/batch-simulations/{id_}/resume", 409)["message"]
    before = api.batch(id_)["progress"]["asks"]
    api("POST", f"/batch-simulations/{id_}/resume", json={"retry_missing": True})
    assert api.ended(id_)["status"] == "failed"
    assert api.batch(id_)["progress"]["asks"] > before


def test_a_batch_that_is_completed_has_nothing_left(api: Api) -> None:
    id_ = api.create()
    api.ended(id_)
    assert "is already complete" in api("POST", f"/batch-simulations/{id_}/resume", 409)["message"]
    assert "has already ended" in api("POST", f"/batch-simulations/{id_}/cancel", 409)["message"]


def test_cancelled_while_it_runs_and_resumed(api: Api) -> None:
    gate = gated("cancel")
    id_ = api.create(model="scripted/waits-cancel")
    api.until(id_, "in_progress")
    assert "busy" not in api("POST", f"/batch-simulations/{id_}/resume", 409)["message"]
    assert api("POST", f"/batch-simulations/{id_}/cancel") == {"id": id_, "message": "Batch simulation cancelled"}
    gate.open()
    assert api.ended(id_)["status"] == "failed"
    found = api.batch(id_)
    assert found["cancelled"] is found["metadata"]["cancelled"] is True
    assert {each["status"] for each in found["simulations"]} == {"cancelled"}
    assert {each["error"] for each in found["simulations"]} == {"it was cancelled"}
    api("POST", f"/batch-simulations/{id_}/resume")
    assert api.ended(id_)["status"] == "completed"
    assert "cancelled" not in api.batch(id_)["metadata"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["cancelled", "interrupted"])
def test_metadata_of_the_client_cannot_be_taken_for_the_state_of_a_batch(api: Api, name: str) -> None:
    told = api.create(422, metadata={name: True})
    assert [each["field"] for each in told["errors"]] == ["metadata"]
    assert f"metadata.{name}: this name is reserved" in told["message"]


def test_a_scripted_model_that_there_is_not_is_refused(api: Api) -> None:
    told = api.create(422, model="scripted/nobody")
    assert (
        [each["field"] for each in told["errors"]],
        "there is no scripted model with this name" in told["message"],
    ) == (
        ["model"],
        True,
    )
    assert api("GET", "/batch-simulations") == []


def test_cancelled_while_it_waits(tmp_path: Path) -> None:
    gate = gated("queue")
    with serving(tmp_path, max_running=1) as api:
        first, second = (api.create(model="scripted/waits-queue") for _ in range(2))
        api("POST", f"/batch-simulations/{second}/cancel")
        assert api.ended(second)["status"] == "failed"
        assert api.batch(second)["metadata"]["cancelled"] is True
        told = api("GET", f"/batch-simulations/{second}/analysis", 409)["message"]
        assert told == f"simulation batch {second} is failed and has no analysis"
        gate.open()
        assert api.ended(first)["status"] == "completed"
        api("POST", f"/batch-simulations/{second}/resume")
        assert api.ended(second)["status"] == "completed"


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("which", [0, 1], ids=["running", "waiting"])
def test_deleted_while_it_goes_on(tmp_path: Path, which: int) -> None:
    gate = gated("delete")
    with serving(tmp_path, max_running=1) as api:
        ids = [api.create(model="scripted/waits-delete") for _ in range(2)]
        api.until(ids[0], "in_progress")
        api("DELETE", f"/batch-simulations/{ids[which]}")
        api("GET", f"/batch-simulations/{ids[which]}", 404)
        gate.open()
        assert api.ended(ids[1 - which])["status"] == "completed"
        assert len(api("GET", "/batch-simulations")) == 1


def test_too_many_are_refused(tmp_path: Path) -> None:
    gate = gated("many")
    with serving(tmp_path, max_running=1, max_waiting=1) as api:
        ids = [api.create(model="scripted/waits-many") for _ in range(2)]
        assert "waiting already" in api.create(429, model="scripted/waits-many")["message"]
        assert len(api("GET", "/batch-simulations")) == 2
        gate.open()
        assert [api.ended(id_)["status"] for id_ in ids] == ["completed", "completed"]
        api.ended(api.create())


def test_several_run_side_by_side(tmp_path: Path) -> None:
    gate = gated("side")
    with serving(tmp_path, max_running=3) as api:
        ids = [api.create(model="scripted/waits-side") for _ in range(3)]
        for id_ in ids:
            api.until(id_, "in_progress")
        gate.open()
        assert {api.ended(id_)["status"] for id_ in ids} == {"completed"}


def test_a_stopped_server_goes_on_when_it_is_started_again(tmp_path: Path) -> None:
    gate = gated("again")
    with serving(tmp_path, max_running=1, stop_patience=0.01) as api:
        ids = [api.create(model="scripted/waits-again") for _ in range(2)]
        api.until(ids[0], "in_progress")
    gate.open()
    with serving(tmp_path, max_running=1) as api:
        assert {api.ended(id_)["status"] for id_ in ids} == {"completed"}
        assert len(api("GET", "/simulations")) == 6


def test_a_run_that_cannot_go_on_says_so_and_does_not_hold_up_others(tmp_path: Path) -> None:
    gate = gated("broken")
    with serving(tmp_path, max_running=1, stop_patience=0.01) as api:
        ids = [api.create(model="scripted/waits-broken") for _ in range(3)]
        runs = api.server.services.store.runs
        for id_, values in ((ids[1], {"settings": "{}"}), (ids[2], {"driver": "nowhere.at:all"})):
            runs.change(api.server.services.readings.find(id_), **values)
    gate.open()
    with serving(tmp_path, max_running=1) as api:
        assert api.ended(ids[0])["status"] == "completed"
        runs_of = [id_.removeprefix("batch-") for id_ in ids[1:]]
        for run in runs_of:
            list(api.events(f"/runs/{run}"))
        broken = [api("GET", f"/runs/{run}") for run in runs_of]
        assert [each["status"] for each in broken] == ["failed", "failed"]
        assert "settings of simulate" in broken[0]["error"]
        assert "nowhere" in broken[1]["error"]
        assert api("GET", "/health")["waiting"] == 0


def test_events_tell_how_far_it_is(api: Api) -> None:
    gate = gated("events")
    id_ = api.create(model="scripted/waits-events")
    events = api.events(f"/batch-simulations/{id_}")
    name, first = next(events)
    assert (name, first["id"], first["progress"]["completed"]) == ("progress", id_, 0)
    gate.open()
    *progress, (last, final) = events
    assert last == "end"
    assert final["status"] == "completed"
    assert final["progress"]["completed"] == final["progress"]["simulations"] == 3
    assert {name for name, _ in progress} <= {"progress"}
    assert list(api.events(f"/runs/{id_.removeprefix('batch-')}"))[-1][1]["status"] == "completed"


@pytest.mark.slow
def test_events_end_when_the_batch_is_deleted(api: Api) -> None:
    gate = gated("gone")
    id_ = api.create(model="scripted/waits-gone")
    events = api.events(f"/batch-simulations/{id_}")
    next(events)
    api("DELETE", f"/batch-simulations/{id_}")
    gate.open()
    assert list(events)[-1] == ("end", {"status": "deleted"})


def test_a_server_stops_although_streams_are_open(tmp_path: Path) -> None:
    gate = gated("open")
    with serving(tmp_path, stop_patience=0.01) as api:
        id_ = api.create(model="scripted/waits-open")
        events = api.events(f"/batch-simulations/{id_}")
        next(events)
        api.server.services.closing.set()
        assert all(name == "progress" for name, _ in events)
    gate.open()


def test_streams_are_counted(tmp_path: Path) -> None:
    gate = gated("streams")
    with serving(tmp_path, max_streams=1) as api:
        id_ = api.create(model="scripted/waits-streams")
        events = api.events(f"/batch-simulations/{id_}")
        next(events)
        assert "streams" in api("GET", f"/batch-simulations/{id_}/events", 429)["message"]
        gate.open()
        list(events)
        assert api.ended(id_)["status"] == "completed"


def test_the_figures_come_when_it_has_ended(api: Api) -> None:
    gate = gated("figures")
    id_ = api.create(model="scripted/waits-figures")
    assert "no analysis yet" in api("GET", f"/batch-simulations/{id_}/analysis", 409)["message"]
    gate.open()
    api.ended(id_)
    assert api("GET", f"/batch-simulations/{id_}/analysis")["simulations"]["usable"] == 3


@pytest.mark.parametrize("more", [{"n_turns": 200}, {"max_tokens": 100_000, "n_turns": 20}], ids=["turns", "tokens"])
def test_a_talk_that_is_too_long_to_be_rehearsed_is_not_estimated(api: Api, more: dict[str, int]) -> None:
    body = {**REQUEST, "interaction_size": 4, "num_simulations": 1, "max_tokens": 3_000, **more}
    found = api("POST", "/batch-simulations/estimate", 422, json=body)
    assert found["errors"][0]["field"] == "n_turns"
    assert "estimate a shorter one" in found["message"]


def test_answers_by_what_the_study_is_about(api: Api) -> None:
    ids = []
    for at in range(6):
        body = {"name": f"Somebody {at}", "attributes": {"parent": at % 2 == 0, "tall": at < 3}}
        ids.append(api("POST", "/entities", 201, json=body)["id"])
    sheet = {"questions": [{"id": "trust", "text": "How far?", "type": "scale"}]}
    id_ = api.create(entity_ids=ids, interaction_size=1, num_simulations=6, questionnaire=sheet, by=["tall"])
    api.ended(id_)
    found = api("GET", f"/batch-simulations/{id_}/analysis")
    assert found["by"] == ["tall"]
    looked = [(each["name"], each["exploratory"]) for each in found["questions"][0]["dimensions"]]
    assert looked == [("tall", False), ("parent", True)]


def test_an_estimate_starts_nothing(api: Api) -> None:
    body = {**REQUEST, "num_simulations": 5}
    found = api("POST", "/batch-simulations/estimate", json=body)
    assert (found["combinations"], found["simulations"]) == (6, 5)
    assert found["asks"] == [20, 20]
    assert found["usd"] == [0, 0]
    low, high = found["output_tokens"]
    assert 0 < low < high
    assert api("GET", "/batch-simulations") == []


def test_an_estimate_needs_no_key(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    wanted = {**REQUEST, "model": "openai/gpt-4o-mini"}
    assert api("POST", "/batch-simulations/estimate", json=wanted)["usd"][1] > 0
    assert "has no key" in api.create(422, model="openai/gpt-4o-mini")["message"]
    told = api("POST", "/batch-simulations/estimate", 422, json={**wanted, "model": "emulated/nobody"})
    assert [each["field"] for each in told["errors"]] == ["model"]


def test_pages(api: Api) -> None:
    ids = [api.create(num_simulations=1) for _ in range(3)]
    for id_ in ids:
        api.ended(id_)
    response = api.http.get("/api/batch-simulations", params={"limit": 1, "offset": 1})
    assert [each["id"] for each in response.json()["data"]] == [ids[1]]
    assert response.headers["X-Total-Count"] == "3"


def test_a_client_that_goes_away_leaves_no_stream(api: Api) -> None:
    gate = gated("away")
    id_ = api.create(model="scripted/waits-away")
    with httpx.stream("GET", f"{api.server.url}/api/batch-simulations/{id_}/events") as response:
        lines = response.iter_lines()  # kept: without anybody who reads it, the response would be closed
        next(lines)
        assert api.server.services.streams == 1
    while api.server.services.streams:  # the batch has not ended: only that the client left can end the stream
        api("GET", "/health")
    gate.open()
    assert api.ended(id_)["status"] == "completed"


def test_a_batch_is_the_same_as_one_that_was_not_made_here(api: Api) -> None:
    """Who talks with whom, in which order, and what they say and answer follow from the settings and the seed alone."""
    sheet = {"questions": [{"id": "vote", "text": "How?", "type": "choice", "options": ["yes", "no"]}]}
    id_ = api.create(num_simulations=5, seed=3, questionnaire=sheet)
    assert api.ended(id_)["status"] == "completed"
    question = Question("vote", "How?", "choice", ("yes", "no"))
    rules = Rules(MODEL, n_turns=2, questionnaire=Questionnaire((question,)))
    batch = Batch("Another name", REQUEST["context"], tuple(ENTITIES), 2, 5, rules)
    _, wanted = drive(batch, seed=3)
    told = ("entity_ids", "content", "answers", "metadata")
    found = [{name: each[name] for name in told} for each in api.batch(id_)["simulations"]]
    assert found == [{name: each[name] for name in told} for each in msgspec.json.decode(msgspec.json.encode(wanted))]
