"""Faults, retries and budgets of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import (
    Fault,
    FaultKind,
    Limits,
    Outcome,
    Reply,
    Request,
    RetryPolicy,
    RunOptions,
    RunStopped,
    SettingsError,
)
from groundswell.errors import ForeignAwait
from groundswell.testing.clock import FakeClock
from tests.engine.scenario import counters, run_async
from tests.engine.stage import (
    Flaky,
    Gate,
    anything,
    at_rest,
    echo,
    ill_typed,
    one,
    until,
)


def test_a_program_that_raises_is_missing_and_the_run_goes_on(store: Path) -> None:
    async def main() -> list[Outcome[Any]]:
        async with groundswell.open(store, script=echo) as engine:
            return [outcome async for outcome in engine.run("story").map(anything, ["fine", "raise"])]

    fine, raised = run_async(main())
    assert fine.result == "fine"
    assert raised.fault is not None
    assert raised.fault.kind is FaultKind.PROGRAM
    assert "ZeroDivisionError: no" in raised.fault.message
    assert "stage.py" in raised.fault.message
    assert (counters(store).usable, counters(store).missing) == (1, 1)


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        pytest.param("object", SettingsError, r"tests/anything@1.*result cannot be stored", id="not data"),
        pytest.param("surrogate", None, r"surrogates not allowed", id="not text"),
        pytest.param("bad request", SettingsError, r"request 1.*cannot be stored", id="request is not data"),
        pytest.param("foreign", ForeignAwait, r"trial '.*' awaited", id="foreign await"),
        pytest.param("unknown function", None, r"print is not registered", id="unregistered function"),
    ],
)
def test_mistakes_of_a_program_are_told(store: Path, spec: str, error: type[Exception] | None, words: str) -> None:
    """The second step of a trial runs beside the driver: an error there must reach it all the same."""

    async def main() -> Outcome[Any]:
        async with groundswell.open(store, script=echo) as engine:
            return await engine.run().submit(anything, spec)

    if error is not None:
        with pytest.raises(error, match=words):
            run_async(main())


def test_a_result_of_the_wrong_type_is_told(store: Path) -> None:
    async def main() -> None:
        async with groundswell.open(store, script=echo) as engine:
            await engine.run().submit(ill_typed, "a")

    with pytest.raises(SettingsError, match=r"tests/ill typed@1.*int"):
        run_async(main())


def test_a_script_that_raises_ends_the_run(store: Path) -> None:
    def broken(request: Request) -> Reply:
        raise LookupError("the model is gone")

    async def main() -> None:
        async with groundswell.open(store, script=broken) as engine:
            await engine.run("story").submit(one, "a")

    with pytest.raises(LookupError, match="the model is gone"):
        run_async(main())


def test_passing_faults_are_retried_after_a_wait(store: Path) -> None:
    clock = FakeClock()
    model = Flaky(Fault(FaultKind.SERVER, "one"), Fault(FaultKind.RATE_LIMITED, "two", retry_after=30.0))

    async def main() -> Outcome[str]:
        async with groundswell.open(store, script=model, clock=clock) as engine:
            run = engine.run("story")
            outcome = asyncio.create_task(run.submit(one, "a"))
            await until(lambda: len(model.asked) == 1)
            await at_rest(run)
            assert len(model.asked) == 1
            clock.advance(0.5)
            await until(lambda: len(model.asked) == 2)
            await at_rest(run)
            clock.advance(29.9)
            await at_rest(run)
            assert len(model.asked) == 2
            clock.advance(3.2)
            return await outcome

    assert run_async(main()).result == "a!"
    assert (counters(store).sent, counters(store).retried, counters(store).failed) == (3, 2, 0)


def test_a_fault_becomes_final_after_the_last_attempt(store: Path) -> None:
    model = Flaky(*[Fault(FaultKind.SERVER, "again")] * 3)

    async def main() -> Outcome[str]:
        async with groundswell.open(store, script=model) as engine:
            run = engine.run(options=RunOptions(retry=RetryPolicy(attempts=3, first_wait=0.0)))
            return await run.submit(one, "a")

    outcome = run_async(main())
    assert outcome.fault == Fault(FaultKind.SERVER, "again", attempts=3)
    with pytest.raises(groundswell.TrialMissing, match="again"):
        outcome.unwrap()


def test_others_go_on_while_one_waits_for_its_retry(store: Path) -> None:
    """The slot of a failed attempt is free at once."""
    clock = FakeClock()
    model = Flaky(Fault(FaultKind.SERVER, "busy"))

    async def main() -> list[str | None]:
        async with groundswell.open(store, script=model, clock=clock, max_concurrent=1) as engine:
            run = engine.run()

            async def drive() -> list[str | None]:
                return [outcome.result async for outcome in run.map(one, ["a", "b"])]

            task = asyncio.create_task(drive())
            await until(lambda: "b" in model.asked)
            clock.advance(60)
            return await task

    assert run_async(main()) == ["a!", "b!"]


@pytest.mark.parametrize("kind", [FaultKind.AUTH, FaultKind.QUOTA])
def test_a_hopeless_fault_stops_the_run_and_leaves_it_resumable(store: Path, kind: FaultKind) -> None:
    async def main(model: Flaky) -> list[str | None]:
        async with groundswell.open(store, script=model, max_concurrent=1) as engine:
            return [outcome.result async for outcome in engine.run("story").map(one, ["a", "b"])]

    with pytest.raises(RunStopped, match="no key"):
        run_async(main(Flaky(Fault(kind, "no key"))))
    record = groundswell.open(store).store.runs.get("story")
    assert (record.status, record.counters.planned, record.counters.settled) == ("failed", 2, 0)
    assert record.error is not None
    assert "no key" in record.error
    assert run_async(main(Flaky())) == ["a!", "b!"]
    record = groundswell.open(store).store.runs.get("story")
    assert (record.status, record.counters.planned, record.counters.usable) == ("completed", 2, 2)
    assert record.error is None


def test_a_provider_that_asks_to_wait_for_a_day_stops_the_run(store: Path) -> None:
    async def main() -> None:
        model = Flaky(Fault(FaultKind.RATE_LIMITED, "the daily limit is reached", retry_after=86_400.0))
        async with groundswell.open(store, script=model, max_concurrent=1) as engine:
            async for _ in engine.run("story").map(one, ["a"]):
                pass

    with pytest.raises(RunStopped, match="asks to wait 24 h 00 min: resume the run after that"):
        run_async(main())


BUDGETS = [
    pytest.param(Limits(calls=5), 5, "5 calls", id="calls"),
    pytest.param(Limits(tokens=50), 5, "50 tokens", id="tokens"),
]


@pytest.mark.parametrize(("limits", "sent", "words"), BUDGETS)
@pytest.mark.parametrize("concurrent", [1, 8])
def test_a_budget_ends_a_run_in_time(store: Path, limits: Limits, sent: int, words: str, concurrent: int) -> None:
    model = Flaky()

    async def main(limits: Limits) -> list[str | None]:
        async with groundswell.open(store, script=model, max_concurrent=concurrent) as engine:
            run = engine.run("story", options=RunOptions(limits=limits))
            return [outcome.result async for outcome in run.map(one, [str(number) for number in range(9)])]

    with pytest.raises(RunStopped, match=words):
        run_async(main(limits))
    assert len(model.asked) <= sent
    assert concurrent > 1 or len(model.asked) >= sent - 1
    assert groundswell.open(store).store.runs.get("story").status == "partial"
    assert len(run_async(main(Limits()))) == 9
    assert sorted(model.asked) == [str(number) for number in range(9)]


def test_a_deadline_ends_a_run(store: Path) -> None:
    clock, gate = FakeClock(), Gate()

    async def main() -> None:
        async with groundswell.open(store, script=gate, clock=clock) as engine:
            run = engine.run("story", options=RunOptions(limits=Limits(seconds=60)))
            task = asyncio.create_task(run.submit(one, "a"))
            await until(lambda: gate.waiting)
            clock.advance(61)
            await at_rest(run)
            assert not task.done()
            gate.let("a")
            assert (await task).result == "a!"
            await run.submit(one, "b")

    with pytest.raises(RunStopped, match="60 s"):
        run_async(main())
    assert gate.asked == ["a"]
