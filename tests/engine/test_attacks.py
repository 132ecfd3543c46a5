"""What other people's code does wrong costs a trial, or ends the run with an error; it never hangs it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import (
    CallFailed,
    FaultKind,
    ForeignAwait,
    Limits,
    Outcome,
    Reply,
    Run,
    RunOptions,
    RunStopped,
    SettingsError,
    Trial,
    function,
    program,
    together,
)
from groundswell.engine.events import Event, TrialEnded
from groundswell.engine.ports import LoopClock
from groundswell.program.request import Request, Usage
from groundswell.testing.batch import ProviderBooks, ScriptedBatch
from tests.engine.scenario import run_async
from tests.engine.stage import one

HALF = json.loads('"\\ud83d"')


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "attacks.db"


async def soon(work: Any) -> Any:
    """What some work gives, or a failure instead of a test that hangs."""
    return await asyncio.wait_for(work, 20)


def outcomes(store: Path, program: Any, specs: list[str], script: Any = lambda request: "x", **how: Any) -> list[Any]:
    async def main() -> list[Outcome[Any]]:
        async with groundswell.open(store, script=script, **how) as engine:
            return [outcome async for outcome in engine.run("attacks").map(program, specs)]

    found: list[Any] = run_async(soon(main()))
    return found


@function("attacks/next")
def take_next() -> None:
    next(iter(()))


@function("attacks/exit")
def leave() -> None:
    raise SystemExit(3)


@function("attacks/cancelled")
async def cancelled() -> None:
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@function("attacks/mute")
def mute() -> None:
    raise Mute


@function("attacks/append")
def append(numbers: list[int]) -> None:
    numbers.append(1)


FUNCTIONS = {"next": take_next, "exit": leave, "cancelled": cancelled, "mute": mute}


@program("attacks/odd")
async def odd(trial: Trial, spec: str) -> str:
    await trial.ask("any", spec)
    match spec:
        case "cancelled":
            raise asyncio.CancelledError
        case "exit":
            raise GeneratorExit
        case "result":
            return str(HALF)
        case "error":
            raise ValueError(HALF)
        case "mute":
            raise Mute
        case "ask":
            await trial.ask("any", HALF)
    return spec


@pytest.mark.parametrize("spec", ["cancelled", "exit", "result", "error", "mute"])
def test_an_odd_end_of_a_program_costs_its_trial_alone(store: Path, spec: str) -> None:
    good, bad, last = outcomes(store, odd, ["good", spec, "last"])
    assert (good.result, last.result) == ("good", "last")
    assert bad.fault.kind is FaultKind.PROGRAM


@program("attacks/at once")
async def at_once(trial: Trial, spec: str) -> str:
    if spec == "cancelled":
        raise asyncio.CancelledError
    return spec


def test_a_program_that_is_cancelled_before_its_first_ask(store: Path) -> None:
    good, bad = outcomes(store, at_once, ["good", "cancelled"])
    assert (good.result, bad.fault.kind) == ("good", FaultKind.PROGRAM)


def test_a_request_that_is_not_unicode_fails_and_is_replayed(store: Path) -> None:
    good, bad = outcomes(store, odd, ["good", "ask"])
    assert good.ok
    assert bad.fault.kind is FaultKind.BAD_REQUEST

    async def verified() -> Any:
        async with groundswell.open(store, script=lambda request: "x") as engine:
            return await engine.verify("attacks")

    assert run_async(verified()).same == 2


@program("attacks/calls")
async def calls(trial: Trial, spec: str) -> str:
    try:
        await trial.call(FUNCTIONS[spec])
    except CallFailed as failed:
        return str(failed)
    return "returned"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("next", "RuntimeError: the function raised StopIteration"),
        ("exit", "SystemExit: 3"),
        ("cancelled", "CancelledError: "),
        ("mute", "Mute: (str() of the exception raised RuntimeError)"),
    ],
)
def test_an_odd_end_of_a_function_is_a_failed_call(store: Path, name: str, told: str) -> None:
    (outcome,) = outcomes(store, calls, [name])
    assert outcome.result.endswith(told)


@program("attacks/keeps")
async def keeps(trial: Trial, spec: str) -> int:
    numbers: list[int] = []
    await trial.call(append, numbers)
    await trial.ask("any", str(numbers))
    return len(numbers)


def test_a_function_cannot_change_what_the_program_holds(store: Path) -> None:
    (outcome,) = outcomes(store, keeps, ["x"])
    assert outcome.result == 0


async def cancelled_model(request: Request) -> str:
    raise asyncio.CancelledError


def test_a_cancelled_model_costs_its_trial(store: Path) -> None:
    (found,) = outcomes(store, one, ["a"], cancelled_model)
    assert found.fault is not None
    assert (found.fault.kind, found.fault.attempts) == (FaultKind.CONNECTION, 8)


@pytest.mark.parametrize("answer", [None, 5, Reply(None)])  # type: ignore[arg-type]
def test_a_model_that_gives_no_answer_is_told(store: Path, answer: Any) -> None:
    async def later(request: Request) -> Any:
        return answer

    for script in (lambda request: answer, later):
        with pytest.raises(SettingsError, match="must return text"):
            outcomes(store, one, ["a"], script)


def no_price(model: str, usage: Usage, transport: str) -> float:
    raise ZeroDivisionError


def test_a_price_that_raises_ends_the_run(store: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        outcomes(store, one, ["a"], prices=no_price, options=RunOptions(limits=Limits(usd=1)))


def test_prices_that_raise_for_several_in_flight_end_the_run(store: Path) -> None:
    async def slow(request: Request) -> str:
        await asyncio.sleep(0)
        return "x"

    with pytest.raises(ZeroDivisionError):
        outcomes(store, one, [f"{number}" for number in range(9)], slow, prices=no_price)


def deaf(event: Event) -> None:
    if isinstance(event, TrialEnded):
        raise ZeroDivisionError


def test_a_listener_that_raises_is_reported_and_the_run_goes_on(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = outcomes(store, one, ["a", "b"], listeners=[deaf])
    assert [outcome.ok for outcome in found] == [True, True]
    assert "a listener failed" in caplog.text


def test_numbers_that_would_hang_a_run_are_refused(store: Path) -> None:
    with pytest.raises(SettingsError, match="window"):
        RunOptions(window=0)
    with pytest.raises(SettingsError, match="max_concurrent"):
        groundswell.open(store, max_concurrent=0)


@program("attacks/foreign")
async def foreign(trial: Trial, spec: str) -> None:
    await asyncio.sleep(1)


def test_an_error_reaches_a_map_that_has_not_begun(store: Path) -> None:
    async def mapped(run: Run, program: Any) -> list[Any]:
        return [outcome async for outcome in run.map(program, ["a"])]

    async def main() -> list[Any]:
        async with groundswell.open(store, script=lambda request: "x") as engine:
            run = engine.run("attacks")
            await run.submit(one, "first")
            return list(await asyncio.gather(mapped(run, foreign), mapped(run, one), return_exceptions=True))

    assert [type(end) for end in run_async(soon(main()))] == [ForeignAwait, ForeignAwait]


@program("attacks/deep")
async def deep(trial: Trial, spec: int) -> int:
    return await down(trial, spec)


async def down(trial: Trial, left: int) -> int:
    if left == 0:
        return len((await trial.ask("any", "x")).text)
    (below,) = await together(down(trial, left - 1))
    return int(below) + 1


def test_a_very_deep_trial_can_be_given_up(store: Path) -> None:
    async def main() -> None:
        options = RunOptions(limits=Limits(calls=0))
        async with groundswell.open(store, script=lambda request: "x", options=options) as engine:
            await engine.run("attacks").submit(deep, 3000)

    with pytest.raises(RunStopped):
        run_async(soon(main()))


async def no_json(run: Run, settings: None) -> object:
    return object()


def test_an_analysis_that_cannot_be_stored_ends_the_run_and_leaves_no_trace_if_nothing_was_asked(store: Path) -> None:
    async def main() -> bool:
        async with groundswell.open(store, script=lambda request: "x") as engine:
            with pytest.raises(SettingsError, match="no_json"):
                await engine.drive(no_json, None, name="attacks")
            assert engine.runs == []
            return engine.store.runs.find("attacks") is None

    assert run_async(soon(main()))


async def asks_then_no_json(run: Run, settings: None) -> object:
    await run.submit(one, "a")
    return object()


def test_a_run_that_has_replies_is_kept_whatever_its_driver_returns(store: Path) -> None:
    async def main() -> str:
        async with groundswell.open(store, script=lambda request: "x") as engine:
            with pytest.raises(SettingsError, match="no_json"):
                await engine.drive(asks_then_no_json, None, name="attacks")
            return engine.store.runs.get("attacks").status

    assert run_async(soon(main())) == "failed"


async def some(run: Run, settings: None) -> int:
    """Takes what it can get; the first session is stopped after the second trial."""
    first = run.counters.planned == 0
    count = 0
    try:
        for number in range(4):
            await run.submit(one, str(number))
            count += 1
            if first and count == 2:
                run.stop("interrupted", "interrupted")
    except RunStopped:
        pass
    return count


def test_a_driver_that_handles_a_stop_leaves_a_run_that_goes_on(store: Path) -> None:
    async def main() -> list[Any]:
        async with groundswell.open(store, script=lambda request: "x") as engine:
            first = await engine.drive(some, None, name="attacks")
            second = await engine.resume("attacks")
            return [first.status, first.analysis, second.status, second.analysis]

    assert run_async(soon(main())) == ["interrupted", 2, "completed", 4]


@program("attacks/fallback")
async def fallback(trial: Trial, spec: str) -> str:
    try:
        first = (await trial.ask("any", "first")).text
    except groundswell.AskFailed:
        first = "none"
    second = (await trial.ask("any", f"after {first}")).text
    if first == "none":
        raise ValueError("no first")
    return second


async def falls(run: Run, settings: None) -> None:
    await run.submit(fallback, "x", key="x")


def test_another_ask_of_a_new_attempt_is_paid_once(store: Path, tmp_path: Path) -> None:
    books = ProviderBooks(tmp_path / "books")

    def script(request: Request, nth: int) -> Any:
        first = isinstance(request, groundswell.Chat) and request.messages[0].content == "first"
        return groundswell.Fault(FaultKind.BAD_REQUEST, "no") if first and not nth else "reply"

    async def session(retry: bool) -> str:
        transport = ScriptedBatch(books, script, LoopClock(), takes=0.0)
        async with groundswell.open(store, transport=transport) as engine:
            if retry:
                return (await engine.resume("attacks", retry_missing=True)).status
            return (await engine.drive(falls, None, name="attacks")).status

    async def interrupted() -> None:
        transport = ScriptedBatch(books, script, LoopClock(), takes=0.0)
        async with groundswell.open(store, transport=transport) as engine:
            work = asyncio.ensure_future(engine.resume("attacks", retry_missing=True))
            while len(books.entries()) < 4:
                await asyncio.sleep(0)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    assert run_async(soon(session(retry=False))) == "failed"
    run_async(soon(interrupted()))
    assert run_async(soon(session(retry=True))) == "completed"
    assert len(books.entries()) == 4
