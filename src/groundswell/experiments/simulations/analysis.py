"""What a batch of simulations finds: a function of its outcomes alone."""

from __future__ import annotations

import msgspec

from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.simulation import Simulation, Talked
from groundswell.program.request import Fault


class Simulations(msgspec.Struct, frozen=True):
    """How many simulations there were to be, are usable, are missing, and were not finished."""

    planned: int
    usable: int
    missing: int
    unfinished: int


class Analysis(msgspec.Struct, frozen=True):
    """The figures of a batch."""

    simulations: Simulations


class Tally:
    """Counts outcomes as they come."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._usable = self._missing = 0

    def add(self, spec: Simulation, talked: Talked | None, fault: Fault | None = None) -> None:
        """One outcome."""
        self._usable += talked is not None
        self._missing += talked is None

    def analysis(self, *, planned: int) -> Analysis:
        """The figures so far."""
        left = planned - self._usable - self._missing
        return Analysis(Simulations(planned, self._usable, self._missing, left))
