"""Rate limits as the providers implement them: token buckets. Pure: time is passed in."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

REQUESTS, TOKENS, INPUT, OUTPUT = "requests", "tokens", "input_tokens", "output_tokens"


class RateLimits(msgspec.Struct, frozen=True):
    """Limits of one account and model; None means no limit.

    OpenAI counts `tokens_per_minute` over input and output together; Anthropic counts input by it, and output by
    `output_tokens_per_minute`. A bucket holds what `burst` seconds bring: at 1, 60 requests per minute are one per
    second. `enqueued_tokens` (OpenAI) and `queued_requests` (Anthropic) are for batches.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    burst: float = 60.0
    enqueued_tokens: int | None = None
    queued_requests: int | None = None
    ollama_parallel: int = 1
    ollama_queue: int = 512


class Bucket:
    """A token bucket: fills at a rate up to a size."""

    __slots__ = ("_at", "_level", "per_second", "size")

    def __init__(self, per_minute: float, burst: float, now: float) -> None:
        self.per_second = per_minute / 60
        self.size = max(1.0, self.per_second * burst)
        self._level = self.size
        self._at = now

    def level(self, now: float) -> float:
        """The current level; may be negative after a correction."""
        if now > self._at:
            self._level = min(self.size, self._level + (now - self._at) * self.per_second)
            self._at = now
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Seconds until this amount can be taken; 0 if it can be taken now, inf if it exceeds the size."""
        missing = amount - self.level(now)
        if missing <= 1e-9:
            return 0.0
        return missing / self.per_second if amount <= self.size else math.inf

    def take(self, amount: float, now: float) -> None:
        """Take an amount; a negative one is put back."""
        self._level = min(self.size, self.level(now) - amount)

    def until_full(self, now: float) -> float:
        """Seconds until it is full again."""
        return (self.size - self.level(now)) / self.per_second


class Standing(NamedTuple):
    """The state of one bucket, for the headers."""

    name: str
    limit: int
    remaining: int
    reset: float


class Over(NamedTuple):
    """A limit that a request would exceed, and the seconds until it would not."""

    name: str
    limit: int
    used: int
    wanted: int
    wait: float


class Meter:
    """The buckets of one account and model."""

    def __init__(self, per_minute: dict[str, float | None], burst: float, now: float) -> None:
        self._buckets = {name: Bucket(rate, burst, now) for name, rate in per_minute.items() if rate is not None}

    @property
    def unlimited(self) -> bool:
        """Whether there is no limit at all."""
        return not self._buckets

    def admit(self, amounts: dict[str, int], now: float) -> Over | None:
        """Take from all buckets, or from none and return the limit that needs longest."""
        worst: Over | None = None
        for name, bucket in self._buckets.items():
            wanted = amounts.get(name, 0)
            wait = bucket.wait(wanted, now)
            if wait > 0 and (worst is None or wait > worst.wait):
                limit = round(bucket.per_second * 60)
                worst = Over(name, limit, limit - max(0, int(bucket.level(now))), wanted, wait)
        if worst is None:
            for name, bucket in self._buckets.items():
                bucket.take(amounts.get(name, 0), now)
        return worst

    def correct(self, name: str, amount: float, now: float) -> None:
        """Correct an estimate: take an amount, or put back a negative one."""
        bucket = self._buckets.get(name)
        if bucket is not None:
            bucket.take(amount, now)

    def standings(self, now: float) -> list[Standing]:
        """The state of all buckets."""
        return [
            Standing(name, round(bucket.per_second * 60), max(0, int(bucket.level(now))), bucket.until_full(now))
            for name, bucket in self._buckets.items()
        ]


class Slots:
    """Ollama's queue: some requests run at once, others wait, and too many are refused."""

    def __init__(self, parallel: int, queue: int) -> None:
        self._free = [0.0] * parallel
        self._queue = queue
        self._starts: list[float] = []

    def full(self, now: float) -> bool:
        """Whether one more request would be refused."""
        self._starts = [start for start in self._starts if start > now]
        return min(self._free) > now and len(self._starts) >= self._queue

    def enter(self, seconds: float, now: float) -> float:
        """Add a request of this duration. Return the seconds until it is done."""
        slot = min(range(len(self._free)), key=self._free.__getitem__)
        start = max(now, self._free[slot])
        if start > now:
            self._starts.append(start)
        self._free[slot] = start + seconds
        return start + seconds - now
