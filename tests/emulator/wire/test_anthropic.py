"""Anthropic's side: what it turns down and how, and answers that its own client takes."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types import ModelInfo, RawMessageStreamEvent
from anthropic.types.shared import ErrorResponse
from hypothesis import given
from pydantic import TypeAdapter

from groundswell.emulator.wire import About, Rejected, anthropic
from groundswell.program.request import Chat, Image, Message, Reply, Text, ToolCall, Usage, user
from groundswell.providers.bodies import read_arguments
from tests.emulator.wire.sdk import events, judged
from tests.providers.strategies import replies

ABOUT = About("msg_1", 1_700_000_000.7, "claude-opus-4-7")
HELLO = [{"role": "user", "content": "hello"}]
EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


def said(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(blocks)}]}


OPEN = {"type": "json_schema", "schema": {"type": "object", "properties": {}}}
REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"max_tokens": None}, "max_tokens: Field required"),
    ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
    ({"max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
    ({"model": None}, "model: Field required"),
    ({"messages": None}, "messages: Field required"),
    ({"messages": "hello"}, "messages: Input should be a valid list"),
    ({"messages": []}, "messages: at least one message is required"),
    ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role: Input should be 'user' or 'assistant'"),
    ({"messages": [{"role": "system", "content": "x"}]}, 'messages: Unexpected role "system".'),
    ({"messages": [{"role": "user", "content": ""}]}, "messages.0: all messages must have non-empty content"),
    ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    (said({"type": "text", "text": ""}), "messages: text content blocks must be non-empty"),
    (said({"type": "text"}), "messages.0.content.0.text: Field required"),
    (said({"type": "song"}), "messages.0.content.0: Input tag 'song' found using 'type' does not match"),
    (said({"type": "tool_use", "id": "a"}), "messages.0.content.0: Input tag 'tool_use' found using 'type'"),
    (said({"type": "tool_result"}), "messages.0.content.0.tool_result.tool_use_id: Field required"),
    (said({"type": "image", "source": {"type": "base64", "media_type": "image/bmp"}}), "messages.0.content.0.source."),
    ({"system": [{"type": "text", "text": ""}]}, "system: text content blocks must be non-empty"),
    ({"system": 7}, "system: Input should be a valid string or list"),
    ({"temperature": 1.1}, "temperature: range: 0..1"),
    ({"stop_sequences": [" "]}, "stop_sequences: each stop sequence must contain non-whitespace"),
    ({"tools": [{"name": "x"}]}, "tools.0.custom.input_schema: Field required"),
    ({"tool_choice": {"type": "all"}}, "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'"),
    ({"thinking": {"type": "enabled", "budget_tokens": 9}}, "thinking.enabled.budget_tokens: Input should be greater"),
    ({"thinking": {"type": "enabled", "budget_tokens": 5000}}, "`max_tokens` must be greater than `thinking."),
    ({"output_config": {"effort": "furious"}}, "output_config.effort: Input should be 'low', 'medium'"),
    ({"output_config": {"format": OPEN}}, "output_config.format.schema: For 'object' type, 'additionalProperties'"),
    ({"stream": 1}, "stream: Input should be a valid boolean"),
]


@pytest.mark.parametrize(("body", "words"), REJECTED, ids=[row[1][:40] for row in REJECTED])
def test_what_is_wrong_is_told_in_its_words(body: dict[str, Any], words: str) -> None:
    with pytest.raises(Rejected) as caught:
        anthropic.read_chat({"model": "claude", "max_tokens": 100, "messages": HELLO, **body})
    assert caught.value.message.startswith(words)
    assert (caught.value.status, caught.value.kind) == (400, "invalid_request_error")
    judged(ErrorResponse, anthropic.write_error(caught.value, "req_1"))


def test_a_whole_conversation_is_understood() -> None:
    body = {
        "model": "claude",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image", "source": URL}]},
            {"role": "assistant", "content": [THOUGHT, {"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
            {"role": "user", "content": [RESULT, {"type": "text", "text": "well?"}]},
        ],
        "tool_choice": {"type": "any"},
        "metadata": {"user_id": "u"},
        "stream": True,
    }
    read = anthropic.read_chat(body)
    assert read.stream
    assert read.request == Chat(
        "claude",
        (
            Message("system", "Be brief."),
            Message("user", (Text("see"), Image(url="https://x.example/a"))),
            Message("assistant", "", (ToolCall("c", "look", "{}"),)),
            Message("tool", "42", tool_call_id="c"),
            user("well?"),
        ),
        max_tokens=5,
        tool_choice="required",
        extra={"metadata": {"user_id": "u"}},
    )


URL = {"type": "url", "url": "https://x.example/a"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "x"}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "42"}], "is_error": False}


@pytest.mark.parametrize(
    ("body", "reasoning", "extra"),
    [
        ({}, None, None),
        ({"output_config": {"effort": "low"}}, "low", None),
        ({"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}}, "low", None),
        ({"thinking": {"type": "disabled"}}, "none", None),
        ({"thinking": {"type": "adaptive"}}, None, {"thinking": {"type": "adaptive"}}),
    ],
)
def test_thinking_is_effort_or_passed_on(body: dict[str, Any], reasoning: str | None, extra: Any) -> None:
    request = anthropic.read_chat({"model": "claude", "max_tokens": 100, "messages": HELLO, **body}).request
    assert isinstance(request, Chat)
    assert (request.reasoning, request.extra) == (reasoning, extra)


def test_the_schema_may_stand_where_it_used_to() -> None:
    wanted = {"type": "json_schema", "schema": {"type": "integer"}}
    request = anthropic.read_chat({"model": "m", "max_tokens": 9, "messages": HELLO, "output_format": wanted}).request
    assert isinstance(request, Chat)
    assert request.schema == {"type": "integer"}


@given(replies())
def test_the_official_client_reads_our_messages(reply: Reply) -> None:
    read = judged(SdkMessage, anthropic.write_message(reply, ABOUT, tier="batch"))
    said = "".join(block.text for block in read.content if block.type == "text")
    assert said == reply.text
    assert read.stop_reason == anthropic.STOP_REASONS[reply.finish]
    assert read.usage.service_tier == "batch"


def test_usage_tells_what_the_cache_gave_and_took() -> None:
    usage = anthropic.write_message(Reply("x", Usage(100, 3, 60, 0, 30)), ABOUT, for_an_hour=20)["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (
        10,
        60,
        30,
    )
    assert usage["cache_creation"] == {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}


@given(replies())
def test_a_stream_says_what_the_whole_does(reply: Reply) -> None:
    whole = anthropic.write_message(reply, ABOUT)
    chunks = events(anthropic.stream_message(reply, ABOUT))
    ping = chunks.pop(1)
    assert ping == {"type": "ping"}
    read = [EVENTS.validate_python(chunk) for chunk in chunks]
    built = judged(SdkMessage, chunks[0]["message"]).model_dump()
    assert (built["content"], built["stop_reason"], read[-1].type) == ([], None, "message_stop")
    assert gathered(read) == [
        [block["type"], block.get("text") or block.get("thinking") or block.get("input") or ""]
        for block in whole["content"]
    ]
    ending = read[-2]
    assert ending.delta.stop_reason == whole["stop_reason"]
    assert ending.usage.output_tokens == reply.usage.output_tokens


def gathered(read: list[Any]) -> list[list[Any]]:
    """What the blocks of a stream hold in the end."""
    blocks: list[list[Any]] = []
    for event in read:
        if event.type == "content_block_start":
            blocks.append([event.content_block.type, ""])
        elif event.type == "content_block_delta":
            delta = event.delta
            piece = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
            blocks[event.index][1] += getattr(delta, piece[delta.type]) if delta.type in piece else ""
    for block in blocks:
        if block[0] == "tool_use":
            block[1] = read_arguments(block[1]) or ""
    return blocks


def test_the_event_is_named_before_its_data() -> None:
    first = next(anthropic.stream_message(Reply("x"), ABOUT))
    assert first.startswith(b'event: message_start\ndata: {"type":"message_start",')


def test_the_official_client_reads_our_models() -> None:
    page = anthropic.write_models(["claude-a", "claude-b"], 5.5)
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("claude-a", "claude-b", False)
    assert [judged(ModelInfo, one).display_name for one in page["data"]] == ["Claude A", "Claude B"]
    assert anthropic.write_models([], 0)["first_id"] is None
