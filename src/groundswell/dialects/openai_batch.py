"""OpenAI's batches: a file of lines is uploaded, and a batch is made of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from groundswell.dialects import Call, openai
from groundswell.dialects.batches import Asked, Batch, Page, Problem, Results, id_of, items_of, moment, odd_line
from groundswell.dialects.batches import read_page as page_of
from groundswell.dialects.bodies import counted, refused
from groundswell.dialects.faults import BROKEN, Complaint, complained, garbled, in_short, load
from groundswell.engine.records import BatchInfo, BatchState
from groundswell.program.request import Chat, Embed, Fault, FaultKind, Request, Settlement

FILES, BATCHES = "/v1/files", "/v1/batches"
MOST_REQUESTS, MOST_INPUTS = 50_000, 50_000
LARGEST_FILE = 200_000_000 - 1_000_000
"""Bytes; a little less than what OpenAI takes, whichever megabytes it means."""
PER_PAGE = 100
FILE_KEPT = 3 * 86_400
"""Seconds after which an input file is deleted: a batch is over after one day."""
RESULTS_KEPT = 30 * 86_400
RUN, WAVE = "groundswell_run", "groundswell_wave"
SEPARATOR = b"\n"
MIXED = False

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
JSON = {"content-type": "application/json"}
_dump = msgspec.json.Encoder().encode


def encode(request: Request, model: str) -> Call | Fault:
    """What a request is in a batch. What would make OpenAI refuse the whole batch is refused here."""
    content, name = (request.texts, "input") if isinstance(request, Embed) else (request.messages, "messages")
    if not content:
        return refused(f"{'texts' if name == 'input' else name}: there are none, and OpenAI fails a batch for that")
    if isinstance(request, Embed) and len(request.texts) > MOST_INPUTS:
        return refused(f"texts: a batch holds {MOST_INPUTS:,} of them at most, and here are {len(request.texts):,}")
    extra = request.extra or {}
    if extra.get("model", model) != model:
        return refused("extra['model']: a batch is for one model; name it in the request")
    if name in extra and not extra[name]:
        return refused(f"extra[{name!r}]: it is empty, and OpenAI fails a batch for that")
    return openai.encode(request, model)


def line(custom_id: str, call: Call) -> bytes:
    """A line of the file that a batch is made of."""
    return b'{"custom_id":"%s","method":"POST","url":"%s","body":%s}' % (
        custom_id.encode(),
        call.path.encode(),
        call.body,
    )


def weight(request: Request, size: int) -> int:
    """What a line counts as. A batch holds so many texts to be embedded, whatever their size."""
    return max(size, len(request.texts) * (LARGEST_FILE // MOST_INPUTS)) if isinstance(request, Embed) else size


def form(boundary: str, name: str) -> tuple[bytes, bytes]:
    """What stands before and after a file in the form that it is uploaded with."""
    fields = {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": str(FILE_KEPT)}
    start = f'--{boundary}\r\nContent-Disposition: form-data; name="'
    texts = "".join(f'{start}{field}"\r\n\r\n{value}\r\n' for field, value in fields.items())
    file = f'{start}file"; filename="{name}"\r\nContent-Type: application/jsonl\r\n\r\n'
    return (texts + file).encode(), f"\r\n--{boundary}--\r\n".encode()


def create(file: str, endpoint: str, metadata: Mapping[str, str]) -> bytes:
    """The body that makes a batch of a file."""
    return _dump(
        {
            "input_file_id": file,
            "endpoint": endpoint,
            "completion_window": "24h",
            "metadata": metadata,
            "output_expires_after": {"anchor": "created_at", "seconds": RESULTS_KEPT},
        }
    )


def metadata(run: str, wave: int, requests: int) -> dict[str, str]:
    """What a batch says of itself, so that it is found again."""
    return {RUN: run, WAVE: str(wave), "requests": str(requests)}


def listing(after: str | None) -> str:
    """The path of a page of the list."""
    return f"{BATCHES}?limit={PER_PAGE}" + (f"&after={after}" if after else "")


def path(batch: str) -> str:
    """The path of a batch."""
    return f"{BATCHES}/{batch}"


def read_file(data: object) -> str | None:
    """The id of a file that was uploaded."""
    return id_of(data.get("id")) if isinstance(data, dict) and data.get("object") == "file" else None


def read_batch(data: object) -> Batch | None:
    """A batch object. A status that is not known is that of a batch that goes on."""
    if not isinstance(data, dict):
        return None
    id, status, endpoint = id_of(data.get("id")), data.get("status"), data.get("endpoint")
    if id is None or not isinstance(status, str):
        return None
    state = STATES.get(status, "in_progress")
    counts = [counted(data, "request_counts", name) for name in ("total", "completed", "failed")]
    about = data.get("metadata")
    run, wave = (about.get(RUN), about.get(WAVE)) if isinstance(about, dict) else (None, None)
    info = BatchInfo(
        id,
        state,
        counts[0],
        counts[1] + counts[2],
        counts[2],
        moment(data.get("created_at")) or 0.0,
        moment(data.get("expires_at")),
        moment(data.get(f"{state}_at")) if state in ("completed", "failed", "expired", "cancelled") else None,
        run if isinstance(run, str) else None,
        _number(wave),
    )
    endpoint = endpoint if isinstance(endpoint, str) else ""
    return Batch(info, endpoint, _results(data, counts), _problems(data.get("errors")))


def read_page(data: object) -> Page | None:
    """A page of the list of batches."""
    listed = items_of(data)
    return None if listed is None else page_of(data, [read_batch(one) for one in listed])


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 20 else None


def _results(data: dict[str, Any], counts: list[int]) -> tuple[Results, ...]:
    """The output file first: a reply there is worth more than an error about the same request."""
    files = [id_of(data.get("output_file_id")), id_of(data.get("error_file_id"))]
    found = zip(files, counts[1:], strict=True)
    return tuple(Results(f"{FILES}/{file}/content", promised) for file, promised in found if file is not None)


def _problems(errors: object) -> tuple[Problem, ...]:
    return tuple(_problem(one) for one in items_of(errors) or () if isinstance(one, dict))


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


def read_line(line: bytes, asked: Asked, endpoint: str, now: float) -> tuple[str, Settlement] | None:
    """The result that a line holds. What was asked may be forgotten; then the batch's endpoint says what it was."""
    try:
        data = _lines.decode(line)
    except BROKEN:
        return odd_line(line)
    if data.response is not None:
        body = bytes(data.response.body)
        request = asked(data.custom_id) or _forgotten(endpoint, body)
        return data.custom_id, openai.decode(request, data.response.status_code, JSON, body, now)
    return data.custom_id, _unanswered(data.error)


def _unanswered(error: object) -> Fault:
    """The fault of a request that has no response."""
    if not isinstance(error, dict):
        return garbled("a result with neither a response nor an error")
    said = _problem(error)
    kind = LEFT.get(said.code) or complained(Complaint(said.message, code=said.code), {}, 0.0).kind
    return Fault(kind, in_short(f"{said.code}: {said.message}".strip(": ")) or "no reason given")


def _forgotten(endpoint: str, body: bytes) -> Request:
    """A request that could have had this answer, where that is all that is needed of it."""
    if endpoint != openai.EMBED_PATH:
        return Chat("", (), logprobs=0)
    rows = items_of(load(body)) or ()
    return Embed("", ("",) * len(rows))
