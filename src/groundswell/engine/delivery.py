"""Sends requests and receives their results: one by one, in a wave, or in a batch that can be recovered after a crash.

send_singly  each request is one HTTP request; when its reply has arrived, the next one takes its place
together     a wave is dispatched, and its replies are collected as they arrive
commit       the same for a batch, once its intent is durable
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from groundswell.engine.batching import Batches
from groundswell.engine.context import BatchOrder, LiveWave, PendingAsk, RunContext
from groundswell.engine.events import WaveEnded, WaveSent
from groundswell.engine.lanes import Lane
from groundswell.engine.ports import Singly, Transport
from groundswell.engine.records import NUMBER, About, Absent, AskId, Found, Intent, Item, Receipt, Wave
from groundswell.errors import NoBatches, QueueFull, RunError, WaveFailed, WaveLost, WaveOutOfReach, WaveUnsure
from groundswell.program.request import Embedding, Fault, FaultKind, Reply, Settlement, Standing

CANCELLED = Fault(FaultKind.CONNECTION, "the transport cancelled the request")
NOTHING_SAID = About()
LOST = Fault(FaultKind.GARBLED, "the transport returned no result for this request")


class Dispatcher(Protocol):
    """Where asks leave from and come back to."""

    def arrived(
        self, lane: Lane, pending: PendingAsk, wave: int, settlement: Settlement, standings: Sequence[Standing] = ()
    ) -> bool:
        """An attempt ended. Whether that is the end of the ask."""
        ...

    def outcome_unknown(self, lane: Lane, pending: PendingAsk) -> None:
        """What became of an ask is not known."""
        ...

    def lost(self, lane: Lane, pending: PendingAsk) -> None:
        """An ask was sent, and its reply is lost: it may have been paid for."""
        ...

    def unsent(self, asks: int) -> None:
        """So many asks of a wave were not sent, though they left."""
        ...

    def requeue(self, lane: Lane, pendings: list[PendingAsk]) -> None:
        """Asks do not leave after all."""
        ...

    def refused(self, lane: Lane, pendings: list[PendingAsk], failed: WaveFailed) -> None:
        """A batch was not taken, though nothing is wrong with its asks."""
        ...

    def batch_leaves(self, lane: Lane, intent: Intent) -> BatchOrder:
        """A batch is on its way."""
        ...

    def sent(self, order: BatchOrder, receipt: Receipt, *, found: bool) -> None:
        """A provider has taken a batch."""
        ...

    def ended(self, lane: Lane, order: BatchOrder | None, *, worked: bool) -> None:
        """All of a wave has come back."""
        ...


class Journey(NamedTuple):
    """A wave, and whose asks it carries."""

    wave: Wave
    pendings: list[PendingAsk]


class Delivery:
    """Carries the asks of one run."""

    def __init__(
        self,
        context: RunContext,
        dispatch: Dispatcher,
        batches: Batches,
        sample: Callable[[PendingAsk], int],
        last_wave: int,
    ) -> None:
        self._context = context
        self._dispatch = dispatch
        self._batches = batches
        self._sample = sample
        self._wave = last_wave
        self._in_waves = context.options.schedule == "waves"
        self._arriving_on: Lane | None = None
        self._next: tuple[PendingAsk, LiveWave] | None = None
        self.over = False

    def gather(self, lane: Lane, pendings: list[PendingAsk]) -> None:
        """Asks that are all that can travel together, though each by itself, and perhaps not all at once."""
        self._wave += 1
        self._announce(lane, self._wave, pendings, whole=True)
        live_wave = LiveWave(self._wave, lane.account, len(pendings), self._context.clock.now(), whole=True)
        for pending in pendings:
            pending.live_wave = live_wave

    def send_singly(self, lane: Lane, way: Singly, leaving: list[PendingAsk], now: float) -> None:
        """Send asks as requests of their own. The first of them takes the place of one that has just come back."""
        self._wave += 1
        loose = [pending for pending in leaving if pending.live_wave is None] if self._in_waves else leaving
        among = LiveWave(self._wave, lane.account, len(loose), now)
        if loose and self._context.listeners:
            self._announce(lane, self._wave, loose)
        for pending in leaving:
            live_wave = pending.live_wave or among
            if self._arriving_on is lane and self._next is None:
                self._next = pending, live_wave
            else:
                self._context.track(self._carry(lane, way, pending, live_wave))

    async def _carry(self, lane: Lane, way: Singly, pending: PendingAsk, live_wave: LiveWave) -> None:
        """One ask there and back, then the one that takes its place."""
        in_flight: tuple[PendingAsk, LiveWave] | None = (pending, live_wave)
        settlement: Settlement
        limits: Sequence[Standing]
        try:
            while in_flight is not None:
                pending, live_wave = in_flight
                try:
                    settlement, limits = await way.ask(pending.request)
                    if type(settlement) is not Reply:
                        _check(lane, settlement)
                except asyncio.CancelledError:
                    if cancelled_by_us():
                        self._dispatch.lost(lane, pending)
                        raise
                    settlement, limits = CANCELLED, ()
                except Exception:  # a transport that breaks
                    self._dispatch.outcome_unknown(lane, pending)
                    raise
                in_flight = self._receive(lane, pending, live_wave, settlement, limits)
        except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, it would hang the run
            self._context.abort(error)
        finally:
            self._context.untrack()

    def _receive(
        self,
        lane: Lane,
        pending: PendingAsk,
        live_wave: LiveWave,
        settlement: Settlement,
        limits: Sequence[Standing],
    ) -> tuple[PendingAsk, LiveWave] | None:
        """Take in what came of an ask; returns the one that leaves in its place, if one may."""
        self._arriving_on = lane
        ended = True
        try:
            ended = self._dispatch.arrived(lane, pending, live_wave.wave, settlement, limits)
        finally:
            self._arriving_on = None
        if ended or not live_wave.whole:
            live_wave.left -= 1
            if not live_wave.left and self._context.listeners:
                self._tell_wave_ended(live_wave)
        following, self._next = self._next, None
        return following

    def ask_ended(self, pending: PendingAsk) -> None:
        """Nothing more comes of an ask: it has ended, or was given up."""
        live_wave, pending.live_wave = pending.live_wave, None
        if live_wave is not None:
            live_wave.left -= 1
            if not live_wave.left:
                self._tell_wave_ended(live_wave)

    def _tell_wave_ended(self, live_wave: LiveWave) -> None:
        self._tell_ended(live_wave.wave, live_wave.account, live_wave.size, live_wave.started)

    def together(self, lane: Lane, pendings: list[PendingAsk]) -> None:
        """Let asks travel in a wave."""
        self._context.spawn(self._travel(lane, self._journey(lane, pendings)))

    def commit(self, lane: Lane, pendings: list[PendingAsk], about: About) -> None:
        """Commit the intent of a wave, then let it go."""
        journey = self._journey(lane, pendings, about)
        prints = [pending.print for pending in pendings]
        self._context.journal.add_wave(journey.wave, prints, self._launch, lane, journey)

    def _journey(self, lane: Lane, pendings: list[PendingAsk], about: About = NOTHING_SAID) -> Journey:
        context = self._context
        self._wave += 1
        wave = Wave(
            self._wave,
            context.record.id,
            lane.account,
            lane.transport.name,
            tuple([pending.id for pending in pendings]),
            context.clock.wall(),
            about,
            items=tuple([Item(p.id, p.request, partial(self._sample, p)) for p in pendings]),
        )
        return Journey(wave, pendings)

    def _launch(self, lane: Lane, journey: Journey) -> None:
        """An intent is durable. If the run was stopped, or its trials given up meanwhile, the wave does not leave."""
        if self.over:
            return
        if self._context.over is None and any(pending.wanted for pending in journey.pendings):
            self._context.spawn(self._travel(lane, journey))
        else:
            self._context.journal.end_wave(journey.wave.id)
            self._dispatch.requeue(lane, journey.pendings)

    async def _travel(self, lane: Lane, journey: Journey) -> None:
        """A wave there and back."""
        context, (wave, pendings) = self._context, journey
        started, loose = context.clock.now(), [pending for pending in pendings if pending.live_wave is None]
        if loose:
            self._announce(lane, wave.id, loose, whole=lane.barrier)
        in_flight = {pending.id: pending for pending in pendings}
        order = self._dispatch.batch_leaves(lane, wave) if lane.barrier else None
        try:
            lost, worked = await self._bring(lane, wave, in_flight, order)
        except WaveLost as gone:
            assert order is not None
            why = self._batches.reorder(order, len(in_flight), gone.fault.message)
            if why is not None:
                self._leave_open(lane, in_flight, order)
                context.stop("fault", why)
                return
            lost, worked = gone.fault, False
        except WaveOutOfReach as gone:
            self._leave_open(lane, in_flight, order)
            context.stop("fault", f"{lane.account}: {gone.fault.message}. Fix this, then resume the run")
            return
        except Exception as error:  # noqa: BLE001  a transport that breaks: what became of the rest is not known
            self._leave_open(lane, in_flight, order)
            context.abort(error)
            return
        for pending in in_flight.values():
            self._arrive(lane, pending, wave.id, lost)
        if lane.barrier:
            context.journal.end_wave(wave.id)
        self._dispatch.ended(lane, order, worked=worked)
        if loose:
            self._tell_ended(wave.id, wave.account, len(loose), started)

    async def _bring(
        self, lane: Lane, wave: Wave, in_flight: dict[AskId, PendingAsk], order: BatchOrder | None
    ) -> tuple[Fault, bool]:
        """Dispatch a wave and take in its replies. Why others did not come, and whether the wave was worked on."""
        sent = False
        try:
            receipt = await self._sent(lane, wave, order)
            sent = True
            async for ask, settlement, standings in lane.transport.collect(wave, receipt):
                _check(lane, settlement)
                if order is not None:
                    order.receiving = True
                pending = in_flight.pop(ask, None)
                if pending is not None:
                    self._arrive(lane, pending, wave.id, settlement, standings)
        except (QueueFull, NoBatches) as failed:
            self._dispatch.refused(lane, list(in_flight.values()), failed)
            in_flight.clear()
            return LOST, False
        except WaveLost:
            raise
        except WaveFailed as failed:
            if order is not None and (not sent or failed.fault.kind is FaultKind.UNSENT):
                self._dispatch.unsent(len(in_flight))
            return failed.fault, False
        except asyncio.CancelledError:
            if cancelled_by_us():
                for pending in in_flight.values() if order is None else ():
                    self._dispatch.lost(lane, pending)
                raise
            if order is None:
                return CANCELLED, False
            raise RunError(
                f"transport {lane.transport.name!r} raised CancelledError, which a transport must not do"
            ) from None
        return LOST, True

    def _arrive(
        self, lane: Lane, pending: PendingAsk, wave: int, settlement: Settlement, standings: Sequence[Standing] = ()
    ) -> None:
        if self._dispatch.arrived(lane, pending, wave, settlement, standings):
            self.ask_ended(pending)

    async def _sent(self, lane: Lane, wave: Wave, order: BatchOrder | None) -> Receipt:
        """Send a wave. If nobody knows whether it was taken, find that out before anything else."""
        found = False
        try:
            receipt = await lane.transport.dispatch(wave)
        except WaveUnsure as unsure:
            told = await find_out(self._context, self._batches, lane.transport, wave, str(unsure))
            if isinstance(told, Absent) and told.perhaps_paid:
                raise WaveLost(may_have_been_taken(wave)) from None
            if isinstance(told, Absent):
                raise WaveFailed(Fault(FaultKind.UNSENT, f"the provider did not accept the batch: {unsure}")) from None
            receipt, found = told, True
        if receipt.data:
            self._context.journal.add_receipt(wave.id, receipt)
            if order is not None:
                self._dispatch.sent(order, receipt, found=found)
        return receipt

    def _leave_open(self, lane: Lane, in_flight: dict[AskId, PendingAsk], order: BatchOrder | None) -> None:
        """What became of asks is not known. Their wave stays open, and whoever resumes the run asks for it again."""
        for pending in in_flight.values():
            self._dispatch.outcome_unknown(lane, pending)
        if order is not None:
            self._dispatch.ended(lane, order, worked=False)

    def _announce(self, lane: Lane, wave: int, pendings: list[PendingAsk], *, whole: bool = False) -> None:
        context = self._context
        context.emit(
            lambda: WaveSent(
                run=context.record.id,
                at=context.clock.wall(),
                wave=wave,
                account=lane.account,
                transport=lane.transport.name,
                size=len(pendings),
                labels=tuple(sorted({pending.wait.label for pending in pendings})),
                trials=tuple(pending.trial.key for pending in pendings),
                whole=whole,
                first=not any(pending.trial.answered for pending in pendings),
            )
        )

    def _tell_ended(self, wave: int, account: str, size: int, started: float) -> None:
        context = self._context
        context.emit(
            lambda: WaveEnded(
                run=context.record.id,
                at=context.clock.wall(),
                wave=wave,
                account=account,
                size=size,
                seconds=context.clock.now() - started,
            )
        )


async def find_out(
    context: RunContext, batches: Batches, transport: Transport, intent: Intent, why: str
) -> Receipt | Absent:
    """What became of a wave that nobody has a receipt for: ask until it can be told."""
    while True:
        found = await transport.adopt(intent)
        if isinstance(found, Found):
            return found.receipt
        if isinstance(found, Absent):
            return found
        size, wait = len(intent.asks), found.retry_in
        batches.report_held_back(intent.account, intent.about.model, size, why, wait)
        await context.pause(wait)


def may_have_been_taken(intent: Intent) -> Fault:
    """The fault of a wave that is not found, while a batch of others cannot be told from it any more."""
    number = intent.id & NUMBER
    why = f"it can no longer be determined whether wave {number} was sent, because results that may be its own are gone"
    return Fault(FaultKind.GARBLED, why)


def _check(lane: Lane, settlement: object) -> None:
    """Refuse what is no settlement: journalled or cached, it could never be read again."""
    if not isinstance(settlement, Reply | Embedding | Fault):
        raise RunError(
            f"transport {lane.transport.name!r} returned {settlement!r} instead of a Reply, an Embedding or a Fault"
        )


def cancelled_by_us() -> bool:
    """Whether the current task was asked to end, rather than something inside it having been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
