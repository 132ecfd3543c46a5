"""Random programs for the equivalence tests: a tree of steps as plain data, and one program that performs it.

Replies and faults are a function of the request alone, so whatever changes a result or a journal is the
engine's doing.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from groundswell import AskFailed, CallFailed, Fault, FaultKind, Reply, Request, Trial, Usage, program, together
from groundswell.engine.outcome import Outcome
from groundswell.engine.records import Absent, AskId, Counters, Intent, Receipt, Settled, Wave
from groundswell.program.request import canonical, fingerprint
from groundswell.program.trial import function
from tests.stores import rows

T = TypeVar("T")


class Say(msgspec.Struct, frozen=True, tag="say"):
    """Ask a model; `drawn` puts a random number in, `handled` catches a fault."""

    topic: int
    drawn: bool = False
    handled: bool = False
    temperature: float | None = None


class Use(msgspec.Struct, frozen=True, tag="use"):
    """Call a registered function, which raises for multiples of three."""

    number: int
    handled: bool = False


class Part(msgspec.Struct, frozen=True, tag="part"):
    """Do several things together."""

    branches: tuple[tuple[Step, ...], ...]


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """Return early if the last thing heard says so."""


class Crash(msgspec.Struct, frozen=True, tag="crash"):
    """Raise an error of one's own."""

    word: str


Step = Say | Use | Part | Leave | Crash


class Plan(msgspec.Struct, frozen=True):
    """The spec of one trial."""

    steps: tuple[Step, ...]


@function("tests/square")
def square(number: int) -> dict[str, int]:
    if number % 3 == 0:
        raise ValueError(f"{number} is a multiple of three")
    return {"square": number * number}


@program("tests/perform")
async def perform(trial: Trial, spec: Plan) -> list[Any]:
    return await follow(trial, spec.steps)


async def follow(trial: Trial, steps: Iterable[Step]) -> list[Any]:
    heard: list[Any] = []
    for step in steps:
        match step:
            case Say():
                heard.append(await say(trial, step, heard))
            case Use():
                heard.append(await use(trial, step))
            case Part():
                heard.append(list(await together(*[follow(trial, branch) for branch in step.branches])))
            case Leave():
                if heard and digest(canonical(heard[-1])) % 2:
                    return heard
            case Crash():
                raise RuntimeError(step.word)
    return heard


async def say(trial: Trial, step: Say, heard: list[Any]) -> str:
    number = trial.rng.randrange(1000) if step.drawn else 0
    words = f"{step.topic}/{number}/{canonical(heard[-1:]).decode()}"
    try:
        return (await trial.ask("any", words, temperature=step.temperature)).text
    except AskFailed as failed:
        if not step.handled:
            raise
        return f"({failed.fault.kind})"


async def use(trial: Trial, step: Use) -> Any:
    try:
        return await trial.call(square, step.number)
    except CallFailed as failed:
        if not step.handled:
            raise
        return str(failed)


def digest(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest())


def answer(request: Request) -> Reply | Fault:
    """Four replies in five; otherwise one of two final faults."""
    number = digest(fingerprint(request))
    match number % 10:
        case 0:
            return Fault(FaultKind.FILTERED, f"no {number % 97}")
        case 1:
            return Fault(FaultKind.BAD_REQUEST, f"bad {number % 97}")
        case _:
            return Reply(f"{number % 9973}", Usage(number % 50, number % 20))


def _branches(steps: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    one = st.lists(steps, max_size=3).map(tuple)
    return st.lists(one, max_size=3).map(lambda branches: Part(tuple(branches)))


SIMPLE: st.SearchStrategy[Step] = st.one_of(
    st.builds(Say, st.integers(0, 5), st.booleans(), st.booleans()),
    st.builds(Say, st.integers(0, 5), st.just(True), st.just(True)),
    st.builds(Use, st.integers(0, 6), st.booleans()),
    st.just(Leave()),
)
STEPS: st.SearchStrategy[Step] = st.recursive(SIMPLE, _branches, max_leaves=6)
PLANS = st.builds(
    lambda steps, crash: Plan((*steps, *crash)),
    st.lists(STEPS, max_size=4).map(tuple),
    st.sampled_from([(), (), (), (Crash("boom"),)]),
)
EXPERIMENTS = st.lists(PLANS, min_size=1, max_size=6)


class Ticking:
    """Settles the asks of a wave in random order, each after a random number of ticks of the loop.

    Some first attempts fail in a passing way. `answered` counts the settlements that were handed over.
    """

    def __init__(
        self, seed: int = 0, *, ticks: int = 4, flaky: bool = False, cached: bool = False, barrier: bool = False
    ) -> None:
        self.name = "scripted"
        self.barrier = barrier
        self.max_wave = 3
        self.vectorised = False
        self.ready = True
        self.cached = cached
        self.answered: Counter[AskId] = Counter()
        self.dispatched = 0
        self.on_answer: Callable[[], None] = lambda: None
        self._random = random.Random(seed)
        self._ticks = ticks
        self._flaky = flaky
        self._failed: set[AskId] = set()
        self._waves: dict[int, Wave] = {}

    async def dispatch(self, wave: Wave) -> Receipt:
        self.dispatched += len(wave.items)
        self._waves[wave.id] = wave
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        items = list(self._waves.pop(intent.id).items)
        self._random.shuffle(items)
        for item in items:
            ask = item.ask
            for _ in range(self._random.randrange(self._ticks)):
                await asyncio.sleep(0)
            settlement = answer(item.request)
            if self._fails_first(ask, settlement):
                yield Settled(ask, Fault(FaultKind.SERVER, "once"))
            else:
                self.answered[ask] += 1
                self.on_answer()
                yield Settled(ask, settlement)

    def _fails_first(self, ask: AskId, settlement: Reply | Fault) -> bool:
        """Only what is answered in the end: a fault says how many attempts it took."""
        if not self._flaky or ask in self._failed or isinstance(settlement, Fault) or self._random.random() > 0.3:
            return False
        self._failed.add(ask)
        return True

    async def adopt(self, intent: Intent) -> Absent:
        return Absent(perhaps_paid=True)


Row = tuple[str, str, str, str]


def journal(store: Path, run: str | None = None) -> list[Row]:
    """What a run has journalled: trial key, path, fingerprint, settlement; in an order of its own."""
    with sqlite3.connect(store) as reading:
        rows = reading.execute(
            "SELECT trials.key, path, hex(fingerprint), settlement FROM asks JOIN trials ON trials.id = asks.trial "
            "JOIN runs ON runs.id = trials.id >> 32 WHERE runs.name = ? OR ? IS NULL",
            (run, run),
        ).fetchall()
    reading.close()
    return sorted(rows)


def by_key(outcomes: Iterable[Outcome[Any]]) -> dict[str, Any]:
    """Outcomes as plain data, by the keys of their trials."""
    return {outcome.key: msgspec.to_builtins(outcome) for outcome in outcomes}


def run_async(work: Coroutine[Any, Any, T], seconds: float = 20.0) -> T:
    """Run a test's coroutine. What hangs fails."""

    async def timed() -> T:
        async with asyncio.timeout(seconds):
            return await work

    return asyncio.run(timed())


def counters(store: str | Path, run: str = "story") -> Counters:
    """The figures of a run, as its store has them."""
    [(text,)] = rows(store, "SELECT counters FROM runs WHERE name = ?", run)
    return msgspec.json.decode(text, type=Counters)


def ask_key(store: Path, ask: AskId) -> tuple[str, str]:
    """An ask as a journal row names it: by the key of its trial, and its path."""
    with sqlite3.connect(store) as reading:
        (key,) = reading.execute("SELECT key FROM trials WHERE id = ?", (ask.trial,)).fetchone()
    reading.close()
    return key, ask.path
