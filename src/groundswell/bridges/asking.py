"""Requests from synchronous code of other packages, which may call from several threads. Each is sent once."""

from __future__ import annotations

import asyncio
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from groundswell.engine.outcome import Outcome
from groundswell.portal import SyncRun
from groundswell.program.request import Chat, Reply, canonical
from groundswell.program.traps import Ask
from groundswell.program.trial import Program, Trial, program

S = TypeVar("S")
R = TypeVar("R")


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of a trial: one request. Equal requests with another `sample` may have another reply."""

    request: Chat
    sample: str = ""


@program("bridges/ask", version=1)
async def ask(trial: Trial, spec: Asked) -> Reply:
    """Send one request."""
    reply: Reply = await Ask(spec.request)
    return reply


class Trials:
    """The trials of a run, by their specs. A spec that was submitted before has the outcome that it had then.

    The methods are coroutines of the run's event loop: `run.wait` calls them from any thread.

    `gather`: seconds without a new trial before trials are started, so that those of several threads share a batch.
    """

    def __init__(self, run: SyncRun, gather: float = 0.0) -> None:
        self.run = run
        self._gather = gather
        self._latest = 0.0
        self._begun: dict[str, asyncio.Task[Outcome[Any]]] = {}

    async def outcome(self, program: Program[S, R], spec: S) -> Outcome[R]:
        """The outcome of a program on a spec."""
        key = f"{program.name}/{blake2b(canonical(spec), digest_size=12).hexdigest()}"
        task = self._begun.get(key)
        if task is None:
            task = self._begun[key] = asyncio.ensure_future(self._submitted(program, spec, key))
        return await asyncio.shield(task)  # a caller that gives up must not cancel it for others

    async def reply(self, request: Chat, sample: str = "") -> Reply:
        """The reply to a request. Raises `TrialMissing` if it failed."""
        return (await self.outcome(ask, Asked(request, sample))).unwrap()

    async def _submitted(self, program: Program[S, R], spec: S, key: str) -> Outcome[R]:
        run = self.run.run
        if self._gather and not await run.journal.find([key]):
            self._latest = run.loop.time()
            while (left := self._latest + self._gather - run.loop.time()) > 0:
                await asyncio.sleep(left)
        return await run.submit(program, spec, key=key)
