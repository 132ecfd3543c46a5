"""Random numbers derived from a hash of their purpose, so no generator state has to be saved or restored."""

from __future__ import annotations

from hashlib import blake2b


def seed_of(*parts: object) -> int:
    """A seed derived from these parts."""
    digest = blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def chance_of(*parts: object) -> float:
    """A number from 0 to 1 derived from these parts."""
    return (seed_of(*parts) >> 10) / (1 << 53)
