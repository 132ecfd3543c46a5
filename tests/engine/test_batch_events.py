"""What is told of waves: each that left has come back once, and who was in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from groundswell import Fault, FaultKind, Outcome, Reply, Request, Run, RunOptions, Trial, program, together
from groundswell.compose import OneWay
from groundswell.engine.engine import Engine
from groundswell.engine.events import BatchSent, Event, WaveEnded, WaveSent
from groundswell.engine.records import Absent, Intent, Receipt, Settled, Wave
from groundswell.program.trial import function
from groundswell.store.journal import Store
from groundswell.testing.batch import Answer
from groundswell.testing.clock import FakeClock, pause
from groundswell.transports.scripted import Scripted
from tests.engine.batch_stage import RETRY, Ended, Stage, Talk, echo, expected, said, talk, talks, via


def paired(events: list[Event], *, whole: bool = True) -> list[WaveSent]:
    """The waves that were told of, each of which ended once, with its size."""
    sent = [event for event in events if isinstance(event, WaveSent)]
    ended = Counter((event.wave, event.size) for event in events if isinstance(event, WaveEnded))
    assert ended == Counter((event.wave, event.size) for event in sent)
    assert set(ended.values()) <= {1}
    assert all(len(event.trials) == event.size for event in sent)
    return [event for event in sent if event.whole or not whole]


def fails(request: Request, nth: int) -> Answer:
    """The second conversation fails at first, the third for good."""
    if said(request).startswith("talk 1") and nth == 0:
        return Fault(FaultKind.SERVER, "come again")
    return Fault(FaultKind.FILTERED, "no") if said(request).startswith("talk 2") else echo(request, nth)


MISHAPS = ["full", "full later", "none", "unsent", "lost", "taken", "expires"]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("mishap", [None, *MISHAPS])
def test_waves_that_left_have_come_back(tmp_path: Path, mishap: str | None) -> None:
    stage = Stage(tmp_path, fails)
    ended = stage.session(talks(5, "m", "m"), mishaps=[mishap])
    assert len(ended.results) == 5
    assert paired(ended.events)
    known = [entry.batch for entry in stage.books.entries() if entry.batch is not None]
    assert [event.batch for event in ended.told(BatchSent)] == known, "each batch is told of once"
    assert stage.counters.waves == len(paired(ended.events, whole=False)) - (mishap in MISHAPS[:5])


def test_a_wave_says_whose_messages_it_carries(tmp_path: Path) -> None:
    ended = Stage(tmp_path).session(talks(4, "m", "m"))
    keys = {outcome.key for outcome in ended.outcomes}
    first, second = paired(ended.events)
    assert (first.labels, first.first, second.labels, second.first) == (("turn 0",), True, ("turn 1",), False)
    assert set(first.trials) == set(second.trials) == keys


@function("batches/look up")
def look_up(number: int) -> str:
    return f"talk {number}"


@program("batches/looks up first")
async def looks_up_first(trial: Trial, spec: Talk) -> str:
    """What comes first is no message; and then there are two at once."""
    topic = await trial.call(look_up, spec.number)
    first, other = await together(trial.ask("m", topic), trial.ask("m", f"{topic} other"))
    return (await trial.ask("m", f"{first.text} {other.text}")).text


def test_first_messages_need_not_be_the_first_thing_that_a_program_does(tmp_path: Path) -> None:
    async def drive(run: Run, some: list[Talk]) -> list[Outcome[Any]]:
        return [outcome async for outcome in run.map(looks_up_first, some)]

    ended = Stage(tmp_path).session(talks(3), drive=drive)
    assert [(event.size, event.first) for event in paired(ended.events)] == [(6, True), (3, False)]


async def leave_early(run: Run, some: list[Talk]) -> list[Outcome[Any]]:
    """A driver that has seen enough after one outcome, and goes on with others."""
    outcomes = run.map(talk, some)
    first = [await anext(outcomes)]
    await outcomes.aclose()
    return [*first, *[outcome async for outcome in run.map(talk, talks(3, "m", "m"))]]


DROPPED: list[Any] = [
    pytest.param(39.0, None, 12, id="in their first batch"),
    pytest.param(40.5, "full later", 12, id="in a batch that is refused"),
    pytest.param(40.5, "expires", 16, id="in a batch that expires"),
    pytest.param(40.5, None, 16, id="in a batch"),
]


@pytest.mark.parametrize(("seconds", "mishap", "placed"), DROPPED)
def test_trials_that_were_left_are_not_sent_again_and_their_waves_end(
    tmp_path: Path, seconds: float, mishap: str | None, placed: int
) -> None:
    """The driver has what it wants while the others are at their first message, or at their second."""
    stage = Stage(tmp_path)
    some = [Talk(8, ("n",)), Talk(9, ("n",)), *talks(4, "m", "m", "m")]
    ended = stage.session(some, drive=leave_early, lengths={"n": seconds}, mishaps=[None, None, mishap])
    assert ended.results == expected([some[0], *talks(3, "m", "m")])
    paired(ended.events)
    assert (stage.placed, stage.counters.sent, stage.open_waves) == (placed, placed, 0)


class Singing:
    """A live transport on which asks travel by themselves, a second each, and some fail at first."""

    name, barrier, cached, vectorised, ready, max_wave = "live", False, False, False, True, 256

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._asked: Counter[str] = Counter()

    async def ask(self, request: Request) -> tuple[Reply | Fault, tuple[()]]:
        await pause(self._clock, 1.0)
        answer = fails(request, self._asked[said(request)])
        self._asked[said(request)] += 1
        assert isinstance(answer, Reply | Fault)
        return answer, ()

    async def dispatch(self, wave: Wave) -> Receipt:
        raise AssertionError("asks travel by themselves")

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        raise AssertionError("asks travel by themselves")
        yield

    async def adopt(self, intent: Intent) -> Absent:
        return Absent(perhaps_paid=True)


def live_waves(tmp_path: Path, kind: str, drive: Any, cap: int) -> Ended:
    """A run in barrier waves on a live lane."""
    clock, events = FakeClock(), list[Event]()

    async def main() -> list[Outcome[Any]]:
        store = Store(tmp_path / "runs.db")
        clock.watch(store)
        tries: Counter[str] = Counter()

        def script(request: Request) -> Any:
            tries[said(request)] += 1
            return fails(request, tries[said(request)] - 1)

        way = Singing(clock) if kind == "singly" else Scripted(script)
        async with Engine(store, OneWay(way, cap), clock, listeners=[events.append]) as engine:
            run = engine.run("story", options=RunOptions(schedule="waves", retry=RETRY))
            return list(await drive(run))

    return Ended(clock.run(main()), events, None, clock.now())


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("cap", [1, 3, 100])
@pytest.mark.parametrize("kind", ["singly", "in pieces"])
def test_a_barrier_wave_that_leaves_live_is_one_wave(tmp_path: Path, kind: str, cap: int) -> None:
    async def drive(run: Run) -> list[Outcome[Any]]:
        return [outcome async for outcome in run.map(talk, talks(7, "m", "m", "m"))]

    ended = live_waves(tmp_path, kind, drive, cap)
    waves = paired(ended.events)
    assert [(event.size, event.labels, event.first) for event in waves] == [
        (7, ("turn 0",), True),
        (7, ("turn 1",), False),
        (7, ("turn 2",), False),
    ]
    assert all(event.whole for event in ended.told(WaveSent)), "pieces are not told of"


@pytest.mark.parametrize("kind", ["singly", "in pieces"])
def test_a_barrier_wave_ends_though_its_trials_were_left(tmp_path: Path, kind: str) -> None:
    async def drive(run: Run) -> list[Outcome[Any]]:
        first = [await run.submit(talk, Talk(5, ("m",)))]
        leaving = asyncio.ensure_future(leave_early(run, [Talk(9, ("m",)), *talks(4, "m", "m", "m")]))
        return [*first, *await leaving]

    ended = live_waves(tmp_path, kind, drive, 1)
    assert len(ended.outcomes) == 5
    paired(ended.events)


def test_what_goes_live_in_waves_is_a_wave_of_its_own(tmp_path: Path) -> None:
    ended = Stage(tmp_path).session(talks(5, "m", "m"), via(schedule="waves"), mishaps=["none"])
    assert ended.results == expected(talks(5, "m", "m"))
    assert [(event.transport, event.size) for event in paired(ended.events)] == [
        ("batch", 5),
        ("live", 5),
        ("live", 5),
    ]
