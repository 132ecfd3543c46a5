"""The official OpenAI client, as it is, against the emulator: chats, streams, embeddings, models and files."""

from __future__ import annotations

import asyncio
import base64
import struct

import pytest
from openai import AsyncOpenAI, LengthFinishReasonError, NotFoundError, OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionUserMessageParam
from pydantic import BaseModel

from groundswell.emulator.server import Threaded

MODEL = "gpt-4o-mini"
EMBEDDER = "text-embedding-3-small"
HELLO: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "Tell me about the sea, please."}]
WEATHER: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}


class Verdict(BaseModel):
    """What a reply is parsed into."""

    reason: str
    score: int
    good: bool


@pytest.fixture
def client(emulator: Threaded, openai_client: OpenAI) -> OpenAI:
    return openai_client


def paid(emulator: Threaded) -> int:
    """How many requests were paid for."""
    return int(emulator.ledger()["totals"]["requests"])


# Chats.


def test_a_chat(client: OpenAI, emulator: Threaded) -> None:
    reply = client.chat.completions.create(model=MODEL, messages=HELLO)
    (choice,) = reply.choices
    assert reply.id.startswith("chatcmpl-")
    assert (reply.model, choice.finish_reason, choice.message.role) == (MODEL, "stop", "assistant")
    assert choice.message.content
    assert reply.usage is not None
    totals = emulator.ledger()["totals"]
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (
        totals["input_tokens"],
        totals["output_tokens"],
    )
    assert reply._request_id


def test_every_role_is_read(client: OpenAI) -> None:
    reply = client.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "What is the weather?"}]},
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "Rain."},
        ],
        tools=[WEATHER],
    )
    assert reply.choices[0].finish_reason == "stop"


def test_several_choices(client: OpenAI, emulator: Threaded) -> None:
    reply = client.chat.completions.create(model=MODEL, messages=HELLO, n=3)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert paid(emulator) == 1


def test_a_seed_gives_the_same_reply_again(client: OpenAI) -> None:
    first, second = (client.chat.completions.create(model=MODEL, messages=HELLO, seed=3) for _ in range(2))
    assert first.choices[0].message.content == second.choices[0].message.content


def test_a_stop_sequence_ends_the_reply(client: OpenAI) -> None:
    reply = client.chat.completions.create(model=MODEL, messages=HELLO, stop=[" "])
    assert " " not in (reply.choices[0].message.content or "")
    assert reply.choices[0].finish_reason == "stop"


def test_a_limit_ends_the_reply(client: OpenAI) -> None:
    reply = client.chat.completions.create(model=MODEL, messages=HELLO, max_completion_tokens=2)
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 2


def test_a_tool_is_called_where_it_must_be(client: OpenAI) -> None:
    reply = client.chat.completions.create(model=MODEL, messages=HELLO, tools=[WEATHER], tool_choice="required")
    (choice,) = reply.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert call.function.name == "weather"
    assert '"town"' in call.function.arguments


def test_a_schema_is_filled_and_parsed(client: OpenAI) -> None:
    parsed = client.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Verdict)
    assert isinstance(parsed.choices[0].message.parsed, Verdict)


def test_a_schema_that_was_cut_off_is_told(client: OpenAI) -> None:
    with pytest.raises(LengthFinishReasonError):
        client.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Verdict, max_tokens=1)


# Streams.


def test_a_stream(client: OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=HELLO, seed=1)
    with client.chat.completions.create(model=MODEL, messages=HELLO, seed=1, stream=True) as stream:
        chunks = list(stream)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert said == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_with_usage(client: OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=HELLO, seed=1)
    with client.chat.completions.create(
        model=MODEL, messages=HELLO, seed=1, stream=True, stream_options={"include_usage": True}
    ) as stream:
        *others, last = list(stream)
    assert (last.choices, last.usage) == ([], whole.usage)
    assert all(chunk.usage is None for chunk in others)


def test_the_stream_helper(client: OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=HELLO) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds
    assert kinds.count("content.done") == 1
    assert final.choices[0].message.content


def test_the_stream_helper_parses_a_schema(client: OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=HELLO, response_format=Verdict) as stream:
        stream.until_done()
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Verdict)


def test_the_stream_helper_collects_a_tool_call(client: OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=HELLO, tools=[WEATHER], tool_choice="required") as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds
    (call,) = final.choices[0].message.tool_calls or []
    assert '"town"' in call.function.arguments


def test_several_choices_in_a_stream(client: OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=HELLO, n=2) as stream:
        stream.until_done()
        final = stream.get_final_completion()
    assert [bool(choice.message.content) for choice in final.choices] == [True, True]


# Embeddings, models, files.


def test_embeddings(client: OpenAI) -> None:
    reply = client.embeddings.create(model=EMBEDDER, input=["the sea", "a ship"])
    assert [(entry.index, len(entry.embedding)) for entry in reply.data] == [(0, 1536), (1, 1536)]
    assert reply.usage.prompt_tokens > 0


def test_embeddings_as_floats_and_as_base64_are_the_same(client: OpenAI) -> None:
    floats = client.embeddings.create(model=EMBEDDER, input="the sea", dimensions=16, encoding_format="float")
    coded = client.embeddings.create(model=EMBEDDER, input="the sea", dimensions=16, encoding_format="base64")
    packed = coded.data[0].embedding
    assert isinstance(packed, str)
    assert list(struct.unpack("<16f", base64.b64decode(packed))) == pytest.approx(floats.data[0].embedding)


def test_models(client: OpenAI) -> None:
    assert MODEL in {model.id for model in client.models.list()}
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(NotFoundError):
        client.models.retrieve("no-such-model")


def test_files(client: OpenAI) -> None:
    content = b'{"a": "b"}\n'
    made = client.files.create(file=("in.jsonl", content), purpose="batch")
    assert (made.bytes, made.filename, made.purpose) == (len(content), "in.jsonl", "batch")
    assert client.files.retrieve(made.id) == made
    assert client.files.content(made.id).read() == content
    assert [file.id for file in client.files.list()] == [made.id]
    assert list(client.files.list(purpose="batch_output")) == []
    assert client.files.delete(made.id).deleted
    with pytest.raises(NotFoundError):
        client.files.content(made.id)


@pytest.mark.parametrize("name", ["a;b c.jsonl", "é=ü.jsonl", "x; name=purpose.jsonl"])
def test_a_file_keeps_its_name(client: OpenAI, name: str) -> None:
    made = client.files.create(file=(name, b"{}"), purpose="batch")
    assert (made.filename, made.bytes) == (name, 2)


def test_files_are_listed_page_by_page(client: OpenAI, emulator: Threaded) -> None:
    made = [client.files.create(file=(f"{number}.jsonl", b"{}"), purpose="batch").id for number in range(5)]
    before = emulator.ledger()["totals"]["received"]
    assert [file.id for file in client.files.list(limit=2)] == made[::-1]
    assert emulator.ledger()["totals"]["received"] - before == 3
    assert [file.id for file in client.files.list(limit=2, order="asc")] == made


def test_a_file_that_expires(client: OpenAI, emulator: Threaded) -> None:
    made = client.files.create(
        file=("in.jsonl", b"{}"), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert made.expires_at == made.created_at + 3600
    emulator.advance(3601)
    with pytest.raises(NotFoundError):
        client.files.retrieve(made.id)


# The asynchronous client.


def test_the_asynchronous_client(emulator: Threaded) -> None:
    async def talk() -> None:
        async with AsyncOpenAI(api_key="sk-test", base_url=f"{emulator.url}/v1") as client:
            asked = [client.chat.completions.create(model=MODEL, messages=HELLO) for _ in range(8)]
            assert all(reply.choices[0].message.content for reply in await asyncio.gather(*asked))
            async with client.chat.completions.stream(model=MODEL, messages=HELLO) as stream:
                assert "content.done" in [event.type async for event in stream]
            raw = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
            assert [chunk async for chunk in raw][-1].choices[0].finish_reason == "stop"
            parsed = await client.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Verdict)
            assert isinstance(parsed.choices[0].message.parsed, Verdict)
            vectors = await client.embeddings.create(model=EMBEDDER, input="the sea")
            assert len(vectors.data[0].embedding) == 1536
            assert MODEL in [model.id async for model in client.models.list()]

    asyncio.run(talk())
    assert paid(emulator) == 12
