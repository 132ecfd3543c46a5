"""Recovery after a stop or a crash: unfinished trials, and waves that were in flight."""

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
    """Start unfinished trials of an earlier session without waiting for the driver to submit them again.

    Trials whose program is not loaded yet, or has changed, are left to the driver.
    """
    try:
        left_over = await _start_again(context, admission, earlier_waves) if admission.past else False
    finally:
        context.recovering = False
    if context.error is None:
        dispatch.reuse.begin()
        dispatch.recovered(left_over=left_over)


async def _start_again(context: RunContext, admission: Admission, earlier_waves: EarlierWaves) -> bool:
    """Start unfinished trials. Returns whether some are left to the driver."""
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
    """A wave of an earlier session. `prints` has the fingerprints of its requests that are not settled.

    A result that arrives before its trial is open again waits in `early`. It is not journalled until then, because the
    trial may be reading its journal. After another crash it is collected again, since a wave only ends when all its
    results are journalled.
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

    None of their requests is sent again before it is known what happened to it.
    """

    def __init__(self, context: RunContext, dispatch: Dispatch) -> None:
        self._context = context
        self._dispatch = dispatch
        self.asks: dict[AskId, EarlierWave] = {}

    def wait_for_results_of(self, wave: EarlierWave) -> None:
        """Hold the requests of a wave until its state is known. A retried request belongs to its last wave."""
        for ask in wave.prints:
            earlier = self.asks.get(ask)
            if earlier is not None:
                del earlier.prints[ask]
            self.asks[ask] = wave
        self._context.spawn(self._regain(wave))

    def wait_for(self, pending: PendingAsk) -> bool:
        """Whether a request is held. Its settlement will then come from its wave."""
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
                f"{pending.trial.program} now makes another request here than the one in flight",
            )
        wave.pending[pending.id] = pending
        clock = self._context.clock
        pending.sent_at = clock.now() - max(0.0, clock.wall() - wave.intent.at)
        self._dispatch.reuse.rejoin(pending)
        if (early := wave.early.get(pending.id)) is not None:
            self._context.loop.call_soon(self._regained, wave, pending.id, early)
        return True

    async def _regain(self, wave: EarlierWave) -> None:
        """Find out what happened to a wave, and collect its results."""
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
            context.stop("fault", f"{intent.account}: {gone.fault.message}. Fix this, then resume the run")
            return
        finally:
            self._dispatch.ended(order.lane, order, worked=False)
        self._release(wave)

    def _given_up(self, wave: EarlierWave, order: BatchOrder, failed: WaveFailed) -> bool:
        """A wave failed: retry its requests, or leave it open if the user must decide. Returns whether it ended."""
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
        """Search for a wave whose receipt was never written."""
        context, intent = self._context, wave.intent
        why = f"checking whether wave {intent.id & 0xFFFFFFFF} was sent before the run was interrupted"
        found = await find_out(context, self._dispatch.batches, transport, intent, why)
        if isinstance(found, Absent) and found.perhaps_paid:
            raise WaveLost(may_have_been_taken(intent))  # its asks count as resent when they are sent again
        if isinstance(found, Absent):
            self._dispatch.unsent(len(intent.asks))
        else:
            wave.receipt = found
            context.journal.add_receipt(intent.id, found)

    def _transport(self, intent: Intent) -> Transport:
        """The transport of a wave, if its account still has the same key and address."""
        transport = self._context.lanes.router.transport(intent.transport, intent.account)
        wave = f"a wave of {len(intent.asks)} requests is in flight on {intent.account} by {intent.transport}"
        if transport is None:
            raise SettingsError(f"{wave}, which is not set up now: use the same accounts as when the run was started")
        if isinstance(transport, Batching) and intent.about.owner not in ("", transport.owner):
            raise SettingsError(
                f"{wave}, but it was sent with another key or to another address than {intent.account} has now. Use "
                f"that key and address. If both belong to the same organisation, run "
                f"`groundswell batches adopt {intent.run}`"
            )
        return transport

    def _regained(self, wave: EarlierWave, ask: AskId, settlement: Settlement) -> None:
        """A result for a request of an earlier session arrived, or the request for an early result was made."""
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
        """A wave has ended: its open requests may be sent again."""
        wave.over = True
        for ask in [ask for ask in wave.prints if ask not in wave.early]:
            self._let_go(wave, ask)
            if (pending := wave.pending.pop(ask, None)) is not None:
                self._dispatch.reuse.failed(pending, None)
                self._dispatch.give_back(pending)
        if not wave.prints:
            self._context.journal.end_wave(wave.intent.id)

    def dismiss(self) -> None:
        """The driver has ended: end the waves whose results have all arrived."""
        for wave in {id(wave): wave for wave in self.asks.values() if wave.over}.values():
            self._context.journal.end_wave(wave.intent.id)

    def _let_go(self, wave: EarlierWave, ask: AskId) -> None:
        wave.early.pop(ask, None)
        del wave.prints[ask]
        del self.asks[ask]


async def _has_ended(transport: Transport, order: BatchOrder) -> bool:
    """Whether the results of a batch are already available."""
    if not isinstance(transport, Batching) or order.batch is None:
        return False
    try:
        batch = await transport.look(order.batch)
    except WaveOutOfReach:  # who collects it is more patient
        return False
    return batch is not None and not batch.open
