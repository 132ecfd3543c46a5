"""Forks over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from groundswell.cli.app import app
from tests.web.scene import Api

GAME: dict[str, Any] = {"models": ["emulated/leaker", "emulated/keeper"], "interactions": 4, "messages": 4, "name": "a"}


def played(api: Api, **changes: Any) -> str:
    run: str = api("POST", "/experiments/secret-game/play", 201, json={**GAME, **changes})["run_id"]
    ended(api, run)
    return run


def ended(api: Api, run: str) -> Any:
    assert list(api.events(f"/runs/{run}"))[-1][0] == "end"
    return api("GET", f"/runs/{run}")


def replies(api: Api, run: str) -> dict[str, list[Any]]:
    """The replies of all trials, by key."""
    keys = [trial["key"] for trial in api("GET", f"/runs/{run}/trials")]
    found = {key: api("GET", f"/runs/{run}/trials/{key}")["exchanges"] for key in keys}
    return {key: [each["settlement"]["text"] for each in some] for key, some in found.items()}


def test_a_fork_over_http_equals_a_fork_of_the_command_line(api: Api) -> None:
    run = played(api)
    over_http = ended(api, api("POST", f"/runs/{run}/fork", 201, json={"name": "over-http", "at": 2})["run_id"])
    store = str(Path(api.server.services.settings.store))
    made = CliRunner().invoke(app, ["runs", "fork", run, "--at", "2", "--store", store, "--json"])
    by_command = json.loads(made.stdout)
    assert over_http["asks"] == by_command["asks"]
    assert (over_http["asks"]["cached"], over_http["asks"]["sent"]) == (8, 8)
    runs = (run, over_http["run_id"], by_command["run_id"])
    first, *forks = ({key: some[:2] for key, some in replies(api, each).items()} for each in runs)
    assert forks == [first, first]
    assert over_http["name"] == "over-http"


def test_a_fork_changes_settings(api: Api) -> None:
    run = played(api)
    fork = ended(api, api("POST", f"/runs/{run}/fork", 201, json={"set": {"interactions": 6}})["run_id"])
    assert (fork["trials"]["planned"], fork["asks"]["cached"], fork["asks"]["sent"]) == (6, 16, 8)
    assert ended(api, api("POST", f"/runs/{run}/fork", 201)["run_id"])["asks"]["sent"] == 0


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"set": {"interactoins": 5}}, 422, "unknown field 'interactoins'"),
        ({"set": {"interactions": "five"}}, 422, "Expected `int`"),
        ({"set": {"interactions.x": 5}}, 422, "interactions is a plain value"),
        ({"set": {"interactions": 10**9}}, 422, "must be at most"),
        ({"set": {"table": {"judge": "local//etc/model.gguf"}}}, 422, "cannot name a file"),
        ({"at": -1}, 422, "at"),
        ({"name": "a"}, 409, "already exists"),
        ({"nmae": "b"}, 422, "nmae"),
    ],
)
def test_a_fork_that_is_refused(shared: Api, body: dict[str, Any], status: int, words: str) -> None:
    if not any(run["name"] == "a" for run in shared("GET", "/runs")):
        played(shared)
    run = next(run["run_id"] for run in shared("GET", "/runs") if run["name"] == "a")
    assert words in str(shared("POST", f"/runs/{run}/fork", status, json=body))


def test_a_run_of_a_script_cannot_be_forked(api: Api) -> None:
    record = api.server.services.store.runs.create("by a script", 0)
    assert "started by a script" in api("POST", f"/runs/{record.id}/fork", 409, json={})["message"]
    assert "no run" in api("POST", "/runs/nothing/fork", 404, json={})["message"]
