"""Runs that are opened again after they ended in some other way than a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

import groundswell
from groundswell import (
    Fault,
    FaultKind,
    Limits,
    Outcome,
    Reply,
    Request,
    RunOptions,
    StoreError,
    Summary,
    Trial,
    program,
)
from groundswell.compose import OneWay
from groundswell.engine.engine import Engine
from groundswell.engine.ports import LoopClock
from groundswell.engine.run import Run
from groundswell.program.request import Chat
from groundswell.store.journal import Store
from groundswell.testing.crash import CrashPoint
from groundswell.transports.scripted import Scripted
from tests.engine.scenario import counters
from tests.stores import rows


@program("reopened/twice")
async def twice(trial: Trial, number: int) -> str:
    first = await trial.ask("m", f"first {number}")
    second = await trial.ask("m", f"second {number}")
    return first.text + second.text


class Model:
    """Counts what it is asked; fails for good where it is told to."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.failing = False

    def __call__(self, request: Request) -> Reply | Fault:
        assert isinstance(request, Chat)
        text = str(request.messages[0].content)
        self.asked[text] += 1
        if self.failing and text.endswith(("3", "5")):
            return Fault(FaultKind.FILTERED, "no")
        return Reply(f"<{text}>")


def test_trials_that_ended_are_not_asked_for_again_after_a_map_was_left(store: str | Path) -> None:
    model = Model()
    left = asyncio.Event()

    async def slowly(request: Request) -> Reply | Fault:
        answer = model(request)
        if isinstance(answer, Reply) and answer.text[-2] not in "012":
            await left.wait()
        return answer

    async def session(take: int) -> list[Outcome[str]]:
        taken: list[Outcome[str]] = []
        async with groundswell.open(store, script=slowly if take == 3 else model) as engine:
            outcomes = engine.run("left", options=RunOptions(window=8)).map(twice, range(20))
            async for outcome in outcomes:
                taken.append(outcome)
                if len(taken) == take:
                    break
            await outcomes.aclose()
            left.set()
        return taken

    first = asyncio.run(session(3))
    ended = {f"second {number}" for number in range(3)}
    assert ended <= model.asked.keys()
    again = asyncio.run(session(20))
    assert again[:3] == first
    assert [outcome.ok for outcome in again] == [True] * 20
    assert {text: model.asked[text] for text in ended} == dict.fromkeys(ended, 1)


@pytest.mark.parametrize("trials", [10, 1], ids=["some missing", "all missing"])
def test_retrying_the_missing_keeps_the_plan_and_what_was_answered(store: str | Path, trials: int) -> None:
    model = Model()

    async def main() -> None:
        specs = list(range(trials)) if trials > 1 else [3]
        async with groundswell.open(store, script=model) as engine:
            model.failing = True
            summary = await engine.drive(chosen, specs, name="r")
            assert summary.trials.missing == (2 if trials > 1 else 1)
            model.failing = False
            asked = model.asked.copy()
            summary = await engine.resume("r", retry_missing=True)
            assert (summary.status, summary.error) == ("completed", None)
            assert (summary.trials.planned, summary.trials.usable, summary.trials.missing) == (trials, trials, 0)
            missing = {"first 3", "second 3", "first 5", "second 5"}
            assert set(model.asked - asked) <= missing

    asyncio.run(main())


def test_a_stopped_run_goes_on_without_asking_again(store: str | Path) -> None:
    model = Model()

    async def session(calls: int | None) -> Summary:
        options = RunOptions(window=8, limits=Limits(calls=calls))
        async with groundswell.open(store, script=model, max_concurrent=4) as engine:
            return await engine.drive(chosen, list(range(20)), name="stopped", options=options)

    stopped = asyncio.run(session(7))
    assert (stopped.status, stopped.trials.usable, sum(model.asked.values())) == ("partial", 0, 7)
    ended = asyncio.run(session(None))
    assert (ended.status, ended.trials.planned, ended.trials.usable) == ("completed", 20, 20)
    assert (sum(model.asked.values()), max(model.asked.values())) == (40, 1)
    assert (ended.asks.sent, ended.asks.resent) == (40, 0)


async def chosen(run: Run, specs: list[int]) -> int:
    return len([outcome async for outcome in run.map(twice, specs)])


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("commit", range(1, 9))
def test_counters_are_those_of_the_journal_when_a_commit_failed(store: str | Path, commit: int) -> None:
    async def session(point: CrashPoint) -> None:
        way = OneWay(Scripted(Model()), 4)
        async with Engine(Store(store, around=point.around), way, LoopClock()) as engine:
            run = engine.run("full", options=RunOptions(window=4))
            assert len([outcome async for outcome in run.map(twice, range(12))]) == 12

    with pytest.raises(StoreError):
        asyncio.run(session(CrashPoint(commit, "before")))
    asyncio.run(session(CrashPoint(0, "before")))
    [(status,)] = rows(store, "SELECT status FROM runs")
    found = counters(store, "full")
    assert (status, found.planned, found.usable) == ("completed", 12, 12)
