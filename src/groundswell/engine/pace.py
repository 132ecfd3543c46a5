"""How many requests may leave now: buckets for requests and tokens under a concurrency cap. Pure.

One pace per account. Time is passed in; nothing here waits. The cap finds its own level: it doubles while
every slot is used and nothing is refused, is cut once per rate-limit episode, and then grows by one per
round of successes.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from groundswell.program.request import FaultKind


class PaceLimits(msgspec.Struct, frozen=True):
    """What an account allows. None means unknown: then the cap alone finds the limit."""

    max_concurrent: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    start: int | None = None


class Grant(NamedTuple):
    """How many may leave now, and when to ask again if fewer than were wanted (None: when a slot frees)."""

    leave: int
    again_at: float | None


class Bucket:
    """A token bucket that holds a few seconds' worth."""

    __slots__ = ("_at", "_level", "_rate", "_size")

    def __init__(self, per_minute: float, now: float, seconds: float = 1.0) -> None:
        self._rate = per_minute / 60
        self._size = max(1.0, self._rate * seconds)
        self._level = self._size
        self._at = now

    def level(self, now: float) -> float:
        """What is in it now; negative after an overdraft."""
        self._level = min(self._size, self._level + (now - self._at) * self._rate)
        self._at = now
        return self._level

    def take(self, amount: float, now: float) -> None:
        """Take some; the level may go below zero and then has to be waited for."""
        self.level(now)
        self._level -= amount

    def ready_at(self, amount: float, now: float) -> float:
        """When `amount`, or a full bucket if that is less, will be there."""
        lacking = min(amount, self._size) - self.level(now)
        return now if lacking <= 0 else now + lacking / self._rate


class Pace:
    """The limiter of one account."""

    def __init__(self, limits: PaceLimits, now: float) -> None:
        self.limits = limits
        self.in_flight = 0
        self.cap = min(limits.start or limits.max_concurrent, limits.max_concurrent)
        self.not_before = now
        self._requests = Bucket(limits.requests_per_minute, now) if limits.requests_per_minute else None
        self._tokens = Bucket(limits.tokens_per_minute, now) if limits.tokens_per_minute else None
        self._slow_start = True
        self._successes = 0
        self._episode_until = now

    def grant(self, wanted: int, tokens_each: float, now: float) -> Grant:
        """Let up to `wanted` requests leave; they count as in flight until `done`."""
        if now < self.not_before:
            return Grant(0, self.not_before)
        count = min(wanted, self.cap - self.in_flight)
        buckets = [
            (bucket, each)
            for bucket, each in ((self._requests, 1.0), (self._tokens, tokens_each))
            if bucket is not None and each > 0 and count > 0
        ]
        short = False
        for bucket, each in buckets:
            fits = 0 if bucket.ready_at(each, now) > now else max(1, int(bucket.level(now) // each))
            if fits < count:
                count, short = fits, True
        count = max(count, 0)
        self.in_flight += count
        for bucket, each in buckets:
            bucket.take(count * each, now)
        return Grant(count, max(bucket.ready_at(each, now) for bucket, each in buckets) if short else None)

    def correct_in_flight(self, count: int) -> None:
        """So many more requests are in flight than were granted here, or, if negative, never left or were given up."""
        self.in_flight += count

    def done(self) -> None:
        """One request was answered: grow if every slot was in use."""
        if self.in_flight >= self.cap < self.limits.max_concurrent:
            self._grow()
        self.in_flight -= 1

    def failed(self, kind: FaultKind, retry_after: float | None, now: float) -> None:
        """One request failed: back off if that was because there were too many."""
        self.in_flight -= 1
        if kind is FaultKind.RATE_LIMITED or kind is FaultKind.OVERLOADED:
            self._back_off(retry_after, now)

    def correct(self, tokens: float, now: float) -> None:
        """Take the difference between what was reserved and what a reply really used."""
        if self._tokens is not None:
            self._tokens.take(tokens, now)

    def _back_off(self, retry_after: float | None, now: float) -> None:
        if retry_after is not None:
            self.not_before = max(self.not_before, now + retry_after)
        if now >= self._episode_until:
            self.cap = max(1, int(self.cap * 0.7))
            self._slow_start = False
            self._successes = 0
            self._episode_until = now + max(1.0, retry_after or 0.0)

    def _grow(self) -> None:
        self._successes += 1
        if self._slow_start or self._successes >= self.cap:
            self._successes = 0
            self.cap += 1
