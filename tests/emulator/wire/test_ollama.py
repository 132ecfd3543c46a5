"""Ollama's side: what it turns down and how, and answers that its own client takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ollama import ChatResponse, EmbedResponse, GenerateResponse, ListResponse, ProcessResponse, ShowResponse

from groundswell.emulator.wire import About, Incoming, Rejected, ollama
from groundswell.program.request import Chat, Embed, Embedding, Image, Message, Reply, Text, ToolCall, Usage, user
from tests.providers.strategies import replies

ABOUT = About("unused", 1_700_000_000.5, "llama3.2")

REJECTED: list[tuple[Any, str]] = [
    (None, "missing request body"),
    ([], "json: cannot unmarshal array into Go struct field ChatRequest of type api.ChatRequest"),
    ({}, "model is required"),
    ({"model": 7}, "json: cannot unmarshal number into Go struct field ChatRequest.model of type string"),
    ({"model": "m", "messages": "x"}, "json: cannot unmarshal string into Go struct field ChatRequest.messages"),
    ({"model": "m", "messages": [{"role": "king"}]}, "invalid role: king, must be one of"),
    (
        {"model": "m", "messages": [{"role": "user", "content": 7}]},
        "json: cannot unmarshal number into Go struct field",
    ),
    ({"model": "m", "options": {"temperature": "hot"}}, 'option "temperature" must be of type float32'),
    ({"model": "m", "options": {"num_predict": 1.5}}, 'option "num_predict" must be of type integer'),
    ({"model": "m", "options": {"stop": "x"}}, 'option "stop" must be of type array'),
    ({"model": "m", "format": "xml"}, 'invalid format: "xml"; expected "json" or a JSON schema'),
    ({"model": "m", "think": "hard"}, 'invalid think value: "hard"'),
    ({"model": "m", "stream": 1}, "json: cannot unmarshal number into Go struct field ChatRequest.stream of type bool"),
    ({"model": "m", "top_logprobs": 21}, "top_logprobs must be between 0 and 20"),
]


@pytest.mark.parametrize(("body", "words"), REJECTED, ids=[f"{at} {row[1][:40]}" for at, row in enumerate(REJECTED)])
def test_what_is_wrong_is_told_in_its_words(body: Any, words: str) -> None:
    with pytest.raises(Rejected) as caught:
        ollama.read_chat(body)
    assert caught.value.message.startswith(words)
    assert caught.value.status == 400
    assert ollama.write_error(caught.value) == {"error": caught.value.message}


def test_a_whole_conversation_is_understood() -> None:
    calls = [{"function": {"name": "look", "arguments": {"at": 1}}}]
    said = [
        {"role": "user", "content": "see", "images": ["aGk="]},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "content": "42", "tool_name": "look"},
    ]
    options = {"temperature": 1, "num_predict": -1, "num_ctx": 4096}
    read = ollama.read_chat({"model": "m", "messages": said, "options": options, "think": True, "format": "json"})
    assert read == Incoming(
        Chat(
            "m",
            (
                Message("user", (Text("see"), Image(data="aGk="))),
                Message("assistant", "", (ToolCall("call_0", "look", '{"at":1}'),)),
                Message("tool", "42", tool_call_id="look"),
            ),
            temperature=1.0,
            schema={"type": "object"},
            reasoning="medium",
            extra={"options": {"num_ctx": 4096}},
        ),
        stream=True,
    )


def test_generating_without_a_prompt_asks_for_nothing() -> None:
    assert ollama.read_generate({"model": "m"}) == Incoming(Chat("m", ()), stream=True, legacy=True)


def test_generating_with_a_picture() -> None:
    read = ollama.read_generate({"model": "m", "prompt": "see", "images": ["aGk="], "raw": True})
    assert read.request == Chat("m", (user((Text("see"), Image(data="aGk="))),), extra={"raw": True})


@pytest.mark.parametrize(("given_", "texts"), [("a", ("a",)), (["a", "b"], ("a", "b")), (None, ())])
def test_texts_to_embed_may_be_one_or_many(given_: Any, texts: tuple[str, ...]) -> None:
    assert ollama.read_embed({"model": "m", "input": given_}).request == Embed("m", texts)


def test_only_texts_can_be_embedded() -> None:
    with pytest.raises(Rejected, match="invalid input type"):
        ollama.read_embed({"model": "m", "input": [1]})


@given(replies(refusing=False, detailed=False), st.booleans())
def test_the_official_client_reads_our_answers(reply: Reply, legacy: bool) -> None:
    body = ollama.write_chat(reply, ABOUT, legacy, 1.5)
    read: Any = (GenerateResponse if legacy else ChatResponse).model_validate_json(msgspec.json.encode(body))
    assert (read.response if legacy else read.message.content) == reply.text
    assert (read.thinking if legacy else read.message.thinking) == reply.reasoning
    assert (read.done, read.done_reason, read.total_duration) == (True, reply.finish, 1_500_000_000)
    assert (read.eval_count or 0) == reply.usage.output_tokens


def test_what_is_zero_is_left_out() -> None:
    body = ollama.write_chat(Reply("x"), ABOUT, False, 0.0)
    assert list(body) == ["model", "created_at", "message", "done", "done_reason"]
    assert body["created_at"] == "2023-11-14T22:13:20.500000Z"


@given(replies(detailed=False), st.booleans())
def test_a_stream_says_what_the_whole_does(reply: Reply, legacy: bool) -> None:
    lines = list(ollama.stream_chat(reply, ABOUT, legacy, 1.5))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    *chunks, last = [msgspec.json.decode(line) for line in lines]
    assert [chunk["done"] for chunk in chunks] == [False] * len(chunks)
    said = [chunk if legacy else chunk["message"] for chunk in chunks]
    assert "".join(one["response" if legacy else "content"] for one in said) == reply.text
    assert "".join(one.get("thinking", "") for one in said) == (reply.reasoning or "")
    assert sum(len(one.get("tool_calls", ())) for one in said) == len(reply.tool_calls)
    assert last["done"]
    assert last.get("prompt_eval_count", 0) == reply.usage.input_tokens


def test_the_official_client_reads_the_rest() -> None:
    vectors = ollama.write_embed(Embedding.of([[1.0, 0.5]], Usage(3)), ABOUT, 0.5)
    assert EmbedResponse.model_validate(vectors).embeddings == [[1.0, 0.5]]
    assert vectors["prompt_eval_count"] == 3
    assert [model.model for model in ListResponse.model_validate(ollama.write_tags(["a", "b"])).models] == ["a", "b"]
    assert ProcessResponse.model_validate(ollama.write_ps(["a"], 5.0)).models[0].name == "a"
    shown = ShowResponse.model_validate(ollama.write_show("a"))
    assert shown.capabilities is not None
    assert "completion" in shown.capabilities
