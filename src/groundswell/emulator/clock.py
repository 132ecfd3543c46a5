"""The emulator's clock: the time of batches and time stamps. It may run fast and may be moved forward.

Everything that a client waits for in its own time (latency, rate limits, Retry-After) stays in real seconds, because
the client does not use this clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LATEST = 190_000_000_000.0
"""The clock stops here, in the year 7990: dates beyond 9999 cannot be written, and batches need some time after it."""


class EmulatedClock:
    """Seconds since 1970 that pass `speed` times as fast as real ones, and never go back."""

    def __init__(self, speed: float = 1.0, real: Callable[[], float] = time.time) -> None:
        self._real = real
        self._since = real()
        self._at = self._since
        self._speed = speed
        self._as_of: float | None = None

    @property
    def speed(self) -> float:
        """Emulated seconds per real second."""
        return self._speed

    def now(self) -> float:
        """The emulated time."""
        if self._as_of is not None:
            return self._as_of
        real = self._real()
        self._at = min(LATEST, self._at + max(0.0, real - self._since) * self._speed)
        self._since = real
        return self._at

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self._at = min(LATEST, self.now() + max(0.0, seconds))

    @contextmanager
    def as_of(self, when: float) -> Iterator[None]:
        """Within the block, the clock shows another time: that of an action that is done late."""
        self._as_of = when
        try:
            yield
        finally:
            self._as_of = None

    def run_at(self, speed: float) -> None:
        """Change the speed from now on; 0 stops the clock."""
        self.now()
        self._speed = speed

    def real_seconds_until(self, when: float) -> float | None:
        """Real seconds until an emulated time; None if it will not come by itself."""
        left = when - self.now()
        if left <= 0:
            return 0.0
        if when > LATEST:
            return None
        return left / self._speed if self._speed else None
