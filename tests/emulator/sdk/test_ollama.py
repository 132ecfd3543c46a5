"""The official Ollama client, as it is, against the emulator."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx
import pytest
from ollama import AsyncClient, Client, ResponseError

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded

MODEL = "llama3.2"
HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Tell me about the sea, please."}]
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
BUSY = "server busy, please try again.  maximum pending requests exceeded"


def weather(town: str) -> str:
    """The weather of a town.

    Args:
        town: The name of the town
    """
    return f"Rain in {town}."


@pytest.fixture
def client(emulator: Threaded, ollama_client: Client) -> Client:
    return ollama_client


def counted(emulator: Threaded) -> tuple[int, int]:
    """How many requests came, and how many were answered by the model."""
    totals = emulator.ledger()["totals"]
    return totals["received"], totals["requests"]


# Chats.


def test_a_chat(client: Client, emulator: Threaded) -> None:
    reply = client.chat(model=MODEL, messages=HELLO)
    assert reply.message.content
    assert (reply.message.role, reply.done, reply.done_reason, reply.model) == ("assistant", True, "stop", MODEL)
    totals = emulator.ledger()["totals"]
    assert (reply.prompt_eval_count, reply.eval_count) == (totals["input_tokens"], totals["output_tokens"])
    assert reply.created_at is not None
    assert totals["dollars"] == 0


def test_generate(client: Client) -> None:
    reply = client.generate(model=MODEL, prompt="Tell me about the sea.", system="Be brief.")
    assert reply.response
    assert reply.done_reason == "stop"


def test_a_chat_with_tools_and_their_results(client: Client) -> None:
    messages = [
        *HELLO,
        {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": {"town": "Hull"}}}]},
        {"role": "tool", "content": weather("Hull"), "tool_name": "weather"},
    ]
    assert client.chat(model=MODEL, messages=messages, tools=[weather]).message.content


def test_a_schema_is_filled(client: Client) -> None:
    reply = client.chat(model=MODEL, messages=HELLO, format=SCHEMA)
    assert '"score"' in (reply.message.content or "")


def test_options(client: Client) -> None:
    cut = client.chat(model=MODEL, messages=HELLO, options={"num_predict": 2})
    assert (cut.done_reason, cut.eval_count) == ("length", 2)
    stopped = client.chat(model=MODEL, messages=HELLO, options={"stop": [" "]})
    assert " " not in (stopped.message.content or "")
    first, second = (client.chat(model=MODEL, messages=HELLO, options={"seed": 5}) for _ in range(2))
    assert first.message.content == second.message.content


def test_loading_and_unloading(client: Client, emulator: Threaded) -> None:
    assert client.generate(model=MODEL).done_reason == "load"
    assert client.chat(model=MODEL, messages=[], keep_alive=0).done_reason == "unload"
    assert counted(emulator) == (2, 0)


# Streams.


def test_a_stream(client: Client) -> None:
    whole = client.chat(model=MODEL, messages=HELLO, options={"seed": 5})
    chunks = list(client.chat(model=MODEL, messages=HELLO, options={"seed": 5}, stream=True))
    assert "".join(chunk.message.content or "" for chunk in chunks) == whole.message.content
    assert [chunk.done for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].eval_count == whole.eval_count


def test_a_stream_of_generate(client: Client) -> None:
    chunks = list(client.generate(model=MODEL, prompt="Tell me about the sea.", stream=True))
    assert "".join(chunk.response or "" for chunk in chunks)
    assert chunks[-1].done_reason == "stop"


def test_a_stream_that_fails_after_it_has_begun(client: Client, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="stream-error"))
    stream = iter(client.chat(model=MODEL, messages=HELLO, stream=True))
    assert next(stream).done is False
    with pytest.raises(ResponseError) as raised:
        list(stream)
    assert raised.value.status_code == -1
    assert counted(emulator) == (1, 1)


# Embeddings and models.


def test_embeddings(client: Client) -> None:
    reply = client.embed(model="all-minilm", input=["the sea", "a ship"])
    assert [len(vector) for vector in reply.embeddings] == [384, 384]
    assert len(client.embed(model="all-minilm", input="the sea", dimensions=16).embeddings[0]) == 16


def test_models(client: Client) -> None:
    assert MODEL in {model.model for model in client.list().models}
    assert client.ps().models
    shown = client.show(MODEL)
    assert shown.capabilities is not None
    assert "completion" in shown.capabilities
    assert shown.modelinfo


# Errors.

ERRORS = {"400": 400, "401": 401, "404": 404, "429": 429, "500": 500, "502": 502, "503": 503}


@pytest.mark.parametrize(("fault", "status"), ERRORS.items(), ids=ERRORS)
def test_errors_by_status(client: Client, emulator: Threaded, fault: str, status: int) -> None:
    emulator.set_faults(Rule(fault=fault))
    with pytest.raises(ResponseError) as raised:
        client.chat(model=MODEL, messages=HELLO)
    assert raised.value.status_code == status
    assert counted(emulator) == (1, 0)


def test_the_words_of_errors(client: Client, emulator: Threaded) -> None:
    with pytest.raises(ResponseError) as unknown:
        client.chat(model="nobody", messages=HELLO)
    assert (unknown.value.status_code, unknown.value.error) == (404, "model 'nobody' not found")
    emulator.set_faults(Rule(fault="503"))
    with pytest.raises(ResponseError) as busy:
        client.chat(model=MODEL, messages=HELLO, stream=False)
    assert busy.value.error == BUSY


def test_an_error_before_a_stream_begins(client: Client, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="503"))
    with pytest.raises(ResponseError) as raised:
        list(client.chat(model=MODEL, messages=HELLO, stream=True))
    assert (raised.value.status_code, raised.value.error) == (503, BUSY)


def test_nothing_is_tried_again(client: Client, emulator: Threaded) -> None:
    emulator.set_faults(Rule(script=("503", "ok")))
    with pytest.raises(ResponseError):
        client.chat(model=MODEL, messages=HELLO)
    assert client.chat(model=MODEL, messages=HELLO).done
    assert counted(emulator) == (2, 1)


def test_a_dropped_connection(client: Client, emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="drop"))
    with pytest.raises(httpx.RemoteProtocolError):
        client.chat(model=MODEL, messages=HELLO)
    assert counted(emulator) == (1, 0)


def test_no_answer(emulator: Threaded) -> None:
    emulator.set_faults(Rule(fault="hang"))
    with Client(host=emulator.url, timeout=0.3) as client, pytest.raises(httpx.ReadTimeout):
        client.chat(model=MODEL, messages=HELLO)


def test_nobody_there() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        with Client(host=f"http://127.0.0.1:{unheard.getsockname()[1]}") as client, pytest.raises(ConnectionError):
            client.chat(model=MODEL, messages=HELLO)


# The asynchronous client.


def test_the_asynchronous_client(emulator: Threaded) -> None:
    async def talk() -> None:
        async with AsyncClient(host=emulator.url) as client:
            asked = [client.chat(model=MODEL, messages=HELLO) for _ in range(8)]
            assert all(reply.message.content for reply in await asyncio.gather(*asked))
            stream = await client.chat(model=MODEL, messages=HELLO, stream=True)
            assert [chunk.done async for chunk in stream][-1] is True
            assert (await client.generate(model=MODEL, prompt="Hello")).response
            assert len((await client.embed(model="all-minilm", input="a")).embeddings) == 1
            with pytest.raises(ResponseError):
                await client.chat(model="nobody", messages=HELLO)

    asyncio.run(talk())
    assert counted(emulator) == (12, 11)
