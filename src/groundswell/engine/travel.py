"""How asks that leave travel and come back: singly, in a wave, or in a batch that is found again after a crash.

fly      asks travel by themselves; one that lands makes way for the next
together a wave is dispatched, and its replies are collected as they come
commit   the same for a batch, once its intent is durable
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from groundswell.engine.events import WaveEnded, WaveSent
from groundswell.engine.lanes import Lane
from groundswell.engine.opened import Pending, request_of
from groundswell.engine.ports import Answered, Singly
from groundswell.engine.records import Item, Wave
from groundswell.errors import RunError, WaveFailed
from groundswell.program.request import Embedding, Fault, FaultKind, Reply, Settlement, Standing

if TYPE_CHECKING:
    from groundswell.engine.run import Run

CANCELLED = Fault(FaultKind.CONNECTION, "the transport cancelled the request")
LOST = Fault(FaultKind.GARBLED, "the transport gave no result for this ask")


class Home(Protocol):
    """Where asks leave from and come back to."""

    def arrived(
        self, lane: Lane, pending: Pending, wave: int, settlement: Settlement, standings: Sequence[Standing] = ()
    ) -> None:
        """An attempt ended."""
        ...

    def unheard_of(self, lane: Lane, pending: Pending) -> None:
        """What became of an ask is not known."""
        ...

    def turned_back(self, lane: Lane, pendings: list[Pending]) -> None:
        """Asks do not leave after all."""
        ...

    def ended(self, lane: Lane) -> None:
        """All of a wave has come back."""
        ...


class Journey(NamedTuple):
    """A wave, and whose asks it carries."""

    wave: Wave
    pendings: list[Pending]


class Aloft:
    """Asks that left at the same time and travel by themselves. `left` counts those that have not come back."""

    __slots__ = ("account", "left", "size", "started", "wave")

    def __init__(self, wave: int, account: str, size: int, started: float) -> None:
        self.wave = wave
        self.account = account
        self.size = self.left = size
        self.started = started


class Travel:
    """Carries the asks of one run."""

    def __init__(self, run: Run, home: Home, sample: Callable[[Pending], int], last_wave: int) -> None:
        self._run = run
        self._home = home
        self._sample = sample
        self._wave = last_wave
        self._landed: Lane | None = None
        self._next: tuple[Pending, Aloft] | None = None
        self.over = False

    def fly(self, lane: Lane, way: Singly, leaving: list[Pending]) -> None:
        """Let asks travel by themselves. One that has just come back makes way for the first of them."""
        self._wave += 1
        aloft = Aloft(self._wave, lane.account, len(leaving), self._run.clock.now())
        for pending in leaving:
            if self._landed is lane and self._next is None:
                self._next = pending, aloft
            else:
                self._run.follow(self._fly(lane, way, pending, aloft))
        if self._run.listeners:
            self._announce(lane, self._wave, leaving)

    async def _fly(self, lane: Lane, way: Singly, pending: Pending, aloft: Aloft) -> None:
        """One ask there and back, then the one that takes its place."""
        flying: tuple[Pending, Aloft] | None = (pending, aloft)
        try:
            while flying is not None:
                pending, aloft = flying
                flying = self._land(lane, pending, aloft, await self._answer(lane, way, pending))
        except Exception as error:  # noqa: BLE001  nobody waits for this: unheard, it would hang the run
            self._run.abort(error)
        finally:
            self._run.unfollow()

    async def _answer(self, lane: Lane, way: Singly, pending: Pending) -> Answered:
        """What comes of one attempt."""
        try:
            return _checked(lane, await way.ask(request_of(pending)))
        except asyncio.CancelledError:
            if cancelled_by_us():
                raise
            return CANCELLED, ()
        except Exception:  # a transport that breaks
            self._home.unheard_of(lane, pending)
            raise

    def _land(self, lane: Lane, pending: Pending, aloft: Aloft, answered: Answered) -> tuple[Pending, Aloft] | None:
        """Take in what came of an ask; gives the one that leaves in its place, if one may."""
        self._landed = lane
        try:
            self._home.arrived(lane, pending, aloft.wave, *answered)
        finally:
            self._landed = None
        aloft.left -= 1
        if not aloft.left and self._run.listeners:
            self._tell_ended(aloft.wave, aloft.account, aloft.size, aloft.started)
        following, self._next = self._next, None
        return following

    def together(self, lane: Lane, pendings: list[Pending]) -> None:
        """Let asks travel in a wave."""
        self._run.spawn(self._travel(lane, self._journey(lane, pendings)))

    def commit(self, lane: Lane, pendings: list[Pending]) -> None:
        """Commit the intent of a wave, then let it go."""
        journey = self._journey(lane, pendings)
        prints = [pending.print for pending in pendings]
        self._run.journal.add_wave(journey.wave, prints, self._launch, lane, journey)

    def _journey(self, lane: Lane, pendings: list[Pending]) -> Journey:
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
        return Journey(wave, pendings)

    def _launch(self, lane: Lane, journey: Journey) -> None:
        """An intent is durable. If the run was stopped meanwhile, the wave does not leave."""
        if self.over:
            return
        if self._run.over is None:
            self._run.spawn(self._travel(lane, journey))
        else:
            self._run.journal.end_wave(journey.wave.id)
            self._home.turned_back(lane, journey.pendings)

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
                _check(lane, settlement)
                pending = flying.pop(ask, None)
                if pending is not None:
                    self._home.arrived(lane, pending, wave.id, settlement, standings)
        except WaveFailed as failed:
            lost = failed.fault
        except asyncio.CancelledError:
            if cancelled_by_us():
                raise
            lost = CANCELLED
        except Exception as error:  # noqa: BLE001  a transport that breaks: what became of the rest is not known
            for pending in flying.values():
                self._home.unheard_of(lane, pending)
            run.abort(error)
            return
        for pending in flying.values():
            self._home.arrived(lane, pending, wave.id, lost)
        if lane.barrier:
            run.journal.end_wave(wave.id)
        self._home.ended(lane)
        self._tell_ended(wave.id, wave.account, len(wave.asks), started)

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


def _checked(lane: Lane, answered: Answered) -> Answered:
    _check(lane, answered[0])
    return answered


def _check(lane: Lane, settlement: object) -> None:
    """Refuse what is no settlement: journalled or cached, it could never be read again."""
    if not isinstance(settlement, Reply | Embedding | Fault):
        raise RunError(f"transport {lane.transport.name!r} gave {settlement!r}, not a Reply, an Embedding or a Fault")


def cancelled_by_us() -> bool:
    """Whether the current task was asked to end, rather than something inside it having been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
