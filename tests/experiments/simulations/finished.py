"""Batches as their runs would have left them in a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from groundswell.engine.records import RunRecord, TrialRow
from groundswell.experiments.simulations import prompts
from groundswell.experiments.simulations.analysis import Analysis, Tally
from groundswell.experiments.simulations.batch import Batch, Schedule, Single
from groundswell.experiments.simulations.data import BatchData
from groundswell.experiments.simulations.driving import Conversation
from groundswell.experiments.simulations.experiment import SimulationResults
from groundswell.experiments.simulations.reading import BATCH, SINGLE
from groundswell.experiments.simulations.simulation import Simulation, Talked
from groundswell.program.request import Fault, canonical
from groundswell.reporting.blocks import Report
from groundswell.store.journal import Store


def plant_batch(path: Path, batch: Batch, came: Sequence[Talked | Fault | None]) -> RunRecord:
    """A run of a batch in which this came of its simulations; of None nothing yet, and the rest has not begun."""
    return _plant(path, (BATCH, batch), list(Schedule(batch, 0))[: len(came)], came)


def plant_single(path: Path, single: Single, came: Talked | Fault | None) -> RunRecord:
    """A run of one simulation."""
    return _plant(path, (SINGLE, single), [single.simulation], [came])


def _plant(
    path: Path, what: tuple[str, Batch | Single], specs: Sequence[Simulation], came: Sequence[Talked | Fault | None]
) -> RunRecord:
    async def work() -> str:
        store = Store(path)
        record = store.runs.create(None, 0, driver=what[0], settings=canonical(what[1]).decode())
        journal = store.journal(record, lambda error: None)
        for number, (spec, found) in enumerate(zip(specs, came, strict=True), 1):
            at, body = record.span[0] + number, msgspec.json.encode(found).decode()
            journal.add_trial(TrialRow(at, str(number), "simulations/talk@1", canonical(spec).decode(), 0))
            record.counters.planned += 1
            if found is not None:
                fault = found.kind.value if isinstance(found, Fault) else None
                record.counters.usable += fault is None
                record.counters.missing += fault is not None
                journal.add_outcome(at, fault, body, lambda: None)
        await journal.flush()
        journal.close()
        if what[0] == BATCH and None in came:
            store.runs.change(record, status="running")
        else:
            analysis = msgspec.json.encode(_analysis(what[1], specs, came)).decode()
            store.runs.change(record, status="completed", analysis=analysis)
        await store.close()
        return record.id

    id_ = asyncio.run(work())
    store = Store(path)
    record = store.runs.get(id_)
    store.close_reading()
    return record


def _analysis(
    what: Batch | Single, specs: Sequence[Simulation], came: Sequence[Talked | Fault | None]
) -> Analysis | Conversation:
    """What the driver would have returned."""
    if isinstance(what, Single):
        talked = came[0]
        lines, turns = (len(talked.lines), talked.turns) if isinstance(talked, Talked) else (0, 0)
        return Conversation(lines, turns, prompts.digest())
    tally = Tally(what)
    for spec, found in zip(specs, came, strict=True):
        if isinstance(found, Fault):
            tally.add(spec, None, found)
        else:
            tally.add(spec, found)
    return tally.analysis(planned=what.num_simulations)


@contextmanager
def study_of(path: Path, record: RunRecord) -> Iterator[BatchData]:
    """What the report of a run is made of."""
    store = Store(path)
    yield SimulationResults(Path("results")).read(store, [record])
    store.close_reading()


@contextmanager
def report_of(path: Path, record: RunRecord) -> Iterator[Report]:
    """The report of a run, while its store is open."""
    store = Store(path)
    yield SimulationResults(Path("results")).report(store, [record])
    store.close_reading()
