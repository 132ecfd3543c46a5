"""What fits into a provider's batches, and into its queue. Pure: time is passed in.

A batch holds so many requests and bytes. A provider also limits what may wait at once: OpenAI the prompt tokens of a
model, Anthropic the requests of an account. Conversations grow, so that a wave that fits at the first turn may be too
much at the eighth: room is taken when a batch is made and given back when it has ended, and a provider that refuses one
teaches us what its limit is.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, inf
from typing import Literal, NamedTuple

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 900.0
"""Seconds until a queue that was full is tried again, if nothing of ours ends before."""
LESS, MORE = 0.7, 1.25
"""What is left of a limit that must be guessed after a refusal, and how it grows with each batch that is taken."""
PAUSES = 2
"""So often a refusal for load is taken for that."""
LEARNS = 0.02
"""How much one reply tells of how many tokens there are in what we take for one."""


class Capacity(NamedTuple):
    """What one batch may hold, and how much may wait at the provider, which counts tokens or requests."""

    requests: int
    bytes: int
    queue: int | None = None
    counts: Literal["tokens", "requests"] = "tokens"


class Load(NamedTuple):
    """What a request takes: bytes of a batch, and prompt tokens."""

    bytes: int
    tokens: int


class ProviderQueue:
    """How much of ours may wait in one queue, as far as we know, and how much does.

    `limit` is None while nothing is known. What the provider told stays the most; what is assumed may be less, since
    others use the queue too.
    """

    def __init__(self, limit: int | None) -> None:
        self.told = limit
        self.limit: float = inf if limit is None else limit
        self.taken = 0
        self.not_before = 0.0
        self.pauses = 0
        self._pause = FIRST_PAUSE

    def left(self, now: float) -> float:
        """How much more may be sent now."""
        return 0.0 if now < self.not_before else max(0.0, self.limit - self.taken)

    def take(self, amount: int) -> None:
        """Something leaves in a batch."""
        self.taken += amount

    def free(self, amount: int) -> None:
        """Something of a batch has ended, and there is room for other things."""
        self.taken -= amount
        self.not_before = 0.0

    def refused(self, amount: int, told: int | None, now: float) -> None:
        """A batch was refused; what it took has been given back already."""
        self.told = told or self.told
        asked = self.taken + amount
        explained = self.told is not None and asked > self.told
        self.limit = float(self.told or inf) if explained else max(self.taken, LESS * asked)
        self.pause(0.0, now)

    def pause(self, at_least: float, now: float) -> None:
        """Nothing is taken for a while, which tells nothing of limits."""
        self.pauses += 1
        self.not_before = now + max(self._pause, at_least)
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def accepted(self) -> None:
        """A batch was taken in."""
        self.pauses = 0
        self._pause = FIRST_PAUSE
        self.limit = min(self.told or inf, self.limit * MORE)


class BatchQuota:
    """The room for the batches of one account and model.

    seconds   how long its batches take, going by the slow ones of late
    shut      why no batches are made any more, if that is so
    """

    def __init__(self, capacity: Capacity, room: ProviderQueue) -> None:
        self.capacity = capacity
        self._room = room
        self._ratio = 1.0
        self.seconds: float | None = None
        self.shut: str | None = None

    def fit(self, loads: Iterable[Load], now: float) -> int:
        """How many of the next requests fit into a batch now. What no queue has room for may try it by itself."""
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
        """A request leaves in a batch; gives what is to be given back for it."""
        amount = self._amount(load)
        self._room.take(amount)
        return amount

    def free(self, amount: int) -> None:
        """A request has come back."""
        self._room.free(amount)

    def refused(self, amount: int, told: int | None, now: float) -> None:
        """A batch found no room in the queue; what it took has been given back."""
        self._room.refused(amount, told, now)

    def limited(self, amount: int, retry_after: float | None, now: float) -> None:
        """The provider wants fewer batches at a time, or has too much to do. If that goes on, this one is too large."""
        if self._room.pauses >= PAUSES:
            self._room.refused(amount, None, now)
        else:
            self._room.pause(retry_after or 0.0, now)

    def worked(self, seconds: float) -> None:
        """A batch was worked on, and took so long."""
        self._room.accepted()
        self.seconds = seconds if self.seconds is None else max(seconds, (seconds + self.seconds) / 2)

    def counted(self, load: Load, tokens: int) -> None:
        """How many tokens the provider says that the prompt of a request has."""
        if self.capacity.counts == "tokens" and load.tokens and tokens:
            self._ratio += LEARNS * (min(tokens / load.tokens, 10.0) - self._ratio)

    def _amount(self, load: Load) -> int:
        return max(1, ceil(load.tokens * self._ratio)) if self.capacity.counts == "tokens" else 1
