"""The conductor: paths, `together`, any order of settlements, and what a program may not await."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import (
    AskFailed,
    CallFailed,
    Fault,
    FaultKind,
    ForeignAwait,
    Program,
    Reply,
    Trial,
    fingerprint,
    together,
)
from groundswell.program.conductor import Conductor, Wait
from groundswell.program.request import Chat, Invoke, Returned, Settlement
from groundswell.program.trial import function
from tests.engine.scenario import PLANS, Plan, answer, perform, square

BAD = Fault(FaultKind.BAD_REQUEST, "no")
Body = Callable[[Trial], Coroutine[Any, Any, Any]]


def conduct(body: Body, key: str = "k", seed: int = 0) -> Conductor:
    """A trial of a program that takes no spec."""

    async def run(trial: Trial, spec: None) -> Any:
        return await body(trial)

    return Conductor(Program("tests/body", 1, run), None, key, seed)


def words(wait: Wait) -> str:
    assert isinstance(wait.request, Chat)
    content = wait.request.messages[0].content
    assert isinstance(content, str)
    return content


def echo(wait: Wait) -> Settlement:
    """Replies with what was said; words that start with ! are refused."""
    if isinstance(wait.request, Invoke):
        return Returned(list(wait.request.arguments))
    return Fault(FaultKind.BAD_REQUEST, words(wait)) if words(wait).startswith("!") else Reply(words(wait))


def play(
    conductor: Conductor, settle: Callable[[Wait], Settlement] = echo, pick: Callable[[int], int] = lambda count: 0
) -> list[tuple[str, bytes]]:
    """Settle one wait at a time, as `pick` says, until the trial ends; what was asked, in that order."""
    asked: list[tuple[str, bytes]] = []
    waits = conductor.start()
    asked += [(wait.path, fingerprint(wait.request)) for wait in waits]
    while waits:
        wait = waits.pop(pick(len(waits)))
        conductor.settle(wait, settle(wait))
        new = conductor.advance()
        asked += [(wait.path, fingerprint(wait.request)) for wait in new]
        waits += new
    assert conductor.ended
    return asked


def result_of(conductor: Conductor) -> Any:
    if conductor.error is not None:
        raise conductor.error
    return conductor.result


async def say(trial: Trial, *texts: str) -> list[str]:
    return [(await trial.ask("m", text)).text for text in texts]


# Paths.


def test_paths_are_structural() -> None:
    async def body(trial: Trial) -> Any:
        await say(trial, "first")
        inner = together(say(trial, "x"), say(trial, "y", "z"))

        async def nested() -> Any:
            await say(trial, "before")
            return await inner

        pair = await together(say(trial, "a", "b"), nested())
        return pair, await say(trial, "last")

    conductor = conduct(body)
    paths = [path for path, _ in play(conductor)]
    assert sorted(paths) == sorted(
        ["0", "1.0/0", "1.0/1", "1.1/0", "1.1/1.0/0", "1.1/1.1/0", "1.1/1.1/1", "2"],
    )
    assert result_of(conductor) == ((["a", "b"], (["x"], ["y", "z"])), ["last"])


def test_waits_come_in_the_order_of_the_children() -> None:
    async def body(trial: Trial) -> Any:
        return await together(*[say(trial, text) for text in "abcd"])

    assert [wait.path for wait in conduct(body).start()] == ["0.0/0", "0.1/0", "0.2/0", "0.3/0"]


def test_a_together_of_nothing_ends_at_once_and_takes_a_position() -> None:
    async def body(trial: Trial) -> Any:
        return await together(), await say(trial, "a")

    conductor = conduct(body)
    assert [path for path, _ in play(conductor)] == ["1"]
    assert result_of(conductor) == ((), ["a"])


@function("tests/conductor/noted")
def noted(*values: Any) -> Any:
    raise AssertionError("a program never runs a function itself")


def test_asks_and_calls_go_straight_into_together() -> None:
    async def body(trial: Trial) -> Any:
        return await together(trial.ask("m", "a"), trial.call(noted, 1, 2), trial.embed("e", ["t"]))

    def settle(wait: Wait) -> Settlement:
        return echo(wait) if not wait.path.startswith("0.2") else Reply("as good as any")

    conductor = conduct(body)
    assert [path for path, _ in play(conductor, settle)] == ["0.0/0", "0.1/0", "0.2/0"]
    reply, value, embedded = result_of(conductor)
    assert (reply.text, value, embedded.text) == ("a", [1, 2], "as good as any")


def test_labels_travel_with_asks_and_change_nothing() -> None:
    async def body(trial: Trial) -> Any:
        return await together(trial.ask("m", "a", label="anna"), trial.ask("m", "a", label="bo"))

    one, other = conduct(body).start()
    assert (one.label, other.label) == ("anna", "bo")
    assert fingerprint(one.request) == fingerprint(other.request)


# Failures.


def test_together_waits_for_all_and_raises_the_lowest_index() -> None:
    async def body(trial: Trial) -> Any:
        try:
            await together(say(trial, "a", "b", "c"), say(trial, "!one"), say(trial, "!two"))
        except AskFailed as failed:
            return failed.fault.message

    conductor = conduct(body)
    waits = {wait.path: wait for wait in conductor.start()}
    for path in ("0.2/0", "0.1/0"):
        conductor.settle(waits[path], echo(waits[path]))
        assert conductor.advance() == []
        assert not conductor.ended
    wait = waits["0.0/0"]
    for _ in "abc":
        conductor.settle(wait, echo(wait))
        wait, *_ = [*conductor.advance(), wait]
    assert conductor.ended
    assert result_of(conductor) == "!one"


@pytest.mark.parametrize(
    ("fault", "raised"),
    [(BAD, AskFailed), (Fault(FaultKind.CALL, "f: no"), CallFailed)],
    ids=["ask", "call"],
)
def test_a_fault_is_raised_where_it_was_awaited(fault: Fault, raised: type[AskFailed | CallFailed]) -> None:
    async def body(trial: Trial) -> Any:
        try:
            await trial.ask("m", "a")
        except (AskFailed, CallFailed) as failed:
            return type(failed), failed.fault

    conductor = conduct(body)
    play(conductor, lambda wait: fault)
    assert result_of(conductor) == (raised, fault)


def test_what_a_program_raises_is_kept_with_its_line() -> None:
    async def body(trial: Trial) -> Any:
        await say(trial, "a")
        raise LookupError("lost")

    conductor = conduct(body)
    play(conductor)
    assert isinstance(conductor.error, LookupError)
    assert conductor.result is None


# Order.


@given(PLANS, st.randoms(use_true_random=False), st.integers(0, 3))
def test_the_order_of_settlements_changes_nothing(plan: Plan, random: Random, seed: int) -> None:
    def settle(wait: Wait) -> Settlement:
        if isinstance(wait.request, Invoke):
            try:
                return Returned(square(*wait.request.arguments))
            except ValueError as error:
                return Fault(FaultKind.CALL, str(error))
        return answer(wait.request)

    def ending(pick: Callable[[int], int]) -> tuple[Any, str, set[tuple[str, bytes]], int]:
        conductor = Conductor(perform, plan, "k", seed)
        asked = play(conductor, settle, pick)
        return conductor.result, repr(conductor.error), set(asked), len(asked)

    in_order = ending(lambda count: 0)
    assert ending(lambda count: count - 1) == in_order
    assert ending(random.randrange) == in_order
    assert len(in_order[2]) == in_order[3]


def test_all_that_is_settled_goes_on_in_one_advance() -> None:
    async def body(trial: Trial) -> Any:
        return await together(*[say(trial, text, text) for text in "abc"])

    conductor = conduct(body)
    waits = conductor.start()
    for wait in waits:
        conductor.settle(wait, echo(wait))
    assert sorted(wait.path for wait in conductor.advance()) == ["0.0/1", "0.1/1", "0.2/1"]


# Random numbers.


async def draw(trial: Trial, *texts: str) -> list[float]:
    drawn = [trial.rng.random()]
    for text in texts:
        await trial.ask("m", text)
        drawn.append(trial.rng.random())
    return drawn


async def drawing(trial: Trial) -> Any:
    before = trial.rng.random()
    children = await together(draw(trial, "a", "b"), draw(trial, "c", "d"), draw(trial))
    return before, children, trial.rng.random()


def drawn(key: str = "k", seed: int = 0, pick: Callable[[int], int] = lambda count: 0) -> Any:
    conductor = conduct(drawing, key, seed)
    play(conductor, pick=pick)
    return result_of(conductor)


@given(st.randoms(use_true_random=False))
def test_random_numbers_do_not_depend_on_the_order_of_replies(random: Random) -> None:
    assert drawn(pick=random.randrange) == drawn()


def test_random_numbers_belong_to_seed_trial_and_strand() -> None:
    before, children, after = drawn()
    numbers = [before, after, *(number for child in children for number in child)]
    assert len(set(numbers)) == len(numbers)
    assert drawn(seed=1)[0] != before != drawn(key="other")[0]


def test_random_numbers_are_pinned() -> None:
    """A replay in a later version has to draw the same."""
    assert [drawn()[0], drawn()[1][1][0]] == PINNED


PINNED = [0.04025313125597474, 0.018628396204117936]


# Foreign awaits.


async def sleeping(trial: Trial) -> None:
    await asyncio.sleep(0.01)


async def yielding(trial: Trial) -> None:
    await asyncio.sleep(0)


async def waiting(trial: Trial) -> None:
    await asyncio.get_running_loop().create_future()


async def gathering(trial: Trial) -> None:
    futures = [asyncio.get_running_loop().create_future() for _ in range(2)]
    await asyncio.gather(*futures)


FOREIGN = pytest.mark.parametrize("awaits", [sleeping, yielding, waiting, gathering])


async def alone(trial: Trial, awaits: Body) -> Any:
    return await awaits(trial)


async def swallowed(trial: Trial, awaits: Body) -> Any:
    try:
        await awaits(trial)
    except Exception:  # noqa: BLE001  what these tests are about
        return "all is well"


async def swallowed_then_asks(trial: Trial, awaits: Body) -> Any:
    try:
        await awaits(trial)
    except Exception:  # noqa: BLE001  what these tests are about
        return await say(trial, "on we go")


async def answered(trial: Trial, awaits: Body) -> Any:
    try:
        await awaits(trial)
    except Exception as error:
        raise KeyError("mine") from error


async def in_a_child(trial: Trial, awaits: Body) -> Any:
    return await together(say(trial, "a"), swallowed(trial, awaits), say(trial, "b"))


async def in_a_child_swallowed_above(trial: Trial, awaits: Body) -> Any:
    try:
        return await in_a_child(trial, awaits)
    except BaseException:  # noqa: BLE001  what these tests are about
        return "all is well"


async def later(trial: Trial, awaits: Body) -> Any:
    await say(trial, "a")
    return await awaits(trial)


WAYS: list[Callable[[Trial, Body], Awaitable[Any]]] = [
    alone,
    swallowed,
    swallowed_then_asks,
    answered,
    in_a_child,
    in_a_child_swallowed_above,
    later,
]


@FOREIGN
@pytest.mark.parametrize("way", WAYS)
def test_nothing_else_may_be_awaited(awaits: Body, way: Callable[[Trial, Body], Awaitable[Any]]) -> None:
    async def body(trial: Trial) -> Any:
        return await way(trial, awaits)

    async def main() -> Conductor:
        conductor = conduct(body, key="the seventh")
        waits = conductor.start()
        while waits and not conductor.ended:
            for wait in waits:
                conductor.settle(wait, echo(wait))
            waits = conductor.advance()
        return conductor

    conductor = asyncio.run(main())
    assert conductor.ended
    assert conductor.result is None
    with pytest.raises(ForeignAwait, match=r"'the seventh'.*@function"):
        result_of(conductor)


def test_settlements_after_the_end_do_nothing() -> None:
    async def body(trial: Trial) -> Any:
        await together(say(trial, "a"), later(trial, yielding))

    conductor = conduct(body)
    first, second = conductor.start()
    conductor.settle(second, Reply("x"))
    conductor.advance()
    assert isinstance(conductor.error, ForeignAwait)
    conductor.settle(first, Reply("x"))
    assert conductor.advance() == []
    assert isinstance(conductor.error, ForeignAwait)


# Closing.


def test_closing_closes_every_strand() -> None:
    closed: list[str] = []
    strands: list[Coroutine[Any, Any, Any]] = []

    async def held(trial: Trial, name: str) -> None:
        try:
            await trial.ask("m", name)
        finally:
            closed.append(name)

    async def body(trial: Trial) -> None:
        strands.extend([held(trial, "a"), held(trial, "b")])
        await together(*strands)

    conductor = conduct(body)
    waits = conductor.start()
    conductor.close()
    assert len(waits) == 2
    assert sorted(closed) == ["a", "b"]
    assert [inspect.getcoroutinestate(strand) for strand in strands] == ["CORO_CLOSED"] * 2


def test_children_that_never_started_are_closed_in_silence() -> None:
    async def body(trial: Trial) -> None:
        await together(yielding(trial), say(trial, "never"), say(trial, "started"))

    conductor = conduct(body)
    assert conductor.start() == []
    assert isinstance(conductor.error, ForeignAwait)
    del conductor
    gc.collect()


def test_closing_twice_and_closing_a_program_that_asks_on_its_way_out() -> None:
    async def body(trial: Trial) -> None:
        try:
            await say(trial, "a")
        finally:
            await say(trial, "b")

    conductor = conduct(body)
    conductor.start()
    conductor.close()
    conductor.close()
    assert not conductor.ended
