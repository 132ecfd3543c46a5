"""What both kinds of batches share: what a refusal means, and what became of a batch that failed."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.engine.records import BatchInfo
from groundswell.program.request import (
    Chat,
    Embed,
    Embedding,
    Fault,
    FaultKind,
    Reply,
    Request,
    decode_settlement,
    encode_settlement,
    user,
)
from groundswell.providers import openai
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.batches import (
    Batch,
    Problem,
    faults_of_failed_batch,
    queue_limit,
    read_id,
    read_refusal,
    read_time,
)
from groundswell.providers.openai import OPENAI
from groundswell.providers.provider import Call
from tests.properties import examples
from tests.providers.strategies import changed, json_values, openai_chats

OPENAI_QUEUE = (
    "Enqueued token limit reached for gpt-4o-mini in organization org-1. Limit: 2,000,000 enqueued tokens. "
    "Please try again once some in_progress batches have been completed."
)
ANTHROPIC_QUEUE = "This request would exceed your organization's limit of 100,000 batch requests in the queue."
NOT_FOR_BATCHES = "The provided model 'gpt-realtime' is not supported by the Batch API."


def error(message: str, **fields: object) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "what", "kind", "limit"),
    [
        (429, error(ANTHROPIC_QUEUE, type="rate_limit_error"), "full", FaultKind.UNSENT, 100_000),
        (429, error(OPENAI_QUEUE, code="token_limit_exceeded"), "full", FaultKind.UNSENT, 2_000_000),
        (400, error("Too much.", code="token_limit_exceeded"), "full", FaultKind.UNSENT, None),
        (400, error(NOT_FOR_BATCHES), "never", FaultKind.UNSENT, None),
        (403, error("Your project does not support the batch API."), "never", FaultKind.UNSENT, None),
        (400, error("Invalid value: '/v1/x'.", param="endpoint"), "never", FaultKind.UNSENT, None),
        (404, b"<html>", "never", FaultKind.UNSENT, None),
        (405, b"", "never", FaultKind.UNSENT, None),
        (501, b"", "never", FaultKind.UNSENT, None),
        (404, error("No such File object: file-1"), "other", FaultKind.UNSENT, None),
        (401, error("no"), "other", FaultKind.AUTH, None),
        (403, error("no"), "other", FaultKind.AUTH, None),
        (402, error("no"), "other", FaultKind.QUOTA, None),
        (429, error("no", code="insufficient_quota"), "other", FaultKind.QUOTA, None),
        (429, error("slow down", code="rate_limit_exceeded"), "full", FaultKind.RATE_LIMITED, None),
        (400, error("Your credit balance is too low to use the API."), "other", FaultKind.QUOTA, None),
        (400, error("requests.3.custom_id: is used twice"), "other", FaultKind.UNSENT, None),
        (413, error("too large", type="request_too_large"), "other", FaultKind.UNSENT, None),
        (307, b"", "other", FaultKind.UNSENT, None),
    ],
)
def test_refusals(status: int, body: bytes, what: str, kind: FaultKind, limit: int | None) -> None:
    found = read_refusal(status, {}, body, 0.0)
    assert found is not None
    assert (found.what, found.fault.kind, found.limit) == (what, kind, limit)
    assert found.fault.message


@pytest.mark.parametrize("status", [408, 409, 425, 499, 500, 502, 503, 504, 529])
@pytest.mark.parametrize("body", [b"", error("This request would exceed your limit of 50 requests per minute.")])
def test_answers_after_which_nobody_knows(status: int, body: bytes) -> None:
    assert read_refusal(status, {}, body, 0.0) is None


def test_what_a_gateway_says_of_a_queue_is_not_believed_of_a_batch() -> None:
    """It may have passed the order on."""
    assert read_refusal(503, {}, error("Your request is in the queue."), 0.0) is None


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (OPENAI_QUEUE, 2_000_000),
        (ANTHROPIC_QUEUE, 100_000),
        ("limit 90000", 90_000),
        ("Limit: 0 enqueued tokens", None),
        ("Enqueued token limit reached", None),
        ("off limits 7", None),
        ("", None),
    ],
)
def test_the_limit_that_a_message_tells(message: str, limit: int | None) -> None:
    assert queue_limit(message) == limit


def failed(*problems: Problem) -> Batch:
    return Batch(BatchInfo("batch_1", "failed", 0, 0, 0, 1.0), problems=problems)


@pytest.mark.parametrize(
    ("problems", "what", "kind", "words"),
    [
        ([Problem(OPENAI_QUEUE, "token_limit_exceeded")], "full", FaultKind.UNSENT, "Limit: 2,000,000"),
        ([Problem("x", line=1), Problem(NOT_FOR_BATCHES, line=2)], "never", FaultKind.UNSENT, "gpt-realtime"),
        ([Problem("Billing hard limit.", "billing_hard_limit_reached")], "other", FaultKind.QUOTA, "Billing"),
        ([Problem("You exceeded your current quota.")], "other", FaultKind.QUOTA, "quota"),
        ([Problem("It broke.", "internal_error")], "other", FaultKind.UNSENT, "the batch failed: It broke."),
        ([Problem("", "internal_error")], "other", FaultKind.UNSENT, "the batch failed: internal_error"),
        ([], "other", FaultKind.UNSENT, "the batch failed: no reason given"),
        (
            [Problem("Streaming is not supported in batches.", line=1)],
            "other",
            FaultKind.UNSENT,
            "because of 1 invalid request",
        ),
    ],
)
def test_batches_that_failed(problems: list[Problem], what: str, kind: FaultKind, words: str) -> None:
    _, why = faults_of_failed_batch(failed(*problems))
    assert (why.what, why.fault.kind) == (what, kind)
    assert words in why.fault.message


def test_lines_that_failed_a_batch() -> None:
    named, _ = faults_of_failed_batch(
        failed(
            Problem("Missing required parameter: 'messages'.", "missing_required_parameter", 3, "body.messages"),
            Problem("And another thing.", "", 3),
            Problem("There is no such model.", "model_not_found", 5),
            Problem("Of no line."),
        )
    )
    assert named == {
        3: Fault(FaultKind.BAD_REQUEST, "Missing required parameter: 'messages'. (body.messages)"),
        5: Fault(FaultKind.NOT_FOUND, "There is no such model."),
    }


@pytest.mark.parametrize(
    ("value", "good"),
    [
        ("batch_abc-1.2:3", True),
        ("msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d", True),
        ("", False),
        ("a" * 201, False),
        ("../x", False),
        ("a/b", False),
        ("a?b", False),
        ("a b", False),
        ("é", False),
        ("a\n", False),
        (7, False),
        (None, False),
    ],
)
def test_ids(value: object, good: bool) -> None:
    assert (read_id(value) is not None) is good


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1711471533, 1711471533.0),
        (1.5, 1.5),
        ("2024-09-24T18:37:24.100435Z", 1727203044.100435),
        ("2024-09-24T20:37:24+02:00", 1727203044.0),
        ("2024-09-24T18:37:24", 1727203044.0),
        ("yesterday", None),
        ("0001-01-01T00:00:00+10:00", None),
        (True, None),
        (-1, None),
        (math.nan, None),
        (math.inf, None),
        (2**80, None),
        (None, None),
        ([1], None),
    ],
)
def test_moments(value: object, seconds: float | None) -> None:
    assert read_time(value) == seconds


# Whatever comes from the other side, reading it raises nothing.

GOOD_OPENAI = {
    "id": "batch_1",
    "status": "failed",
    "endpoint": "/v1/chat/completions",
    "errors": {"data": [{"code": "x", "line": 1, "message": "bad", "param": "body"}]},
    "output_file_id": "file-1",
    "error_file_id": "file-2",
    "created_at": 1711471533,
    "expires_at": 1711557933,
    "failed_at": 1711471599,
    "request_counts": {"total": 100, "completed": 95, "failed": 5},
    "metadata": {"groundswell_run": "r", "groundswell_wave": "4294967297"},
}
GOOD_ANTHROPIC = {
    "id": "msgbatch_1",
    "processing_status": "ended",
    "request_counts": {"processing": 0, "succeeded": 1, "errored": 1, "canceled": 1, "expired": 1},
    "created_at": "2024-09-24T18:37:24Z",
    "ended_at": "2024-09-24T19:37:24Z",
    "results_url": "https://api.anthropic.com/v1/messages/batches/msgbatch_1/results",
}
OPENAI_LINES = [
    {
        "custom_id": "a",
        "response": {
            "status_code": 200,
            "body": {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {}, "model": "m"},
        },
        "error": None,
    },
    {"custom_id": "a", "response": {"status_code": 200, "body": {"data": [{"index": 0, "embedding": [1.0]}]}}},
    {"custom_id": "a", "response": {"status_code": 400, "body": {"error": {"message": "no", "type": "x"}}}},
    {"custom_id": "a", "response": None, "error": {"code": "batch_expired", "message": "late"}},
]
ANTHROPIC_LINES = [
    {
        "custom_id": "a",
        "result": {"type": "succeeded", "message": {"content": [{"type": "text", "text": "hi"}], "usage": {}}},
    },
    {"custom_id": "a", "result": {"type": "errored", "error": {"type": "error", "error": {"type": "api_error"}}}},
    {"custom_id": "a", "result": {"type": "canceled"}},
]
ASKED: list[Request | None] = [None, Chat("m", (user("a"),), logprobs=1), Embed("m", ("a",))]
PATHS = st.sampled_from(["", openai.CHAT_PATH, openai.EMBED_PATH])


@st.composite
def gone_wrong(draw: st.DrawFn, good: object) -> object:
    """Something good, changed in up to three places; or any JSON in its place."""
    for _ in range(draw(st.integers(0, 3))):
        good = draw(changed(good))
    return good


def check_batch(batch: Batch | None) -> None:
    """What was read can be written down, and named in an address."""
    if batch is not None:
        assert msgspec.json.decode(msgspec.json.encode(batch.info), type=BatchInfo) == batch.info
        assert read_id(batch.info.id) is not None
        assert batch.info.total >= 0
        faults_of_failed_batch(batch)


@settings(max_examples=examples(120))
@given(st.data())
def test_any_batch_object(data: st.DataObject) -> None:
    for read, good in ((OPENAI.batch.read_batch, GOOD_OPENAI), (ANTHROPIC.batch.read_batch, GOOD_ANTHROPIC)):
        value = data.draw(json_values | gone_wrong(good))
        check_batch(read(value))


@settings(max_examples=examples(200))
@given(st.data())
def test_any_page(data: st.DataObject) -> None:
    for read, good in ((OPENAI.batch.read_page, GOOD_OPENAI), (ANTHROPIC.batch.read_page, GOOD_ANTHROPIC)):
        page = {"data": [good, good], "has_more": True, "last_id": "batch_1"}
        found = read(data.draw(json_values | gone_wrong(page)))
        assert found is None or found.after is None or read_id(found.after)
        for batch in found.batches if found is not None else ():
            check_batch(batch)


@settings(max_examples=examples(250))
@given(st.data())
def test_any_line(data: st.DataObject) -> None:
    for read, lines in ((OPENAI.batch.read_line, OPENAI_LINES), (ANTHROPIC.batch.read_line, ANTHROPIC_LINES)):
        line = msgspec.json.encode(data.draw(json_values | st.sampled_from(lines).flatmap(gone_wrong)))
        line = data.draw(st.sampled_from([line, line[: data.draw(st.integers(0, len(line)))], data.draw(st.binary())]))
        found = read(line, {"a": data.draw(st.sampled_from(ASKED))}.get, data.draw(PATHS), 1e9)
        if found is not None:
            custom_id, settlement = found
            assert isinstance(custom_id, str)
            assert isinstance(settlement, Reply | Embedding | Fault)
            assert decode_settlement(encode_settlement(settlement)) == settlement


@settings(max_examples=examples(200))
@given(st.integers(300, 599), st.binary(max_size=30) | json_values.map(msgspec.json.encode) | st.text().map(error))
def test_any_refusal(status: int, body: bytes) -> None:
    found = read_refusal(status, {}, body, 0.0)
    assert found is None or found.fault.message
    assert found is None or status < 500 or status == 501


@pytest.mark.parametrize("read", [OPENAI.batch.read_line, ANTHROPIC.batch.read_line])
def test_a_line_nested_too_deep(read: object) -> None:
    assert read(b"[" * 100_000, lambda _: None, "", 0.0) is None  # type: ignore[operator]
    deep = b'{"custom_id":"a","response":{"status_code":200,"body":%s},"result":{"type":"succeeded","message":%s}}'
    nested = b"[" * 5000 + b"]" * 5000
    assert isinstance(read(deep % (nested, nested), lambda _: None, "", 0.0), tuple | None)  # type: ignore[operator]


@settings(max_examples=examples(60))
@given(openai_chats())
def test_any_chat_is_one_line_that_can_be_read(chat: Chat) -> None:
    call = OPENAI.batch.encode(chat, chat.model)
    if isinstance(call, Call):
        line = OPENAI.batch.line("id-1", call)
        assert b"\n" not in line
        assert json.loads(line) == {
            "custom_id": "id-1",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": json.loads(call.body),
        }
        params = json.loads(ANTHROPIC.batch.line("id-1", call))
        assert params == {"custom_id": "id-1", "params": json.loads(call.body)}
