"""Batches and simulations as they are read: ids, status, timestamps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Fault, FaultKind, Reply, Request, RunNotFound, RunOptions
from groundswell.engine.driver import driver_name
from groundswell.engine.options import Limits
from groundswell.experiments.simulations.driving import converse, simulate
from groundswell.experiments.simulations.reading import BATCH, SINGLE, Readings, countable, timestamp
from groundswell.experiments.simulations.simulation import Rules
from groundswell.store.journal import Store
from tests.experiments.simulations.stage import MODEL, Cues, Script, a_batch, driven

THREE = a_batch(Rules(MODEL, thoughts=False), size=2, simulations=3, metadata={"tags": ["bees"]})


def test_the_drivers_are_the_ones_that_are_read() -> None:
    assert (driver_name(simulate), driver_name(converse)) == (BATCH, SINGLE)


def read(path: Path, script: Script, **how: Any) -> Any:
    """Run three simulations and show the batch."""

    async def work() -> Any:
        async with groundswell.open(path / "runs.db", script=script) as engine:
            summary, _ = await driven(engine, THREE, **how)
            store = engine.store
            assert isinstance(store, Store)
            readings = Readings(store)
            return readings.batch(readings.find(f"batch-{summary.run_id}"), simulations=True)

    return asyncio.run(work())


def failing(*failed: str) -> Script:
    """Nobody can have the model whose names are given."""

    def script(request: Request, sample: int) -> Reply | Fault:
        if any(name in str(request) for name in failed):
            return Fault(FaultKind.FILTERED, "no")
        return Reply("Yes.")

    return script


def test_a_batch_that_went_well(tmp_path: Path) -> None:
    shown = read(tmp_path, failing())
    assert (shown.status, shown.error, shown.metadata) == ("completed", None, {"tags": ["bees"]})
    assert [each.sequence_number for each in shown.simulations] == [1, 2, 3]
    assert [each.id for each in shown.simulations] == [f"sim-{shown.run_id}-{number}" for number in (1, 2, 3)]
    assert {each.batch_id for each in shown.simulations} == {shown.id}
    assert (shown.combinations, shown.num_simulations, shown.progress.completed) == (6, 3, 3)


def test_a_batch_of_which_some_failed_is_partial(tmp_path: Path) -> None:
    first = read(tmp_path, failing()).simulations[0].lines[0].name
    other = tmp_path / "other"
    other.mkdir()
    shown = read(other, failing(f"You are {first}."))
    assert shown.status == "partial"
    assert {each.status for each in shown.simulations} == {"completed", "failed"}
    assert shown.progress.completed + shown.progress.failed == 3


def test_a_batch_of_which_all_failed_has_failed(tmp_path: Path) -> None:
    assert read(tmp_path, failing("You are")).status == "failed"


def test_a_batch_that_a_limit_ended_is_partial_and_says_why(tmp_path: Path) -> None:
    shown = read(tmp_path, failing(), options=RunOptions(limits=Limits(calls=3), window=1))
    assert shown.status == "partial"
    assert "used up" in shown.error


def test_a_batch_waits_is_cancelled_and_can_be_told_from_others(tmp_path: Path) -> None:
    async def work() -> None:
        async with groundswell.open(tmp_path / "runs.db", script=Cues("x")) as engine:
            store = engine.store
            assert isinstance(store, Store)
            readings = Readings(store)
            record = engine.plan(simulate, THREE, options=RunOptions(unattended=True))
            assert readings.batch(record).status == "pending"
            assert list(readings.simulations(record)) == []
            store.runs.request_cancel(record)
            shown = readings.batch(readings.find(f"batch-{record.id}"))
            assert (shown.status, shown.metadata["cancelled"]) == ("failed", True)
            await driven(engine, THREE, name="another")
            engine.run("a script's")
            assert readings.count() == 2
            assert [each.name for each in readings.records()] == ["another", None]
            assert [each.name for each in readings.records(limit=1, offset=1)] == [None]

    asyncio.run(work())


@pytest.mark.parametrize(
    "wrong", ["", "batch-", "batch-nothere", "sim-1", "x", "batch-x'; --", "sim-nothere-1", "sim-a-b", "sim-a-١"]
)
def test_ids_that_there_are_not(tmp_path: Path, wrong: str) -> None:
    readings = Readings(Store(tmp_path / "runs.db"))
    with pytest.raises(RunNotFound, match="no simulation batch"):
        readings.find(wrong)
    with pytest.raises(RunNotFound, match="no simulation"):
        readings.find_simulation(wrong)


def test_a_talk_that_did_not_end_cannot_be_gone_on_with(tmp_path: Path) -> None:
    async def work() -> None:
        async with groundswell.open(tmp_path / "runs.db", script=failing("You are")) as engine:
            summary, _ = await driven(engine, THREE)
            store = engine.store
            assert isinstance(store, Store)
            readings = Readings(store)
            with pytest.raises(RunNotFound, match="cannot be continued, because its status is failed"):
                readings.talk(readings.find_simulation(f"sim-{summary.run_id}-1"))
            with pytest.raises(RunNotFound, match="does not exist or has not started"):
                readings.simulation(readings.find_simulation(f"sim-{summary.run_id}-4"))

    asyncio.run(work())


def test_times_and_numbers_as_the_api_writes_them() -> None:
    assert timestamp(1741350896.9) == "2025-03-07T12:34:56Z"
    assert countable(2**53) == 2**53
    assert countable(2**53 + 1) == "9007199254740993"
