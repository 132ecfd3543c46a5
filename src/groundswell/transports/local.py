"""Models that run inside this process, from weights on this machine. Read `Local` from top to bottom.

collect    the asks of a wave: chats at once, texts to embed combined (embeddings.py)
_ask       encode (providers/openai.py, the format of llama.cpp), run in a thread (llama.py), decode
POOL       the models in memory: each is loaded once per process, until the last engine that uses it is closed
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from groundswell.engine.records import Absent, AskId, Found, Intent, Item, Receipt, Settled, Undecided, Wave
from groundswell.program.request import Chat, Embed, Embedding, Fault, FaultKind, Reply, Request, Standing
from groundswell.providers.openai import OPENAI
from groundswell.transports.embeddings import count_texts, embed_together, group_requests
from groundswell.transports.in_process import ModelPool, Notice, in_thread
from groundswell.transports.llama import LONGEST_TEXT, CannotLoad, Llama
from groundswell.transports.weights import identity, short_name

SEEDS = (1 << 32) - 1
"""Seeds of llama.cpp are below this; this value means a random seed."""
PIECE = 16
"""Texts of a wave that go to llama.cpp at once. It reads them one by one and cannot be stopped before the last."""
JSON = {"content-type": "application/json"}
TOO_LONG = "too large to process"
SLOW = "answers one request at a time: on this machine, concurrent requests would change the replies"

POOL: ModelPool[Path, Llama] = ModelPool(identity, Llama)


class Local:
    """The transport of all local models of an engine. `models` maps each model string to its file."""

    name = "local"
    barrier = False
    cached = True
    vectorised = True
    ready = True
    max_wave = 256

    def __init__(self, notice: Notice | None = None) -> None:
        self.models: dict[str, Path] = {}
        self._notice = notice or (lambda account, model, what: None)
        self._taken: dict[Path, tuple[str, Llama]] = {}
        self._slow: set[Path] = set()
        self._sent: dict[tuple[int, tuple[AskId, ...]], tuple[Item, ...]] = {}

    async def dispatch(self, wave: Wave) -> Receipt:
        self._sent[wave.id, wave.asks] = wave.items
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        items = self._sent.pop((intent.id, intent.asks))
        chats = [asyncio.create_task(self._settled(item)) for item in items if isinstance(item.request, Chat)]
        embeds = [item for item in items if isinstance(item.request, Embed)]
        try:
            for group in group_requests(embeds, -(-count_texts(embeds) // PIECE)):
                for settled in await embed_together(group, self._at_once):
                    yield settled
            for chat in asyncio.as_completed(chats):
                yield await chat
        finally:
            for task in chats:
                task.cancel()

    async def adopt(self, intent: Intent) -> Found | Absent | Undecided:
        return Absent(perhaps_paid=True)

    async def close(self) -> None:
        """Release the models."""
        taken, self._taken = self._taken, {}
        for key, _ in taken.values():
            POOL.release(key)

    async def _at_once(self, request: Request) -> tuple[Reply | Embedding | Fault, Sequence[Standing]]:
        """One call for many texts, which have no seed."""
        return await self._ask(request, 0), ()

    async def _settled(self, item: Item) -> Settled:
        return Settled(item.ask, await self._ask(item.request, item.sample))

    async def _ask(self, request: Request, sample: int) -> Reply | Embedding | Fault:
        """Make one attempt."""
        path = self.models[request.model]
        body = encoded(request, sample, short_name(path))
        if isinstance(body, Fault):
            return body
        llama = self._llama(path)
        work = llama.embed if isinstance(request, Embed) else llama.chat
        try:
            status, answer = await in_thread(lambda stopped: work(body, stopped))
        except CannotLoad as error:
            return Fault(FaultKind.UNREACHABLE, str(error))
        except (ValueError, RuntimeError) as error:  # the error of llama.cpp for a request that it cannot take
            return Fault(FaultKind.BAD_REQUEST, f"llama.cpp: {error}")
        self._tell_slow(path, llama)
        return decoded(request, status, answer)

    def _llama(self, path: Path) -> Llama:
        taken = self._taken.get(path)
        if taken is None:
            taken = self._taken[path] = POOL.acquire(path)
            if taken[1].exact is None:
                self._notice(self.name, short_name(path), "loading the weights")
        return taken[1]

    def _tell_slow(self, path: Path, llama: Llama) -> None:
        if llama.exact is False and path not in self._slow:
            self._slow.add(path)
            self._notice(self.name, short_name(path), SLOW)


def encoded(request: Request, sample: int, name: str) -> dict[str, Any] | Fault:
    """Encode a request for llama.cpp.

    Without a seed, the sample number is used, so a repeated trial gets the same reply.
    """
    if isinstance(request, Embed) and request.dimensions is not None:
        return Fault(FaultKind.BAD_REQUEST, "dimensions: local models have vectors of a fixed size; remove it")
    if isinstance(request, Chat):
        seed = sample if request.seed is None else request.seed
        request = msgspec.structs.replace(request, seed=seed % SEEDS)
    call = OPENAI.encode(request, "local")
    if isinstance(call, Fault):
        return call
    body: dict[str, Any] = msgspec.json.decode(call.body)
    return {**body, "model": name}


def decoded(request: Request, status: int, answer: bytes) -> Reply | Embedding | Fault:
    """Decode an answer of llama.cpp."""
    settlement = OPENAI.decode(request, status, JSON, answer, time.time())
    if isinstance(settlement, Reply):  # the number of cached tokens varies between runs and must not be part of a reply
        return msgspec.structs.replace(settlement, usage=msgspec.structs.replace(settlement.usage, cached_tokens=0))
    if isinstance(settlement, Embedding):
        return settlement
    said = settlement.message.removeprefix(f"HTTP {status}: ")
    if TOO_LONG in said:
        return Fault(
            FaultKind.CONTEXT, f"a text is longer than the limit of {LONGEST_TEXT} tokens for embeddings: {said}"
        )
    return msgspec.structs.replace(settlement, message=f"llama.cpp: {said}")
