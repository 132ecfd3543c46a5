"""Waves, streams, any order of replies, and any stop in between give the same results and the same journal."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import groundswell
from groundswell import RetryPolicy, RunOptions, RunStopped
from groundswell.engine.options import Schedule
from groundswell.engine.ports import Transport
from groundswell.transports.scripted import Scripted
from tests.engine.scenario import (
    EXPERIMENTS,
    Plan,
    Row,
    Ticking,
    answer,
    ask_key,
    by_key,
    counters,
    journal,
    perform,
    run_async,
)
from tests.properties import examples

EXAMPLES = settings(max_examples=examples(25), deadline=None)
WINDOWS = st.sampled_from([1, 2, None])
Story = tuple[dict[str, Any], list[Row]]


@contextmanager
def fresh_store() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "runs.db")


def options(schedule: Schedule = "stream", window: int | None = None) -> RunOptions:
    return RunOptions(schedule=schedule, window=window, retry=RetryPolicy(first_wait=0.0))


async def perform_all(
    store: Path, plans: list[Plan], transport: Transport, how: RunOptions | None = None, name: str = "story"
) -> dict[str, Any]:
    """Carry an experiment through to its end."""
    async with groundswell.open(store, transport=transport, max_concurrent=4) as engine:
        run = engine.run(name, seed=7, options=how or options())
        return by_key([outcome async for outcome in run.map(perform, plans)])


def whole_story(store: Path, plans: list[Plan], transport: Transport, how: RunOptions | None = None) -> Story:
    """Results and journal of an uninterrupted run."""
    name = secrets.token_hex(4)
    results = run_async(perform_all(store, plans, transport, how, name))
    return results, journal(store, name)


@EXAMPLES
@given(EXPERIMENTS, st.integers(0, 1000))
def test_how_asks_travel_changes_nothing(plans: list[Plan], seed: int) -> None:
    with fresh_store() as store:
        expected = whole_story(store, plans, Scripted(answer))
        assert whole_story(store, plans, Scripted(answer), options("waves")) == expected
        assert whole_story(store, plans, Ticking(seed, flaky=True)) == expected
        assert whole_story(store, plans, Ticking(seed, flaky=True), options("waves", window=2)) == expected
        assert whole_story(store, plans, Scripted(answer, barrier=True, max_wave=2)) == expected


class Stopper:
    """Stops a run once so many replies were handed over."""

    def __init__(self, run: groundswell.Run, after: int) -> None:
        self._run = run
        self._left = after

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._run.stop("interrupted", "enough")


async def perform_until(store: Path, plans: list[Plan], transport: Ticking, after: int, window: int | None) -> None:
    """Stop gracefully after some replies, if there are so many."""
    async with groundswell.open(store, transport=transport, max_concurrent=3) as engine:
        run = engine.run("story", seed=7, options=options(window=window))
        transport.on_answer = Stopper(run, after)
        try:
            async for _ in run.map(perform, plans):
                pass
        except RunStopped:
            pass


@EXAMPLES
@given(
    EXPERIMENTS,
    st.integers(0, 1000),
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    st.sampled_from([1, 2, None]),
)
def test_a_graceful_stop_loses_nothing_and_resends_nothing(
    plans: list[Plan], seed: int, stops: list[int], window: int | None
) -> None:
    transport = Ticking(seed, flaky=True)
    with fresh_store() as store:
        expected = whole_story(store, plans, Scripted(answer))
        for after in stops:
            run_async(perform_until(store, plans, transport, after, window))
        transport.on_answer = lambda: None
        results = run_async(perform_all(store, plans, transport))
        assert (results, journal(store, "story")) == expected
        assert counters(store).planned == counters(store).settled == len(plans)
        assert counters(store).resent == 0
    assert set(transport.answered.values()) <= {1}


class DriverBroke(Exception):
    """What a driver of these tests raises."""


async def break_after(store: Path, plans: list[Plan], transport: Ticking, outcomes: int) -> None:
    """A driver that raises after some outcomes, while asks are in flight."""
    async with groundswell.open(store, transport=transport, max_concurrent=3) as engine:
        run = engine.run("story", seed=7, options=options())
        taken = 0
        async for _ in run.map(perform, plans):
            taken += 1
            if taken == outcomes:
                raise DriverBroke


@EXAMPLES
@given(EXPERIMENTS, st.integers(0, 1000), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_a_driver_that_breaks_can_be_run_again(plans: list[Plan], seed: int, breaks: list[int]) -> None:
    transport = Ticking(seed)
    with fresh_store() as store:
        expected = whole_story(store, plans, Scripted(answer))
        for outcomes in breaks:
            settled = {(row[0], row[1]) for row in journal(store, "story")}
            before = transport.answered.copy()
            try:
                run_async(break_after(store, plans, transport, outcomes))
            except DriverBroke:
                pass
            assert not {ask_key(store, ask) for ask in transport.answered - before} & settled
        results = run_async(perform_all(store, plans, transport))
        assert (results, journal(store, "story")) == expected
        assert counters(store).planned == counters(store).settled == len(plans)
