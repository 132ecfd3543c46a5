"""The places of the product that these tests import. When a module moves, this file changes and no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from groundswell.cli import app as command_line
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings

__all__ = ["COMMAND", "EXPERIMENTS", "Settings", "Threaded", "openapi", "running", "serving"]

COMMAND = command_line.app
"""The command `groundswell`."""

EXPERIMENTS = (
    "groundswell.experiments.secret_game",
    "groundswell.experiments.query_mutation",
    "groundswell.experiments.prompt_evolution",
)
"""The packages whose `__all__` holds the public names of the source documents. Simulations have a REST API instead."""


def openapi() -> dict[str, Any]:
    """The OpenAPI document of the server, from an application that is never started."""
    from groundswell import compose
    from groundswell.web.app import create_app
    from groundswell.web.background import Background
    from groundswell.web.services import Services
    from groundswell.web.settings import ServerSettings

    background = Background(lambda: compose.open("never.db"), running=1, waiting=0)
    return create_app(Services(ServerSettings(model="emulated/keeper"), background)).openapi()


@contextmanager
def serving(store: str, model: str) -> Iterator[str]:
    """A server on a port of its own: its address."""
    from groundswell.web.serving import running as running_server
    from groundswell.web.settings import ServerSettings

    with running_server(ServerSettings(store=store, port=0, model=model)) as server:
        yield server.url
