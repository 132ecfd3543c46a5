"""Models that are Python functions: for tests, demos and dry runs.

A function registered with `@scripted_model("echo")` answers to the model string `scripted/echo`; a test may
also give one function for all models to `groundswell.open(script=...)`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from groundswell.engine.records import Absent, AskId, Found, Intent, Item, Receipt, Settled, Undecided, Wave
from groundswell.errors import SettingsError
from groundswell.program.request import Embedding, Fault, Reply, Request

Answer = Reply | Embedding | Fault | str
Script = Callable[[Request], Answer | Awaitable[Answer]]
F = TypeVar("F", bound=Callable[[Any], Answer | Awaitable[Answer]])

_MODELS: dict[str, Script] = {}


def scripted_model(name: str) -> Callable[[F], F]:
    """Register a function, plain or async, as the model `scripted/NAME`."""

    def register(script: F) -> F:
        _MODELS[f"scripted/{name}"] = script
        return script

    return register


def registered(request: Request) -> Answer | Awaitable[Answer]:
    """The script that answers with the model that the request names."""
    script = _MODELS.get(request.model)
    if script is None:
        known = ", ".join(sorted(_MODELS)) or "none"
        raise SettingsError(f"model {request.model!r}: no such scripted model (registered: {known})")
    return script(request)


class Scripted:
    """Answers every request by calling a function; a string counts as a reply's text."""

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        barrier: bool = False,
        max_wave: int = 256,
        cached: bool = False,
    ) -> None:
        self.name = name
        self.barrier = barrier
        self.max_wave = max_wave
        self.cached = cached
        self._script = script
        self._sent: dict[int, tuple[Item, ...]] = {}

    async def dispatch(self, wave: Wave) -> Receipt:
        self._sent[wave.id] = wave.items
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        waiting: list[asyncio.Task[Settled]] = []
        for ask, request, _ in self._sent.pop(intent.id):
            answer = self._script(request)
            if inspect.isawaitable(answer):
                waiting.append(asyncio.create_task(_later(ask, answer)))
            else:
                yield _settle(ask, answer)
        try:
            for done in asyncio.as_completed(waiting):
                yield await done
        finally:
            for task in waiting:
                task.cancel()

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        return Absent(perhaps_paid=True)


async def _later(ask: AskId, answer: Awaitable[Answer]) -> Settled:
    return _settle(ask, await answer)


def _settle(ask: AskId, answer: Answer) -> Settled:
    return Settled(ask, Reply(answer) if isinstance(answer, str) else answer)
