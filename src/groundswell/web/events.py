"""Server-sent events: the progress of a run until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from groundswell.errors import RunNotFound, StoreError
from groundswell.web.envelope import NO_DISK, ApiError, log
from groundswell.web.schema import Responses
from groundswell.web.services import Services

EVERY = 0.3
PARTS_EVERY = 1.0
HEARTBEAT = 15.0
EVENTS = "text/event-stream"
EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
DECLARED: Responses = {
    200: {
        "description": "A stream of events: `progress` on every change, `end` at the end.",
        "content": {EVENTS: {"schema": EVENT}},
    }
}


class Moment(NamedTuple):
    """The current data, and whether it is final."""

    data: Any
    over: bool


class Versioned(NamedTuple):
    """A part of a page that is only sent when its version changes, whatever its HTML is."""

    html: str
    version: object


class EventStream(StreamingResponse):
    """A stream that is counted as open while it lasts."""

    def __init__(self, services: Services, body: AsyncIterator[bytes]) -> None:
        super().__init__(self._counted_body(body), media_type=EVENTS, headers={"X-Accel-Buffering": "no"})
        self._services = services
        self._counted = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._count(1)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._count(-1)

    async def _counted_body(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in body:
            yield event
        self._count(-1)  # before the client can see that the stream has ended

    def _count(self, change: int) -> None:
        if self._counted == (change < 0):
            self._counted = change > 0
            self._services.streams += change


def stream(services: Services, look: Callable[[], Moment]) -> EventStream:
    """Events about the data that `look` returns. It raises `RunNotFound` after a deletion."""
    _refuse_too_many(services)
    look()
    sent = b""

    def progress(data: Any) -> bytes | None:
        nonlocal sent
        before, sent = sent, msgspec.json.encode(data)
        return _event("progress", sent) if sent != before else None

    return EventStream(services, _events(services, look, EVERY, progress, msgspec.json.encode))


def part_stream(services: Services, key: str, look: Callable[[], Moment]) -> EventStream:
    """Parts of a page, as HTML by id: `parts` with those that have changed, `end` when nothing more will change.

    All viewers of a page share what `look` returns, so one more viewer costs little. `key` says which page it is.
    """
    _refuse_too_many(services)
    sent: dict[str, object] = {}

    def parts(data: dict[str, str | Versioned]) -> bytes | None:
        changed = {name: made for name, made in data.items() if sent.get(name) != _version(made)}
        if not changed:
            return None
        sent.update({name: _version(made) for name, made in changed.items()})
        html = {name: made if isinstance(made, str) else made.html for name, made in changed.items()}
        return _event("parts", msgspec.json.encode(html))

    def shared() -> Moment:
        return services.cached(key, look, seconds=PARTS_EVERY)

    return EventStream(services, _events(services, shared, PARTS_EVERY, parts, lambda _: b"{}"))


def _refuse_too_many(services: Services) -> None:
    if services.streams >= services.settings.max_streams:
        raise ApiError(429, f"{services.streams} streams are already open: close one, or poll instead")


def _version(made: str | Versioned) -> object:
    return made if isinstance(made, str) else made.version


async def _events(
    services: Services,
    look: Callable[[], Moment],
    every: float,
    change: Callable[[Any], bytes | None],
    last: Callable[[Any], bytes],
) -> AsyncIterator[bytes]:
    """The events that `change` makes of new data, and an `end` with what `last` makes of the final data.

    The data are read from the store, so any process may work on the run.
    """
    silent = 0.0
    while not services.closing.is_set():
        try:
            data, over = look()
        except RunNotFound:
            yield _event("end", msgspec.json.encode({"status": "deleted"}))
            return
        except StoreError as error:  # the response has started, so its status cannot change
            log.error("%s: %s", type(error).__name__, error)
            yield _event("end", msgspec.json.encode({"status": "error", "message": NO_DISK}))
            return
        if (event := change(data)) is not None:
            yield event
            silent = 0.0
        elif silent >= HEARTBEAT:
            yield b": still there\n\n"
            silent = 0.0
        if over:
            yield _event("end", last(data))
            return
        await _pause(services.closing, every)
        silent += every


async def _pause(closing: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(closing.wait(), seconds)
    except TimeoutError:
        pass


def _event(name: str, body: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + body + b"\n\n"
