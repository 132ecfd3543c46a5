"""The prefixes that Anthropic's cache markers cover: a digest of the prompt up to each marker, and its size."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from groundswell.emulator.tokens import PER_IMAGE, PER_MESSAGE, count
from groundswell.emulator.wire.anthropic_requests import refuse
from groundswell.emulator.wire.pieces import dump
from groundswell.program.request import canonical

MOST_MARKERS = 4

Ttl = Literal["5m", "1h"]


class CachePoint(NamedTuple):
    """A marker in a prompt. Prompts with the same digest are equal up to their markers."""

    digest: bytes
    tokens: int
    ttl: Ttl


class Block(NamedTuple):
    """A part of a prompt, in the order of the cache: tools, system, messages."""

    place: str
    content: dict[str, Any]
    tokens: int


def cache_points(data: dict[str, Any]) -> list[CachePoint]:
    """The markers of a request that `read_chat` accepted, in order; prompts of different models share nothing."""
    whole = data.get("cache_control")
    digest = blake2b(str(data.get("model")).encode(), digest_size=16)
    tokens = 0
    points: list[CachePoint] = []
    for block in _blocks(data):
        marker = block.content.get("cache_control")
        unmarked = {key: value for key, value in block.content.items() if key != "cache_control"}
        digest.update(block.place.encode() + canonical(unmarked))
        tokens += block.tokens
        if marker is not None:
            points.append(CachePoint(digest.digest(), tokens, _ttl(marker)))
    if whole is not None and not (points and points[-1].tokens == tokens):
        points.append(CachePoint(digest.digest(), tokens, _ttl(whole)))
    if len(points) > MOST_MARKERS:
        words = f"A maximum of {MOST_MARKERS} blocks with cache_control may be provided."
        refuse(f"{words} Found {len(points)}.")
    return points


def _ttl(marker: object) -> Ttl:
    if not isinstance(marker, dict) or marker.get("type") != "ephemeral":
        refuse("cache_control.type: Input should be 'ephemeral'")
    ttl = marker.get("ttl")
    if ttl not in (None, "5m", "1h"):
        refuse("cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
    return "1h" if ttl == "1h" else "5m"


def _blocks(data: dict[str, Any]) -> Iterator[Block]:
    """The blocks of a request. Tools come first and count nothing, as in `tokens.count_request`."""
    for tool in data.get("tools") or ():
        yield Block("tool", tool, 0)
    for block in _listed(data.get("system") or ()):
        yield Block("system", block, PER_MESSAGE + count(block["text"]))
    for message in data["messages"]:
        role, framed = message["role"], False
        for block in _listed(message["content"]):
            alone = block["type"] == "tool_result"
            yield Block(role, block, _size(block) + (PER_MESSAGE if alone or not framed else 0))
            framed = framed or not alone


def _listed(content: Any) -> Any:
    """Content as blocks: a string is one block of text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _size(block: dict[str, Any]) -> int:
    kind = block["type"]
    if kind == "text":
        return count(block["text"])
    if kind == "image":
        return PER_IMAGE
    if kind == "tool_use":
        return count(block["name"]) + count(dump(block["input"]).decode())
    if kind == "tool_result":
        return sum(map(_size, _listed(block.get("content") or ())))
    return 0
