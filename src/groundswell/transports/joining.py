"""Waves of embeddings for a model that works on one call at a time: those that wait for it go into its next call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from groundswell.engine.records import Item, Settled

Call = Callable[[Sequence[Item]], Awaitable[list[Settled]]]
"""Settles asks, each once, in their order."""


class Joining:
    """Whoever finds the model free takes along what the others wait for."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._free = asyncio.Lock()
        self._waiting: dict[asyncio.Future[list[Settled]], Sequence[Item]] = {}

    async def settled(self, items: Sequence[Item]) -> list[Settled]:
        """What comes of the asks of one wave."""
        mine: asyncio.Future[list[Settled]] = asyncio.get_running_loop().create_future()
        self._waiting[mine] = items
        try:
            async with self._free:
                if not mine.done():
                    await self._take_along()
        finally:
            self._waiting.pop(mine, None)
        return mine.result()

    async def _take_along(self) -> None:
        """One call for all who wait. If it breaks or is given up, the others still wait, and make their own."""
        taken = dict(self._waiting)
        found = await self._call([item for items in taken.values() for item in items])
        at = 0
        for future, items in taken.items():
            if not future.done():
                future.set_result(found[at : at + len(items)])
            self._waiting.pop(future, None)
            at += len(items)
