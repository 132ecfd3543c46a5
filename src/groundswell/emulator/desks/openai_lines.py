"""The parts of an OpenAI batch: the request that creates it, and the lines of its file. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from groundswell.emulator.batches import Line
from groundswell.emulator.desks.desk import decode_body, named
from groundswell.emulator.desks.openai import INVALID
from groundswell.emulator.tokens import count_request
from groundswell.emulator.wire import Incoming, Rejected
from groundswell.emulator.wire import openai as wire
from groundswell.program.request import Embed

MOST_LINES = 50_000
READ: dict[str, Callable[[object], Incoming]] = {
    "/v1/chat/completions": wire.read_chat,
    "/v1/embeddings": wire.read_embed,
}


class _Expiry(msgspec.Struct):
    seconds: int
    anchor: str = "created_at"


class Create(msgspec.Struct):
    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: dict[str, str] | None = None
    output_expires_after: _Expiry | None = None


def read_create(data: Any) -> Create:
    """Read a create request, or raise a refusal that names the parameter."""
    if not isinstance(data, dict):
        raise Rejected(400, "We could not parse the JSON body of your request.", kind=INVALID)
    for name in ("input_file_id", "endpoint", "completion_window"):
        if name not in data:
            message = f"Missing required parameter: '{name}'."
            raise Rejected(400, message, kind=INVALID, param=name, code="missing_required_parameter")
    try:
        wanted = msgspec.convert(data, Create)
    except msgspec.ValidationError as error:
        raise Rejected(400, f"Invalid type: {error}", kind=INVALID, code="invalid_type") from None
    if wanted.endpoint not in READ:
        raise _bad_value("endpoint", wanted.endpoint, " or ".join(READ))
    if wanted.completion_window != "24h":
        raise _bad_value("completion_window", wanted.completion_window, "24h")
    if wanted.output_expires_after and not 3600 <= wanted.output_expires_after.seconds <= 2_592_000:
        raise _bad_value("output_expires_after.seconds", wanted.output_expires_after.seconds, "3600 to 2592000")
    _check_metadata(wanted.metadata or {})
    return wanted


def _check_metadata(metadata: dict[str, str]) -> None:
    if len(metadata) > 16:
        raise _bad_value("metadata", f"{len(metadata)} pairs", "at most 16 pairs")
    for key, value in metadata.items():
        if len(key) > 64:
            raise _bad_value(f"metadata.{key[:64]}", f"a key of {len(key)} characters", "at most 64")
        if len(value) > 512:
            raise _bad_value(f"metadata.{key}", f"a value of {len(value)} characters", "at most 512")


def _bad_value(param: str, value: object, right: str) -> Rejected:
    message = f"Invalid value for '{param}': {value!r}. Supported values are: {right}."
    return Rejected(400, message, kind=INVALID, param=param, code="invalid_value")


class Read:
    """The contents of a file: its lines, their model, and its errors."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.numbers: list[int] = []
        """The line number of each, counted from 1."""
        self.model: str | None = None
        self.problems: list[dict[str, Any]] = []
        self.seen: set[str] = set()
        self.inputs = 0
        """The number of texts to embed, over all lines."""


def read_lines(endpoint: str, content: bytes) -> Read:
    """Read the lines of a batch's file."""
    read = Read()
    raw = content.splitlines()
    filled = sum(bool(text.strip()) for text in raw)
    if not filled:
        read.problems.append(problem("empty_file", "The input file is empty.", None, None))
    elif filled > MOST_LINES:
        message = f"The input file has {filled} requests; at most {MOST_LINES} are allowed."
        read.problems.append(problem("too_many_tasks", message, None, None))
    else:
        for number, text in enumerate(raw, 1):
            if text.strip():
                _add(read, endpoint, number, decode_body(text))
        if read.inputs > MOST_LINES:
            message = f"The input file asks for {read.inputs} embeddings; at most {MOST_LINES} are allowed."
            read.problems.append(problem("too_many_tasks", message, None, None))
    return read


def _add(read: Read, endpoint: str, number: int, data: Any) -> None:
    try:
        read.lines.append(_read_line(read, endpoint, data))
        read.numbers.append(number)
    except Rejected as wrong:
        read.problems.append(problem(wrong.code, wrong.message, number, wrong.param))


def _read_line(read: Read, endpoint: str, data: Any) -> Line:
    """Read one line of a batch. Errors of the request itself are found when it is processed."""
    if not isinstance(data, dict):
        raise _bad_line("invalid_json_line", "This line is not parseable as valid JSON.")
    for name in ("custom_id", "method", "url", "body"):
        if name not in data:
            raise _bad_line("missing_required_parameter", f"Missing required parameter: '{name}'.", name)
    custom_id, body = data["custom_id"], data["body"]
    if not isinstance(custom_id, str) or not custom_id:
        raise _bad_line("invalid_type", "Invalid type for 'custom_id': expected a string.", "custom_id")
    if custom_id in read.seen:
        raise _bad_line("duplicate_custom_id", f"The custom_id '{custom_id}' is used more than once.", "custom_id")
    read.seen.add(custom_id)
    if data["method"] != "POST":
        raise _bad_line("invalid_method", "The method must be POST.", "method")
    if data["url"] != endpoint:
        message = f"The URL '{data['url']}' does not match the batch endpoint '{endpoint}'."
        raise _bad_line("mismatched_url", message, "url")
    return _read_body(read, endpoint, Line(custom_id, body))


def _read_body(read: Read, endpoint: str, line: Line) -> Line:
    model = named(line.data)
    if read.model is None:
        read.model = model or None
    elif model and model != read.model:
        message = f"The batch contains more than one model: '{read.model}' and '{model}'."
        raise _bad_line("mismatched_model", message, "body.model")
    try:
        line.incoming = READ[endpoint](line.data)
        line.tokens = count_request(line.incoming.request)
        if isinstance(line.incoming.request, Embed):
            read.inputs += len(line.incoming.request.texts)
    except Rejected as rejected:
        if rejected.code == "missing_required_parameter":
            raise _bad_line(rejected.code, rejected.message, f"body.{rejected.param}") from None
        line.rejected = rejected
    if line.incoming is not None and line.incoming.stream:
        raise _bad_line("invalid_value", "Streaming is not supported in batches.", "body.stream")
    return line


def _bad_line(code: str, message: str, param: str | None = None) -> Rejected:
    return Rejected(400, message, kind=INVALID, param=param, code=code)


def problem(code: str | None, message: str, line: int | None, param: str | None) -> dict[str, Any]:
    return {"code": code, "line": line, "message": message, "param": param}
