"""The engine for code that is not async."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import groundswell
from groundswell import RunBusy, RunStopped
from tests.engine.scenario import counters
from tests.engine.stage import echo, one
from tests.engine.test_drives import Wanted, collect_all


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread.name for thread in threading.enumerate() if thread not in before]
    assert [name for name in left if name.startswith("groundswell")] == []


def test_map_and_submit(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        run = engine.run("story", seed=3)
        assert [outcome.result for outcome in run.map(one, ["a", "b"])] == ["a!", "b!"]
        assert run.submit(one, "c", key="mine").result == "c!"
    assert counters(store).usable == 3


def test_leaving_a_map_early(store: Path) -> None:
    with groundswell.open_sync(store, script=echo, max_concurrent=1) as engine:
        for outcome in engine.run("story").map(one, [str(number) for number in range(500)]):
            assert outcome.result == "0!"
            break
    assert counters(store).sent < 500
    assert counters(store).planned == counters(store).settled


def test_an_iterator_that_outlives_its_engine(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        outcomes = engine.run("story").map(one, ["a", "b", "c"])
        assert next(outcomes).result == "a!"
    del outcomes
    gc.collect()


def test_drive(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        assert engine.drive(collect_all, Wanted(["a"]), name="story").analysis == ["a!"]


def test_errors_are_raised_in_the_caller(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        engine.run("story")
        with groundswell.open_sync(store, script=echo) as other, pytest.raises(RunBusy):
            other.run("story")


def test_a_run_that_is_stopped(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        run = engine.run("story")
        run.run.loop.call_soon_threadsafe(run.run.stop, "budget", "spent")
        with pytest.raises(RunStopped, match="spent"):
            run.submit(one, "a")


def test_what_the_caller_raises_ends_the_run(store: Path) -> None:
    def break_off() -> None:
        with groundswell.open_sync(store, script=echo) as engine:
            for _ in engine.run("story").map(one, ["a", "b"]):
                raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        break_off()
    with groundswell.open_sync(store, script=echo) as engine:
        assert [outcome.result for outcome in engine.run("story").map(one, ["a", "b"])] == ["a!", "b!"]


def test_a_store_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    with pytest.raises(groundswell.StoreError):
        groundswell.open_sync(tmp_path / "no" / "folder" / "runs.db")
