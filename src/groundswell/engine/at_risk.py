"""Counts requests that were in flight when an earlier session of a run ended, as `asks.resent`.

A session that ends normally stores how many live requests it cut off: `counters.flying`. A session that is killed
cannot. So each session commits how many requests a kill can lose on a lane, before the first live request of that lane:
`counters.at_risk`. The next session finds the open requests of unfinished trials. It counts as many of them as may have
been sent, with the cost of the most expensive ones, and commits that before it sends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from groundswell.engine.lanes import Lane
from groundswell.engine.ports import Then
from groundswell.engine.rate_limit import most_uncommitted
from groundswell.engine.records import Counters, Possible
from groundswell.engine.spending import MostExpensive, Spending
from groundswell.program.request import Request

NO_LIMIT = 1_000_000
"""Where many requests are one call, the number that a kill can lose is not limited."""


class AtRisk:
    """Counts the requests that an earlier session may have sent, and records those of this session for the next one.

    `save` commits the counters, and `ready` is called when something may be sent because of that. `committed` says
    whether the store knows all that a kill can lose, so that live requests may be sent.
    """

    def __init__(
        self, counters: Counters, spending: Spending, save: Callable[[Then], None], ready: Callable[[], None]
    ) -> None:
        self._counters = counters
        self._spending = spending
        self._save = save
        self._ready = ready
        self._earlier = _earlier(counters)
        self._earlier_counted = counters.counted
        self._cut_off = max(counters.flying, 0)
        self._cut_seen = 0
        self._seen: dict[str, MostExpensive] = {}
        self._found = Possible()
        self._resent = 0
        self._recovered = False
        self._left_over = False
        self._lanes: dict[str, int] = {}
        self._saving = 0
        self.committed = False

    def count(self, lane: Lane, request: Request) -> None:
        """An ask at which a trial stood may have been in flight; live, though it could travel in a batch."""
        live = lane.live if lane.barrier else lane
        if live is None or not (self._earlier or self._cut_seen < self._cut_off):
            return
        key = _key(live)
        seen = self._seen.get(key)
        if seen is None:
            # An account may have been renamed since. What can travel in batches was most likely not sent live then.
            unknown = 0 if lane.barrier else max(self._earlier.values(), default=0)
            seen = self._seen[key] = MostExpensive(self._earlier.get(key, unknown), self._earlier_counted.get(key))
        lost = seen.add(self._spending.most(live, request))
        if not lost.asks and self._cut_seen < self._cut_off:
            self._cut_seen += 1  # what it can have cost was counted when it was cut off
            self._resent += 1
        self._resent += lost.asks
        self._found += lost
        if self._recovered:
            self._book()

    def recovered(self, lanes: Iterable[Lane], *, left_over: bool) -> None:
        """What earlier sessions may have sent has been counted, except for trials that are left over for the driver."""
        self._recovered, self._left_over, self.committed = True, left_over, True
        self._lanes = {_key(lane): _most_lost(lane) for lane in lanes if not lane.barrier}
        self._book()

    def at_work(self, lane: Lane) -> None:
        """A lane comes into use. If this session is killed, the next one must know what that may have lost."""
        if self._recovered and not lane.barrier:
            self._lanes[_key(lane)] = _most_lost(lane)
            self._book()

    def ended(self, cut: int) -> None:
        """This session ends and cuts so many asks off. One that could not begin leaves what it was told itself."""
        if self._recovered:
            self._lanes.clear()
            self._counters.at_risk, self._counters.counted = self._at_risk(), self._counted()
            self._counters.flying = cut + (self._cut_off - self._cut_seen) * self._left_over

    def _book(self) -> None:
        """Write down what was counted and what a kill can lose from now on. If that changes anything, commit it."""
        counters, found, at_risk, counted = self._counters, self._found, self._at_risk(), self._counted()
        known = (at_risk, counted) == (counters.at_risk, counters.counted) and counters.flying >= 0
        if known and not self._resent and found == Possible():
            return
        counters.resent += self._resent
        self._spending.lose(found)
        self._found, self._resent = Possible(), 0
        counters.at_risk, counters.counted = at_risk, counted
        counters.flying = (self._cut_off - self._cut_seen) * self._left_over
        self._saving += 1
        self.committed = False
        self._save(self._saved)

    def _saved(self) -> None:
        self._saving -= 1
        if not self._saving:
            self.committed = True
            self._ready()

    def _at_risk(self) -> dict[str, int]:
        """What a kill can lose on each lane: of this session, and of earlier ones where trials are left over."""
        at_risk = dict(self._lanes)
        for key, most in self._earlier.items() if self._left_over else ():
            at_risk[key] = at_risk.get(key, 0) + most
        return at_risk

    def _counted(self) -> dict[str, Possible]:
        """What of that was counted already. An ask of a trial that is left over may have cost more than these."""
        if not self._left_over:
            return {}
        counted = {key: seen.counted for key, seen in self._seen.items()}
        return {key: asks for key, asks in (self._earlier_counted | counted).items() if asks.asks}


def _earlier(counters: Counters) -> dict[str, int]:
    """What the last session left at risk. 1 says, in stores of earlier versions, that it used no live lane."""
    return {"": -counters.flying} if counters.flying < -1 else dict(counters.at_risk)


def _key(lane: Lane) -> str:
    return f"{lane.account} {lane.model}" + (" together" if lane.together else "")


def _most_lost(lane: Lane) -> int:
    """How many asks on a live lane a kill of the process loses at most."""
    most = max(lane.pace.allowance.most, lane.pace.in_flight)
    return NO_LIMIT if lane.together else most + most_uncommitted(most)
