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
    """A request that this provider cannot be sent; the message names the setting and says what to do."""
    return Fault(FaultKind.BAD_REQUEST, problem)


def non_finite_setting(chat: Chat) -> str | None:
    """The setting that is not a number that JSON can hold: it would be sent as null, which is the default."""
    if chat.temperature is not None and not math.isfinite(chat.temperature):
        return f"temperature={chat.temperature}: give a finite number"
    if chat.top_p is not None and not math.isfinite(chat.top_p):
        return f"top_p={chat.top_p}: give a finite number"
    return None


def build_call(path: str, body: dict[str, Any] | msgspec.Struct, extra: Mapping[str, Any] | None) -> Call | Fault:
    """The call that sends a body, with what the program wants passed through merged over it."""
    if extra and "stream" in extra:
        return bad_request("extra['stream']: replies are read whole; leave it out")
    try:
        if extra:
            plain = body if isinstance(body, dict) else msgspec.json.decode(_dump(body))
            return Call(path, _dump({**plain, **extra}))
        return Call(path, _dump(body))
    except UnicodeEncodeError:
        return UNSENDABLE
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return bad_request(f"the request holds something that JSON cannot: {error}")


def read_object(
    status: int, headers: Mapping[str, str], body: bytes, now: float, faults: FaultTable = SHARED
) -> dict[str, Any] | Fault:
    """The JSON object of a good answer, or the fault that it is instead."""
    if not 200 <= status < 300:
        return fault_of_answer(status, headers, body, now, faults)
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if kind and not any(fit in kind.lower() for fit in ("json", "text/plain", "octet-stream")):
        return garbled(f"HTTP {status} with content of type {kind.partition(';')[0].strip()[:50]}, not JSON")
    data = load_json(body)
    said = read_error(data)
    if said:
        return fault_of_error(said, headers, now, faults)
    if not isinstance(data, dict):
        what = "an empty body" if not body else "a body that is not a JSON object, or is cut short"
        return garbled(f"HTTP {status} with {what}")
    return data


def read_count(usage: object, *path: str) -> int:
    """A number of tokens from a usage object; none where it is missing or cannot be one."""
    for key in path:
        usage = usage.get(key) if isinstance(usage, dict) else None
    return usage if type(usage) is int and 0 <= usage <= LARGEST_COUNT else 0


def read_model_name(data: Mapping[str, Any]) -> str | None:
    """The model that says it answered."""
    model = data.get("model")
    return model if isinstance(model, str) else None


def read_tool_call(at: int, call_id: object, name: object, arguments: object) -> ToolCall | None:
    """A tool call as the model made it, or None where it is none. Arguments may come as text or as an object."""
    if not isinstance(name, str):
        return None
    if isinstance(arguments, dict):
        arguments = _dump(arguments).decode()
    if not isinstance(arguments, str):
        return None
    return ToolCall(call_id if isinstance(call_id, str) and call_id else f"call_{at}", name, arguments)


def read_arguments(arguments: str) -> dict[str, Any] | None:
    """The arguments of a tool call as an object, or None where they are something else."""
    data = load_json(arguments)
    return data if isinstance(data, dict) else None


def read_embedding(vectors: Sequence[object], wanted: int, usage: Usage, model: str | None) -> Embedding | Fault:
    """The embedding of so many texts, from vectors of numbers or of base64."""
    if len(vectors) != wanted:
        return garbled(f"{len(vectors)} embeddings for {wanted} texts")
    packed = [_packed(vector) for vector in vectors]
    widths = {0 if one is None else len(one) for one in packed}
    if len(widths) > 1 or 0 in widths:
        return garbled("an embedding that is no vector, or vectors of different widths")
    whole = array("f")
    for one in packed:
        whole += one or array("f")
    if not all(map(math.isfinite, whole)):
        return garbled("an embedding with a number that is not finite")
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
