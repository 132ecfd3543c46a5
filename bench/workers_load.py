"""The programs of bench/workers.py, which workers load."""

from __future__ import annotations

import asyncio
import time

import msgspec

from groundswell import Reply, Run, Trial, Usage, driver, program, scripted_model
from groundswell.program.request import Request

REPLY = Reply("That is an interesting thought. Let me answer with a question of my own.", Usage(120, 18))
TURNS = 3
WAITS = 1.0


@scripted_model("at_once")
def at_once(_: Request) -> Reply:
    """Answers at once."""
    return REPLY


@scripted_model("in_a_second")
async def in_a_second(_: Request) -> Reply:
    """Answers after a second."""
    await asyncio.sleep(WAITS)
    return REPLY


@scripted_model("in_an_hour")
async def in_an_hour(_: Request) -> Reply:
    """Answers after an hour."""
    await asyncio.sleep(3600 * WAITS)
    return REPLY


class Talk(msgspec.Struct):
    """A trial: the model, and how long it computes after each reply."""

    number: int
    model: str
    computes: float = 0.0


@program("bench/worker-talk")
async def talk(trial: Trial, spec: Talk) -> int:
    """A conversation."""
    for turn in range(TURNS):
        await trial.ask(spec.model, f"{spec.number}: what do you say at turn {turn}?", max_tokens=200)
        until = (
            time.thread_time() + spec.computes
        )  # by its CPU: while another process has the core, nothing is computed
        while time.thread_time() < until:
            pass
    return spec.number


class Load(msgspec.Struct):
    """What is run."""

    trials: int
    model: str
    computes: float = 0.0


@driver("bench/worker-load")
async def load(run: Run, wanted: Load) -> int:
    """All trials; how many ended."""
    specs = (Talk(number, wanted.model, wanted.computes) for number in range(wanted.trials))
    run.expected = wanted.trials
    return len([outcome async for outcome in run.map(talk, specs, ordered=False)])
