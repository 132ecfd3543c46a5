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
    return EventStream(services, _told(services, look))


def part_stream(services: Services, key: str, look: Callable[[], Moment]) -> EventStream:
    """Parts of a page, as HTML by id: `parts` with those that have changed, `end` when nothing more will change.

    All viewers of a page share what `look` returns, so one more viewer costs little. `key` says which page it is.
    """
    _refuse_too_many(services)
    return EventStream(services, _changed_parts(services, key, look))


def _refuse_too_many(services: Services) -> None:
    if services.streams >= services.settings.max_streams:
        raise ApiError(429, f"{services.streams} streams are already open: close one, or poll instead")


def _version(made: str | Versioned) -> object:
    return made if isinstance(made, str) else made.version


async def _changed_parts(services: Services, key: str, look: Callable[[], Moment]) -> AsyncIterator[bytes]:
    sent: dict[str, object] = {}
    silent = 0.0
    while not services.closing.is_set():
        try:
            parts, over = services.shared_look(key, PARTS_EVERY, look)
        except (RunNotFound, StoreError) as error:
            log.info("the stream %s ends: %s", key, error)
            yield _event("end", b"{}")
            return
        changed = {name: made for name, made in parts.items() if sent.get(name) != _version(made)}
        if changed:
            html = {name: made if isinstance(made, str) else made.html for name, made in changed.items()}
            yield _event("parts", msgspec.json.encode(html))
            sent.update({name: _version(made) for name, made in changed.items()})
            silent = 0.0
        elif silent >= HEARTBEAT:
            yield b": still there\n\n"
            silent = 0.0
        if over:
            yield _event("end", b"{}")
            return
        await _pause(services.closing, PARTS_EVERY)
        silent += PARTS_EVERY


async def _told(services: Services, look: Callable[[], Moment]) -> AsyncIterator[bytes]:
    """The events. They are read from the store, so any process may work on the run."""
    last, silent = b"", 0.0
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
        body = msgspec.json.encode(data)
        if body != last:
            yield _event("progress", body)
            last, silent = body, 0.0
        elif silent >= HEARTBEAT:
            yield b": still there\n\n"
            silent = 0.0
        if over:
            yield _event("end", body)
            return
        await _pause(services.closing, EVERY)
        silent += EVERY


async def _pause(closing: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(closing.wait(), seconds)
    except TimeoutError:
        pass


def _event(name: str, body: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + body + b"\n\n"
