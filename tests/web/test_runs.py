"""The runs of every experiment over HTTP, and their files."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from tests.web.scene import Api, gated


@pytest.fixture(scope="module")
def run(shared: Api) -> str:
    batch: str = shared.create()
    shared.ended(batch)
    return batch.removeprefix("batch-")


def test_a_run_and_its_trials(shared: Api, run: str) -> None:
    found = shared("GET", f"/runs/{run}")
    assert (found["run_id"], found["status"], found["trials"]) == (
        run,
        "completed",
        {"planned": 3, "usable": 3, "missing": 0},
    )
    assert found["analysis"]["simulations"]["usable"] == 3
    listed = next(each for each in shared("GET", "/runs") if each["run_id"] == run)
    assert listed == {key: value for key, value in found.items() if key not in ("analysis", "models")}
    response = shared.http.get(f"/api/runs/{run}/trials", params={"limit": 2, "offset": 1})
    assert response.headers["X-Total-Count"] == "3"
    trials = response.json()["data"]
    assert [trial["spec"]["number"] for trial in trials] == [2, 3]
    assert all(trial["status"] == "usable" and trial["result"]["turns"] == 2 for trial in trials)


def test_what_was_said_in_a_trial(shared: Api, run: str) -> None:
    trial = shared("GET", f"/runs/{run}/trials")[0]
    found = shared("GET", f"/runs/{run}/trials/{trial['key']}")
    assert {key: found[key] for key in trial} == trial
    assert len(found["exchanges"]) == 4
    assert all(exchange["settlement"]["type"] == "reply" for exchange in found["exchanges"])
    assert found["text"].startswith(f"trial {trial['key']}")
    assert "no trial" in shared("GET", f"/runs/{run}/trials/a/b", 404)["message"]


@pytest.mark.parametrize("to", ["jsonl", "json", "csv", "parquet"])
def test_files_of_a_run(shared: Api, run: str, to: str) -> None:
    response = shared.http.get(f"/api/runs/{run}/export", params={"format": to})
    assert response.status_code == 200
    assert response.headers["content-disposition"] == f'attachment; filename="run-{run}.{to}"'
    if to == "parquet":
        assert response.content[:4] == response.content[-4:] == b"PAR1"
    elif to == "csv":
        assert len(list(csv.DictReader(io.StringIO(response.text)))) == 3
    else:
        rows = json.loads(response.text) if to == "json" else [json.loads(row) for row in response.text.splitlines()]
        assert [row["spec"]["number"] for row in rows] == [1, 2, 3]


@pytest.mark.parametrize("table", ["simulations", "lines"])
@pytest.mark.parametrize("to", ["json", "csv", "parquet"])
def test_files_of_a_batch(shared: Api, run: str, to: str, table: str) -> None:
    path = f"/api/batch-simulations/batch-{run}/export"
    response = shared.http.get(path, params={"format": to, "table": table})
    assert response.status_code == 200
    name = re.fullmatch(r'attachment; filename="([a-z0-9.-]+)"', response.headers["content-disposition"])
    assert name is not None
    assert name[1] == f"batch-{run}-{table}.{to}"
    assert int(response.headers["content-length"]) == len(response.content) > 0


def test_the_file_of_a_batch_is_json_unless_said_otherwise(shared: Api, run: str) -> None:
    response = shared.http.get(f"/api/batch-simulations/batch-{run}/export")
    assert response.headers["content-type"] == "application/json"
    json.loads(response.text)
    shared("GET", f"/batch-simulations/batch-{run}/export?format=xml", 422)


def test_cancelling_resuming_and_deleting(api: Api) -> None:
    gate = gated("run")
    run = api.create(model="scripted/waits-run").removeprefix("batch-")
    events = api.events(f"/runs/{run}")
    assert next(data for _, data in events if data["status"] == "running")["run_id"] == run
    api("POST", f"/runs/{run}/cancel")
    gate.open()
    assert list(events)[-1][1]["status"] == "stopped"
    assert "has already ended" in api("POST", f"/runs/{run}/cancel", 409)["message"]
    api("POST", f"/runs/{run}/resume")
    assert list(api.events(f"/runs/{run}"))[-1][1]["status"] == "completed"
    api("DELETE", f"/runs/{run}")
    api("GET", f"/runs/{run}", 404)


def test_a_run_of_another_name_is_not_found_by_it(api: Api) -> None:
    runs = api.server.services.store.runs
    named = runs.create("a name", 0)
    api("GET", "/runs/a name", 404)
    assert api("GET", f"/runs/{named.id}")["name"] == "a name"
    assert "script" in api("POST", f"/runs/{named.id}/resume", 409)["message"]
