"""Anthropic's dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal

from groundswell.dialects import Call
from groundswell.dialects.bodies import call, counted, name_of, object_of, odd_number, opened, refused, tool_call
from groundswell.dialects.faults import garbled
from groundswell.dialects.schemas import closed, looseness, too_deep, unlimited
from groundswell.dialects.standings import Names, read
from groundswell.program.request import (
    Chat,
    Embed,
    Embedding,
    Fault,
    Image,
    Message,
    Reply,
    Request,
    Standing,
    Text,
    ToolCall,
    Usage,
)

PATH = "/v1/messages"
HEALTH_PATH = "/v1/models"
VERSION = "2023-06-01"
MAX_TOKENS = 4096
"""Anthropic wants a limit; this one is used where the program sets none."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}
CHOICES = {"auto": "auto", "required": "any", "none": "none"}

SPLIT_LIMITS = (
    Names.of("requests", "anthropic-ratelimit-requests-{}"),
    Names.of("input_tokens", "anthropic-ratelimit-input-tokens-{}"),
    Names.of("output_tokens", "anthropic-ratelimit-output-tokens-{}"),
)
COMBINED_LIMIT = (Names.of("tokens", "anthropic-ratelimit-tokens-{}"),)

Cache = Literal["5m", "1h"]


def headers(key: str | None) -> dict[str, str]:
    """The headers of every call."""
    sent = {"content-type": "application/json", "anthropic-version": VERSION}
    return sent if key is None else {**sent, "x-api-key": key}


def standings(headers: Mapping[str, str], now: float) -> tuple[Standing, ...]:
    """What the headers of an answer say of rate limits; `now` is in Unix time.

    `tokens` repeats whichever of the token limits is nearest. It counts only where it may be another one.
    """
    split = read(headers, SPLIT_LIMITS, now)
    of_tokens = [standing[1:3] for standing in split if standing.resource != "requests"]
    if len(of_tokens) == 2:
        return split
    combined = read(headers, COMBINED_LIMIT, now)
    return split if combined and combined[0][1:3] in of_tokens else split + combined


def encode(request: Request, model: str, *, cache: Cache | None = "5m") -> Call | Fault:
    """What to send for a request; `cache` says how long the provider should keep the prompt, if at all."""
    if isinstance(request, Embed):
        return refused("Anthropic has no embeddings; use a model of another provider")
    problem = _unfit(request)
    return refused(problem) if problem else call(PATH, _chat(request, model, cache), request.extra)


def _unfit(chat: Chat) -> str | None:
    """The first setting that Anthropic has no equivalent for."""
    problem = odd_number(chat) or too_deep(chat.schema)
    if problem:
        return problem
    if chat.temperature is not None and not 0 <= chat.temperature <= 1:
        return f"temperature={chat.temperature:g}: Anthropic takes 0 to 1"
    if chat.logprobs is not None:
        return "logprobs: Anthropic gives none; leave it out"
    if chat.reasoning not in (None, "none", *EFFORTS):
        return f"reasoning={chat.reasoning!r}: Anthropic knows none, {', '.join(EFFORTS)}; for others use extra"
    if chat.schema is not None and looseness(closed(chat.schema), all_required=False):
        return "schema: Anthropic wants the properties of every object named; describe them, or leave the schema out"
    for message in chat.messages:
        for made in message.tool_calls:
            if object_of(made.arguments) is None:
                return f"messages: the arguments of the tool call {made.id!r} are not a JSON object"
    return None


def _chat(chat: Chat, model: str, cache: Cache | None) -> dict[str, Any]:
    told = list(takewhile(lambda message: message.role == "system", chat.messages))
    system = [block for message in told for block in _blocks(message.content)]
    messages = _messages(chat.messages[len(told) :])
    if cache is not None:
        _mark(system, messages, cache)
    # There is no seed here: Anthropic has none. Leaving it out costs nothing but repeatability, which no provider
    # promises, and a program that seeds every ask can then run on every provider.
    settings: dict[str, Any] = {
        "system": system or None,
        "temperature": chat.temperature,
        "top_p": chat.top_p,
        "stop_sequences": list(chat.stop) or None,
        "tools": [_tool(tool.name, tool.description, tool.parameters) for tool in chat.tools] or None,
        "tool_choice": None if chat.tool_choice is None else _tool_choice(chat.tool_choice),
        **_output(chat),
    }
    limit = MAX_TOKENS if chat.max_tokens is None else chat.max_tokens
    body: dict[str, Any] = {"model": model, "max_tokens": limit, "messages": messages}
    body.update((key, value) for key, value in settings.items() if value is not None)
    return body


def _mark(system: list[dict[str, Any]], messages: list[dict[str, Any]], cache: Cache) -> None:
    """Mark what later requests will begin with: the system prompt, and a conversation that has begun to grow.

    A first prompt is not marked: writing the cache costs a quarter more, and most are never read again.
    """
    marker = {"type": "ephemeral"} if cache == "5m" else {"type": "ephemeral", "ttl": cache}
    if system:
        system[-1]["cache_control"] = marker
    if messages and messages[-1]["content"] and any(message["role"] == "assistant" for message in messages):
        messages[-1]["content"][-1]["cache_control"] = marker


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The turns. Results of tools that were called together go back together, as Anthropic wants them."""
    turns: list[dict[str, Any]] = []
    before = ""
    for message in messages:
        if message.role == "tool" and before == "tool":
            turns[-1]["content"].append(_result(message))
        else:
            turns.append(_turn(message))
        before = message.role
    return turns


def _turn(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "user", "content": [_result(message)]}
    blocks = _blocks(message.content)
    if message.role == "system":
        # Not every model takes a system message in mid conversation. In tags it keeps its place and says what it is.
        blocks = [
            {"type": "text", "text": f"<system>\n{block['text']}\n</system>"} for block in blocks if "text" in block
        ]
        return {"role": "user", "content": blocks}
    return {"role": message.role, "content": blocks + [_use(made) for made in message.tool_calls]}


def _result(message: Message) -> dict[str, Any]:
    content = _blocks(message.content)
    return {"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": content}


def _use(made: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": made.id, "name": made.name, "input": object_of(made.arguments) or {}}


def _blocks(content: str | tuple[Text | Image, ...]) -> list[dict[str, Any]]:
    """Content as blocks; Anthropic takes no empty text."""
    parts = (Text(content),) if isinstance(content, str) else content
    return [_block(part) for part in parts if not (isinstance(part, Text) and not part.text)]


def _block(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.data is None:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}


def _tool(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "input_schema": parameters or {"type": "object", "properties": {}}}
    return {**made, "description": description} if description else made


def _tool_choice(choice: str) -> dict[str, Any]:
    return {"type": CHOICES[choice]} if choice in CHOICES else {"type": "tool", "name": choice}


def _output(chat: Chat) -> dict[str, Any]:
    """What structured output and the effort of thinking are called there."""
    config: dict[str, Any] = {}
    if chat.schema is not None:
        config["format"] = {"type": "json_schema", "schema": unlimited(closed(chat.schema))}
    if chat.reasoning in EFFORTS:
        config["effort"] = chat.reasoning
    settings: dict[str, Any] = {"output_config": config} if config else {}
    if chat.reasoning is not None:
        settings["thinking"] = {"type": "disabled" if chat.reasoning == "none" else "adaptive"}
    return settings


def decode(
    request: Request, status: int, headers: Mapping[str, str], body: bytes, now: float
) -> Reply | Embedding | Fault:
    """What an answer means."""
    data = opened(status, headers, body, now)
    if isinstance(data, Fault):
        return data
    content = data.get("content")
    if isinstance(request, Embed) or not isinstance(content, list):
        return garbled("an answer without content")
    return _reply(data, [block for block in content if isinstance(block, dict)])


def _reply(data: dict[str, Any], blocks: list[dict[str, Any]]) -> Reply | Fault:
    """A reply with nothing in it is one if it says why it ended: models do fall silent, or only think."""
    reason = data.get("stop_reason")
    finish = FINISHES.get(reason) if isinstance(reason, str) else None
    used = [block for block in blocks if block.get("type") == "tool_use"]
    made = [tool_call(at, one.get("id"), one.get("name"), one.get("input")) for at, one in enumerate(used)]
    calls = tuple(one for one in made if one is not None)
    if len(calls) < len(made):
        return garbled("a tool call without a name or arguments")
    text = _said(blocks, "text")
    if text is None and not calls and finish is None:
        return garbled("an answer without text, tool calls or a reason to stop")
    if finish == "refusal" and not text:
        text = _explanation(data)
    return Reply(text or "", _usage(data), finish or "stop", name_of(data), calls, _said(blocks, "thinking"))


def _said(blocks: list[dict[str, Any]], kind: str) -> str | None:
    """The text of all blocks of a kind, or None where there is none."""
    said = [block[kind] for block in blocks if block.get("type") == kind and isinstance(block.get(kind), str)]
    return "".join(said) if said else None


def _explanation(data: dict[str, Any]) -> str | None:
    details = data.get("stop_details")
    words = details.get("explanation") if isinstance(details, dict) else None
    return words if isinstance(words, str) else None


def _usage(data: dict[str, Any]) -> Usage:
    """Input counts everything that was read, from the cache and into it too, as it does with other providers."""
    usage = data.get("usage")
    read = counted(usage, "cache_read_input_tokens")
    written = counted(usage, "cache_creation_input_tokens")
    return Usage(
        counted(usage, "input_tokens") + read + written,
        counted(usage, "output_tokens"),
        read,
        counted(usage, "output_tokens_details", "thinking_tokens"),
        written,
    )
