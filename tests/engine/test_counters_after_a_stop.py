"""Figures and replies of a run that was stopped, left or retried, and then resumed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import groundswell
from groundswell import Chat, Fault, FaultKind, Limits, Request, Run, RunOptions, Trial, program
from groundswell.store.journal import Store


@program("counters/two_asks", version=1)
async def two_asks(trial: Trial, spec: int) -> int:
    await trial.ask("any/model", f"{spec} first")
    await trial.ask("any/model", f"{spec} second")
    return spec


async def sum_up(run: Run, settings: int) -> int:
    return sum([outcome.result or 0 async for outcome in run.map(two_asks, range(settings))])


async def leave_early(run: Run, settings: int) -> int:
    async for outcome in run.map(two_asks, range(settings)):
        if outcome.result == 2:
            break
    await asyncio.sleep(0)
    return 2


@program("counters/one_ask", version=1)
async def one_ask(trial: Trial, spec: int) -> int:
    await trial.ask("any/model", f"{spec} only")
    return spec


async def leave_then_go_on(run: Run, settings: int) -> int:
    await leave_early(run, settings)
    return sum([outcome.result or 0 async for outcome in run.map(one_ask, range(4))])


def yes(request: Request) -> str:
    return "yes"


class Moody:
    """Refuses one request the first time."""

    def __init__(self) -> None:
        self.refused = False

    def __call__(self, request: Request) -> str | Fault:
        assert isinstance(request, Chat)
        if request.messages[0].content == "1 second" and not self.refused:
            self.refused = True
            return Fault(FaultKind.BAD_REQUEST, "not now")
        return "yes"


def test_a_run_that_its_budget_stopped_keeps_its_plan_and_asks_nothing_twice(tmp_path: Path) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db", script=yes) as engine:
            stopped = await engine.drive(sum_up, 4, options=RunOptions(limits=Limits(calls=5)))
            assert (stopped.status, stopped.trials.planned, stopped.asks.sent) == ("partial", 4, 5)
            ended = await engine.resume(stopped.run_id, options=RunOptions())
        assert (ended.status, ended.trials.planned, ended.trials.usable) == ("completed", 4, 4)
        assert (ended.asks.sent, ended.analysis) == (8, 6)

    asyncio.run(main())


def test_a_new_attempt_at_missing_trials_leaves_the_plan_as_it_was(tmp_path: Path) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db", script=Moody()) as engine:
            partial = await engine.drive(sum_up, 4)
            assert (partial.trials.planned, partial.trials.usable, partial.trials.missing) == (4, 3, 1)
            ended = await engine.resume(partial.run_id, retry_missing=True)
        assert (ended.status, ended.trials.planned, ended.trials.usable) == ("completed", 4, 4)
        assert (ended.trials.missing, ended.asks.sent, ended.analysis) == (0, 9, 6)

    asyncio.run(main())


def test_a_driver_that_is_cancelled_keeps_its_plan(tmp_path: Path) -> None:
    async def main() -> None:
        reached, gate = asyncio.Event(), asyncio.Event()

        async def slow(request: Request) -> str:
            reached.set()
            await gate.wait()
            return "yes"

        async with groundswell.open(tmp_path / "s.db", script=slow) as engine:
            task = asyncio.ensure_future(engine.drive(sum_up, 4, name="cut off"))
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert engine.store.runs.get("cut off").counters.planned == 4
            gate.set()
            ended = await engine.resume("cut off")
        assert (ended.status, ended.trials.planned, ended.trials.usable) == ("completed", 4, 4)
        assert (ended.asks.sent, ended.asks.resent) == (12, 4)

    asyncio.run(main())


def test_a_driver_that_leaves_by_choice_wants_the_rest_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db", script=yes, options=RunOptions(window=4)) as engine:
            ended = await engine.drive(leave_early, 100)
        assert ended.status == "completed"
        assert ended.trials.planned == ended.trials.usable < 100

    asyncio.run(main())


@pytest.mark.parametrize(
    ("replicates", "sized", "expected"),
    [(1, True, 3), (2, True, 6), (1, False, None)],
    ids=["list", "twice", "iterator"],
)
def test_a_map_says_how_many_trials_it_expects(
    tmp_path: Path, replicates: int, sized: bool, expected: int | None
) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db", script=yes) as engine:
            run = engine.run("sized")
            specs = range(3) if sized else iter(range(3))
            assert run.expected is None
            assert len([outcome async for outcome in run.map(two_asks, specs, replicates=replicates)]) == 3 * replicates
            assert run.expected == expected

    asyncio.run(main())


def test_a_run_whose_code_has_changed_is_refused_and_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db", script=yes) as engine:
            done = await engine.drive(sum_up, 3, name="r")
            monkeypatch.setattr(two_asks, "source", "another")
            with pytest.raises(groundswell.SourceChanged):
                await engine.drive(sum_up, 3, name="r")
            with pytest.raises(groundswell.SourceChanged, match="counters/two_asks@1"):
                await engine.resume("r")
            assert engine.store.runs.get("r").status == "completed"
            monkeypatch.undo()
            again = await engine.resume("r")
            assert (again.status, again.asks, again.analysis) == ("completed", done.asks, 3)

    asyncio.run(main())


@pytest.mark.parametrize("calls", [14, 17, 20, 22])
def test_figures_add_up_after_a_driver_left_a_map_and_was_stopped_later(tmp_path: Path, calls: int) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db", script=yes) as engine:
            limited = RunOptions(window=8, limits=Limits(calls=calls))
            stopped = await engine.drive(leave_then_go_on, 100, name="r", options=limited)
            assert stopped.status == "partial" or calls > 17  # how far ahead the map had asked depends on timing
            ended = await engine.resume("r", options=RunOptions(window=8))
            records = [result.status for result in Store(tmp_path / "s.db").results(engine.store.runs.get("r"))]
        assert (ended.status, ended.analysis) == ("completed", 6)
        assert ended.trials.planned == ended.trials.usable == records.count("usable")

    asyncio.run(main())
