"""Shares the limits of accounts with other processes that use the same store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from groundswell.engine.ports import Clock, ShareTable
from groundswell.engine.rate_limit import Allowance
from groundswell.errors import StoreError

EVERY = 0.25
"""Seconds after which the shares of accounts in use are looked at again."""


class SharedLimits:
    """The accounts that the runs of an engine use, and how much of each they may.

    `wanted` says how many requests there are for an account, `changed` is told when a share has changed.
    """

    def __init__(
        self,
        table: ShareTable,
        clock: Clock,
        wanted: Callable[[Allowance], int],
        changed: Callable[[Allowance], None],
    ) -> None:
        self._table = table
        self._clock = clock
        self._wanted = wanted
        self._changed = changed
        self._joined: dict[str, Allowance] = {}
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="groundswell-shares")

    def join(self, limiter: Hashable, allowance: Allowance) -> None:
        """Take a share of an account, before its first request is sent."""
        name = str(limiter)
        if name in self._joined:
            return
        self._joined[name] = allowance
        slots = self._table.take(name, 1, allowance.in_flight, allowance.limits.max_concurrent)
        allowance.set_share(self, slots, self._clock.now())
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._renew())

    async def close(self) -> None:
        """Give the shares back."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            await self._call(self._table.leave)  # after what is under way
        self._thread.shutdown()
        for allowance in self._joined.values():
            allowance.set_share(self, None, self._clock.now())

    async def _call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function of the table on a thread that nobody else occupies."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *given))

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            for name, allowance in list(self._joined.items()):
                whole, before = allowance.limits.max_concurrent, allowance.most
                # Others may only have what this process cannot use meanwhile.
                using = max(allowance.in_flight, before)
                try:
                    slots = await self._call(self._table.take, name, self._wanted(allowance), using, whole)
                except StoreError:
                    continue  # runs find out by themselves; until then everybody keeps what he has
                allowance.set_share(self, slots, self._clock.now())
                if allowance.most != before:
                    self._changed(allowance)
