"""A reply in pieces is the same reply as one that comes whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.program.request import Chat, Fault, FaultKind, Reply, ToolCall, Usage, user
from groundswell.providers.openai import OPENAI
from groundswell.transports.llama import StreamedReply

CHAT = Chat("m", (user("hi"),), logprobs=1)
JSON = {"content-type": "application/json"}
USAGE = {"choices": [], "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


def delta(finish: str | None = None, logprobs: Any = None, index: int = 0, **said: Any) -> dict[str, Any]:
    more = {} if logprobs is None else {"logprobs": {"content": logprobs}}
    return {"choices": [{"index": index, "finish_reason": finish, "delta": said, **more}], "model": "m"}


def read(*chunks: dict[str, Any]) -> Any:
    pieces = StreamedReply()
    for chunk in chunks:
        pieces.add(chunk)
    status, body = pieces.whole()
    return OPENAI.decode(CHAT, status, JSON, body, 0.0)


@given(st.lists(st.text(), max_size=8))
def test_texts_are_joined(texts: list[str]) -> None:
    found = read(delta(role="assistant", content=None), *[delta(content=text) for text in texts], delta("stop"), USAGE)
    assert found == Reply("".join(texts), Usage(3, 2), "stop", "m")


def test_thoughts_and_logprobs_come_along() -> None:
    found = read(
        delta(reasoning_content="h"),
        delta(reasoning_content="m"),
        delta(content="a", logprobs=[1]),
        delta(content="b", logprobs=[2, 3]),
        delta("length"),
    )
    assert (found.text, found.reasoning, found.logprobs, found.finish) == ("ab", "hm", [1, 2, 3], "length")


def test_tool_calls_are_put_together() -> None:
    found = read(
        delta(tool_calls=[{"index": 0, "id": "x", "type": "function", "function": {"name": "look", "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a":'}}]),
        delta(tool_calls=[{"index": 1, "id": "y", "function": {"name": "see", "arguments": "{}"}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
        delta("tool_calls"),
    )
    assert found.tool_calls == (ToolCall("x", "look", '{"a":1}'), ToolCall("y", "see", "{}"))


def test_only_the_first_of_several_choices_counts() -> None:
    assert read(delta(content="a"), delta(index=1, content="b"), delta("stop")).text == "a"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 400, "message": "no", "type": "invalid_request_error"}, FaultKind.BAD_REQUEST),
        ({"code": 400, "message": "long", "type": "exceed_context_size_error"}, FaultKind.CONTEXT),
        ({"code": 500, "message": "broken", "type": "server_error"}, FaultKind.SERVER),
        ({"message": "no code"}, FaultKind.SERVER),
        ("only words", FaultKind.SERVER),
    ],
    ids=["bad request", "context", "server", "no code", "words"],
)
def test_an_error_ends_it(error: Any, kind: FaultKind) -> None:
    found = read(delta(content="a"), {"error": error})
    assert isinstance(found, Fault)
    assert found.kind is kind


@pytest.mark.parametrize("chunks", [[], [delta(content="a")]], ids=["nothing", "no end"])
def test_a_reply_without_an_end_is_garbled(chunks: list[dict[str, Any]]) -> None:
    found = read(*chunks)
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.GARBLED


def test_the_whole_is_json() -> None:
    pieces = StreamedReply()
    pieces.add(delta("stop", content="a"))
    assert msgspec.json.decode(pieces.whole()[1])["object"] == "chat.completion"
