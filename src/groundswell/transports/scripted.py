"""Models that are Python functions: for tests, demos and dry runs.

A function registered with `@scripted_model("echo")` answers to the model string `scripted/echo`; a test may
also give one function for all models to `groundswell.open(script=...)`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from groundswell.engine.records import Absent, AskId, Found, Intent, Item, Receipt, Settled, Undecided, Wave
from groundswell.errors import SettingsError
from groundswell.program.request import Embedding, Fault, Reply, Request

Answer = Reply | Embedding | Fault | str
Given = Answer | Awaitable[Answer]
Script = Callable[..., Given]
F = TypeVar("F", bound=Script)

_MODELS: dict[str, Script] = {}


def scripted_model(name: str) -> Callable[[F], F]:
    """Register a function as the model `scripted/NAME`.

    It takes the request and, if it likes, a number that tells equal requests of different trials apart and is
    the same whenever a trial runs again: seed a `random.Random` with it. It may be async.
    """

    def register(script: F) -> F:
        _MODELS[f"scripted/{name}"] = script
        return script

    return register


def registered(request: Request, sample: int) -> Given:
    """The answer of the scripted model that the request names."""
    script = _MODELS.get(request.model)
    if script is None:
        known = ", ".join(sorted(_MODELS)) or "none"
        raise SettingsError(f"model {request.model!r}: no such scripted model (registered: {known})")
    return script(request, sample) if _wants_sample(script) else script(request)


def _wants_sample(script: Script) -> bool:
    return len(inspect.signature(script).parameters) > 1


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
        self.vectorised = False
        self.ready = True
        self.models: dict[str, str] = {}
        self._script = script
        self._wants_sample = _wants_sample(script)
        self._sent: dict[tuple[int, tuple[AskId, ...]], tuple[Item, ...]] = {}

    async def dispatch(self, wave: Wave) -> Receipt:
        self._sent[wave.id, wave.asks] = wave.items
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        waiting: list[asyncio.Task[Settled]] = []
        for item in self._sent.pop((intent.id, intent.asks)):
            request = self._meant(item.request)
            answer = self._script(request, item.sample) if self._wants_sample else self._script(request)
            if not isinstance(answer, Answer) and inspect.isawaitable(answer):
                waiting.append(asyncio.create_task(_later(item.ask, answer)))
            else:
                yield _settle(item.ask, answer)
        try:
            for done in asyncio.as_completed(waiting):
                yield await done
        finally:
            for task in waiting:
                task.cancel()

    def _meant(self, request: Request) -> Request:
        """The request by the model's full name, where an alias stands for it in `models`."""
        full = self.models.get(request.model, request.model)
        return request if full == request.model else msgspec.structs.replace(request, model=full)

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        return Absent(perhaps_paid=True)


async def _later(ask: AskId, answer: Awaitable[Answer]) -> Settled:
    return _settle(ask, await answer)


def _settle(ask: AskId, answer: Any) -> Settled:
    reply = Reply(answer) if isinstance(answer, str) else answer
    if not isinstance(reply, Reply | Embedding | Fault) or (type(reply) is Reply and not isinstance(reply.text, str)):
        raise SettingsError(f"a scripted model must return text, a Reply, an Embedding or a Fault, not {answer!r}")
    return Settled(ask, reply)
