"""Odd replies, odd results, and money in flight."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import groundswell
from groundswell import Chat, FaultKind, Limits, Outcome, Reply, RunOptions, RunStopped, Trial, Usage, program
from groundswell.errors import SettingsError
from tests.engine.scenario import run_async
from tests.engine.stage import one


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "edges.db"


def outcomes(store: Path, script: object, specs: list[str]) -> list[Outcome[str]]:
    async def main() -> list[Outcome[str]]:
        async with groundswell.open(store, script=script) as engine:  # type: ignore[arg-type]
            return [outcome async for outcome in engine.run("edges").map(one, specs)]

    return run_async(main())


def test_a_reply_that_is_not_unicode_is_a_fault_of_its_trial_alone(store: Path) -> None:
    def half_a_pair(request: Chat) -> str:
        return "\ud83d" if request.messages[0].content == "bad" else "fine"

    good, bad = outcomes(store, half_a_pair, ["good", "bad"])
    assert good.ok
    assert bad.fault is not None
    assert (bad.fault.kind, bad.fault.message) == (
        FaultKind.GARBLED,
        "the reply contains text that is not valid Unicode",
    )


@program("edges/ratio")
async def ratio(trial: Trial, spec: int) -> float:
    await trial.ask("any", str(spec))
    return math.nan if spec == 0 else 1 / spec


def test_a_result_that_json_cannot_hold_is_missing_and_the_rest_goes_on(store: Path) -> None:
    async def main() -> list[Outcome[float]]:
        async with groundswell.open(store, script=lambda request: "x") as engine:
            return [outcome async for outcome in engine.run("edges").map(ratio, [1, 0, 2])]

    first, second, third = run_async(main())
    assert (first.result, third.result) == (1.0, 0.5)
    assert second.fault is not None
    assert second.fault.kind is FaultKind.PROGRAM
    assert "edges/ratio" in second.fault.message


def a_cent_each(model: str, usage: Usage, transport: str) -> float:
    return 0.01


def test_money_counts_while_it_is_in_flight(store: Path) -> None:
    sent = []

    def count(request: Chat) -> Reply:
        sent.append(request)
        return Reply("x", Usage(1, 1))

    async def main() -> None:
        options = RunOptions(limits=Limits(usd=0.045))
        async with groundswell.open(store, script=count, prices=a_cent_each, max_concurrent=50) as engine:
            async for _ in engine.run("edges", options=options).map(one, [str(number) for number in range(20)]):
                pass

    with pytest.raises(RunStopped, match=r"\$0\.045 is used up"):
        run_async(main())
    assert len(sent) == 4


@pytest.mark.parametrize(("name", "value"), [("via", "bacth"), ("schedule", "wave")])
def test_options_that_there_are_not(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} '{value}': must be one of "):
        RunOptions(**{name: value})  # type: ignore[arg-type]
