"""The only place that builds an engine from settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from groundswell.engine.clock import LoopClock
from groundswell.engine.engine import Engine
from groundswell.engine.events import Listener
from groundswell.engine.pace import PaceLimits
from groundswell.engine.ports import Clock, Prices, Route, Router, Transport
from groundswell.engine.retry import RetryPolicy
from groundswell.engine.run import RunOptions
from groundswell.errors import SettingsError
from groundswell.program.request import Embedding, Reply, Request
from groundswell.transports.scripted import Script, Scripted, registered


def at_once(most: int) -> PaceLimits:
    """The limits of something that may be asked as much as it can bear from the start."""
    return PaceLimits(max_concurrent=most, start=most)


class OneWay:
    """A router that sends everything the same way."""

    def __init__(self, transport: Transport, max_concurrent: int) -> None:
        self._route = Route(transport.name, transport, at_once(max_concurrent))

    def route(self, request: Request) -> Route:
        return self._route

    def transport(self, name: str, account: str) -> Transport | None:
        return self._route.transport if name == self._route.transport.name else None

    async def close(self) -> None:
        return


class ByProvider:
    """A router that goes by the part of a model string before the slash."""

    def __init__(self, max_concurrent: int) -> None:
        self._routes = {
            "scripted": Route("scripted", Scripted(registered), at_once(max_concurrent)),
            "emulated": Route("emulated", Scripted(_emulated, name="emulated"), at_once(max_concurrent)),
        }

    def route(self, request: Request) -> Route:
        provider, slash, _ = request.model.partition("/")
        if not slash:
            raise SettingsError(f"model {request.model!r}: write it as provider/model")
        if provider == "emulated":
            _check_emulated(request.model)
        if provider not in self._routes:
            known = ", ".join(self._routes)
            raise SettingsError(f"model {request.model!r}: no provider {provider!r} is set up (there are: {known})")
        return self._routes[provider]

    def transport(self, name: str, account: str) -> Transport | None:
        return next((route.transport for route in self._routes.values() if route.transport.name == name), None)

    async def close(self) -> None:
        return


def _check_emulated(model: str) -> None:
    """Find out about a wrong name before anything is sent."""
    from groundswell.emulator import in_process

    in_process.known(model)


def _emulated(request: Request, sample: int) -> Reply | Embedding:
    from groundswell.emulator import in_process  # its vocabulary is read only where it is asked

    return in_process.answer(request, sample)


def open(
    store: str | Path = "groundswell.db",
    *,
    script: Script | None = None,
    transport: Transport | None = None,
    router: Router | None = None,
    max_concurrent: int = 256,
    options: RunOptions | None = None,
    prices: Prices | None = None,
    listeners: Sequence[Listener] = (),
    clock: Clock | None = None,
) -> Engine:
    """An engine on a store, to be used as `async with groundswell.open("runs.db") as engine`.

    Models are reached by their `provider/model` strings. A test gives a `script` (a function that answers for
    all models, and is retried without waiting), a `transport`, or a `router` of its own instead.
    """
    from groundswell.store.journal import Store  # brings SQLAlchemy, which is slow to import

    if max_concurrent < 1:
        raise SettingsError(f"max_concurrent {max_concurrent}: at least one ask must be in flight")
    if script is not None:
        transport = Scripted(script)
        options = options or RunOptions(retry=RetryPolicy(first_wait=0.0, patience=0.0))
    if transport is not None:
        router = OneWay(transport, max_concurrent)
    return Engine(
        Store(store),
        router or ByProvider(max_concurrent),
        clock or LoopClock(),
        options=options,
        prices=prices,
        listeners=listeners,
    )
