"""Ollama's wire format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    Text,
    Tool,
    ToolCall,
    Usage,
)
from groundswell.providers.bodies import (
    bad_request,
    build_call,
    non_finite_setting,
    read_arguments,
    read_count,
    read_embedding,
    read_model_name,
    read_object,
    read_tool_call,
)
from groundswell.providers.faults import fault_of_error, garbled, load_json, read_error
from groundswell.providers.provider import NO_OPTIONS, Call, Options, WireFormat

CHAT_PATH = "/api/chat"
EMBED_PATH = "/api/embed"
LEVELS = ("low", "medium", "high")
TAKES_LEVELS = "gpt-oss"
"""Models that take a reasoning level. Others can only turn reasoning on or off."""


class Ollama(WireFormat):
    """Chat and embeddings of your own server. It reports no rate limits and has no batches."""

    name = "ollama"
    health_path = "/api/version"
    default_port = 11434

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers. No key is needed for your own server."""
        sent = {"content-type": "application/json"}
        return sent if key is None else {**sent, "authorization": f"Bearer {key}"}

    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        if isinstance(request, Embed):
            asked: dict[str, Any] = {"model": model, "input": list(request.texts)}
            if request.dimensions is not None:
                asked["dimensions"] = request.dimensions
            return build_call(EMBED_PATH, asked, request.extra)
        problem = _unfit(request)
        if problem:
            return bad_request(problem)
        body = _chat(request, model)
        extra = dict(request.extra or {})
        if isinstance(extra.get("options"), dict):
            extra["options"] = {**body.get("options", {}), **extra["options"]}
        return build_call(CHAT_PATH, body, extra)

    def decode(
        self, request: Request, status: int, headers: Mapping[str, str], body: bytes, now: float
    ) -> Reply | Embedding | Fault:
        """Decode an answer, also from a server that streams although it was asked not to."""
        data = read_object(status, headers, body, now, self.faults)
        if isinstance(data, Fault):
            lines = body.splitlines() if data.kind is FaultKind.GARBLED else []
            return (
                self._streamed(request, lines, headers, now) if len(lines) > 1 and isinstance(request, Chat) else data
            )
        return _embedding(request, data) if isinstance(request, Embed) else _reply(request, [data])

    def _streamed(self, chat: Chat, lines: list[bytes], headers: Mapping[str, str], now: float) -> Reply | Fault:
        read = [load_json(line) for line in lines if line.strip()]
        said = next(filter(None, map(read_error, read)), None)
        if said:
            return fault_of_error(said, headers, now, self.faults)
        chunks = [one for one in read if isinstance(one, dict)]
        if not chunks or len(chunks) < len(read):
            return garbled("the body is neither JSON nor lines of JSON, or is truncated")
        return _reply(chat, chunks)


def _unfit(chat: Chat) -> str | None:
    """The first setting that Ollama does not support."""
    problem = non_finite_setting(chat)
    if problem:
        return problem
    if chat.tool_choice not in (None, "auto"):
        return f"tool_choice={chat.tool_choice!r}: Ollama has no such setting; remove it, or offer only that tool"
    if chat.reasoning not in (None, "none", *LEVELS):
        return f"reasoning={chat.reasoning!r}: Ollama accepts none, {', '.join(LEVELS)}; pass others through extra"
    for message in chat.messages:
        if type(message.content) is tuple and any(
            type(part) is Image and part.data is None for part in message.content
        ):
            return "messages: Ollama does not accept image URLs; pass the image data"
        for made in message.tool_calls:
            if read_arguments(made.arguments) is None:
                return f"messages: the arguments of the tool call {made.id!r} are not a JSON object"
    return None


def _chat(chat: Chat, model: str) -> dict[str, Any]:
    names = {made.id: made.name for message in chat.messages for made in message.tool_calls}
    options = {
        "num_predict": chat.max_tokens,
        "temperature": chat.temperature,
        "top_p": chat.top_p,
        "seed": chat.seed,
        "stop": list(chat.stop) or None,
    }
    settings: dict[str, Any] = {
        "options": {key: value for key, value in options.items() if value is not None} or None,
        "format": chat.schema,
        "tools": [_tool(tool) for tool in chat.tools] or None,
        "think": None if chat.reasoning is None else _think(chat.reasoning, model),
        "logprobs": None if chat.logprobs is None else True,
        "top_logprobs": chat.logprobs or None,
    }
    messages = [_message(message, names) for message in chat.messages]
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": False}
    body.update((key, value) for key, value in settings.items() if value is not None)
    return body


def _think(reasoning: str, model: str) -> bool | str:
    if reasoning == "none":
        return False
    return reasoning if TAKES_LEVELS in model else True


def _message(message: Message, names: Mapping[str, str]) -> dict[str, Any]:
    """A message. Text parts are joined, since Ollama's content is one string with images beside it."""
    parts = (Text(message.content),) if isinstance(message.content, str) else message.content
    made: dict[str, Any] = {
        "role": message.role,
        "content": "\n".join(part.text for part in parts if isinstance(part, Text)),
    }
    images = [part.data for part in parts if isinstance(part, Image)]
    if images:
        made["images"] = images
    if message.tool_calls:
        made["tool_calls"] = [_made_call(one) for one in message.tool_calls]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
        made["tool_name"] = names.get(message.tool_call_id, message.tool_call_id)
    return made


def _made_call(made: ToolCall) -> dict[str, Any]:
    return {"id": made.id, "function": {"name": made.name, "arguments": read_arguments(made.arguments) or {}}}


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": {key: value for key, value in function.items() if value}}


def _reply(chat: Chat, chunks: list[dict[str, Any]]) -> Reply | Fault:
    last = chunks[-1]
    messages = [chunk.get("message") for chunk in chunks]
    if last.get("done") is not True or last.get("done_reason") in ("load", "unload"):
        return garbled("the answer is not finished")
    said = [message for message in messages if isinstance(message, dict)]
    if len(said) < len(messages):
        return garbled("the answer has no message")
    calls = _calls([one for message in said for one in _listed(message.get("tool_calls"))])
    text = _joined(said, "content")
    if calls is None or (text is None and not calls):
        return garbled("the message has no text and no valid tool call")
    finish = "length" if last.get("done_reason") == "length" else "tool_calls" if calls else "stop"
    usage = Usage(read_count(last, "prompt_eval_count"), read_count(last, "eval_count"))
    thoughts = _joined(said, "thinking")
    return Reply(text or "", usage, finish, read_model_name(last), calls, thoughts, _logprobs(chat, chunks))


def _joined(messages: list[dict[str, Any]], key: str) -> str | None:
    pieces = [message[key] for message in messages if isinstance(message.get(key), str)]
    return "".join(pieces) if pieces else None


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _calls(given: list[Any]) -> tuple[ToolCall, ...] | None:
    calls: list[ToolCall] = []
    for at, one in enumerate(given):
        function = one.get("function") if isinstance(one, dict) else None
        if not isinstance(function, dict):
            return None
        made = read_tool_call(at, one.get("id"), function.get("name"), function.get("arguments"))
        if made is None:
            return None
        calls.append(made)
    return tuple(calls)


def _logprobs(chat: Chat, chunks: list[dict[str, Any]]) -> list[Any] | None:
    given = [chunk["logprobs"] for chunk in chunks if isinstance(chunk.get("logprobs"), list)]
    return [token for tokens in given for token in tokens] if chat.logprobs is not None and given else None


def _embedding(embed: Embed, data: dict[str, Any]) -> Embedding | Fault:
    vectors = data.get("embeddings")
    if not isinstance(vectors, list):
        return garbled("the answer has no embeddings")
    return read_embedding(
        vectors, len(embed.texts), Usage(read_count(data, "prompt_eval_count")), read_model_name(data)
    )


OLLAMA = Ollama()
