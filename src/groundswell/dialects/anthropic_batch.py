"""Anthropic's batches: one request holds all others, and results say nothing of the batch but each its own id. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from groundswell.dialects import Call, anthropic
from groundswell.dialects.batches import Asked, Batch, Page, Results, id_of, items_of, moment, odd_line
from groundswell.dialects.batches import read_page as page_of
from groundswell.dialects.bodies import counted
from groundswell.dialects.faults import BROKEN, complaint, garbled, load
from groundswell.engine.records import BatchInfo, BatchState
from groundswell.program.request import Chat, Fault, FaultKind, Settlement

BATCHES = "/v1/messages/batches"
MOST_REQUESTS = 100_000
LARGEST_BODY = 256_000_000 - 1_000_000
"""Bytes; a little less than what Anthropic takes, whichever megabytes it means."""
PER_PAGE = 1000
BEFORE, SEPARATOR, AFTER = b'{"requests":[', b",", b"]}"
MIXED = True

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
"""The status that an error would have had by itself."""
LEFT = {
    "expired": Fault(FaultKind.EXPIRED, "the batch expired before this request was worked on"),
    "canceled": Fault(FaultKind.CANCELLED, "the batch was cancelled before this request was worked on"),
}
JSON = {"content-type": "application/json"}
COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
NOBODY = Chat("", ())
"""What was asked makes no difference to what a reply means."""


def line(custom_id: str, call: Call) -> bytes:
    """One request of a batch."""
    return b'{"custom_id":"%s","params":%s}' % (custom_id.encode(), call.body)


def listing(after: str | None) -> str:
    """The path of a page of the list."""
    return f"{BATCHES}?limit={PER_PAGE}" + (f"&after_id={after}" if after else "")


def path(batch: str) -> str:
    """The path of a batch."""
    return f"{BATCHES}/{batch}"


def read_batch(data: object) -> Batch | None:
    """A batch object. Only `ended` is the end."""
    if not isinstance(data, dict):
        return None
    id, status = id_of(data.get("id")), data.get("processing_status")
    if id is None or not isinstance(status, str):
        return None
    counts = {name: counted(data, "request_counts", name) for name in COUNTS}
    total = sum(counts.values())
    failed = total - counts["processing"] - counts["succeeded"]
    info = BatchInfo(
        id,
        _state(status, counts),
        total,
        total - counts["processing"],
        failed,
        moment(data.get("created_at")) or 0.0,
        moment(data.get("expires_at")),
        moment(data.get("ended_at")) if status == "ended" else None,
    )
    return Batch(info, anthropic.PATH, _results(data, id, total) if status == "ended" else ())


def _state(status: str, counts: dict[str, int]) -> BatchState:
    """What a batch has come to, in OpenAI's words."""
    if status != "ended":
        return "cancelling" if status == "canceling" else "in_progress"
    if counts["canceled"]:
        return "cancelled"
    return "expired" if counts["expired"] else "completed"


def _results(data: dict[str, Any], id: str, total: int) -> tuple[Results, ...]:
    """Where the results are. Those of an archived batch are gone."""
    url = data.get("results_url")
    if data.get("archived_at") is not None and url is None:
        return ()
    return (Results(f"{path(id)}/results", total, url if isinstance(url, str) else None),)


def read_page(data: object) -> Page | None:
    """A page of the list of batches."""
    listed = items_of(data)
    return None if listed is None else page_of(data, [read_batch(one) for one in listed])


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result


_lines = msgspec.json.Decoder(_Line)


def read_line(line: bytes, asked: Asked, endpoint: str, now: float) -> tuple[str, Settlement] | None:
    """The result that a line holds."""
    try:
        data = _lines.decode(line)
    except BROKEN:
        return odd_line(line)
    result = data.result
    if result.type == "succeeded":
        return data.custom_id, anthropic.decode(NOBODY, 200, JSON, bytes(result.message), now)
    if result.type == "errored":
        return data.custom_id, _errored(bytes(result.error), now)
    return data.custom_id, LEFT.get(result.type) or garbled("a result of a type that is not known")


def _errored(error: bytes, now: float) -> Settlement:
    """The fault that it would have been by itself."""
    data = load(error)
    said = complaint(data) or complaint({"error": data})
    if said is None:
        return garbled("a result with an error that says nothing")
    body = msgspec.json.encode({"error": {"type": said.kind, "message": said.message}})
    return anthropic.decode(NOBODY, STATUSES.get(said.kind, 500), JSON, body, now)
