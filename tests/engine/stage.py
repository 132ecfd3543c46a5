"""What the tests of runs share: programs and models."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from groundswell import (
    Chat,
    Fault,
    Reply,
    Request,
    Run,
    Trial,
    Usage,
    program,
)


class Clock:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    def call_at(self, when: float, then: Callable[[], None]) -> Callable[[], None]:
        entry = (when, then)
        self._due.append(entry)

        def cancel() -> None:
            if entry in self._due:
                self._due.remove(entry)

        return cancel

    def advance(self, seconds: float) -> None:
        self.time += seconds
        due = [entry for entry in self._due if entry[0] <= self.time]
        self._due = [entry for entry in self._due if entry[0] > self.time]
        for _, then in sorted(due, key=lambda entry: entry[0]):
            then()


@program("tests/repeat")
async def repeat(trial: Trial, spec: int) -> str:
    """Ask as often as the spec says, each time with the last reply."""
    said = str(spec)
    for _ in range(spec):
        said = (await trial.ask("any", said, max_tokens=10)).text
    return said


@program("tests/one")
async def one(trial: Trial, spec: str) -> str:
    return (await trial.ask("any", spec, max_tokens=10)).text


@program("tests/anything")
async def anything(trial: Trial, spec: str) -> Any:
    await trial.ask("any", spec)
    match spec:
        case "object":
            return object()
        case "raise":
            raise ZeroDivisionError("no")
        case "unknown function":
            return await trial.call(print)
        case "bad request":
            return (await trial.ask("any", "x", extra={"of": object()})).text
        case "foreign":
            await asyncio.sleep(0)
    return spec


@program("tests/ill typed")
async def ill_typed(trial: Trial, spec: str) -> int:
    await trial.ask("any", spec)
    return spec  # type: ignore[return-value]


def said(request: Request) -> str:
    """The last message of a request."""
    assert isinstance(request, Chat)
    content = request.messages[-1].content
    assert isinstance(content, str)
    return content


def echo(request: Request) -> Reply:
    return Reply(f"{said(request)}!", Usage(4, 6))


class Gate:
    """A model that answers when a test lets it."""

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Future[None]] = {}
        self.asked: list[str] = []

    async def __call__(self, request: Request) -> Reply:
        words = said(request)
        self.asked.append(words)
        self.waiting[words] = asyncio.get_running_loop().create_future()
        await self.waiting[words]
        return Reply(f"{words}!")

    def let(self, words: str) -> None:
        self.waiting.pop(words).set_result(None)


async def until(condition: Callable[[], object]) -> None:
    """Let the loop go round until something is so."""
    while not condition():
        await asyncio.sleep(0)


async def at_rest(run: Run) -> None:
    """Let everything go on that can, commits included."""
    for _ in range(10):
        await run.journal.flush()
        await asyncio.sleep(0)


class Flaky:
    """Fails the first attempts with given faults, then answers."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = list(faults)
        self.asked: list[str] = []

    def __call__(self, request: Request) -> Reply | Fault:
        self.asked.append(said(request))
        return self.faults.pop(0) if self.faults else echo(request)


def trial_keys(store: Path) -> list[str]:
    with sqlite3.connect(store) as reading:
        keys = [key for (key,) in reading.execute("SELECT key FROM trials")]
    reading.close()
    return keys
