"""The guide to the API names what there is, and its examples hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

from groundswell.experiments.simulations.writing import MOST_WRITTEN
from groundswell.web.entity_requests import MOST_AT_ONCE
from groundswell.web.settings import ServerSettings
from tests.web.scene import REQUEST, Api

GUIDE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
CALL = re.compile(r"\b(GET|POST|PUT|DELETE) (/api[^\s`]*)`")


def test_every_call_is_there_and_every_route_is_named(shared: Api) -> None:
    paths = shared.http.get("/openapi.json").json()["paths"]
    any_command = {f"/api/experiments/{{name}}/{{command}}{more}": more for more in ("", "/estimate")}
    paths |= {path: paths[f"/api/experiments/secret-game/play{more}"] for path, more in any_command.items()}
    named = set(CALL.findall(GUIDE))
    assert {(method, path) for method, path in named if method.lower() not in paths.get(path, {})} == set()
    about = ("/api/batch-simulations", "/api/simulations", "/api/health", "/api/entit", "/api/templates", "/api/models")
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods if path.startswith(about)}
    assert routes <= named


def test_the_request_is_that_of_the_document() -> None:
    shown = re.search(r"-d '(\{.*?\n\})'", GUIDE, re.DOTALL)
    assert shown is not None
    assert json.loads(shown[1]) == REQUEST


def test_the_requests_about_entities_are_taken(api: Api) -> None:
    shown = re.findall(r"api/([a-z/-]+) -H 'Content-Type: application/json'[\s\\]+-d '(\{.*?\})'\n", GUIDE, re.DOTALL)
    made = [(path, json.loads(body)) for path, body in shown if path.startswith("entit")]
    assert [path for path, _ in made] == ["entity-types", "entities", "entities/sample", "entities/generate"]
    for path, body in made:
        assert api.http.post(f"/api/{path}", json=body).is_success


def test_the_error_is_what_the_server_says(shared: Api) -> None:
    shown = re.search(r'^\{"status": "error".*?\]\}$', GUIDE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shared.create(422, num_simulations="3") == json.loads(shown[0])


def test_the_limits_are_the_defaults() -> None:
    settings = ServerSettings()
    for row in (
        f"| entities of a batch | {settings.max_entities:,} |",
        f"| simulations of a batch | {settings.max_simulations:,} |",
        f"| entities drawn by one request, and written by one | {MOST_AT_ONCE:,}, and {MOST_WRITTEN:,} |",
        f"all rounds together | {settings.max_turns} |",
        f"and waiting | {settings.max_running}, and {settings.max_waiting} |",
        f"| streams of events | {settings.max_streams} |",
    ):
        assert row in GUIDE
    assert settings.max_body_bytes == 1_000_000
