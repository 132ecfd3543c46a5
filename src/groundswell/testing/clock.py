"""A clock that stands still until everything waits for it, and then jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol, TypeVar

from groundswell.engine.ports import Clock

T = TypeVar("T")


class Working(Protocol):
    """Something with a thread of its own, such as a store."""

    @property
    def busy(self) -> bool:
        """Whether the thread is working and will wake the event loop when it is done."""
        ...


EPOCH = 1_800_000_000.0


class FakeClock:
    """Time that a test controls: `advance` it by hand, or `run` a program and let it jump.

    def test_it() -> None:
        clock = FakeClock()
        clock.run(main(clock))      # instead of asyncio.run; a poll that waits an hour takes no time
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._order = count()
        self._timers: list[tuple[float, int]] = []
        self._due: dict[int, Callable[[], None]] = {}
        self._watched: list[Working] = []

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return EPOCH + self._now

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        number = next(self._order)
        heappush(self._timers, (when, number))
        self._due[number] = then

        def cancel() -> None:
            self._due.pop(number, None)

        return cancel

    def advance(self, seconds: float) -> None:
        """Let time pass, and call everything that becomes due, in order."""
        until = self._now + seconds
        while (due := self._next()) is not None and due <= until:
            self._fire()
        self._now = until

    def jump(self) -> bool:
        """Go to the next timer and call everything that is due then; returns whether there was one."""
        due = self._next()
        if due is None:
            return False
        while self._next() == due:
            self._fire()
        return True

    def watch(self, working: Working) -> None:
        """Do not jump while this is busy."""
        self._watched.append(working)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Like `asyncio.run`, with time jumping to the next timer whenever nothing else can run."""
        with asyncio.Runner(loop_factory=lambda: _JumpingLoop(self)) as runner:
            return runner.run(work)

    @property
    def watching(self) -> bool:
        """Whether something that is watched is busy."""
        return any(working.busy for working in self._watched)

    def _next(self) -> float | None:
        while self._timers and self._timers[0][1] not in self._due:
            heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def _fire(self) -> None:
        when, number = heappop(self._timers)
        self._now = max(self._now, when)
        self._due.pop(number)()


class _JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop that moves a fake clock when it would otherwise wait forever.

    A loop waits without a time limit exactly when no callback is ready and no real timer is set. It waits for work in
    threads; only then does the clock jump.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.in_threads = 0
        super().__init__(_JumpingSelector(clock, self))

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        self.in_threads += 1
        future: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._back)
        return future

    def _back(self, _: asyncio.Future[Any]) -> None:
        self.in_threads -= 1


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, clock: FakeClock, loop: _JumpingLoop) -> None:
        super().__init__()
        self._clock = clock
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(0)
            if ready:
                return ready
            if not self._loop.in_threads and not self._clock.watching and self._clock.jump():
                return []
        return super().select(timeout)


async def pause(clock: Clock, seconds: float) -> None:
    """Wait by a clock, real or fake."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancel = clock.call_at(clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
    try:
        await over
    finally:
        cancel()
