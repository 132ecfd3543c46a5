"""Models that are Python functions: for tests, demos and dry runs.

A function registered with `@scripted_model("echo")` answers as the model `scripted/echo`. A test may also pass one
function for all models to `groundswell.open(script=...)`.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from groundswell.engine.records import Absent, AskId, Found, Intent, Item, Receipt, Settled, Undecided, Wave
from groundswell.errors import SettingsError
from groundswell.program.request import Embedding, Fault, FaultKind, Reply, Request

Answer = Reply | Embedding | Fault | str
Given = Answer | Awaitable[Answer]
Script = Callable[..., Given]
F = TypeVar("F", bound=Script)

_MODELS: dict[str, Script] = {}

SLICE = 0.005
"""Seconds for which functions may compute on the event loop before other tasks get a turn."""


def scripted_model(name: str) -> Callable[[F], F]:
    """Register a function as the model `scripted/NAME`.

    The function takes the request and, optionally, a sample number. The number differs between equal requests of
    different trials and is the same whenever a trial runs again: seed a `random.Random` with it. It may be async.
    """

    def register(script: F) -> F:
        _MODELS[f"scripted/{name}"] = script
        return script

    return register


def find_script(model: str) -> Script:
    """The function of a model string; raises `SettingsError` if there is none."""
    script = _MODELS.get(model)
    if script is None:
        known = ", ".join(sorted(_MODELS)) or "none"
        raise SettingsError(
            f"model {model!r}: there is no scripted model with this name (registered: {known}); "
            f"import the module that registers it"
        )
    return script


def registered(request: Request, sample: int) -> Given:
    """The answer of the scripted model that the request names. If the function raises, the request fails."""
    script = find_script(request.model)
    try:
        answer = script(request, sample) if _wants_sample(script) else script(request)
    except Exception as error:  # noqa: BLE001  the edge of user code: its trial is missing, with the error as reason
        return _failed(request.model, error)
    return _awaited(request.model, answer) if inspect.isawaitable(answer) else answer


async def _awaited(model: str, answer: Awaitable[Answer]) -> Answer:
    try:
        return await answer
    except Exception as error:  # noqa: BLE001  the same edge
        return _failed(model, error)


def _failed(model: str, error: Exception) -> Fault:
    return Fault(FaultKind.BAD_REQUEST, f"{model} raised {type(error).__name__}: {error}")


def _wants_sample(script: Script) -> bool:
    return len(inspect.signature(script).parameters) > 1


class Slices:
    """Shares the event loop between functions that compute on it and all other tasks.

    All waves of a transport share one time slice. Once it is used up, each wave computes one reply per turn of the
    loop, in order.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._used = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Wait until the next reply may be computed."""
        if self._used < SLICE and not self._waiting:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append(future)
        if len(self._waiting) == 1:
            loop.call_soon(self._next)
        await future

    def compute(self, script: Script, *arguments: Any) -> Given:
        """Call a function and measure its time."""
        began = self._clock()
        try:
            return script(*arguments)
        finally:
            self._used += self._clock() - began

    def _next(self) -> None:
        """A new turn of the loop: the first waiting wave may compute."""
        self._used = 0.0
        future = self._waiting.popleft()
        if self._waiting:
            future.get_loop().call_soon(self._next)
        if not future.done():
            future.set_result(None)


class Scripted:
    """Answers every request by calling a function. A string becomes the reply's text."""

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        barrier: bool = False,
        max_wave: int = 256,
        cached: bool = False,
        clock: Callable[[], float] = time.perf_counter,
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
        self._slices = Slices(clock)
        self._sent: dict[tuple[int, tuple[AskId, ...]], tuple[Item, ...]] = {}

    async def dispatch(self, wave: Wave) -> Receipt:
        self._sent[wave.id, wave.asks] = wave.items
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        waiting: list[asyncio.Task[Settled]] = []
        for item in self._sent.pop((intent.id, intent.asks)):
            await self._slices.turn()
            request = self._meant(item.request)
            given = (request, item.sample) if self._wants_sample else (request,)
            answer = self._slices.compute(self._script, *given)
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
        """The request with the model's full name, if `models` has an alias for it."""
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
