"""Anthropic's wire format, live and batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from groundswell.engine.records import BatchInfo, BatchState
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
    Settlement,
    Standing,
    Text,
    ToolCall,
    Usage,
)
from groundswell.providers.batches import (
    Batch,
    Page,
    RequestLookup,
    Results,
    read_id,
    read_items,
    read_time,
    unreadable_line,
)
from groundswell.providers.batches import read_page as page_of
from groundswell.providers.bodies import (
    JSON_TYPE,
    bad_request,
    build_call,
    non_finite_setting,
    read_arguments,
    read_count,
    read_model_name,
    read_object,
    read_tool_call,
)
from groundswell.providers.faults import JSON_ERRORS, SHARED, FaultTable, garbled, load_json, read_error
from groundswell.providers.json_schema import close_objects, find_looseness, move_limits_to_description, too_deep
from groundswell.providers.provider import NO_OPTIONS, BatchFormat, Call, Option, Options, WireFormat
from groundswell.providers.rate_limits import HeaderNames, read_rate_limits

PATH = "/v1/messages"
VERSION = "2023-06-01"
MAX_TOKENS = 4096
"""Anthropic requires a limit. This one is used if the request sets none."""
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
    HeaderNames.of("requests", "anthropic-ratelimit-requests-{}"),
    HeaderNames.of("input_tokens", "anthropic-ratelimit-input-tokens-{}"),
    HeaderNames.of("output_tokens", "anthropic-ratelimit-output-tokens-{}"),
)
COMBINED_LIMIT = (HeaderNames.of("tokens", "anthropic-ratelimit-tokens-{}"),)

BATCHES = "/v1/messages/batches"
MOST_REQUESTS = 100_000
LARGEST_BODY = 256_000_000 - 1_000_000
"""Bytes. Slightly less than Anthropic's limit of 256 MB, however a megabyte is counted."""
PER_PAGE = 1000
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that an error would have in a live request."""
LEFT = {
    "expired": Fault(FaultKind.EXPIRED, "the batch expired before this request was processed"),
    "canceled": Fault(FaultKind.CANCELLED, "the batch was cancelled before this request was processed"),
}
COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
NOBODY = Chat("", ())
"""A stand-in for the request, which is not needed to decode a reply."""

CACHE = "5m"


class Anthropic(WireFormat):
    """Messages. There are no embeddings."""

    name = "anthropic"
    options: Mapping[str, Option] = {
        "prompt_cache": Option((CACHE, "1h", "off"), CACHE, f"How long prompts are cached: `{CACHE}`, `1h` or `off`.")
    }
    batch: AnthropicBatch

    def __init__(self, faults: FaultTable = SHARED) -> None:
        super().__init__(faults)
        self.batch = AnthropicBatch(self)

    def headers(self, key: str | None) -> dict[str, str]:
        sent = {"content-type": "application/json", "anthropic-version": VERSION}
        return sent if key is None else {**sent, "x-api-key": key}

    def rate_limits(self, headers: Mapping[str, str], now: float) -> tuple[Standing, ...]:
        """Read the rate limits.

        `tokens` repeats the tighter of the two token limits, so it only counts if they are absent.
        """
        split = read_rate_limits(headers, SPLIT_LIMITS, now)
        of_tokens = [standing[1:3] for standing in split if standing.resource != "requests"]
        if len(of_tokens) == 2:
            return split
        combined = read_rate_limits(headers, COMBINED_LIMIT, now)
        return split if combined and combined[0][1:3] in of_tokens else split + combined

    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        """Encode a request. The option `prompt_cache` sets how long the provider caches the prompt, if at all."""
        if isinstance(request, Embed):
            return bad_request("Anthropic has no embeddings; use a model of another provider")
        problem = _unfit(request)
        return (
            bad_request(problem)
            if problem
            else build_call(PATH, _chat(request, model, options.get("prompt_cache", CACHE)), request.extra)
        )

    def decode(
        self, request: Request, status: int, headers: Mapping[str, str], body: bytes, now: float
    ) -> Reply | Embedding | Fault:
        data = read_object(status, headers, body, now, self.faults)
        if isinstance(data, Fault):
            return data
        content = data.get("content")
        if isinstance(request, Embed) or not isinstance(content, list):
            return garbled("the answer has no content")
        return _reply(data, [block for block in content if isinstance(block, dict)])


def _unfit(chat: Chat) -> str | None:
    """The first setting that Anthropic does not support."""
    problem = non_finite_setting(chat) or too_deep(chat.schema)
    if problem:
        return problem
    if chat.temperature is not None and not 0 <= chat.temperature <= 1:
        return f"temperature={chat.temperature:g}: Anthropic takes 0 to 1"
    if chat.logprobs is not None:
        return "logprobs: Anthropic does not return log probabilities; remove it"
    if chat.reasoning not in (None, "none", *EFFORTS):
        return f"reasoning={chat.reasoning!r}: Anthropic accepts none, {', '.join(EFFORTS)}; pass others through extra"
    if chat.schema is not None and find_looseness(close_objects(chat.schema), all_required=False):
        return "schema: Anthropic requires named properties for every object; add them, or remove the schema"
    for message in chat.messages:
        for made in message.tool_calls:
            if read_arguments(made.arguments) is None:
                return f"messages: the arguments of the tool call {made.id!r} are not a JSON object"
    return None


def _chat(chat: Chat, model: str, cache: str | None) -> dict[str, Any]:
    told = list(takewhile(lambda message: message.role == "system", chat.messages))
    system = [block for message in told for block in _blocks(message.content)]
    messages = _messages(chat.messages[len(told) :])
    if cache is not None:
        _mark(system, messages, cache)
    # Anthropic has no seed parameter. Leaving it out only loses repeatability, which no provider guarantees,
    # and lets programs that always set a seed run on every provider.
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


def _mark(system: list[dict[str, Any]], messages: list[dict[str, Any]], cache: str) -> None:
    """Mark the parts that later requests repeat: the system prompt, and a conversation with several turns.

    A first prompt is not marked: writing to the cache costs a quarter more, and most first prompts are not repeated.
    """
    marker = {"type": "ephemeral"} if cache == CACHE else {"type": "ephemeral", "ttl": cache}
    if system:
        system[-1]["cache_control"] = marker
    if messages and messages[-1]["content"] and any(message["role"] == "assistant" for message in messages):
        messages[-1]["content"][-1]["cache_control"] = marker


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The turns. Results of tools that were called together are sent together, as Anthropic requires."""
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
        # Not every model takes a system message in mid-conversation. In tags it keeps its place and its meaning.
        blocks = [
            {"type": "text", "text": f"<system>\n{block['text']}\n</system>"} for block in blocks if "text" in block
        ]
        return {"role": "user", "content": blocks}
    return {"role": message.role, "content": blocks + [_use(made) for made in message.tool_calls]}


def _result(message: Message) -> dict[str, Any]:
    content = _blocks(message.content)
    return {"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": content}


def _use(made: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": made.id, "name": made.name, "input": read_arguments(made.arguments) or {}}


def _blocks(content: str | tuple[Text | Image, ...]) -> list[dict[str, Any]]:
    """Content as blocks. Empty text is dropped, because Anthropic rejects it."""
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
    """The settings for structured output and reasoning effort."""
    config: dict[str, Any] = {}
    if chat.schema is not None:
        config["format"] = {"type": "json_schema", "schema": move_limits_to_description(close_objects(chat.schema))}
    if chat.reasoning in EFFORTS:
        config["effort"] = chat.reasoning
    settings: dict[str, Any] = {"output_config": config} if config else {}
    if chat.reasoning is not None:
        settings["thinking"] = {"type": "disabled" if chat.reasoning == "none" else "adaptive"}
    return settings


def _reply(data: dict[str, Any], blocks: list[dict[str, Any]]) -> Reply | Fault:
    """An empty reply is valid if it has a stop reason: models sometimes return nothing, or only thinking."""
    reason = data.get("stop_reason")
    finish = FINISHES.get(reason) if isinstance(reason, str) else None
    used = [block for block in blocks if block.get("type") == "tool_use"]
    made = [read_tool_call(at, one.get("id"), one.get("name"), one.get("input")) for at, one in enumerate(used)]
    calls = tuple(one for one in made if one is not None)
    if len(calls) < len(made):
        return garbled("the answer has a tool call without a name or arguments")
    text = _said(blocks, "text")
    if text is None and not calls and finish is None:
        return garbled("the answer has no text, tool calls or stop reason")
    if finish == "refusal" and not text:
        text = _explanation(data)
    return Reply(text or "", _usage(data), finish or "stop", read_model_name(data), calls, _said(blocks, "thinking"))


def _said(blocks: list[dict[str, Any]], kind: str) -> str | None:
    """The text of all blocks of a kind, or None if there are none."""
    said = [block[kind] for block in blocks if block.get("type") == kind and isinstance(block.get(kind), str)]
    return "".join(said) if said else None


def _explanation(data: dict[str, Any]) -> str | None:
    details = data.get("stop_details")
    words = details.get("explanation") if isinstance(details, dict) else None
    return words if isinstance(words, str) else None


def _usage(data: dict[str, Any]) -> Usage:
    """Input tokens include cache reads and cache writes, as with other providers."""
    usage = data.get("usage")
    read = read_count(usage, "cache_read_input_tokens")
    written = read_count(usage, "cache_creation_input_tokens")
    return Usage(
        read_count(usage, "input_tokens") + read + written,
        read_count(usage, "output_tokens"),
        read,
        read_count(usage, "output_tokens_details", "thinking_tokens"),
        written,
    )


class AnthropicBatch(BatchFormat):
    """Batches sent in one request body. They carry no metadata: only the ids in the results identify the wave."""

    name = "anthropic_batch"
    path = BATCHES
    max_requests = MOST_REQUESTS
    max_bytes = LARGEST_BODY
    queue_counts = "requests"
    days_kept = 29
    mixed = True
    separator = b","
    before, after = b'{"requests":[', b"]}"

    def __init__(self, wire: Anthropic) -> None:
        self.wire = wire

    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        return self.wire.encode(request, model, options)

    def line(self, custom_id: str, call: Call) -> bytes:
        return b'{"custom_id":"%s","params":%s}' % (custom_id.encode(), call.body)

    def list_path(self, after: str | None) -> str:
        return f"{BATCHES}?limit={PER_PAGE}" + (f"&after_id={after}" if after else "")

    def read_batch(self, data: object) -> Batch | None:
        """Read a batch object. Only `ended` means that it is finished."""
        if not isinstance(data, dict):
            return None
        id, status = read_id(data.get("id")), data.get("processing_status")
        if id is None or not isinstance(status, str):
            return None
        counts = {name: read_count(data, "request_counts", name) for name in COUNTS}
        total = sum(counts.values())
        failed = total - counts["processing"] - counts["succeeded"]
        info = BatchInfo(
            id,
            _state(status, counts),
            total,
            total - counts["processing"],
            failed,
            read_time(data.get("created_at")) or 0.0,
            read_time(data.get("expires_at")),
            read_time(data.get("ended_at")) if status == "ended" else None,
        )
        return Batch(info, PATH, _results(data, id, total) if status == "ended" else ())

    def read_page(self, data: object) -> Page | None:
        listed = read_items(data)
        return None if listed is None else page_of(data, [self.read_batch(one) for one in listed])

    def read_line(self, line: bytes, asked: RequestLookup, endpoint: str, now: float) -> tuple[str, Settlement] | None:
        try:
            data = _lines.decode(line)
        except JSON_ERRORS:
            return unreadable_line(line)
        result = data.result
        if result.type == "succeeded":
            return data.custom_id, self.wire.decode(NOBODY, 200, JSON_TYPE, bytes(result.message), now)
        if result.type == "errored":
            return data.custom_id, self._errored(bytes(result.error), now)
        return data.custom_id, LEFT.get(result.type) or garbled("the result has an unknown type")

    def _errored(self, error: bytes, now: float) -> Settlement:
        """The fault that the same error would be in a live request."""
        data = load_json(error)
        said = read_error(data) or read_error({"error": data})
        if said is None:
            return garbled("the result has an error without a message")
        body = msgspec.json.encode({"error": {"type": said.kind, "message": said.message}})
        return self.wire.decode(NOBODY, STATUSES.get(said.kind, 500), JSON_TYPE, body, now)


def _state(status: str, counts: dict[str, int]) -> BatchState:
    """The state of a batch, in OpenAI's terms."""
    if status != "ended":
        return "cancelling" if status == "canceling" else "in_progress"
    if counts["canceled"]:
        return "cancelled"
    return "expired" if counts["expired"] else "completed"


def _results(data: dict[str, Any], id: str, total: int) -> tuple[Results, ...]:
    """The address of the results. An archived batch has none."""
    url = data.get("results_url")
    if data.get("archived_at") is not None and url is None:
        return ()
    return (Results(f"{BATCHES}/{id}/results", total, url if isinstance(url, str) else None),)


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result


_lines = msgspec.json.Decoder(_Line)


ANTHROPIC = Anthropic()
