"""The experiment that is crashed: a few dozen trials with nested branches, calls, retries and faults.

As a script it is one session of that experiment in a process of its own, which kills itself at a commit (0:
never), and says on stdout that it has made one:

    python experiment.py STORE BOOKS TRANSPORT SCHEDULE COMMIT WHEN
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from groundswell import (
    AskFailed,
    Fault,
    FaultKind,
    Outcome,
    Reply,
    Request,
    RetryPolicy,
    RunOptions,
    Trial,
    Usage,
    function,
    program,
    together,
)
from groundswell.compose import OneWay
from groundswell.engine.engine import Engine
from groundswell.engine.ports import Clock, LoopClock, Store, Transport
from groundswell.program.request import Chat
from groundswell.store.journal import Store as FileStore
from groundswell.testing.batch import ProviderBooks, ScriptedBatch, ScriptedLive
from groundswell.testing.crash import CrashingStore, CrashPoint, kill_me

TRIALS = 24
CAP = 12
RUN = "crashed"
NARROW = 10


class Spec(msgspec.Struct, frozen=True):
    number: int


class Found(msgspec.Struct, frozen=True):
    opening: str
    branches: tuple[str, ...]
    drawn: int
    fallback: bool


@function("crash/measure")
def measure(text: str) -> int:
    if text.endswith("1"):
        raise ValueError("cannot be measured")
    return len(text)


@function("crash/shout")
async def shout(text: str) -> str:
    return text.upper()


async def branch(trial: Trial, topic: str) -> str:
    ask = trial.ask("m", f"{topic} drawn {trial.rng.randrange(1000)}")
    call: Awaitable[str] = trial.call(shout, topic)
    reply, loud = await together(ask, call)
    return f"{reply.text} {loud}"


@program("crash/nested")
async def nested(trial: Trial, spec: Spec) -> Found:
    opening = await trial.ask("m", f"open {spec.number}", label="opener")
    branches = await together(*(branch(trial, f"{opening.text} {side}") for side in ("left", "right")))
    if spec.number % 6 == 1:
        await trial.call(measure, f"trial {spec.number % 2}")
    fallback = False
    try:
        await trial.ask("m", f"close {spec.number} after {len(branches)}")
    except AskFailed:
        if spec.number % 4 == 0:
            raise
        fallback = True
    return Found(opening.text, branches, trial.rng.randrange(1000), fallback)


def answer(request: Request, nth: int) -> Reply | Fault:
    """Some requests fail at first and are retried; some fail for good."""
    assert isinstance(request, Chat)
    text = str(request.messages[-1].content)
    if text.startswith("close") and int(text.split()[1]) % 5 in (0, 2):
        return Fault(FaultKind.BAD_REQUEST, "no closing here")
    if sum(text.encode()) % 17 == 0 and nth == 0:
        return Fault(FaultKind.SERVER, "come again")
    return Reply(f"re: {text}", Usage(len(text), 3))


def options(schedule: str) -> RunOptions:
    """Stream and waves, and a window that holds less than half of the trials."""
    retry = RetryPolicy(first_wait=0.01)
    if schedule == "waves":
        return RunOptions(schedule="waves", retry=retry)
    return RunOptions(window=NARROW if schedule == "narrow" else None, retry=retry)


def transport(kind: str, books: ProviderBooks, clock: Clock, *, slow: float = 1.0, undecided: int = 0) -> Transport:
    """Live-like or batch-like, over the same books."""
    if kind == "live":
        return ScriptedLive(books, answer, clock, slowest=0.02 * slow)
    return ScriptedBatch(books, answer, clock, takes=0.01 * slow, undecided=undecided)


async def session(store: Store, way: Transport, clock: Clock, schedule: str) -> list[Outcome[Found]]:
    """One attempt to bring the run to its end."""
    cap = CAP if not way.barrier else 1000
    async with Engine(store, OneWay(way, cap), clock) as engine:
        run = engine.run(RUN, seed=7, options=options(schedule))
        return [outcome async for outcome in run.map(nested, [Spec(number) for number in range(TRIALS)])]


def main(store: str, books: str, kind: str, schedule: str, commit: str, when: str) -> None:
    point = CrashPoint(int(commit), "before" if when == "before" else "after", kill_me)
    clock = LoopClock()

    def around(commit: Callable[[], None]) -> None:
        point.around(commit)
        os.write(1, b"committed\n")

    async def one_session() -> None:
        way = transport(kind, ProviderBooks(Path(books)), clock)
        await session(CrashingStore(FileStore(store, around=around), point), way, clock, schedule)

    asyncio.run(one_session())


if __name__ == "__main__":
    main(*sys.argv[1:])
