"""The results of one batch as they are read: which of its asks have one, and whether that is all there is. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from groundswell.dialects.batches import Asked
from groundswell.engine.records import AskId, Intent, Settled, Wave
from groundswell.program.request import Request, Settlement

BOM = b"\xef\xbb\xbf"
"""Some write it at the beginning of a file, and it is no part of the first line."""


class Reader(Protocol):
    """Reads a line into a custom id and what it means; None where it cannot be read."""

    def __call__(self, line: bytes, asked: Asked, endpoint: str, now: float) -> tuple[str, Settlement] | None: ...


class Reading:
    """Reads the files of a batch, each perhaps more than once, and settles every ask once.

    Which requests were asked is known as long as the wave has not been lost to a crash. A wave may have a hundred
    thousand asks, so that little is kept of each.
    """

    def __init__(self, intent: Intent, endpoint: str, read: Reader) -> None:
        self._intent = intent
        self._items = intent.items if isinstance(intent, Wave) else ()
        self._places = {intent.custom_id(ask): place for place, ask in enumerate(intent.asks)}
        self._endpoint = endpoint
        self._read = read
        self._left = bytearray(b"\x01" * len(intent.asks))
        self._here = bytearray(len(intent.asks))
        self._strangers = self._unread = self.lines = 0
        self.torn = False

    @property
    def left(self) -> Iterator[AskId]:
        """The asks that have no result, in their order."""
        return (ask for ask, left in zip(self._intent.asks, self._left, strict=True) if left)

    @property
    def done(self) -> bool:
        """Whether every ask has a result."""
        return not any(self._left)

    def another(self) -> None:
        """Another file is read."""
        self._here = bytearray(len(self._here))

    def begin(self) -> None:
        """A file is read from its beginning. `torn` says that the last line so far could not be read."""
        self._strangers = self._unread = self.lines = 0
        self.torn = False

    def take(self, line: bytes, now: float) -> Settled | None:
        """What a line settles; nothing, if it is a stranger's, cannot be read, or repeats what was said."""
        if not self.lines:
            line = line.removeprefix(BOM)
        if not line.strip():
            return None
        self.lines += 1
        found = self._read(line, self._request, self._endpoint, now)
        self.torn = found is None
        if found is None:
            self._unread += 1
            return None
        place = self._places.get(found[0])
        if place is None:
            self._strangers += 1
            return None
        self._here[place] = 1
        return Settled(self._intent.asks[place], found[1]) if self.settle(place) else None

    def settle(self, place: int) -> bool:
        """Whether the ask at a place has no result yet; it has one now."""
        left, self._left[place] = self._left[place], 0
        return bool(left)

    def whole(self, promised: int) -> bool:
        """Whether a file that was read had all that was promised, or all that is wanted."""
        return self.done or (not self._unread and sum(self._here) + self._strangers >= promised)

    def _request(self, custom_id: str) -> Request | None:
        place = self._places.get(custom_id)
        return self._items[place].request if place is not None and self._items else None
