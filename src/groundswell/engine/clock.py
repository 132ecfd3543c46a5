"""The real clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class LoopClock:
    """The event loop's own monotonic time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_at(when, then).cancel
