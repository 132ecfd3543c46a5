"""Code of the user's that raises what it should not: its trial is missing, and nothing hangs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import FaultKind, Outcome, Trial, function, program
from groundswell.engine.events import Event, Listener, RunEnded, RunOpened, TrialEnded, WaveEnded, WaveSent
from tests.engine.scenario import run_async
from tests.engine.stage import echo, one


@program("tests/user/raises")
async def raises(trial: Trial, spec: str) -> str:
    await trial.ask("any", spec)
    match spec:
        case "cancelled":
            raise asyncio.CancelledError
        case "exit":
            sys.exit(3)
    return spec


@function("tests/user/cancelled")
async def await_cancelled() -> None:
    task = asyncio.get_running_loop().create_future()
    task.cancel()
    await task


@function("tests/user/exit")
def leave_python() -> None:
    sys.exit(3)


@program("tests/user/calls")
async def calls(trial: Trial, spec: str) -> str:
    match spec:
        case "cancelled":
            await trial.call(await_cancelled)
        case "exit":
            await trial.call(leave_python)
    return spec


async def outcomes(store: Path, made: Any, specs: list[str], *listeners: Listener) -> list[Outcome[Any]]:
    async with groundswell.open(store, script=echo, listeners=listeners) as engine:
        return [outcome async for outcome in engine.run("story").map(made, specs)]


@pytest.mark.parametrize("spec", ["cancelled", "exit"])
@pytest.mark.parametrize(
    ("made", "kind"), [(raises, FaultKind.PROGRAM), (calls, FaultKind.CALL)], ids=["itself", "call"]
)
def test_what_a_program_or_function_raises_is_the_fault_of_its_trial(
    store: Path, made: Any, kind: FaultKind, spec: str
) -> None:
    before, broken, after = run_async(outcomes(store, made, ["fine", spec, "too"]))
    assert (before.result, after.result) == ("fine", "too")
    assert broken.fault is not None
    assert broken.fault.kind is kind
    assert {"cancelled": "CancelledError", "exit": "SystemExit: 3"}[spec] in broken.fault.message


@pytest.mark.parametrize("kind", [RunOpened, WaveSent, WaveEnded, TrialEnded, RunEnded])
def test_a_listener_that_raises_is_reported_and_the_run_goes_on(store: Path, kind: type[Event]) -> None:
    reported: list[dict[str, Any]] = []

    def listener(event: Event) -> None:
        if isinstance(event, kind):
            raise ValueError("the display is broken")

    async def main() -> list[Outcome[Any]]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        return await outcomes(store, one, ["a", "b"], listener)

    assert [outcome.result for outcome in run_async(main())] == ["a!", "b!"]
    assert reported
    assert all("the display is broken" in str(context["exception"]) for context in reported)
