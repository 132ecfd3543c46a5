"""Going on after a stop or a crash: unfinished trials, and waves that were in flight."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from groundswell.engine.opened import Pending
from groundswell.engine.records import Absent, AskId, Found, Intent, Receipt, Undecided
from groundswell.errors import ReplayMismatch, SettingsError, WaveFailed
from groundswell.program.request import Fault, Settlement
from groundswell.program.trial import find_program

if TYPE_CHECKING:
    from groundswell.engine.run import Run

AT_ONCE = 500


async def recover(run: Run) -> None:
    """Start what an earlier session left unfinished, without waiting for the driver to submit it again.

    Trials whose program is not known yet, or has changed, are left for the driver, and so is everything if the
    driver had come to its end: then it gave them up. Planned are those that go on, until it submits more.
    """
    journal, admission = run.journal, run.admission
    if not admission.known:
        return
    for intent, receipt, prints in await journal.open_waves():
        run.dispatch.held.hold(HeldWave(intent, receipt, prints))
    rows = []
    for row in () if admission.by_driver else await journal.unfinished():
        program = find_program(row.program)
        if program is not None and admission.unchanged(program):
            rows.append((row, program))
    admission.past = admission.known - len(rows)
    run.counters.planned = run.counters.settled + len(rows)
    for at in range(0, len(rows), AT_ONCE):
        some = rows[at : at + AT_ONCE]
        recorded = await journal.recorded([row.id for row, _ in some])
        inherited = await admission.inherited([row.key for row, _ in some])
        for row, program in some:
            admission.readmit(row, program, recorded[row.id], inherited.get(row.key))
        await asyncio.sleep(0)


class HeldWave:
    """A wave of an earlier session. `prints` has those of its asks that are not settled yet."""

    __slots__ = ("intent", "pending", "prints", "receipt")

    def __init__(self, intent: Intent, receipt: Receipt | None, prints: dict[AskId, bytes]) -> None:
        self.intent = intent
        self.receipt = receipt
        self.prints = prints
        self.pending: dict[AskId, Pending] = {}


class HeldWaves:
    """Waves that were in flight when an earlier session ended.

    None of their asks is sent again before it is known what became of it.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._by_ask: dict[AskId, HeldWave] = {}

    def hold(self, wave: HeldWave) -> None:
        """Hold the asks of a wave, and find out about it."""
        for ask in wave.prints:
            self._by_ask[ask] = wave
        self._run.spawn(self._regain(wave))

    def wait_for(self, pending: Pending) -> bool:
        """Whether an ask is held; then its settlement will come from the wave that carried it."""
        if not self._by_ask or (wave := self._by_ask.get(pending.ask)) is None:
            return False
        if wave.prints[pending.ask] != pending.print and not pending.trial.lenient:
            raise ReplayMismatch(
                pending.trial.key,
                pending.wait.path,
                f"{pending.trial.program} now makes another request here than the one that is in flight",
            )
        wave.pending[pending.ask] = pending
        return True

    async def _regain(self, wave: HeldWave) -> None:
        """Find out what became of a wave, and collect what can be had of it."""
        run, intent = self._run, wave.intent
        transport = run.lanes.router.transport(intent.transport, intent.account)
        if transport is None and wave.prints:
            raise SettingsError(
                f"a wave of {len(intent.asks)} asks is in flight on {intent.account} by {intent.transport}, which is "
                "not set up now: give the same accounts as when the run was started"
            )
        while transport is not None and wave.prints and wave.receipt is None:
            found = await transport.adopt(intent)
            if isinstance(found, Absent):
                run.counters.resent += len(wave.prints) if found.perhaps_paid else 0
                break
            if isinstance(found, Undecided):
                await self._pause(found.retry_in)
            elif isinstance(found, Found):
                wave.receipt = found.receipt
                run.journal.add_receipt(intent.id, found.receipt)
        if transport is not None and wave.prints and wave.receipt is not None:
            try:
                async for ask, settlement in transport.collect(intent, wave.receipt):
                    self._regained(wave, ask, settlement)
            except WaveFailed:
                pass  # what is left of the wave is sent again
        self._release(wave)

    def _regained(self, wave: HeldWave, ask: AskId, settlement: Settlement) -> None:
        """A reply to an ask of an earlier session came."""
        run = self._run
        print_ = wave.prints.pop(ask, None)
        if print_ is None:
            return
        del self._by_ask[ask]
        pending = wave.pending.pop(ask, None)
        if pending is not None:
            lane = run.lanes.of(pending.wait.request)  # type: ignore[arg-type]  # calls are never in a wave
            lane.pace.joined(1)
            run.dispatch.arrived(lane, pending, wave.intent.id, settlement)
        elif type(settlement) is not Fault:
            run.journal.add_settlement(ask, print_, wave.intent.id, settlement, _nothing)

    def _release(self, wave: HeldWave) -> None:
        """Nothing more will come of a wave: what is left of it may be sent again."""
        for ask in wave.prints:
            del self._by_ask[ask]
        for pending in wave.pending.values():
            self._run.dispatch.give_back(pending)
        self._run.journal.end_wave(wave.intent.id)

    async def _pause(self, seconds: float) -> None:
        over: asyncio.Future[None] = self._run.loop.create_future()
        clock = self._run.clock
        clock.call_at(clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
        await over


def _nothing() -> None:
    """What follows a reply whose trial is not open: nothing, until it is."""
