"""Equal asks in flight are sent once, and nobody who waits for one is left waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groundswell
from groundswell import AskFailed, Engine, Fault, FaultKind, Reply, RetryPolicy, RunOptions, RunStopped, Trial, program
from groundswell.engine.records import Absent, AskId, Intent, Item, Receipt, Settled, Wave
from groundswell.testing.clock import FakeClock
from tests.engine.editions import in_time, turn
from tests.engine.scenario import counters, journal, run_async
from tests.engine.stage import said
from tests.engine.test_equivalence import fresh_store
from tests.properties import examples


@program("tests/joined/same")
async def same(trial: Trial, spec: str) -> str:
    """What is asked is in the spec, before a slash; what is after it only tells trials apart."""
    try:
        return (await trial.ask("any", spec.partition("/")[0], temperature=0)).text
    except AskFailed as failed:
        return f"({failed.fault.kind})"


class Held:
    """A transport whose answers a test gives one by one."""

    def __init__(self) -> None:
        self.name = "held"
        self.barrier = self.vectorised = False
        self.cached = self.ready = True
        self.max_wave = 256
        self.sent: list[str] = []
        self.waiting: list[tuple[str, asyncio.Future[Reply | Fault]]] = []
        self._waves: dict[tuple[int, tuple[AskId, ...]], Wave] = {}

    async def dispatch(self, wave: Wave) -> Receipt:
        self._waves[wave.id, wave.asks] = wave
        return Receipt()

    async def collect(self, intent: Intent, receipt: Receipt) -> AsyncIterator[Settled]:
        items = self._waves.pop((intent.id, intent.asks)).items
        for done in asyncio.as_completed([self._answer(item) for item in items]):
            yield await done

    async def _answer(self, item: Item) -> Settled:
        future: asyncio.Future[Reply | Fault] = asyncio.get_running_loop().create_future()
        words = said(item.request)
        self.sent.append(words)
        self.waiting.append((words, future))
        return Settled(item.ask, await future)

    def answer(self, settlement: Reply | Fault | None = None, which: int = 0) -> None:
        words, future = self.waiting.pop(which)
        if not future.done():
            future.set_result(settlement or Reply(f"{words}!"))

    def fail(self, error: Exception) -> None:
        self.waiting.pop(0)[1].set_exception(error)

    async def adopt(self, intent: Intent) -> Absent:
        return Absent(perhaps_paid=True)


ONCE = RunOptions(retry=RetryPolicy(attempts=1, first_wait=0.0, patience=0.0))
Body = Callable[[Engine, Held], Any]


def staged(store: Path, body: Body) -> None:
    """Run a test's body with an engine and a held transport; afterwards nothing may be waited for."""

    async def main() -> None:
        held = Held()
        async with groundswell.open(store, transport=held, max_concurrent=8, options=ONCE) as engine:
            await body(engine, held)
            await in_time(lambda: all(pace.in_flight == 0 for pace in paces(engine)))
        assert engine._asked == {}

    run_async(main())


def paces(engine: Engine) -> list[Any]:
    return [lane.pace for lane in engine._lanes._by_route.values()]


def asking(run: groundswell.Run, *specs: str) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(run.submit(same, spec)) for spec in specs]


async def results(tasks: list[asyncio.Task[Any]]) -> list[Any]:
    return [(await task).result for task in tasks]


async def settle_down() -> None:
    """Let everything go on that can."""
    for _ in range(30):
        await turn()


async def answer_all(held: Held, tasks: list[asyncio.Task[Any]]) -> None:
    """Answer whatever is asked until tasks are done."""
    while not all(task.done() for task in tasks):
        await turn()
        while held.waiting:
            held.answer()


def joined(engine: Engine, number: int) -> bool:
    return sum(len(asked.waiting) for asked in engine._asked.values()) == number


def test_equal_asks_of_several_trials_are_sent_once(store: Path) -> None:
    async def body(engine: Engine, held: Held) -> None:
        tasks = asking(engine.run("story"), "a/1", "a/2", "a/3", "b/1")
        await in_time(lambda: joined(engine, 2) and len(held.waiting) == 2)
        held.answer()
        held.answer()
        assert await results(tasks) == ["a!", "a!", "a!", "b!"]
        assert sorted(held.sent) == ["a", "b"]

    staged(store, body)
    kept = counters(store)
    assert (kept.sent, kept.cached, kept.failed, kept.usable) == (2, 2, 0, 4)


def test_equal_asks_of_two_runs_are_sent_once(store: Path) -> None:
    async def body(engine: Engine, held: Held) -> None:
        first = asking(engine.run("first"), "a")
        await in_time(lambda: held.waiting)
        second = asking(engine.run("second"), "a", "a/2")
        await in_time(lambda: joined(engine, 2))
        held.answer()
        assert await results(first + second) == ["a!", "a!", "a!"]
        assert held.sent == ["a"]

    staged(store, body)
    assert [(counters(store, run).sent, counters(store, run).cached) for run in ("first", "second")] == [(1, 0), (0, 2)]
    assert [row[3] for row in journal(store, "second")] == [row[3] for row in journal(store, "first")] * 2


def test_an_equal_ask_between_a_reply_and_its_commit_is_not_sent(store: Path) -> None:
    async def body(engine: Engine, held: Held) -> None:
        run = engine.run("story")
        first = asking(run, "a/1")
        await in_time(lambda: held.waiting)
        held.answer()
        while not run.committing:
            await asyncio.sleep(0)
        second = asking(run, "a/2")
        assert await results(first + second) == ["a!", "a!"]
        assert held.sent == ["a"]

    staged(store, body)
    assert (counters(store).sent, counters(store).cached) == (1, 1)


def test_a_run_that_is_cut_off_before_its_commit_leaves_the_reply_to_others(store: Path) -> None:
    async def body(engine: Engine, held: Held) -> None:
        run = engine.run("first")
        first = asking(run, "a/1")
        await in_time(lambda: held.waiting)
        second = asking(engine.run("second"), "a/2")
        await in_time(lambda: joined(engine, 1))
        held.answer()
        while not run.committing:
            await asyncio.sleep(0)
        await run.end(asyncio.CancelledError())
        assert await results(second) == ["a!"]
        assert held.sent == ["a"]
        first[0].cancel()

    staged(store, body)


@pytest.mark.parametrize("kind", [FaultKind.SERVER, FaultKind.TIMEOUT, FaultKind.GARBLED])
def test_when_an_ask_fails_in_passing_the_others_are_asked_all_at_once(store: Path, kind: FaultKind) -> None:
    async def body(engine: Engine, held: Held) -> None:
        tasks = asking(engine.run("story"), "a/1", "a/2", "a/3")
        await in_time(lambda: joined(engine, 2) and held.waiting)
        held.answer(Fault(kind, "no"))
        await in_time(lambda: len(held.waiting) == 2)
        held.answer()
        held.answer()
        assert sorted(await results(tasks)) == sorted([f"({kind})", "a!", "a!"])
        assert held.sent == ["a", "a", "a"]

    staged(store, body)
    kept = counters(store)
    assert (kept.sent, kept.cached, kept.failed) == (3, 0, 1)


@pytest.mark.parametrize("kind", [FaultKind.BAD_REQUEST, FaultKind.CONTEXT, FaultKind.FILTERED])
def test_a_fault_that_all_would_meet_is_shared(store: Path, kind: FaultKind) -> None:
    async def body(engine: Engine, held: Held) -> None:
        tasks = asking(engine.run("story"), "a/1", "a/2")
        await in_time(lambda: joined(engine, 1) and held.waiting)
        held.answer(Fault(kind, "no"))
        assert await results(tasks) == [f"({kind})"] * 2
        assert held.sent == ["a"]

    staged(store, body)
    kept = counters(store)
    assert (kept.sent, kept.cached, kept.failed) == (1, 0, 2)


def test_a_reply_that_cannot_be_written_is_nobodys(store: Path) -> None:
    async def body(engine: Engine, held: Held) -> None:
        tasks = asking(engine.run("story"), "a/1", "a/2")
        await in_time(lambda: joined(engine, 1) and held.waiting)
        held.answer(Reply("\ud800"))
        await in_time(lambda: held.waiting)
        held.answer()
        assert sorted(await results(tasks)) == ["(garbled)", "a!"]

    staged(store, body)
    assert counters(store).sent == 2


def test_a_trial_that_is_left_lets_the_others_have_its_reply(store: Path) -> None:
    """The driver leaves the map while its ask is under way: the reply is paid for, and kept."""

    async def body(engine: Engine, held: Held) -> None:
        run = engine.run("story", options=RunOptions(window=2, retry=ONCE.retry))

        async def leave() -> None:
            async for _ in run.map(same, ["first", "a/1"]):
                break

        leaving = asyncio.create_task(leave())
        await in_time(lambda: len(held.waiting) == 2)
        tasks = asking(engine.run("other"), "a/2")
        await in_time(lambda: joined(engine, 1))
        held.answer(which=[words for words, _ in held.waiting].index("first"))
        await leaving
        await answer_all(held, tasks)
        assert await results(tasks) == ["a!"]
        assert sorted(held.sent) == ["a", "first"]

    staged(store, body)


def test_a_trial_that_is_left_before_its_ask_leaves_lets_the_others_ask(store: Path) -> None:
    async def body(engine: Engine, held: Held) -> None:
        run = engine.run("story", options=RunOptions(window=1, retry=ONCE.retry))

        def specs() -> Iterator[str]:
            yield "first"
            held.ready = False
            yield "a/1"

        async def leave() -> None:
            async for _ in run.map(same, specs()):
                await in_time(lambda: tasks and joined(engine, 1))
                break

        tasks: list[asyncio.Task[Any]] = []
        leaving = asyncio.create_task(leave())
        await in_time(lambda: held.waiting)
        held.answer()
        await in_time(lambda: any(asked.leader.wait.path for asked in engine._asked.values()) and not held.ready)
        tasks += asking(engine.run("other"), "a/2")
        await leaving
        held.ready = True
        await answer_all(held, tasks)
        assert await results(tasks) == ["a!"]
        assert held.sent == ["first", "a"]

    staged(store, body)
    assert (counters(store).sent, counters(store, "other").sent) == (1, 1)


async def drive(run: groundswell.Run, settings: str) -> str:
    return str((await run.submit(same, settings)).result)


async def stop(run: groundswell.Run, held: Held, task: asyncio.Task[Any]) -> None:
    run.stop("interrupted", "enough")


async def crash(run: groundswell.Run, held: Held, task: asyncio.Task[Any]) -> None:
    held.fail(RuntimeError("the line is dead"))


async def cancel(run: groundswell.Run, held: Held, task: asyncio.Task[Any]) -> None:
    task.cancel()


@pytest.mark.parametrize("end", [stop, crash, cancel])
def test_a_run_that_ends_does_not_strand_those_who_wait_for_its_ask(store: Path, end: Any) -> None:
    async def body(engine: Engine, held: Held) -> None:
        leading = asyncio.create_task(engine.drive(drive, "a", name="first"))
        await in_time(lambda: held.waiting)
        first = engine.runs[0]
        second = asking(engine.run("second"), "a/2")
        await in_time(lambda: joined(engine, 1))
        await end(first, held, leading)
        await answer_all(held, second)
        assert await results(second) == ["a!"]
        await asyncio.gather(leading, return_exceptions=True)

    staged(store, body)
    assert counters(store, "second").sent + counters(store, "second").cached == 1


def test_what_a_stopped_run_has_not_sent_is_asked_by_those_who_wait_for_it(store: Path) -> None:
    """The stopped run stays open: nobody closes it while the other goes on."""

    async def body(engine: Engine, held: Held) -> None:
        held.ready = False
        run = engine.run("first")
        first = asking(run, "a/1", "a/2")
        await in_time(lambda: joined(engine, 1))
        second = asking(engine.run("second"), "a/3")
        await in_time(lambda: joined(engine, 2))
        run.stop("interrupted", "enough")
        held.ready = True
        await answer_all(held, second)
        assert await results(second) == ["a!"]
        assert held.sent == ["a"]
        assert all(isinstance(end, RunStopped) for end in await asyncio.gather(*first, return_exceptions=True))

    staged(store, body)
    assert [counters(store, run).sent for run in ("first", "second")] == [0, 1]


def test_what_broke_the_run_that_asked_is_asked_by_those_who_wait_for_it(store: Path) -> None:
    async def body(engine: Engine, held: Held) -> None:
        first = asking(engine.run("first"), "a/1")
        await in_time(lambda: held.waiting)
        second = asking(engine.run("second"), "a/2")
        await in_time(lambda: joined(engine, 1))
        held.fail(RuntimeError("the line is dead"))
        await answer_all(held, second)
        assert await results(second) == ["a!"]
        with pytest.raises(RuntimeError, match="the line is dead"):
            await first[0]

    staged(store, body)


def test_a_trial_that_is_left_while_its_ask_waits_to_be_retried_lets_the_others_ask(store: Path) -> None:
    clock, held = FakeClock(), Held()

    async def main() -> None:
        async with groundswell.open(store, transport=held, clock=clock) as engine:
            run = engine.run("story")
            asking(run, "a/1")[0].add_done_callback(lambda task: task.cancelled() or task.exception())
            await in_time(lambda: held.waiting)
            second = asking(engine.run("other"), "a/2")
            await in_time(lambda: joined(engine, 1))
            held.answer(Fault(FaultKind.SERVER, "no"))
            await in_time(lambda: run.counters.retried == 1)
            next(iter(run.open.values())).drop()
            run.dispatch.forget_dropped()
            clock.advance(5.0)
            await answer_all(held, second)
            assert await results(second) == ["a!"]
            assert held.sent == ["a", "a"]

    run_async(main())
    assert (counters(store).sent, counters(store, "other").sent) == (1, 1)


def test_a_run_that_stops_while_it_waits_for_anothers_ask_ends(store: Path) -> None:
    async def body(engine: Engine, held: Held) -> None:
        first = asking(engine.run("first"), "a")
        await in_time(lambda: held.waiting)
        run = engine.run("second")
        second = asking(run, "a/2")
        await in_time(lambda: joined(engine, 1))
        run.stop("interrupted", "enough")
        with pytest.raises(RunStopped, match="enough"):
            await second[0]
        held.answer()
        assert await results(first) == ["a!"]

    staged(store, body)
    assert (counters(store, "first").sent, counters(store, "second").sent) == (1, 0)


MOVES = st.lists(st.tuples(st.sampled_from(["ask", "answer", "fault", "turn"]), st.integers(0, 2)), max_size=25)


@settings(max_examples=examples(20), deadline=None)
@given(MOVES)
def test_however_asks_and_answers_fall_everyone_gets_one(moves: list[tuple[str, int]]) -> None:
    tasks: list[tuple[str, asyncio.Task[Any]]] = []

    async def body(engine: Engine, held: Held) -> None:
        runs = [engine.run("first"), engine.run("second")]
        for number, (what, which) in enumerate(moves):
            if what == "ask":
                spec = f"{which}/{number}"
                tasks.extend((str(which), task) for task in asking(runs[number % 2], spec))
            elif what == "turn":
                await settle_down() if which else await asyncio.sleep(0)
            elif held.waiting:
                held.answer(Fault(FaultKind.SERVER, "no") if what == "fault" else None, which % len(held.waiting))
        await answer_all(held, [task for _, task in tasks])
        for words, task in tasks:
            assert (await task).result in (f"{words}!", "(server)")
        kept = [run.counters for run in runs]
        assert sum(each.sent for each in kept) == len(held.sent)
        assert sum(each.sent + each.cached for each in kept) == len(tasks)

    with fresh_store() as store:
        staged(store, body)
