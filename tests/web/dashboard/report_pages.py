"""Runs and pages for tests of results and comparisons."""

from __future__ import annotations

import json
from typing import Any

from groundswell.engine.records import RunRecord
from groundswell.program.request import Request
from groundswell.transports.scripted import Answer, scripted_model
from tests.web.scene import Api

PAGE = {"Accept": "text/html"}
MARKUP = "<img src=x onerror=alert(1)><script>alert(1)</script>"


@scripted_model("markup")
def markup(request: Request) -> Answer:
    """A model that writes HTML."""
    return MARKUP


def play(api: Api, **options: Any) -> str:
    """A secret game that has ended; returns its id."""
    given = {"models": ["emulated/keeper", "emulated/leaker:0.5"], "interactions": 8, "messages": 4}
    started = api("POST", "/experiments/secret-game/play", 201, json=given | options)
    list(api.events(f"/runs/{started['run_id']}"))
    return str(started["run_id"])


def stored(api: Api, name: str, driver: str | None, **columns: Any) -> RunRecord:
    """A run that only the store knows."""
    runs = api.server.services.store.runs
    record = runs.create(name, 1, driver=driver, settings="{}")
    runs.change(record, **columns)
    return runs.get(record.id)


def html(api: Api, path: str, status: int = 200) -> str:
    response = api.http.get(path, headers=PAGE)
    assert response.status_code == status, response.text
    assert "script-src 'self'" in response.headers["content-security-policy"]
    return response.text


def parts(api: Api, path: str, wanted: str) -> dict[str, str]:
    """The parts that a stream sent, up to the first whose `report` or `fresh` contains this text."""
    found: dict[str, str] = {}
    with api.http.stream("GET", path) as response:
        assert response.status_code == 200
        for line in response.iter_lines():
            if line.startswith("data: {"):
                found |= json.loads(line.removeprefix("data: "))
            if any(wanted in part for part in found.values()):
                return found
    raise AssertionError(f"the stream ended without {wanted!r}: {found}")
