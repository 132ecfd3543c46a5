"""Anthropic's format, from the server's side: messages, models and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from groundswell.emulator.wire import About, Rejected
from groundswell.emulator.wire.anthropic_requests import read_chat
from groundswell.emulator.wire.pieces import dump, timestamp, words
from groundswell.emulator.wire.prompt_cache import CachePoint, cache_points
from groundswell.program.request import Reply, Usage

__all__ = [
    "CachePoint",
    "cache_points",
    "read_chat",
    "stream_message",
    "write_error",
    "write_message",
    "write_model",
    "write_models",
]

Tier = Literal["standard", "priority", "batch"]

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    "content_filter": "refusal",
}
SIGNATURE = "ZW11bGF0ZWQ="
"""A placeholder for the signature of thinking."""


def write_message(reply: Reply, about: About, tier: Tier = "standard", *, for_an_hour: int = 0) -> dict[str, Any]:
    """A `message` object; `for_an_hour` is the part of the cache writes that is kept for an hour."""
    refused = reply.finish == "refusal"
    return {
        "id": about.id,
        "type": "message",
        "role": "assistant",
        "model": about.model,
        "content": _blocks(reply),
        "stop_reason": STOP_REASONS.get(reply.finish, "end_turn"),
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "category": None, "explanation": None} if refused else None,
        "usage": _usage(reply.usage, for_an_hour, tier),
    }


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text, "citations": None})
    for call in reply.tool_calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)})
    return blocks


def _input(arguments: str) -> dict[str, Any]:
    """A tool's arguments as an object; anything else is quoted."""
    try:
        decoded = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        decoded = arguments
    return decoded if isinstance(decoded, dict) else {"value": decoded}


def _usage(usage: Usage, hour: int, tier: Tier) -> dict[str, Any]:
    """Anthropic counts cached input separately from other input."""
    read, written = usage.cached_tokens, usage.cache_write_tokens
    return {
        "input_tokens": max(0, usage.input_tokens - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens} if usage.reasoning_tokens else None,
        "service_tier": tier,
    }


def stream_message(reply: Reply, about: About, tier: Tier = "standard", *, for_an_hour: int = 0) -> Iterator[bytes]:
    """The same as server-sent events."""
    whole = write_message(reply, about, tier, for_an_hour=for_an_hour)
    usage = whole["usage"]
    begun = {**usage, "output_tokens": min(1, usage["output_tokens"]), "output_tokens_details": None}
    yield _event(
        "message_start",
        message={**whole, "content": [], "stop_reason": None, "stop_details": None, "usage": begun},
    )
    yield _event("ping")
    for index, block in enumerate(whole["content"]):
        empty, deltas = _unrolled(block)
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {key: whole[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    counted = {key: value for key, value in usage.items() if key not in ("cache_creation", "service_tier")}
    yield _event("message_delta", delta=ending, usage=counted)
    yield _event("message_stop")


def _event(name: str, **data: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + dump({"type": name, **data}) + b"\n\n"


def _unrolled(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The start of a content block, and the chunks that fill it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": word} for word in words(block["text"])]
    if block["type"] == "thinking":
        pieces = [{"type": "thinking_delta", "thinking": word} for word in words(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*pieces, signed]
    written = dump(block["input"]).decode()
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": word} for word in words(written)]


def write_error(rejected: Rejected, request_id: str) -> dict[str, Any]:
    """An error body."""
    error = {"type": rejected.kind, "message": rejected.message}
    return {"type": "error", "error": error, "request_id": request_id}


def write_models(names: Sequence[str], created: float) -> dict[str, Any]:
    """GET /v1/models: one page with all models."""
    return {
        "data": [write_model(name, created) for name in names],
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }


def write_model(name: str, created: float) -> dict[str, Any]:
    """GET /v1/models/{name}."""
    shown = name.replace("-", " ").title()
    return {
        "type": "model",
        "id": name,
        "display_name": shown,
        "created_at": timestamp(created),
        "lifecycle": "active",
    }
