"""Every driver can be estimated; those that cannot say why."""

from __future__ import annotations

import pytest

from groundswell import Estimate, Run, estimates
from groundswell.engine.spending import Range
from groundswell.errors import RunError
from groundswell.estimate import stand_in
from groundswell.estimate.declared import estimate_of
from tests.estimate import stage
from tests.estimate.stage import M


def test_a_driver_that_maps() -> None:
    found = estimate_of(stage.by_map, 4)
    assert (found.trials, found.loads[0].calls, found.turns) == (Range(4, 4), Range(10, 10), Range(4, 4))
    assert any("by_map was rehearsed with made-up outcomes" in sentence for sentence in found.assumptions)


def test_what_is_submitted_at_once_takes_the_turns_of_the_longest() -> None:
    found = estimate_of(stage.generations, 3)
    assert found.trials == Range(12, 12)
    assert found.loads[0].calls == Range(12, 120)
    assert found.turns == Range(3, 30)
    assert found.loads[0].turns == Range(3, 30)


@pytest.mark.slow
def test_more_specs_than_are_rehearsed() -> None:
    found = estimate_of(stage.many, 3000)
    assert found.trials == Range(3000, 3000)
    assert 4500 in found.loads[0].calls


def test_a_driver_that_breaks_is_told_of() -> None:
    with pytest.raises(RunError, match=r"needy cannot be estimated.*KeyError: '1'.*with @estimates\(needy\)"):
        estimate_of(stage.needy, 0)


def test_a_driver_that_breaks_in_one_of_two_rehearsals_is_estimated_by_the_other() -> None:
    found = estimate_of(stage.half_needy, 0)
    assert found.loads[0].calls == Range(0, 1)
    assert any("one of two rehearsals of half_needy failed (ZeroDivisionError" in each for each in found.assumptions)


@pytest.mark.slow
def test_a_driver_without_end_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_in, "MOST_TRIALS", 120_000)
    with pytest.raises(RunError, match=r"boundless cannot be estimated.*more than 120,000 trials"):
        estimate_of(stage.boundless, 0)


async def declared(run: Run, settings: int) -> None:
    raise AssertionError("a driver that declares an estimate is not run for one")


@estimates(declared)
def expected(settings: int) -> Estimate:
    return Estimate(Range(settings, settings))


def test_a_declared_estimate_is_taken_as_it_is() -> None:
    assert estimate_of(declared, 5) == Estimate(Range(5, 5))
    assert expected(6) == Estimate(Range(6, 6))


async def stopping(run: Run, settings: int) -> None:
    """Stops itself after the first map."""
    async for _ in run.map(stage.chat, [1, 1]):
        pass
    run.stop("enough", "enough is known")
    await run.submit(stage.chat, 1)


def test_a_driver_that_stops_itself_has_used_what_it_used() -> None:
    found = estimate_of(stopping, 0)
    assert (found.trials, found.loads[0].model, found.loads[0].calls) == (Range(2, 2), M, Range(2, 2))
