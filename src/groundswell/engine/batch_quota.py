"""What fits into a provider's batches and into its batch queue. Pure: time is passed in.

A batch has a maximum number of requests and bytes. A provider also limits its queue: OpenAI by the prompt tokens of a
model, Anthropic by the requests of an account. Conversations grow, so a wave that fits at the first turn may be too
large at the eighth. A batch takes room in the queue when it is created and returns it when it has ended. If a provider
refuses a batch, the limit is learnt from that.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, inf
from typing import Literal, NamedTuple

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 900.0
"""Shortest and longest delay in seconds before a full queue is tried again, unless one of our batches ends first."""
LESS, MORE = 0.7, 1.25
"""Factors by which an unknown limit is lowered after a refusal, and raised with each accepted batch."""
PAUSES = 2
"""Number of refusals because of load after which the batch counts as too large."""
LEARNS = 0.02
"""Weight of one reply in the ratio of real to estimated prompt tokens."""


class Capacity(NamedTuple):
    """Maximum size of a batch and of the provider's queue, which counts tokens or requests."""

    requests: int
    bytes: int
    queue: int | None = None
    counts: Literal["tokens", "requests"] = "tokens"


class Load(NamedTuple):
    """Size of a request: bytes in a batch, and prompt tokens."""

    bytes: int
    tokens: int


class ProviderQueue:
    """What we have in a provider's queue, and the limit of the queue as far as it is known.

    A limit that the provider reported is the maximum. The assumed limit may be lower, since others use the queue too.
    """

    def __init__(self, limit: int | None) -> None:
        self.told = limit
        self.limit: float = inf if limit is None else limit
        self.taken = 0
        self.not_before = 0.0
        self.pauses = 0
        self._pause = FIRST_PAUSE

    def left(self, now: float) -> float:
        """How much may be sent now."""
        return 0.0 if now < self.not_before else max(0.0, self.limit - self.taken)

    def take(self, amount: int) -> None:
        """A request is sent in a batch."""
        self.taken += amount

    def free(self, amount: int) -> None:
        """A request of a batch has ended: its room is free."""
        self.taken -= amount
        self.not_before = 0.0

    def refused(self, amount: int, told: int | None, now: float) -> None:
        """A batch was refused. Its room has been returned already."""
        self.told = told or self.told
        asked = self.taken + amount
        explained = self.told is not None and asked > self.told
        self.limit = float(self.told or inf) if explained else max(self.taken, LESS * asked)
        self.pause(0.0, now)

    def pause(self, at_least: float, now: float) -> None:
        """Send nothing for a while, at most LONGEST_PAUSE: a batch that is refused costs nothing."""
        self.pauses += 1
        self.not_before = now + max(self._pause, min(at_least, LONGEST_PAUSE))
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def accepted(self) -> None:
        """A batch was accepted."""
        self.pauses = 0
        self._pause = FIRST_PAUSE
        self.limit = min(self.told or inf, self.limit * MORE)


class BatchQuota:
    """The room for the batches of one account and model.

    seconds   how long its batches take, based on recent slow ones
    shut      why no more batches are created; None if they are
    """

    def __init__(self, capacity: Capacity, room: ProviderQueue) -> None:
        self.capacity = capacity
        self._room = room
        self._ratio = 1.0
        self.seconds: float | None = None
        self.shut: str | None = None

    def fit(self, loads: Iterable[Load], now: float) -> int:
        """How many of the next requests fit into a batch now. One that exceeds the limit may be sent alone."""
        left, alone = self._room.left(now), not self._room.taken and now >= self._room.not_before
        count, weight, amount = 0, 0, 0
        for load in loads:
            weight, amount = weight + load.bytes, amount + self._amount(load)
            full = count == self.capacity.requests or weight > self.capacity.bytes or amount > left
            if full and (count or not alone):
                break
            count += 1
        return count

    @property
    def not_before(self) -> float:
        """When to try again after a refusal."""
        return self._room.not_before

    @property
    def empty(self) -> bool:
        """Whether nothing of ours is in the queue."""
        return not self._room.taken

    def take(self, load: Load) -> int:
        """A request is sent in a batch. Returns the room that it takes."""
        amount = self._amount(load)
        self._room.take(amount)
        return amount

    def free(self, amount: int) -> None:
        """A request has ended."""
        self._room.free(amount)

    def refused(self, amount: int, told: int | None, now: float) -> None:
        """The queue had no room for a batch. Its room has been returned already."""
        self._room.refused(amount, told, now)

    def limited(self, amount: int, retry_after: float | None, now: float) -> None:
        """The provider is overloaded or wants fewer batches. If that persists, the batch counts as too large."""
        if self._room.pauses >= PAUSES:
            self._room.refused(amount, None, now)
        else:
            self._room.pause(retry_after or 0.0, now)

    def worked(self, seconds: float) -> None:
        """A batch was processed in this many seconds."""
        self._room.accepted()
        self.seconds = seconds if self.seconds is None else max(seconds, (seconds + self.seconds) / 2)

    def counted(self, load: Load, tokens: int) -> None:
        """Learn from the number of prompt tokens that the provider counted for a request."""
        if self.capacity.counts == "tokens" and load.tokens and tokens:
            self._ratio += LEARNS * (min(tokens / load.tokens, 10.0) - self._ratio)

    def _amount(self, load: Load) -> int:
        return max(1, ceil(load.tokens * self._ratio)) if self.capacity.counts == "tokens" else 1
