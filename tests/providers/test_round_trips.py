"""What one side writes, the other reads: requests and replies come through unchanged, but for what is named here."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.emulator.wire import About
from groundswell.emulator.wire import anthropic as anthropic_wire
from groundswell.emulator.wire import ollama as ollama_wire
from groundswell.emulator.wire import openai as openai_wire
from groundswell.program.request import Chat, Embed, Embedding, Fault, Reply, Usage, fingerprint, user
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.json_schema import close_objects, strict
from groundswell.providers.ollama import OLLAMA
from groundswell.providers.openai import OPENAI
from groundswell.providers.provider import Call
from tests.properties import examples
from tests.providers.strategies import anthropic_chats, embeds, names, ollama_chats, openai_chats, replies, words

ABOUT = About("chatcmpl-1", 1_700_000_000.5, "the-model")
ASKED = Chat("the-model", (user("go on"),), logprobs=1)
TOKEN = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
replace = msgspec.structs.replace
dump = msgspec.json.encode


def sent(call: Call | Fault) -> Any:
    assert isinstance(call, Call), call
    return msgspec.json.decode(call.body)


@settings(max_examples=examples(150))
@given(openai_chats())
def test_openai_reads_the_chat_that_was_sent(chat: Chat) -> None:
    """Schemas arrive made strict, where they can be."""
    read = openai_wire.read_chat(sent(OPENAI.encode(chat, chat.model)))
    expected = replace(chat, schema=strict(chat.schema) or chat.schema) if chat.schema else chat
    assert read.request == expected
    assert fingerprint(read.request) == fingerprint(expected)
    assert not read.stream


@settings(max_examples=examples(150))
@given(anthropic_chats(), st.sampled_from([None, "5m", "1h"]))
def test_anthropic_reads_the_chat_that_was_sent(chat: Chat, cache: Any) -> None:
    """The seed is left out, a limit is there always, and schemas are closed."""
    read = anthropic_wire.read_chat(sent(ANTHROPIC.encode(chat, chat.model, {"prompt_cache": cache})))
    assert read.request == replace(
        chat, seed=None, max_tokens=chat.max_tokens or 4096, schema=close_objects(chat.schema) if chat.schema else None
    )


@settings(max_examples=examples(150))
@given(ollama_chats())
def test_ollama_reads_the_chat_that_was_sent(chat: Chat) -> None:
    read = ollama_wire.read_chat(sent(OLLAMA.encode(chat, chat.model)))
    assert read.request == chat
    assert not read.stream


@given(embeds)
def test_embedding_requests_come_through(embed: Embed) -> None:
    assert openai_wire.read_embed(sent(OPENAI.encode(embed, embed.model))).request == embed
    assert ollama_wire.read_embed(sent(OLLAMA.encode(embed, embed.model))).request == embed


@settings(max_examples=examples(150))
@given(
    replies(thinking=False), st.none() | st.just([{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}])
)
def test_openai_replies_come_through(reply: Reply, logprobs: Any) -> None:
    """All but the thoughts, which OpenAI keeps."""
    reply = replace(reply, logprobs=logprobs)
    assert OPENAI.decode(ASKED, 200, {}, dump(openai_wire.write_chat([reply], ABOUT)), 0.0) == reply


@settings(max_examples=examples(150))
@given(replies())
def test_anthropic_replies_come_through(reply: Reply) -> None:
    written = (reply.usage.input_tokens - reply.usage.cached_tokens) // 2
    reply = replace(reply, usage=replace(reply.usage, cache_write_tokens=written))
    body = anthropic_wire.write_message(reply, ABOUT)
    assert ANTHROPIC.decode(ASKED, 200, {}, dump(body), 0.0) == reply


@settings(max_examples=examples(150))
@given(replies(refusing=False, detailed=False), st.booleans())
def test_ollama_replies_come_through_whole_and_streamed(reply: Reply, stream: bool) -> None:
    whole = dump(ollama_wire.write_chat(reply, ABOUT, False, 1.5))
    body = b"".join(ollama_wire.stream_chat(reply, ABOUT, False, 1.5)) if stream else whole
    assert OLLAMA.decode(ASKED, 200, {"content-type": "application/x-ndjson"}, body, 0.0) == reply


@given(replies(detailed=False).filter(lambda reply: reply.finish in ("tool_calls", "refusal")))
def test_ollama_tells_tool_calls_but_not_refusals(reply: Reply) -> None:
    body = dump(ollama_wire.write_chat(reply, ABOUT, False, 1.5))
    finish = "tool_calls" if reply.tool_calls else "stop"
    assert OLLAMA.decode(ASKED, 200, {}, body, 0.0) == replace(reply, finish=finish)


@given(st.lists(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3), min_size=1, max_size=3), st.booleans())
def test_embeddings_come_through(vectors: list[list[float]], base64: bool) -> None:
    embedding = replace(Embedding.of(vectors, Usage(7)), model="the-model")
    embed = Embed("the-model", tuple("text" for _ in vectors))
    by_openai = dump(openai_wire.write_embed(embedding, ABOUT, base64))
    by_ollama = dump(ollama_wire.write_embed(embedding, ABOUT, 0.1))
    assert OPENAI.decode(embed, 200, {}, by_openai, 0.0) == embedding
    assert OLLAMA.decode(embed, 200, {}, by_ollama, 0.0) == embedding


@given(names, words)
def test_a_generate_request_is_a_chat(model: str, prompt: str) -> None:
    read = ollama_wire.read_generate({"model": model, "prompt": prompt, "system": "Be brief.", "stream": False})
    assert read.legacy
    assert isinstance(read.request, Chat)
    assert [message.content for message in read.request.messages] == ["Be brief.", prompt]
