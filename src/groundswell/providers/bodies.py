"""Writing request bodies and reading answers: what the wire formats share."""

from __future__ import annotations

import math
from array import array
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from groundswell.program.request import UNSENDABLE, Chat, Embedding, Fault, FaultKind, ToolCall, Usage
from groundswell.providers.faults import (
    SHARED,
    FaultTable,
    fault_of_answer,
    fault_of_error,
    garbled,
    load_json,
    read_error,
)
from groundswell.providers.provider import Call

LARGEST_COUNT = 2**53
JSON_TYPE = {"content-type": "application/json"}

_dump = msgspec.json.Encoder().encode


def bad_request(problem: str) -> Fault:
    """A request that this provider does not support. The message names the setting and what to change."""
    return Fault(FaultKind.BAD_REQUEST, problem)


def non_finite_setting(chat: Chat) -> str | None:
    """The setting that is not a finite number. JSON would send it as null, which means the default."""
    if chat.temperature is not None and not math.isfinite(chat.temperature):
        return f"temperature={chat.temperature}: must be a finite number"
    if chat.top_p is not None and not math.isfinite(chat.top_p):
        return f"top_p={chat.top_p}: must be a finite number"
    return None


def build_call(path: str, body: dict[str, Any] | msgspec.Struct, extra: Mapping[str, Any] | None) -> Call | Fault:
    """The call that sends a body, with the request's `extra` merged over it."""
    if extra and "stream" in extra:
        return bad_request("extra['stream']: streaming is not supported; remove it")
    try:
        if extra:
            plain = body if isinstance(body, dict) else msgspec.json.decode(_dump(body))
            return Call(path, _dump({**plain, **extra}))
        return Call(path, _dump(body))
    except UnicodeEncodeError:
        return UNSENDABLE
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return bad_request(f"the request cannot be encoded as JSON: {error}")


def read_object(
    status: int, headers: Mapping[str, str], body: bytes, now: float, faults: FaultTable = SHARED
) -> dict[str, Any] | Fault:
    """The JSON object of a successful answer, else its fault."""
    if not 200 <= status < 300:
        return fault_of_answer(status, headers, body, now, faults)
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if kind and not any(fit in kind.lower() for fit in ("json", "text/plain", "octet-stream")):
        return garbled(f"HTTP {status} with content type {kind.partition(';')[0].strip()[:50]}, not JSON")
    data = load_json(body)
    said = read_error(data)
    if said:
        return fault_of_error(said, headers, now, faults)
    if not isinstance(data, dict):
        what = "an empty body" if not body else "a body that is not a JSON object or is truncated"
        return garbled(f"HTTP {status} with {what}")
    return data


def read_count(usage: object, *path: str) -> int:
    """A number of tokens from a usage object; 0 if it is missing or invalid."""
    for key in path:
        usage = usage.get(key) if isinstance(usage, dict) else None
    return usage if type(usage) is int and 0 <= usage <= LARGEST_COUNT else 0


def read_model_name(data: Mapping[str, Any]) -> str | None:
    """The name of the model that answered."""
    model = data.get("model")
    return model if isinstance(model, str) else None


def read_tool_call(at: int, call_id: object, name: object, arguments: object) -> ToolCall | None:
    """Read a tool call, or None if it is invalid. Arguments may be text or an object."""
    if not isinstance(name, str):
        return None
    if isinstance(arguments, dict):
        arguments = _dump(arguments).decode()
    if not isinstance(arguments, str):
        return None
    return ToolCall(call_id if isinstance(call_id, str) and call_id else f"call_{at}", name, arguments)


def read_arguments(arguments: str) -> dict[str, Any] | None:
    """The arguments of a tool call as an object, or None if they are not one."""
    data = load_json(arguments)
    return data if isinstance(data, dict) else None


def read_embedding(vectors: Sequence[object], wanted: int, usage: Usage, model: str | None) -> Embedding | Fault:
    """The embedding of `wanted` texts, from vectors of numbers or of base64."""
    if len(vectors) != wanted:
        return garbled(f"the answer has {len(vectors)} embeddings for {wanted} texts")
    packed = [_packed(vector) for vector in vectors]
    widths = {0 if one is None else len(one) for one in packed}
    if len(widths) > 1 or 0 in widths:
        return garbled("an embedding is not a vector, or vectors differ in length")
    whole = array("f")
    for one in packed:
        whole += one or array("f")
    if not all(map(math.isfinite, whole)):
        return garbled("an embedding has a number that is not finite")
    return Embedding(whole.tobytes(), widths.pop() if widths else 0, usage, model)


def _packed(vector: object) -> array[float] | None:
    packed = array("f")
    try:
        if isinstance(vector, str):
            packed.frombytes(b64decode(vector, validate=True))
        elif isinstance(vector, list):
            packed.extend(vector)
    except (ValueError, TypeError, OverflowError):
        return None
    return packed
