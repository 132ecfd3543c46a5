"""Outcomes on their way from the trials of one `map` to its driver."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from groundswell.engine.context import Deliver
from groundswell.engine.outcome import Outcome


class Arrivals:
    """The outcomes of one `map`, handed out in the order of its specs or as they come."""

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._ready: deque[Outcome[Any]] = deque()
        self._early: dict[int, Outcome[Any]] = {}
        self._next = 0
        self._placed = 0
        self._taken = 0
        self._exhausted = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def due(self) -> int:
        """How many outcomes were promised and not taken yet."""
        return self._placed - self._taken

    def expect(self) -> Deliver:
        """A place for the next trial; call what is returned with its outcome."""
        place, self._placed = self._placed, self._placed + 1
        return Place(self, place)

    def put(self, place: int, outcome: Outcome[Any]) -> None:
        """An outcome for a place."""
        if not self._ordered:
            self._ready.append(outcome)
        elif place == self._next:
            self._ready.append(outcome)
            self._next += 1
            while self._early and (following := self._early.pop(self._next, None)) is not None:
                self._ready.append(following)
                self._next += 1
        else:
            self._early[place] = outcome
            return
        self._wake()

    def exhaust(self) -> None:
        """No more trials will be placed."""
        self._exhausted = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """There will be no more outcomes."""
        self._error = self._error or error
        self._wake()

    async def next(self) -> Outcome[Any] | None:
        """The next outcome, or None after the last."""
        while not self._ready:
            if self._error is not None:
                raise self._error
            if self._exhausted and self._taken == self._placed:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._taken += 1
        return self._ready.popleft()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Place:
    """Where the outcome of one trial of a `map` goes."""

    __slots__ = ("_number", "arrivals")

    def __init__(self, arrivals: Arrivals, number: int) -> None:
        self.arrivals = arrivals
        self._number = number

    def __call__(self, outcome: Outcome[Any]) -> None:
        self.arrivals.put(self._number, outcome)
