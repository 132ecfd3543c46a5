"""A driver that has enough: what is still at a provider is cancelled, and the run is over."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from groundswell import Outcome, Run, RunStopped
from groundswell.engine.events import RunEnded, RunOpened
from groundswell.errors import WaveOutOfReach
from groundswell.program.request import Fault, FaultKind
from groundswell.testing.provider import ProviderBatches
from tests.engine.batch_stage import Ended, Stage, Talk, expected, talk, talks, via

QUICK, SLOW = talks(4, "m"), [Talk(number, ("slow", "slow")) for number in range(4, 12)]
EIGHT_HOURS = {"slow": 8 * 3600.0}


async def four(run: Run, some: list[Talk]) -> list[Outcome[Any]]:
    """Take four outcomes and leave."""
    found: list[Outcome[Any]] = []
    async with aclosing(run.map(talk, some)) as outcomes:
        async for outcome in outcomes:
            found.append(outcome)
            if len(found) == 4:
                break
    return found


async def four_at_leisure(run: Run, some: list[Talk]) -> list[Outcome[Any]]:
    """The same, and think about them for a while."""
    found = await four(run, some)
    await run.pause(100.0)
    return found


def stop(run: Run) -> None:
    run.stop("interrupted", "interrupted")


def lasted(ended: Ended) -> float:
    return ended.told(RunEnded)[0].at - ended.told(RunOpened)[0].at


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_what_nobody_wants_any_more_is_cancelled(stage: Stage) -> None:
    ended = stage.session([*QUICK, *SLOW], drive=four, lengths=EIGHT_HOURS)
    assert ended.results == expected(QUICK)
    assert sorted((len(entry.orders), entry.cancelled) for entry in stage.batches) == [
        (4, False),
        (8, True),
    ]
    assert (stage.open_waves, stage.status) == (0, "completed")
    assert lasted(ended) < 100.0


def test_a_run_that_ended_so_is_not_asked_for_again(stage: Stage) -> None:
    stage.session([*QUICK, *SLOW], drive=four, lengths=EIGHT_HOURS)
    placed = stage.placed
    again = stage.session([*QUICK, *SLOW], drive=four, lengths=EIGHT_HOURS)
    assert again.results == expected(QUICK)
    assert stage.placed == placed


def test_what_was_about_to_leave_does_not(stage: Stage) -> None:
    twelve = talks(12, "m")
    ended = stage.session(twelve, via(batch_size=4, window=4), drive=four)
    assert ended.results == expected(twelve[:4])
    assert (stage.sizes, stage.open_waves, stage.counters.sent, stage.placed) == ([4], 0, 4, 4)


def test_one_that_is_on_its_way_is_cancelled_when_it_is_taken(stage: Stage) -> None:
    ended = stage.session([*QUICK, *SLOW], drive=four, lengths=EIGHT_HOURS, mishaps=[None, "taken"], undecided=0)
    assert ended.results == expected(QUICK)
    assert (stage.open_waves, stage.paid_twice()) == (0, {})


def test_one_that_cannot_be_found_yet_stays_open_for_whoever_looks(stage: Stage) -> None:
    ended = stage.session([*QUICK, *SLOW], drive=four, lengths=EIGHT_HOURS, mishaps=[None, "taken"], undecided=9)
    assert ended.results == expected(QUICK)
    assert (stage.open_waves, stage.status) == (1, "completed")
    assert lasted(ended) < 200.0


@pytest.mark.parametrize("reading", [0.0, 30.0], ids=["looked at", "still being looked at"])
def test_what_an_earlier_session_left_is_cancelled_too(stage: Stage, reading: float) -> None:
    left = stage.session([*QUICK, *SLOW], at=[(100.0, stop)], lengths=EIGHT_HOURS)
    assert (type(left.error), stage.open_waves) == (RunStopped, 1)
    ended = stage.session([*QUICK, *SLOW], drive=four, lengths=EIGHT_HOURS, reading=reading)
    assert ended.results == expected(QUICK)
    assert [entry.cancelled for entry in stage.batches] == [False, True]
    assert (stage.open_waves, stage.status) == (0, "completed")


@pytest.mark.parametrize("drive", [four, four_at_leisure])
@pytest.mark.parametrize("hours", [0, 9], ids=["is worked on", "has come back"])
def test_what_could_not_be_cancelled_is_done_with_when_the_run_is_looked_at_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, hours: int, drive: Any
) -> None:
    async def cancel(transport: ProviderBatches, batch: str) -> None:
        raise WaveOutOfReach(Fault(FaultKind.CONNECTION, "no network"))

    with monkeypatch.context() as patched:
        patched.setattr(ProviderBatches, "cancel", cancel)
        stage.session([*QUICK, *SLOW], drive=four, lengths=EIGHT_HOURS)
    assert (stage.open_waves, stage.status) == (1, "completed")
    stage.now += hours * 3600.0
    ended = stage.session(QUICK, drive=drive, lengths=EIGHT_HOURS)
    assert ended.results == expected(QUICK)
    assert (stage.open_waves, stage.status, stage.paid_twice()) == (0, "completed", {})
