"""What may have been paid for replies that were lost: counted apart from what is certain, and never too low."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from heapq import nlargest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groundswell
from groundswell import Fault, FaultKind, Limits, Reply, Request, RetryPolicy, Run, RunOptions, Trial, Usage, program
from groundswell.engine.at_risk import AtRisk
from groundswell.engine.ports import Answered
from groundswell.engine.rate_limit import most_uncommitted
from groundswell.engine.records import Absent, Amounts, Counters, Possible
from groundswell.engine.spending import Budget, MostExpensive
from groundswell.testing.provider import ProviderBatches
from groundswell.transports.scripted import Scripted
from tests.engine.batch_stage import Stage, echo, expected, half_price, talks
from tests.engine.scenario import counters, run_async
from tests.engine.stage import until
from tests.properties import examples

amounts = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 99), st.booleans()), max_size=30)


@given(amounts, st.integers(0, 12))
def test_the_dearest_of_several_requests_are_counted(some: list[tuple[int, int, bool]], most: int) -> None:
    """Each figure is the most that so many of them can have come to."""
    dearest, total = MostExpensive(most), Possible()
    for tokens, cents, unknown in some:
        total += dearest.add(Possible(1, 0, tokens, float(cents), int(unknown)))
    assert total.asks == total.calls == dearest.counted.asks == min(most, len(some))
    assert total.tokens == sum(nlargest(most, (tokens for tokens, _, _ in some)))
    assert total.usd == sum(nlargest(most, (cents for _, cents, _ in some)))
    assert total.unknown == min(most, sum(unknown for *_, unknown in some))


def lane(name: str, cap: int) -> Any:
    pace = SimpleNamespace(allowance=SimpleNamespace(most=cap), in_flight=0)
    return SimpleNamespace(account=name, model="m", barrier=False, live=None, together=False, pace=pace)


class Books:
    """One run on a provider with books. An ask is a number: it goes to one of two lanes and costs what it is."""

    def __init__(self, asks: int) -> None:
        self.standing = set(range(1, asks + 1))
        self.billed: Counter[int] = Counter()
        self.stored = Counters()
        self.bounds = 0

    def session(self, draw: Callable[[Any], Any], *, killed: bool) -> None:
        lanes = [lane(name, draw(st.integers(1, 4))) for name in "ab"]
        counters = msgspec.json.decode(msgspec.json.encode(self.stored), type=Counters)
        waiting: list[Callable[[], None]] = []

        def lose(lost: Possible) -> None:
            counters.possible += lost

        def commit() -> None:
            self.stored = msgspec.json.decode(msgspec.json.encode(counters), type=Counters)
            for then in [*waiting]:
                waiting.remove(then)
                then()

        spending: Any = SimpleNamespace(most=lambda lane, ask: Possible(1, 0, ask, float(ask)), lose=lose)
        at_risk = AtRisk(counters, spending, waiting.append, lambda: None)
        late = draw(st.sets(st.sampled_from(sorted(self.standing)))) if self.standing and killed else set()
        for ask in sorted(self.standing - late):
            at_risk.count(lanes[ask % 2], ask)  # type: ignore[arg-type]
        if killed and draw(st.booleans()):
            if draw(st.booleans()):
                commit()  # something else is written while the run recovers
            return
        at_risk.recovered(lanes[:1], left_over=bool(late))
        at_risk.at_work(lanes[1])
        ready = self.standing - late
        for ask in sorted(late):  # the driver submits them one by one, or does not get to it
            if not draw(st.booleans()):
                break
            at_risk.count(lanes[ask % 2], ask)
            ready.add(ask)
            if draw(st.booleans()):
                commit()
        if not at_risk.committed and killed and draw(st.booleans()):
            return
        if not at_risk.committed:
            commit()
        assert at_risk.committed
        self.bounds += sum(self._most(each) for each in lanes)
        while ready:
            some = self._sent(ready, lanes)
            self.billed.update(some)
            if killed and draw(st.integers(0, 2)) == 0:
                return
            durable = some if not killed else {ask for ask in some if draw(st.booleans())}
            counters.usd += sum(durable)
            self.standing -= durable
            ready -= durable
            commit()
            if killed and durable != some:
                return  # the rest had come as well, and was not written
        at_risk.ended(0)
        commit()

    def _most(self, each: Any) -> int:
        cap: int = each.pace.allowance.most
        return cap + most_uncommitted(cap)

    def _sent(self, ready: set[int], lanes: list[Any]) -> set[int]:
        of = [sorted(ask for ask in ready if ask % 2 == number) for number in (0, 1)]
        return {ask for number, each in enumerate(lanes) for ask in of[number][-self._most(each) :]}


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(st.data(), st.integers(1, 30), st.integers(0, 5))
def test_the_books_never_say_more_than_the_run(data: st.DataObject, asks: int, kills: int) -> None:
    books = Books(asks)
    for _ in range(kills):
        books.session(data.draw, killed=True)
    books.session(data.draw, killed=False)
    found = books.stored
    assert not books.standing
    assert found.usd == sum(range(1, asks + 1))
    billed = sum(ask * times for ask, times in books.billed.items())
    assert billed <= found.usd + found.possible.usd
    assert books.billed.total() - len(books.billed) <= found.resent <= books.bounds
    assert found.at_risk == {}


def script(*values: Any) -> Callable[[Any], Any]:
    """Draws that are known in advance."""
    left = iter(values)
    return lambda _: next(left)


def test_a_dear_ask_that_the_driver_submits_after_another_kill() -> None:
    """A kill may have lost ask 4. The next session does not get to it, counts the cheaper ask 2, and is killed too."""
    books = Books(18)
    books.session(script(4, 1, set(), False, False, 0), killed=True)
    books.session(script(1, 1, {4}, False, False, False, 0), killed=True)
    books.session(script(1, 1), killed=False)
    billed = sum(ask * times for ask, times in books.billed.items())
    assert billed <= books.stored.usd + books.stored.possible.usd


def session(stored: Counters, standing: Sequence[int], *, left_over: bool) -> Counters:
    """What is stored after a session has counted the asks at which trials stood, is about to send, and is killed."""
    counters = msgspec.json.decode(msgspec.json.encode(stored), type=Counters)

    def lose(lost: Possible) -> None:
        counters.possible += lost

    spending: Any = SimpleNamespace(most=lambda lane, ask: Possible(1, 0, ask, float(ask)), lose=lose)
    way = lane("a", 4)
    at_risk = AtRisk(counters, spending, lambda then: then(), lambda: None)
    for ask in standing:
        at_risk.count(way, ask)  # type: ignore[arg-type]
    at_risk.recovered([way], left_over=left_over)
    return counters


def test_trials_that_are_left_over_for_the_driver_are_not_forgotten() -> None:
    """A session that is killed before the driver submits them passes on what the one before it may have lost."""
    eight = range(1, 9)
    first = session(Counters(), [], left_over=False)
    second = session(first, [], left_over=True)
    third = session(second, [*eight, *range(11, 19)], left_over=False)
    assert (third.resent, third.possible.usd) == (16, sum(eight) + sum(range(11, 19)))
    assert session(session(first, eight, left_over=False), eight, left_over=False).resent == 16
    assert session(session(first, [], left_over=False), [*eight, *range(11, 19)], left_over=False).resent == 8


def test_a_store_of_an_earlier_version_that_was_killed() -> None:
    assert session(Counters(flying=-5), range(9), left_over=False).resent == 5
    assert session(Counters(flying=-1), range(9), left_over=False).resent == 0, "it used no live lane"


def test_limits_are_held_against_what_may_have_been_paid() -> None:
    possible = Possible(asks=2, calls=1, tokens=300, usd=0.3)
    spent = Amounts(calls=4, tokens=400, usd=0.4)
    for limits, more in (
        (Limits(calls=6), (2, 0, 0.0)),
        (Limits(tokens=1000), (1, 301, 0.0)),
        (Limits(usd=1.0), (1, 0, 0.31)),
    ):
        refusal = Budget(limits, 0.0, spent, possible).refusal(0.0, *more)
        assert refusal is not None
        assert "used up" in refusal
        less = [max(0, amount - 1) if isinstance(amount, int) else max(0.0, amount - 0.02) for amount in more]
        assert Budget(limits, 0.0, spent, possible).refusal(0.0, *less) is None  # type: ignore[arg-type]


def cents(model: str, usage: Usage, transport: str) -> float | None:
    """A cent per token; other models have no price."""
    return (usage.input_tokens + usage.output_tokens) / 100 if model == "any" else None


@program("possible/one")
async def one(trial: Trial, spec: str) -> str:
    return (await trial.ask(spec, "question", max_tokens=10)).text


MOST = 6 + 8 // 3 + 1 + 10
"""Tokens that the question may take, with its reply."""


class Fails(Scripted):
    """Answers only after so many faults; writes down what the store said when each request was sent."""

    def __init__(self, fault: Fault, times: int, store: Path) -> None:
        super().__init__(lambda request: "", name="live")
        self._fault, self._times, self._store = fault, times, store
        self.stored: list[int] = []

    async def ask(self, request: Request) -> Answered:
        self.stored.append(counters(self._store).possible.asks)
        self._times -= 1
        return (self._fault if self._times >= 0 else Reply("yes", Usage(3, 4))), ()


def asked(store: Path, way: Any, model: str = "any", **options: Any) -> Counters:
    async def main() -> None:
        async with groundswell.open(store, transport=way, prices=cents) as engine:
            retry = RetryPolicy(attempts=3, first_wait=0.001, patience=0.001)
            await engine.run("story", options=RunOptions(retry=retry, **options)).submit(one, model)

    run_async(main())
    return counters(store)


FAULTS = [
    pytest.param(Fault(FaultKind.TIMEOUT, "no answer"), 1, id="no answer in time"),
    pytest.param(Fault(FaultKind.CONNECTION, "broke"), 1, id="a connection that broke"),
    pytest.param(Fault(FaultKind.GARBLED, "?"), 1, id="an answer that cannot be read"),
    pytest.param(Fault(FaultKind.FILTERED, "no"), 1, id="a reply that was filtered"),
    pytest.param(Fault(FaultKind.CONNECTION, "refused", sent=False), 0, id="no connection at all"),
    pytest.param(Fault(FaultKind.SERVER, "500"), 0, id="an error of the server"),
    pytest.param(Fault(FaultKind.RATE_LIMITED, "429"), 0, id="a refusal"),
]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(("fault", "lost"), FAULTS)
@pytest.mark.parametrize("times", [2, 9], ids=["then a reply", "given up"])
def test_an_attempt_without_an_answer_may_have_been_paid(store: Path, fault: Fault, lost: int, times: int) -> None:
    way = Fails(fault, times, store)
    with suppress(groundswell.RunStopped):  # an account that refuses everything stops the run
        asked(store, way)
    found = counters(store)
    times = len(way.stored) - (found.usd > 0)
    assert found.possible == Possible(asks=lost * times, tokens=lost * times * MOST, usd=found.possible.usd)
    assert found.possible.usd == pytest.approx(lost * times * MOST / 100)
    assert found.resent == 0
    assert way.stored == [lost * number for number in range(len(way.stored))], "durable before a retry"


def test_requests_without_a_price_are_counted_apart(store: Path) -> None:
    way = Fails(Fault(FaultKind.TIMEOUT, "no answer"), 2, store)
    assert asked(store, way, "obscure").possible == Possible(asks=2, tokens=2 * MOST, unknown=2)


def test_a_budget_counts_attempts_without_an_answer(store: Path) -> None:
    way = Fails(Fault(FaultKind.TIMEOUT, "no answer"), 2, store)
    with pytest.raises(groundswell.RunStopped, match=r"up to \$0\.\d+ for lost replies"):
        asked(store, way, limits=Limits(usd=2.5 * MOST / 100))
    assert len(way.stored) == 2


def test_requests_that_are_cut_off_are_reported_at_once_and_not_again(store: Path) -> None:
    """A second Ctrl-C cuts connections: what they may cost is known before the run is resumed."""

    class Silent(Scripted):
        async def ask(self, request: Request) -> Answered:
            if not answering:
                await asyncio.get_running_loop().create_future()
            return Reply("yes", Usage(3, 4)), ()

    async def run_once(cut: bool) -> None:
        async with groundswell.open(store, transport=Silent(lambda request: "", name="live"), prices=cents) as engine:
            run = engine.run("story")
            asking = [asyncio.create_task(run.submit(one, "any", key=str(number))) for number in range(3)]
            if cut:
                await until(lambda: run.dispatch.in_flight == 3)
                await asyncio.sleep(0)
                await engine._end(run, asyncio.CancelledError())
                for task in asking:
                    task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    answering = False
    run_async(run_once(cut=True))
    lost = Possible(3, 0, 3 * MOST, counters(store).possible.usd)
    assert (counters(store).possible, counters(store).resent) == (lost, 0)
    assert lost.usd == pytest.approx(3 * MOST / 100)
    answering = True
    run_async(run_once(cut=False))
    assert (counters(store).possible, counters(store).resent) == (lost, 3)
    assert counters(store).usd == pytest.approx(0.21)


# Batches.

SIX = talks(6, "m")
ONE_LINE = (6 + 6 // 3 + 1 + 10) / 200
"""What one request of a batch may cost at most, by `half_price`."""


def stop(run: Run) -> None:
    run.stop("interrupted", "enough")


def paid_twice_at_most(stage: Stage) -> None:
    assert stage.counters.resent == stage.counters.possible.asks == 6
    assert stage.counters.possible.usd == pytest.approx(6 * ONE_LINE)


def garbled_at_first(request: Request, nth: int) -> Any:
    return Fault(FaultKind.GARBLED, "no result") if nth == 0 else echo(request, nth)


def test_results_of_a_batch_that_cannot_be_had_may_have_been_paid(tmp_path: Path) -> None:
    stage = Stage(tmp_path, garbled_at_first, prices=half_price)
    assert stage.session(SIX).results == expected(SIX)
    paid_twice_at_most(stage)


def test_so_may_those_of_a_batch_of_an_earlier_session(tmp_path: Path) -> None:
    stage = Stage(tmp_path, garbled_at_first, prices=half_price)
    stage.session(SIX, at=[(5.0, stop)])
    assert stage.session(SIX).results == expected(SIX)
    paid_twice_at_most(stage)


async def perhaps_paid(self: ProviderBatches, intent: Any) -> Absent:
    return Absent(perhaps_paid=True)


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_batch_that_is_not_found_may_have_been_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sessions: int
) -> None:
    """It is ordered again, in the same session or in the next one."""
    stage = Stage(tmp_path, prices=half_price)
    if sessions == 2:
        stage.session(SIX, mishaps=["lost"], undecided=1, at=[(5.0, stop)])
    monkeypatch.setattr(ProviderBatches, "adopt", perhaps_paid)
    assert stage.session(SIX, mishaps=["lost"] if sessions == 1 else []).results == expected(SIX)
    paid_twice_at_most(stage)
    assert stage.counters.sent == 12
