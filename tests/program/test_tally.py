"""What a part of a program asks is counted: all of it, once, in whatever order replies come."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import AskFailed, Fault, FaultKind, ForeignAwait, Program, Reply, Trial, Usage, together
from groundswell.program.conductor import Conductor
from groundswell.program.request import Chat, Settlement
from groundswell.program.tally import Asked, Tally, followed, tallied

Tree = list[Any]
"""Of what is asked one after the other: names of models; and lists, which are asked side by side."""
NAMES = st.sampled_from(["one", "two"])
TREES = st.recursive(NAMES, lambda inner: st.lists(st.lists(inner, max_size=3), max_size=3), max_leaves=12)


async def asked(trial: Trial, tree: Tree) -> int:
    count = 0
    for each in tree:
        if isinstance(each, str):
            count += len((await trial.ask(each, "?")).text)
        else:
            count += sum(await together(*(asked(trial, list(child)) for child in each)))
    return count


def names(tree: Any) -> list[str]:
    return [tree] if isinstance(tree, str) else [name for each in tree for name in names(each)]


def conducted(body: Coroutine[Any, Any, Any], order: Random, answer: Any = None) -> Conductor:
    async def run(trial: Trial, spec: None) -> Any:
        return await body

    conductor = Conductor(Program("tests/tally", 1, run), None, "k", 0)
    waits = conductor.start()
    while waits:
        wait = waits.pop(order.randrange(len(waits)))
        assert isinstance(wait.request, Chat)
        settlement: Settlement = answer or Reply("!", Usage(3, len(wait.request.model)))
        conductor.settle(wait, settlement)
        waits += conductor.advance()
    assert conductor.ended
    return conductor


@given(st.lists(TREES, max_size=4), st.integers())
def test_everything_is_counted_once_whoever_answers_first(tree: Tree, seed: int) -> None:
    trial = Trial("k", 0)
    value, tally = conducted(tallied(asked(trial, tree)), Random(seed)).result
    met = names(tree)
    assert value == len(met)
    assert tally == {name: Asked(met.count(name), 3 * met.count(name), 3 * met.count(name)) for name in set(met)}


@given(st.lists(TREES, max_size=4), st.integers())
def test_turns_are_in_the_order_of_the_program(tree: Tree, seed: int) -> None:
    _, turns = conducted(followed(asked(Trial("k", 0), tree)), Random(seed)).result
    assert [each.request.model for each in turns] == names(tree)
    assert {each.result.text for each in turns} <= {"!"}


@pytest.mark.parametrize(("most", "fails"), [(3, False), (2, True)])
def test_a_part_may_make_so_many_requests(most: int, fails: bool) -> None:
    found = conducted(followed(asked(Trial("k", 0), ["one", [["two"], ["one"]]]), most), Random(0))
    assert (found.error is not None) == fails
    if fails:
        assert str(found.error) == "the program made more than 2 requests and calls; does it end?"


@given(st.lists(TREES, max_size=4))
def test_paths_are_those_that_there_would_be_without(tree: Tree) -> None:
    def paths(body: Coroutine[Any, Any, Any]) -> list[str]:
        async def run(trial: Trial, spec: None) -> Any:
            return await body

        conductor = Conductor(Program("tests/paths", 1, run), None, "k", 0)
        found, waits = list[str](), conductor.start()
        while waits:
            found.append(waits[0].path)
            conductor.settle(waits.pop(0), Reply("!"))
            waits += conductor.advance()
        return found

    trial = Trial("k", 0)
    assert paths(tallied(asked(trial, tree))) == paths(asked(trial, tree))


def test_what_fails_is_the_parts_own_and_counts_nothing() -> None:
    async def patient(trial: Trial) -> str:
        try:
            return (await trial.ask("one", "?")).text
        except AskFailed:
            return "nobody"

    bad = Fault(FaultKind.BAD_REQUEST, "no")
    assert conducted(tallied(patient(Trial("k", 0))), Random(0), bad).result == ("nobody", {})
    assert isinstance(conducted(tallied(asked(Trial("k", 0), ["one"])), Random(0), bad).error, AskFailed)


def test_foreign_things_are_refused_as_ever() -> None:
    class Foreign:
        def __await__(self) -> Any:
            yield "foreign"

    async def part() -> Tally:
        await Foreign()
        return {}

    assert isinstance(conducted(tallied(part()), Random(0)).error, ForeignAwait)


def test_a_part_that_is_given_up_is_closed() -> None:
    ended = []

    async def part(trial: Trial) -> None:
        try:
            await trial.ask("one", "?")
        finally:
            ended.append("closed")

    async def run(trial: Trial, spec: None) -> Any:
        return await tallied(part(trial))

    conductor = Conductor(Program("tests/closing", 1, run), None, "k", 0)
    assert len(conductor.start()) == 1
    conductor.close()
    assert ended == ["closed"]


@pytest.mark.parametrize("error", [ValueError, KeyError])
def test_what_a_part_raises_is_raised(error: type[Exception]) -> None:
    async def part() -> None:
        raise error("so")

    assert isinstance(conducted(tallied(part()), Random(0)).error, error)
