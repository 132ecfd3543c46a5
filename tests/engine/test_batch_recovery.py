"""Batches that nobody knows of, that are out of reach, cancelled, or from an earlier session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundswell import (
    Fault,
    FaultKind,
    Outcome,
    Request,
    Run,
    RunError,
    RunStopped,
    SettingsError,
    Trial,
    program,
)
from groundswell.engine.batch_quota import Capacity
from groundswell.engine.events import BatchHeldBack, BatchSent, RouteChosen
from groundswell.errors import WaveOutOfReach
from groundswell.testing.batch import Answer, Cancel, ScriptedLive
from groundswell.testing.crash import CrashPoint
from groundswell.testing.provider import ProviderBatches
from tests.engine.batch_stage import TAKES, Ended, Stage, Talk, echo, expected, half_price, talk, talks, via

SOME = talks(6, "m", "m")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def stop(run: Run) -> None:
    run.stop("interrupted", "enough")


def in_order(stage: Stage) -> None:
    """Nothing was paid twice, nothing is left open, and the figures say what the books say."""
    assert stage.paid_twice() == {}
    assert (stage.open_waves, stage.status) == (0, "completed")
    assert stage.counters.sent == stage.placed
    assert stage.counters.resent == 0


UNSURE = [
    pytest.param("taken", 0, 0, [6, 6], 0.0, id="taken"),
    pytest.param("taken", 2, 0, [6, 6], 1200.0 - TAKES, id="taken, and not seen at first"),
    pytest.param("lost", 0, 6, [6, 6], None, id="not taken"),
    pytest.param("lost", 2, 6, [6, 6], None, id="not taken, and not known at first"),
    pytest.param("unsent", 0, 6, [6, 6], None, id="not sent"),
]


@pytest.mark.parametrize(("mishap", "undecided", "retried", "sizes", "late"), UNSURE)
def test_a_batch_without_an_answer_is_looked_for(
    stage: Stage, mishap: str, undecided: int, retried: int, sizes: list[int], late: float | None
) -> None:
    ended = stage.session(SOME, mishaps=[mishap], undecided=undecided)
    assert ended.results == expected(SOME)
    assert (stage.sizes, stage.counters.retried, stage.counters.waves) == (sizes, retried, 2)
    assert [event.found for event in ended.told(BatchSent)] == [mishap == "taken", False]
    assert [event.wait for event in ended.told(BatchHeldBack)] == [600.0] * undecided
    if late is not None:
        assert ended.seconds == 2 * TAKES + late
    in_order(stage)


def test_a_batch_out_of_reach_stays_open_and_is_collected_later(stage: Stage) -> None:
    ended = stage.session(SOME, mishaps=["out of reach"])
    assert isinstance(ended.error, RunStopped)
    assert "nobody there" in str(ended.error)
    assert (stage.status, stage.open_waves, stage.counters.sent) == ("failed", 1, 6)
    again = stage.session(SOME)
    assert again.results == expected(SOME)
    assert [event.found for event in again.told(BatchSent)] == [True, False]
    in_order(stage)


def test_a_batch_that_somebody_cancels_stops_the_run_and_nothing_is_lost(stage: Stage) -> None:
    ended = stage.session(SOME, mishaps=["cancelled"], reading=0.5)
    assert isinstance(ended.error, RunStopped)
    assert "the batch was cancelled" in str(ended.error)
    assert (stage.status, stage.open_waves) == ("failed", 0)
    assert stage.session(SOME).results == expected(SOME)
    assert stage.placed == 12 + 3, "the three that were not done are asked for again"
    in_order(stage)


def test_a_batch_that_was_cancelled_between_sessions_does_not_stop_the_next(stage: Stage) -> None:
    stage.session(SOME, at=[(TAKES / 4, stop)])
    assert (stage.status, stage.open_waves) == ("interrupted", 1)
    stage.books.write(Cancel("batch-0", stage.batches[0].at + TAKES / 2))
    stage.now += TAKES
    assert stage.session(SOME).results == expected(SOME)
    assert stage.placed == 12 + 3
    in_order(stage)


def broke(request: Request, nth: int) -> Answer:
    return Fault(FaultKind.QUOTA, "your balance is too low") if nth == 0 else echo(request, nth)


def test_a_balance_that_was_too_low_does_not_stop_a_run_for_ever(tmp_path: Path) -> None:
    stage = Stage(tmp_path, broke)
    ended = stage.session(talks(6, "m"), reading=0.5)
    assert isinstance(ended.error, RunStopped)
    assert (stage.status, stage.open_waves) == ("failed", 0), "what was read is not read again"
    assert stage.session(talks(6, "m")).results == expected(talks(6, "m"))
    in_order(stage)


def test_nor_if_the_session_died_before_it_had_read_all(tmp_path: Path) -> None:
    stage = Stage(tmp_path, broke)
    stage.session(talks(6, "m"), at=[(TAKES / 2, stop)])
    stage.now += TAKES
    assert stage.session(talks(6, "m")).results == expected(talks(6, "m"))
    in_order(stage)


def test_an_interrupt_ends_promptly_and_leaves_the_batch_open(stage: Stage) -> None:
    ended = stage.session(SOME, at=[(5.0, stop)])
    assert (type(ended.error), ended.seconds) == (RunStopped, 5.0)
    assert (stage.status, stage.open_waves, stage.counters.sent) == ("interrupted", 1, 6)
    again = stage.session(SOME)
    assert again.results == expected(SOME)
    assert again.seconds == 2 * TAKES - 5.0, "the batch went on meanwhile"
    in_order(stage)


def test_an_interrupt_does_not_wait_for_results_that_come_slowly(stage: Stage) -> None:
    """They may take hours if the provider falls silent, and are there for the next session."""
    ended = stage.session(SOME, at=[(150.0, stop)], reading=100.0)
    assert isinstance(ended.error, RunStopped)
    assert (ended.seconds, stage.open_waves, stage.counters.sent) == (150.0, 1, 6)
    assert stage.session(SOME).results == expected(SOME)
    assert stage.sizes == [6, 6]
    in_order(stage)


def test_a_provider_that_cannot_be_reached_when_a_run_is_resumed_is_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.session(SOME, at=[(TAKES / 2, stop)])

    async def look(transport: ProviderBatches, batch: str) -> None:
        raise WaveOutOfReach(Fault(FaultKind.CONNECTION, "no network yet"))

    monkeypatch.setattr(ProviderBatches, "look", look)
    assert stage.session(SOME).results == expected(SOME)
    assert stage.sizes == [6, 6]
    in_order(stage)


def test_a_run_that_is_resumed_live_collects_what_is_in_batches(stage: Stage) -> None:
    stage.session(SOME, at=[(5.0, stop)])
    again = stage.session(SOME, via("live"))
    assert again.results == expected(SOME)
    assert stage.sizes == [6]
    in_order(stage)


def test_a_run_that_is_resumed_while_nobody_can_tell_waits(stage: Stage) -> None:
    stage.session(SOME, mishaps=["taken"], undecided=1, at=[(5.0, stop)])
    assert (stage.sizes, stage.open_waves) == ([6], 1)
    again = stage.session(SOME, undecided=3)
    assert again.results == expected(SOME)
    assert [event.wait for event in again.told(BatchHeldBack)] == [600.0] * 3
    assert stage.sizes == [6, 6]
    in_order(stage)


def test_a_wave_that_never_left_is_not_counted(stage: Stage) -> None:
    stage.session(SOME, mishaps=["lost"], undecided=1, at=[(5.0, stop)])
    assert (stage.sizes, stage.open_waves, stage.counters.sent) == ([], 1, 6)
    assert stage.session(SOME).results == expected(SOME)
    in_order(stage)
    assert stage.counters.waves == 2


def test_batches_of_another_owner_are_refused_and_stay_open(stage: Stage) -> None:
    stage.session(SOME, at=[(5.0, stop)], owner="mine")
    refused = stage.session(SOME, owner="theirs")
    assert isinstance(refused.error, SettingsError)
    assert "another key" in str(refused.error)
    assert (stage.open_waves, stage.sizes) == (1, [6])
    assert stage.session(SOME, owner="mine").results == expected(SOME)
    in_order(stage)


FAILED_ASKS = [
    pytest.param("batch", [6, 6, 3], id="in a batch of their model"),
    pytest.param("live", [6], id="live, if that is how the run goes on"),
]


@pytest.mark.parametrize(("way", "sizes"), FAILED_ASKS)
def test_what_failed_in_a_held_batch_is_retried_on_its_lane(stage: Stage, way: str, sizes: list[int]) -> None:
    stage.session(SOME, mishaps=["expires"], at=[(5.0, stop)])
    again = stage.session(SOME, via(way), capacity=Capacity(1000, 1 << 20, 100), cap=1)
    assert again.results == expected(SOME)
    live = [len(entry.orders) for entry in stage.books.entries() if entry.batch is None]
    assert set(live) <= {1}, "the limits of the lane are kept"
    assert stage.sizes == sizes
    assert {event.model for event in again.told(RouteChosen)} <= {"m"}
    in_order(stage)


def test_held_asks_take_room(stage: Stage) -> None:
    """Three are in the queue since before: there is room for two more until these are back."""
    five = Capacity(1000, 1 << 20, 5, "requests")
    stage.session(talks(3, "m"), at=[(5.0, stop)], capacity=five)
    again = stage.session(talks(8, "m"), capacity=five, queue=5)
    assert again.results == expected(talks(8, "m"))
    assert stage.sizes == [3, 2, 3]
    assert again.told(BatchHeldBack) == []
    in_order(stage)


@pytest.mark.parametrize(("limit", "each"), [("calls", 1), ("tokens", 19), ("usd", 19 / 200)])
def test_held_asks_are_reckoned_with(tmp_path: Path, limit: str, each: float) -> None:
    """Six are in flight since before; the budget is for eight."""
    stage = Stage(tmp_path, prices=half_price)
    stage.session(talks(6, "m"), at=[(5.0, stop)])
    stage.session(talks(12, "m"), via(limits={limit: 8 * each}))
    assert stage.sizes[:2] == [6, 2]
    assert stage.batches[1].at < stage.batches[0].until, "it left beside the first one"
    assert stage.paid_twice() == {}


def test_nothing_leaves_before_everything_was_taken_up_again(stage: Stage) -> None:
    """Though the driver submits its trials one by one: they were begun before, and leave together."""
    many = talks(600, "m")

    async def submit(run: Run, some: list[Talk]) -> list[Outcome[Any]]:
        return list(await asyncio.gather(*[run.submit(talk, each, key=str(each.number)) for each in some]))

    stage.session(many, drive=submit, mishaps=["full"], at=[(5.0, stop)])
    assert (stage.placed, stage.counters.planned, stage.open_waves) == (0, 600, 0)
    assert stage.session(many, drive=submit).results == expected(many)
    assert stage.sizes == [600]
    in_order(stage)


@pytest.mark.slow
def test_conversations_stay_in_step_after_a_crash(tmp_path: Path) -> None:
    """Even if it came while the results of a batch were being written down: the rest of them is read first."""
    many = talks(6, "m", "m", "m")
    for commit in range(4, 80, 3):
        folder = tmp_path / str(commit)
        folder.mkdir()
        stage, point = Stage(folder), CrashPoint(commit, "after")
        stage.session(many, point=point, reading=0.5)
        stage.now += TAKES
        assert stage.session(many, reading=0.5).results == expected(many)
        assert stage.sizes == [6, 6, 6]
        in_order(stage)
        if not point.crashed:
            return
    raise AssertionError("there are not so many commits")


@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError()], ids=["breaks", "cancels"])
def test_a_transport_that_breaks_leaves_its_batch_open(
    stage: Stage, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(collect: Callable[..., Any]) -> Callable[..., Any]:
        async def broken(self: ProviderBatches, *args: Any) -> Any:
            raise error
            yield

        return broken

    with monkeypatch.context() as patched:
        patched.setattr(ProviderBatches, "collect", breaking(ProviderBatches.collect))
        ended: Ended = stage.session(SOME)
    assert isinstance(ended.error, RuntimeError | RunError)
    assert (stage.status, stage.open_waves) == ("failed", 1)
    assert stage.session(SOME).results == expected(SOME)
    in_order(stage)


@program("batches/same")
async def same(trial: Trial, spec: Talk) -> str:
    """Five conversations ask the same, and for the likeliest answer: one reply is for all of them."""
    return (await trial.ask("m", f"same {spec.number // 5}", max_tokens=10, temperature=0.0)).text


async def ask_the_same(run: Run, some: list[Talk]) -> list[Outcome[Any]]:
    return [outcome async for outcome in run.map(same, some)]


@pytest.mark.parametrize("knobs", [{}, {"mishaps": ["lost"], "undecided": 1}], ids=["in flight", "never sent"])
def test_equal_asks_wait_for_the_one_that_is_in_flight_since_an_earlier_session(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, knobs: dict[str, Any]
) -> None:
    """Each of them would be paid for again otherwise."""
    monkeypatch.setattr(ProviderBatches, "cached", True)
    monkeypatch.setattr(ScriptedLive, "cached", True)
    stage.session(talks(20), drive=ask_the_same, at=[(10.0, stop)], **knobs)
    assert (stage.open_waves, stage.counters.usable) == (1, 0)
    ended = stage.session(talks(20), drive=ask_the_same)
    assert ended.results == [f"same {number // 5}!" for number in range(20)]
    assert (stage.sizes, stage.counters.cached) == ([4], 16)
    in_order(stage)
