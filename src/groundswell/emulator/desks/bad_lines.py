"""The lines that the fault `bad-lines` rejects although they are valid. Pure.

Whether a line is rejected depends on the seed and its content, so it is rejected again whenever it is sent again. Lines
that were accepted beside it stay accepted, so the rest of a batch passes when it is sent without the bad lines.
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
    """The lines found so far."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._bad: set[bytes] = set()
        self._good: set[bytes] = set()

    def among(self, bodies: Sequence[Any]) -> list[int]:
        """The places of the bad lines: about a tenth, and at least one if any line is new."""
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
    except RecursionError:  # JSON can be read slightly deeper than it can be written
        return b""
