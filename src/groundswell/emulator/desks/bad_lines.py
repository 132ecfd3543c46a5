"""The lines that the fault `bad-lines` finds wrong although they look fine. Pure.

A line is found wrong by the seed and by what it asks, so it is found wrong again whenever it comes again; and what was
found right beside it stays right, so the rest of a batch passes when it comes without the bad lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from groundswell.emulator.chance import draw

SHARE = 0.1
_canonical = msgspec.json.Encoder(order="deterministic").encode


class BadLines:
    """What was found so far."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._bad: set[bytes] = set()
        self._good: set[bytes] = set()

    def among(self, bodies: Sequence[Any]) -> list[int]:
        """The places of the bad ones: about a tenth, and at least one where there is one that was not seen before."""
        prints = [_print(body) for body in bodies]
        known = {print_ for print_ in prints if print_ in self._bad or self._share(print_) < SHARE}
        unseen = set(prints) - self._good
        if not known and unseen:
            known = {min(unseen, key=self._share)}
        self._bad |= known
        self._good |= unseen - known
        return [place for place, print_ in enumerate(prints) if print_ in known]

    def _share(self, print_: bytes) -> float:
        return draw(self._seed, "bad-lines", print_.hex())


def _print(body: Any) -> bytes:
    try:
        return blake2b(_canonical(body), digest_size=8).digest()
    except RecursionError:  # what can be read a little deeper than it can be written
        return b""
