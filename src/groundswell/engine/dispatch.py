"""The path of a request to its settlement: queue, wave, transport, retry. Read `Dispatch` from top to bottom.

take       a request that is not in the journal: was it sent before a crash? can a reply be reused? (reuse.py)
_enqueue   it waits in the queue of its lane
_flush     requests that may be sent now (scheduler.py) are sent live or in batches (delivery.py)
arrived    an attempt ended: retry (retry.py), or hand the settlement back to the run
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

import msgspec

from groundswell.engine.at_risk import AtRisk
from groundswell.engine.batching import Batches
from groundswell.engine.context import IN_FLIGHT, NEW, QUEUED, RETRYING, BatchOrder, PendingAsk, RunContext, Settle
from groundswell.engine.delivery import Delivery
from groundswell.engine.events import AskRetried
from groundswell.engine.lanes import Lane
from groundswell.engine.ports import Prices
from groundswell.engine.rate_limit import Allowance, Demand, Mark
from groundswell.engine.records import Intent, Receipt
from groundswell.engine.retry import LOAD, PASSING, GiveUp, RetryAt, Stop, Tried, decide
from groundswell.engine.reuse import Reuse, SharedAsks
from groundswell.engine.scheduler import Queue, Queues, Scheduler
from groundswell.engine.spending import Spending
from groundswell.errors import WaveFailed
from groundswell.program.request import Fault, FaultKind, Reply, Settlement, Standing
from groundswell.reporting.words import duration

UNANSWERED = frozenset({FaultKind.TIMEOUT, FaultKind.CONNECTION})
UNUSABLE = frozenset({FaultKind.GARBLED, FaultKind.FILTERED})
"""Faults after which a provider may have billed a reply: none arrived, or it was unreadable or withheld."""


class LaneLoad(NamedTuple):
    """How many requests of a run are in flight on a lane."""

    lane: Lane
    in_flight: int


class Dispatch:
    """Sends the asks of one run."""

    def __init__(
        self,
        context: RunContext,
        last_wave: int,
        prices: Prices | None,
        asked: SharedAsks,
        *,
        settle: Settle,
        made_room: Callable[[], None],
        check_alias: Callable[[str, str], None],
        quiet: Callable[[], bool],
    ) -> None:
        self._context = context
        self._settle = settle
        self._check_alias = check_alias
        self.spending = Spending(context, prices)
        self.batches = Batches(context, self.spending)
        self._at_risk = AtRisk(context.counters, self.spending, context.journal.save_counters, self.schedule)
        self._queues = Queues(context, self._at_risk, made_room)
        self._jitter = Random(context.record.id)
        self._flush_due = False
        self._caching = context.options.cache
        self._closed = False
        self.reuse = Reuse(context, asked, self._enqueue, settle)
        self._delivery = Delivery(context, self, self.batches, self.reuse.sample, last_wave)
        self._scheduler = Scheduler(
            context,
            self._queues,
            self._delivery,
            spending=self.spending,
            batches=self.batches,
            reuse=self.reuse,
            at_risk=self._at_risk,
            quiet=quiet,
        )
        self._unknown_outcomes = 0
        self._started = context.clock.now()
        self._seconds_before = context.counters.seconds
        context.lanes.join(self)
        context.journal.on_commit(self._go_on)

    def close(self) -> None:
        """Send nothing more, and free the slots of abandoned requests for other runs."""
        self._closed = self._delivery.over = True
        for lane, queue in self._queues.queues.items():
            for _ in range(queue.in_flight):
                lane.pace.recall()
        self._queues.queues.clear()
        self._scheduler.silence()
        self.batches.close()
        self.reuse.close()
        self._context.lanes.leave(self)
        self._context.counters.seconds = self._seconds_before + self._context.clock.now() - self._started

    def note_cut_off(self) -> None:
        """Nothing is in flight any more: store how many live requests were cut off."""
        self._at_risk.ended(self._queues.live_in_flight + self._unknown_outcomes)

    def take(self, pending: PendingAsk) -> None:
        """Find a settlement for a request."""
        request = pending.request
        lane = pending.lane
        if lane not in self._queues.queues:
            self._begin(lane)
        if pending.trial.was_open:
            self._at_risk.count(lane, request)
        if lane.full is not None:
            self._check_alias(request.model, lane.full)
        if lane.cached and self._caching:
            self.reuse.look(pending)
        else:
            self._enqueue(lane, pending)

    def _begin(self, lane: Lane) -> None:
        """A lane comes into use."""
        self._queues.of(lane)
        if self._context.options.via != "live" and not lane.barrier:
            self.batches.tell(lane, lane.transport.name, 0, f"{lane.account} has no batch API, or it is turned off")
        elif lane.live is not None and lane.quota is not None and lane.quota.shut is not None:
            self.batches.tell(lane, lane.live.transport.name, 0, lane.quota.shut)

    @property
    def live_in_flight(self) -> int:
        """Number of live requests in flight, whose replies are lost if the connection is closed."""
        return self._queues.live_in_flight

    @property
    def in_flight(self) -> int:
        """Number of requests in flight."""
        return self._queues.in_flight

    @property
    def lanes(self) -> Sequence[LaneLoad]:
        """The lanes in use. The requests of a batch are in flight until the whole batch has ended."""
        batched = Counter[Lane]()
        for order in self.batches.orders.values():
            batched[order.lane] += len(order.intent.asks)
        found = [
            LaneLoad(lane, batched.pop(lane, 0) if lane.barrier else queue.in_flight)
            for lane, queue in self._queues.queues.items()
        ]
        return found + [LaneLoad(lane, asks) for lane, asks in batched.items()]  # sent by an earlier session

    @property
    def barrier(self) -> bool:
        """Whether some lane in use sends whole waves."""
        return any(lane.barrier for lane in self._queues.queues)

    def rejoin(self, pending: PendingAsk) -> None:
        """A request of an earlier session is in flight."""
        pending.enter(IN_FLIGHT)
        self._queues.in_flight += 1
        lane = pending.lane
        self.spending.rejoin(lane, pending)
        self.batches.take(lane, pending)

    def recovered(self, *, left_over: bool) -> None:
        """What earlier sessions may have sent has been taken, except for trials that are left over for the driver."""
        self._at_risk.recovered(self._queues.queues, left_over=left_over)
        self.schedule()

    def _enqueue(self, lane: Lane, pending: PendingAsk) -> None:
        if pending.wanted:
            pending.enter(QUEUED)
            self._queues.of(self._fitting(lane, pending)).asks.append(pending)
        else:
            self.reuse.failed(pending, None)
        self.schedule()

    def _fitting(self, lane: Lane, pending: PendingAsk) -> Lane:
        """The lane of a request: live if it cannot be part of a batch."""
        if lane.live is None or lane.quota is None:
            return lane
        if lane.quota.shut is not None:
            return lane.live
        if (why := self.batches.unfit(lane, pending)) is None:
            return lane
        self.batches.note(lane, why)
        return lane.live

    def schedule(self) -> None:
        """Check the queues at the end of this loop iteration."""
        if not self._flush_due:
            self._flush_due = True
            self._context.loop.call_soon(self._flush)

    def room_on(self, lane: Lane) -> None:
        """A slot of a lane is free: fill it at once."""
        queue, context = self._queues.queues.get(lane), self._context
        if queue is not None and queue.asks:
            if context.stopping is None and context.error is None and not lane.barrier:
                try:
                    self._scheduler.send(lane, queue, context.clock.now())
                except Exception as error:  # noqa: BLE001  as in `_flush`
                    self._context.abort(error)
            else:
                self.schedule()

    def wants(self, allowance: Allowance) -> int:
        """How many requests are in flight with an account, or wait to be sent there."""
        queues = ((lane, queue) for lane, queue in self._queues.queues.items() if not lane.barrier)
        return sum(len(queue.asks) + queue.in_flight for lane, queue in queues if lane.pace.allowance is allowance)

    def share_changed(self, allowance: Allowance) -> None:
        """More or fewer requests may be in flight with an account. What a kill can lose is committed first."""
        for lane in self._queues.queues:
            if lane.pace.allowance is allowance:
                self._at_risk.at_work(lane)
        self.schedule()

    def _go_on(self) -> None:
        """A commit has continued programs: send their next requests without another loop iteration."""
        self.reuse.look_now()
        self._flush()

    def _flush(self) -> None:
        """Send what may be sent now."""
        context = self._context
        if self._closed or not self._flush_due:
            return
        self._flush_due = False
        if context.over is not None:
            self._leave_to_others()
            context.halt_when_still()
            return
        try:
            self._send_queued()
        except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, a price that raises would hang the run
            self._context.abort(error)

    def _leave_to_others(self) -> None:
        """The run was stopped: other runs that wait for its unsent requests send these themselves."""
        for queue in self._queues.queues.values():
            for pending in queue.asks:
                self.reuse.failed(pending, None)

    def _send_queued(self) -> None:
        context = self._context
        now = context.clock.now()
        context.counters.seconds = self._seconds_before + now - self._started
        for lane, queue in list(self._queues.queues.items()):
            if queue.asks:
                self._scheduler.send(lane, queue, now)
            if lane.pace.latency is not None:
                context.journal.linger(lane.pace.latency / 10)
        self.batches.tell_noted()

    def arrived(
        self,
        lane: Lane,
        pending: PendingAsk,
        wave: int,
        settlement: Settlement,
        standings: Sequence[Standing] = (),
    ) -> bool:
        """An attempt ended: retry it, or hand its settlement to the run. Returns whether the request has ended."""
        now, queues = self._context.clock.now(), self._queues
        queue = queues.of(lane)
        queues.count(lane, -1)
        if pending.batch is not None:
            self.batches.came_back(pending, settlement, self.batches.orders.get(wave))
        self.spending.spend(lane, pending, settlement)
        mark, pending.mark = pending.mark, None
        if mark is not None and not self._closed:
            queue.in_flight -= 1
            self._free_slot(lane, mark, settlement, standings, now)
        if type(settlement) is Fault:
            if perhaps_paid := may_be_paid(lane, settlement):
                self.lost(lane, pending)
            if self._failed(lane, pending, settlement, wave, now, perhaps_paid=perhaps_paid):
                self._context.lanes.freed(lane)
                return False
            self._context.counters.failed += 1
            settlement = msgspec.structs.replace(settlement, attempts=pending.attempts)
        pending.came_by = lane
        pending.seconds = now - pending.sent_at
        queue.uncommitted += 1
        self._settle(pending, settlement, wave)
        self._context.lanes.freed(lane)
        return True

    def durable(self, pending: PendingAsk, settlement: Settlement) -> None:
        """A settlement is durable."""
        if pending.leads:
            if type(settlement) is Fault:
                self.reuse.failed(pending, settlement)
            else:
                self.reuse.replied(pending, settlement)
        if (lane := pending.came_by) is not None and (queue := self._queues.queues.get(lane)) is not None:
            queue.uncommitted -= 1

    def _free_slot(
        self, lane: Lane, mark: Mark, settlement: Settlement, standings: Sequence[Standing], now: float
    ) -> None:
        """Free the slot of an ask, and let the rate limiter learn from what came."""
        pace = lane.pace
        if standings:
            pace.learn_limits(standings, mark, now)
        if type(settlement) is Fault:
            pace.failed(mark, settlement.kind, settlement.retry_after, now)
        elif not pace.counts_tokens or lane.together or type(settlement) is not Reply:
            pace.done(mark, mark.demand, now)
        else:
            pace.done(mark, Demand(settlement.usage.input_tokens, settlement.usage.output_tokens), now)

    def outcome_unknown(self, lane: Lane, pending: PendingAsk) -> None:
        """What became of an ask is not known."""
        if not lane.barrier:  # the wave of a batch stays open, and is collected later
            self._unknown_outcomes += 1
            self.lost(lane, pending)
        self._queues.count(lane, -1)
        self.batches.came_back(pending)
        if pending.mark is not None and not self._closed:
            pending.mark = None
            self._queues.of(lane).in_flight -= 1
            lane.pace.recall()
        self.reuse.failed(pending, None)

    def lost(self, lane: Lane, pending: PendingAsk) -> None:
        """An ask was sent, and its reply is lost: it may have been paid for."""
        self.spending.lose(self.spending.most(lane, pending.request))

    def unsent(self, asks: int) -> None:
        """So many asks of a wave, all that are left of it, were not sent, though they left."""
        self._context.counters.sent -= asks
        self._context.counters.waves -= 1
        self.spending.unsent(asks)

    def requeue(self, lane: Lane, pendings: list[PendingAsk]) -> None:
        """A wave does not leave: the run was stopped while its intent was being committed, or nobody takes it."""
        self._queues.count(lane, -len(pendings))
        self._context.counters.sent -= len(pendings)
        self._context.counters.waves -= 1
        self.spending.turn_back(pendings)
        for pending in pendings:
            self.batches.came_back(pending)
            if pending.wanted:
                pending.enter(QUEUED)
            else:
                self.reuse.failed(pending, None)
        self._queues.of(lane).asks.extendleft(p for p in reversed(pendings) if p.trial.conductor is not None)
        self._context.halt_when_still()

    def refused(self, lane: Lane, pendings: list[PendingAsk], failed: WaveFailed) -> None:
        """A provider did not take a batch, though nothing is wrong with its asks."""
        amount = self.batches.taken(pendings)
        self.requeue(lane, pendings)
        self._scheduler.refused(lane, pendings, amount, failed)

    def batch_leaves(self, lane: Lane, intent: Intent) -> BatchOrder:
        """A batch is on its way."""
        return self.batches.depart(lane, intent)

    def sent(self, order: BatchOrder, receipt: Receipt, *, found: bool) -> None:
        """A provider has taken it."""
        self.batches.sent(order, receipt, found=found)

    def ended(self, lane: Lane, order: BatchOrder | None, *, worked: bool) -> None:
        """All of a wave has come back."""
        if order is not None:
            self.batches.ended(order, worked=worked)
            self._context.lanes.wake()
        else:
            self._queues.of(lane).calls -= 1

    def rejoined(self, lane: Lane, pending: PendingAsk, wave: int, settlement: Settlement) -> bool:
        """An attempt of an earlier session, which counts as flying already, ended. Whether the ask has, too."""
        self._queues.in_flight -= 1
        self._queues.count(lane, 1)
        return self.arrived(lane, pending, wave, settlement)

    def _failed(
        self, lane: Lane, pending: PendingAsk, fault: Fault, wave: int, now: float, *, perhaps_paid: bool
    ) -> bool:
        """Handle a fault. Returns whether the request stays open: it is retried, or the run stops."""
        order = self.batches.orders.get(wave) if lane.barrier else None
        decision = decide(
            fault, _tried(lane, pending, fault, now), now, self._context.options.retry, self._jitter.random()
        )
        if isinstance(decision, Stop) and lane.barrier and self.batches.foreseen(wave, fault):
            decision = RetryAt(now)
        if isinstance(decision, GiveUp):
            return False
        lost_on = self._queues.of(lane) if perhaps_paid else None
        if lane.barrier:
            self._context.counters.resent += perhaps_paid
            lane = self._other_way(pending, order)
        if isinstance(decision, RetryAt):
            self._retry(lane, pending, fault, decision.when, now, lost_on=lost_on)
        else:
            pending.enter(QUEUED)
            self._queues.of(lane).asks.appendleft(pending)
            self._context.stop("fault", _why_stopped(lane, pending.request.model, fault))
        self._context.halt_when_still()
        return True

    def _other_way(self, pending: PendingAsk, order: BatchOrder | None) -> Lane:
        """The lane of a request that failed in a batch: live, if it failed too often or time is short."""
        lane = pending.lane
        if lane.live is None:
            return lane
        self.batches.failed(pending, order)
        return lane.live if order is not None and order.cancelled else self._fitting(lane, pending)

    def _retry(
        self, lane: Lane, pending: PendingAsk, fault: Fault, when: float, now: float, *, lost_on: Queue | None
    ) -> None:
        """Send a request again later. If its reply may have been billed, that is made durable first."""
        context = self._context
        context.counters.retried += 1
        self._queues.retrying += 1
        pending.attempts += 1
        pending.enter(RETRYING)

        def again() -> None:
            self._queues.retrying -= 1
            if self._closed:
                return
            if pending.wanted:
                queue = self._queues.of(lane)
                pending.enter(QUEUED)
                queue.asks.appendleft(pending)
                if not lane.barrier:
                    queue.released += 1  # it belongs to the wave that is leaving piece by piece
            else:
                self._forget(pending)
            self.schedule()

        def saved(queue: Queue) -> None:
            queue.uncommitted -= 1
            context.clock.call_at(when, again)

        if lost_on is None:
            context.clock.call_at(when, again)
        else:
            lost_on.uncommitted += 1
            context.journal.save_counters(saved, lost_on)
        context.emit(
            lambda: AskRetried(
                run=context.record.id,
                at=context.clock.wall(),
                trial=pending.trial.key,
                path=pending.wait.path,
                kind=fault.kind.value,
                message=fault.message,
                attempt=pending.attempts,
                wait=when - now,
            )
        )

    def give_back(self, pending: PendingAsk) -> None:
        """A request of an earlier session got no result: find a settlement for it again."""
        self._queues.in_flight -= 1
        self.batches.came_back(pending)
        self.spending.give_back(pending)
        pending.enter(NEW)
        self.take(pending)

    def forget_dropped(self) -> None:
        """Remove the requests of abandoned trials from the queues."""
        for queue in self._queues.queues.values():
            dropped = [pending for pending in queue.asks if not pending.wanted]
            if dropped:
                released = islice(queue.asks, queue.released)
                queue.released -= sum(not pending.wanted for pending in released)
                queue.asks = deque(pending for pending in queue.asks if pending.wanted)
            for pending in dropped:
                self._forget(pending)

    def _forget(self, pending: PendingAsk) -> None:
        """A request is no longer needed and is not sent."""
        self.reuse.failed(pending, None)
        self._delivery.ask_ended(pending)


def may_be_paid(lane: Lane, fault: Fault) -> bool:
    """Whether a provider may have billed a request that ended in a fault. Error responses are free."""
    return fault.sent and (fault.kind in UNUSABLE or (fault.kind in UNANSWERED and not lane.barrier))


def _why_stopped(lane: Lane, model: str, fault: Fault) -> str:
    """Why the run stops, and what to do about it."""
    said = f"{lane.account}: {fault.message} ({fault.kind})"
    if fault.kind is FaultKind.NOT_FOUND:
        kept = "Replies of other models are in the cache and cost nothing"
        return f"{said}. Check the model name {lane.full or model}. {kept}"
    if fault.kind in LOAD | PASSING and fault.retry_after is not None and fault.retry_after > 0:
        return f"{said}. The provider asks to wait {duration(fault.retry_after)}: resume the run after that"
    return f"{said}. Fix this, then resume the run"


def _tried(lane: Lane, pending: PendingAsk, fault: Fault, now: float) -> Tried:
    """The history of a request, including this fault."""
    if fault.kind in LOAD:
        if not pending.refusals:
            pending.refused_since = now
        pending.refusals += 1
    since = pending.refused_since
    failures = pending.attempts - pending.refusals
    silent = lane.pace.accepted_at <= since
    strange = lane.pace.latency is None
    return Tried(failures, pending.refusals, now - since if pending.refusals else 0.0, silent, strange)
