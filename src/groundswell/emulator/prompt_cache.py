"""The providers' prompt caches: which part of a prompt was read before, and so costs less. Pure: time is passed in.

OpenAI's works by itself on prompts of 1,024 tokens and more, in steps of 128; here it matches whole messages.
Anthropic's works where the request marks it, and writing to it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from groundswell.emulator.tokens import count_message
from groundswell.emulator.wire.prompt_cache import CachePoint
from groundswell.program.request import Chat

SMALLEST = 1024
STEP = 128
MOST = 100_000
LIFETIMES = {"5m": 300.0, "1h": 3600.0}
_encode = msgspec.json.Encoder(order="deterministic").encode


class CacheUse(NamedTuple):
    """How many tokens were read from the cache, how many written to it, and how many of these for an hour."""

    read: int = 0
    written: int = 0
    hour: int = 0


NOT_CACHED = CacheUse()


class PromptCache:
    """The prefixes that an account has sent lately."""

    def __init__(self) -> None:
        self._until: dict[bytes, float] = {}

    def marked(self, points: Sequence[CachePoint], now: float) -> CacheUse:
        """Use the marked prefixes of a prompt: the longest one known is read, what goes beyond is written."""
        points = [point for point in points if point.tokens >= SMALLEST]
        if not points:
            return NOT_CACHED
        read = max((point.tokens for point in points if self._until.get(point.digest, 0.0) > now), default=0)
        if len(self._until) > MOST:
            self._forget(now)
        for point in points:
            self._until[point.digest] = max(self._until.pop(point.digest, 0.0), now + LIFETIMES[point.ttl])
        written = points[-1].tokens - read
        return CacheUse(read, written, written if points[-1].ttl == "1h" else 0)

    def _forget(self, now: float) -> None:
        """Drop what has expired, and of the rest what was used least lately, so that it is seldom done."""
        alive = [(digest, until) for digest, until in self._until.items() if until > now]
        self._until = dict(alive[-MOST // 2 :])

    def automatic(self, chat: Chat, tokens: int, now: float) -> CacheUse:
        """Use every prefix of whole messages of a prompt that has so many tokens."""
        if tokens < SMALLEST:
            return NOT_CACHED
        use = self.marked(_prefixes(chat), now)
        return CacheUse(use.read // STEP * STEP)


def _prefixes(chat: Chat) -> list[CachePoint]:
    running, tokens, points = blake2b(chat.model.encode("utf-8", "surrogatepass"), digest_size=16), 0, []
    for message in chat.messages:
        running.update(_encode(message))
        tokens += count_message(message)
        points.append(CachePoint(running.digest(), tokens, "5m"))
    return points
