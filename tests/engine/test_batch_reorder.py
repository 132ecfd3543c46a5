"""A batch that its provider does not show any more: its asks may be paid for twice, which is counted and limited."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import pytest

from groundswell import Run, RunOptions, RunStopped, SettingsError
from groundswell.engine.events import BatchReordered
from groundswell.engine.records import Absent, Intent
from groundswell.testing.provider import ProviderBatches
from tests.engine.batch_stage import TAKES, Ended, Stage, expected, half_price, talks, via

SOME = talks(6, "m")
USD = 6 * (6 + 10) / 200
"""What six of them are likely to cost: prompts of six tokens, and replies of ten."""
FIRST = ["batch-0"]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, prices=half_price)


def stop(run: Run) -> None:
    run.stop("interrupted", "enough")


def stopped(ended: Ended) -> str:
    """Why a session stopped to ask."""
    assert isinstance(ended.error, RunStopped)
    assert ended.error.reason == "fault"
    return str(ended.error)


def test_a_lost_batch_within_the_limit_is_ordered_again_and_counted(stage: Stage) -> None:
    ended = stage.session(SOME, gone=FIRST)
    assert ended.results == expected(SOME)
    assert (stage.sizes, stage.open_waves, stage.status) == ([6, 6], 0, "completed")
    assert (len(stage.paid_twice()), stage.counters.resent) == (6, 6)
    (told,) = ended.told(BatchReordered)
    assert (told.batch, told.size, told.why) == ("batch-0", 6, "batch batch-0 is not shown")
    assert told.usd == pytest.approx(stage_cost(stage))


def stage_cost(stage: Stage) -> float:
    """What a batch of the six was taken to cost before it was sent."""
    return float(stage._one("SELECT json_extract(about, '$.usd') FROM waves ORDER BY id LIMIT 1"))


def test_above_the_limit_the_run_stops_and_asks(stage: Stage) -> None:
    ended = stage.session(SOME, via(max_reorder_usd=0.1), gone=FIRST)
    why = stopped(ended)
    for said in ("batch-0", "wave 1", "6 requests", f"${stage_cost(stage):.2f}", "--max-reorder-usd", " 1 --lost"):
        assert said in why
    assert (stage.sizes, stage.open_waves, stage.status) == ([6], 1, "failed")
    assert (stage.paid_twice(), stage.counters.resent, ended.told(BatchReordered)) == ({}, 0, [])


def test_a_run_that_stopped_to_ask_looks_again_when_it_is_resumed(stage: Stage) -> None:
    careful = via(max_reorder_usd=0.0)
    stopped(stage.session(SOME, careful, gone=FIRST))
    assert "batch-0" in stopped(stage.session(SOME, careful, gone=FIRST))
    assert stage.session(SOME, careful).results == expected(SOME)
    assert (stage.sizes, stage.open_waves, stage.counters.resent) == ([6], 0, 0)


@pytest.mark.parametrize("limit", [100.0, None], ids=["a higher limit", "no limit"])
def test_a_run_that_stopped_to_ask_orders_again_when_it_may(stage: Stage, limit: float | None) -> None:
    stopped(stage.session(SOME, via(max_reorder_usd=0.0), gone=FIRST))
    again = stage.session(SOME, via(max_reorder_usd=limit), gone=FIRST)
    assert again.results == expected(SOME)
    assert (stage.sizes, stage.open_waves) == ([6, 6], 0)
    assert (len(stage.paid_twice()), stage.counters.resent) == (6, 6)
    assert len(again.told(BatchReordered)) == 1


def test_the_limit_is_for_all_batches_of_a_session(stage: Stage) -> None:
    """Two lost batches that are each below it are above it together."""
    ended = stage.session(SOME, via(max_reorder_usd=0.3, batch_size=3), gone=["batch-0", "batch-1"])
    stopped(ended)
    assert len(ended.told(BatchReordered)) == 1
    assert (stage.open_waves, stage.counters.resent) == (1, 3)


def test_where_no_price_is_known_the_run_stops_and_asks(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert "price unknown" in stopped(stage.session(SOME, gone=FIRST))
    assert "price unknown" in stopped(stage.session(SOME, via(max_reorder_usd=1e9), gone=FIRST))
    assert stage.session(SOME, via(max_reorder_usd=None), gone=FIRST).results == expected(SOME)
    assert stage.counters.resent == 6


def test_a_batch_of_an_earlier_session_is_under_the_same_limit(stage: Stage) -> None:
    stage.session(SOME, at=[(TAKES / 2, stop)])
    stopped(stage.session(SOME, via(max_reorder_usd=0.1), gone=FIRST))
    assert (stage.sizes, stage.open_waves) == ([6], 1)
    again = stage.session(SOME, gone=FIRST)
    assert again.results == expected(SOME)
    assert (stage.sizes, stage.counters.resent, len(again.told(BatchReordered))) == ([6, 6], 6, 1)


@pytest.mark.parametrize("resumed", [False, True], ids=["in one session", "in the next session"])
@pytest.mark.parametrize("limit", [1.0, 0.1])
def test_an_order_that_may_have_been_taken_and_cannot_be_told_any_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, limit: float, resumed: bool
) -> None:
    async def adopt(transport: ProviderBatches, intent: Intent) -> Absent:
        return Absent(perhaps_paid=True)

    options = via(max_reorder_usd=limit)
    if resumed:
        stage.session(SOME, options, mishaps=["taken"], undecided=1, at=[(5.0, stop)])
    monkeypatch.setattr(ProviderBatches, "adopt", adopt)
    ended = stage.session(SOME, options, mishaps=[] if resumed else ["taken"])
    if limit < USD:
        assert "wave 1" in stopped(ended)
        assert (stage.sizes, stage.open_waves, stage.counters.resent) == ([6], 1, 0)
    else:
        assert ended.results == expected(SOME)
        assert (stage.sizes, stage.open_waves, stage.counters.resent) == ([6, 6], 0, 6)
        assert stage.counters.sent == stage.placed == 12


def test_single_results_that_are_missing_count_as_resent(tmp_path: Path) -> None:
    """They may have been paid for: the batch was worked on."""
    stage = Stage(tmp_path, prices=half_price)

    def forgetful(transport: ProviderBatches, *args: Any) -> Any:
        async def collect() -> Any:
            async for settled in original(transport, *args):
                if stage.sizes == [6] and settled.ask.trial % 2:
                    continue
                yield settled

        return collect()

    original = ProviderBatches.collect
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ProviderBatches, "collect", forgetful)
        ended = stage.session(SOME)
    assert ended.results == expected(SOME)
    assert (len(stage.paid_twice()), stage.counters.resent) == (3, 3)


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_a_limit_that_cannot_be_meant(limit: float) -> None:
    with pytest.raises(SettingsError, match="max_reorder_usd"):
        RunOptions(max_reorder_usd=limit)


def test_no_limit_is_kept_with_the_run(stage: Stage) -> None:
    """JSON has no infinity."""
    options = RunOptions(via="batch", max_reorder_usd=inf)
    assert stage.session(SOME, options, gone=FIRST).results == expected(SOME)
    assert stage._one("SELECT json_type(options, '$.max_reorder_usd') FROM runs") == "null"
