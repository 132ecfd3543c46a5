"""The OpenAPI document of the server, and the answers whose shape it leaves open: events, analyses and exports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.pins.conftest import CommandLine
from tests.pins.expectations import check
from tests.pins.folders import content
from tests.pins.product import openapi, serving
from tests.pins.shapes import shape

PEOPLE = [{"id": name.lower(), "name": name, "attributes": {"age": at}} for at, name in enumerate(["Ann", "Bob", "Cy"])]
BATCH = {
    "name": "A batch",
    "context": "A talk.",
    "entity_ids": ["ann", "bob", "cy"],
    "interaction_size": 2,
    "num_simulations": 2,
    "questionnaire": {"questions": [{"id": "warm", "text": "How warm was it?", "type": "scale"}]},
}


def test_the_openapi_document() -> None:
    document = openapi()
    document["info"].pop("version")
    check({"openapi.json": json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False).splitlines()})


@pytest.fixture
def http(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of a server with three entities."""
    monkeypatch.delenv("GROUNDSWELL_TOKEN", raising=False)
    with serving("runs.db", "emulated/keeper") as url, httpx.Client(base_url=f"{url}/api", timeout=60) as client:
        for person in PEOPLE:
            client.post("/entities", json=person).raise_for_status()
        yield client


def test_answers_about_a_batch(http: httpx.Client) -> None:
    batch = http.post("/batch-simulations", json=BATCH).raise_for_status().json()["data"]["id"]
    about, run = f"/batch-simulations/{batch}", f"/runs/{batch.removeprefix('batch-')}"
    events = {"batch": events_of(http, about), "run": events_of(http, run)}
    trial = data(http, f"{run}/trials")[0]["key"]
    found = {
        "batch": data(http, about),
        "batch-analysis": data(http, f"{about}/analysis"),
        "run": data(http, run),
        "trial": data(http, f"{run}/trials/{trial}"),
        "error": http.get("/batch-simulations/batch-nobody").json(),
        **{f"event-{name}": each[-1] for name, each in events.items()},
    }
    shapes = {f"api/{name}.txt": shape(value, ("models", "data.models")) for name, value in found.items()}
    tables = [(table, to) for table in ("simulations", "lines", "answers") for to in ("json", "csv", "parquet")]
    files = {f"api/export-{table}-{to}.txt": exported(http, about, to, table) for table, to in tables}
    files |= {f"api/export-run-{to}.txt": exported(http, run, to) for to in ("jsonl", "json", "csv", "parquet")}
    check({**shapes, **files})


def data(http: httpx.Client, path: str) -> Any:
    """What an answer holds."""
    return http.get(path).raise_for_status().json()["data"]


def events_of(http: httpx.Client, path: str) -> list[Any]:
    """The events of something that runs, until it has ended."""
    with http.stream("GET", f"{path}/events") as response:
        lines = [line.partition(": ")[2] for line in response.iter_lines() if line.startswith(("event: ", "data: "))]
    return [{"event": name, "data": json.loads(value)} for name, value in zip(lines[::2], lines[1::2], strict=True)]


def exported(http: httpx.Client, path: str, to: str, table: str = "") -> list[str]:
    """What is in an exported file."""
    parameters = {"format": to, "table": table} if table else {"format": to}
    file = Path(f"exported.{to}")
    file.write_bytes(http.get(f"{path}/export", params=parameters).raise_for_status().content)
    return content(file)
