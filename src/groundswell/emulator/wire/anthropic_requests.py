"""Read requests to Anthropic and reject invalid ones in Anthropic's words."""

from __future__ import annotations

from typing import Any, NoReturn

from groundswell.emulator.schemas import flaw_in
from groundswell.emulator.wire import Incoming, Rejected
from groundswell.emulator.wire.pieces import dump
from groundswell.program.request import Chat, Image, Message, Role, Text, Tool, ToolCall
from groundswell.providers.anthropic import EFFORTS
from groundswell.providers.json_schema import find_limit, find_looseness

KEYS = frozenset(
    {
        "model",
        "messages",
        "system",
        "max_tokens",
        "temperature",
        "top_p",
        "stop_sequences",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "output_format",
        "stream",
        "cache_control",
    }
)
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
LEAST_BUDGET = 1024


def refuse(message: str) -> NoReturn:
    raise Rejected(400, message, kind="invalid_request_error")


def _missing(path: str) -> NoReturn:
    refuse(f"{path}: Field required")


def _object(value: object, path: str) -> dict[str, Any]:
    if type(value) is not dict:
        if value is None:
            _missing(path)
        refuse(f"{path}: Input should be a valid dictionary")
    return value


def _string(value: object, path: str) -> str:
    if type(value) is not str:
        if value is None:
            _missing(path)
        refuse(f"{path}: Input should be a valid string")
    return value


def _list(value: object, path: str) -> list[Any]:
    if type(value) is not list:
        if value is None:
            _missing(path)
        refuse(f"{path}: Input should be a valid list")
    return value


def _integer(value: object, path: str, least: int) -> int:
    if type(value) is not int:
        if value is None:
            _missing(path)
        refuse(f"{path}: Input should be a valid integer")
    if value < least:
        refuse(f"{path}: Input should be greater than or equal to {least}")
    return value


def _fraction(body: dict[str, Any], key: str) -> float | None:
    value = body.get(key)
    if value is None:
        return None
    if type(value) is not float and type(value) is not int:
        refuse(f"{key}: Input should be a valid number")
    if not 0 <= value <= 1:
        refuse(f"{key}: range: 0..1")
    return float(value)


def _choice(value: object, path: str, choices: tuple[str, ...]) -> str:
    if type(value) is str and value in choices:
        return value
    if value is None:
        _missing(path)
    quoted = [f"'{choice}'" for choice in choices]
    listed = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)
    refuse(f"{path}: Input should be {listed}")


def read_chat(data: object) -> Incoming:
    """The body of POST /v1/messages."""
    if type(data) is not dict:
        refuse("Input should be a valid dictionary")
    model = _string(data.get("model"), "model")
    if not model:
        refuse("model: String should have at least 1 character")
    limit = _integer(data.get("max_tokens"), "max_tokens", 1)
    schema, reasoning = _output(data)
    reasoning, extra = _thinking(data, limit, reasoning)
    chat = Chat(
        model,
        (*_system(data.get("system")), *_messages(data.get("messages"))),
        max_tokens=limit,
        temperature=_fraction(data, "temperature"),
        top_p=_fraction(data, "top_p"),
        stop=_stop(data.get("stop_sequences")),
        schema=schema,
        tools=_tools(data["tools"]) if data.get("tools") is not None else (),
        tool_choice=_tool_choice(data["tool_choice"]) if data.get("tool_choice") is not None else None,
        reasoning=reasoning,
        extra=extra or None,
    )
    return Incoming(chat, _flag(data, "stream"))


def _flag(body: dict[str, Any], key: str) -> bool:
    value = body.get(key)
    if value is not None and type(value) is not bool:
        refuse(f"{key}: Input should be a valid boolean")
    return bool(value)


def _system(given: object) -> list[Message]:
    """The system prompt as messages: one per block."""
    if given is None or given == "":
        return []
    if type(given) is str:
        return [Message("system", given)]
    if type(given) is not list:
        refuse("system: Input should be a valid string or list")
    return [Message("system", _system_block(one, f"system.{at}")) for at, one in enumerate(given)]


def _system_block(given: object, path: str) -> str:
    block = _object(given, path)
    _choice(block.get("type"), f"{path}.type", ("text",))
    text = _string(block.get("text"), f"{path}.text")
    if not text:
        refuse("system: text content blocks must be non-empty")
    return text


def _messages(given: object) -> list[Message]:
    messages = _list(given, "messages")
    if not messages:
        refuse("messages: at least one message is required")
    last = len(messages) - 1
    read: list[Message] = []
    for at, one in enumerate(messages):
        read += _turn(_object(one, f"messages.{at}"), f"messages.{at}", at == last)
    return read


def _turn(message: dict[str, Any], path: str, last: bool) -> list[Message]:
    role = _role(message.get("role"), path)
    content = message.get("content")
    if not content and content in ("", []) and not (role == "assistant" and last):
        words = "all messages must have non-empty content except for the optional final assistant message"
        refuse(f"{path}: {words}")
    if type(content) is str:
        return [Message(role, content)]
    return _spoken(role, _list(content, f"{path}.content"), f"{path}.content")


def _role(role: object, path: str) -> Role:
    if role == "user":
        return "user"
    if role == "assistant":
        return "assistant"
    if role == "system":
        words = 'The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
        refuse(f'messages: Unexpected role "system". {words}')
    refuse(f"{path}.role: Input should be 'user' or 'assistant'")


def _spoken(role: Role, blocks: list[Any], path: str) -> list[Message]:
    """The messages of one turn: one per tool result, then the rest."""
    results: list[Message] = []
    parts: list[Text | Image] = []
    calls: list[ToolCall] = []
    for at, one in enumerate(blocks):
        where = f"{path}.{at}"
        block = _object(one, where)
        kind = block.get("type")
        if kind == "text":
            parts.append(_text(block, where))
        elif kind == "image" and role == "user":
            parts.append(_image(block, where))
        elif kind == "tool_use" and role == "assistant":
            calls.append(_tool_use(block, where))
        elif kind == "tool_result" and role == "user":
            results.append(_tool_result(block, where))
        elif not (kind in ("thinking", "redacted_thinking") and role == "assistant"):
            _stray(kind, where, role)
    if parts or calls or not results:
        results.append(Message(role, _joined(parts), tuple(calls)))
    return results


def _stray(kind: object, path: str, role: str) -> NoReturn:
    if kind is None:
        _missing(f"{path}.type")
    allowed = ["'image'", "'text'", "'tool_result'"] if role == "user" else ["'text'", "'thinking'", "'tool_use'"]
    words = f"Input tag '{kind}' found using 'type' does not match any of the expected tags: {', '.join(allowed)}"
    refuse(f"{path}: {words}")


def _joined(parts: list[Text | Image]) -> str | tuple[Text | Image, ...]:
    """One block of text is the same as that text."""
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return tuple(parts)


def _text(block: dict[str, Any], path: str) -> Text:
    text = _string(block.get("text"), f"{path}.text")
    if not text:
        refuse("messages: text content blocks must be non-empty")
    return Text(text)


def _image(block: dict[str, Any], path: str) -> Image:
    source = _object(block.get("source"), f"{path}.source")
    kind = _choice(source.get("type"), f"{path}.source.type", ("base64", "url"))
    if kind == "url":
        return Image(url=_string(source.get("url"), f"{path}.source.url.url"))
    media_type = _choice(source.get("media_type"), f"{path}.source.base64.media_type", IMAGE_TYPES)
    return Image(data=_string(source.get("data"), f"{path}.source.base64.data"), media_type=media_type)


def _tool_use(block: dict[str, Any], path: str) -> ToolCall:
    arguments = _object(block.get("input"), f"{path}.tool_use.input")
    return ToolCall(
        _string(block.get("id"), f"{path}.tool_use.id"),
        _string(block.get("name"), f"{path}.tool_use.name"),
        dump(arguments).decode(),
    )


def _tool_result(block: dict[str, Any], path: str) -> Message:
    call = _string(block.get("tool_use_id"), f"{path}.tool_result.tool_use_id")
    content = block.get("content")
    if content is None or type(content) is str:
        return Message("tool", content or "", tool_call_id=call)
    parts: list[Text | Image] = []
    for at, one in enumerate(_list(content, f"{path}.tool_result.content")):
        where = f"{path}.tool_result.content.{at}"
        inner = _object(one, where)
        kind = _choice(inner.get("type"), f"{where}.type", ("text", "image"))
        parts.append(_text(inner, where) if kind == "text" else _image(inner, where))
    return Message("tool", _joined(parts), tool_call_id=call)


def _stop(given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    stops = tuple([_string(one, f"stop_sequences.{at}") for at, one in enumerate(_list(given, "stop_sequences"))])
    if any(not stop.strip() for stop in stops):
        refuse("stop_sequences: each stop sequence must contain non-whitespace")
    return stops


def _tools(given: object) -> tuple[Tool, ...]:
    return tuple([_tool(_object(one, f"tools.{at}"), f"tools.{at}") for at, one in enumerate(_list(given, "tools"))])


def _tool(given: dict[str, Any], path: str) -> Tool:
    name = _string(given.get("name"), f"{path}.custom.name")
    described = given.get("description")
    description = "" if described is None else _string(described, f"{path}.custom.description")
    schema = _sound(given.get("input_schema"), f"{path}.custom.input_schema")
    if schema.get("type", "object") != "object":
        refuse(f"{path}.custom.input_schema.type: Input should be 'object'")
    return Tool(name, description, schema)


def _sound(given: object, path: str) -> dict[str, Any]:
    """A valid schema."""
    schema = _object(given, path)
    if flaw_in(schema) is not None:
        draft = "JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12)"
        refuse(f"{path}: JSON schema is invalid. It must match {draft}.")
    return schema


def _tool_choice(given: object) -> str:
    choice = _object(given, "tool_choice")
    kind = _choice(choice.get("type"), "tool_choice.type", ("auto", "any", "tool", "none"))
    if kind == "tool":
        return _string(choice.get("name"), "tool_choice.tool.name")
    return "required" if kind == "any" else kind


def _output(body: dict[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """The schema and the effort. `output_format` is the older place of the schema, before `output_config`."""
    config = _object(body["output_config"], "output_config") if body.get("output_config") is not None else {}
    wanted, path = config.get("format"), "output_config.format"
    if wanted is None:
        wanted, path = body.get("output_format"), "output_format"
    effort = config.get("effort")
    if effort is not None:
        _choice(effort, "output_config.effort", EFFORTS)
    if wanted is None:
        return None, effort
    given = _object(wanted, path)
    _choice(given.get("type"), f"{path}.type", ("json_schema",))
    schema = _sound(given.get("schema"), f"{path}.schema")
    if find_looseness(schema, all_required=False):
        refuse(f"{path}.schema: For 'object' type, 'additionalProperties' must be explicitly set to false")
    if (limit := find_limit(schema)) is not None:
        refuse(f"{path}.schema: For '{limit[0]}' type, property '{limit[1]}' is not supported")
    return schema, effort


def _thinking(body: dict[str, Any], limit: int, effort: str | None) -> tuple[str | None, dict[str, Any]]:
    """The thinking budget or effort, and settings that a chat has no field for."""
    extra = {key: body[key] for key in body.keys() - KEYS if body[key] is not None}
    given = body.get("thinking")
    if given is None:
        return effort, extra
    thinking = _object(given, "thinking")
    kind = _choice(thinking.get("type"), "thinking.type", ("enabled", "disabled", "between_tools", "adaptive"))
    if kind == "disabled" and effort is None:
        return "none", extra
    if kind == "enabled":
        budget = _integer(thinking.get("budget_tokens"), "thinking.enabled.budget_tokens", LEAST_BUDGET)
        if budget >= limit:
            refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if not (thinking == {"type": "adaptive"} and effort is not None):
        extra["thinking"] = thinking
    return effort, extra
