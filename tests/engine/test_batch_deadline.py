"""A deadline: batches that would miss it are cancelled, and what is left of them goes live."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell import Run, RunStopped
from groundswell.engine.batch_quota import Capacity
from groundswell.engine.events import RouteChosen
from tests.engine.batch_stage import Stage, expected, half_price, talks, via

LONG = 1000.0
"""Seconds that a batch takes here; a hundred before the end, it is waited for no longer."""
SOON = via(limits={"seconds": 400.0})
EIGHT = talks(8, "m")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, prices=half_price)


def stop(run: Run) -> None:
    run.stop("interrupted", "enough")


def test_at_the_last_call_what_is_done_is_kept_and_the_rest_goes_live(stage: Stage) -> None:
    ended = stage.session(EIGHT, SOON, takes=LONG)
    assert ended.results == expected(EIGHT)
    assert 300.0 <= ended.seconds < 400.0
    done = [order.paid for order in stage.batches[0].orders]
    assert (sum(done), len(done)) == (2, 8), "three tenths of the time were over"
    assert "it was cancelled" in ended.told(RouteChosen)[-1].why
    assert (stage.paid_twice(), stage.open_waves, stage.status) == ({}, 0, "completed")
    assert (stage.placed, stage.counters.sent, stage.counters.retried) == (14, 14, 6)
    assert stage.counters.usd == pytest.approx((5 + 5) * (2 / 200 + 6 / 100))


@pytest.mark.parametrize("mishap", ["taken", "lost"])
def test_a_batch_that_is_found_after_the_last_call_is_cancelled(stage: Stage, mishap: str) -> None:
    ended = stage.session(EIGHT, via(limits={"seconds": 1000.0}), takes=3 * LONG, mishaps=[mishap], undecided=2)
    assert isinstance(ended.error, RunStopped), "nobody could tell before the deadline"
    stage.now += 10.0
    again = stage.session(EIGHT, via(limits={"seconds": 100.0}), takes=3 * LONG, undecided=0)
    assert again.results == expected(EIGHT)
    assert (stage.paid_twice(), stage.counters.sent) == ({}, stage.placed)


def test_a_receipt_that_comes_late_is_cancelled_at_once(stage: Stage) -> None:
    ended = stage.session(EIGHT, via(limits={"seconds": 760.0}), takes=LONG, mishaps=["taken"], undecided=1)
    assert ended.results == expected(EIGHT)
    assert 600.0 <= ended.seconds < 620.0, "it was found at 600 s; the last call was at 570 s"
    assert (stage.paid_twice(), stage.open_waves, stage.counters.sent) == ({}, 0, stage.placed)


def test_a_batch_of_an_earlier_session_is_cancelled_too(stage: Stage) -> None:
    stage.session(EIGHT, takes=LONG, at=[(100.0, stop)])
    ended = stage.session(EIGHT, SOON, takes=LONG)
    assert ended.results == expected(EIGHT)
    assert 300.0 <= ended.seconds < 400.0
    assert sum(order.paid for order in stage.batches[0].orders) == 3
    assert (stage.paid_twice(), stage.open_waves, stage.counters.sent) == ({}, 0, stage.placed)


def test_what_waits_for_room_goes_live_at_the_last_call(stage: Stage) -> None:
    ended = stage.session(EIGHT, SOON, takes=LONG, capacity=Capacity(100, 1 << 20, 15), queue=15)
    assert ended.results == expected(EIGHT)
    assert 300.0 <= ended.seconds < 400.0
    assert stage.sizes == [3]
    assert stage.paid_twice() == {}


def test_what_was_refused_does_not_wait_beyond_the_last_call(stage: Stage) -> None:
    """Pauses of 30, 60, 120 and 240 s: the last of them would end at 450 s."""
    ended = stage.session(EIGHT, SOON, mishaps=["full"] * 9)
    assert ended.results == expected(EIGHT)
    assert 300.0 <= ended.seconds < 310.0
    assert (stage.batches, stage.counters.sent) == ([], 8)


def test_after_the_last_call_nothing_leaves_in_a_batch(stage: Stage) -> None:
    some = talks(4, "m", "m", "m")
    ended = stage.session(some, via(limits={"seconds": 400.0}), lengths={"m": 290.0})
    assert ended.results == expected(some)
    assert stage.sizes == [4, 4]
    assert sum(not order.paid for order in stage.batches[1].orders) == 4, "it was cancelled when it had just begun"
    assert ended.seconds < 400.0


def test_a_deadline_that_is_missed_leaves_the_run_resumable(stage: Stage) -> None:
    ended = stage.session(EIGHT, SOON, takes=LONG, slowest=500.0)
    assert isinstance(ended.error, RunStopped)
    assert stage.status == "partial"
    assert stage.session(EIGHT).results == expected(EIGHT)
    assert stage.counters.sent == stage.placed
