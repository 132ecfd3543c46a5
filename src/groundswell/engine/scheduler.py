"""The queues of a run, and which requests are sent now. Read `Scheduler` from top to bottom.

send        sends queued requests, if the budget allows it
_ship       in batches, up to their maximum size ...
go_live     ... or live, if that is better or if they are the few that failed in a batch
_send_live  live, as many as the rate limit of the account allows
refused     the provider refused a batch: wait for room in its queue, or send live
look_again  sets a timer for the next attempt
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from math import ceil, inf

from groundswell.engine.at_risk import AtRisk
from groundswell.engine.batch_quota import BatchQuota
from groundswell.engine.batching import Batches
from groundswell.engine.context import IN_FLIGHT, PendingAsk, RunContext
from groundswell.engine.delivery import Delivery
from groundswell.engine.lanes import Lane
from groundswell.engine.rate_limit import Demand, Mark, most_uncommitted
from groundswell.engine.records import AskId
from groundswell.engine.reuse import Reuse
from groundswell.engine.spending import Spending, expected_usage
from groundswell.errors import QueueFull, WaveFailed
from groundswell.program.request import FaultKind

WHOLE_WAVE = 50_000
CALLS_AT_ONCE = 4
"""Where a wave is one call: maximum number of calls in flight. The next call collects what arrives meanwhile."""


def sendable(queued: int, released: int, *, quiet: bool) -> int:
    """How many queued requests a barrier releases.

    It waits until the run is quiet, when no program can continue and nothing is arriving, and then releases everything.
    So one wave has all requests that can be sent together, even if limits let them leave in parts. Batches at their
    providers do not matter: the trials that wait for them are not those whose requests are queued.
    """
    return released or (queued if quiet else 0)


def cut(count: int, max_wave: int) -> list[int]:
    """Split requests into the fewest waves of nearly equal size."""
    waves = ceil(count / max_wave)
    return [count * (index + 1) // waves - count * index // waves for index in range(waves)]


def trial_window(slots: int, *, barrier: bool, unopened: int | None = None) -> int:
    """How many trials to keep open; `unopened` is the number of trials that are not open yet, if known.

    A stream keeps twice as many open as there are slots, which hides the time of commits. When no more than that are
    left, all of them are opened, because trials that start late would leave most slots idle at the end
    (bench/waves.py). Barrier waves need every trial, up to the size of a provider's batch.
    """
    if barrier:
        return WHOLE_WAVE
    return 4 * slots if unopened is not None and unopened <= 2 * slots else 2 * slots


class Queue:
    """The queue of one lane, and what is in flight on it.

    asks         requests that wait to be sent; `released` of them belong to a wave that may be sent now
    cohort       how many were released at once
    in_flight    how many requests the rate limiter counts as in flight
    uncommitted  how many replies have arrived and are not durable yet
    calls        how many waves are in flight, where a wave is one call
    """

    __slots__ = ("asks", "calls", "cohort", "in_flight", "released", "uncommitted")

    def __init__(self) -> None:
        self.asks: deque[PendingAsk] = deque()
        self.released = 0
        self.cohort = 0
        self.in_flight = 0
        self.uncommitted = 0
        self.calls = 0


class Queues:
    """The queues of one run.

    in_flight       number of requests in flight
    live_in_flight  how many of them are live; their replies are lost with the connection, while a batch can be
                    collected by another process
    retrying        number of failed requests that will be queued again
    """

    def __init__(self, context: RunContext, at_risk: AtRisk, made_room: Callable[[], None]) -> None:
        self._context = context
        self._made_room = made_room
        self._at_risk = at_risk
        self.queues: dict[Lane, Queue] = {}
        self.in_flight = 0
        self.live_in_flight = 0
        self.retrying = 0

    def of(self, lane: Lane) -> Queue:
        """The queue of a lane."""
        queue = self.queues.get(lane)
        if queue is None:
            self._context.lanes.use(lane)
            queue = self.queues[lane] = Queue()
            self._at_risk.at_work(lane)
            self._made_room()  # how many trials are open depends on the lanes in use
        return queue

    def count(self, lane: Lane, asks: int) -> None:
        """So many more asks are under way on a lane, or fewer."""
        self.in_flight += asks
        if not lane.barrier:
            self.live_in_flight += asks

    @property
    def leaving_live(self) -> bool:
        """Whether asks are about to leave on lanes without a barrier, as soon as their pace allows it."""
        waves = self._context.options.schedule == "waves"
        live = (queue for lane, queue in self.queues.items() if not lane.barrier)
        return any(queue.released if waves else queue.asks for queue in live)


ANY = Demand()
LOOK_AGAIN = 0.05


class Scheduler:
    """Sends the requests of one run.

    `quiet` says whether all programs wait for requests that have not been sent.
    """

    def __init__(
        self,
        context: RunContext,
        queues: Queues,
        delivery: Delivery,
        *,
        spending: Spending,
        batches: Batches,
        reuse: Reuse,
        at_risk: AtRisk,
        quiet: Callable[[], bool],
    ) -> None:
        self._context = context
        self._queues = queues
        self._delivery = delivery
        self._spending = spending
        self._batches = batches
        self._reuse = reuse
        self._programs_wait = quiet
        self._in_waves = context.options.schedule == "waves"
        self._at_risk = at_risk
        self._alarm: tuple[float, Callable[[], None]] | None = None

    def send(self, lane: Lane, queue: Queue, now: float) -> None:
        """Send what may be sent on one lane."""
        if self._context.recovering:
            return  # what earlier sessions have in flight is not reckoned with yet
        if lane.barrier:
            if self._batches.receiving:
                return  # more asks, and more room, are about to come
            fresh = not queue.released and self._quiet()
            if wanted := sendable(len(queue.asks), queue.released, quiet=fresh):
                self._ship(lane, queue, wanted, now, fresh=fresh)
            return
        if self._at_risk.committed:  # else this is called again once it is
            self._send_live(lane, queue, now)

    def _send_live(self, lane: Lane, queue: Queue, now: float) -> None:
        """Send requests live, as many as limits allow. Almost every request takes this path, so it has few steps."""
        most = self._release(lane, queue) if self._in_waves else len(queue.asks)
        if not lane.together:
            # No more are in flight, or have come back and are not durable yet, than a crash may lose.
            cap = lane.pace.cap
            free = cap - queue.in_flight
            most = min(most, free, free + most_uncommitted(cap) - queue.uncommitted)
        if most > 0 and self._spending.limited:
            most = self._afford(lane, queue, most, now)
        transport = lane.transport
        if not transport.ready:
            self.look_again(now + LOOK_AGAIN)
        elif most > 0:
            if lane.together or lane.singly is not None:
                most = min(most, transport.max_wave)
            choose = self._one_call if lane.together else self._one_by_one
            if leaving := choose(lane, queue, most, now):
                self._depart(lane, queue, leaving, now)

    def _release(self, lane: Lane, queue: Queue) -> int:
        """How many of the queued requests belong to a wave that may be sent."""
        fresh = not queue.released and self._quiet()
        wanted = sendable(len(queue.asks), queue.released, quiet=fresh)
        if wanted and fresh:
            queue.asks = deque(sorted(queue.asks, key=_ask))
            self._delivery.gather(lane, list(islice(queue.asks, wanted)))
        queue.released = wanted
        return wanted

    def _ship(self, lane: Lane, queue: Queue, wanted: int, now: float, *, fresh: bool) -> None:
        """Send requests in batches, or live if that is better."""
        if fresh:
            queue.cohort = wanted
            queue.asks = deque(sorted(queue.asks, key=_ask))  # batches are the same however replies came in
        if lane.live is not None:
            if fresh and self._few_go_live(lane, lane.live, queue):
                return
            why = self._batches.why_live(lane, queue.asks, queue.cohort, now, fresh=fresh)
            if why is not None:
                queue.released = max(0, queue.released - wanted)
                self.go_live(lane, lane.live, [queue.asks.popleft() for _ in range(wanted)], why)
                return
        queue.released = wanted
        count = self._afford(lane, queue, wanted, now)
        for size in self._cut(lane, queue, count, now):
            wave = [queue.asks.popleft() for _ in range(size)]
            queue.released = max(0, queue.released - size)
            self._count_sent(lane, wave, now)
            self._delivery.commit(lane, wave, self._batches.about(lane, wave))

    def _cut(self, lane: Lane, queue: Queue, count: int, now: float) -> list[int]:
        """How many requests go into each batch."""
        if lane.quota is None:
            return cut(count, min(lane.transport.max_wave, self._context.options.batch_size or WHOLE_WAVE))
        sizes = self._batches.cut(lane, queue.asks, count, now)
        if sum(sizes) < count and lane.quota.not_before > now:
            self.look_again(lane.quota.not_before)
        return sizes

    def _few_go_live(self, lane: Lane, live: Lane, queue: Queue) -> bool:
        """Whether some of the requests are the few that failed in a batch. These are sent first, and the rest waits."""
        few = self._batches.few(queue.asks)
        if few:
            leaving = {pending for some in few.values() for pending in some}
            queue.asks = deque(pending for pending in queue.asks if pending not in leaving)
            for why, some in few.items():
                self.go_live(lane, live, some, why)
        return bool(few)

    def go_live(self, lane: Lane, live: Lane, pendings: list[PendingAsk], why: str) -> None:
        """Send requests live that could be batched."""
        self._batches.tell(lane, live.transport.name, len(pendings), why)
        queue = self._queues.of(live)
        queue.asks.extendleft(reversed(pendings))
        queue.released += len(pendings)
        if self._context.options.schedule == "waves":
            self._delivery.gather(live, pendings)
        self._context.schedule()

    def _quiet(self) -> bool:
        """Whether a barrier opens: no program can continue, and nothing is arriving, batches aside."""
        queues = self._queues
        waits = (
            queues.live_in_flight
            or queues.retrying
            or self._reuse.busy
            or self._batches.receiving
            or queues.leaving_live
        )
        return not waits and self._programs_wait()

    def _afford(self, lane: Lane, queue: Queue, wanted: int, now: float) -> int:
        """How many of the queued requests the budget allows. If none, and none is in flight, the run stops."""
        allowed, refusal = self._spending.affords(lane, queue.asks, wanted, now)
        if refusal is not None and not allowed and not self._queues.in_flight and not self._spending.lent:
            self._context.stop("budget", refusal)
        return allowed

    def _one_by_one(self, lane: Lane, queue: Queue, most: int, now: float) -> list[PendingAsk]:
        """The next requests, as many as the rate limiter allows."""
        pace, asks = lane.pace, queue.asks
        leaving: list[PendingAsk] = []
        while len(leaving) < most:
            given = pace.leave(_demand([asks[0]]) if pace.counts_tokens else ANY, now, queue)
            if not isinstance(given, Mark):
                self._wait_until(given, lane, queue, now)
                break
            pending = asks.popleft()
            pending.mark = given
            queue.in_flight += 1
            leaving.append(pending)
        return leaving

    def _one_call(self, lane: Lane, queue: Queue, most: int, now: float) -> list[PendingAsk]:
        """All queued requests, if the rate limiter allows one call."""
        if queue.calls >= CALLS_AT_ONCE:
            return []
        whole = list(islice(queue.asks, most))
        given = lane.pace.leave(_demand(whole) if lane.pace.counts_tokens else ANY, now, queue)
        if not isinstance(given, Mark):
            self._wait_until(given, lane, queue, now)
            return []
        whole[0].mark = given
        queue.in_flight += 1
        return [queue.asks.popleft() for _ in whole]

    def _depart(self, lane: Lane, queue: Queue, leaving: list[PendingAsk], now: float) -> None:
        """Hand requests to the delivery: one by one, or together in a call."""
        if queue.released:
            queue.released = max(0, queue.released - len(leaving))
        if lane.singly is not None:
            self._count_sent(lane, leaving, now)
            self._delivery.send_singly(lane, lane.singly, leaving, now)
            return
        for size in cut(len(leaving), lane.transport.max_wave):
            wave, leaving = leaving[:size], leaving[size:]
            queue.calls += 1
            self._count_sent(lane, wave, now)
            self._delivery.together(lane, wave)

    def _wait_until(self, when: float, lane: Lane, queue: Queue, now: float) -> None:
        """The rate limiter holds requests back until then, or until a reply arrives."""
        if when < inf:
            self.look_again(when)
        elif not queue.in_flight:  # slots that other engines hold free themselves without a word
            lane.pace.starves(queue, now)
            self.look_again(now + LOOK_AGAIN)

    def _count_sent(self, lane: Lane, pendings: list[PendingAsk], now: float) -> None:
        self._queues.count(lane, len(pendings))
        self._context.counters.sent += len(pendings)
        self._context.counters.waves += 1
        if self._spending.limited:
            self._spending.reserve(pendings)
        for pending in pendings:
            pending.enter(IN_FLIGHT)
            pending.sent_at = now

    def refused(self, lane: Lane, pendings: list[PendingAsk], amount: int, failed: WaveFailed) -> None:
        """A provider refused a batch whose requests are valid: wait for room, or send them live.

        The requests are in their queue again; `amount` is the room that they had.
        """
        live, quota, queue = lane.live, lane.quota, self._queues.of(lane)
        wanted = [pending for pending in pendings if pending.wanted]
        queue.released += len(wanted)
        queue.cohort = max(queue.cohort, queue.released)
        if live is None or quota is None:
            self._context.stop("fault", f"{lane.account}: {failed.fault.message}. Fix this, then resume the run")
        elif not isinstance(failed, QueueFull):
            quota.shut = f"{lane.account} accepts no batches: {failed.fault.message}"
        elif len(pendings) == 1 and quota.empty:
            queue.released -= len(wanted)
            why = f"the batch queue of {lane.account} is too small for this request: {failed.fault.message}"
            self.go_live(lane, live, [queue.asks.popleft() for _ in wanted], why)
        else:
            self._wait_for_room(lane, quota, amount, failed)
        self._context.schedule()

    def _wait_for_room(self, lane: Lane, quota: BatchQuota, amount: int, full: QueueFull) -> None:
        now = self._context.clock.now()
        if full.fault.kind is FaultKind.RATE_LIMITED:
            quota.limited(amount, full.fault.retry_after, now)
        else:
            quota.refused(amount, full.limit, now)
        wait = max(0.0, quota.not_before - now)
        self._batches.report_held_back(
            lane.account, lane.model, self._queues.of(lane).released, full.fault.message, wait
        )

    def look_again(self, when: float) -> None:
        """Check the queues again at this time at the latest."""
        if self._alarm is not None:
            if self._alarm[0] <= when:
                return
            self._alarm[1]()
        self._alarm = (when, self._context.clock.call_at(when, self._ring))

    def _ring(self) -> None:
        self._alarm = None
        self._context.schedule()

    def silence(self) -> None:
        if self._alarm is not None:
            self._alarm[1]()
            self._alarm = None


def _ask(pending: PendingAsk) -> AskId:
    return pending.id


def _demand(pendings: Sequence[PendingAsk]) -> Demand:
    """Expected tokens of a call."""
    usages = [expected_usage(pending.request) for pending in pendings]
    return Demand(sum(usage.input_tokens for usage in usages), sum(usage.output_tokens for usage in usages))
