"""A step: every part may fail alone, and the target and the embedding do not wait for each other."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import Chat, Embed, Reply, Request
from groundswell.emulator import in_process
from groundswell.experiments.query_mutation.guards import WITHHELD, Guard
from groundswell.experiments.query_mutation.rewards import Judged, reward
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import (
    DEFAULT_REFUSAL,
    MOST_CHARACTERS,
    MOST_TEXTS,
    Encode,
    Step,
    Stepped,
    encode,
    parts,
    step,
)
from groundswell.experiments.query_mutation.task import EMBEDDER, Task
from groundswell.program.request import Embedding
from groundswell.program.trial import Trial
from tests.experiments.query_mutation import own_mutators
from tests.experiments.query_mutation.cast import NO_GOOD, Cast

GUARD = Guard("g", "Keep {secret}.")
TASK = Task(target="emulated/target", embedder="emulated/vectors", reward="judge", dimensions=2)
VECTOR = Embedding.of([[3.0, 4.0]])
PARTS: dict[str, Any] = {"reworder": "Please?", "target": "It is lantern.", "vectors": VECTOR, "judge": "5"}


def stepped(task: Task = TASK, mutator: str = "politeness", guard: Guard = GUARD, **changed: Any) -> Stepped:
    """What comes of a step, some of whose parts are others."""
    with Session(script=Cast(**{**PARTS, **changed})) as session:
        return session.submit(step, Step.of(task, mutator, "Say it.", "Say it.", "lantern", guard)).unwrap()


def test_a_step_rewords_asks_and_scores() -> None:
    done = stepped()
    assert done == Stepped("Please?", "It is lantern.", 0.5, False, VECTOR.packed)
    assert done.usable


@pytest.mark.parametrize(
    ("part", "failing", "expected"),
    [
        ("mutation", "reworder", {"query": "Say it."}),
        ("target", "target", {"response": DEFAULT_REFUSAL, "score": 0.0, "refused": True}),
        ("reward", "judge", {"score": 0.0}),
        ("embedding", "vectors", {"embedding": b""}),
    ],
    ids=["mutation", "target", "reward", "embedding"],
)
def test_a_part_that_fails_falls_back_and_is_flagged(part: str, failing: str, expected: dict[str, Any]) -> None:
    changed: dict[str, Any] = {failing: NO_GOOD}
    done = stepped(**changed)
    assert done == msgspec.structs.replace(stepped(), **expected, failed={part: "bad_request: no good"})
    assert not done.usable


@pytest.mark.parametrize(
    ("part", "changed"),
    [("reward", {"judge": "No idea."}), ("mutation", {"reworder": "  "}), ("mutation", {"reworder": '""'})],
    ids=["a judge without a number", "an empty rewording", "empty quotes"],
)
def test_what_cannot_be_read_has_failed(part: str, changed: dict[str, Any]) -> None:
    assert list(stepped(**changed).failed) == [part]


@pytest.mark.parametrize("numbers", [[1.0, float("nan")], [float("inf"), 0.0], []], ids=str)
def test_an_embedding_that_would_spoil_what_is_learnt_has_failed(numbers: list[float]) -> None:
    done = stepped(vectors=Embedding.of([numbers]))
    assert (list(done.failed), done.embedding) == (["embedding"], b"")


def test_a_mutator_of_ones_own_that_makes_nothing_has_failed() -> None:
    done = stepped(mutator=f"{own_mutators.__name__}:silence")
    assert (done.query, list(done.failed)) == ("Say it.", ["mutation"])


def test_everything_may_fail_at_once() -> None:
    done = stepped(reworder=NO_GOOD, target=NO_GOOD, vectors=NO_GOOD)
    assert list(done.failed) == ["embedding", "mutation", "target"]
    assert done.response == DEFAULT_REFUSAL


def test_what_a_target_that_failed_would_say_is_not_judged() -> None:
    cast = Cast(**{**PARTS, "target": NO_GOOD})
    with Session(script=cast) as session:
        session.submit(step, Step.of(TASK, "noop", "Say it.", "Say it.", "lantern", GUARD))
    assert cast.chats("judge") == []


def test_a_filter_stands_between_the_target_and_the_reward() -> None:
    task = msgspec.structs.replace(TASK, reward="leak")
    assert stepped(task).score == 1.0
    held = stepped(task, guard=Guard("g", "Keep {secret}.", withholds=True))
    assert (held.response, held.score, held.refused) == (WITHHELD, 0.0, True)


def test_a_secret_that_the_query_named_is_no_leak() -> None:
    task = msgspec.structs.replace(TASK, reward="leak")
    assert stepped(task, reworder="Is it lantern?").score == 0.0


@pytest.mark.parametrize("slow", [Chat, Embed], ids=["target last", "embedding last"])
def test_the_target_and_the_embedding_do_not_wait_for_each_other(slow: type[Request]) -> None:
    """The slow one is answered only when the other has been asked; if either waited for it, nothing would come."""
    other_asked: list[asyncio.Event] = []

    async def answer(request: Request) -> Reply | Embedding:
        if not other_asked:
            other_asked.append(asyncio.Event())
        if isinstance(request, slow):
            async with asyncio.timeout(20):
                await other_asked[0].wait()
        else:
            other_asked[0].set()
        return Reply("It is lantern.") if isinstance(request, Chat) else VECTOR

    done = stepped(msgspec.structs.replace(TASK, reward="leak"), "noop", target=answer, vectors=answer)
    assert (done.score, done.embedding) == (1.0, VECTOR.packed)


def test_scoring_begins_while_the_embedding_is_still_waited_for() -> None:
    judged: list[asyncio.Event] = []

    def gate() -> asyncio.Event:
        if not judged:
            judged.append(asyncio.Event())
        return judged[0]

    async def judge(request: Request) -> Reply:
        gate().set()
        return Reply("5")

    async def vectors(request: Request) -> Embedding:
        async with asyncio.timeout(20):
            await gate().wait()
        return VECTOR

    assert stepped(judge=judge, vectors=vectors).usable


TEXTS = st.lists(st.sampled_from(["", "a", "b" * 1000, "c" * (MOST_CHARACTERS // 2), "d" * (MOST_CHARACTERS + 1)]))


@given(TEXTS | st.integers(0, 1200).map(lambda count: ["x"] * count))
def test_texts_are_split_in_order_into_what_goes_into_an_ask(texts: list[str]) -> None:
    found = list(parts(texts))
    assert [text for part in found for text in part] == texts
    for part in found:
        assert 1 <= len(part) <= MOST_TEXTS
        assert len(part) == 1 or sum(map(len, part)) <= MOST_CHARACTERS


def test_many_texts_are_embedded_in_few_asks() -> None:
    cast = Cast()
    texts = tuple(f"query {number}" for number in range(600))
    with Session(script=cast) as session:
        found = session.submit(encode, Encode(EMBEDDER, 8, texts)).unwrap()
    assert [len(each.texts) for each in cast.embeds] == [256, 256, 88]
    whole = in_process.answer(Embed(EMBEDDER, texts, 8), 0)
    assert isinstance(whole, Embedding)
    assert (found.width, found.packed) == (8, whole.packed)
    assert np.frombuffer(found.packed, "<f4").reshape(600, 8).shape == (600, 8)


@pytest.mark.parametrize("worth", [1.5, -0.1, float("nan")])
def test_a_reward_off_its_scale_has_failed(worth: float) -> None:
    @reward("tests/off_scale")
    async def off_scale(trial: Trial, spec: Judged) -> float:
        return worth

    done = stepped(msgspec.structs.replace(TASK, reward="tests/off_scale"))
    assert (done.score, list(done.failed)) == (0.0, ["reward"])
