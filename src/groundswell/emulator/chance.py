"""Chance that is the same in every run: a number in [0, 1) from a seed and what it is drawn for. Pure."""

from __future__ import annotations

from hashlib import blake2b

_SCALE = 2.0**-64


def draw(*about: object) -> float:
    """A number in [0, 1), uniform over what it is drawn for."""
    digest = blake2b("\x1f".join(map(str, about)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") * _SCALE
