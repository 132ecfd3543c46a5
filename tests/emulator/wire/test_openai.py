"""OpenAI's side: what it turns down and how, and answers that its own client takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import CreateEmbeddingResponse, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from groundswell.emulator.wire import About, Rejected, openai
from groundswell.program.request import Chat, Embedding, Image, Message, Reply, Text, ToolCall, Usage, user
from tests.emulator.wire.sdk import events, judged
from tests.providers.strategies import replies

ABOUT = About("chatcmpl-1", 1_700_000_000.7, "gpt-4o-mini")
HELLO = [{"role": "user", "content": "hello"}]
NUMBER = {"type": "text", "text": 1}
OPEN = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {"type": "object"}}}

TYPES: list[tuple[Any, str, str]] = [
    ({"messages": "hello"}, "messages", "an array of objects, but got a string"),
    ({"messages": ["hello"]}, "messages[0]", "an object, but got a string"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content", "array of objects, but got an integer"),
    ({"messages": [*HELLO, {"role": "user"}]}, "messages[1].content", "array of objects, but got null"),
    (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]},
        "messages[0].content[0].text",
        "a str",
    ),
    ({"temperature": "hot"}, "temperature", "a decimal, but got a string"),
    ({"max_tokens": 1.5}, "max_tokens", "an integer, but got a decimal"),
    ({"seed": True}, "seed", "an integer, but got a boolean"),
    ({"stream": "yes"}, "stream", "a boolean, but got a string"),
    ({"stop": {}}, "stop", "one of a string or array of strings, but got an object"),
    ({"stop": [1]}, "stop[0]", "a string, but got an integer"),
    ({"tools": 0}, "tools", "an array of objects, but got an integer"),
    ({"response_format": []}, "response_format", "an object, but got an array"),
]


def rejected(**body: Any) -> Rejected:
    with pytest.raises(Rejected) as caught:
        openai.read_chat({"model": "gpt-4o", "messages": HELLO, **body})
    assert caught.value.status == 400
    assert caught.value.kind == "invalid_request_error"
    return caught.value


@pytest.mark.parametrize(("body", "path", "words"), TYPES, ids=[row[1] for row in TYPES])
def test_a_wrong_type_is_told_with_its_path(body: dict[str, Any], path: str, words: str) -> None:
    problem = rejected(**body)
    assert problem.message.startswith(f"Invalid type for '{path}': expected ")
    assert words in problem.message
    assert (problem.param, problem.code) == (path, "invalid_type")


MISSING: list[tuple[dict[str, Any], str]] = [
    ({"messages": None}, "messages"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
    ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0].type"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
]


@pytest.mark.parametrize(("body", "path"), MISSING, ids=[row[1] for row in MISSING])
def test_what_is_missing_is_named(body: dict[str, Any], path: str) -> None:
    problem = rejected(**body)
    assert problem.message == f"Missing required parameter: '{path}'."
    assert (problem.param, problem.code) == (path, "missing_required_parameter")


VALUES: list[tuple[dict[str, Any], str | None, str | None]] = [
    ({"messages": []}, "messages", "empty_array"),
    ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role", "invalid_value"),
    ({"temperature": 2.1}, "temperature", "decimal_above_max_value"),
    ({"temperature": -1}, "temperature", "decimal_below_min_value"),
    ({"top_p": 1.5}, "top_p", "decimal_above_max_value"),
    ({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
    ({"max_tokens": 1, "max_completion_tokens": 1}, "max_tokens", None),
    ({"model": "o3", "max_tokens": 1}, "max_tokens", "unsupported_parameter"),
    ({"n": 200}, "n", "integer_above_max_value"),
    ({"top_logprobs": 3}, "top_logprobs", None),
    ({"stop": list("abcde")}, "stop", "array_above_max_length"),
    ({"tool_choice": "auto"}, "tool_choice", None),
    ({"reasoning_effort": "furious"}, "reasoning_effort", "invalid_value"),
    ({"stream_options": {}}, "stream_options", None),
    ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
    ({"response_format": {"type": "json_object"}}, "messages", None),
    ({"response_format": OPEN}, "response_format", "invalid_json_schema"),
    ({"model": None}, None, None),
]


@pytest.mark.parametrize(("body", "param", "code"), VALUES, ids=[",".join(row[0]) for row in VALUES])
def test_a_wrong_value_is_turned_down(body: dict[str, Any], param: str | None, code: str | None) -> None:
    problem = rejected(**body)
    assert (problem.param, problem.code) == (param, code)
    error = openai.write_error(problem)["error"]
    assert error == {"message": str(problem), "type": "invalid_request_error", "param": param, "code": code}


def test_a_whole_conversation_is_understood() -> None:
    png = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    said = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": "see"}, png], "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
        {"role": "assistant", "content": None, "refusal": "No."},
    ]
    read = openai.read_chat({"model": "m", "messages": said, "n": 2, "stop": "x", "user": "u", "stream": None})
    assert isinstance(read.request, Chat)
    assert read.request.messages == (
        Message("system", "Be brief."),
        Message("user", (Text("see"), Image(data="aGk=", media_type="image/png"))),
        Message("assistant", "", (ToolCall("c1", "look", "{}"),)),
        Message("tool", "42", tool_call_id="c1"),
        Message("assistant", "No."),
    )
    assert (read.choices, read.stream, read.request.stop, read.request.extra) == (2, False, ("x",), {"user": "u"})


def test_usage_in_a_stream_is_asked_for() -> None:
    body = {"model": "m", "messages": HELLO, "stream": True}
    assert not openai.read_chat(body).usage_in_stream
    assert openai.read_chat({**body, "stream_options": {"include_usage": True}}).usage_in_stream


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "m"}, "input"),
        ({"model": "m", "input": []}, "input"),
        ({"model": "m", "input": [1, 2]}, "input[0]"),
        ({"model": "m", "input": ["x"] * 2049}, "input"),
        ({"model": "m", "input": "x", "encoding_format": "hex"}, "encoding_format"),
    ],
)
def test_an_embedding_request_is_checked(body: dict[str, Any], param: str) -> None:
    with pytest.raises(Rejected) as caught:
        openai.read_embed(body)
    assert caught.value.param == param


@given(st.lists(replies(thinking=False), min_size=1, max_size=2))
def test_the_official_client_reads_our_completions(made: list[Reply]) -> None:
    read = judged(ChatCompletion, openai.write_chat(made, ABOUT))
    for choice, reply in zip(read.choices, made, strict=True):
        refused = reply.finish == "refusal"
        assert choice.message.refusal == (reply.text if refused else None)
        assert choice.finish_reason == ("stop" if refused else reply.finish)
        assert refused or (choice.message.content or "") == reply.text
        assert len(choice.message.tool_calls or ()) == len(reply.tool_calls)


def test_the_prompt_is_counted_once() -> None:
    made = [Reply("a", Usage(10, 1, 4, 1)), Reply("b", Usage(10, 2, 4, 0))]
    usage = openai.write_chat(made, ABOUT)["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (10, 3, 13)


@given(replies(thinking=False), st.booleans())
def test_a_stream_says_what_the_whole_does(reply: Reply, usage: bool) -> None:
    *chunks, done = events(openai.stream_chat([reply], ABOUT, usage))
    assert done == "[DONE]"
    read = [judged(ChatCompletionChunk, chunk) for chunk in chunks]
    if usage:
        counted = read.pop()
        assert counted.choices == []
        assert counted.usage is not None
        assert counted.usage.completion_tokens == reply.usage.output_tokens
    deltas = [chunk.choices[0].delta for chunk in read]
    said = "".join(delta.content or delta.refusal or "" for delta in deltas)
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    arguments = "".join(call.function.arguments or "" for call in calls if call.function)
    assert (deltas[0].role, said) == ("assistant", reply.text)
    assert arguments == "".join(call.arguments for call in reply.tool_calls)
    assert [call.id for call in calls if call.id] == [call.id for call in reply.tool_calls]
    assert read[-1].choices[0].finish_reason == ("stop" if reply.finish == "refusal" else reply.finish)


@pytest.mark.parametrize("base64", [True, False], ids=["base64", "numbers"])
def test_the_official_client_reads_our_embeddings(base64: bool) -> None:
    body = openai.write_embed(Embedding.of([[1.0, 0.5], [0.0, -1.0]], Usage(4)), ABOUT, base64)
    if base64:
        assert body["data"][0]["embedding"] == "AACAPwAAAD8="
    else:
        assert judged(CreateEmbeddingResponse, body).data[1].embedding == [0.0, -1.0]


def test_the_official_client_reads_our_models() -> None:
    listed = openai.write_models(["a", "b"], 5.5)
    assert [judged(Model, one).id for one in listed["data"]] == ["a", "b"]


def test_asking_for_logprobs_without_number_is_asking_for_none_of_the_others() -> None:
    read = openai.read_chat({"model": "m", "messages": HELLO, "logprobs": True})
    assert read.request == Chat("m", (user("hello"),), logprobs=0)
