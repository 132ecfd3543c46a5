"""The real clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class LoopClock:
    """Monotonic time, and the running event loop's timers."""

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_later(max(0.0, when - self.now()), then).cancel
