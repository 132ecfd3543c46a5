"""Combine the embeddings of one wave into as few calls as there are endpoints, and split the results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from groundswell.engine.ports import Answered
from groundswell.engine.records import Item, Settled
from groundswell.program.request import Embed, Embedding, Fault, FaultKind, Request, Usage, canonical

MOST_TEXTS = 2048
MOST_CHARACTERS = 600_000
"""Limit of one call: OpenAI takes 2,048 texts and 300,000 tokens."""
PARTS = frozenset({FaultKind.BAD_REQUEST, FaultKind.CONTEXT, FaultKind.FILTERED})
"""Faults of a combined call that may be caused by one of its texts."""


async def embed_together(items: Sequence[Item], ask: Callable[[Request], Awaitable[Answered]]) -> list[Settled]:
    """One call for the embeddings of several asks. If one of them may have caused a failure, the call is split."""
    whole, standings = await ask(merge_requests(items) if len(items) > 1 else items[0].request)
    if len(items) == 1:
        return [Settled(items[0].ask, whole, standings)]
    if isinstance(whole, Embedding):
        parts = split_embedding(items, whole)
        return [Settled(item.ask, part, standings) for item, part in zip(items, parts, strict=True)]
    if isinstance(whole, Fault) and whole.kind in PARTS:
        middle = len(items) // 2
        return [*await embed_together(items[:middle], ask), *await embed_together(items[middle:], ask)]
    return [Settled(item.ask, whole, standings) for item in items]


def count_texts(items: Sequence[Item]) -> int:
    """The number of texts to embed."""
    return sum(_size(item)[0] for item in items)


def group_requests(items: Sequence[Item], calls: int) -> list[list[Item]]:
    """Group embeddings that can share a call, spread over about `calls` calls. A group has one model and settings."""
    alike: dict[bytes, list[Item]] = {}
    for item in items:
        assert isinstance(item.request, Embed)
        key = canonical(msgspec.structs.replace(item.request, texts=()))
        alike.setdefault(key, []).append(item)
    return [group for same in alike.values() for group in _cut(same, calls)]


def _cut(items: list[Item], calls: int) -> list[list[Item]]:
    """Split into `calls` groups of about equal size, or more if they would be too large."""
    share = max(1, -(-sum(_size(item)[0] for item in items) // max(1, calls)))
    groups: list[list[Item]] = []
    texts = characters = 0
    for item in items:
        more_texts, more_characters = _size(item)
        full = texts + more_texts > min(MOST_TEXTS, share) or characters + more_characters > MOST_CHARACTERS
        if not groups or (full and groups[-1]):
            groups.append([])
            texts = characters = 0
        groups[-1].append(item)
        texts += more_texts
        characters += more_characters
    return groups


def _size(item: Item) -> tuple[int, int]:
    assert isinstance(item.request, Embed)
    return len(item.request.texts), sum(len(text) for text in item.request.texts)


def merge_requests(items: Sequence[Item]) -> Embed:
    """One request for the texts of all."""
    first = items[0].request
    assert isinstance(first, Embed)
    texts = tuple(text for item in items if isinstance(item.request, Embed) for text in item.request.texts)
    return msgspec.structs.replace(first, texts=texts)


def split_embedding(items: Sequence[Item], whole: Embedding) -> list[Embedding]:
    """The vectors of each ask, and its share of the tokens by the length of its texts."""
    sizes = [_size(item) for item in items]
    tokens = _shares(whole.usage.input_tokens, [characters + texts for texts, characters in sizes])
    parts: list[Embedding] = []
    at = 0
    for (texts, _), used in zip(sizes, tokens, strict=True):
        end = at + texts * whole.width * 4
        parts.append(msgspec.structs.replace(whole, packed=whole.packed[at:end], usage=Usage(used)))
        at = end
    return parts


def _shares(total: int, weights: Sequence[int]) -> list[int]:
    """Split a total by weights into integers that add up to it."""
    whole, shares, before = sum(weights) or 1, [], 0
    running = 0
    for weight in weights:
        running += weight
        upto = total * running // whole
        shares.append(upto - before)
        before = upto
    if shares:
        shares[-1] += total - before
    return shares
