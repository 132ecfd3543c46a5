"""Programs and drivers whose trials are run by workers, and a model that answers them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from groundswell import Reply, Run, driver, program
from groundswell.errors import RunStopped, SettingsError
from groundswell.program.request import Chat, Fault, FaultKind, Request, Usage
from groundswell.program.trial import Trial


@program("tests/workers/talk")
async def talk(trial: Trial, spec: int) -> str:
    """Three turns, of which some fail."""
    said = f"trial {spec}"
    for turn in range(3):
        said += " " + (await trial.ask("any/model", f"{said}, turn {turn}", max_tokens=20)).text
    trial.row(spec=spec, length=len(said))
    return said


@program("tests/workers/broken")
async def broken(trial: Trial, spec: int) -> str:
    """A program that cannot be run at all."""
    await trial.ask("any/model", f"trial {spec}")
    raise SettingsError("this model is not set up here")


class Wanted(msgspec.Struct):
    """Settings of all drivers here."""

    trials: int = 60


@driver("tests/workers/all")
async def all_trials(run: Run, wanted: Wanted) -> list[str]:
    """All outcomes in order; what is missing is told by its fault."""
    run.expected = wanted.trials
    outcomes = [outcome async for outcome in run.map(talk, range(wanted.trials))]
    return [outcome.result or f"missing: {outcome.fault and outcome.fault.kind}" for outcome in outcomes]


@driver("tests/workers/adaptive")
async def adaptive(run: Run, wanted: Wanted) -> list[str]:
    """Each trial depends on the outcome of the one before, in three lines at once."""

    async def line(number: int) -> str:
        spec = number
        for step in range(wanted.trials // 3):
            outcome = await run.submit(talk, spec, key=f"{number} {step}")
            spec = len(outcome.result or "") * 7 + number
        return str(spec)

    return list(await asyncio.gather(*map(line, range(3))))


@driver("tests/workers/some")
async def some_trials(run: Run, wanted: Wanted) -> list[str]:
    """A driver that leaves a `map` in the middle, and then makes another one."""
    first = []
    async for outcome in run.map(talk, range(wanted.trials)):
        first.append(outcome.key)
        if len(first) == 5:
            break
    return first + [outcome.key async for outcome in run.map(talk, range(1000, 1010))]


@driver("tests/workers/broken")
async def broken_trials(run: Run, wanted: Wanted) -> int:
    """A driver of a program that cannot be run."""
    return len([outcome async for outcome in run.map(broken, range(wanted.trials))])


@driver("tests/workers/stops")
async def stops(run: Run, wanted: Wanted) -> list[str]:
    """A driver that is stopped after some trials, as by Ctrl-C, when it is run for the first time."""
    if run.kept("stopped") is None:
        count = 0
        async for _ in run.map(talk, range(wanted.trials)):
            count += 1
            if count == wanted.trials // 3:
                await run.keep("stopped", "once")
                run.stop("interrupted", "interrupted")
        raise RunStopped("interrupted", "interrupted")
    return [str(outcome.result) async for outcome in run.map(talk, range(wanted.trials))]


def answer(request: Request) -> Any:
    """A reply that depends on the request alone. One request of some dozens is refused for good."""
    assert isinstance(request, Chat)
    said = str(request.messages[-1].content)
    if said.startswith(("trial 7,", "trial 33,")):
        return Fault(FaultKind.BAD_REQUEST, "not this one")
    return _later(Reply(f"{sum(said.encode()) % 997}", Usage(len(said) // 4, 1)))


async def _later(reply: Reply) -> Reply:
    await asyncio.sleep(0.002)
    return reply
