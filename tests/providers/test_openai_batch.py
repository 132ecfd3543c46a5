"""OpenAI's batches as they are written and read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groundswell.emulator.desks.openai_lines import read_create, read_lines
from groundswell.engine.records import BatchInfo
from groundswell.program.request import Chat, Embed, Embedding, Fault, FaultKind, Reply, Request, Usage, user
from groundswell.providers import openai
from groundswell.providers.batches import Batch, Problem, Results
from groundswell.providers.openai import OPENAI

COMPLETED: dict[str, Any] = {
    "id": "batch_abc123",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "model": "gpt-5-2025-08-07",
    "errors": None,
    "input_file_id": "file-abc123",
    "completion_window": "24h",
    "status": "completed",
    "output_file_id": "file-cvaTdG",
    "error_file_id": "file-HOWS94",
    "created_at": 1711471533,
    "in_progress_at": 1711471538,
    "expires_at": 1711557933,
    "finalizing_at": 1711493133,
    "completed_at": 1711493163,
    "failed_at": None,
    "expired_at": None,
    "cancelling_at": None,
    "cancelled_at": None,
    "request_counts": {"total": 100, "completed": 95, "failed": 5},
    "metadata": {"groundswell_run": "r1", "groundswell_wave": "4294967299", "requests": "100"},
}
MESSAGE = {"role": "assistant", "content": "2 + 2 equals 4.", "refusal": None}
CHAT = {
    "id": "chatcmpl-9758Iw",
    "object": "chat.completion",
    "created": 1711475054,
    "model": "gpt-4o-mini",
    "choices": [{"index": 0, "message": MESSAGE, "logprobs": None, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 24, "completion_tokens": 15, "total_tokens": 39},
}
VECTORS = {"data": [{"index": at, "embedding": [1.0, float(at)]} for at in range(2)], "usage": {"prompt_tokens": 3}}


def test_a_batch() -> None:
    found = OPENAI.batch.read_batch(COMPLETED)
    info = BatchInfo(
        "batch_abc123", "completed", 100, 100, 5, 1711471533.0, 1711557933.0, 1711493163.0, "r1", (1 << 32) + 3
    )
    results = Results("/v1/files/file-cvaTdG/content", 95), Results("/v1/files/file-HOWS94/content", 5)
    assert found == Batch(info, "/v1/chat/completions", results)


@pytest.mark.parametrize(
    ("fields", "state", "ended_at"),
    [
        ({"status": "validating"}, "validating", None),
        ({"status": "finalizing"}, "finalizing", None),
        ({"status": "cancelling", "cancelling_at": 1711471600}, "cancelling", None),
        ({"status": "expired", "expired_at": 1711557934}, "expired", 1711557934.0),
        ({"status": "cancelled", "cancelled_at": 1711557934}, "cancelled", 1711557934.0),
        ({"status": "failed", "failed_at": 1711471600}, "failed", 1711471600.0),
        ({"status": "paused"}, "in_progress", None),
    ],
)
def test_states(fields: dict[str, Any], state: str, ended_at: float | None) -> None:
    found = OPENAI.batch.read_batch({**COMPLETED, **fields})
    assert found is not None
    assert (found.info.state, found.info.ended_at) == (state, ended_at)


@pytest.mark.parametrize("without", ["id", "status"])
def test_no_batch(without: str) -> None:
    assert OPENAI.batch.read_batch({key: value for key, value in COMPLETED.items() if key != without}) is None


def test_a_batch_that_failed() -> None:
    error = {"code": "missing_required_parameter", "line": 1, "message": "Missing.", "param": "body.messages"}
    found = OPENAI.batch.read_batch({**COMPLETED, "errors": {"object": "list", "data": [error, 7]}})
    assert found is not None
    assert found.problems == (Problem("Missing.", "missing_required_parameter", 1, "body.messages"),)


def line(**fields: Any) -> bytes:
    return json.dumps({"id": "batch_req_1", "custom_id": "request-2", **fields}).encode()


@pytest.mark.parametrize(
    ("fields", "asked", "endpoint", "settlement"),
    [
        (
            {"response": {"status_code": 200, "request_id": "r", "body": CHAT}, "error": None},
            Chat("m", (user("a"),)),
            "/v1/chat/completions",
            Reply("2 + 2 equals 4.", Usage(24, 15), "stop", "gpt-4o-mini"),
        ),
        (
            {"response": {"status_code": 200, "body": CHAT}},
            None,
            "/v1/chat/completions",
            Reply("2 + 2 equals 4.", Usage(24, 15), "stop", "gpt-4o-mini"),
        ),
        (
            {"response": {"status_code": 200, "body": VECTORS}},
            Embed("m", ("a", "b")),
            "/v1/embeddings",
            Embedding.of([[1.0, 0.0], [1.0, 1.0]], Usage(3)),
        ),
        (
            {"response": {"status_code": 200, "body": VECTORS}},
            None,
            "/v1/embeddings",
            Embedding.of([[1.0, 0.0], [1.0, 1.0]], Usage(3)),
        ),
        (
            {"response": {"status_code": 200, "body": VECTORS}},
            Embed("m", ("a",)),
            "/v1/embeddings",
            Fault(FaultKind.GARBLED, "the answer has 2 embeddings for 1 texts"),
        ),
        (
            {"response": {"status_code": 400, "body": {"error": {"message": "Bad.", "type": "invalid_request_error"}}}},
            None,
            "",
            Fault(FaultKind.BAD_REQUEST, "HTTP 400: Bad."),
        ),
        (
            {"response": None, "error": {"code": "batch_expired", "message": "Too late."}},
            None,
            "",
            Fault(FaultKind.EXPIRED, "batch_expired: Too late."),
        ),
        (
            {"response": None, "error": {"code": "batch_cancelled", "message": "Cancelled."}},
            None,
            "",
            Fault(FaultKind.CANCELLED, "batch_cancelled: Cancelled."),
        ),
        (
            {"response": None, "error": {"code": "insufficient_quota", "message": "Pay."}},
            None,
            "",
            Fault(FaultKind.QUOTA, "insufficient_quota: Pay."),
        ),
        ({"error": {"code": "server_error"}}, None, "", Fault(FaultKind.SERVER, "server_error")),
        ({"error": {"message": "sk-abcdefghijkl"}}, None, "", Fault(FaultKind.SERVER, "[key]")),
        ({"error": {}}, None, "", Fault(FaultKind.SERVER, "no reason given")),
        ({}, None, "", Fault(FaultKind.GARBLED, "the result has neither a response nor an error")),
        ({"response": 7}, None, "", Fault(FaultKind.GARBLED, "the result has an unknown format")),
    ],
)
def test_lines(fields: dict[str, Any], asked: Request | None, endpoint: str, settlement: Any) -> None:
    found = OPENAI.batch.read_line(line(**fields), {"request-2": asked}.get, endpoint, 0.0)
    assert found == ("request-2", settlement)


def test_what_is_written_can_be_read_by_the_other_side() -> None:
    requests = [Chat("gpt-4o-mini", (user(f"question {at}\n\u2028"),), max_tokens=5) for at in range(3)]
    calls = [OPENAI.batch.encode(request, "gpt-4o-mini") for request in requests]
    lines = [OPENAI.batch.line(f"id-{at}", call) for at, call in enumerate(calls) if not isinstance(call, Fault)]
    read = read_lines(openai.CHAT_PATH, OPENAI.batch.separator.join(lines))
    assert read.problems == []
    assert [one.custom_id for one in read.lines] == ["id-0", "id-1", "id-2"]
    wanted = read_create(json.loads(OPENAI.batch.create("file-1", openai.CHAT_PATH, "r", 7, 3)))
    assert (wanted.input_file_id, wanted.endpoint) == ("file-1", openai.CHAT_PATH)
    assert wanted.metadata == {"groundswell_run": "r", "groundswell_wave": "7", "requests": "3"}


@pytest.mark.parametrize(
    ("data", "id"),
    [({"id": "file-1", "object": "file"}, "file-1"), ({"id": "file-1"}, None), ({"object": "file"}, None), (7, None)],
)
def test_a_file(data: object, id: str | None) -> None:
    assert OPENAI.batch.read_upload(data) == id


def test_pages() -> None:
    page = {"object": "list", "data": [COMPLETED, 7, None], "has_more": True, "last_id": "batch_last"}
    found = OPENAI.batch.read_page(page)
    assert found is not None
    assert ([batch.info.id for batch in found.batches], found.after) == (["batch_abc123"], "batch_last")
    for odd, after in (({"last_id": 7}, "batch_abc123"), ({"has_more": False}, None), ({"has_more": None}, None)):
        found = OPENAI.batch.read_page({**page, **odd})
        assert found is not None
        assert found.after == after
    assert OPENAI.batch.read_page({"data": [7], "has_more": True}) is None, "it does not say how to go on"
    assert OPENAI.batch.read_page({"data": {}}) is None
    assert OPENAI.batch.list_path("batch_1") == "/v1/batches?limit=100&after=batch_1"
