"""Ollama."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

from groundswell.emulator.faults import Rule
from groundswell.emulator.latency import Latency
from groundswell.emulator.limits import RateLimits
from groundswell.emulator.settings import Settings
from tests.emulator.behaviours import Table
from tests.emulator.calls import Answered, Calls, Json, chat

TABLE = Table("Ollama")
claim = TABLE.claim

BUSY = "server busy, please try again.  maximum pending requests exceeded"
NDJSON = "application/x-ndjson"
DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def ask(calls: Calls, path: str = "/api/chat", **more: object) -> Answered:
    """One request for a chat, or for what `path` says."""
    return calls.ollama("POST", path, {**chat(model="llama3.2"), **more})


def whole(calls: Calls, path: str = "/api/chat", **more: object) -> Json:
    """The reply to a request that does not stream."""
    answer = ask(calls, path, stream=False, **more)
    assert answer.status == 200, answer.body
    reply: Json = answer.json
    return reply


# Streams.


@claim("stream defaults to true, as application/x-ndjson")
def _(calls: Calls) -> None:
    answer = ask(calls)
    assert answer.headers["content-type"] == NDJSON
    assert len(answer.lines) > 1


@claim("the chunks of a stream say done: false, the last one done: true")
def _(calls: Calls) -> None:
    told = [chunk["done"] for chunk in ask(calls).lines]
    assert told == [False] * (len(told) - 1) + [True]


@claim("stream: false is one JSON object")
def _(calls: Calls) -> None:
    answer = ask(calls, stream=False)
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json["done"] is True


@claim("a stream says the same as a whole reply")
def _(calls: Calls) -> None:
    options = {"seed": 7, "temperature": 0}
    chunks = ask(calls, options=options).lines
    reply = whole(calls, options=options)
    assert "".join(chunk["message"]["content"] for chunk in chunks) == reply["message"]["content"]
    assert chunks[-1]["eval_count"] == reply["eval_count"]


@claim("a failure in the middle of a stream is a line with an error, under status 200")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="stream-error"))
    answer = ask(calls)
    assert answer.status == 200
    assert answer.lines[0]["done"] is False
    assert answer.lines[-1].keys() == {"error"}


# Replies.


@claim("metrics are omitempty: durations of zero are absent")
def _(calls: Calls) -> None:
    reply = whole(calls)
    assert not set(DURATIONS) & reply.keys()
    assert reply["prompt_eval_count"] > 0
    assert reply["eval_count"] > 0


@claim("metrics are omitempty: an embedding of nothing counts nothing")
def _(calls: Calls) -> None:
    reply = calls.ollama("POST", "/api/embed", {"model": "all-minilm", "input": [""]}).json
    assert "prompt_eval_count" not in reply
    assert "total_duration" not in reply


@claim("durations are in nanoseconds", Settings(latency=Latency(median=0.02)))
def _(calls: Calls) -> None:
    reply = whole(calls)
    assert reply["total_duration"] == 20_000_000
    assert reply["total_duration"] == sum(reply[name] for name in DURATIONS[1:])


@claim("the keys of a chat reply", Settings(latency=Latency(median=0.001)))
def _(calls: Calls) -> None:
    reply = whole(calls)
    counts = {"prompt_eval_count", "eval_count"}
    assert reply.keys() == {"model", "created_at", "message", "done", "done_reason", *DURATIONS, *counts}
    assert reply["message"].keys() == {"role", "content"}


@claim("/api/generate writes response and context")
def _(calls: Calls) -> None:
    reply = whole(calls, "/api/generate", prompt="Hello")
    assert isinstance(reply["response"], str)
    assert isinstance(reply["context"], list)
    assert "message" not in reply


@claim("/api/embed answers one vector per text")
def _(calls: Calls) -> None:
    asked = {"model": "all-minilm", "input": ["a", "b"], "dimensions": 8}
    reply = calls.ollama("POST", "/api/embed", asked).json
    assert [len(vector) for vector in reply["embeddings"]] == [8, 8]
    assert (reply["model"], reply["prompt_eval_count"]) == ("all-minilm", 2)


@claim("done_reason: stop")
def _(calls: Calls) -> None:
    assert whole(calls)["done_reason"] == "stop"


@claim("done_reason: length, where num_predict ends the reply")
def _(calls: Calls) -> None:
    reply = whole(calls, options={"num_predict": 1})
    assert (reply["done_reason"], reply["eval_count"]) == ("length", 1)


@claim("done_reason: load, where nothing is asked")
def _(calls: Calls) -> None:
    chatted = whole(calls, messages=[])
    generated = whole(calls, "/api/generate")
    assert (chatted["done_reason"], chatted["message"]["content"]) == ("load", "")
    assert (generated["done_reason"], generated["response"]) == ("load", "")
    (streamed,) = ask(calls, messages=[]).lines
    assert (streamed["done"], streamed["done_reason"]) == (True, "load")
    assert (calls.books()["free"], calls.books()["requests"]) == (3, 0)


@claim("done_reason: unload, where nothing is asked and keep_alive is 0")
def _(calls: Calls) -> None:
    assert whole(calls, messages=[], keep_alive=0)["done_reason"] == "unload"
    assert whole(calls, "/api/generate", keep_alive="0s")["done_reason"] == "unload"


# Errors.


@claim("400 model is required")
def _(calls: Calls) -> None:
    answer = calls.ollama("POST", "/api/chat", {"messages": []})
    assert (answer.status, answer.json) == (400, {"error": "model is required"})


@claim("404 model 'x' not found")
def _(calls: Calls) -> None:
    answer = ask(calls, model="x")
    assert (answer.status, answer.json) == (404, {"error": "model 'x' not found"})


@claim("500 is an error like the others")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="500"))
    answer = ask(calls)
    assert answer.status == 500
    assert answer.json.keys() == {"error"}


@claim("503 has two spaces in its words")
def _(calls: Calls) -> None:
    calls.emulator.set_faults(Rule(fault="503"))
    answer = ask(calls)
    assert (answer.status, answer.json) == (503, {"error": BUSY})


@claim("there are no rate headers, whatever the limits", Settings(limits=RateLimits(requests_per_minute=1)))
def _(calls: Calls) -> None:
    for answer in (ask(calls), ask(calls)):
        assert not [name for name in answer.headers if "ratelimit" in name]
    assert answer.status == 429


# The queue.


def _queue(calls: Calls, stack: ExitStack, count: int) -> None:
    """So many requests that nobody waits for, all of them arrived."""
    host, port = calls.address.split(":")
    body = b'{"model":"llama3.2","messages":[{"role":"user","content":"hi"}]}'
    head = b"POST /api/chat HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
    for _ in range(count):
        stack.enter_context(socket.create_connection((host, int(port)))).sendall(head + body)
    until = time.monotonic() + 20
    while calls.books()["received"] < count:
        assert time.monotonic() < until


SLOW = Latency(median=60)


@claim(
    "one request at a time: others wait", Settings(latency=Latency(median=0.05), limits=RateLimits(ollama_parallel=1))
)
def _(calls: Calls) -> None:
    began = time.monotonic()
    with ExitStack() as stack:
        _queue(calls, stack, 3)
        assert ask(calls).status == 200
    assert time.monotonic() - began > 0.18


@claim("a full queue is a 503", Settings(latency=SLOW, limits=RateLimits(ollama_parallel=1, ollama_queue=2)))
def _(calls: Calls) -> None:
    with ExitStack() as stack:
        _queue(calls, stack, 3)
        answer = ask(calls)
    assert (answer.status, answer.json) == (503, {"error": BUSY})


@claim("the queue holds 512 unless told otherwise", Settings(latency=SLOW, limits=RateLimits(ollama_parallel=1)))
def _(calls: Calls) -> None:
    with ExitStack() as stack:
        _queue(calls, stack, 1 + 512)
        assert calls.books()["refused"] == 0
        assert ask(calls).status == 503


# What it says of itself.


@claim("/api/tags lists the models")
def _(calls: Calls) -> None:
    listed = calls.ollama("GET", "/api/tags").json["models"]
    assert "llama3.2" in {model["name"] for model in listed}


@claim("/api/ps lists what is loaded")
def _(calls: Calls) -> None:
    assert {"name", "expires_at", "size_vram"} <= calls.ollama("GET", "/api/ps").json["models"][0].keys()


@claim("/api/version tells a version")
def _(calls: Calls) -> None:
    assert calls.ollama("GET", "/api/version").json["version"].count(".") == 2
