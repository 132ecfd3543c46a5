"""The last known states of batches at providers."""

from __future__ import annotations

from typing import Any

import msgspec

from groundswell.batch_lookup import NOT_ASKED, FoundBatch
from groundswell.engine.events import BatchChanged, Event
from groundswell.engine.records import BatchInfo, BatchState
from groundswell.store.waves import StoredWave

ENDED: tuple[BatchState, ...] = ("completed", "failed", "expired", "cancelled")
MOST_ENDED = 100
"""A batch that has ended is forgotten after so many others."""


class LastSeen:
    """What providers last said about batches: to runs of this server, or when a user asked."""

    def __init__(self) -> None:
        self._infos: dict[str, BatchInfo] = {}

    def hear(self, event: Event) -> None:
        """Remember the state in an event of a run."""
        if isinstance(event, BatchChanged):
            known = self._infos.get(event.batch) or BatchInfo(event.batch, "in_progress", 0, 0, 0, 0.0)
            values: Any = {"state": event.state, "done": event.done, "failed": event.failed, "total": event.total}
            self.see(msgspec.structs.replace(known, **values))

    def see(self, info: BatchInfo) -> None:
        """Remember a state."""
        self._infos.pop(info.id, None)
        self._infos[info.id] = info  # at the end: the most recent
        for old in [id_ for id_, each in list(self._infos.items())[:-MOST_ENDED] if each.state in ENDED]:
            del self._infos[old]

    def sight(self, wave: StoredWave) -> FoundBatch:
        """A wave with the last known state of its batch."""
        info = self._infos.get(wave.batch or "")
        return FoundBatch(wave.account, wave.transport, wave, info, None if info is not None else NOT_ASKED)
