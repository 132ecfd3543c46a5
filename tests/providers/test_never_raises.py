"""Whatever a server sends, and however it is broken, decoding gives a reply, an embedding or a fault."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.emulator.wire import About
from groundswell.emulator.wire import anthropic as anthropic_wire
from groundswell.emulator.wire import ollama as ollama_wire
from groundswell.emulator.wire import openai as openai_wire
from groundswell.program.request import (
    Chat,
    Embed,
    Embedding,
    Fault,
    FaultKind,
    Reply,
    Request,
    ToolCall,
    Usage,
    decode_settlement,
    encode_settlement,
    user,
)
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.ollama import OLLAMA
from groundswell.providers.openai import OPENAI
from groundswell.providers.provider import WireFormat
from groundswell.providers.registry import WIRE_FORMATS
from tests.properties import examples
from tests.providers.strategies import anthropic_chats, changed, json_values, ollama_chats, openai_chats

ABOUT = About("id-1", 1_700_000_000.5, "the-model")
CHAT = Chat("the-model", (user("go on"),), logprobs=2)
EMBED = Embed("the-model", ("one", "two"))
REPLY = Reply("well then", Usage(5, 7, 2, 3), "tool_calls", "the-model", (ToolCall("c1", "look", "{}"),), "hm")
EMBEDDING = Embedding.of([[1.0, 2.0], [3.0, 4.0]], Usage(2))
ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded", "code": None, "param": None}}
GOOD: list[tuple[WireFormat, Request, Any]] = [
    (OPENAI, CHAT, openai_wire.write_chat([REPLY], ABOUT)),
    (OPENAI, EMBED, openai_wire.write_embed(EMBEDDING, ABOUT, False)),
    (ANTHROPIC, CHAT, anthropic_wire.write_message(REPLY, ABOUT)),
    (OLLAMA, CHAT, ollama_wire.write_chat(REPLY, ABOUT, False, 1.0)),
    (OLLAMA, EMBED, ollama_wire.write_embed(EMBEDDING, ABOUT, 1.0)),
    (OPENAI, CHAT, ERROR),
    (ANTHROPIC, CHAT, ERROR),
    (OLLAMA, CHAT, {"error": "server busy"}),
]
DIALECTS = list(WIRE_FORMATS.values())

asks: st.SearchStrategy[Request] = st.sampled_from([CHAT, EMBED])
statuses = st.sampled_from([0, 200, 200, 200, 204, 301, 400, 401, 429, 500, 529]) | st.integers(-1, 1000)
known_names = st.sampled_from(["Retry-After", "retry-after-ms", "X-Should-Retry", "content-type"])
header_values = st.sampled_from(["true", "false", "Wed, 21 Oct 2015 07:28:00 GMT", "1e400", "nan", "-1"]) | st.text()
sent_headers = st.dictionaries(known_names | st.text(max_size=5), header_values, max_size=3)


def check(answer: object) -> None:
    """An answer of the right type, that can be written into a journal and read again."""
    assert isinstance(answer, Reply | Embedding | Fault)
    assert decode_settlement(encode_settlement(answer)) == answer
    if isinstance(answer, Fault):
        assert answer.message
        assert answer.retry_after is None or 0 <= answer.retry_after <= 86_400


@pytest.mark.sampled
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
@settings(max_examples=examples(150))
@given(st.data())
def test_any_bytes(dialect: WireFormat, data: st.DataObject) -> None:
    body = data.draw(st.binary(max_size=40) | json_values.map(msgspec.json.encode))
    check(dialect.decode(data.draw(asks), data.draw(statuses), data.draw(sent_headers), body, 1e9))


@settings(max_examples=examples(500))
@given(st.data())
def test_good_answers_gone_wrong(data: st.DataObject) -> None:
    dialect, asked, good = data.draw(st.sampled_from(GOOD))
    broken = data.draw(changed(good))
    for _ in range(data.draw(st.integers(0, 2))):
        broken = data.draw(changed(broken))
    body = msgspec.json.encode(broken)
    if data.draw(st.booleans()):
        body = body[: data.draw(st.integers(0, len(body)))]
    check(dialect.decode(asked, data.draw(statuses), {}, body, 1e9))


@settings(max_examples=examples(100))
@given(st.data())
def test_streams_gone_wrong(data: st.DataObject) -> None:
    lines = list(ollama_wire.stream_chat(REPLY, ABOUT, False, 1.0))
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = msgspec.json.encode(data.draw(changed(msgspec.json.decode(lines[at])))) + b"\n"
    body = b"".join(lines)
    check(OLLAMA.decode(CHAT, 200, {}, body[: data.draw(st.integers(0, len(body)))], 1e9))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_a_body_nested_too_deep_is_garbled(dialect: WireFormat) -> None:
    check(dialect.decode(CHAT, 200, {}, b"[" * 100_000, 0.0))


@pytest.mark.sampled
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
@settings(max_examples=examples(60))
@given(st.data())
def test_any_chat_is_sent_or_refused(dialect: WireFormat, data: st.DataObject) -> None:
    chat = data.draw(openai_chats() | anthropic_chats() | ollama_chats())
    made = dialect.encode(chat, chat.model, {"body": '{"model":"{model}","all":"{messages}"}'})
    if isinstance(made, Fault):
        assert made.kind is FaultKind.BAD_REQUEST
    else:
        named = msgspec.json.decode(made.body).get("model")
        assert chat.model in made.path if named is None else named == chat.model
