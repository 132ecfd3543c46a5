"""Requests and settlements as data: fingerprints, and the way through JSON and back."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import (
    Chat,
    Embed,
    Embedding,
    Fault,
    FaultKind,
    Image,
    Message,
    Reply,
    Text,
    Tool,
    ToolCall,
    Usage,
    assistant,
    fingerprint,
    system,
    user,
)
from groundswell.program.request import Invoke, Request, Returned, Settlement, decode_settlement, encode_settlement

HELLO = (user("hello"),)
FULL = Chat(
    "m",
    (system("be brief"), user((Text("what is it?"), Image(url="http://x/y.png"))), assistant("a cat")),
    max_tokens=5,
    temperature=0.5,
    top_p=0.9,
    seed=3,
    stop=("END",),
    schema={"type": "object", "required": ["a"]},
    tools=(Tool("look", "looks it up", {"type": "object"}),),
    tool_choice="auto",
    reasoning="low",
    logprobs=2,
    extra={"user": "u", "top_k": 4},
)

GOLDEN: list[tuple[str, Request | Invoke, str]] = [
    ("shortest", Chat("m", HELLO), "cd163797be76aa505037dd346db970da"),
    ("full", FULL, "baf7ddf29028c5576518a50885fb1302"),
    ("embedding", Embed("e", ("a", "b"), 8), "294da4a1d7999d672feef12c8a289d8f"),
    ("call", Invoke("f", (1, "a"), {"b": [2]}), "6eed9d28e65d1312e01426ad33d69073"),
]


@pytest.mark.parametrize(("request_", "expected"), [pytest.param(r, e, id=i) for i, r, e in GOLDEN])
def test_fingerprints_are_the_same_in_every_version(request_: Request | Invoke, expected: str) -> None:
    """A journal is found by these; a changed one would make every stored run unreadable."""
    assert fingerprint(request_).hex() == expected


CHANGES: list[dict[str, Any]] = [
    {"model": "n"},
    {"messages": HELLO},
    {"messages": FULL.messages[:2]},
    {"max_tokens": 6},
    {"max_tokens": None},
    {"temperature": 0.6},
    {"top_p": 0.8},
    {"seed": 4},
    {"stop": ()},
    {"stop": ("E", "ND")},
    {"schema": {"type": "object"}},
    {"tools": ()},
    {"tool_choice": None},
    {"reasoning": "high"},
    {"logprobs": None},
    {"extra": {"user": "u", "top_k": 5}},
    {"extra": {"user": "u"}},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_any_change_of_a_request_changes_its_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint(msgspec.structs.replace(FULL, **change)) != fingerprint(FULL)


def test_every_field_is_among_the_changes() -> None:
    assert {name for change in CHANGES for name in change} == set(Chat.__struct_fields__)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(Chat("m", (user("x"),)), Chat("m", (system("x"),)), id="role"),
        pytest.param(Chat("m", (user("x"),)), Chat("m", (user((Text("x"),)),)), id="parts"),
        pytest.param(Chat("m", (user("a"), user("b"))), Chat("m", (user("ab"),)), id="split"),
        pytest.param(Chat("m", (user("a"),)), Embed("m", ("a",)), id="kind"),
        pytest.param(Embed("m", ("a", "b")), Embed("m", ("b", "a")), id="order of texts"),
        pytest.param(Embed("m", ("a",)), Embed("m", ("a",), 3), id="dimensions"),
        pytest.param(Invoke("f", (1,)), Invoke("g", (1,)), id="function"),
        pytest.param(Invoke("f", (1,)), Invoke("f", (1, 1)), id="arguments"),
        pytest.param(Invoke("f", ("a",)), Invoke("f", (), {"a": "a"}), id="options"),
        pytest.param(
            Chat("m", (Message("tool", "x", tool_call_id="1"),)),
            Chat("m", (Message("tool", "x", tool_call_id="2"),)),
            id="tool call id",
        ),
        pytest.param(Chat("m", (), extra={}), Chat("m", ()), id="empty extra"),
    ],
)
def test_different_requests_have_different_fingerprints(one: Request | Invoke, other: Request | Invoke) -> None:
    assert fingerprint(one) != fingerprint(other)


NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=5)


def reordered(data: Any) -> Any:
    """The same data, every mapping the other way round."""
    if isinstance(data, dict):
        return {key: reordered(data[key]) for key in reversed(data)}
    return [reordered(item) for item in data] if isinstance(data, list) else data


@given(OBJECTS, OBJECTS)
def test_the_order_of_mappings_does_not_matter(extra: dict[str, Any], schema: dict[str, Any]) -> None:
    one = Chat("m", HELLO, extra=extra, schema=schema)
    other = Chat("m", HELLO, extra=reordered(extra), schema=reordered(schema))
    assert fingerprint(one) == fingerprint(other)


CHATS = st.builds(
    Chat,
    st.sampled_from("mn"),
    st.lists(st.builds(user, st.text(max_size=3)), max_size=2).map(tuple),
    max_tokens=st.none() | st.integers(1, 3),
    temperature=st.none() | st.sampled_from([0.0, 1.0]),
    stop=st.sampled_from([(), ("a",), ("a", "b")]),
    extra=st.none() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 1)),
)


@given(CHATS, CHATS)
def test_fingerprints_are_equal_exactly_when_requests_are(one: Chat, other: Chat) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


def test_a_whole_number_of_temperature_is_the_same_as_its_float() -> None:
    assert fingerprint(Chat("m", HELLO, temperature=0)) == fingerprint(Chat("m", HELLO, temperature=0.0))
    assert Chat("m", HELLO, temperature=0) == Chat("m", HELLO, temperature=0.0)
    assert fingerprint(Chat("m", HELLO, top_p=1)) == fingerprint(Chat("m", HELLO, top_p=1.0))


USAGES = st.builds(Usage, *[st.integers(0, 10**6)] * 4)
CALLS = st.lists(st.builds(ToolCall, st.text(), st.text(), st.text()), max_size=2).map(tuple)
WORDS = st.none() | st.text(max_size=5)
WIDTHS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(st.floats(width=32, allow_nan=False), min_size=width, max_size=width), max_size=3)
)
SETTLEMENTS: st.SearchStrategy[Settlement] = st.one_of(
    st.builds(Reply, st.text(), USAGES, st.text(), WORDS, CALLS, WORDS, JSON),
    st.builds(Embedding.of, WIDTHS, USAGES),
    st.builds(Returned, JSON),
    st.builds(Fault, st.sampled_from(FaultKind), st.text(), st.none() | st.floats(0, 1e6), st.integers(1, 9)),
)


@given(SETTLEMENTS)
def test_settlements_survive_the_journal(settlement: Settlement) -> None:
    text = encode_settlement(settlement)
    again = decode_settlement(text)
    assert again == settlement
    assert type(again) is type(settlement)
    assert encode_settlement(again) == text


@given(WIDTHS)
def test_embeddings_keep_their_vectors(vectors: list[list[float]]) -> None:
    assert Embedding.of(vectors).vectors == vectors


def test_embeddings_are_packed_as_32_bit_floats() -> None:
    assert Embedding.of([[0.1, 1.0]]).packed == struct.pack("=ff", 0.1, 1.0)
    assert Embedding.of([[0.1]]).vectors[0] == pytest.approx([0.1])


def test_the_vectors_of_an_embedding_have_one_width() -> None:
    with pytest.raises(ValueError, match="same length"):
        Embedding.of([[1.0], [1.0, 2.0]])


def test_no_vectors_are_no_vectors() -> None:
    assert Embedding.of([]).vectors == []
