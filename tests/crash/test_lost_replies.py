"""Replies that a killed process had paid for and lost: what the run reports is never less than the provider's books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from groundswell import Engine, Limits, Reply, Request, RunOptions, RunStopped, StoreError, Trial, Usage, program
from groundswell.compose import OneWay, at_once
from groundswell.engine.ports import Answered, LoopClock, Route
from groundswell.engine.rate_limit import most_uncommitted
from groundswell.engine.records import Via
from groundswell.store.journal import Store
from groundswell.testing.crash import CrashingStore, CrashPoint
from groundswell.transports.scripted import Scripted
from tests.engine.scenario import counters, run_async
from tests.engine.stage import said
from tests.stores import MOSTLY_SQLITE

T = TypeVar("T")


@pytest.fixture(params=MOSTLY_SQLITE)
def database(request: pytest.FixtureRequest) -> str:
    """The kind of a store."""
    kind: str = request.param
    return kind


def price(model: str, usage: Usage, transport: str) -> float:
    """A cent per token; the dear model costs ten times as much."""
    return (usage.input_tokens + usage.output_tokens) / (10 if model == "dear" else 100)


@program("tests/crash/lost")
async def asks(trial: Trial, spec: tuple[str, int]) -> str:
    """Two asks in turn; those of later trials are longer, and cost more."""
    for turn in range(2):
        await trial.ask(spec[0], f"{spec[0]} {spec[1]}.{turn} " + "word " * spec[1], max_tokens=4)
    return "done"


class Books(Scripted):
    """A live provider that writes down what it was paid for."""

    def __init__(self) -> None:
        super().__init__(lambda request: "", name="live", cached=False)
        self.paid: Counter[str] = Counter()
        self.usd = 0.0
        self.answered = 0

    async def ask(self, request: Request) -> Answered:
        self.paid[said(request)] += 1
        self.answered += 1
        prompt = len(said(request)) // 4
        self.usd += price(request.model, Usage(prompt, 2), "live")
        return Reply("yes", Usage(prompt, 2)), ()

    @property
    def paid_again(self) -> int:
        return self.paid.total() - len(self.paid)


class Models(OneWay):
    """Models with one transport, and so many slots each."""

    def __init__(self, way: Books, **slots: int) -> None:
        super().__init__(way, 1)
        self._slots = {model: Route(model, way, at_once(most), model) for model, most in slots.items()}

    def route(self, request: Request, via: Via = "live") -> Route:
        return self._slots[request.model]


class KilledAfter(CrashPoint):
    """A kill at the first commit after the provider has answered so many requests of this session."""

    def __init__(self, way: Books, answers: int) -> None:
        super().__init__(0, "before")
        self._way = way
        self._until = way.answered + answers

    def around(self, commit: Callable[[], T]) -> T:
        if self._way.answered >= self._until and not self.crashed:
            self.crashed = True
        return super().around(commit)


class Run:
    """One run, in as many sessions as it takes."""

    def __init__(self, store: str | Path, trials: int, *models: str) -> None:
        self.store = store
        self.way = Books()
        self._specs = [(model, number) for number in range(trials) for model in models or ("any",)]

    def session(self, point: CrashPoint, limits: Limits | None = None, **slots: int) -> None:
        async def main() -> None:
            store = CrashingStore(Store(self.store, around=point.around), point)
            router = Models(self.way, **(slots or {"any": 4}))
            async with Engine(store, router, LoopClock(), prices=price) as engine:
                run = engine.run("r", options=RunOptions(limits=limits or Limits()))
                assert [outcome.result async for outcome in run.map(asks, self._specs)]

        run_async(main())

    def kill(self, answers: int = 1, limits: Limits | None = None, **slots: int) -> None:
        with pytest.raises(StoreError):
            self.session(KilledAfter(self.way, answers), limits, **slots)

    def finish(self, limits: Limits | None = None, **slots: int) -> None:
        self.session(CrashPoint(0, "before"), limits, **slots)

    def check(self) -> None:
        """What may have been paid twice is told, in number and in dollars."""
        found = counters(self.store, "r")
        assert self.way.paid_again <= found.resent
        assert self.way.usd <= found.usd + found.possible.usd + 1e-9
        assert self.way.paid.total() <= found.sent + found.possible.calls


def lost(cap: int) -> int:
    return cap + most_uncommitted(cap)


def test_kills_before_the_first_commit_are_not_forgotten(store: str | Path) -> None:
    """Each session sends, and dies at its first commit after that."""
    run = Run(store, 12)
    for _ in range(4):
        run.kill()
    run.finish()
    assert run.way.paid_again >= 8, "the kills lost something"
    run.check()
    assert counters(store, "r").resent <= 4 * lost(4)


@pytest.mark.parametrize("caps", [(16, 2), (2, 16), (16, 1, 16, 1)], ids=str)
def test_kills_with_another_number_of_slots_in_each_session(store: str | Path, caps: tuple[int, ...]) -> None:
    run = Run(store, 40)
    for cap in caps:
        run.kill(any=cap)
    run.finish(any=3)
    run.check()
    assert counters(store, "r").resent <= sum(lost(cap) for cap in caps)


@pytest.mark.parametrize("answers", [1, 30])
def test_every_lane_has_its_own_bound(store: str | Path, answers: int) -> None:
    """The cheap model has many slots and the dear one few: neither bound is taken for the other."""
    run = Run(store, 40, "cheap", "dear")
    for _ in range(3):
        run.kill(answers, cheap=12, dear=2)
    run.finish(cheap=12, dear=2)
    run.check()
    assert counters(store, "r").resent <= 3 * (lost(12) + lost(2))


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("commit", range(1, 9))
def test_a_session_that_is_killed_while_it_recovers(store: str | Path, commit: int) -> None:
    """At any of the commits of its beginning."""
    run = Run(store, 40)
    run.kill()
    with pytest.raises(StoreError):
        run.session(CrashPoint(commit, "after"))
    run.finish()
    run.check()
    assert counters(store, "r").resent <= 2 * lost(4)


def test_sessions_that_never_get_to_send_cost_nothing(store: str | Path) -> None:
    run = Run(store, 12)
    for _ in range(3):
        with pytest.raises(StoreError):
            run.session(CrashPoint(3, "before"))
    assert run.way.answered == 0
    run.finish()
    found = counters(store, "r")
    assert (found.resent, found.possible.asks, found.possible.usd) == (0, 0, 0.0)


@pytest.mark.parametrize(("kills", "usd"), [(1, 3), (5, 20)])
def test_a_budget_is_kept_by_the_books_through_kills(store: str | Path, kills: int, usd: int) -> None:
    """What was paid for and lost counts: the provider is never paid more than the budget."""
    limits = Limits(usd=usd)
    run = Run(store, 60)
    for _ in range(kills):
        run.kill(6, limits, any=4)
    with pytest.raises(RunStopped, match=rf"the budget of \${usd} is used up .* for lost replies"):
        run.finish(limits)
    assert run.way.usd <= usd
    run.check()
    run.finish(Limits(usd=100.0))


def test_a_budget_of_calls_is_kept_by_the_books_through_kills(store: str | Path) -> None:
    limits = Limits(calls=100)
    run = Run(store, 60)
    for _ in range(4):
        run.kill(6, limits, any=4)
    with pytest.raises(RunStopped, match="the budget of 100 calls is used up"):
        run.finish(limits)
    assert run.way.paid.total() <= 100
