"""From a pending ask to its settlement: queue, wave, transport, retry. Read `Dispatch` from top to bottom.

take       an ask that the journal does not hold: was it sent before a crash? does the cache have it?
_enqueue   it waits in the queue of its lane
_flush     which queued asks leave now (plan.py, pace.py, budget.py)
_send      the intent of a wave is committed ...
_travel    ... before it is dispatched; its replies are collected as they come
arrived    retry (retry.py), or hand the settlement back to the run
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from hashlib import blake2b
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import msgspec

from groundswell.engine import plan
from groundswell.engine.budget import Budget, Limits, Spending, expected_usage
from groundswell.engine.events import AskRetried, WaveEnded, WaveSent
from groundswell.engine.keys import sample_number
from groundswell.engine.lanes import Lane
from groundswell.engine.opened import Pending
from groundswell.engine.ports import Prices
from groundswell.engine.records import Item, Wave
from groundswell.engine.recovery import HeldWaves
from groundswell.engine.retry import GiveUp, RetryAt, decide
from groundswell.errors import WaveFailed
from groundswell.program.request import Chat, Embed, Embedding, Fault, FaultKind, Reply, Request, Settlement

if TYPE_CHECKING:
    from groundswell.engine.run import Run

LOST = Fault(FaultKind.GARBLED, "the transport gave no result for this ask")


class Queue:
    """What waits for one lane, and how much is in flight on it.

    `released` counts the asks of a barrier wave that have not all left yet.
    """

    __slots__ = ("asks", "flying", "released")

    def __init__(self) -> None:
        self.asks: deque[Pending] = deque()
        self.released = 0
        self.flying = 0


class Dispatch:
    """Sends the asks of one run.

    `flying` counts the asks in flight; `landing` those of them that must be waited for, because what a live
    connection brings is lost with it. A batch can be collected by another process.
    """

    def __init__(self, run: Run, last_wave: int, prices: Prices | None) -> None:
        self._run = run
        self._wave = last_wave
        self._prices = prices
        self._salt = run.record.id if run.record.cut is not None else ""
        self._jitter = Random(run.record.id)
        self._queues: dict[Lane, Queue] = {}
        self._unlooked: list[Pending] = []
        self._looking = 0
        self._retrying = 0
        self._flush_due = False
        self._caching = run.options.cache
        self._closed = False
        self.held = HeldWaves(run)
        self.flying = 0
        self.landing = 0

        counters = run.counters
        self._started = run.clock.now()
        self._seconds_before = counters.seconds
        spent = Spending(counters.sent, counters.input_tokens + counters.output_tokens, counters.usd)
        self._budget = Budget(run.options.limits, self._started, spent)
        self._limited = run.options.limits != Limits()
        run.lanes.join(self.schedule)

    def close(self) -> None:
        """Send nothing more, and let other runs have the slots of what is given up."""
        self._closed = True
        self._run.lanes.leave(self.schedule)
        for lane, queue in self._queues.items():
            lane.pace.correct_in_flight(-queue.flying)
        self._queues.clear()
        self._run.lanes.freed()
        self._run.counters.seconds = self._seconds_before + self._run.clock.now() - self._started

    def take(self, pending: Pending) -> None:
        """Find a settlement for an ask."""
        if self.held and self.held.wait_for(pending):
            self.flying += 1
            self._budget.rejoin()
            return
        lane = self._run.lanes.of(request_of(pending))
        if lane.cached and self._caching:
            self._unlooked.append(pending)
            if len(self._unlooked) == 1:
                self._run.loop.call_soon(lambda: self._run.spawn(self._look_up()))
        else:
            self._enqueue(lane, pending)

    async def _look_up(self) -> None:
        """Ask the cache for everything that came up in this tick."""
        looking, self._unlooked = self._unlooked, []
        self._looking += 1
        keys = [self._cache_key(pending) for pending in looking]
        found = await self._run.journal.cached(keys)
        for key, pending in zip(keys, looking, strict=True):
            settlement = found.get(key)
            if settlement is None:
                self._enqueue(self._run.lanes.of(request_of(pending)), pending)
            else:
                self._run.counters.cached += 1
                self._run.write(pending, settlement, None)
        self._looking -= 1
        self.schedule()

    def _enqueue(self, lane: Lane, pending: Pending) -> None:
        if pending.trial.conductor is not None:
            self._queue(lane).asks.append(pending)
        self.schedule()

    def schedule(self) -> None:
        """Look, at the end of this tick, whether anything may leave."""
        if not self._flush_due:
            self._flush_due = True
            self._run.loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send what may leave now."""
        self._flush_due = False
        run = self._run
        if self._closed:
            return
        if run.over is not None:
            run.halt_when_still()
            return
        try:
            self._send_queued()
        except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, a price that raises would hang the run
            run.abort(error)

    def _send_queued(self) -> None:
        run = self._run
        now = run.clock.now()
        run.counters.seconds = self._seconds_before + now - self._started
        for lane, queue in self._queues.items():
            if queue.asks:
                grant = lane.pace.grant(self._afford(lane, queue, self._sendable(lane, queue), now), 0.0, now)
                queue.released = max(0, queue.released - grant.leave)
                for size in plan.cut(grant.leave, lane.transport.max_wave):
                    self._send(lane, [queue.asks.popleft() for _ in range(size)])
                if grant.again_at is not None:
                    run.clock.call_at(grant.again_at, self.schedule)

    def _sendable(self, lane: Lane, queue: Queue) -> int:
        barrier = lane.barrier or self._run.options.schedule == "waves"
        wanted = plan.sendable(len(queue.asks), queue.released, barrier=barrier, quiet=barrier and self._quiet())
        if barrier:
            queue.released = wanted
        return wanted

    def _quiet(self) -> bool:
        return not (self.flying or self._retrying or self._looking or self._unlooked) and self._run.quiet()

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

    def _send(self, lane: Lane, pendings: list[Pending]) -> None:
        """Commit the intent of a wave, then let it go."""
        run = self._run
        self._wave += 1
        wave = Wave(
            self._wave,
            run.record.id,
            lane.account,
            lane.transport.name,
            tuple([pending.ask for pending in pendings]),
            run.clock.wall(),
            items=tuple([Item(p.ask, request_of(p), partial(self._sample, p)) for p in pendings]),
        )
        self._count_flying(lane, len(pendings))
        run.counters.sent += len(pendings)
        run.counters.waves += 1
        for pending in pendings if self._limited else ():
            self._reserve(pending)
        run.journal.add_wave(wave, [pending.print for pending in pendings], self._launch, lane, wave, pendings)

    def _launch(self, lane: Lane, wave: Wave, pendings: list[Pending]) -> None:
        if self._closed:
            return
        if self._run.over is None:
            self._run.spawn(self._travel(lane, wave, pendings))
        else:
            self._recall(lane, wave, pendings)

    def _recall(self, lane: Lane, wave: Wave, pendings: list[Pending]) -> None:
        """The run was stopped while the intent of a wave was being committed: it does not leave."""
        count = len(pendings)
        self._count_flying(lane, -count)
        lane.pace.correct_in_flight(-count)
        self._run.counters.sent -= count
        self._run.counters.waves -= 1
        self._queue(lane).asks.extendleft(reversed(pendings))
        self._run.journal.end_wave(wave.id)
        self._run.lanes.freed()
        self._run.halt_when_still()

    def _count_flying(self, lane: Lane, count: int) -> None:
        self.flying += count
        self.landing += 0 if lane.barrier else count
        self._queue(lane).flying += count

    async def _travel(self, lane: Lane, wave: Wave, pendings: list[Pending]) -> None:
        """Dispatch a wave and take in its replies."""
        run = self._run
        self._announce(wave, pendings)
        started = run.clock.now()
        flying = {pending.ask: pending for pending in pendings}
        lost = LOST
        try:
            receipt = await lane.transport.dispatch(wave)
            if receipt.data:
                run.journal.add_receipt(wave.id, receipt)
            async for ask, settlement, _ in lane.transport.collect(wave, receipt):
                pending = flying.pop(ask, None)
                if pending is not None:
                    self.arrived(lane, pending, wave.id, settlement)
        except WaveFailed as failed:
            lost = failed.fault
        except asyncio.CancelledError:
            if cancelled_by_us():
                raise
            lost = Fault(FaultKind.CONNECTION, "the transport cancelled the request")
        except Exception as error:  # noqa: BLE001  a transport that breaks: what became of the rest is not known
            self._count_flying(lane, -len(flying))
            lane.pace.correct_in_flight(-len(flying))
            run.abort(error)
            return
        for pending in flying.values():
            self.arrived(lane, pending, wave.id, lost)
        run.journal.end_wave(wave.id)
        run.emit(
            lambda: WaveEnded(
                run=run.record.id,
                at=run.clock.wall(),
                wave=wave.id,
                account=wave.account,
                size=len(pendings),
                seconds=run.clock.now() - started,
            )
        )

    def arrived(self, lane: Lane, pending: Pending, wave: int, settlement: Settlement) -> None:
        """An attempt ended: retry it, or hand its settlement to the run."""
        self._count_flying(lane, -1)
        self._spend(lane, pending, settlement)
        if type(settlement) is Fault:
            now = self._run.clock.now()
            lane.pace.failed(settlement.kind, settlement.retry_after, now)
            if self._failed(lane, pending, settlement, now):
                self._run.lanes.freed()
                return
            self._run.counters.failed += 1
            settlement = msgspec.structs.replace(settlement, attempts=pending.attempts)
        else:
            lane.pace.done()
            if lane.cached and self._caching:
                self._keep(pending, settlement)
        self._run.write(pending, settlement, wave)
        self._run.lanes.freed()

    def rejoined(self, lane: Lane, pending: Pending, wave: int, settlement: Settlement) -> None:
        """An ask of an earlier session, which counts as flying already, ended."""
        lane.pace.correct_in_flight(1)
        self.flying -= 1
        self._count_flying(lane, 1)
        self.arrived(lane, pending, wave, settlement)

    def _keep(self, pending: Pending, settlement: Settlement) -> None:
        """Let other runs have a reply; one that cannot be written is a fault when it is journalled."""
        try:
            self._run.journal.add_cached(self._cache_key(pending), settlement)
        except UnicodeEncodeError:
            return

    def _failed(self, lane: Lane, pending: Pending, fault: Fault, now: float) -> bool:
        """Whether a fault is not the end of its ask: it is retried, or the run stops before the ask is settled."""
        decision = decide(fault, pending.attempts, now, self._run.options.retry, self._jitter.random())
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
            queue.asks = deque(pending for pending in queue.asks if pending.trial.conductor is not None)
            queue.released = min(queue.released, len(queue.asks))

    def _queue(self, lane: Lane) -> Queue:
        queue = self._queues.get(lane)
        if queue is None:
            queue = self._queues[lane] = Queue()
        return queue

    def _sample(self, pending: Pending) -> int:
        trial, record = pending.trial, self._run.record
        salt = f"{self._salt}~{trial.attempt}" if trial.attempt else self._salt  # a new attempt wants other replies
        return sample_number(record.seed, salt, trial.program.name, trial.key, pending.wait.path)

    def _cache_key(self, pending: Pending) -> bytes:
        """The request's content and, unless an explicit temperature of 0 makes it moot, its sample number."""
        request = pending.wait.request
        shared = type(request) is Embed or (type(request) is Chat and request.temperature == 0)
        number = 0 if shared else self._sample(pending)
        return blake2b(pending.print + number.to_bytes(8), digest_size=16).digest()

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

    def _announce(self, wave: Wave, pendings: list[Pending]) -> None:
        run = self._run
        run.emit(
            lambda: WaveSent(
                run=run.record.id,
                at=wave.at,
                wave=wave.id,
                account=wave.account,
                transport=wave.transport,
                size=len(pendings),
                labels=tuple(sorted({pending.wait.label for pending in pendings})),
                trials=tuple(pending.trial.key for pending in pendings),
            )
        )


def cancelled_by_us() -> bool:
    """Whether the current task was asked to end, rather than something inside it having been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def request_of(pending: Pending) -> Request:
    """The request of an ask that goes to a model."""
    return pending.wait.request  # type: ignore[return-value]  # calls never get here
