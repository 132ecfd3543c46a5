"""What the tests of batches share: a clock that jumps and takes the emulator along, waves, and what becomes of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from groundswell.emulator.server import Threaded
from groundswell.engine.records import AskId, BatchInfo, Intent, Item, Receipt, Settled, Wave
from groundswell.program.request import Chat, Embed, Request, Settlement, user
from groundswell.providers.accounts.account import Account, Key
from groundswell.providers.registry import WIRE_FORMATS
from groundswell.transports.batch import BatchTransport
from tests.emulator.emulated import EMULATED
from tests.transports.little import Got, answer

T = TypeVar("T")
KEY = "sk-of-a-test-and-of-no-worth"
FIRST = 1 << 32
KINDS = [name for name, wire in WIRE_FORMATS.items() if wire.batch is not None and name in EMULATED]
"""The wire formats with batches that the emulator speaks."""


class MovedClock:
    """Whoever waits by it waits no time: it moves on, and with it the emulator's clock."""

    def __init__(self, emulator: Threaded | None = None) -> None:
        self._emulator = emulator
        self._start = time.time()
        self._now = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._start + self._now

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        self.pauses.append(when - self._now)
        self.move(when - self._now)
        return asyncio.get_running_loop().call_soon(then).cancel

    def move(self, seconds: float) -> None:
        """Let time pass."""
        if seconds > 0:
            self._now += seconds
            if self._emulator is not None:
                self._emulator.advance(seconds)


class Seen:
    """Keeps what a transport tells of its batches."""

    def __init__(self) -> None:
        self.all: list[BatchInfo] = []

    def __call__(self, info: BatchInfo) -> None:
        self.all.append(info)

    @property
    def states(self) -> list[str]:
        """The states that batches came to, without those that repeat."""
        said = [info.state for info in self.all]
        return [state for at, state in enumerate(said) if at == 0 or said[at - 1] != state]


class Scene:
    """One way of batches, against one address."""

    def __init__(self, kind: str, url: str, emulator: Threaded | None = None, **settings: Any) -> None:
        self.dialect = kind
        self.model = EMULATED[self.dialect]
        given: dict[str, Any] = {"name": "box", "dialect": self.dialect, "endpoints": (url,), "key": Key(KEY)}
        self.account = Account(**{**given, **settings})
        self.clock = MovedClock(emulator)
        self.seen = Seen()

    def run(self, use: Callable[[BatchTransport], Coroutine[Any, Any, T]], **options: Any) -> T:
        """What comes of using a new transport."""

        async def main() -> T:
            async with AsyncExitStack() as stack:
                transport = BatchTransport(self.account, self.seen, clock=self.clock, **options)
                stack.push_async_callback(transport.close)
                return await use(transport)

        return asyncio.run(main())

    def wave(self, requests: int | Sequence[Request], number: int = 1, run: str = "a-run") -> Wave:
        """A wave that is sent now."""
        if isinstance(requests, int):
            requests = [Chat(self.model, (user(f"question {at}"),), max_tokens=9) for at in range(requests)]
        items = tuple(Item(AskId(FIRST + at, "0"), request, at) for at, request in enumerate(requests))
        asks = tuple(item.ask for item in items)
        return Wave(FIRST + number, run, "box", f"{self.dialect}_batch", asks, self.clock.wall(), items=items)

    def there_and_back(self, wave: Wave) -> dict[int, Settlement]:
        """Send a wave and collect it: what became of its asks, by their place in it."""
        return self.run(lambda transport: there_and_back(transport, wave))


async def there_and_back(transport: BatchTransport, wave: Wave) -> dict[int, Settlement]:
    """What becomes of a wave, by the place of its asks in it."""
    return await gathered(transport, wave, await transport.dispatch(wave))


async def gathered(transport: BatchTransport, intent: Intent, receipt: Receipt) -> dict[int, Settlement]:
    """What is collected, by the place of the ask in the wave; none comes twice."""
    return by_place(intent, [settled async for settled in transport.collect(intent, receipt)])


def by_place(intent: Intent, settled: Sequence[Settled]) -> dict[int, Settlement]:
    found = {intent.asks.index(one.ask): one.settlement for one in settled}
    assert len(found) == len(settled), "an ask was settled twice"
    return found


def forgotten(wave: Wave) -> Intent:
    """A wave as it is known after a crash: without its requests."""
    return Intent(wave.id, wave.run, wave.account, wave.transport, wave.asks, wave.at)


def embeds(model: str, count: int) -> list[Request]:
    """Requests for embeddings, of one text more each."""
    return [Embed(model, tuple(f"text {n}" for n in range(at + 1))) for at in range(count)]


def said(data: object, status: str = "200 OK") -> bytes:
    """An answer in JSON."""
    return answer(json.dumps(data).encode(), status, content_type="application/json")


class Scripted:
    """Answers by the method and the beginning of the path; of several answers the last one stays."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def __call__(self, got: Got) -> bytes | None:
        method, path, _ = got.line.split()
        found = [key for key in self.answers if f"{method} {path}".startswith(key)]
        given = self.answers[max(found, key=len)] if found else said({"error": {"message": "what?"}}, "404 Not Found")
        if isinstance(given, list):
            given = given.pop(0) if len(given) > 1 else given[0]
        return given(got) if callable(given) else given
