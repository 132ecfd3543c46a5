"""OpenAI's dialect, and that of the many servers that speak it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec

from groundswell.dialects import Call
from groundswell.dialects.bodies import (
    LARGEST_COUNT,
    call,
    counted,
    embedded,
    name_of,
    odd_number,
    opened,
    refused,
    tool_call,
)
from groundswell.dialects.faults import BROKEN, garbled
from groundswell.dialects.schemas import ANY_OBJECT, strict, too_deep
from groundswell.dialects.standings import Names, read
from groundswell.program.request import (
    Chat,
    Embed,
    Embedding,
    Fault,
    FaultKind,
    Image,
    Message,
    Reply,
    Request,
    Standing,
    Text,
    Tool,
    ToolCall,
    Usage,
)

CHAT_PATH = "/v1/chat/completions"
EMBED_PATH = "/v1/embeddings"
HEALTH_PATH = "/v1/models"
REASONING_LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
FINISHES = {"length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls"}
RATE_LIMITS = (
    Names.of("requests", "x-ratelimit-{}-requests"),
    Names.of("tokens", "x-ratelimit-{}-tokens"),
    Names.of("project_tokens", "x-ratelimit-{}-project-tokens"),
)

_REASONERS = re.compile(r"(?:.*/)?(o\d|gpt-5)")
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")


@lru_cache(maxsize=1024)
def wants_completion_tokens(model: str) -> bool:
    """Whether a model takes `max_completion_tokens` and rejects the older `max_tokens`."""
    return _REASONERS.match(model) is not None


def headers(key: str | None) -> dict[str, str]:
    """The headers of every call."""
    sent = {"content-type": "application/json"}
    return sent if key is None else {**sent, "authorization": f"Bearer {key}"}


def standings(headers: Mapping[str, str], now: float) -> tuple[Standing, ...]:
    """What the headers of an answer say of rate limits; `now` is in Unix time."""
    return read(headers, RATE_LIMITS, now)


def encode(request: Request, model: str) -> Call | Fault:
    """What to send for a request."""
    if isinstance(request, Embed):
        # The official client asks for base64 too: a quarter of the bytes, and nothing to parse.
        asked: dict[str, Any] = {"model": model, "input": list(request.texts), "encoding_format": "base64"}
        if request.dimensions is not None:
            asked["dimensions"] = request.dimensions
        return call(EMBED_PATH, asked, request.extra)
    if request.reasoning is not None and request.reasoning not in REASONING_LEVELS:
        levels = ", ".join(REASONING_LEVELS)
        return refused(f"reasoning={request.reasoning!r}: OpenAI knows {levels}; for others use extra")
    problem = odd_number(request) or too_deep(request.schema)
    return refused(problem) if problem else call(CHAT_PATH, _chat(request, model), request.extra)


class _Body(msgspec.Struct, omit_defaults=True):
    """A chat request as OpenAI takes it; what is None is left out."""

    model: str
    messages: list[dict[str, Any] | Message]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    response_format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    reasoning_effort: str | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


def _chat(chat: Chat, model: str) -> _Body:
    newer = wants_completion_tokens(model)
    return _Body(
        model,
        [_message(message) for message in chat.messages],
        None if newer else chat.max_tokens,
        chat.max_tokens if newer else None,
        chat.temperature,
        chat.top_p,
        chat.seed,
        chat.stop or None,
        None if chat.schema is None else _response_format(chat.schema),
        [_tool(tool) for tool in chat.tools] or None,
        _tool_choice(chat.tool_choice),
        chat.reasoning,
        None if chat.logprobs is None else True,
        chat.logprobs or None,
    )


def _message(message: Message) -> dict[str, Any] | Message:
    content = message.content
    if type(content) is str and not message.tool_calls:
        return message  # written down, it is what OpenAI wants
    made: dict[str, Any] = {
        "role": message.role,
        "content": content if isinstance(content, str) else [_part(part) for part in content],
    }
    if message.tool_calls:
        made["content"] = made["content"] or None
        made["tool_calls"] = [_made_call(one) for one in message.tool_calls]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    return made


def _part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = part.url if part.data is None else f"data:{part.media_type};base64,{part.data}"
    return {"type": "image_url", "image_url": {"url": url}}


def _made_call(made: ToolCall) -> dict[str, Any]:
    return {"id": made.id, "type": "function", "function": {"name": made.name, "arguments": made.arguments}}


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": {key: value for key, value in function.items() if value}}


def _tool_choice(choice: str | None) -> str | dict[str, Any] | None:
    if choice in (None, "none", "auto", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema is sent as strict as it can be; "any object" is what OpenAI calls JSON mode."""
    if schema == ANY_OBJECT:
        return {"type": "json_object"}
    title = schema.get("title")
    name = _UNFIT.sub("_", title)[:64] if isinstance(title, str) else ""
    tight = strict(schema)
    named = {"name": name or "reply", "schema": schema if tight is None else tight, "strict": tight is not None}
    return {"type": "json_schema", "json_schema": named}


def decode(
    request: Request, status: int, headers: Mapping[str, str], body: bytes, now: float
) -> Reply | Embedding | Fault:
    """What an answer means."""
    if status == 200 and type(request) is Chat and (plain := _plain_reply(request, headers, body)) is not None:
        return plain
    data = opened(status, headers, body, now)
    if isinstance(data, Fault):
        return data
    return _embedding(request, data) if isinstance(request, Embed) else _reply(request, data)


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Said(msgspec.Struct):
    content: str
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: Literal["stop", "length"]
    logprobs: Any = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage
    model: str
    object: Literal["chat.completion"]
    error: Any = None
    type: Any = None


_completions = msgspec.json.Decoder(_Completion)


def _plain_reply(chat: Chat, headers: Mapping[str, str], body: bytes) -> Reply | None:
    """The reply of an answer that is as almost all are, read a few times faster; None for any other."""
    if not headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        data = _completions.decode(body)
    except BROKEN:
        return None
    if not data.choices or data.error or data.type == "error":
        return None
    choice, usage = data.choices[0], data.usage
    message = choice.message
    if message.tool_calls or (message.refusal is not None and not message.content):
        return None
    taken, made = usage.prompt_tokens_details or _NO_DETAILS, usage.completion_tokens_details or _NO_DETAILS
    counts = (usage.prompt_tokens, usage.completion_tokens, taken.cached_tokens or 0, made.reasoning_tokens or 0)
    if min(counts) < 0 or max(counts) > LARGEST_COUNT:
        return None
    logprobs = None if chat.logprobs is None else _logprobs(chat, {"logprobs": choice.logprobs})
    thoughts = message.reasoning_content or message.reasoning
    return Reply(message.content, Usage(*counts), choice.finish_reason, data.model, (), thoughts, logprobs)


_NO_DETAILS = _Details()


def _reply(chat: Chat, data: dict[str, Any]) -> Reply | Fault:
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return garbled("an answer without a choice")
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        return Fault(FaultKind.FILTERED, "the provider's content filter held the reply back")
    calls = _calls(message.get("tool_calls"))
    if calls is None:
        return garbled("a tool call without a name or arguments")
    text, finish = message.get("content"), FINISHES.get(reason, "stop") if isinstance(reason, str) else "stop"
    refusal = message.get("refusal")
    if isinstance(refusal, str) and not text and (refusal or text is None):
        text, finish = refusal, "refusal"
    elif calls and finish == "stop":
        finish = "tool_calls"  # which OpenAI calls a stop when the tool was forced
    if text is None and (calls or finish == "length"):
        text = ""  # a model that thinks may spend all its tokens on that
    if not isinstance(text, str):
        return garbled("a choice without text, refusal or tool calls")
    return Reply(text, _usage(data), finish, name_of(data), calls, _reasoning(message), _logprobs(chat, choice))


def _calls(given: object) -> tuple[ToolCall, ...] | None:
    calls: list[ToolCall] = []
    for at, one in enumerate(given if isinstance(given, list) else ()):
        function = one.get("function") if isinstance(one, dict) else None
        made = isinstance(function, dict) and tool_call(
            at, one.get("id"), function.get("name"), function.get("arguments")
        )
        if not made:
            return None
        calls.append(made)
    return tuple(calls)


def _usage(data: dict[str, Any]) -> Usage:
    usage = data.get("usage")
    return Usage(
        counted(usage, "prompt_tokens"),
        counted(usage, "completion_tokens"),
        counted(usage, "prompt_tokens_details", "cached_tokens"),
        counted(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def _reasoning(message: dict[str, Any]) -> str | None:
    """The thoughts: OpenAI keeps them, servers that speak its dialect use either of two names."""
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    return thoughts if isinstance(thoughts, str) else None


def _logprobs(chat: Chat, choice: dict[str, Any]) -> list[Any] | None:
    given = choice.get("logprobs")
    tokens = given.get("content") if chat.logprobs is not None and isinstance(given, dict) else None
    return tokens if isinstance(tokens, list) else None


def _embedding(embed: Embed, data: dict[str, Any]) -> Embedding | Fault:
    rows = data.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return garbled("an answer without embeddings")
    places = [row.get("index", at) for at, row in enumerate(rows)]
    if sorted(place for place in places if type(place) is int) != list(range(len(rows))):
        return garbled("embeddings that do not say whose they are")
    vectors = [row.get("embedding") for _, row in sorted(zip(places, rows, strict=True), key=lambda one: one[0])]
    return embedded(vectors, len(embed.texts), _usage(data), name_of(data))
