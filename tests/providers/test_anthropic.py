"""What is particular to Anthropic's dialect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundswell.program.request import (
    Chat,
    Embed,
    Fault,
    FaultKind,
    Message,
    Reply,
    ToolCall,
    Usage,
    assistant,
    system,
    user,
)
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.provider import Call


def body(chat: Chat, **options: Any) -> dict[str, Any]:
    made = ANTHROPIC.encode(chat, "claude", options)
    assert isinstance(made, Call)
    return msgspec.json.decode(made.body, type=dict[str, Any])


def markers(sent: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The cache markers on the system blocks, and on the blocks of all messages."""
    said = [block for message in sent["messages"] for block in message["content"]]
    return [block.get("cache_control") for block in sent["system"]], [block.get("cache_control") for block in said]


SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def test_a_first_prompt_has_its_system_part_marked_alone() -> None:
    sent = body(Chat("m", (system("a"), system("b"), user("c"))))
    assert markers(sent) == ([None, SHORT], [None])


def test_a_conversation_is_marked_at_its_end_once_the_model_has_spoken() -> None:
    sent = body(Chat("m", (system("a"), user("b"), assistant("c"), user("d"))), prompt_cache="1h")
    assert markers(sent) == ([LONG], [None, None, LONG])


def test_no_marks_where_none_are_wanted() -> None:
    sent = body(Chat("m", (system("a"), user("b"), assistant("c"), user("d"))), prompt_cache=None)
    assert markers(sent) == ([None], [None, None, None])


def test_results_of_tools_go_back_together() -> None:
    calls = (ToolCall("c1", "look", '{"at":1}'), ToolCall("c2", "look", "{}"))
    results = (Message("tool", "one", tool_call_id="c1"), Message("tool", "two", tool_call_id="c2"))
    turns = body(Chat("m", (user("go"), Message("assistant", "", calls), *results, user("on"))))["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "user"]
    assert [block["input"] for block in turns[1]["content"]] == [{"at": 1}, {}]
    assert [block["tool_use_id"] for block in turns[2]["content"]] == ["c1", "c2"]


def test_a_system_message_in_mid_conversation_keeps_its_place() -> None:
    sent = body(Chat("m", (user("a"), assistant("b"), system("c"))), prompt_cache=None)
    assert "system" not in sent
    block = {"type": "text", "text": "<system>\nc\n</system>"}
    assert sent["messages"][2] == {"role": "user", "content": [block]}


def test_a_limit_is_always_sent_and_a_seed_never() -> None:
    sent = body(Chat("m", (user("a"),), seed=3))
    assert sent == {"model": "claude", "max_tokens": 4096, "messages": [sent["messages"][0]]}


def test_schema_and_effort_share_a_setting() -> None:
    fields = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    sent = body(Chat("m", (user("a"),), schema=fields, reasoning="high"))
    schema = {**fields, "additionalProperties": False}
    assert sent["output_config"] == {"format": {"type": "json_schema", "schema": schema}, "effort": "high"}
    assert sent["thinking"] == {"type": "adaptive"}


def test_no_reasoning_switches_thinking_off() -> None:
    sent = body(Chat("m", (user("a"),), reasoning="none"))
    assert sent["thinking"] == {"type": "disabled"}
    assert "output_config" not in sent


UNFIT: list[tuple[str, Chat | Embed]] = [
    ("temperature", Chat("m", (user("a"),), temperature=1.5)),
    ("logprobs", Chat("m", (user("a"),), logprobs=0)),
    ("reasoning", Chat("m", (user("a"),), reasoning="minimal")),
    ("schema", Chat("m", (user("a"),), schema={"type": "object"})),
    ("arguments", Chat("m", (Message("assistant", "", (ToolCall("c", "look", "[1]"),)),))),
    ("arguments", Chat("m", (Message("assistant", "", (ToolCall("c", "look", '{"a":"\ud800"}'),)),))),
    ("embeddings", Embed("m", ("a",))),
]


@pytest.mark.parametrize(("word", "request_"), UNFIT, ids=[f"{at}-{row[0]}" for at, row in enumerate(UNFIT)])
def test_what_anthropic_does_not_have_is_refused_by_name(word: str, request_: Chat | Embed) -> None:
    made = ANTHROPIC.encode(request_, "claude")
    assert isinstance(made, Fault)
    assert made.kind is FaultKind.BAD_REQUEST
    assert word in made.message


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "x"}
HIDDEN = {"type": "redacted_thinking", "data": "x"}
TEXT = {"type": "text", "text": "hello"}
REPLIES: list[tuple[str, list[Any], str | None, Reply]] = [
    ("text", [TEXT], "end_turn", Reply("hello")),
    ("texts", [TEXT, {"type": "server_tool_use"}, TEXT], "stop_sequence", Reply("hellohello")),
    ("no reason", [TEXT], None, Reply("hello")),
    ("silence", [], "end_turn", Reply("")),
    ("only thoughts", [THOUGHT], "max_tokens", Reply("", finish="length", reasoning="hm")),
    ("hidden thoughts", [HIDDEN, TEXT], "end_turn", Reply("hello")),
    ("context full", [TEXT], "model_context_window_exceeded", Reply("hello", finish="length")),
    ("paused", [TEXT], "pause_turn", Reply("hello", finish="length")),
    ("refused", [], "refusal", Reply("", finish="refusal")),
    ("unknown reason", [TEXT], "bored", Reply("hello")),
]


@pytest.mark.parametrize(("_name", "content", "reason", "reply"), REPLIES, ids=[row[0] for row in REPLIES])
def test_what_a_message_means(_name: str, content: list[Any], reason: str | None, reply: Reply) -> None:
    answer = msgspec.json.encode({"content": content, "stop_reason": reason})
    assert ANTHROPIC.decode(Chat("m", (user("a"),)), 200, {}, answer, 0.0) == reply


def test_a_refusal_without_words_takes_its_explanation() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "Not this."}
    answer = msgspec.json.encode({"content": [], "stop_reason": "refusal", "stop_details": details})
    got = ANTHROPIC.decode(Chat("m", (user("a"),)), 200, {}, answer, 0.0)
    assert got == Reply("Not this.", finish="refusal")


def test_input_counts_what_the_cache_gave_and_took() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300, "output_tokens": 1}
    answer = msgspec.json.encode({"content": [TEXT], "stop_reason": "end_turn", "usage": usage})
    got = ANTHROPIC.decode(Chat("m", (user("a"),)), 200, {}, answer, 0.0)
    assert isinstance(got, Reply)
    assert got.usage == Usage(325, 1, 20, cache_write_tokens=300)


def test_the_headers_name_key_and_version() -> None:
    sent = ANTHROPIC.headers("k")
    assert (sent["x-api-key"], sent["anthropic-version"]) == ("k", "2023-06-01")
    assert "x-api-key" not in ANTHROPIC.headers(None)
