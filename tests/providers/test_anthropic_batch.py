"""Anthropic's batches as they are written and read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groundswell.engine.records import BatchInfo
from groundswell.program.request import Fault, FaultKind, Reply, Usage
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.batches import Batch, Results

ENDED: dict[str, Any] = {
    "id": "msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d",
    "type": "message_batch",
    "processing_status": "ended",
    "request_counts": {"processing": 0, "succeeded": 5, "errored": 2, "canceled": 0, "expired": 0},
    "created_at": "2024-09-24T18:37:24.100435Z",
    "expires_at": "2024-09-25T18:37:24.100435Z",
    "ended_at": "2024-09-24T19:37:24Z",
    "cancel_initiated_at": None,
    "archived_at": None,
    "results_url": "https://api.anthropic.com/v1/messages/batches/msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d/results",
}
PATH = "/v1/messages/batches/msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d"


def test_a_batch() -> None:
    info = BatchInfo(ENDED["id"], "completed", 7, 7, 2, 1727203044.100435, 1727289444.100435, 1727206644.0)
    results = (Results(f"{PATH}/results", 7, ENDED["results_url"]),)
    assert ANTHROPIC.batch.read_batch(ENDED) == Batch(info, "/v1/messages", results)


@pytest.mark.parametrize(
    ("fields", "state", "done", "failed"),
    [
        ({"processing_status": "in_progress", "request_counts": {"processing": 9}}, "in_progress", 0, 0),
        ({"processing_status": "canceling", "request_counts": {"processing": 9}}, "cancelling", 0, 0),
        ({"processing_status": "something new"}, "in_progress", 7, 2),
        ({"request_counts": {"succeeded": 3, "canceled": 2}}, "cancelled", 5, 2),
        ({"request_counts": {"succeeded": 3, "expired": 2}}, "expired", 5, 2),
        ({"request_counts": {"expired": 2, "canceled": 1}}, "cancelled", 3, 3),
        ({"request_counts": None}, "completed", 0, 0),
    ],
)
def test_states(fields: dict[str, Any], state: str, done: int, failed: int) -> None:
    found = ANTHROPIC.batch.read_batch({**ENDED, **fields})
    assert found is not None
    assert (found.info.state, found.info.done, found.info.failed) == (state, done, failed)
    assert bool(found.results) is not found.info.open


def test_results_that_are_gone() -> None:
    found = ANTHROPIC.batch.read_batch({**ENDED, "results_url": None, "archived_at": "2024-10-24T18:37:24Z"})
    assert found is not None
    assert found.results == ()


def test_results_whose_address_is_not_told() -> None:
    found = ANTHROPIC.batch.read_batch({**ENDED, "results_url": None})
    assert found is not None
    assert found.results == (Results(f"{PATH}/results", 7),)


@pytest.mark.parametrize("without", ["id", "processing_status"])
def test_no_batch(without: str) -> None:
    assert ANTHROPIC.batch.read_batch({key: value for key, value in ENDED.items() if key != without}) is None


def errored(kind: str, message: str = "No.") -> dict[str, Any]:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return {"type": "errored", "error": error}


MESSAGE = {
    "id": "msg_014Vwi",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-7",
    "content": [{"type": "text", "text": "Hello!"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 11, "output_tokens": 36, "service_tier": "batch"},
}


@pytest.mark.parametrize(
    ("result", "settlement"),
    [
        ({"type": "succeeded", "message": MESSAGE}, Reply("Hello!", Usage(11, 36), "stop", "claude-opus-4-7")),
        (errored("invalid_request_error"), Fault(FaultKind.BAD_REQUEST, "HTTP 400: No.")),
        (errored("rate_limit_error"), Fault(FaultKind.RATE_LIMITED, "HTTP 429: No.")),
        (errored("api_error"), Fault(FaultKind.SERVER, "HTTP 500: No.")),
        (errored("a_new_error"), Fault(FaultKind.SERVER, "HTTP 500: No.")),
        (errored("overloaded_error"), Fault(FaultKind.OVERLOADED, "HTTP 529: No.")),
        (errored("timeout_error"), Fault(FaultKind.TIMEOUT, "HTTP 504: No.")),
        (errored("not_found_error"), Fault(FaultKind.NOT_FOUND, "HTTP 404: No.")),
        (errored("billing_error"), Fault(FaultKind.QUOTA, "HTTP 402: No.")),
        (errored("request_too_large"), Fault(FaultKind.CONTEXT, "HTTP 413: No.")),
        (
            errored("invalid_request_error", "Your credit balance is too low to access the API."),
            Fault(FaultKind.QUOTA, "HTTP 400: Your credit balance is too low to access the API."),
        ),
        (
            {"type": "errored", "error": {"type": "api_error", "message": "Bare."}},
            Fault(FaultKind.SERVER, "HTTP 500: Bare."),
        ),
        ({"type": "errored"}, Fault(FaultKind.GARBLED, "the result has an error without a message")),
        (
            {"type": "canceled"},
            Fault(FaultKind.CANCELLED, "the batch was cancelled before this request was processed"),
        ),
        ({"type": "expired"}, Fault(FaultKind.EXPIRED, "the batch expired before this request was processed")),
        ({"type": "forgotten"}, Fault(FaultKind.GARBLED, "the result has an unknown type")),
        ({"type": 7}, Fault(FaultKind.GARBLED, "the result has an unknown format")),
        (None, Fault(FaultKind.GARBLED, "the result has an unknown format")),
    ],
)
def test_lines(result: Any, settlement: Any) -> None:
    line = json.dumps({"custom_id": "a", "result": result}).encode()
    assert ANTHROPIC.batch.read_line(line, lambda _: None, "/v1/messages", 0.0) == ("a", settlement)


def test_pages() -> None:
    page = {"data": [ENDED, "?"], "has_more": True, "first_id": ENDED["id"], "last_id": "msgbatch_2"}
    found = ANTHROPIC.batch.read_page(page)
    assert found is not None
    assert (len(found.batches), found.after) == (1, "msgbatch_2")
    assert ANTHROPIC.batch.list_path("msgbatch_2") == "/v1/messages/batches?limit=1000&after_id=msgbatch_2"
