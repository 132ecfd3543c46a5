"""Deterministic chance: draws come from hashes, so every reply is a function of its request. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

from groundswell.program.request import Chat, Embed, fingerprint

T = TypeVar("T")

_DRAW = 4
_DIGEST = 64
_RANGE = 1 << (8 * _DRAW)
_SCALE = 2.0**-64


class Chance:
    """A stream of draws that depends only on its key; sixteen per hash."""

    __slots__ = ("_at", "_digest")

    def __init__(self, key: bytes) -> None:
        self._digest = blake2b(key).digest()
        self._at = 0

    def below(self, bound: int) -> int:
        """An integer from 0 up to, but not including, the bound."""
        at = self._at
        if at == _DIGEST:
            self._digest = blake2b(self._digest).digest()
            at = 0
        self._at = at + _DRAW
        return int.from_bytes(self._digest[at : at + _DRAW], "little") % bound

    def share(self) -> float:
        """A number from 0 up to, but not including, 1."""
        return self.below(_RANGE) / _RANGE

    def flip(self, probability: float) -> bool:
        """True with this probability: never at 0, always at 1."""
        return self.share() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[self.below(len(options))]


def draw(*about: object) -> float:
    """A number in [0, 1), uniform over its arguments."""
    digest = blake2b("\x1f".join(map(str, about)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") * _SCALE


def number_of(text: str) -> int:
    """A fixed 64-bit number for a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def chance_of(request: Chat | Embed, seed: int, sample: int) -> Chance:
    """The chance of a request. At temperature 0 equal requests get equal replies, whatever the sample."""
    if type(request) is Chat and request.temperature == 0:
        sample = 0
    return Chance(b"%b|%d|%d" % (_identity(request), seed, sample))


def _identity(request: Chat | Embed) -> bytes:
    """Bytes that identify a request, also if its text is not valid UTF-8."""
    try:
        return fingerprint(request)
    except UnicodeEncodeError:
        return blake2b(repr(request).encode("utf-8", "surrogatepass"), digest_size=16).digest()
