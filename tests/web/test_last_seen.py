"""The last known states of batches: which are remembered."""

from __future__ import annotations

from groundswell.engine.records import BatchInfo
from groundswell.web.last_seen import MOST_ENDED, LastSeen


def test_ended_batches_are_forgotten_after_many_others() -> None:
    seen = LastSeen()
    seen.see(BatchInfo("open", "in_progress", 1, 0, 0, 0.0))
    for number in range(MOST_ENDED + 1):
        seen.see(BatchInfo(str(number), "completed", 1, 1, 0, 0.0))
    assert set(seen._infos) == {"open", *map(str, range(1, MOST_ENDED + 1))}
