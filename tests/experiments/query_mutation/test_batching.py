"""The batch functions: in order, concurrent, with fallbacks that are flagged."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groundswell
from groundswell import Chat, Embed, Fault, FaultKind, Reply, Request, RunStopped, SettingsError, TrialMissing
from groundswell.emulator.server import running
from groundswell.experiments.query_mutation.batching import (
    Texts,
    batch_encode_queries,
    batch_mutate_queries,
    batch_query_target_model,
    encode_queries,
    mutate_queries,
    query_target_model,
)
from groundswell.experiments.query_mutation.guards import WITHHELD, Guard
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import DEFAULT_REFUSAL
from groundswell.experiments.query_mutation.task import goals
from groundswell.program.request import Embedding
from tests.experiments.query_mutation.cast import NO_GOOD, Cast, text_of

QUERIES = list(goals().queries)
GUARD = Guard("g", "Keep {secret}.", 0.25)
OWN = "tests.experiments.query_mutation.own_mutators"


def unless(word: str, fault: Fault = NO_GOOD) -> Callable[[Request], Reply | Fault]:
    """Repeats the last message in capitals, but fails where a word is in it."""

    def answer(request: Request) -> Reply | Fault:
        assert isinstance(request, Chat)
        said = str(request.messages[-1].content)
        return fault if word in said else Reply(said.upper())

    return answer


def test_with_nothing_given_the_emulator_answers() -> None:
    assert batch_encode_queries(QUERIES).shape == (len(QUERIES), 64)
    found = batch_mutate_queries(QUERIES, "politeness")
    assert (len(found), found.failed) == (len(QUERIES), {})
    assert all(new != old for new, old in zip(found, QUERIES, strict=True))
    assert len(batch_query_target_model(QUERIES)) == len(QUERIES)


def test_embeddings_are_in_order_and_equal_queries_are_asked_for_once() -> None:
    cast = Cast()
    with Session(script=cast) as session:
        found = batch_encode_queries(["a cat", "a dog", "a cat", "a dog", "a cat"], dimensions=16, session=session)
    assert [each.texts for each in cast.embeds] == [("a cat", "a dog")]
    assert found.dtype == np.float32
    assert found.shape == (5, 16)
    alone = [batch_encode_queries([text], dimensions=16)[0] for text in ("a cat", "a dog")]
    assert np.array_equal(found, np.stack([alone[at] for at in (0, 1, 0, 1, 0)]))


def test_very_many_queries_are_embedded_in_several_asks() -> None:
    cast = Cast()
    texts = [f"query {number % 700}" for number in range(3000)]
    with Session(script=cast) as session:
        found = batch_encode_queries(texts, dimensions=4, session=session)
    assert [len(each.texts) for each in cast.embeds] == [256, 256, 188]
    assert np.array_equal(found[:700], found[700:1400])
    assert np.array_equal(found[650], batch_encode_queries(["query 650"], dimensions=4)[0])


def test_more_texts_than_a_provider_takes_are_spread_over_its_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as one, running() as other:
        monkeypatch.setenv("OPENAI_API_KEY", "planted")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{one.url}/v1,{other.url}/v1")
        texts = [f"query {number}" for number in range(2500)]
        found = batch_encode_queries(texts, model="openai/text-embedding-3-small", dimensions=4)
        calls = [each.ledger()["totals"]["requests"] for each in (one, other)]
    assert found.shape == (2500, 4)
    assert min(calls) >= 1
    assert sum(calls) < 8


def test_no_queries_no_asks() -> None:
    cast = Cast()
    with Session(script=cast) as session:
        assert batch_encode_queries([], session=session).shape == (0, 64)
        assert batch_mutate_queries([], "indirect", session=session) == []
        assert batch_mutate_queries([], [], session=session) == []
        assert batch_query_target_model([], session=session) == []
    assert cast.asked == []


def test_an_embedding_that_fails_raises() -> None:
    with Session(script=Cast(vectors=NO_GOOD)) as session, pytest.raises(TrialMissing, match="no good"):
        batch_encode_queries(["a"], model="emulated/vectors", session=session)


def test_one_mutator_for_each_query_or_one_for_all() -> None:
    given = ["one.", "two.", "three."]
    assert batch_mutate_queries(given, [f"{OWN}:shout", "noop", f"{OWN}:shout"]) == ["ONE.", "two.", "THREE."]
    assert batch_mutate_queries(tuple(given), f"{OWN}:shout") == ["ONE.", "TWO.", "THREE."]


def test_a_mutation_that_fails_leaves_the_query_and_is_flagged() -> None:
    with Session(script=Cast(reworder=unless("two"))) as session:
        found = batch_mutate_queries(["one", "two", "three"], "indirect", session=session)
    assert found[1] == "two"
    assert "THREE" in found[2]
    assert found.failed == {1: "bad_request: no good"}
    assert repr(found).startswith("Texts([")
    assert repr(found).endswith("failed={1: 'bad_request: no good'})")


@pytest.mark.parametrize(("name", "why"), [("silence", "instead of a query"), ("broken", "IndexError")])
def test_a_mutator_of_ones_own_that_fails(name: str, why: str) -> None:
    found = batch_mutate_queries(["one", "two"], [f"{OWN}:{name}", "noop"])
    assert found == ["one", "two"]
    assert list(found.failed) == [0]
    assert why in found.failed[0]


def test_a_target_that_fails_has_refused_and_is_flagged() -> None:
    with Session(script=Cast(target=unless("b"))) as session:
        found = batch_query_target_model(["a", "b", "c", "b"], model="emulated/target", session=session)
    assert found == ["A", DEFAULT_REFUSAL, "C", DEFAULT_REFUSAL]
    assert found.failed == {1: "bad_request: no good", 3: "bad_request: no good"}


def test_what_stops_a_run_is_raised() -> None:
    wrong_key = Fault(FaultKind.AUTH, "wrong key")
    with Session(script=Cast(target=wrong_key)) as session, pytest.raises(RunStopped, match="wrong key"):
        batch_query_target_model(["a"], model="emulated/target", session=session)


def test_a_target_behind_a_guard() -> None:
    cast = Cast(target=unless("nothing"))
    withholding = Guard("g", "Keep {secret}.", withholds=True)
    with Session(script=cast) as session:
        asked = ["is it lantern", "hello"]
        how: dict[str, Any] = {"model": "emulated/target", "secret": "lantern", "session": session}
        assert batch_query_target_model(asked, guard=GUARD, **how) == ["IS IT LANTERN", "HELLO"]
        assert batch_query_target_model(asked, guard=withholding, **how) == [WITHHELD, "HELLO"]
    assert text_of(cast.chats("target")[0]) == "Keep lantern.\nis it lantern"


def test_the_emulated_target_goes_by_the_strength_of_the_guard() -> None:
    cast = Cast()
    with Session(script=cast) as session:
        batch_query_target_model(["a"], guard=GUARD, secret="lantern", session=session)
        batch_query_target_model(["a"], session=session)
    assert [each.model for each in cast.asked] == ["emulated/guard:0.25:courtesy", "emulated/guard:0.5:courtesy"]


@pytest.mark.parametrize(("most", "meet"), [(2, 2), (None, 8)], ids=["max_workers", "adaptive"])
def test_prompts_are_asked_at_once_as_many_as_workers(most: int | None, meet: int) -> None:
    """Nobody is answered until so many have been asked: with fewer at a time, nothing would ever come."""
    flying, peak, gates = [0], [0], list[asyncio.Event]()

    async def answer(request: Request) -> Reply:
        if not gates:
            gates.append(asyncio.Event())
        flying[0] += 1
        peak[0] = max(peak[0], flying[0])
        if flying[0] == meet:
            gates[0].set()
        async with asyncio.timeout(20):
            await gates[0].wait()
        flying[0] -= 1
        return Reply("ok")

    with Session(script=Cast(target=answer), max_workers=most) as session:
        found = batch_query_target_model([str(n) for n in range(8)], model="emulated/target", session=session)
    assert found == ["ok"] * 8
    assert peak[0] == meet


def test_a_named_run_is_gone_on_with(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    first = batch_query_target_model(QUERIES, store=store, name="mine", max_workers=8)
    again = batch_query_target_model(QUERIES, store=store, name="mine")
    assert first == again
    with groundswell.open_sync(store) as engine:
        assert engine.stored("mine").summary.trials.planned == len(QUERIES)


def test_several_calls_may_share_a_session_and_repeat_themselves() -> None:
    cast = Cast(reworder=unless("nothing"))
    with Session(script=cast) as session:
        one = batch_mutate_queries(["a", "a"], "indirect", session=session)
        assert batch_mutate_queries(["a", "a"], "indirect", session=session) == one


def test_in_a_run_they_are_awaited(tmp_path: Path) -> None:
    async def work() -> tuple[Any, Texts, Texts]:
        async with groundswell.open(tmp_path / "runs.db") as engine, engine.run() as run:
            return (
                await encode_queries(run, ["a"]),
                await mutate_queries(run, ["Say it."], "politeness"),
                await query_target_model(run, ["Say it."]),
            )

    encoded, mutated, answered = asyncio.run(work())
    assert encoded.shape == (1, 64)
    assert mutated != ["Say it."]
    assert len(answered) == 1


def test_texts_are_a_list_and_remember_what_failed() -> None:
    texts = Texts(["a", "b"], {1: "why"})
    assert texts == ["a", "b"]
    again = pickle.loads(pickle.dumps(texts))
    assert (again, again.failed) == (texts, {1: "why"})
    assert repr(Texts(["a"])) == "['a']"


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "one text": (lambda: batch_encode_queries("abc"), "queries: must be a list of strings, not a string"),
    "no text": (lambda: batch_encode_queries(["a", 3]), "queries[1]: must be a string, not int"),  # type: ignore[list-item]
    "dimensions": (lambda: batch_encode_queries(["a"], dimensions=0), "dimensions 0: must be at least 1"),
    "one query": (lambda: batch_mutate_queries("abc", "noop"), "queries: must be a list of strings, not a string"),
    "too few": (
        lambda: batch_mutate_queries(["a", "b"], ["noop"]),
        "mutations: got 1 for 2 queries; give one per query, or one name for all",
    ),
    "unknown": (lambda: batch_mutate_queries(["a"], "nope"), "mutations: there is no 'nope'; there are noop,"),
    "unknown for nobody": (lambda: batch_mutate_queries([], "nope"), "mutations: there is no 'nope'"),
    "one prompt": (lambda: batch_query_target_model("abc"), "prompts: must be a list of strings, not a string"),
    "no tokens": (lambda: batch_query_target_model(["a"], max_tokens=0), "max_tokens 0: must be at least 1"),
    "guard alone": (lambda: batch_query_target_model(["a"], guard=GUARD), "guard and secret: give both or neither"),
    "secret alone": (lambda: batch_query_target_model(["a"], secret="x"), "guard and secret: give both or neither"),
    "workers": (lambda: batch_encode_queries(["a"], max_workers=0), "max_workers 0: must be at least 1"),
    "name alone": (lambda: batch_encode_queries(["a"], name="x"), "name: a named run needs a store; give store too"),
}


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        call()
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("field", ["max_workers", "store", "name"])
def test_a_session_has_its_own_settings(field: str) -> None:
    own: dict[str, Any] = {field: 8 if field == "max_workers" else "x"}
    with Session() as session, pytest.raises(SettingsError, match=f"{field}: the session already has one; omit"):
        batch_encode_queries(["a"], session=session, **own)


def test_vectors_of_any_width_are_taken_as_they_come() -> None:
    def vectors(request: Request) -> Embedding:
        assert isinstance(request, Embed)
        return Embedding.of([[float(len(text)), 0.5] for text in request.texts])

    with Session(script=Cast(vectors=vectors)) as session:
        found = batch_encode_queries(["aa", "b", "aa"], model="emulated/vectors", session=session)
    assert found.tolist() == [[2.0, 0.5], [1.0, 0.5], [2.0, 0.5]]
