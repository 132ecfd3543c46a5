"""From a pending ask to its settlement: queue, wave, transport, retry. Read `Dispatch` from top to bottom.

take       an ask that the journal does not hold: was it sent before a crash? does somebody have the reply? (reuse.py)
_enqueue   it waits in the queue of its lane
_flush     which queued asks leave now (plan.py, budget.py)
_depart    live, as many as the pace of their account allows (pace.py); or
_commit    in a batch, which is found again after a crash: its intent is committed before it leaves
_fly       an ask travels by itself; or
_travel    a wave is dispatched, and its replies are collected as they come
arrived    retry (retry.py), or hand the settlement back to the run
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from math import inf
from random import Random
from typing import TYPE_CHECKING

import msgspec

from groundswell.engine import plan
from groundswell.engine.bucket import Demand
from groundswell.engine.budget import Budget, Limits, Spending, expected_usage
from groundswell.engine.events import AskRetried, WaveEnded, WaveSent
from groundswell.engine.lanes import Lane
from groundswell.engine.opened import Pending, request_of
from groundswell.engine.pace import Mark
from groundswell.engine.ports import Prices, Singly
from groundswell.engine.records import Item, Wave
from groundswell.engine.recovery import HeldWaves
from groundswell.engine.retry import LOAD, GiveUp, RetryAt, Tried, decide
from groundswell.engine.reuse import Reuse
from groundswell.errors import WaveFailed
from groundswell.program.request import Embedding, Fault, FaultKind, Reply, Settlement, Standing

if TYPE_CHECKING:
    from groundswell.engine.run import Run

CANCELLED = Fault(FaultKind.CONNECTION, "the transport cancelled the request")
LOST = Fault(FaultKind.GARBLED, "the transport gave no result for this ask")
ANY = Demand()
Journey = tuple[Wave, list[Pending]]
"""A wave, and whose asks it carries."""
LOOK_AGAIN = 0.05


class Queue:
    """What waits for one lane, and what is under way on it.

    asks      no wave has them yet; `released` counts those of a barrier wave that have not all left
    flying    how many asks the pace counts as in flight
    calls     how many waves are under way, where a wave is one call
    """

    __slots__ = ("asks", "calls", "flying", "released")

    def __init__(self) -> None:
        self.asks: deque[Pending] = deque()
        self.released = 0
        self.flying = 0
        self.calls = 0


class Dispatch:
    """Sends the asks of one run.

    `flying` counts the asks whose waves are under way; `landing` those of them that must be waited for, because
    what a live connection brings is lost with it. A batch can be collected by another process.
    """

    def __init__(self, run: Run, last_wave: int, prices: Prices | None, *, died: bool) -> None:
        self._run = run
        self._wave = last_wave
        self._prices = prices
        self._jitter = Random(run.record.id)
        self._queues: dict[Lane, Queue] = {}
        self._retrying = 0
        self._flush_due = False
        self._alarm: tuple[float, Callable[[], None]] | None = None
        self._caching = run.options.cache
        self._closed = False
        self.reuse = Reuse(run, run.lanes.asked, self._enqueue)
        self.held = HeldWaves(run)
        self.flying = 0
        self.landing = 0

        counters = run.counters
        self._died = died
        self._cut_off, counters.flying = counters.flying, 0
        self._torn: Counter[Lane] = Counter()
        self._started = run.clock.now()
        self._seconds_before = counters.seconds
        spent = Spending(counters.sent, counters.input_tokens + counters.output_tokens, counters.usd)
        self._budget = Budget(run.options.limits, self._started, spent)
        self._limited = run.options.limits != Limits()
        run.lanes.join(self)
        run.journal.on_commit(self._go_on)

    def close(self) -> None:
        """Send nothing more, and let other runs have the slots of what is given up."""
        self._closed = True
        for lane, queue in self._queues.items():
            for _ in range(queue.flying):
                lane.pace.recall()
        self._queues.clear()
        self._silence()
        self.reuse.close()
        self._run.lanes.leave(self)
        self._run.counters.seconds = self._seconds_before + self._run.clock.now() - self._started

    def take(self, pending: Pending) -> None:
        """Find a settlement for an ask."""
        if self.held and self.held.wait_for(pending):
            self.flying += 1
            self._budget.rejoin()
            return
        request = request_of(pending)
        lane = self._run.lanes.of(request)
        if lane not in self._queues:
            self._queue(lane)
            self._run.admission.made_room()  # how many trials are open depends on the lanes in use
        if pending.trial.torn and not lane.barrier:
            self._count_resent(lane)
        if lane.full is not None:
            self._run.admission.check_alias(request.model, lane.full)
        if lane.cached and self._caching:
            self.reuse.look(pending)
        else:
            self._enqueue(lane, pending)

    def _count_resent(self, lane: Lane) -> None:
        """An earlier session may have sent this ask: one that cut connections says how many, one that died cannot."""
        most = lane.pace.allowance.limits.max_concurrent
        if self._torn[lane] < most + plan.unsure(most) if self._died else sum(self._torn.values()) < self._cut_off:
            self._torn[lane] += 1
            self._run.counters.resent += 1

    def _enqueue(self, lane: Lane, pending: Pending) -> None:
        if pending.trial.conductor is not None:
            self._queue(lane).asks.append(pending)
        else:
            self.reuse.failed(pending, None)
        self.schedule()

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
                self._send(lane, queue, self._run.clock.now())
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
        try:
            self._send_queued()
        except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, a price that raises would hang the run
            run.abort(error)

    def _leave_to_others(self) -> None:
        """The run was stopped: what it does not send any more, other runs that wait for it ask for themselves."""
        for queue in self._queues.values():
            for pending in queue.asks:
                self.reuse.failed(pending, None)

    def _send_queued(self) -> None:
        run = self._run
        now = run.clock.now()
        run.counters.seconds = self._seconds_before + now - self._started
        for lane, queue in self._queues.items():
            if queue.asks:
                self._send(lane, queue, now)
            if lane.pace.latency is not None:
                run.journal.linger(lane.pace.latency / 10)

    def _send(self, lane: Lane, queue: Queue, now: float) -> None:
        """Send what may leave on one lane."""
        count = self._afford(lane, queue, self._sendable(lane, queue), now)
        if lane.barrier:
            queue.released = max(0, queue.released - count)
            for size in plan.cut(count, lane.transport.max_wave):
                self._commit(lane, self._wave_of(lane, [queue.asks.popleft() for _ in range(size)]))
        elif not lane.transport.ready:
            self._look_again(now + LOOK_AGAIN)
        elif count:
            self._depart(lane, queue, count, now)

    def _sendable(self, lane: Lane, queue: Queue) -> int:
        barrier = lane.barrier or self._run.options.schedule == "waves"
        wanted = plan.sendable(len(queue.asks), queue.released, barrier=barrier, quiet=barrier and self._quiet())
        if barrier:
            queue.released = wanted
        return wanted

    def _quiet(self) -> bool:
        return not (self.flying or self._retrying or self.reuse.busy) and self._run.quiet()

    def _afford(self, lane: Lane, queue: Queue, wanted: int, now: float) -> int:
        """How many of the queued asks the budget allows; if none, and none is in flight, the run stops."""
        if not self._limited:
            return wanted
        allowed, tokens, usd = 0, 0, 0.0
        for pending in islice(queue.asks, wanted):
            self._estimate(lane, pending)
            tokens, usd = tokens + pending.tokens, usd + pending.usd
            refusal = self._budget.refusal(now, allowed + 1, tokens, usd)
            if refusal is not None:
                if not allowed and not self.flying:
                    self._run.stop("budget", refusal)
                break
            allowed += 1
        return allowed

    def _depart(self, lane: Lane, queue: Queue, most: int, now: float) -> None:
        """Let go what the pace allows."""
        leaving: list[Pending] = []
        if lane.together:
            if queue.calls < plan.CALLS_AT_ONCE:
                whole = [queue.asks[at] for at in range(min(most, lane.transport.max_wave))]
                if self._leaves(lane, queue, whole, now):
                    leaving = [queue.asks.popleft() for _ in whole]
        else:
            cap = lane.pace.cap
            room = cap + plan.unsure(cap) - queue.flying - self._run.committing
            most = min(most, lane.transport.max_wave, room)
            while len(leaving) < most and self._leaves(lane, queue, [queue.asks[0]], now):
                leaving.append(queue.asks.popleft())
        queue.released = max(0, queue.released - len(leaving))
        if lane.singly is not None:
            self._fly_off(lane, lane.singly, leaving)
            return
        for size in plan.cut(len(leaving), lane.transport.max_wave):
            queue.calls += 1
            wave, leaving = self._wave_of(lane, leaving[:size]), leaving[size:]
            self._run.spawn(self._travel(lane, wave))

    def _leaves(self, lane: Lane, queue: Queue, pendings: list[Pending], now: float) -> bool:
        """Whether the pace lets one call go, for one ask or for several."""
        given = lane.pace.leave(_demand(lane, pendings), now)
        if isinstance(given, Mark):
            pendings[0].mark = given
            queue.flying += 1
            return True
        if given < inf or not queue.flying:  # slots that other engines hold free themselves without a word
            self._look_again(min(given, now + LOOK_AGAIN) if given == inf else given)
        return False

    def _fly_off(self, lane: Lane, way: Singly, leaving: list[Pending]) -> None:
        """Let asks travel by themselves. To people who watch, they are a wave."""
        if not leaving:
            return
        self._wave += 1
        self._count_sent(lane, leaving)
        aloft = Aloft(self._wave, lane.account, len(leaving), self._run.clock.now())
        for pending in leaving:
            self._run.follow(self._fly(lane, way, pending, aloft))
        if self._run.listeners:
            self._announce(lane, self._wave, leaving)

    async def _fly(self, lane: Lane, way: Singly, pending: Pending, aloft: Aloft) -> None:
        """One ask, there and back."""
        standings: Sequence[Standing] = ()
        try:
            settlement, standings = await way.ask(request_of(pending))
        except asyncio.CancelledError:
            if cancelled_by_us():
                raise
            settlement = CANCELLED
        except Exception as error:  # noqa: BLE001  a transport that breaks: what became of the ask is not known
            self._give_up(lane, pending)
            self._run.abort(error)
            return
        finally:
            self._run.unfollow()
        try:
            self.arrived(lane, pending, aloft.wave, settlement, standings)
        except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, it would hang the run
            self._run.abort(error)
        aloft.left -= 1
        if not aloft.left and self._run.listeners:
            self._tell_ended(aloft.wave, aloft.account, aloft.size, aloft.started)

    def _wave_of(self, lane: Lane, pendings: list[Pending]) -> Journey:
        """Asks that leave together, counted as sent."""
        run = self._run
        self._wave += 1
        wave = Wave(
            self._wave,
            run.record.id,
            lane.account,
            lane.transport.name,
            tuple([pending.ask for pending in pendings]),
            run.clock.wall(),
            items=tuple([Item(p.ask, request_of(p), partial(self.reuse.sample, p)) for p in pendings]),
        )
        self._count_sent(lane, pendings)
        return wave, pendings

    def _count_sent(self, lane: Lane, pendings: list[Pending]) -> None:
        self._count_flying(lane, len(pendings))
        self._run.counters.sent += len(pendings)
        self._run.counters.waves += 1
        for pending in pendings if self._limited else ():
            self._reserve(pending)

    def _commit(self, lane: Lane, journey: Journey) -> None:
        """Commit the intent of a wave, then let it go."""
        wave, pendings = journey
        self._run.journal.add_wave(wave, [pending.print for pending in pendings], self._launch, lane, journey)

    def _launch(self, lane: Lane, journey: Journey) -> None:
        if self._closed:
            return
        if self._run.over is None:
            self._run.spawn(self._travel(lane, journey))
        else:
            self._recall(lane, *journey)

    def _recall(self, lane: Lane, wave: Wave, pendings: list[Pending]) -> None:
        """The run was stopped while the intent of a wave was being committed: it does not leave."""
        self._count_flying(lane, -len(pendings))
        self._run.counters.sent -= len(pendings)
        self._run.counters.waves -= 1
        self._queue(lane).asks.extendleft(reversed(pendings))
        self._run.journal.end_wave(wave.id)
        self._run.halt_when_still()

    def _count_flying(self, lane: Lane, count: int) -> None:
        self.flying += count
        if not lane.barrier:
            self.landing += count
            self._run.counters.flying = self.landing

    async def _travel(self, lane: Lane, journey: Journey) -> None:
        """Dispatch a wave and take in its replies."""
        run, (wave, pendings) = self._run, journey
        self._announce(lane, wave.id, pendings)
        started = run.clock.now()
        flying = {pending.ask: pending for pending in pendings}
        lost = LOST
        try:
            receipt = await lane.transport.dispatch(wave)
            if receipt.data:
                run.journal.add_receipt(wave.id, receipt)
            async for ask, settlement, standings in lane.transport.collect(wave, receipt):
                pending = flying.pop(ask, None)
                if pending is not None:
                    self.arrived(lane, pending, wave.id, settlement, standings)
        except WaveFailed as failed:
            lost = failed.fault
        except asyncio.CancelledError:
            if cancelled_by_us():
                raise
            lost = CANCELLED
        except Exception as error:  # noqa: BLE001  a transport that breaks: what became of the rest is not known
            for pending in flying.values():
                self._give_up(lane, pending)
            run.abort(error)
            return
        for pending in flying.values():
            self.arrived(lane, pending, wave.id, lost)
        self._end(lane, wave, started)

    def _end(self, lane: Lane, wave: Wave, started: float) -> None:
        """Everything of a wave has come back."""
        if lane.barrier:
            self._run.journal.end_wave(wave.id)
        else:
            self._queue(lane).calls -= 1
        self._tell_ended(wave.id, wave.account, len(wave.asks), started)

    def _tell_ended(self, wave: int, account: str, size: int, started: float) -> None:
        run = self._run
        run.emit(
            lambda: WaveEnded(
                run=run.record.id,
                at=run.clock.wall(),
                wave=wave,
                account=account,
                size=size,
                seconds=run.clock.now() - started,
            )
        )

    def arrived(
        self,
        lane: Lane,
        pending: Pending,
        wave: int,
        settlement: Settlement,
        standings: Sequence[Standing] = (),
    ) -> None:
        """An attempt ended: retry it, or hand its settlement to the run."""
        now = self._run.clock.now()
        self._count_flying(lane, -1)
        self._spend(lane, pending, settlement)
        self._tell_pace(lane, pending, settlement, standings, now)
        if type(settlement) is Fault:
            if self._failed(lane, pending, settlement, now):
                self._run.lanes.freed(lane)
                return
            self._run.counters.failed += 1
            settlement = msgspec.structs.replace(settlement, attempts=pending.attempts)
            self.reuse.failed(pending, settlement)
        elif lane.cached and self._caching:
            self.reuse.replied(pending, settlement)
        self._run.write(pending, settlement, wave)
        self._run.lanes.freed(lane)

    def _tell_pace(
        self, lane: Lane, pending: Pending, settlement: Settlement, standings: Sequence[Standing], now: float
    ) -> None:
        """Free the slot of an ask, and let the pace learn from what came."""
        mark, pending.mark = pending.mark, None
        if mark is None:
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

    def _give_up(self, lane: Lane, pending: Pending) -> None:
        """What became of an ask is not known."""
        self.reuse.failed(pending, None)
        self._count_flying(lane, -1)
        if pending.mark is not None:
            pending.mark = None
            self._queue(lane).flying -= 1
            lane.pace.recall()
        self.reuse.failed(pending, None)

    def rejoined(self, lane: Lane, pending: Pending, wave: int, settlement: Settlement) -> None:
        """An ask of an earlier session, which counts as flying already, ended."""
        self.flying -= 1
        self._count_flying(lane, 1)
        self.arrived(lane, pending, wave, settlement)

    def _failed(self, lane: Lane, pending: Pending, fault: Fault, now: float) -> bool:
        """Whether a fault is not the end of its ask: it is retried, or the run stops before the ask is settled."""
        decision = decide(fault, _tried(lane, pending, fault, now), now, self._run.options.retry, self._jitter.random())
        if isinstance(decision, GiveUp):
            return False
        if isinstance(decision, RetryAt):
            self._retry(lane, pending, fault, decision.when, now)
        else:
            why = f"{lane.account}: {fault.message} ({fault.kind}); resume the run once this is mended"
            self._queue(lane).asks.appendleft(pending)
            self._run.stop("fault", why)
        self._run.halt_when_still()
        return True

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
                self.reuse.failed(pending, None)
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
        self._budget.settle(0, 0.0, 0, 0.0)
        self.take(pending)

    def forget_dropped(self) -> None:
        """Take the asks of trials that were given up out of the queues."""
        for queue in self._queues.values():
            dropped = [pending for pending in queue.asks if pending.trial.conductor is None]
            if dropped:
                queue.asks = deque(pending for pending in queue.asks if pending.trial.conductor is not None)
                queue.released = min(queue.released, len(queue.asks))
            for pending in dropped:
                self.reuse.failed(pending, None)

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
        return queue

    def _estimate(self, lane: Lane, pending: Pending) -> None:
        """What an ask may use at most, as far as can be told; reserved while it is in flight."""
        if not pending.tokens:
            request = request_of(pending)
            usage = expected_usage(request)
            pending.tokens = usage.input_tokens + usage.output_tokens
            price = self._prices(request, Reply("", usage), lane.transport.name) if self._prices else None
            pending.usd = price or 0.0

    def _reserve(self, pending: Pending) -> None:
        if self._limited:
            self._budget.reserve(pending.tokens, pending.usd)

    def _spend(self, lane: Lane, pending: Pending, settlement: Settlement) -> None:
        """Count what an attempt used."""
        tokens, usd = 0, 0.0
        if type(settlement) is Reply or type(settlement) is Embedding:
            counters, usage = self._run.counters, settlement.usage
            tokens = usage.input_tokens + usage.output_tokens
            counters.input_tokens += usage.input_tokens
            counters.output_tokens += usage.output_tokens
            price = self._prices(request_of(pending), settlement, lane.transport.name) if self._prices else None
            if price is None:
                counters.unknown_cost += 1
            else:
                usd = price
                counters.usd += price
        if self._limited:
            self._budget.settle(pending.tokens, pending.usd, tokens, usd)

    def _announce(self, lane: Lane, wave: int, pendings: list[Pending]) -> None:
        run = self._run
        run.emit(
            lambda: WaveSent(
                run=run.record.id,
                at=run.clock.wall(),
                wave=wave,
                account=lane.account,
                transport=lane.transport.name,
                size=len(pendings),
                labels=tuple(sorted({pending.wait.label for pending in pendings})),
                trials=tuple(pending.trial.key for pending in pendings),
            )
        )


class Aloft:
    """Asks that left at the same time and travel by themselves. `left` counts those that have not come back."""

    __slots__ = ("account", "left", "size", "started", "wave")

    def __init__(self, wave: int, account: str, size: int, started: float) -> None:
        self.wave = wave
        self.account = account
        self.size = self.left = size
        self.started = started


def _demand(lane: Lane, pendings: list[Pending]) -> Demand:
    """What the tokens of a call may come to."""
    if not lane.pace.counts_tokens:
        return ANY
    usages = [expected_usage(request_of(pending)) for pending in pendings]
    return Demand(sum(usage.input_tokens for usage in usages), sum(usage.output_tokens for usage in usages))


def _tried(lane: Lane, pending: Pending, fault: Fault, now: float) -> Tried:
    """What became of an ask so far, this fault counted."""
    if fault.kind in LOAD:
        if not pending.refusals:
            pending.refused_since = now
        pending.refusals += 1
    since = pending.refused_since
    failures = pending.attempts - pending.refusals
    silent = lane.pace.accepted_at <= since
    return Tried(failures, pending.refusals, now - since if pending.refusals else 0.0, silent)


def cancelled_by_us() -> bool:
    """Whether the current task was asked to end, rather than something inside it having been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
