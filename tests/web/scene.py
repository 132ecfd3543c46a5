"""A real server on a port of its own, called over HTTP; and models that wait, or fail, as a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.entities import Entity
from groundswell.program.request import Fault, FaultKind, Request
from groundswell.transports.scripted import Answer, scripted_model
from groundswell.web.serving import Running, running
from groundswell.web.settings import ServerSettings
from tests.patience import PATIENCE

MODEL = "emulated/keeper"
ENTITIES = [Entity(f"entity-id-{number}", f"Entity {number}") for number in range(1, 5)]
REQUEST: dict[str, Any] = {
    "name": "Climate Change Discussion",
    "description": "Simulating how different entities discuss climate change solutions",
    "context": "A panel discussion about potential solutions to climate change",
    "entity_ids": ["entity-id-1", "entity-id-2", "entity-id-3", "entity-id-4"],
    "interaction_size": 2,
    "num_simulations": 3,
    "n_turns": 2,
    "simulation_rounds": 1,
    "metadata": {"category": "climate", "tags": ["environment", "discussion"]},
}
"""The request of the document on batch simulations."""


class Gate:
    """Something that models wait for, and that a test opens."""

    def __init__(self) -> None:
        self._opened: Future[None] = Future()
        self.asked = 0

    def open(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    async def passed(self) -> None:
        self.asked += 1
        await asyncio.shield(asyncio.wrap_future(self._opened))


GATES: dict[str, Gate] = {}


def gated(name: str) -> Gate:
    """A new gate, before the model `scripted/waits-NAME`."""
    gate = GATES[name] = Gate()

    @scripted_model(f"waits-{name}")
    async def waits(request: Request) -> Answer:
        await gate.passed()
        return "I waited."

    return gate


@scripted_model("fails")
def fails(request: Request) -> Answer:
    """A model that has no answer to anything."""
    return Fault(FaultKind.FILTERED, "not about this")


@scripted_model("half")
def half(request: Request) -> Answer:
    """A model that does not speak for entity 1."""
    return Fault(FaultKind.FILTERED, "not as this one") if "You are Entity 1" in str(request) else "Fine."


class Api:
    """A client of a server."""

    def __init__(self, server: Running, token: str | None = None) -> None:
        self.server = server
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE)

    def __call__(self, method: str, path: str, status: int = 200, **how: Any) -> Any:
        """What an answer holds; it must have this status, and be in the envelope."""
        response = self.http.request(method, f"/api{path}", **how)
        assert response.status_code == status, response.text
        body = response.json()
        if status < 400:
            assert list(body) == ["status", "data"]
            assert body["status"] == "success"
            return body["data"]
        assert list(body) == ["status", "message", "errors"]
        assert body["status"] == "error"
        assert body["message"]
        return body

    def create(self, status: int = 201, **changes: Any) -> Any:
        """A batch: that of the document, with changes. Its id; or the error."""
        found = self("POST", "/batch-simulations", status, json={**REQUEST, **changes})
        return found["id"] if status == 201 else found

    def batch(self, id_: str) -> Any:
        return self("GET", f"/batch-simulations/{id_}")

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """The events of something, to the end of the stream."""
        with self.http.stream("GET", f"/api{path}/events") as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            name = ""
            for line in response.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))

    def ended(self, id_: str) -> Any:
        """The last event of a batch, once it has ended."""
        return list(self.events(f"/batch-simulations/{id_}"))[-1][1]

    def until(self, id_: str, status: str) -> Any:
        """The first event of a batch in which it has this status."""
        events = self.events(f"/batch-simulations/{id_}")
        found = next(data for _, data in events if data["status"] == status)
        events.close()  # type: ignore[attr-defined]  # a generator
        return found


def add_entities(server: Running) -> None:
    """Put the entities of the document into the store."""
    Catalogue(server.services.store.documents).bring([], ENTITIES, on_conflict="skip")


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Api]:
    """A server on the store of a folder, with the entities of the document in it."""
    given: dict[str, Any] = {"store": str(folder / "runs.db"), "port": 0, "model": MODEL, **settings}
    with running(ServerSettings(**given)) as server:
        add_entities(server)
        api = Api(server, settings.get("token"))
        with api.http:
            yield api
