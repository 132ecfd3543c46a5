"""The states of an ask, and what a run's context does when a part of the engine fails."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Request, RunError, RunStopped, Trial, program
from groundswell.engine.context import IN_FLIGHT, NEW, NEXT, QUEUED, RETRYING, SETTLED, AskState, OpenTrial, PendingAsk
from groundswell.engine.records import TrialRow
from groundswell.program.conductor import Conductor
from tests.engine.scenario import run_async


@program("tests/context/asks")
async def asks(trial: Trial, spec: str) -> str:
    return (await trial.ask("m", spec)).text


def pending() -> PendingAsk:
    conductor = Conductor(asks, "a", "key", 1)
    [wait] = conductor.start()
    row = TrialRow(1, "key", "tests/context/asks@1", '"a"', 0)
    return PendingAsk(
        OpenTrial(row, asks, "a", conductor, deliver=None, recorded=None, inherited=None),
        wait,
    )


def test_the_life_of_an_ask_that_fails_once() -> None:
    ask = pending()
    assert ask.state is NEW
    for state in (QUEUED, IN_FLIGHT, RETRYING, QUEUED, IN_FLIGHT, SETTLED):
        ask.enter(state)
        assert ask.state is state


@pytest.mark.parametrize(("before", "after"), list(product(AskState, AskState)), ids=lambda state: state.name)
def test_an_ask_goes_only_where_it_can(before: AskState, after: AskState) -> None:
    ask = pending()
    ask.state = before
    if after in NEXT[before]:
        ask.enter(after)
        assert ask.state is after
    else:
        with pytest.raises(AssertionError, match=f"from {before.name} to {after.name}"):
            ask.enter(after)


def test_every_state_can_be_reached_and_only_the_last_is_an_end() -> None:
    reached, left = {NEW}, [NEW]
    while left:
        for state in NEXT[left.pop()] - reached:
            reached.add(state)
            left.append(state)
    assert reached == set(AskState)
    assert [state for state, following in NEXT.items() if not following] == [SETTLED]


def test_an_ask_is_wanted_until_its_trial_is_given_up() -> None:
    ask = pending()
    assert ask.wanted
    ask.trial.drop()
    assert not ask.wanted


def opened(store: Path, body: Any) -> Any:
    async def main() -> Any:
        async with groundswell.open(store, script=lambda request: "yes") as engine:
            return await body(engine.run("r"))

    return run_async(main())


def test_work_beside_that_fails_ends_the_run(tmp_path: Path) -> None:
    async def fails() -> None:
        raise RunError("it broke")

    async def body(run: groundswell.Run) -> None:
        run.spawn(fails())
        await run.submit(asks, "a")
        await run.pause(0.01)
        await run.submit(asks, "b")

    with pytest.raises(RunError, match="it broke"):
        opened(tmp_path / "s.db", body)


def test_the_first_reason_to_stop_counts(tmp_path: Path) -> None:
    async def body(run: groundswell.Run) -> Any:
        run.stop("budget", "no money")
        run.stop("cancelled", "no wish")
        with pytest.raises(RunStopped, match="no money"):
            await run.submit(asks, "a")
        return run.stopping

    stopping = opened(tmp_path / "s.db", body)
    assert stopping.reason == "budget"


def test_what_can_be_seen_of_a_run(tmp_path: Path) -> None:
    seen: list[tuple[int, int, int]] = []

    async def main() -> None:
        def listening(request: Request) -> str:
            run = engine.runs[0]
            seen.append((run.in_flight, run.live_in_flight, len(run.batches_in_flight)))
            return "yes"

        async with groundswell.open(tmp_path / "s.db", script=listening) as engine:
            run = engine.run("r")
            assert not run.busy
            await run.submit(asks, "a")
            assert (run.in_flight, run.busy, list(run.waits)) == (0, False, [])
            assert run.forecast(10) is None

    run_async(main())
    assert seen == [(1, 1, 0)]
