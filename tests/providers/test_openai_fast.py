"""The quick way to read a plain answer gives what the thorough way gives, whatever the answer is."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import Chat, Reply, user
from groundswell.program.request import Fault
from groundswell.providers import openai
from groundswell.providers.bodies import read_object
from groundswell.providers.openai import OPENAI

PLAIN = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-x",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello!", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    },
}
PLACES: list[tuple[str | int, ...]] = [
    ("object",),
    ("type",),
    ("error",),
    ("model",),
    ("choices",),
    ("choices", 0),
    ("choices", 0, "message"),
    ("choices", 0, "message", "content"),
    ("choices", 0, "message", "refusal"),
    ("choices", 0, "message", "tool_calls"),
    ("choices", 0, "message", "reasoning"),
    ("choices", 0, "message", "reasoning_content"),
    ("choices", 0, "finish_reason"),
    ("choices", 0, "logprobs"),
    ("usage",),
    ("usage", "prompt_tokens"),
    ("usage", "completion_tokens"),
    ("usage", "prompt_tokens_details"),
    ("usage", "prompt_tokens_details", "cached_tokens"),
    ("usage", "completion_tokens_details"),
]
CALL = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
ODD: list[Any] = [
    None,
    "",
    "Hello!",
    "stop",
    "length",
    "content_filter",
    "error",
    0,
    -1,
    7,
    2**60,
    1.5,
    True,
    [],
    {},
    CALL,
]
ODDER = [{"content": [{"token": "a"}]}, {"message": "too many", "type": "requests"}, {"cached_tokens": -3}]
VALUES = st.sampled_from([*ODD, *ODDER])
GONE = object()


def changed(body: dict[str, Any], place: tuple[str | int, ...], value: Any) -> None:
    """Put a value somewhere, or take away what is there; where the place itself is gone, nothing happens."""
    at: Any = body
    for step in place[:-1]:
        if not at or not isinstance(at, dict | list) or (isinstance(at, dict) and step not in at):
            return
        at = at[0] if isinstance(at, list) else at[step]
    if isinstance(at, list) and at:
        at[0] = {} if value is GONE else value
    elif isinstance(at, dict):
        at.pop(place[-1], None)
        if value is not GONE:
            at[place[-1]] = value


@given(
    st.lists(st.tuples(st.sampled_from(PLACES), VALUES | st.just(GONE)), max_size=4),
    st.sampled_from(["application/json", "application/json; charset=utf-8", "text/html", "text/plain", None]),
    st.booleans(),
)
def test_both_ways_give_the_same(
    changes: list[tuple[tuple[str | int, ...], Any]], content_type: str | None, wants_logprobs: bool
) -> None:
    body = msgspec.json.decode(msgspec.json.encode(PLAIN))
    for place, value in changes:
        changed(body, place, value if value is GONE else deepcopy(value))  # later changes go into it
    chat = Chat("openai/gpt-x", (user("Hi"),), logprobs=2 if wants_logprobs else None)
    headers = {} if content_type is None else {"content-type": content_type}
    raw = msgspec.json.encode(body)
    data = read_object(200, headers, raw, 0.0)
    thorough = data if isinstance(data, Fault) else openai._reply(chat, data)
    assert OPENAI.decode(chat, 200, headers, raw, 0.0) == thorough


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_plain_answer_goes_the_quick_way(finish: str) -> None:
    body = msgspec.json.decode(msgspec.json.encode(PLAIN))
    body["choices"][0]["finish_reason"] = finish
    plain = openai._plain_reply(
        Chat("x", (user("Hi"),)), {"content-type": "application/json"}, msgspec.json.encode(body)
    )
    assert isinstance(plain, Reply)
    assert (plain.text, plain.finish, plain.usage.cached_tokens, plain.usage.reasoning_tokens) == (
        "Hello!",
        finish,
        4,
        1,
    )
