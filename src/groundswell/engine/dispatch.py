"""From a pending ask to its settlement: queue, wave, transport, retry. Read `Dispatch` from top to bottom.

take       an ask that the journal does not hold: was it sent before a crash? does somebody have the reply? (reuse.py)
_enqueue   it waits in the queue of its lane
_flush     which queued asks leave now (plan.py, budget.py)
_depart    live, as many as the pace of their account allows (pace.py) ...
_ship      ... or in batches, as much as these hold (batches.py), unless they had better go live
           they travel (travel.py), and each comes back
arrived    retry (retry.py), or hand the settlement back to the run
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from math import inf
from random import Random
from typing import TYPE_CHECKING

import msgspec

from groundswell.engine import plan
from groundswell.engine.batches import Batches, Order
from groundswell.engine.bucket import Demand
from groundswell.engine.budget import expected_usage
from groundswell.engine.events import AskRetried
from groundswell.engine.hold import Hold
from groundswell.engine.lanes import Lane
from groundswell.engine.opened import Pending, request_of
from groundswell.engine.pace import Mark
from groundswell.engine.ports import Prices
from groundswell.engine.purse import Purse
from groundswell.engine.records import AskId, Intent, Receipt
from groundswell.engine.recovery import HeldWaves
from groundswell.engine.retry import LOAD, GiveUp, RetryAt, Stop, Tried, decide
from groundswell.engine.reuse import Reuse
from groundswell.engine.torn import Torn
from groundswell.engine.travel import Travel
from groundswell.errors import QueueFull, WaveFailed
from groundswell.program.request import Fault, FaultKind, Reply, Settlement, Standing

if TYPE_CHECKING:
    from groundswell.engine.run import Run

ANY = Demand()
WHOLE_WAVE = plan.WHOLE_WAVE
LOOK_AGAIN = 0.05


class Queue:
    """What waits for one lane, and what is under way on it.

    asks      no wave has them yet; `released` counts those of a barrier wave that have not all left
    cohort    how many were released at once
    flying    how many asks the pace counts as in flight
    unsure    how many replies have come and are not durable yet
    calls     how many waves are under way, where a wave is one call
    """

    __slots__ = ("asks", "calls", "cohort", "flying", "released", "unsure")

    def __init__(self) -> None:
        self.asks: deque[Pending] = deque()
        self.released = 0
        self.cohort = 0
        self.flying = 0
        self.unsure = 0
        self.calls = 0


class Dispatch:
    """Sends the asks of one run.

    `flying` counts the asks whose waves are under way; `landing` those of them that must be waited for, because
    what a live connection brings is lost with it. A batch can be collected by another process.
    """

    def __init__(self, run: Run, last_wave: int, prices: Prices | None, *, died: bool) -> None:
        self._run = run
        self.purse = Purse(run, prices)
        self.batches = Batches(run, self.purse)
        self._jitter = Random(run.record.id)
        self._queues: dict[Lane, Queue] = {}
        self._retrying = 0
        self._flush_due = False
        self._alarm: tuple[float, Callable[[], None]] | None = None
        self._caching = run.options.cache
        self._closed = False
        self.reuse = Reuse(run, run.lanes.asked, self._enqueue)
        self._travel = Travel(run, self, self.reuse.sample, last_wave)
        self._torn = Torn(run.counters, died=died)
        self._unheard_of = 0
        self.held = HeldWaves(run)
        self.flying = 0
        self.landing = 0

        self._started = run.clock.now()
        self._seconds_before = run.counters.seconds
        run.lanes.join(self)
        run.journal.on_commit(self._go_on)

    def close(self) -> None:
        """Send nothing more, and let other runs have the slots of what is given up."""
        self._closed = self._travel.over = True
        for lane, queue in self._queues.items():
            for _ in range(queue.flying):
                lane.pace.recall()
        self._queues.clear()
        self._silence()
        self.batches.close()
        self.reuse.close()
        self._run.lanes.leave(self)
        self._torn.ended(self.landing + self._unheard_of)
        self._run.counters.seconds = self._seconds_before + self._run.clock.now() - self._started

    def take(self, pending: Pending) -> None:
        """Find a settlement for an ask."""
        if self.held and self.held.wait_for(pending):
            self._rejoin(pending)
            return
        request = request_of(pending)
        lane = self._run.lane_of(request)
        if lane not in self._queues:
            self._begin(lane)
        if pending.trial.torn:
            self._torn.count(lane)
        if lane.full is not None:
            self._run.admission.check_alias(request.model, lane.full)
        if lane.cached and self._caching:
            self.reuse.look(pending)
        else:
            self._enqueue(lane, pending)

    def _begin(self, lane: Lane) -> None:
        """A lane comes into use."""
        self._queue(lane)
        if self._run.options.via != "live" and not lane.barrier:
            self.batches.tell(lane, lane.transport.name, 0, f"{lane.account} has no batch API")
        elif lane.live is not None and lane.hold is not None and lane.hold.shut is not None:
            self.batches.tell(lane, lane.live.transport.name, 0, lane.hold.shut)

    @property
    def barrier(self) -> bool:
        """Whether some lane in use sends whole waves."""
        return any(lane.barrier for lane in self._queues)

    def _rejoin(self, pending: Pending) -> None:
        """An ask is in flight since an earlier session."""
        self.flying += 1
        home = self._run.lane_of(request_of(pending))
        self.purse.rejoin(home, pending)
        self.batches.take(home, pending)

    def recovered(self) -> None:
        """All that earlier sessions may have sent has been taken."""
        self._torn.recovered(self._queues)
        self.schedule()

    def _enqueue(self, lane: Lane, pending: Pending) -> None:
        if pending.trial.conductor is not None:
            self._queue(self._fitting(lane, pending)).asks.append(pending)
        else:
            self.reuse.failed(pending, None)
        self.schedule()

    def _fitting(self, lane: Lane, pending: Pending) -> Lane:
        """The lane that an ask waits on: it goes live if it cannot travel in a batch."""
        if lane.live is None or lane.hold is None:
            return lane
        if lane.hold.shut is not None:
            return lane.live
        if (why := self.batches.unfit(lane, pending)) is None:
            return lane
        self.batches.note(lane, why)
        return lane.live

    def schedule(self) -> None:
        """Look, at the end of this tick, whether anything may leave."""
        if not self._flush_due:
            self._flush_due = True
            self._run.loop.call_soon(self._flush)

    def room_on(self, lane: Lane) -> None:
        """A slot of a lane is free: fill it at once."""
        queue = self._queues.get(lane)
        if queue is not None and queue.asks:
            if self._run.over is None and not lane.barrier:
                self._guarded(lambda: self._send(lane, queue, self._run.clock.now()))
            else:
                self.schedule()

    def _go_on(self) -> None:
        """A commit has set programs free: look for what they ask now and send it, without another turn of the loop."""
        self.reuse.look_now()
        self._flush()

    def _flush(self) -> None:
        """Send what may leave now."""
        run = self._run
        if self._closed or not self._flush_due:
            return
        self._flush_due = False
        if run.over is not None:
            self._leave_to_others()
            run.halt_when_still()
            return
        self._guarded(self._send_queued)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, a price that raises would hang the run
            self._run.abort(error)

    def _leave_to_others(self) -> None:
        """The run was stopped: what it does not send any more, other runs that wait for it ask for themselves."""
        for queue in self._queues.values():
            for pending in queue.asks:
                self.reuse.failed(pending, None)

    def _send_queued(self) -> None:
        run = self._run
        now = run.clock.now()
        run.counters.seconds = self._seconds_before + now - self._started
        for lane, queue in list(self._queues.items()):
            if queue.asks:
                self._send(lane, queue, now)
            if lane.pace.latency is not None:
                run.journal.linger(lane.pace.latency / 10)
        self.batches.tell_noted()

    def _send(self, lane: Lane, queue: Queue, now: float) -> None:
        """Send what may leave on one lane."""
        if self._run.recovering:
            return  # what earlier sessions have in flight is not reckoned with yet
        if lane.barrier:
            if self.batches.unloading:
                return  # more asks, and more room, are about to come
            fresh = not queue.released and self._quiet()
            if wanted := plan.sendable(len(queue.asks), queue.released, quiet=fresh):
                self._ship(lane, queue, wanted, now, fresh=fresh)
            return
        wanted = self._sendable(lane, queue)
        if not lane.together:
            wanted = min(wanted, max(0, lane.pace.cap - queue.flying))
        count = self._afford(lane, queue, wanted, now) if wanted else 0
        if not lane.transport.ready:
            self._look_again(now + LOOK_AGAIN)
        elif count:
            self._depart(lane, queue, count, now)

    def _sendable(self, lane: Lane, queue: Queue) -> int:
        if self._run.options.schedule != "waves":
            return len(queue.asks)
        fresh = not queue.released and self._quiet()
        wanted = plan.sendable(len(queue.asks), queue.released, quiet=fresh)
        if wanted and fresh:
            queue.asks = deque(sorted(queue.asks, key=_ask))
            self._travel.gather(lane, list(islice(queue.asks, wanted)))
        queue.released = wanted
        return wanted

    def _ship(self, lane: Lane, queue: Queue, wanted: int, now: float, *, fresh: bool) -> None:
        """Let asks go in batches, or live where that is better."""
        if fresh:
            queue.cohort = wanted
            queue.asks = deque(sorted(queue.asks, key=_ask))  # batches are the same however replies came in
        if lane.live is not None:
            if fresh and self._few_go_live(lane, lane.live, queue):
                return
            why = self.batches.why_live(lane, queue.asks, queue.cohort, now, fresh=fresh)
            if why is not None:
                queue.released = max(0, queue.released - wanted)
                self._go_live(lane, lane.live, [queue.asks.popleft() for _ in range(wanted)], why)
                return
        queue.released = wanted
        count = self._afford(lane, queue, wanted, now)
        for size in self._cut(lane, queue, count, now):
            wave = [queue.asks.popleft() for _ in range(size)]
            queue.released = max(0, queue.released - size)
            self._count_sent(lane, wave)
            self._travel.commit(lane, wave, self.batches.about(lane, wave))

    def _cut(self, lane: Lane, queue: Queue, count: int, now: float) -> list[int]:
        """How many asks go into each batch."""
        if lane.hold is None:
            return plan.cut(count, min(lane.transport.max_wave, self._run.options.batch_size or WHOLE_WAVE))
        sizes = self.batches.cut(lane, queue.asks, count, now)
        if sum(sizes) < count and lane.hold.not_before > now:
            self._look_again(lane.hold.not_before)
        return sizes

    def _few_go_live(self, lane: Lane, live: Lane, queue: Queue) -> bool:
        """Whether some of the asks are the few that failed in a batch. These go ahead, and the rest waits for them."""
        few = self.batches.few(queue.asks)
        if few:
            leaving = {pending for some in few.values() for pending in some}
            queue.asks = deque(pending for pending in queue.asks if pending not in leaving)
            for why, some in few.items():
                self._go_live(lane, live, some, why)
        return bool(few)

    def _go_live(self, lane: Lane, live: Lane, pendings: list[Pending], why: str) -> None:
        """Asks that could travel in a batch leave live."""
        self.batches.tell(lane, live.transport.name, len(pendings), why)
        queue = self._queue(live)
        queue.asks.extendleft(reversed(pendings))
        queue.released += len(pendings)
        if self._run.options.schedule == "waves":
            self._travel.gather(live, pendings)
        self.schedule()

    def _quiet(self) -> bool:
        """Whether a barrier opens: no program can go on, and nothing comes in. What is in batches has its own time."""
        waits = self.landing or self._retrying or self.reuse.busy or self.batches.unloading or self._leaving_live()
        return not waits and self._run.quiet()

    def _leaving_live(self) -> bool:
        """Whether asks are about to leave on lanes without a barrier, as soon as their pace allows it."""
        waves = self._run.options.schedule == "waves"
        live = (queue for lane, queue in self._queues.items() if not lane.barrier)
        return any(queue.released if waves else queue.asks for queue in live)

    def _afford(self, lane: Lane, queue: Queue, wanted: int, now: float) -> int:
        """How many of the queued asks the budget allows; if none, and none is in flight, the run stops."""
        allowed, refusal = self.purse.affords(lane, queue.asks, wanted, now)
        if refusal is not None and not allowed and not self.flying:
            self._run.stop("budget", refusal)
        return allowed

    def _depart(self, lane: Lane, queue: Queue, most: int, now: float) -> None:
        """Let go what the pace allows."""
        choose = self._one_call if lane.together else self._one_by_one
        leaving = choose(lane, queue, most, now)
        if not leaving:
            return
        queue.released = max(0, queue.released - len(leaving))
        if lane.singly is not None:
            self._count_sent(lane, leaving)
            self._travel.fly(lane, lane.singly, leaving)
            return
        for size in plan.cut(len(leaving), lane.transport.max_wave):
            wave, leaving = leaving[:size], leaving[size:]
            queue.calls += 1
            self._count_sent(lane, wave)
            self._travel.together(lane, wave)

    def _one_by_one(self, lane: Lane, queue: Queue, most: int, now: float) -> list[Pending]:
        """The next asks, as many as the pace lets go. No more than a crash may lose are in flight or not durable."""
        pace, asks, leaving = lane.pace, queue.asks, list[Pending]()
        cap = pace.cap
        most = min(most, cap + plan.unsure(cap) - queue.flying - queue.unsure)
        if lane.singly is not None:
            most = min(most, lane.transport.max_wave)  # one, while an endpoint that was out is tried
        while len(leaving) < most:
            pending = asks[0]
            given = pace.leave(_demand([pending]) if pace.counts_tokens else ANY, now, queue)
            if not isinstance(given, Mark):
                self._wait_until(given, lane, queue, now)
                break
            pending.mark = given
            queue.flying += 1
            leaving.append(asks.popleft())
        return leaving

    def _one_call(self, lane: Lane, queue: Queue, most: int, now: float) -> list[Pending]:
        """All that waits, if the pace lets one call go."""
        if queue.calls >= plan.CALLS_AT_ONCE:
            return []
        whole = list(islice(queue.asks, min(most, lane.transport.max_wave)))
        given = lane.pace.leave(_demand(whole) if lane.pace.counts_tokens else ANY, now, queue)
        if not isinstance(given, Mark):
            self._wait_until(given, lane, queue, now)
            return []
        whole[0].mark = given
        queue.flying += 1
        return [queue.asks.popleft() for _ in whole]

    def _wait_until(self, when: float, lane: Lane, queue: Queue, now: float) -> None:
        """The pace holds asks back until then, or until something comes back."""
        if when < inf:
            self._look_again(when)
        elif not queue.flying:  # slots that other engines hold free themselves without a word
            lane.pace.starves(queue, now)
            self._look_again(now + LOOK_AGAIN)

    def _count_sent(self, lane: Lane, pendings: list[Pending]) -> None:
        self._count_flying(lane, len(pendings))
        self._run.counters.sent += len(pendings)
        self._run.counters.waves += 1
        self.purse.reserve(pendings)

    def _count_flying(self, lane: Lane, count: int) -> None:
        self.flying += count
        if not lane.barrier:
            self.landing += count

    def arrived(
        self,
        lane: Lane,
        pending: Pending,
        wave: int,
        settlement: Settlement,
        standings: Sequence[Standing] = (),
    ) -> bool:
        """An attempt ended: retry it, or hand its settlement to the run. Whether that is the end of the ask."""
        now = self._run.clock.now()
        self._count_flying(lane, -1)
        self.batches.came_back(pending, settlement, self.batches.orders.get(wave))
        self.purse.spend(lane, pending, settlement)
        self._tell_pace(lane, pending, settlement, standings, now)
        if type(settlement) is Fault:
            if self._failed(lane, pending, settlement, wave, now):
                self._run.lanes.freed(lane)
                return False
            self._run.counters.failed += 1
            settlement = msgspec.structs.replace(settlement, attempts=pending.attempts)
            self.reuse.failed(pending, settlement)
        elif lane.cached and self._caching:
            self.reuse.replied(pending, settlement)
        pending.lane = lane
        self._queue(lane).unsure += 1
        self._run.write(pending, settlement, wave)
        self._run.lanes.freed(lane)
        return True

    def durable(self, pending: Pending) -> None:
        """A settlement is durable."""
        if pending.key is not None:
            self.reuse.settled(pending)
        if pending.lane is not None:
            self._queue(pending.lane).unsure -= 1

    def _tell_pace(
        self, lane: Lane, pending: Pending, settlement: Settlement, standings: Sequence[Standing], now: float
    ) -> None:
        """Free the slot of an ask, and let the pace learn from what came."""
        mark, pending.mark = pending.mark, None
        if mark is None or self._closed:  # then its slot was given back already
            return
        self._queue(lane).flying -= 1
        if standings:
            lane.pace.heard(standings, mark, now)
        if type(settlement) is Fault:
            lane.pace.failed(mark, settlement.kind, settlement.retry_after, now)
        elif lane.together or type(settlement) is not Reply:
            lane.pace.done(mark, mark.demand, now)
        else:
            lane.pace.done(mark, Demand(settlement.usage.input_tokens, settlement.usage.output_tokens), now)

    def unheard_of(self, lane: Lane, pending: Pending) -> None:
        """What became of an ask is not known."""
        self._unheard_of += not lane.barrier
        self._count_flying(lane, -1)
        self.batches.came_back(pending)
        if pending.mark is not None and not self._closed:
            pending.mark = None
            self._queue(lane).flying -= 1
            lane.pace.recall()
        self.reuse.failed(pending, None)

    def unsent(self, asks: int) -> None:
        """So many asks of a wave, all that are left of it, were not sent, though they left."""
        self._run.counters.sent -= asks
        self._run.counters.waves -= 1
        self.purse.unsent(asks)

    def turned_back(self, lane: Lane, pendings: list[Pending]) -> None:
        """A wave does not leave: the run was stopped while its intent was being committed, or nobody takes it."""
        self._count_flying(lane, -len(pendings))
        self._run.counters.sent -= len(pendings)
        self._run.counters.waves -= 1
        self.purse.turn_back(pendings)
        for pending in pendings:
            self.batches.came_back(pending)
            if pending.trial.conductor is None:
                self.reuse.failed(pending, None)
        self._queue(lane).asks.extendleft(p for p in reversed(pendings) if p.trial.conductor is not None)
        self._run.halt_when_still()

    def refused(self, lane: Lane, pendings: list[Pending], failed: WaveFailed) -> None:
        """A provider did not take a batch, though nothing is wrong with its asks: wait for room, or go another way."""
        amount = sum(pending.berth[1] for pending in pendings if pending.berth)
        self.turned_back(lane, pendings)
        live, hold, queue = lane.live, lane.hold, self._queue(lane)
        wanted = [pending for pending in pendings if pending.trial.conductor is not None]
        queue.released += len(wanted)
        queue.cohort = max(queue.cohort, queue.released)
        if live is None or hold is None:
            self._run.stop("fault", f"{lane.account}: {failed.fault.message}; resume the run once this is mended")
        elif not isinstance(failed, QueueFull):
            hold.shut = f"{lane.account} takes no batches: {failed.fault.message}"
        elif len(pendings) == 1 and hold.empty:
            queue.released -= len(wanted)
            why = f"the queue of {lane.account} has no room for it, even by itself: {failed.fault.message}"
            self._go_live(lane, live, [queue.asks.popleft() for _ in wanted], why)
        else:
            self._wait_for_room(lane, hold, amount, failed)
        self.schedule()

    def _wait_for_room(self, lane: Lane, hold: Hold, amount: int, full: QueueFull) -> None:
        now = self._run.clock.now()
        if full.fault.kind is FaultKind.RATE_LIMITED:
            hold.pause(full.fault.retry_after, now)
        else:
            hold.refused(amount, full.limit, now)
        wait = max(0.0, hold.not_before - now)
        self.batches.hold_back(lane.account, lane.model, self._queue(lane).released, full.fault.message, wait)

    def departs(self, lane: Lane, intent: Intent) -> Order:
        """A batch is on its way."""
        return self.batches.depart(lane, intent)

    def sent(self, order: Order, receipt: Receipt, *, found: bool) -> None:
        """A provider has taken it."""
        self.batches.sent(order, receipt, found=found)

    def ended(self, lane: Lane, order: Order | None, *, worked: bool) -> None:
        """All of a wave has come back."""
        if order is not None:
            self.batches.ended(order, worked=worked)
            self._run.lanes.wake()
        else:
            self._queue(lane).calls -= 1

    def rejoined(self, lane: Lane, pending: Pending, wave: int, settlement: Settlement) -> bool:
        """An attempt of an earlier session, which counts as flying already, ended. Whether the ask has, too."""
        self.flying -= 1
        self._count_flying(lane, 1)
        return self.arrived(lane, pending, wave, settlement)

    def _failed(self, lane: Lane, pending: Pending, fault: Fault, wave: int, now: float) -> bool:
        """Whether a fault is not the end of its ask: it is retried, or the run stops before the ask is settled."""
        order = self.batches.orders.get(wave) if lane.barrier else None
        decision = decide(fault, _tried(lane, pending, fault, now), now, self._run.options.retry, self._jitter.random())
        if isinstance(decision, Stop) and lane.barrier and self.batches.foreseen(wave, fault):
            decision = RetryAt(now)
        if isinstance(decision, GiveUp):
            return False
        if lane.barrier:
            lane = self._other_way(pending, order)
        if isinstance(decision, RetryAt):
            self._retry(lane, pending, fault, decision.when, now)
        else:
            self._queue(lane).asks.appendleft(pending)
            self._run.stop("fault", _why_stopped(lane, request_of(pending).model, fault))
        self._run.halt_when_still()
        return True

    def _other_way(self, pending: Pending, order: Order | None) -> Lane:
        """The lane that an ask takes after it failed in a batch: live, if that happens too often or time is short."""
        home = self._run.lane_of(request_of(pending))
        if home.live is None:
            return home
        pending.failures += 1
        pending.failed_in = order
        return home.live if order is not None and order.spilled else self._fitting(home, pending)

    def _retry(self, lane: Lane, pending: Pending, fault: Fault, when: float, now: float) -> None:
        run = self._run
        run.counters.retried += 1
        self._retrying += 1
        pending.attempts += 1

        def again() -> None:
            self._retrying -= 1
            if self._closed:
                return
            if pending.trial.conductor is not None:
                queue = self._queue(lane)
                queue.asks.appendleft(pending)
                if not lane.barrier:
                    queue.released += 1  # it belongs to the wave that is leaving piece by piece
            else:
                self._forget(pending)
            self.schedule()

        run.clock.call_at(when, again)
        run.emit(
            lambda: AskRetried(
                run=run.record.id,
                at=run.clock.wall(),
                trial=pending.trial.key,
                path=pending.wait.path,
                kind=fault.kind.value,
                message=fault.message,
                attempt=pending.attempts,
                wait=when - now,
            )
        )

    def give_back(self, pending: Pending) -> None:
        """Nothing came of an ask of an earlier session: find a settlement for it anew."""
        self.flying -= 1
        self.batches.came_back(pending)
        self.purse.give_back(pending)
        self.take(pending)

    def forget_dropped(self) -> None:
        """Take the asks of trials that were given up out of the queues."""
        for queue in self._queues.values():
            dropped = [pending for pending in queue.asks if pending.trial.conductor is None]
            if dropped:
                released = islice(queue.asks, queue.released)
                queue.released -= sum(pending.trial.conductor is None for pending in released)
                queue.asks = deque(pending for pending in queue.asks if pending.trial.conductor is not None)
            for pending in dropped:
                self._forget(pending)

    def _forget(self, pending: Pending) -> None:
        """Nobody waits for an ask any more, and it is not sent."""
        self.reuse.failed(pending, None)
        self._travel.gone(pending)

    def _look_again(self, when: float) -> None:
        """See to it that what may leave is looked at again by then."""
        if self._alarm is not None:
            if self._alarm[0] <= when:
                return
            self._alarm[1]()
        self._alarm = (when, self._run.clock.call_at(when, self._ring))

    def _ring(self) -> None:
        self._alarm = None
        self.schedule()

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm[1]()
            self._alarm = None

    def _queue(self, lane: Lane) -> Queue:
        queue = self._queues.get(lane)
        if queue is None:
            queue = self._queues[lane] = Queue()
            self._torn.at_work(self._queues)
            self._run.admission.made_room()  # how many trials are open depends on the lanes in use
        return queue


def _ask(pending: Pending) -> AskId:
    return pending.ask


def _demand(pendings: Sequence[Pending]) -> Demand:
    """What the tokens of a call may come to."""
    usages = [expected_usage(request_of(pending)) for pending in pendings]
    return Demand(sum(usage.input_tokens for usage in usages), sum(usage.output_tokens for usage in usages))


def _why_stopped(lane: Lane, model: str, fault: Fault) -> str:
    """What made a run stop, and what to do about it."""
    said = f"{lane.account}: {fault.message} ({fault.kind})"
    if fault.kind is FaultKind.NOT_FOUND:
        return f"{said}: is {lane.full or model} the right name? Replies of other models are kept, and free next time"
    return f"{said}; resume the run once this is mended"


def _tried(lane: Lane, pending: Pending, fault: Fault, now: float) -> Tried:
    """What became of an ask so far, this fault counted."""
    if fault.kind in LOAD:
        if not pending.refusals:
            pending.refused_since = now
        pending.refusals += 1
    since = pending.refused_since
    failures = pending.attempts - pending.refusals
    silent = lane.pace.accepted_at <= since
    strange = lane.pace.latency is None
    return Tried(failures, pending.refusals, now - since if pending.refusals else 0.0, silent, strange)
