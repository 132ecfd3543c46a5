"""Read requests to OpenAI and reject invalid ones in OpenAI's words.

An optional setting that is null counts as missing, as it does there.
"""

from __future__ import annotations

import re
from typing import Any

from groundswell.emulator.embedding import WIDEST
from groundswell.emulator.schemas import flaw_in
from groundswell.emulator.wire import Incoming
from groundswell.emulator.wire.openai_checks import (
    a_decimal,
    a_flag,
    a_string,
    an_integer,
    an_object,
    missing,
    named,
    objects,
    refuse,
    unsupported,
    wrong_type,
)
from groundswell.emulator.wire.pieces import dump
from groundswell.program.request import Chat, Embed, Image, Message, Role, Text, Tool, ToolCall
from groundswell.providers.json_schema import ANY_OBJECT, find_looseness
from groundswell.providers.openai import REASONING_LEVELS, wants_completion_tokens

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
}
CHAT_KEYS = frozenset(
    {
        "model",
        "messages",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "seed",
        "stop",
        "response_format",
        "tools",
        "tool_choice",
        "reasoning_effort",
        "logprobs",
        "top_logprobs",
        "n",
        "stream",
        "stream_options",
    }
)
EMBED_KEYS = frozenset({"model", "input", "dimensions", "encoding_format"})
MOST_INPUTS = 2048
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def _body(data: object, keys: frozenset[str]) -> tuple[dict[str, Any], str, dict[str, Any] | None]:
    """The request's object, its model, and its unknown keys."""
    if type(data) is not dict:
        refuse(f"Invalid type for the request body: expected an object, but got {named(data)} instead.")
    model = data.get("model")
    if model is None or model == "":
        refuse("you must provide a model parameter")
    if type(model) is not str:
        wrong_type("model", "a string", model)
    extra = {key: data[key] for key in data.keys() - keys if data[key] is not None}
    return data, model, extra or None


def read_chat(data: object) -> Incoming:
    """The body of POST /v1/chat/completions."""
    body, model, extra = _body(data, CHAT_KEYS)
    tools = _tools(body["tools"]) if body.get("tools") is not None else ()
    chat = Chat(
        model,
        _messages(body),
        max_tokens=_max_tokens(body, model),
        temperature=a_decimal(body, "temperature", 0, 2),
        top_p=a_decimal(body, "top_p", 0, 1),
        seed=an_integer(body, "seed", -(2**63)),
        stop=_stop(body.get("stop")),
        schema=_schema(body) if body.get("response_format") is not None else None,
        tools=tools,
        tool_choice=_tool_choice(body["tool_choice"], tools) if body.get("tool_choice") is not None else None,
        reasoning=_reasoning(body.get("reasoning_effort")),
        logprobs=_logprobs(body),
        extra=extra,
    )
    stream = a_flag(body, "stream")
    return Incoming(chat, stream, _usage_in_stream(body, stream), choices=an_integer(body, "n", 1, 128) or 1)


def _messages(body: dict[str, Any]) -> tuple[Message, ...]:
    given = body.get("messages")
    if given is None:
        missing("messages")
    if not objects(given, "messages"):
        words = "empty array. Expected an array with minimum length 1, but got an empty array instead."
        refuse(f"Invalid 'messages': {words}", "messages", "empty_array")
    return tuple([_message(one, f"messages[{at}]") for at, one in enumerate(given)])


def _message(given: dict[str, Any], path: str) -> Message:
    wire_role = given.get("role")
    if wire_role is None:
        missing(f"{path}.role")
    role = ROLES.get(wire_role) if type(wire_role) is str else None
    if role is None:
        unsupported(f"{path}.role", wire_role, ["system", "assistant", "user", "tool", "developer"])
    content = given.get("content")
    if role == "assistant":
        return _assistant(given, content, path)
    if type(content) is not str:
        content = _content(content, f"{path}.content")
    if role == "tool":
        return Message(role, content, tool_call_id=a_string(given.get("tool_call_id"), f"{path}.tool_call_id"))
    return Message(role, content)


def _assistant(given: dict[str, Any], content: object, path: str) -> Message:
    calls = given.get("tool_calls")
    made: tuple[ToolCall, ...] = ()
    if calls is not None:
        where = f"{path}.tool_calls"
        made = tuple([_tool_call(one, f"{where}[{at}]") for at, one in enumerate(objects(calls, where))])
    if content is None:
        content = given.get("refusal") or ("" if made else None)
    said = content if type(content) is str else _content(content, f"{path}.content")
    return Message("assistant", said, made)


def _content(given: object, path: str) -> str | tuple[Text | Image, ...]:
    """Content in parts; a single text part is the same as that text."""
    if type(given) is str:
        return given
    if type(given) is not list:
        wrong_type(path, "one of a string or array of objects", given)
    parts = tuple([_part(one, f"{path}[{at}]") for at, one in enumerate(objects(given, path))])
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return parts


def _part(given: dict[str, Any], path: str) -> Text | Image:
    kind = given.get("type")
    if kind == "text":
        return Text(a_string(given.get("text"), f"{path}.text"))
    if kind == "refusal":
        return Text(a_string(given.get("refusal"), f"{path}.refusal"))
    if kind is None:
        missing(f"{path}.type")
    if kind != "image_url":
        unsupported(f"{path}.type", kind, ["text", "image_url", "refusal"])
    image = an_object(given.get("image_url"), f"{path}.image_url")
    return _image(a_string(image.get("url"), f"{path}.image_url.url"), f"{path}.image_url.url")


def _image(url: str, path: str) -> Image:
    inline = _DATA_URL.fullmatch(url)
    if inline:
        return Image(data=inline[2], media_type=inline[1])
    if not url.startswith(("http://", "https://")):
        words = "Expected a valid URL, but got a value with an invalid format."
        refuse(f"Invalid '{path}'. {words}", path, "invalid_value")
    return Image(url=url)


def _tool_call(given: dict[str, Any], path: str) -> ToolCall:
    function = an_object(given.get("function"), f"{path}.function")
    return ToolCall(
        a_string(given.get("id"), f"{path}.id"),
        a_string(function.get("name"), f"{path}.function.name"),
        a_string(function.get("arguments"), f"{path}.function.arguments"),
    )


def _tools(given: object) -> tuple[Tool, ...]:
    return tuple([_tool(one, f"tools[{at}]") for at, one in enumerate(objects(given, "tools"))])


def _tool(given: dict[str, Any], path: str) -> Tool:
    if given.get("type") != "function":
        if given.get("type") is None:
            missing(f"{path}.type")
        if given["type"] == "custom":
            words = "The emulator does not support custom tools; use a tool of type 'function'."
            refuse(f"Unsupported value: 'custom'. {words}", f"{path}.type", "unsupported_value")
        unsupported(f"{path}.type", given["type"], ["function", "custom"])
    function = an_object(given.get("function"), f"{path}.function")
    name = _pattern(a_string(function.get("name"), f"{path}.function.name"), f"{path}.function.name")
    description = function.get("description")
    parameters = function.get("parameters")
    return Tool(
        name,
        "" if description is None else a_string(description, f"{path}.function.description"),
        {} if parameters is None else _parameters(parameters, name, f"{path}.function.parameters"),
    )


def _parameters(given: object, name: str, path: str) -> dict[str, Any]:
    schema = an_object(given, path)
    kind, flaw = schema.get("type", "object"), flaw_in(schema)
    problem = f"In context={flaw.at}, {flaw.problem}." if flaw else None
    if kind != "object":
        problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if problem:
        refuse(f"Invalid schema for function '{name}': {problem}", path, "invalid_function_parameters")
    return schema


def _pattern(name: str, path: str) -> str:
    if not _NAME.match(name):
        words = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        refuse(f"Invalid '{path}': {words}", path, "invalid_value")
    return name


def _tool_choice(given: object, tools: tuple[Tool, ...]) -> str:
    if not tools:
        words = "'tool_choice' is only allowed when 'tools' are specified."
        refuse(f"Invalid value for 'tool_choice': {words}", "tool_choice")
    if type(given) is dict:
        function = an_object(given.get("function"), "tool_choice.function")
        return a_string(function.get("name"), "tool_choice.function.name")
    if given not in ("none", "auto", "required"):
        unsupported("tool_choice", given, ["none", "auto", "required"])
    return str(given)


def _max_tokens(body: dict[str, Any], model: str) -> int | None:
    newer = an_integer(body, "max_completion_tokens", 1)
    older = an_integer(body, "max_tokens", 1)
    if older is not None:
        if newer is not None:
            refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens")
        if wants_completion_tokens(model):
            words = "is not supported with this model. Use 'max_completion_tokens' instead."
            refuse(f"Unsupported parameter: 'max_tokens' {words}", "max_tokens", "unsupported_parameter")
    return older if newer is None else newer


def _stop(given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    if type(given) is str:
        return (given,)
    if type(given) is not list:
        wrong_type("stop", "one of a string or array of strings", given)
    if len(given) > 4:
        words = f"array too long. Expected an array with maximum length 4, but got an array with length {len(given)}"
        refuse(f"Invalid 'stop': {words} instead.", "stop", "array_above_max_length")
    return tuple([a_string(one, f"stop[{at}]") for at, one in enumerate(given)])


def _schema(body: dict[str, Any]) -> dict[str, Any] | None:
    given = an_object(body["response_format"], "response_format")
    kind = given.get("type")
    if kind == "text":
        return None
    if kind == "json_schema":
        return _named_schema(an_object(given.get("json_schema"), "response_format.json_schema"))
    if kind is None:
        missing("response_format.type")
    if kind != "json_object":
        unsupported("response_format.type", kind, ["json_object", "json_schema", "text"])
    if b"json" not in dump(body.get("messages")).lower():
        words = "must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        refuse(f"'messages' {words}", "messages")
    return dict(ANY_OBJECT)


def _named_schema(given: dict[str, Any]) -> dict[str, Any]:
    path = "response_format.json_schema"
    name = _pattern(a_string(given.get("name"), f"{path}.name"), f"{path}.name")
    schema = an_object(given.get("schema"), f"{path}.schema")
    flaw = flaw_in(schema)
    problem = (
        f"In context={flaw.at}, {flaw.problem}." if flaw else find_looseness(schema) if given.get("strict") else None
    )
    if problem:
        refuse(f"Invalid schema for response_format '{name}': {problem}", "response_format", "invalid_json_schema")
    return schema


def _reasoning(given: object) -> str | None:
    if given is not None and given not in REASONING_LEVELS:
        unsupported("reasoning_effort", given, REASONING_LEVELS)
    return None if given is None else str(given)


def _logprobs(body: dict[str, Any]) -> int | None:
    wanted = a_flag(body, "logprobs")
    most = an_integer(body, "top_logprobs", 0, 20)
    if most is not None and not wanted:
        words = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."
        refuse(words, "top_logprobs")
    return (most or 0) if wanted else None


def _usage_in_stream(body: dict[str, Any], stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not stream:
        refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    return a_flag(an_object(options, "stream_options"), "include_usage")


def read_embed(data: object) -> Incoming:
    """The body of POST /v1/embeddings. Inputs given as token numbers are not supported."""
    body, model, extra = _body(data, EMBED_KEYS)
    given = body.get("input")
    if given is None:
        missing("input")
    texts = (given,) if type(given) is str else _inputs(given)
    coding = body.get("encoding_format")
    if coding not in (None, "float", "base64"):
        unsupported("encoding_format", coding, ["float", "base64"])
    return Incoming(Embed(model, texts, an_integer(body, "dimensions", 1, WIDEST), extra), base64=coding == "base64")


def _inputs(given: object) -> tuple[str, ...]:
    if type(given) is not list:
        wrong_type("input", "one of a string or array of strings", given)
    if not given:
        refuse("Invalid 'input': input cannot be an empty array.", "input", "empty_array")
    if len(given) > MOST_INPUTS:
        words = f"array too long. Expected an array with maximum length {MOST_INPUTS}, but got an array with length"
        refuse(f"Invalid 'input': {words} {len(given)} instead.", "input", "array_above_max_length")
    return tuple([a_string(one, f"input[{at}]") for at, one in enumerate(given)])
