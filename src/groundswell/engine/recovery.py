"""Going on after a stop or a crash: unfinished trials, and waves that were in flight."""

from __future__ import annotations

import asyncio

from groundswell.engine.admission import Admission
from groundswell.engine.context import BatchOrder, PendingAsk, RunContext
from groundswell.engine.delivery import find_out, may_have_been_taken
from groundswell.engine.dispatch import Dispatch
from groundswell.engine.ports import Batching, Transport
from groundswell.engine.records import Absent, AskId, Intent, Receipt
from groundswell.errors import NoBatches, QueueFull, ReplayMismatch, SettingsError, WaveFailed, WaveLost, WaveOutOfReach
from groundswell.program.request import FaultKind, Settlement
from groundswell.program.trial import find_program

AT_ONCE = 500


async def recover(context: RunContext, admission: Admission, dispatch: Dispatch, earlier_waves: EarlierWaves) -> None:
    """Start what an earlier session left unfinished, without waiting for the driver to submit it again.

    Trials whose program is not known yet, or has changed, are left for the driver.
    """
    try:
        left_over = await _start_again(context, admission, earlier_waves) if admission.past else False
    finally:
        context.recovering = False
    if context.error is None:
        dispatch.reuse.begin()
        dispatch.recovered(left_over=left_over)


async def _start_again(context: RunContext, admission: Admission, earlier_waves: EarlierWaves) -> bool:
    """Start unfinished trials; whether some are left over for the driver."""
    journal = context.journal
    for intent, receipt, prints in await journal.open_waves():
        earlier_waves.wait_for_results_of(EarlierWave(intent, receipt, prints))
    rows = []
    unfinished = await journal.unfinished()
    for row in unfinished:
        program = find_program(row.program)
        if program is not None and admission.unchanged(program):
            rows.append((row, program))
    for at in range(0, len(rows), AT_ONCE):
        some = rows[at : at + AT_ONCE]
        recorded = await journal.recorded([row.id for row, _ in some])
        inherited = await admission.inherited([row.key for row, _ in some])
        for row, program in some:
            admission.readmit(row, program, recorded[row.id], inherited.get(row.key))
        await asyncio.sleep(0)
    return len(rows) < len(unfinished)


class EarlierWave:
    """A wave of an earlier session. `prints` has those of its asks that are not settled yet.

    A result that comes before its trial is open again waits in `early`. It is not journalled until then: the
    trial may just be reading its journal. If it is lost to another crash, it is collected again, since a wave
    does not end before all its results were taken.
    """

    __slots__ = ("early", "intent", "over", "pending", "prints", "receipt")

    def __init__(self, intent: Intent, receipt: Receipt | None, prints: dict[AskId, bytes]) -> None:
        self.intent = intent
        self.receipt = receipt
        self.prints = prints
        self.pending: dict[AskId, PendingAsk] = {}
        self.early: dict[AskId, Settlement] = {}
        self.over = False


class EarlierWaves:
    """Waves that were in flight when an earlier session ended.

    None of their asks is sent again before it is known what became of it.
    """

    def __init__(self, context: RunContext, dispatch: Dispatch) -> None:
        self._context = context
        self._dispatch = dispatch
        self.asks: dict[AskId, EarlierWave] = {}

    def wait_for_results_of(self, wave: EarlierWave) -> None:
        """Hold the asks of a wave, and find out about it. A retried ask belongs to the last wave that carried it."""
        for ask in wave.prints:
            earlier = self.asks.get(ask)
            if earlier is not None:
                del earlier.prints[ask]
            self.asks[ask] = wave
        self._context.spawn(self._regain(wave))

    def wait_for(self, pending: PendingAsk) -> bool:
        """Whether an ask is held; then its settlement will come from the wave that carried it."""
        wave = self.asks.get(pending.id)
        if wave is None:
            return False
        if wave.prints[pending.id] != pending.print:
            if pending.trial.lenient:
                self._let_go(wave, pending.id)
                return False
            raise ReplayMismatch(
                pending.trial.key,
                pending.wait.path,
                f"{pending.trial.program} now makes another request here than the one that is in flight",
            )
        wave.pending[pending.id] = pending
        self._dispatch.reuse.rejoin(pending)
        if (early := wave.early.get(pending.id)) is not None:
            self._context.loop.call_soon(self._regained, wave, pending.id, early)
        return True

    async def _regain(self, wave: EarlierWave) -> None:
        """Find out what became of a wave, and collect what can be had of it."""
        context, intent = self._context, wave.intent
        if not wave.prints:
            self._release(wave)
            return
        transport = self._transport(intent)
        order = self._dispatch.batch_leaves(context.lanes.that_carried(intent.account, intent.transport), intent)
        order.receiving = wave.receipt is not None  # unless it is found to be worked on still
        try:
            if wave.receipt is None:
                await self._find(wave, transport)
            if wave.receipt is not None:
                self._dispatch.sent(order, wave.receipt, found=True)
                order.receiving = await _has_ended(transport, order)
                if order.receiving:
                    self._dispatch.batches.past.add(intent.id)
                self._dispatch.schedule()
                async for ask, settlement, _ in transport.collect(intent, wave.receipt):
                    order.receiving = True
                    self._regained(wave, ask, settlement)
        except (QueueFull, NoBatches):
            self._dispatch.unsent(len(wave.prints))  # nothing of it was worked on: it is sent again
        except WaveFailed as failed:
            if not self._given_up(wave, order, failed):
                return
        except WaveOutOfReach as gone:
            context.stop("fault", f"{intent.account}: {gone.fault.message}; resume the run once this is mended")
            return
        finally:
            self._dispatch.ended(order.lane, order, worked=False)
        self._release(wave)

    def _given_up(self, wave: EarlierWave, order: BatchOrder, failed: WaveFailed) -> bool:
        """Nothing more comes of a wave: what is left of it is retried. Not if that needs a question: it stays open."""
        context, left = self._context, [ask for ask in wave.prints if ask not in wave.early]
        if failed.fault.kind is FaultKind.UNSENT:
            self._dispatch.unsent(len(left))
        if isinstance(failed, WaveLost):
            why = self._dispatch.batches.reorder(order, len(left), failed.fault.message)
            if why is not None:
                context.stop("fault", why)
                return False
        for ask in left:
            self._regained(wave, ask, failed.fault)
        return True

    async def _find(self, wave: EarlierWave, transport: Transport) -> None:
        """Look for a wave whose receipt was never written."""
        context, intent = self._context, wave.intent
        why = f"it is not known yet whether wave {intent.id & 0xFFFFFFFF} was sent before the run was interrupted"
        found = await find_out(context, self._dispatch.batches, transport, intent, why)
        if isinstance(found, Absent) and found.perhaps_paid:
            raise WaveLost(may_have_been_taken(intent))  # its asks count as resent when they are sent again
        if isinstance(found, Absent):
            self._dispatch.unsent(len(intent.asks))
        else:
            wave.receipt = found
            context.journal.add_receipt(intent.id, found)

    def _transport(self, intent: Intent) -> Transport:
        """The transport of a wave, if it is that of the same account still."""
        transport = self._context.lanes.router.transport(intent.transport, intent.account)
        wave = f"a wave of {len(intent.asks)} asks is in flight on {intent.account} by {intent.transport}"
        if transport is None:
            raise SettingsError(f"{wave}, which is not set up now: give the same accounts as when the run was started")
        if isinstance(transport, Batching) and intent.about.owner not in ("", transport.owner):
            raise SettingsError(
                f"{wave}, but was sent with another key, or to another address, than {intent.account} has now: use "
                f"that one again; if both belong to the same organisation, `groundswell batches adopt {intent.run}`"
            )
        return transport

    def _regained(self, wave: EarlierWave, ask: AskId, settlement: Settlement) -> None:
        """A result for an ask of an earlier session came, or the ask that an early one waited for."""
        if ask not in wave.prints:
            return
        pending = wave.pending.pop(ask, None)
        if pending is None:
            wave.early[ask] = settlement
            return
        self._let_go(wave, ask)
        lane = self._context.lanes.that_carried(wave.intent.account, wave.intent.transport)
        self._dispatch.rejoined(lane, pending, wave.intent.id, settlement)
        if wave.over and not wave.prints:
            self._context.journal.end_wave(wave.intent.id)

    def _release(self, wave: EarlierWave) -> None:
        """Nothing more will come of a wave: what is left of it may be sent again."""
        wave.over = True
        for ask in [ask for ask in wave.prints if ask not in wave.early]:
            self._let_go(wave, ask)
            if (pending := wave.pending.pop(ask, None)) is not None:
                self._dispatch.reuse.failed(pending, None)
                self._dispatch.give_back(pending)
        if not wave.prints:
            self._context.journal.end_wave(wave.intent.id)

    def dismiss(self) -> None:
        """Nobody will ask for what is held any more: waves that have come in are over."""
        for wave in {id(wave): wave for wave in self.asks.values() if wave.over}.values():
            self._context.journal.end_wave(wave.intent.id)

    def _let_go(self, wave: EarlierWave, ask: AskId) -> None:
        wave.early.pop(ask, None)
        del wave.prints[ask]
        del self.asks[ask]


async def _has_ended(transport: Transport, order: BatchOrder) -> bool:
    """Whether the results of a batch are there already, so that what they set free is worth waiting for."""
    if not isinstance(transport, Batching) or order.batch is None:
        return False
    try:
        batch = await transport.look(order.batch)
    except WaveOutOfReach:  # who collects it is more patient
        return False
    return batch is not None and not batch.open
