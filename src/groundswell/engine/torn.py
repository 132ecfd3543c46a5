"""What was in flight when a session of a run ended: what the next one counts as `asks.resent`.

`counters.flying` carries it over. It is at least 0 when a session ended itself, and knew how many live connections it
cut. While a session is at work it is below 0: if that session dies, nobody knows how many there were, and this is the
most that a kill can have lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from groundswell.engine import plan
from groundswell.engine.lanes import Lane
from groundswell.engine.records import Counters


class Torn:
    """Counts the asks that an earlier session may have sent, and tells the next one of this session's."""

    def __init__(self, counters: Counters, *, died: bool) -> None:
        self._counters = counters
        self._died = died or counters.flying < 0
        self._cut_off = abs(counters.flying)
        self._seen: Counter[Lane] = Counter()
        self._recovered = False

    def count(self, lane: Lane) -> None:
        """An ask at which a trial stood may have been in flight; live, though it could travel in a batch."""
        if lane.barrier and lane.live is None:
            return
        if not self._died:
            sent = self._seen.total() < self._cut_off
        elif lane.barrier:
            sent = 1 < self._cut_off > self._seen[lane]  # 1 says that no lane was in use on which one can be lost
        else:
            sent = lane.together or self._seen[lane] < max(self._cut_off, _lost(lane))
        if sent:
            self._seen[lane] += 1
            self._counters.resent += 1

    def recovered(self, lanes: Iterable[Lane]) -> None:
        """All that earlier sessions may have sent has been counted."""
        self._recovered = True
        self.at_work(lanes)

    def at_work(self, lanes: Iterable[Lane]) -> None:
        """This session uses these lanes: if it dies, the next one must know what it may have lost."""
        known = 0 if self._recovered else self._cut_off
        self._counters.flying = -max(known, *map(_lost, lanes), 1)

    def ended(self, cut: int) -> None:
        """This session ends and cuts so many asks off. One that could not begin passes on what it was told itself."""
        if self._recovered or not self._died:
            self._counters.flying = cut + (0 if self._recovered else self._cut_off)
        else:
            self._counters.flying = -max(self._cut_off, 1)


def _lost(lane: Lane) -> int:
    """How many asks on a lane a kill of the process loses at most, where each travels by itself."""
    most = lane.pace.allowance.limits.max_concurrent
    return 0 if lane.barrier or lane.together else most + plan.unsure(most)
