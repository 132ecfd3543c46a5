"""Reuse of replies: from the cache, and from equal requests in flight.

look       a program made a request ...
look_now   ... which is looked up together with others made at about the same time: is an equal one in flight? is it in
           the cache? if not, it is sent
replied    a reply is durable: all requests that wait for it receive it
failed     no reply came: equal requests fail too if a retry cannot help; otherwise they are sent themselves
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b

import msgspec

from groundswell.engine.context import JOINED, NEW, SETTLED, PendingAsk, RunContext, Settle
from groundswell.engine.keys import sample_number
from groundswell.engine.lanes import Lane
from groundswell.program.request import Chat, Embed, Fault, FaultKind, Settlement, fingerprint

FOR_EVERYONE = frozenset({FaultKind.BAD_REQUEST, FaultKind.NOT_FOUND, FaultKind.CONTEXT, FaultKind.FILTERED})
"""Faults that every equal request would have."""


class SharedAsk:
    """A request that equal requests wait for."""

    __slots__ = ("in_batch", "leader", "reuse", "waiting")

    def __init__(self, reuse: Reuse, leader: PendingAsk) -> None:
        self.reuse = reuse
        self.leader = leader
        self.in_batch = leader.lane.barrier
        self.waiting: list[tuple[Reuse, PendingAsk]] = []


SharedAsks = dict[bytes, SharedAsk]
"""Requests in flight, by cache key; shared by the runs of an engine."""


class Reuse:
    """Looks up the requests of one run in the cache and among requests in flight."""

    def __init__(
        self, context: RunContext, asked: SharedAsks, send: Callable[[Lane, PendingAsk], None], settle: Settle
    ) -> None:
        self._context = context
        self._settle = settle
        self._asked = asked
        self._send = send
        record = context.record
        self._salt = record.id if record.cut is not None else ""
        self._to_look_for: list[PendingAsk] = []
        self._lookups = 0
        self._begun = self._closed = False

    @property
    def busy(self) -> bool:
        """Whether requests are being looked up."""
        return bool(self._to_look_for) or self._lookups > 0

    def begin(self) -> None:
        """What earlier sessions have in flight is known: equal asks wait for that, instead of being paid for too."""
        self._begun = True
        self.look_now()

    def rejoin(self, pending: PendingAsk) -> None:
        """An ask is in flight since an earlier session: others may wait for it."""
        if self._context.options.cache and pending.lane.cached:
            pending.cache_key = self._key(pending)
            if pending.cache_key not in self._asked:
                self._lead(pending.cache_key, pending)

    def look(self, pending: PendingAsk) -> None:
        """Find a reply for an ask, or send it."""
        self._to_look_for.append(pending)
        if len(self._to_look_for) == 1:
            self._context.loop.call_soon(self.look_now)

    def look_now(self) -> None:
        """Look for all that came up."""
        if not self._begun:
            return
        looking, self._to_look_for = self._to_look_for, []
        if looking and not self._closed:
            try:
                self._look_for(looking)
            except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, it would hang the run
                self._context.abort(error)

    def _look_for(self, looking: list[PendingAsk]) -> None:
        missing: list[tuple[bytes, PendingAsk]] = []
        for pending in looking:
            key = pending.cache_key = self._key(pending)
            asked = self._asked.get(key)
            if asked is None:
                self._lead(key, pending)
                missing.append((key, pending))
            elif asked.in_batch and not pending.lane.barrier:
                missing.append((key, pending))  # what goes live does not wait for a batch
            else:
                pending.enter(JOINED)
                asked.waiting.append((self, pending))
        if missing:
            self._lookups += 1
            self._context.journal.cached([key for key, _ in missing], partial(self._looked_up, missing))
        self._context.schedule()

    def _looked_up(self, missing: Sequence[tuple[bytes, PendingAsk]], found: Mapping[bytes, Settlement]) -> None:
        """Use what the cache has, and send the rest."""
        self._lookups -= 1
        if self._closed:
            return
        try:
            self._use(missing, found)
        except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, it would hang the run
            self._context.abort(error)

    def _use(self, missing: Sequence[tuple[bytes, PendingAsk]], found: Mapping[bytes, Settlement]) -> None:
        for key, pending in missing:
            settlement = found.get(key)
            if settlement is None:
                self._send(pending.lane, pending)
            else:
                self._give(pending, settlement)
                if pending.leads:
                    self.replied(pending, settlement)
        self._context.schedule()

    def _lead(self, key: bytes, pending: PendingAsk) -> None:
        """Send an ask for all equal ones."""
        self._asked[key] = SharedAsk(self, pending)
        pending.leads = True

    def _give(self, pending: PendingAsk, settlement: Settlement) -> None:
        if pending.wanted:
            self._context.counters.cached += 1
            self._settle(pending, settlement, None)

    def replied(self, pending: PendingAsk, settlement: Settlement) -> None:
        """The reply to an ask that leads is durable: let everyone who waits for it have it."""
        for reuse, other in self._end_lead(pending):
            reuse._give(other, settlement)

    def _end_lead(self, pending: PendingAsk) -> list[tuple[Reuse, PendingAsk]]:
        """Equal asks do not wait for this one from now on; returns those that do."""
        pending.leads = False
        return self._asked.pop(pending.cache_key).waiting  # type: ignore[arg-type]  # an ask that leads has one

    def failed(self, pending: PendingAsk, fault: Fault | None) -> None:
        """No reply will come of an ask: it failed, or was given up.

        Those who wait for one that failed ask for themselves, all at once: one after the other, each with all its
        attempts, they might take for ever.
        """
        if not pending.leads:
            return
        for reuse, other in self._end_lead(pending):
            if not other.wanted or reuse._context.over is not None:
                continue
            if fault is not None and fault.kind in FOR_EVERYONE:
                reuse._context.counters.failed += 1
                reuse._settle(other, fault, None)
            elif fault is not None:
                reuse._send(other.lane, other)
            else:
                other.enter(NEW)
                reuse.look(other)

    def close(self) -> None:
        """The run has ended: what others wait for is asked for by them, and it waits and looks for nothing more."""
        self._closed = True
        for asked in [asked for asked in self._asked.values() if asked.reuse is self]:
            if asked.leader.state is not SETTLED:  # else others have the reply as soon as it is durable
                self.failed(asked.leader, None)
        for asked in self._asked.values():
            asked.waiting = [(reuse, other) for reuse, other in asked.waiting if reuse is not self]

    def sample(self, pending: PendingAsk) -> int:
        """The sample number of an ask."""
        trial, record = pending.trial, self._context.record
        salt = f"{self._salt}~{trial.attempt}" if trial.attempt else self._salt  # a new attempt wants other replies
        return sample_number(record.seed, salt, trial.program.name, trial.key, pending.wait.path)

    def _key(self, pending: PendingAsk) -> bytes:
        """Whose reply, to what and, unless an explicit temperature of 0 makes it moot, which sample."""
        request = pending.request
        shared = type(request) is Embed or (type(request) is Chat and request.temperature == 0)
        number = 0 if shared else self.sample(pending)
        lane = pending.lane
        name = lane.known_as
        print_ = pending.print if name is None else fingerprint(msgspec.structs.replace(request, model=name))
        return blake2b(print_ + number.to_bytes(8) + lane.origin, digest_size=16).digest()
