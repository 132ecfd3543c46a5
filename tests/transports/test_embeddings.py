"""What goes into one call for embeddings, and whose vectors are whose."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.engine.ports import Answered
from groundswell.engine.records import AskId, Item
from groundswell.program.request import Embed, Embedding, Fault, FaultKind, Request, Usage
from groundswell.transports import embeddings
from groundswell.transports.embeddings import (
    MOST_CHARACTERS,
    MOST_TEXTS,
    embed_together,
    group_requests,
    merge_requests,
    split_embedding,
)
from tests.properties import examples

REQUESTS = st.builds(
    Embed,
    st.sampled_from(["a/small", "a/large"]),
    st.lists(st.text(max_size=12), min_size=1, max_size=5).map(tuple),
    st.sampled_from([None, 64]),
)


def items_of(requests: list[Embed]) -> list[Item]:
    return [Item(AskId(number, "0"), request, 0) for number, request in enumerate(requests)]


def texts_of(item: Item) -> tuple[str, ...]:
    assert isinstance(item.request, Embed)
    return item.request.texts


def vector_of(text: str) -> list[float]:
    """A vector by which a text is known again."""
    return [float(sum(map(ord, text)) % 1000), float(len(text))]


def answer(request: Embed, tokens: int = 0) -> Embedding:
    return Embedding.of([vector_of(text) for text in request.texts], Usage(tokens))


@settings(max_examples=examples(60))
@given(st.lists(REQUESTS, max_size=30), st.integers(0, 5))
def test_every_ask_is_in_one_group_of_its_own_kind(requests: list[Embed], calls: int) -> None:
    items = items_of(requests)
    groups = group_requests(items, calls)
    assert Counter(item.ask for group in groups for item in group) == Counter(item.ask for item in items)
    assert all(groups)
    for group in groups:
        assert (
            len({(item.request.model, item.request.dimensions) for item in group if type(item.request) is Embed}) == 1
        )


@settings(max_examples=examples(60))
@given(st.lists(REQUESTS, min_size=1, max_size=30), st.integers(1, 4), st.integers(0, 1000))
def test_every_text_gets_its_vector_and_the_tokens_add_up(requests: list[Embed], calls: int, tokens: int) -> None:
    for group in group_requests(items_of(requests), calls):
        parts = split_embedding(group, answer(merge_requests(group), tokens))
        for item, part in zip(group, parts, strict=True):
            assert part.vectors == [vector_of(text) for text in texts_of(item)]
            assert part.usage.input_tokens >= 0
        assert sum(part.usage.input_tokens for part in parts) == tokens


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 4))
def test_no_call_is_over_the_limits_unless_one_ask_alone_is(sizes: list[int], calls: int) -> None:
    limits = (embeddings.MOST_TEXTS, embeddings.MOST_CHARACTERS)
    embeddings.MOST_TEXTS, embeddings.MOST_CHARACTERS = 6, 20
    try:
        groups = group_requests(items_of([Embed("a/b", ("x" * 5,) * size) for size in sizes]), calls)
    finally:
        embeddings.MOST_TEXTS, embeddings.MOST_CHARACTERS = limits
    for group in groups:
        texts = [text for item in group for text in texts_of(item)]
        assert len(group) == 1 or (len(texts) <= 6 and sum(map(len, texts)) <= 20)


@settings(max_examples=examples(40))
@given(st.integers(1, 300), st.integers(1, 8))
def test_texts_of_one_kind_are_spread_evenly_over_the_calls(count: int, calls: int) -> None:
    groups = group_requests(items_of([Embed("a/b", ("x",))] * count), calls)
    assert len(groups) <= calls
    assert max(map(len, groups)) == -(-count // calls)


@pytest.mark.parametrize(
    ("requests", "calls", "sizes"),
    [
        ([], 2, []),
        ([Embed("a/b", ("x",))] * MOST_TEXTS, 1, [MOST_TEXTS]),
        ([Embed("a/b", ("x",))] * (MOST_TEXTS + 1), 1, [MOST_TEXTS, 1]),
        ([Embed("a/b", ("x" * (MOST_CHARACTERS // 2),))] * 3, 1, [2, 1]),
        ([Embed("a/b", ("x" * (MOST_CHARACTERS + 1),)), Embed("a/b", ("y",))], 1, [1, 1]),
        ([Embed("a/b", ("x",)), Embed("a/c", ("x",)), Embed("a/b", ("y",))], 1, [2, 1]),
        ([Embed("a/b", ("x",)), Embed("a/b", ("x",), 64)], 1, [1, 1]),
        ([Embed("a/b", ("x",)), Embed("a/b", ("x",), extra={"user": "u"})], 1, [1, 1]),
        ([Embed("a/b", ("x",))] * 4, 0, [4]),
    ],
    ids=["none", "just fits", "one too many", "long", "too long alone", "models", "widths", "extras", "none works"],
)
def test_groups(requests: list[Embed], calls: int, sizes: list[int]) -> None:
    assert [len(group) for group in group_requests(items_of(requests), calls)] == sizes


@pytest.mark.parametrize(
    ("texts", "tokens", "shares"),
    [
        ([("aaa",), ("bbb",)], 10, [5, 5]),
        ([("a",), ("b" * 8,)], 11, [2, 9]),
        ([("",), ("",)], 3, [1, 2]),
        ([("a",), ("b",), ("c",)], 0, [0, 0, 0]),
    ],
)
def test_tokens_are_shared_by_length(texts: list[tuple[str, ...]], tokens: int, shares: list[int]) -> None:
    items = items_of([Embed("a/b", each) for each in texts])
    assert [part.usage.input_tokens for part in split_embedding(items, answer(merge_requests(items), tokens))] == shares


def test_an_ask_for_no_texts_gets_no_vectors() -> None:
    items = items_of([Embed("a/b", ("x",)), Embed("a/b", ()), Embed("a/b", ("y",))])
    assert [part.vectors for part in split_embedding(items, answer(merge_requests(items)))] == [
        [vector_of("x")],
        [],
        [vector_of("y")],
    ]


def settled(texts: list[str], bad: set[str], kind: FaultKind) -> tuple[list[bool], list[int]]:
    """Which of the asks fail, and how many texts every call had, where a call with a bad text fails."""
    calls: list[int] = []

    async def ask(request: Request) -> Answered:
        assert isinstance(request, Embed)
        calls.append(len(request.texts))
        return (Fault(kind, "no"), ()) if bad & set(request.texts) else (answer(request), ())

    found = asyncio.run(embed_together(items_of([Embed("a/b", (text,)) for text in texts]), ask))
    assert [one.ask.trial for one in found] == list(range(len(texts)))
    return [isinstance(one.settlement, Fault) for one in found], calls


@settings(max_examples=examples(40))
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=20), st.sets(st.sampled_from("abcd")))
def test_only_what_is_to_blame_fails(texts: list[str], bad: set[str]) -> None:
    assert settled(texts, bad, FaultKind.CONTEXT)[0] == [text in bad for text in texts]


def test_a_failure_that_is_nobodys_is_everybodys_and_is_not_looked_into() -> None:
    assert settled(["a", "b", "c"], {"b"}, FaultKind.SERVER) == ([True, True, True], [3])
