"""A server whose store is a PostgreSQL database, and Python beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groundswell
from tests.stores import new_database, rows
from tests.web.scene import Api, serving

pytestmark = pytest.mark.slow
PLAY = "/experiments/secret-game/play"
GAME: dict[str, Any] = {"models": ["emulated/leaker:0.5"], "interactions": 4, "messages": 2, "seed": 3}


@pytest.fixture(scope="module")
def store() -> str:
    return new_database()


@pytest.fixture(scope="module")
def api(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("server"), store=store) as api:
        yield api


@pytest.fixture(scope="module")
def run(api: Api) -> str:
    """A run that has ended."""
    id_: str = api("POST", PLAY, 201, json={**GAME, "name": "duels"})["run_id"]
    list(api.events(f"/runs/{id_}"))
    return id_


def test_a_batch_is_created_listed_and_deleted(api: Api) -> None:
    id_ = api.create(metadata={"title": "a NUL: \0"})
    assert api.ended(id_)["status"] == "completed"
    found = api.batch(id_)
    assert found["metadata"] == {"title": "a NUL: \0"}
    assert id_ in [each["id"] for each in api("GET", "/batch-simulations")]
    api("DELETE", f"/batch-simulations/{id_}")
    assert id_ not in [each["id"] for each in api("GET", "/batch-simulations")]


@pytest.mark.parametrize(
    "path",
    [
        *("/runs", "/runs?q=DUEL", "/runs?q=%00", "/runs/{}", "/runs/{}/trials", "/runs/{}/trials?q=agent", "/start"),
        *(
            "/runs/{}/results",
            "/entities",
            "/entities?q=a",
            "/entity-types",
            "/batches",
            "/cache",
            "/models",
            "/labels",
        ),
    ],
)
def test_every_page_is_shown(api: Api, run: str, path: str) -> None:
    answer = api.http.get(path.format(run), headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    assert "<h1" in answer.text


def test_a_run_in_python_is_the_one_that_the_server_shows(api: Api, store: str, tmp_path: Path) -> None:
    there = groundswell.play(store=store, out=tmp_path / "out", progress=False, name="python", **GAME)
    shown = api("GET", f"/runs/{there.summary.run_id}")
    assert (shown["status"], shown["trials"]["usable"]) == ("completed", 4)


def test_the_server_takes_over_what_a_process_left(api: Api, store: str) -> None:
    """It was killed: the holder of its run has ended."""
    id_ = api("POST", PLAY, 201, json={**GAME, "name": "left"})["run_id"]
    list(api.events(f"/runs/{id_}"))
    rows(store, "DELETE FROM outcomes WHERE trial IN (SELECT id FROM trials WHERE id >> 32 = "
         "(SELECT id FROM runs WHERE uid = ?))", id_)  # fmt: skip
    rows(store, """UPDATE runs SET status = 'running', counters = '{"planned":4}' WHERE uid = ?""", id_)
    assert api("GET", f"/runs/{id_}")["status"] == "interrupted"
    api("POST", f"/runs/{id_}/resume")
    list(api.events(f"/runs/{id_}"))
    assert api("GET", f"/runs/{id_}")["trials"]["usable"] == 4
