"""OpenAI's wire format, live and batch. Many other providers and servers use it too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

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
    Tool,
    ToolCall,
    Usage,
)
from groundswell.providers.batches import (
    Batch,
    Page,
    Problem,
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
    LARGEST_COUNT,
    bad_request,
    build_call,
    non_finite_setting,
    read_count,
    read_embedding,
    read_model_name,
    read_object,
    read_tool_call,
)
from groundswell.providers.faults import (
    JSON_ERRORS,
    SHARED,
    ErrorBody,
    FaultTable,
    fault_of_error,
    garbled,
    load_json,
    shorten,
)
from groundswell.providers.json_schema import ANY_OBJECT, strict, too_deep
from groundswell.providers.provider import NO_OPTIONS, Call, Options, UploadedBatchFormat, WireFormat
from groundswell.providers.rate_limits import HeaderNames, read_rate_limits

CHAT_PATH = "/v1/chat/completions"
EMBED_PATH = "/v1/embeddings"
REASONING_LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
FINISHES = {"length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls"}
RATE_LIMITS = (
    HeaderNames.of("requests", "x-ratelimit-{}-requests"),
    HeaderNames.of("tokens", "x-ratelimit-{}-tokens"),
    HeaderNames.of("project_tokens", "x-ratelimit-{}-project-tokens"),
)

FILES, BATCHES = "/v1/files", "/v1/batches"
MOST_REQUESTS, MOST_INPUTS = 50_000, 50_000
LARGEST_FILE = 200_000_000 - 1_000_000
"""Bytes. Slightly less than OpenAI's limit of 200 MB, however a megabyte is counted."""
PER_PAGE = 100
FILE_KEPT = 3 * 86_400
"""Seconds after which an input file is deleted. A batch ends within one day."""
DAYS_KEPT = 30
RUN, WAVE = "groundswell_run", "groundswell_wave"

STATES: dict[str, BatchState] = {
    "validating": "validating",
    "in_progress": "in_progress",
    "finalizing": "finalizing",
    "cancelling": "cancelling",
    "completed": "completed",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
}
LEFT = {
    "batch_expired": FaultKind.EXPIRED,
    "batch_cancelled": FaultKind.CANCELLED,
    "batch_canceled": FaultKind.CANCELLED,
}

_REASONERS = re.compile(r"(?:.*/)?(?:ft:)?(?:o\d|gpt-(?!35)(?:[5-9]|\d\d))")
"""o1 and later, GPT-5 and later. `gpt-35-turbo` is Azure's name of GPT-3.5."""
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")


@lru_cache(maxsize=1024)
def wants_completion_tokens(model: str) -> bool:
    """Whether a model takes `max_completion_tokens` and rejects the older `max_tokens`."""
    return _REASONERS.match(model) is not None


class OpenAI(WireFormat):
    """Chat completions and embeddings."""

    name = "openai"
    batch: OpenAIBatch

    def __init__(self, faults: FaultTable = SHARED) -> None:
        super().__init__(faults)
        self.batch = OpenAIBatch(self)

    def headers(self, key: str | None) -> dict[str, str]:
        sent = {"content-type": "application/json"}
        return sent if key is None else {**sent, "authorization": f"Bearer {key}"}

    def rate_limits(self, headers: Mapping[str, str], now: float) -> tuple[Standing, ...]:
        return read_rate_limits(headers, RATE_LIMITS, now)

    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        if isinstance(request, Embed):
            # The official client also asks for base64: a quarter of the bytes, and nothing to parse.
            asked: dict[str, Any] = {"model": model, "input": list(request.texts), "encoding_format": "base64"}
            if request.dimensions is not None:
                asked["dimensions"] = request.dimensions
            return build_call(EMBED_PATH, asked, request.extra)
        if request.reasoning is not None and request.reasoning not in REASONING_LEVELS:
            levels = ", ".join(REASONING_LEVELS)
            return bad_request(f"reasoning={request.reasoning!r}: OpenAI accepts {levels}; pass others through extra")
        problem = None
        if request.temperature is not None or request.top_p is not None:
            problem = non_finite_setting(request)
        if problem is None and request.schema is not None:
            problem = too_deep(request.schema)
        return bad_request(problem) if problem else build_call(CHAT_PATH, _chat(request, model), request.extra)

    def decode(
        self, request: Request, status: int, headers: Mapping[str, str], body: bytes, now: float
    ) -> Reply | Embedding | Fault:
        if status == 200 and type(request) is Chat and (plain := _plain_reply(request, headers, body)) is not None:
            return plain
        data = read_object(status, headers, body, now, self.faults)
        if isinstance(data, Fault):
            return data
        return _embedding(request, data) if isinstance(request, Embed) else _reply(request, data)


class _Body(msgspec.Struct, omit_defaults=True):
    """The body of a chat request. Fields that are None are left out."""

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
        [
            message if type(message.content) is str and not message.tool_calls else _message(message)
            for message in chat.messages  # a plain text message already has OpenAI's form
        ],
        None if newer else chat.max_tokens,
        chat.max_tokens if newer else None,
        chat.temperature,
        chat.top_p,
        chat.seed,
        chat.stop or None,
        None if chat.schema is None else _response_format(chat.schema),
        [_tool(tool) for tool in chat.tools] if chat.tools else None,
        None if chat.tool_choice is None else _tool_choice(chat.tool_choice),
        chat.reasoning,
        None if chat.logprobs is None else True,
        chat.logprobs or None,
    )


def _message(message: Message) -> dict[str, Any]:
    content = message.content
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


def _tool_choice(choice: str) -> str | dict[str, Any]:
    if choice in ("none", "auto", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """Send a schema in strict mode if possible. A schema for any object becomes JSON mode."""
    if schema == ANY_OBJECT:
        return {"type": "json_object"}
    title = schema.get("title")
    name = _UNFIT.sub("_", title)[:64] if isinstance(title, str) else ""
    tight = strict(schema)
    named = {"name": name or "reply", "schema": schema if tight is None else tight, "strict": tight is not None}
    return {"type": "json_schema", "json_schema": named}


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
    """A fast path for the usual shape of an answer. Return None for any other shape."""
    if not headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        data = _completions.decode(body)
    except JSON_ERRORS:
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
        return garbled("the answer has no choice")
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        return Fault(FaultKind.FILTERED, "the provider's content filter blocked the reply")
    calls = _calls(message.get("tool_calls"))
    if calls is None:
        return garbled("the answer has a tool call without a name or arguments")
    text, finish = message.get("content"), FINISHES.get(reason, "stop") if isinstance(reason, str) else "stop"
    refusal = message.get("refusal")
    if isinstance(refusal, str) and not text and (refusal or text is None):
        text, finish = refusal, "refusal"
    elif calls and finish == "stop":
        finish = "tool_calls"  # OpenAI reports "stop" when the tool was forced
    if text is None and (calls or finish == "length"):
        text = ""  # a reasoning model may spend all its tokens on thinking
    if not isinstance(text, str):
        return garbled("the choice has no text, refusal or tool calls")
    return Reply(text, _usage(data), finish, read_model_name(data), calls, _reasoning(message), _logprobs(chat, choice))


def _calls(given: object) -> tuple[ToolCall, ...] | None:
    calls: list[ToolCall] = []
    for at, one in enumerate(given if isinstance(given, list) else ()):
        function = one.get("function") if isinstance(one, dict) else None
        made = isinstance(function, dict) and read_tool_call(
            at, one.get("id"), function.get("name"), function.get("arguments")
        )
        if not made:
            return None
        calls.append(made)
    return tuple(calls)


def _usage(data: dict[str, Any]) -> Usage:
    usage = data.get("usage")
    return Usage(
        read_count(usage, "prompt_tokens"),
        read_count(usage, "completion_tokens"),
        read_count(usage, "prompt_tokens_details", "cached_tokens"),
        read_count(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def _reasoning(message: dict[str, Any]) -> str | None:
    """The reasoning text. OpenAI does not return it; compatible servers use one of two field names."""
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    return thoughts if isinstance(thoughts, str) else None


def _logprobs(chat: Chat, choice: dict[str, Any]) -> list[Any] | None:
    given = choice.get("logprobs")
    tokens = given.get("content") if chat.logprobs is not None and isinstance(given, dict) else None
    return tokens if isinstance(tokens, list) else None


def _embedding(embed: Embed, data: dict[str, Any]) -> Embedding | Fault:
    rows = data.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return garbled("the answer has no embeddings")
    places = [row.get("index", at) for at, row in enumerate(rows)]
    if sorted(place for place in places if type(place) is int) != list(range(len(rows))):
        return garbled("the embeddings have no valid index")
    vectors = [row.get("embedding") for _, row in sorted(zip(places, rows, strict=True), key=lambda one: one[0])]
    return read_embedding(vectors, len(embed.texts), _usage(data), read_model_name(data))


class OpenAIBatch(UploadedBatchFormat):
    """Batches made from an uploaded file. The batch carries the run and wave as metadata."""

    name = "openai_batch"
    path = BATCHES
    max_requests = MOST_REQUESTS
    max_bytes = LARGEST_FILE
    queue_counts = "tokens"
    days_kept = DAYS_KEPT
    tagged = True
    upload_path = FILES

    def __init__(self, wire: OpenAI) -> None:
        self.wire = wire

    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        """Refuse requests for which OpenAI would reject the whole batch."""
        content, name = (request.texts, "input") if isinstance(request, Embed) else (request.messages, "messages")
        if not content:
            return bad_request(
                f"{'texts' if name == 'input' else name}: must not be empty (OpenAI would reject the whole batch)"
            )
        if isinstance(request, Embed) and len(request.texts) > MOST_INPUTS:
            return bad_request(
                f"texts: a batch holds at most {MOST_INPUTS:,} texts, this request has {len(request.texts):,}"
            )
        extra = request.extra or {}
        if extra.get("model", model) != model:
            return bad_request("extra['model']: a batch has one model; set it with the request's model")
        if name in extra and not extra[name]:
            return bad_request(f"extra[{name!r}]: must not be empty (OpenAI would reject the whole batch)")
        return self.wire.encode(request, model)

    def weight(self, request: Request, size: int) -> int:
        """Texts to embed count for at least their share of a batch, whatever their size, since OpenAI limits their
        number.
        """
        return max(size, len(request.texts) * (LARGEST_FILE // MOST_INPUTS)) if isinstance(request, Embed) else size

    def line(self, custom_id: str, call: Call) -> bytes:
        return b'{"custom_id":"%s","method":"POST","url":"%s","body":%s}' % (
            custom_id.encode(),
            call.path.encode(),
            call.body,
        )

    def form(self, boundary: str, name: str) -> tuple[bytes, bytes]:
        fields = {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": str(FILE_KEPT)}
        start = f'--{boundary}\r\nContent-Disposition: form-data; name="'
        texts = "".join(f'{start}{field}"\r\n\r\n{value}\r\n' for field, value in fields.items())
        file = f'{start}file"; filename="{name}"\r\nContent-Type: application/jsonl\r\n\r\n'
        return (texts + file).encode(), f"\r\n--{boundary}--\r\n".encode()

    def read_upload(self, data: object) -> str | None:
        return read_id(data.get("id")) if isinstance(data, dict) and data.get("object") == "file" else None

    def create(self, file: str, endpoint: str, run: str, wave: int, requests: int) -> bytes:
        return msgspec.json.encode(
            {
                "input_file_id": file,
                "endpoint": endpoint,
                "completion_window": "24h",
                "metadata": {RUN: run, WAVE: str(wave), "requests": str(requests)},
                "output_expires_after": {"anchor": "created_at", "seconds": DAYS_KEPT * 86_400},
            }
        )

    def list_path(self, after: str | None) -> str:
        return f"{BATCHES}?limit={PER_PAGE}" + (f"&after={after}" if after else "")

    def read_batch(self, data: object) -> Batch | None:
        """Read a batch object. An unknown status counts as still in progress."""
        if not isinstance(data, dict):
            return None
        id, status, endpoint = read_id(data.get("id")), data.get("status"), data.get("endpoint")
        if id is None or not isinstance(status, str):
            return None
        state = STATES.get(status, "in_progress")
        counts = [read_count(data, "request_counts", name) for name in ("total", "completed", "failed")]
        about = data.get("metadata")
        run, wave = (about.get(RUN), about.get(WAVE)) if isinstance(about, dict) else (None, None)
        info = BatchInfo(
            id,
            state,
            counts[0],
            counts[1] + counts[2],
            counts[2],
            read_time(data.get("created_at")) or 0.0,
            read_time(data.get("expires_at")),
            read_time(data.get(f"{state}_at")) if state in ("completed", "failed", "expired", "cancelled") else None,
            run if isinstance(run, str) else None,
            _number(wave),
        )
        endpoint = endpoint if isinstance(endpoint, str) else ""
        return Batch(info, endpoint, _results(data, counts), _problems(data.get("errors")))

    def read_page(self, data: object) -> Page | None:
        listed = read_items(data)
        return None if listed is None else page_of(data, [self.read_batch(one) for one in listed])

    def read_line(self, line: bytes, asked: RequestLookup, endpoint: str, now: float) -> tuple[str, Settlement] | None:
        """Read one line. If the request is no longer known, the batch's endpoint tells what kind it was."""
        try:
            data = _lines.decode(line)
        except JSON_ERRORS:
            return unreadable_line(line)
        if data.response is not None:
            body = bytes(data.response.body)
            request = asked(data.custom_id) or _forgotten(endpoint, body)
            return data.custom_id, self.wire.decode(request, data.response.status_code, JSON_TYPE, body, now)
        return data.custom_id, _unanswered(data.error, self.wire.faults)


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 20 else None


def _results(data: dict[str, Any], counts: list[int]) -> tuple[Results, ...]:
    """The output file comes first: a reply takes precedence over an error for the same request."""
    files = [read_id(data.get("output_file_id")), read_id(data.get("error_file_id"))]
    found = zip(files, counts[1:], strict=True)
    return tuple(Results(f"{FILES}/{file}/content", promised) for file, promised in found if file is not None)


def _problems(errors: object) -> tuple[Problem, ...]:
    return tuple(_problem(one) for one in read_items(errors) or () if isinstance(one, dict))


def _problem(data: dict[str, Any]) -> Problem:
    message, code, param = ((value if isinstance(value, str) else "") for value in map(data.get, _WORDS))
    line = data.get("line")
    return Problem(message, code, line if type(line) is int and line > 0 else None, param)


_WORDS = ("message", "code", "param")


class _Response(msgspec.Struct):
    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


_lines = msgspec.json.Decoder(_Line)


def _unanswered(error: object, faults: FaultTable) -> Fault:
    """The fault of a request that has no response."""
    if not isinstance(error, dict):
        return garbled("the result has neither a response nor an error")
    said = _problem(error)
    kind = LEFT.get(said.code) or fault_of_error(ErrorBody(said.message, code=said.code), {}, 0.0, faults).kind
    return Fault(kind, shorten(f"{said.code}: {said.message}".strip(": ")) or "no reason given")


def _forgotten(endpoint: str, body: bytes) -> Request:
    """A stand-in for a request that is no longer known, good enough to decode its answer."""
    if endpoint != EMBED_PATH:
        return Chat("", (), logprobs=0)
    rows = read_items(load_json(body)) or ()
    return Embed("", ("",) * len(rows))


OPENAI = OpenAI()
