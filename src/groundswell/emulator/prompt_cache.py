"""The providers' prompt caches: which part of a prompt was sent before and costs less. Pure: time is passed in.

OpenAI's cache is automatic for prompts of 1,024 tokens and more, in steps of 128; here it matches whole messages.
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
    """Tokens read from the cache, tokens written to it, and how many of those for an hour."""

    read: int = 0
    written: int = 0
    hour: int = 0


NOT_CACHED = CacheUse()


class PromptCache:
    """The prefixes that an account has sent recently."""

    def __init__(self) -> None:
        self._until: dict[bytes, float] = {}

    def marked(self, points: Sequence[CachePoint], now: float) -> CacheUse:
        """Use the marked prefixes of a prompt: the longest known one is read, the rest is written."""
        points = [point for point in points if point.tokens >= SMALLEST]
        if not points:
            return NOT_CACHED
        read = max((point.tokens for point in points if self._until.get(point.digest, 0.0) > now), default=0)
        for point in points:
            self._keep(point, now)
        ends = [max(read, point.tokens) for point in points]
        parts = [end - start for start, end in zip([read, *ends], ends, strict=False)]
        hour = sum(part for part, point in zip(parts, points, strict=True) if point.ttl == "1h")
        return CacheUse(read, ends[-1] - read, hour)

    def _keep(self, point: CachePoint, now: float) -> None:
        """Remember a prefix. If there are too many, the least recently used one is dropped."""
        until = max(self._until.pop(point.digest, 0.0), now + LIFETIMES[point.ttl])
        self._until[point.digest] = until
        if len(self._until) > MOST:
            del self._until[next(iter(self._until))]

    def automatic(self, chat: Chat, tokens: int, now: float) -> CacheUse:
        """Use every prefix of whole messages of a prompt with this many tokens."""
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
