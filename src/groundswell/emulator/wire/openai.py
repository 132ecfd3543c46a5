"""OpenAI's format, from the server's side: chat completions, embeddings, models and errors."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from groundswell.emulator.wire import About, Rejected
from groundswell.emulator.wire.openai_requests import read_chat, read_embed
from groundswell.emulator.wire.pieces import dump, words
from groundswell.program.request import Embedding, Reply

__all__ = [
    "read_chat",
    "read_embed",
    "stream_chat",
    "write_chat",
    "write_embed",
    "write_error",
    "write_model",
    "write_models",
]


def write_chat(replies: Sequence[Reply], about: About) -> dict[str, Any]:
    """A `chat.completion` object with one choice per reply."""
    return {
        "id": about.id,
        "object": "chat.completion",
        "created": int(about.created),
        "model": about.model,
        "choices": [_choice(index, reply) for index, reply in enumerate(replies)],
        "usage": _usage(replies),
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _choice(index: int, reply: Reply) -> dict[str, Any]:
    refused = reply.finish == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused or (reply.tool_calls and not reply.text) else reply.text,
        "refusal": reply.text if refused else None,
        "annotations": [],
    }
    if reply.tool_calls:
        message["tool_calls"] = [_tool_call(call.id, call.name, call.arguments) for call in reply.tool_calls]
    logprobs = None if reply.logprobs is None else {"content": reply.logprobs, "refusal": None}
    return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": _finish(reply)}


def _finish(reply: Reply) -> str:
    return "stop" if reply.finish == "refusal" else reply.finish


def _tool_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _usage(replies: Sequence[Reply]) -> dict[str, Any]:
    """The prompt is charged once, however many choices there are."""
    prompt = replies[0].usage
    written = sum(reply.usage.output_tokens for reply in replies)
    reasoning = sum(reply.usage.reasoning_tokens for reply in replies)
    return {
        "prompt_tokens": prompt.input_tokens,
        "completion_tokens": written,
        "total_tokens": prompt.input_tokens + written,
        "prompt_tokens_details": {"cached_tokens": prompt.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def stream_chat(replies: Sequence[Reply], about: About, usage: bool) -> Iterator[bytes]:
    """The same as server-sent events, one choice after another; `usage` adds a last chunk with the usage."""
    head = {
        "id": about.id,
        "object": "chat.completion.chunk",
        "created": int(about.created),
        "model": about.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }
    if usage:
        head["usage"] = None
    for index, reply in enumerate(replies):
        for delta in _deltas(reply):
            yield _event(head, index, delta, None)
        yield _event(head, index, {}, _finish(reply))
    if usage:
        yield b"data: " + dump({**head, "choices": [], "usage": _usage(replies)}) + b"\n\n"
    yield b"data: [DONE]\n\n"


def _event(head: dict[str, Any], index: int, delta: dict[str, Any], finish: str | None) -> bytes:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    return b"data: " + dump({**head, "choices": [choice]}) + b"\n\n"


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    """The chunks of a reply: the role, the words, then the tool calls."""
    key = "refusal" if reply.finish == "refusal" else "content"
    yield {"role": "assistant", key: "", "refusal": None} if key == "content" else {"role": "assistant", key: ""}
    for word in words(reply.text):
        yield {key: word}
    for at, call in enumerate(reply.tool_calls):
        yield {"tool_calls": [{"index": at, **_tool_call(call.id, call.name, "")}]}
        for word in words(call.arguments):
            yield {"tool_calls": [{"index": at, "function": {"arguments": word}}]}


def write_embed(embedding: Embedding, about: About, base64: bool) -> dict[str, Any]:
    """A list of embeddings, as numbers or as base64 of 32-bit floats."""
    vectors = _packed(embedding) if base64 else embedding.vectors
    counted = embedding.usage.input_tokens
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)],
        "model": about.model,
        "usage": {"prompt_tokens": counted, "total_tokens": counted},
    }


def _packed(embedding: Embedding) -> list[str]:
    step = 4 * embedding.width or 1
    packed = embedding.packed
    return [b64encode(packed[at : at + step]).decode() for at in range(0, len(packed), step)]


def write_error(rejected: Rejected) -> dict[str, Any]:
    """An error body, with all four keys."""
    error = {"message": rejected.message, "type": rejected.kind, "param": rejected.param, "code": rejected.code}
    return {"error": error}


def write_models(names: Iterable[str], created: float) -> dict[str, Any]:
    """GET /v1/models."""
    return {"object": "list", "data": [write_model(name, created) for name in names]}


def write_model(name: str, created: float) -> dict[str, Any]:
    """GET /v1/models/{name}."""
    return {"id": name, "object": "model", "created": int(created), "owned_by": "groundswell"}
