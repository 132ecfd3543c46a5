"""Chance without a generator: numbers that belong to what they are drawn for. There is nothing to save or restore."""

from __future__ import annotations

from hashlib import blake2b


def seed_of(*parts: object) -> int:
    """A seed that belongs to these parts and no others."""
    digest = blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def chance_of(*parts: object) -> float:
    """A number from 0 to 1 that belongs to these parts."""
    return (seed_of(*parts) >> 10) / (1 << 53)
