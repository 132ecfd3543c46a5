"""Ollama's format, from the server's side: chat, generate, embed, and the installed models.

Ollama leaves out counts and durations that are zero; so does this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from groundswell.emulator.wire import About, Rejected
from groundswell.emulator.wire.ollama_requests import read_chat, read_embed, read_generate
from groundswell.emulator.wire.pieces import dump, timestamp, words
from groundswell.program.request import Embedding, Reply, ToolCall

__all__ = [
    "read_chat",
    "read_embed",
    "read_generate",
    "stream_chat",
    "write_chat",
    "write_embed",
    "write_error",
    "write_ps",
    "write_show",
    "write_tags",
]

SIZE = 2_019_393_189
CONTEXT = 131_072
DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "emulated",
    "families": ["emulated"],
    "parameter_size": "3.2B",
    "quantization_level": "Q4_K_M",
}


def write_chat(reply: Reply, about: About, legacy: bool, seconds: float) -> dict[str, Any]:
    """The answer of /api/chat, or of /api/generate if `legacy`; `seconds` is the duration."""
    calls = [_tool_call(call) for call in reply.tool_calls]
    body = _head(about) | _said(reply.text, reply.reasoning, calls, legacy)
    if reply.logprobs is not None:
        body["logprobs"] = reply.logprobs
    return body | _ending(reply, legacy, seconds)


def _head(about: About) -> dict[str, Any]:
    return {"model": about.model, "created_at": timestamp(about.created)}


def _said(text: str, thinking: str | None, calls: list[dict[str, Any]], legacy: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"response": text} if legacy else {"role": "assistant", "content": text}
    if thinking:
        said["thinking"] = thinking
    if calls:
        said["tool_calls"] = calls
    return said if legacy else {"message": said}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """Ollama's arguments are an object; anything else is quoted."""
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        arguments = call.arguments
    if not isinstance(arguments, dict):
        arguments = {"value": arguments}
    return {"id": call.id, "function": {"name": call.name, "arguments": arguments}}


def _ending(reply: Reply, legacy: bool, seconds: float) -> dict[str, Any]:
    """Ollama has two finish reasons; a tool call or a refusal is a stop."""
    total = round(seconds * 1e9)
    metrics = {
        "total_duration": total,
        "load_duration": total // 50,
        "prompt_eval_count": reply.usage.input_tokens,
        "prompt_eval_duration": total // 10,
        "eval_count": reply.usage.output_tokens,
        "eval_duration": total - total // 50 - total // 10,
    }
    ending: dict[str, Any] = {"done": True, "done_reason": "length" if reply.finish == "length" else "stop"}
    if legacy:
        ending["context"] = []
    ending.update((key, value) for key, value in metrics.items() if value)
    return ending


def stream_chat(reply: Reply, about: About, legacy: bool, seconds: float) -> Iterator[bytes]:
    """The same as lines of JSON: one per word, then an empty one with the finish reason."""
    head = _head(about)
    for word in words(reply.reasoning or ""):
        yield _line(head | _said("", word, [], legacy) | {"done": False})
    for word in words(reply.text):
        yield _line(head | _said(word, None, [], legacy) | {"done": False})
    if reply.tool_calls:
        calls = [_tool_call(call) for call in reply.tool_calls]
        yield _line(head | _said("", None, calls, legacy) | {"done": False})
    yield _line(head | _said("", None, [], legacy) | _ending(reply, legacy, seconds))


def _line(body: dict[str, Any]) -> bytes:
    return dump(body) + b"\n"


def write_embed(embedding: Embedding, about: About, seconds: float) -> dict[str, Any]:
    """The answer of /api/embed."""
    body: dict[str, Any] = {"model": about.model, "embeddings": embedding.vectors}
    total = round(seconds * 1e9)
    metrics = {
        "total_duration": total,
        "load_duration": total // 10,
        "prompt_eval_count": embedding.usage.input_tokens,
    }
    body.update((key, value) for key, value in metrics.items() if value)
    return body


def write_error(rejected: Rejected) -> dict[str, Any]:
    """An error body."""
    return {"error": rejected.message}


def write_tags(names: Iterable[str], modified: float = 0.0) -> dict[str, Any]:
    """GET /api/tags: the installed models."""
    return {"models": [{**_model(name), "modified_at": timestamp(modified)} for name in names]}


def write_ps(names: Iterable[str], expires: float = 0.0) -> dict[str, Any]:
    """GET /api/ps: the loaded models, and until when."""
    loaded = {"expires_at": timestamp(expires), "size_vram": SIZE, "context_length": CONTEXT}
    return {"models": [_model(name) | loaded for name in names]}


def _model(name: str) -> dict[str, Any]:
    digest = sha256(name.encode()).hexdigest()
    return {"name": name, "model": name, "size": SIZE, "digest": digest, "details": DETAILS}


def write_show(name: str, modified: float = 0.0) -> dict[str, Any]:
    """POST /api/show."""
    return {
        "modelfile": f"# An emulated model\nFROM {name}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": DETAILS,
        "model_info": {"general.architecture": "emulated", "emulated.context_length": CONTEXT},
        "capabilities": ["completion", "tools", "vision", "thinking", "embedding"],
        "modified_at": timestamp(modified),
    }
