"""What is particular to OpenAI's dialect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundswell.program.request import (
    UNSENDABLE,
    Chat,
    Embed,
    Embedding,
    Fault,
    FaultKind,
    Image,
    Message,
    Reply,
    Text,
    ToolCall,
    Usage,
    user,
)
from groundswell.providers import openai
from groundswell.providers.openai import OPENAI
from groundswell.providers.provider import Call

CHAT = Chat("m", (user("go on"),))


def body(chat: Chat | Embed, model: str = "gpt-4o") -> dict[str, Any]:
    made = OPENAI.encode(chat, model)
    assert isinstance(made, Call)
    return msgspec.json.decode(made.body, type=dict[str, Any])


def reply(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> Reply | Embedding | Fault:
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}
    return OPENAI.decode(CHAT, 200, {}, msgspec.json.encode(answer), 0.0)


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("gpt-4o", "max_tokens"),
        ("llama-3", "max_tokens"),
        ("gpt-oss-20b", "max_tokens"),
        ("o1", "max_completion_tokens"),
        ("o4-mini-2025-04-16", "max_completion_tokens"),
        ("gpt-5.1", "max_completion_tokens"),
        ("openai/gpt-5-mini", "max_completion_tokens"),
        ("gpt-6-luna", "max_completion_tokens"),
        ("gpt-10", "max_completion_tokens"),
        ("ft:gpt-5-mini:lab", "max_completion_tokens"),
        ("gpt-35-turbo", "max_tokens"),
    ],
)
def test_the_limit_goes_by_the_name_that_the_model_knows(model: str, key: str) -> None:
    sent = body(Chat("m", (user("x"),), max_tokens=7), model)
    assert {name: value for name, value in sent.items() if "tokens" in name} == {key: 7}


def test_settings_that_are_not_set_are_not_sent() -> None:
    assert body(CHAT) == {"model": "gpt-4o", "messages": [{"role": "user", "content": "go on"}]}


def test_images_travel_as_urls() -> None:
    content = (Text("see"), Image(data="aGk=", media_type="image/gif"), Image(url="https://x.example/a"))
    urls = [part["image_url"]["url"] for part in body(Chat("m", (user(content),)))["messages"][0]["content"][1:]]
    assert urls == ["data:image/gif;base64,aGk=", "https://x.example/a"]


def test_a_schema_is_strict_where_it_can_be() -> None:
    fields = {"type": "object", "title": "My answer", "properties": {"a": {"type": "integer", "default": 1}}}
    asked = body(Chat("m", (user("x"),), schema=fields))["response_format"]["json_schema"]
    assert (asked["name"], asked["strict"]) == ("My_answer", True)
    assert asked["schema"]["required"] == ["a"]
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    asked = body(Chat("m", (user("x"),), schema=free))["response_format"]["json_schema"]
    assert asked == {"name": "reply", "schema": free, "strict": False}


def test_what_is_passed_through_wins() -> None:
    sent = body(Chat("m", (user("x"),), temperature=0.5, extra={"temperature": 0.9, "verbosity": "low"}))
    assert (sent["temperature"], sent["verbosity"]) == (0.9, "low")


def test_a_stream_cannot_be_asked_for() -> None:
    made = OPENAI.encode(Chat("m", (user("x"),), extra={"stream": True}), "m")
    assert isinstance(made, Fault)
    assert (made.kind, "extra['stream']" in made.message) == (FaultKind.BAD_REQUEST, True)


def test_what_json_cannot_hold_is_refused() -> None:
    assert OPENAI.encode(Chat("m", (user("\ud800"),)), "m") == UNSENDABLE
    made = OPENAI.encode(Chat("m", (user("x"),), extra={"a": object()}), "m")
    assert isinstance(made, Fault)
    assert made.kind is FaultKind.BAD_REQUEST


def test_an_unknown_effort_is_named() -> None:
    made = OPENAI.encode(Chat("m", (user("x"),), reasoning="furious"), "m")
    assert isinstance(made, Fault)
    assert "reasoning='furious'" in made.message


def test_a_forced_tool_call_is_one_though_openai_calls_it_a_stop() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    got = reply({"content": None, "tool_calls": [call]}, "stop")
    assert isinstance(got, Reply)
    assert (got.text, got.finish, got.tool_calls[0].name) == ("", "tool_calls", "look")


def test_thinking_up_to_the_limit_is_an_empty_reply_and_not_a_fault() -> None:
    got = reply({"content": None, "reasoning_content": "hmm"}, "length")
    assert got == Reply("", finish="length", reasoning="hmm")


def test_a_refusal_is_a_reply() -> None:
    assert reply({"content": None, "refusal": "I will not."}) == Reply("I will not.", finish="refusal")


@pytest.mark.parametrize("usage", [None, 7, {"prompt_tokens": -1, "completion_tokens": "9"}, {"prompt_tokens": 2.5}])
def test_usage_that_cannot_be_counts_as_none(usage: Any) -> None:
    got = reply({"content": "hi"}, usage=usage)
    assert isinstance(got, Reply)
    assert got.usage == Usage()


def test_logprobs_are_kept_if_they_were_asked_for() -> None:
    tokens = [{"token": "hi", "logprob": -0.1, "top_logprobs": []}]
    choice = {"message": {"content": "hi"}, "logprobs": {"content": tokens}, "finish_reason": "stop"}
    answer = msgspec.json.encode({"choices": [choice]})
    asked = Chat("m", (user("x"),), logprobs=0)
    assert OPENAI.decode(asked, 200, {}, answer, 0.0) == Reply("hi", logprobs=tokens)
    assert OPENAI.decode(CHAT, 200, {}, answer, 0.0) == Reply("hi")


def test_embeddings_are_put_in_order() -> None:
    rows = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]
    got = OPENAI.decode(Embed("m", ("a", "b")), 200, {}, msgspec.json.encode({"data": rows}), 0.0)
    assert isinstance(got, Embedding)
    assert got.vectors == [[1.0], [2.0]]


def test_tool_messages_say_what_they_answer() -> None:
    sent = body(Chat("m", (Message("tool", "42", tool_call_id="c1"),)))["messages"]
    assert sent == [{"role": "tool", "content": "42", "tool_call_id": "c1"}]


def test_a_turn_of_tool_calls_alone_has_no_content() -> None:
    sent = body(Chat("m", (Message("assistant", "", (ToolCall("c1", "look", "{}"),)),)))["messages"][0]
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert sent == {"role": "assistant", "content": None, "tool_calls": [call]}


def test_the_key_stands_in_one_header() -> None:
    assert OPENAI.headers("sk-1")["authorization"] == "Bearer sk-1"
    assert "authorization" not in OPENAI.headers(None)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
        ("https://g.example/v1beta/openai", "https://g.example/v1beta/openai/chat/completions"),
        ("http://localhost:9/proxy", "http://localhost:9/proxy/v1/chat/completions"),
    ],
)
def test_the_version_stands_in_an_address_once(base: str, url: str) -> None:
    assert OPENAI.url(base, openai.CHAT_PATH) == url
