"""Read requests to Ollama and reject invalid ones in Ollama's words, mostly those of Go's JSON decoder."""

from __future__ import annotations

from typing import Any, NoReturn

from groundswell.emulator.embedding import WIDEST
from groundswell.emulator.schemas import flaw_in
from groundswell.emulator.wire import Incoming, Rejected
from groundswell.emulator.wire.pieces import dump
from groundswell.program.request import Chat, Embed, Image, Message, Role, Text, Tool, ToolCall
from groundswell.providers.json_schema import ANY_OBJECT

CHAT_KEYS = frozenset(
    {"model", "messages", "stream", "format", "options", "tools", "think", "logprobs", "top_logprobs"}
)
GENERATE_KEYS = (CHAT_KEYS - {"messages", "tools"}) | {"prompt", "system", "images"}
EMBED_KEYS = frozenset({"model", "input", "dimensions"})
OPTIONS = frozenset({"temperature", "top_p", "seed", "num_predict", "stop"})
ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
THOUGHTS = ("low", "medium", "high")

LARGEST = 3.4e38
"""Largest value of Ollama's 32-bit floats."""


def refuse(message: str) -> NoReturn:
    raise Rejected(400, message, kind="invalid_request_error")


def _wrong(value: object, field: str, wanted: str) -> NoReturn:
    """The error of Go's decoder."""
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    refuse(f"json: cannot unmarshal {kinds.get(type(value), 'value')} into Go struct field {field} of type {wanted}")


def _string(value: object, field: str) -> str:
    """A string; null means empty, as in Go."""
    if value is not None and type(value) is not str:
        _wrong(value, field, "string")
    return value or ""


def _object(value: object, field: str, wanted: str) -> dict[str, Any]:
    if value is not None and type(value) is not dict:
        _wrong(value, field, wanted)
    return value or {}


def _list(value: object, field: str, wanted: str) -> list[Any]:
    if value is not None and type(value) is not list:
        _wrong(value, field, wanted)
    return value or []


def _flag(value: object, field: str, default: bool) -> bool:
    if value is None:
        return default
    if type(value) is not bool:
        _wrong(value, field, "bool")
    return value


def _whole(value: object, field: str) -> int | None:
    if value is not None and type(value) is not int:
        _wrong(value, field, "int")
    return value


def _body(data: object, request: str) -> tuple[dict[str, Any], str]:
    if type(data) is not dict:
        if data is None:
            refuse("missing request body")
        _wrong(data, request, f"api.{request}")
    model = _string(data.get("model"), f"{request}.model")
    if not model:
        refuse("model is required")
    return data, model


def read_chat(data: object) -> Incoming:
    """The body of POST /api/chat."""
    body, model = _body(data, "ChatRequest")
    given = _list(body.get("messages"), "ChatRequest.messages", "[]api.Message")
    messages = tuple([_message(one) for one in given])
    tools = tuple([_tool(one) for one in _list(body.get("tools"), "ChatRequest.tools", "api.Tools")])
    return _incoming(body, model, messages, tools, CHAT_KEYS)


def read_generate(data: object) -> Incoming:
    """The body of POST /api/generate. Without a prompt the chat has no messages."""
    body, model = _body(data, "GenerateRequest")
    prompt = _string(body.get("prompt"), "GenerateRequest.prompt")
    told = _string(body.get("system"), "GenerateRequest.system")
    images = _images(body.get("images"), "GenerateRequest.images")
    spoken = [Message("user", _content(prompt, images))] if prompt or images else []
    messages = (Message("system", told), *spoken) if told and spoken else tuple(spoken)
    return _incoming(body, model, messages, (), GENERATE_KEYS)._replace(legacy=True)


def _incoming(
    body: dict[str, Any], model: str, messages: tuple[Message, ...], tools: tuple[Tool, ...], keys: frozenset[str]
) -> Incoming:
    options = _object(body.get("options"), "ChatRequest.options", "map[string]interface {}")
    extra = {key: body[key] for key in body.keys() - keys if body[key] is not None}
    others = {key: options[key] for key in options.keys() - OPTIONS if options[key] is not None}
    if others:
        extra["options"] = others
    limit = _option(options, "num_predict", "integer", (int,))
    chat = Chat(
        model,
        messages,
        max_tokens=limit if limit is not None and limit >= 0 else None,
        temperature=_decimal(options, "temperature"),
        top_p=_decimal(options, "top_p"),
        seed=_option(options, "seed", "integer", (int,)),
        stop=_stop(options),
        schema=_schema(body.get("format")),
        tools=tools,
        reasoning=_reasoning(body.get("think")),
        logprobs=_logprobs(body),
        extra=extra or None,
    )
    return Incoming(chat, _flag(body.get("stream"), "ChatRequest.stream", True))


def _option(options: dict[str, Any], name: str, wanted: str, kinds: tuple[type, ...]) -> Any:
    value = options.get(name)
    if value is not None and type(value) not in kinds:
        refuse(f'option "{name}" must be of type {wanted}')
    return value


def _decimal(options: dict[str, Any], name: str) -> float | None:
    value = _option(options, name, "float32", (float, int))
    if value is not None and not -LARGEST <= value <= LARGEST:
        refuse(f'option "{name}" must be of type float32')
    return None if value is None else float(value)


def _stop(options: dict[str, Any]) -> tuple[str, ...]:
    stops = _option(options, "stop", "array", (list,)) or ()
    if not all(type(one) is str for one in stops):
        refuse('option "stop" must be of an array of strings')
    return tuple(stops)


def _message(given: object) -> Message:
    message = _object(given, "ChatRequest.messages", "api.Message")
    wire_role = _string(message.get("role"), "Message.messages.role")
    role = ROLES.get(wire_role)
    if role is None:
        refuse(f'invalid role: {wire_role}, must be one of ["user", "assistant", "system", "tool"]')
    said = _string(message.get("content"), "Message.messages.content")
    content = _content(said, _images(message.get("images"), "Message.messages.images"))
    if role == "tool":
        named = message.get("tool_call_id") or message.get("tool_name")
        return Message(role, content, tool_call_id=_string(named, "Message.messages.tool_call_id") or None)
    calls = _list(message.get("tool_calls"), "Message.messages.tool_calls", "[]api.ToolCall")
    return Message(role, content, tuple([_tool_call(one, at) for at, one in enumerate(calls)]))


def _content(said: str, images: list[Image]) -> str | tuple[Text | Image, ...]:
    if not images:
        return said
    return (Text(said), *images) if said else tuple(images)


def _images(given: object, field: str) -> list[Image]:
    return [Image(data=_string(one, field)) for one in _list(given, field, "[]api.ImageData")]


def _tool_call(given: object, at: int) -> ToolCall:
    field = "ToolCall.messages.tool_calls"
    call = _object(given, field, "api.ToolCall")
    function = _object(call.get("function"), f"{field}.function", "api.ToolCallFunction")
    name = _string(function.get("name"), f"{field}.function.name")
    arguments = _object(function.get("arguments"), f"{field}.function.arguments", "api.ToolCallFunctionArguments")
    return ToolCall(_string(call.get("id"), f"{field}.id") or f"call_{at}", name, dump(arguments).decode())


def _tool(given: object) -> Tool:
    tool = _object(given, "ChatRequest.tools", "api.Tool")
    function = _object(tool.get("function"), "Tool.tools.function", "api.ToolFunction")
    where = "ToolFunction.tools.function.parameters"
    parameters = _object(function.get("parameters"), where, "api.ToolFunctionParameters")
    _object(parameters.get("properties"), f"{where}.properties", "map[string]api.ToolProperty")
    for one in _list(parameters.get("required"), f"{where}.required", "[]string"):
        _string(one, f"{where}.required")
    return Tool(
        _string(function.get("name"), "ToolFunction.tools.function.name"),
        _string(function.get("description"), "ToolFunction.tools.function.description"),
        parameters,
    )


def _schema(given: object) -> dict[str, Any] | None:
    if given is None or given == "":
        return None
    if given == "json":
        return dict(ANY_OBJECT)
    if type(given) is not dict:
        refuse(f'invalid format: {dump(given).decode()}; expected "json" or a JSON schema')
    if flaw_in(given) is not None:
        refuse("invalid JSON schema in format")
    return given


def _reasoning(think: object) -> str | None:
    """Ollama's models think or do not; a few take a level."""
    if think is None:
        return None
    if type(think) is bool:
        return "medium" if think else "none"
    if think not in THOUGHTS:
        refuse(f'invalid think value: {dump(think).decode()} (must be "high", "medium", "low", true, or false)')
    return str(think)


def _logprobs(body: dict[str, Any]) -> int | None:
    wanted = _flag(body.get("logprobs"), "ChatRequest.logprobs", False)
    most = _whole(body.get("top_logprobs"), "ChatRequest.top_logprobs") or 0
    if not 0 <= most <= 20:
        refuse("top_logprobs must be between 0 and 20")
    return most if wanted else None


def read_embed(data: object) -> Incoming:
    """The body of POST /api/embed."""
    body, model = _body(data, "EmbedRequest")
    given = body.get("input")
    texts = [given] if type(given) is str else given
    if texts is not None and (type(texts) is not list or not all(type(one) is str for one in texts)):
        refuse("invalid input type")
    extra = {key: body[key] for key in body.keys() - EMBED_KEYS if body[key] is not None}
    width = _whole(body.get("dimensions"), "EmbedRequest.dimensions") or 0
    if not 0 <= width <= WIDEST:
        refuse(f"dimensions must be between 0 and {WIDEST}")
    return Incoming(Embed(model, tuple(texts or ()), width or None, extra or None))
