"""The results of one batch as they are read: which of its asks have one, and whether that is all there is. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from groundswell.dialects.batches import Asked
from groundswell.engine.records import AskId, Intent, Settled, Wave
from groundswell.program.request import Request, Settlement


class Reader(Protocol):
    """Reads a line into a custom id and what it means; None where it cannot be read."""

    def __call__(self, line: bytes, asked: Asked, endpoint: str, now: float) -> tuple[str, Settlement] | None: ...


class Reading:
    """Reads the files of a batch, each perhaps more than once, and settles every ask once.

    Which requests were asked is known as long as the wave has not been lost to a crash.
    """

    def __init__(self, intent: Intent, endpoint: str, read: Reader) -> None:
        self._asks = {intent.custom_id(ask): ask for ask in intent.asks}
        self._asked = {item.ask: item.request for item in intent.items} if isinstance(intent, Wave) else {}
        self._endpoint = endpoint
        self._read = read
        self._left = set(intent.asks)
        self._here: set[AskId] = set()
        self._strangers = self._unread = self.lines = 0
        self.torn = False

    @property
    def left(self) -> Iterator[AskId]:
        """The asks that have no result, in their order."""
        return (ask for ask in self._asks.values() if ask in self._left)

    def another(self) -> None:
        """Another file is read."""
        self._here.clear()

    def begin(self) -> None:
        """A file is read from its beginning. `torn` says that the last line so far could not be read."""
        self._strangers = self._unread = self.lines = 0
        self.torn = False

    def take(self, line: bytes, now: float) -> Settled | None:
        """What a line settles; nothing, if it is a stranger's, cannot be read, or repeats what was said."""
        if not line.strip():
            return None
        self.lines += 1
        found = self._read(line, self._request, self._endpoint, now)
        self.torn = found is None
        if found is None:
            self._unread += 1
            return None
        ask = self._asks.get(found[0])
        if ask is None:
            self._strangers += 1
            return None
        self._here.add(ask)
        return Settled(ask, found[1]) if self.settle(ask) else None

    def settle(self, ask: AskId) -> bool:
        """Whether an ask has no result yet; it has one now."""
        if ask not in self._left:
            return False
        self._left.discard(ask)
        return True

    def whole(self, promised: int) -> bool:
        """Whether a file that was read had all that was promised, or all that is wanted."""
        return not self._left or (not self._unread and len(self._here) + self._strangers >= promised)

    def _request(self, custom_id: str) -> Request | None:
        ask = self._asks.get(custom_id)
        return None if ask is None else self._asked.get(ask)
