"""A stand-in for a run: it rehearses what a driver submits and returns made-up outcomes. No request is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from groundswell.engine.options import Limits
from groundswell.engine.outcome import Outcome, fault_of
from groundswell.engine.records import Counters, row_labels
from groundswell.engine.spending import Range
from groundswell.errors import RunError, RunStopped
from groundswell.estimate.figures import Estimate
from groundswell.estimate.rehearsal import Rehearsed, rehearse_trial
from groundswell.estimate.sample import FEWEST, MOST_WORK, SAMPLE, assumed, rehearse_some, scaled
from groundswell.program.conductor import Conductor
from groundswell.program.trial import Program

if TYPE_CHECKING:
    from groundswell.stats.rows import Rows

S = TypeVar("S")
R = TypeVar("R")

MOST_TRIALS = 1_000_000
"""Maximum number of trials that a rehearsed driver may submit."""
TICKS = 8
"""Loop iterations without a new trial, after which all waiting trials are assumed to run at the same time."""


class StandIn:
    """Takes the place of a `Run`. With `long`, trials end as with long replies and high values."""

    def __init__(self, seed: int, *, long: bool) -> None:
        self.record = SimpleNamespace(
            id="estimate", name=None, title="an estimate", seed=seed, driver=None, settings=None, parent=None, cut=None
        )
        self.counters = Counters()
        self.options = SimpleNamespace(schedule="stream", window=None, limits=Limits(), cache=True)
        self.expected: int | None = None
        self.over: Exception | None = None
        self.estimate = Estimate(Range(0, 0))
        self._long = long
        self._seed = seed
        self._rehearsed: dict[str, list[Rehearsed]] = {}
        self._count = 0
        self._work = 0
        self._group: _Group | None = None
        self._rows: list[dict[str, Any]] = []

    @property
    def rows(self) -> Rows:
        """The rows that rehearsed trials recorded."""
        from groundswell.stats.rows import Rows

        return Rows(self._rows)

    async def map(
        self, program: Program[S, R], specs: Iterable[S], *, replicates: int = 1, ordered: bool = True
    ) -> AsyncIterator[Outcome[R]]:
        """Rehearse a sample of the specs. The others get the outcomes of these."""
        everything = list(islice(specs, MOST_TRIALS + 1))
        self._admit(len(everything) * replicates)
        found = self._rehearse_some(program, everything)
        estimate = scaled(found, len(everything), replicates).assuming(*assumed(found, len(everything), program))
        await self._together(estimate)
        for number, spec in enumerate(everything):
            for replicate in range(replicates):
                yield self._outcome(spec, found[number % len(found)], f"{number:020x}#{replicate}")

    async def submit(self, program: Program[S, R], spec: S, *, key: str | None = None) -> Outcome[R]:
        """Rehearse one trial."""
        self._admit(1)
        found = self._rehearse(program, spec)
        await self._together(scaled([found], 1).assuming(*assumed([found], 1, program)))
        return self._outcome(spec, found, key or f"{self._count}")

    def stop(self, reason: str, why: str) -> None:
        """The driver has enough."""
        self.over = RunStopped(reason, why)

    def _admit(self, count: int) -> None:
        if self.over is not None:
            raise self.over
        self._count += count
        self.counters.planned += count
        self.expected = self.counters.planned
        if self._count > MOST_TRIALS:
            raise RunError(f"it submits more than {MOST_TRIALS:,} trials with made-up replies")

    def _rehearse_some(self, program: Program[Any, Any], specs: list[Any]) -> list[Rehearsed]:
        known = self._rehearsed.setdefault(program.id, [])
        if self._work > MOST_WORK and len(known) >= FEWEST:
            return known[: len(specs)]
        rng = Random(self._seed)
        drawn = rng.sample(range(len(specs)), min(len(specs), SAMPLE))
        found = rehearse_some(program, [(at, specs[at]) for at in drawn], rng, self._seed, work=self._work)
        self._work += sum(each.work for each in found)
        known.extend(found)
        return found

    def _rehearse(self, program: Program[Any, Any], spec: Any) -> Rehearsed:
        known = self._rehearsed.setdefault(program.id, [])
        if self._work > MOST_WORK and len(known) >= FEWEST:
            return known[self._count % len(known)]
        found = rehearse_trial(program, spec, f"rehearsal/{len(known)}", self._seed)
        self._work += found.work
        known.append(found)
        return found

    async def _together(self, estimate: Estimate) -> None:
        """Wait together with everything that is submitted now. The number of turns is that of the longest trial."""
        group = self._group
        if group is None:
            group = self._group = _Group(self._closed)
        group.add(estimate)
        await group.done

    def _closed(self, group: _Group) -> None:
        self._group = None
        self.estimate += group.estimate

    def _outcome(self, spec: Any, found: Rehearsed, key: str) -> Outcome[Any]:
        conductor: Conductor = found.long if self._long else found.short
        fault = None if conductor.error is None else fault_of(conductor.error)
        self.counters.usable += fault is None
        self.counters.missing += fault is not None
        if fault is None and conductor.trial.rows:
            labels = row_labels(key, msgspec.json.encode(spec).decode())
            self._rows += [{"trial": key, "row": at, **labels, **row} for at, row in enumerate(conductor.trial.rows, 1)]
        return Outcome(key, spec, conductor.result, fault)


class _Group:
    """Trials that are under way at the same time."""

    def __init__(self, closed: Callable[[_Group], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._closed = closed
        self._ticks = 0
        self.estimate = Estimate(Range(0, 0))
        self._loop.call_soon(self._tick)

    def add(self, more: Estimate) -> None:
        """Something else is submitted while these wait."""
        self.estimate = self.estimate.beside(more)
        self._ticks = 0

    def _tick(self) -> None:
        self._ticks += 1
        if self._ticks < TICKS:
            self._loop.call_soon(self._tick)
        else:
            self._closed(self)
            self.done.set_result(None)
