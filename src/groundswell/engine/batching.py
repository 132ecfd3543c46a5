"""Requests that can be batched: whether they are sent in a batch or live, and the batches at the providers.

unfit         why a request cannot be part of a batch, if it cannot
why_live      why requests should be sent live rather than in a batch, if they should
cut           how many requests go into each batch, by its maximum size and the provider's queue
depart        a batch is created; it is an order until its last request has ended
reorder       a batch is lost: its requests are sent again, unless that may cost too much
_cancel_late  the deadline is near: batches are cancelled, and their open requests are sent live
call_off      the driver has returned: batches are cancelled
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import ceil
from typing import NamedTuple

from groundswell.engine.batch_quota import Load
from groundswell.engine.context import BatchHistory, BatchOrder, PendingAsk, RunContext
from groundswell.engine.events import BatchHeldBack, BatchReordered, BatchSent, RouteChosen
from groundswell.engine.lanes import Lane
from groundswell.engine.records import NUMBER, About, Intent, Receipt, Via
from groundswell.engine.spending import Spending, expected_usage
from groundswell.errors import WaveError
from groundswell.program.request import Chat, Fault, FaultKind, Reply, Request, Settlement
from groundswell.reporting.words import cost

USUALLY = 3600.0
"""Seconds that a batch takes, as long as none was seen: most are done within an hour."""
FEW = 0.02
"""The part of a batch that failed and is so small that the rest should not fall a turn behind it, or wait for it."""
LAST_PART = 0.25
LAST_MINUTES = 900.0
"""Before a deadline, no batch is waited for any longer: so much of the time, but no more than this many seconds."""
WORTH_IT = 0.01
"""Dollars that a batch must save for `auto` to wait for it."""
TRIES, ORDERS = 2, 5
"""How often an ask may fail in batches before it goes live, and how often there may be no batch made of it at all."""


class Case(NamedTuple):
    """What is known when asks are about to leave.

    size     how many they are
    shut     why batches do not work, if so
    seconds  how long batches take here, as far as is known
    left     seconds until the deadline, of `whole`, if there is one
    saved    dollars that a batch would save, if known
    """

    via: Via
    size: int
    shut: str | None = None
    seconds: float | None = None
    left: float | None = None
    whole: float = 0.0
    saved: float | None = None


def last_call(whole: float) -> float:
    """Seconds before a deadline from which batches are no longer awaited."""
    return min(LAST_MINUTES, LAST_PART * whole)


def why_live(case: Case) -> str | None:
    """Why requests are sent live; None if they are sent in a batch."""
    if case.shut is not None:
        return case.shut
    if case.size == 1:
        return "a single request saves little in a batch and delays the run"
    if case.left is not None and (late := _too_late(case, case.left)) is not None:
        return late
    if case.via == "auto" and case.saved is not None and case.saved < WORTH_IT:
        return f"a batch would save only ${max(case.saved, 0.0):.4f}"
    return None


def few(failed: int, among: int) -> str | None:
    """Why requests that failed in a batch are sent live, if they are few."""
    if failed > FEW * among:
        return None
    return f"only {failed} of {among} requests of a batch failed, and the others need not wait for another batch"


def _too_late(case: Case, left: float) -> str | None:
    if left <= last_call(case.whole):
        return f"a batch may not end before the deadline, which is in {left:.0f} s"
    takes = USUALLY if case.seconds is None else case.seconds
    if case.via == "auto" and 2 * takes > left:
        known = "usually takes" if case.seconds is None else "recently took"
        return f"a batch {known} {takes:.0f} s, and the deadline is in {left:.0f} s"
    return None


def why_batch(case: Case) -> str:
    """Why requests are sent in a batch."""
    price = "half the price" if case.saved is None else f"saves about ${case.saved:.4f}"
    if case.left is None:
        return f"{price}, and there is no deadline"
    return f"{price}, and the deadline is in {case.left:.0f} s"


SAMPLE = 64
FRAME = 4
"""Tokens that providers count for each message besides its text."""
ON_ITS_WAY = 60.0
"""Seconds that a run that has ended waits for a batch to be accepted, in order to cancel it."""


class Batches:
    """The batches of one run.

    orders  batches that are open, by wave
    past    waves of batches that had ended before this session
    """

    def __init__(self, context: RunContext, spending: Spending) -> None:
        self._context = context
        self._spending = spending
        self._aside: Counter[tuple[Lane, str]] = Counter()
        self._at_providers: set[PendingAsk] = set()
        self._unwatch: Callable[[], None] | None = None
        self._late = False
        self._on_its_way: dict[int, asyncio.Future[None]] = {}
        self.orders: dict[int, BatchOrder] = {}
        self.past: set[int] = set()
        self._reordered_usd = 0.0
        self._started = context.clock.now()

    def close(self) -> None:
        """The run ends. Batches that stay at providers release their quota here."""
        for order in self.orders.values():
            _free(order)
        for pending in list(self._at_providers):
            self.came_back(pending)
        if self._unwatch is not None:
            self._unwatch()

    @property
    def receiving(self) -> bool:
        """Whether the results of a batch are arriving."""
        return any(order.receiving for order in self.orders.values())

    def unfit(self, lane: Lane, pending: PendingAsk) -> str | None:
        """Why a request cannot be sent in a batch; None if it can. It is then sent live, which shows what is wrong."""
        assert lane.batching is not None
        assert lane.quota is not None
        history = _history(pending)
        if history.failures >= TRIES:
            return f"they already failed in {history.failures} batches"
        if history.unplaced >= ORDERS:
            return f"creating a batch for them failed {history.unplaced} times"
        if history.load is None:
            request = pending.request
            size = lane.batching.size(request)
            if isinstance(size, Fault):
                return f"they cannot be part of a batch: {size.message}"
            history.load = Load(size, prompt_tokens(request))
        return "they are too large for a batch" if history.load.bytes > lane.quota.capacity.bytes else None

    def why_live(self, lane: Lane, asks: Iterable[PendingAsk], size: int, now: float, *, fresh: bool) -> str | None:
        """Why asks that are about to leave go live, if so. What is chosen is told when they are `fresh`."""
        assert lane.quota is not None
        seconds = self._context.options.limits.seconds
        left = None if seconds is None else self._started + seconds - now
        case = Case(self._context.options.via, size, lane.quota.shut, lane.quota.seconds, left)
        case = case._replace(whole=seconds or 0.0, saved=self._saved(lane, asks, size) if fresh else None)
        why = why_live(case)
        if why is None and fresh:
            self.tell(lane, lane.transport.name, size, why_batch(case))
        return why

    def few(self, asks: Iterable[PendingAsk]) -> dict[str, list[PendingAsk]]:
        """Those that are the few that failed in a batch, by why they go live."""
        failed = [(pending, order) for pending in asks if (order := _history(pending).failed_in) is not None]
        many = Counter(order for _, order in failed)
        found: dict[str, list[PendingAsk]] = {}
        for pending, order in failed:
            why = few(many[order], len(order.intent.asks))
            if why is not None:
                found.setdefault(why, []).append(pending)
        return found

    def cut(self, lane: Lane, asks: Iterable[PendingAsk], count: int, now: float) -> list[int]:
        """How many asks go into each of the batches that can be made now. Their room is taken."""
        quota, sizes = lane.quota, list[int]()
        assert quota is not None
        most = min(quota.capacity.requests, self._context.options.batch_size or count)
        leaving, at = list(islice(asks, count)), 0
        while at < len(leaving):
            left = len(leaving) - at
            even = leaving[at : at + ceil(left / ceil(left / most))]
            size = quota.fit((load for pending in even if (load := _history(pending).load)), now)
            if not size:
                break
            for pending in even[:size]:
                self.take(lane, pending)
            sizes.append(size)
            at += size
        return sizes

    def take(self, lane: Lane, pending: PendingAsk) -> None:
        """An ask takes room in a provider's queue, or has it there from an earlier session."""
        if lane.quota is not None:
            history = _history(pending)
            load = history.load or Load(0, prompt_tokens(pending.request))
            history.quota_taken = lane.quota, lane.quota.take(load)
            self._at_providers.add(pending)

    def came_back(
        self, pending: PendingAsk, settlement: Settlement | None = None, order: BatchOrder | None = None
    ) -> None:
        """An ask has come back. Its room is free, or will be when its batch has ended: else others would leave by one
        and one while results come in.
        """
        history = pending.batch
        if history is None or history.quota_taken is None:
            return
        (quota, amount), history.quota_taken = history.quota_taken, None
        self._at_providers.discard(pending)
        if order is None:
            quota.free(amount)
        else:
            order.room[quota] += amount
        if type(settlement) is Reply and history.load is not None:
            quota.counted(history.load, settlement.usage.input_tokens)

    def failed(self, pending: PendingAsk, order: BatchOrder | None) -> None:
        """An ask failed in a batch, or no batch was made of it."""
        history = _history(pending)
        if order is not None and order.receipt is None:
            history.unplaced += 1
        else:
            history.failures += 1
            history.failed_in = order

    def taken(self, asks: Iterable[PendingAsk]) -> int:
        """How much room asks have at their provider."""
        return sum(ask.batch.quota_taken[1] for ask in asks if ask.batch is not None and ask.batch.quota_taken)

    def about(self, lane: Lane, asks: Sequence[PendingAsk]) -> About:
        """What is said of a batch: whose it is, for which model, and what it may cost."""
        owner = "" if lane.batching is None else lane.batching.owner
        return About(owner, lane.model, self._cost(lane, asks, len(asks)))

    def depart(self, lane: Lane, intent: Intent) -> BatchOrder:
        """A batch is made, or one that an earlier session made is there."""
        order = self.orders[intent.id] = BatchOrder(intent, lane, self._context.clock.now())
        seconds = self._context.options.limits.seconds
        if seconds is not None and self._unwatch is None and lane.batching is not None:
            when = self._started + seconds - last_call(seconds)
            self._unwatch = self._context.clock.call_at(when, self._cancel_late)
        return order

    def sent(self, order: BatchOrder, receipt: Receipt, *, found: bool = False) -> None:
        """A provider has a batch."""
        order.receipt = receipt
        self._arrived(order)
        if self._late:
            self._context.spawn(self._cancel(order))
        context, intent, batch = self._context, order.intent, order.batch
        if batch is not None:
            context.emit(
                lambda: BatchSent(
                    run=context.record.id,
                    at=context.clock.wall(),
                    wave=intent.id,
                    account=intent.account,
                    batch=batch,
                    model=intent.about.model,
                    size=len(intent.asks),
                    usd=intent.about.usd,
                    found=found,
                )
            )

    def ended(self, order: BatchOrder, *, worked: bool) -> None:
        """Nothing more comes of a batch."""
        self.orders.pop(order.intent.id, None)
        self._arrived(order)
        _free(order)
        if worked and order.lane.quota is not None:
            order.lane.quota.worked(self._context.clock.now() - order.since)

    def reorder(self, order: BatchOrder, size: int, why: str) -> str | None:
        """So many asks of a batch that is lost are sent again, and may be paid for twice: that is told.

        Gives why they are not, if so: they may cost more than the user lets be sent again without a question.
        """
        context, intent = self._context, order.intent
        usd, limit = intent.about.usd, context.options.max_reorder_usd
        if usd is not None:
            usd *= size / len(intent.asks)
        if limit is not None and (usd is None or self._reordered_usd + usd > limit):
            return self._ask_first(order, size, usd, f"{limit:g}", why)
        self._reordered_usd += usd or 0.0
        context.emit(
            lambda: BatchReordered(
                run=context.record.id,
                at=context.clock.wall(),
                wave=intent.id,
                account=intent.account,
                batch=order.batch,
                model=intent.about.model,
                size=size,
                usd=usd,
                why=why,
            )
        )
        return None

    def _ask_first(self, order: BatchOrder, size: int, usd: float | None, limit: str, why: str) -> str:
        """The message for a lost batch that the user must decide about."""
        adopt = f"groundswell batches adopt {self._context.record.id} {order.intent.id & NUMBER}"
        price = "price unknown" if usd is None else f"about {cost(usd, 0)}"
        earlier = f", of which {cost(self._reordered_usd, 0)} is used" if self._reordered_usd else ""
        return (
            f"{order.intent.account}: {why}. It is {order.batch or 'the batch'} of wave {order.intent.id & NUMBER}: "
            f"{size} requests, {price}. It was not sent again, because it may be billed twice and --max-reorder-usd is "
            f"${limit}{earlier}. Resume the run later to look for the batch again, or name it with `{adopt} BATCH`. "
            f"To send its requests again, resume with a higher --max-reorder-usd (inf: no limit), or give it up with "
            f"`{adopt} --lost`"
        )

    def foreseen(self, wave: int, fault: Fault) -> bool:
        """Whether a fault that would stop the run is no news: we cancelled the batch, or the user has resumed since."""
        order = self.orders.get(wave)
        return wave in self.past or (order is not None and order.cancelled and fault.kind is FaultKind.CANCELLED)

    def note(self, lane: Lane, why: str) -> None:
        """One ask goes live; that is told together with others of the same kind."""
        self._aside[lane, why] += 1

    def tell_noted(self) -> None:
        """Tell of asks that went live one by one."""
        if self._aside:
            for (lane, why), size in self._aside.items():
                self.tell(lane, "live" if lane.live is None else lane.live.transport.name, size, why)
            self._aside.clear()

    def tell(self, lane: Lane, way: str, size: int, why: str) -> None:
        """Tell which way asks go, and why."""
        context = self._context
        context.emit(
            lambda: RouteChosen(
                run=context.record.id,
                at=context.clock.wall(),
                account=lane.account,
                model=lane.model,
                way=way,
                size=size,
                why=why,
            )
        )

    def report_held_back(self, account: str, model: str, size: int, why: str, wait: float) -> None:
        """Tell that asks wait."""
        context = self._context
        context.emit(
            lambda: BatchHeldBack(
                run=context.record.id,
                at=context.clock.wall(),
                account=account,
                model=model,
                size=size,
                why=why,
                wait=wait,
            )
        )

    def _cancel_late(self) -> None:
        """A batch that is not back by now would miss the deadline: what it has not done yet goes live."""
        self._late = True
        self._context.schedule()  # what waits for room goes live as well
        for order in self.orders.values():
            if order.lane.batching is not None and not order.receiving and self._context.over is None:
                self._context.spawn(self._cancel(order))

    async def call_off(self) -> None:
        """The driver has all it wants: cancel what is still at providers, since nobody will come for it."""
        for order in list(self.orders.values()):
            order.cancelled = True
            if order.receipt is None:
                await self._taken(order)
            if order.intent.id in self.orders and await self._cancelled(order):
                self._context.journal.end_wave(order.intent.id)

    async def _taken(self, order: BatchOrder) -> None:
        """Wait for a provider to take a batch that is on its way there, or for that to come to nothing; not long."""
        context = self._context
        self._on_its_way[order.intent.id] = arrived = context.loop.create_future()
        give_up = context.clock.call_at(context.clock.now() + ON_ITS_WAY, lambda: self._arrived(order))
        await arrived
        give_up()

    def _arrived(self, order: BatchOrder) -> None:
        waiting = self._on_its_way.pop(order.intent.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def _cancel(self, order: BatchOrder) -> None:
        lane, batch, size = order.lane, order.batch, len(order.intent.asks)
        if batch is None or lane.batching is None:
            return
        order.cancelled = True
        self.tell(
            lane,
            "live",
            size,
            f"batch {batch} would miss the deadline: it was cancelled, and its open requests are sent live",
        )
        await self._cancelled(order)

    async def _cancelled(self, order: BatchOrder) -> bool:
        """Cancel a batch at its provider; whether that could be done."""
        lane, batch, size = order.lane, order.batch, len(order.intent.asks)
        if batch is None or lane.batching is None:
            return False
        try:
            await lane.batching.cancel(batch)
        except WaveError as error:
            self.report_held_back(lane.account, lane.model, size, f"batch {batch} could not be cancelled: {error}", 0.0)
            return False
        return True

    def _saved(self, lane: Lane, asks: Iterable[PendingAsk], size: int) -> float | None:
        """The dollars that a batch saves, going by the first asks."""
        whole, half = self._cost(lane.live, asks, size), self._cost(lane, asks, size)
        return None if whole is None or half is None else whole - half

    def _cost(self, lane: Lane | None, asks: Iterable[PendingAsk], size: int) -> float | None:
        some = [pending.request for pending in islice(asks, SAMPLE)]
        if lane is None or not some:
            return None
        prices = [self._spending.price(lane, request, expected_usage(request)) for request in some]
        known = [price for price in prices if price is not None]
        return sum(known) * size / len(some) if len(known) == len(some) else None


def _history(pending: PendingAsk) -> BatchHistory:
    if pending.batch is None:
        pending.batch = BatchHistory()
    return pending.batch


def _free(order: BatchOrder) -> None:
    """Let others have the room of a batch."""
    for quota, amount in order.room.items():
        quota.free(amount)
    order.room.clear()


def prompt_tokens(request: Request) -> int:
    """The tokens that a provider is likely to count as waiting."""
    framed = len(request.messages) if isinstance(request, Chat) else 0
    return expected_usage(request).input_tokens + FRAME * framed
