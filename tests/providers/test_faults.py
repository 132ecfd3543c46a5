"""Every error that the providers document, and what it means here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundswell.engine.retry import PASSING
from groundswell.program.request import Chat, Embed, Fault, FaultKind, Reply, Request, user
from groundswell.providers.accounts.account import Account
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.faults import FaultTable, retry_after
from groundswell.providers.ollama import OLLAMA
from groundswell.providers.openai import OPENAI, OpenAI
from groundswell.providers.provider import WireFormat
from groundswell.providers.registry import PROVIDERS

CHAT = Chat("m", (user("go on"),))
EMBED = Embed("m", ("one", "two"))
K = FaultKind


def openai_error(message: str = "no", kind: str | None = None, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic_error(kind: str, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
BUSY = "server busy, please try again.  maximum pending requests exceeded"
LOW = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
BLOCKED = "Output blocked by content filtering policy"
TPM = "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000."

ERRORS: list[tuple[WireFormat, int, Any, FaultKind]] = [
    (OPENAI, 400, openai_error(kind="invalid_request_error"), K.BAD_REQUEST),
    (OPENAI, 400, openai_error(TOO_LONG, "invalid_request_error", "context_length_exceeded"), K.CONTEXT),
    (OPENAI, 400, openai_error(TOO_LONG), K.CONTEXT),
    (OPENAI, 400, openai_error(code="content_policy_violation"), K.FILTERED),
    (OPENAI, 400, openai_error(code="content_filter"), K.FILTERED),
    (OPENAI, 400, openai_error("Invalid prompt: flagged as potentially violating our usage policy"), K.FILTERED),
    (OPENAI, 401, openai_error(code="invalid_api_key"), K.AUTH),
    (OPENAI, 402, openai_error("Insufficient Balance"), K.QUOTA),
    (OPENAI, 403, openai_error("Country not supported"), K.AUTH),
    (OPENAI, 403, openai_error("Your input was flagged", code="content_policy_violation"), K.FILTERED),
    (OPENAI, 404, openai_error(code="model_not_found"), K.NOT_FOUND),
    (OPENAI, 408, openai_error(), K.TIMEOUT),
    (OPENAI, 409, openai_error(), K.SERVER),
    (OPENAI, 413, openai_error(), K.CONTEXT),
    (OPENAI, 422, {"detail": "Unprocessable"}, K.BAD_REQUEST),
    (OPENAI, 429, openai_error(kind="requests", code="rate_limit_exceeded"), K.RATE_LIMITED),
    (OPENAI, 429, openai_error(kind="tokens", code="rate_limit_exceeded"), K.RATE_LIMITED),
    (OPENAI, 429, openai_error(TPM, "tokens", "rate_limit_exceeded"), K.CONTEXT),
    (OPENAI, 429, openai_error(kind="insufficient_quota", code="insufficient_quota"), K.QUOTA),
    (OPENAI, 429, openai_error("You exceeded your current quota, please check your plan"), K.QUOTA),
    (OPENAI, 500, openai_error("maximum context length", "server_error"), K.SERVER),
    (OPENAI, 502, "<html>Bad gateway</html>", K.SERVER),
    (OPENAI, 503, openai_error(), K.OVERLOADED),
    (OPENAI, 504, "", K.TIMEOUT),
    (OPENAI, 301, "", K.BAD_REQUEST),
    (OPENAI, 200, openai_error("Rate limit", "rate_limit_error"), K.RATE_LIMITED),
    (OPENAI, 200, openai_error("strange"), K.SERVER),
    (OPENAI, 200, {"object": "error", "message": TOO_LONG, "code": 400}, K.CONTEXT),
    (ANTHROPIC, 400, anthropic_error("invalid_request_error"), K.BAD_REQUEST),
    (ANTHROPIC, 400, anthropic_error("invalid_request_error", LOW), K.QUOTA),
    (ANTHROPIC, 400, anthropic_error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), K.CONTEXT),
    (
        ANTHROPIC,
        400,
        anthropic_error("invalid_request_error", BLOCKED),
        K.FILTERED,
    ),
    (ANTHROPIC, 401, anthropic_error("authentication_error"), K.AUTH),
    (ANTHROPIC, 402, anthropic_error("billing_error"), K.QUOTA),
    (ANTHROPIC, 403, anthropic_error("permission_error"), K.AUTH),
    (ANTHROPIC, 404, anthropic_error("not_found_error"), K.NOT_FOUND),
    (ANTHROPIC, 413, anthropic_error("request_too_large"), K.CONTEXT),
    (ANTHROPIC, 429, anthropic_error("rate_limit_error"), K.RATE_LIMITED),
    (ANTHROPIC, 500, anthropic_error("api_error"), K.SERVER),
    (ANTHROPIC, 504, anthropic_error("timeout_error"), K.TIMEOUT),
    (ANTHROPIC, 529, anthropic_error("overloaded_error"), K.OVERLOADED),
    (ANTHROPIC, 200, anthropic_error("overloaded_error"), K.OVERLOADED),
    (ANTHROPIC, 200, anthropic_error("billing_error"), K.QUOTA),
    (ANTHROPIC, 200, anthropic_error("api_error"), K.SERVER),
    (OLLAMA, 400, {"error": "model is required"}, K.BAD_REQUEST),
    (OLLAMA, 400, {"error": "input length exceeds the context length"}, K.CONTEXT),
    (OLLAMA, 404, {"error": "model 'x' not found"}, K.NOT_FOUND),
    (OLLAMA, 499, {"error": "context canceled"}, K.SERVER),
    (OLLAMA, 500, {"error": "llama runner process has terminated"}, K.SERVER),
    (OLLAMA, 503, {"error": BUSY}, K.OVERLOADED),
    (OLLAMA, 200, {"error": BUSY}, K.OVERLOADED),
    (OLLAMA, 200, {"error": "model 'x' not found"}, K.NOT_FOUND),
    (OLLAMA, 200, {"error": "unexpected EOF"}, K.SERVER),
]


def name(row: tuple[WireFormat, int, Any, FaultKind]) -> str:
    return f"{row[0].name}-{row[1]}-{row[3]}"


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("dialect", "status", "body", "kind"), ERRORS, ids=map(name, ERRORS))
def test_an_error_is_classified(dialect: WireFormat, status: int, body: Any, kind: FaultKind) -> None:
    written = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    fault = dialect.decode(CHAT, status, {"Content-Type": "application/json"}, written, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is kind
    assert fault.message.startswith(f"HTTP {status}: ")


GARBLED: list[tuple[str, WireFormat, Request, bytes]] = [
    ("empty", OPENAI, CHAT, b""),
    ("html", OPENAI, CHAT, b"<html></html>"),
    ("cut short", OPENAI, CHAT, b'{"choices":[{"message":{"content":"hel'),
    ("not utf-8", OPENAI, CHAT, b'{"choices":"\xff"}'),
    ("a list", OPENAI, CHAT, b"[]"),
    ("no choices", OPENAI, CHAT, b'{"choices":[]}'),
    ("no message", OPENAI, CHAT, b'{"choices":[{}]}'),
    ("null content", OPENAI, CHAT, b'{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}'),
    ("bad call", OPENAI, CHAT, b'{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a"}]}}]}'),
    ("too few vectors", OPENAI, EMBED, b'{"data":[{"index":0,"embedding":[1.0]}]}'),
    ("null vector", OPENAI, EMBED, b'{"data":[{"index":0,"embedding":[1.0]},{"index":1,"embedding":null}]}'),
    ("uneven", OPENAI, EMBED, b'{"data":[{"index":0,"embedding":[1.0]},{"index":1,"embedding":[1,2]}]}'),
    ("infinite", OPENAI, EMBED, b'{"data":[{"index":0,"embedding":[1.0]},{"index":1,"embedding":[1e300]}]}'),
    ("infinite base64", OPENAI, EMBED, b'{"data":[{"embedding":"AACAfw=="},{"embedding":"AACAPw=="}]}'),
    ("bad base64", OPENAI, EMBED, b'{"data":[{"embedding":"AACA"},{"embedding":"AACAPw=="}]}'),
    ("same index", OPENAI, EMBED, b'{"data":[{"index":0,"embedding":[1.0]},{"index":0,"embedding":[1.0]}]}'),
    ("no content", ANTHROPIC, CHAT, b'{"type":"message","stop_reason":"end_turn"}'),
    ("nothing said", ANTHROPIC, CHAT, b'{"content":[],"stop_reason":null}'),
    ("bad use", ANTHROPIC, CHAT, b'{"content":[{"type":"tool_use","id":"a"}],"stop_reason":"tool_use"}'),
    ("unfinished", OLLAMA, CHAT, b'{"message":{"content":"hel"},"done":false}'),
    ("only loaded", OLLAMA, CHAT, b'{"message":{"content":""},"done":true,"done_reason":"load"}'),
    ("stream cut short", OLLAMA, CHAT, b'{"message":{"content":"a"},"done":false}\n{"message":{"content":"b"},"do'),
    (
        "stream ended",
        OLLAMA,
        CHAT,
        b'{"message":{"content":"a"},"done":false}\n{"message":{"content":"b"},"done":false}',
    ),
    ("no vectors", OLLAMA, EMBED, b'{"model":"m"}'),
    ("too many vectors", OLLAMA, EMBED, b'{"embeddings":[[1.0],[1.0],[1.0]]}'),
]


@pytest.mark.parametrize(("_name", "dialect", "asked", "body"), GARBLED, ids=[row[0] for row in GARBLED])
def test_a_good_status_with_a_bad_body_is_garbled(_name: str, dialect: WireFormat, asked: Request, body: bytes) -> None:
    fault = dialect.decode(asked, 200, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.GARBLED
    assert fault.kind in PASSING


def test_a_page_of_a_proxy_is_garbled_even_if_it_is_json() -> None:
    body = b'{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}'
    fault = OPENAI.decode(CHAT, 200, {"Content-Type": "text/html; charset=utf-8"}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.GARBLED
    assert "text/html" in fault.message


def test_an_error_inside_a_stream_is_that_error() -> None:
    body = b'{"message":{"content":"a"},"done":false}\n{"error":"server busy, please try again."}\n'
    fault = OLLAMA.decode(CHAT, 200, {"content-type": "application/x-ndjson"}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.OVERLOADED


def test_a_filtered_choice_is_a_fault() -> None:
    body = b'{"choices":[{"message":{"content":"half"},"finish_reason":"content_filter"}]}'
    fault = OPENAI.decode(CHAT, 200, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.FILTERED


SECRETS = [
    (401, "Incorrect API key provided: sk-proj-abc123********wxyz. Find yours at platform.openai.com."),
    (400, "Invalid header: Authorization: Bearer abcdefghij"),
    (500, "could not use key-0123456789abcdef for this"),
]


@pytest.mark.parametrize(("status", "message"), SECRETS, ids=["openai", "bearer", "other"])
def test_no_piece_of_a_key_is_repeated(status: int, message: str) -> None:
    fault = OPENAI.decode(CHAT, status, {}, msgspec.json.encode(openai_error(message)), 0.0)
    assert isinstance(fault, Fault)
    assert not any(piece in fault.message for piece in ("abc123", "wxyz", "abcdefghij", "0123456789"))


def test_a_refused_key_says_what_the_provider_calls_it() -> None:
    body = msgspec.json.encode(openai_error("Incorrect API key provided: abc", code="invalid_api_key"))
    fault = OPENAI.decode(CHAT, 401, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.message.endswith("(invalid_api_key)")


def test_an_error_that_is_empty_is_none() -> None:
    body = b'{"error":{},"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
    assert OPENAI.decode(CHAT, 200, {}, body, 0.0) == Reply("hi")


def test_a_long_message_is_cut_and_stands_on_one_line() -> None:
    body = msgspec.json.encode(openai_error("too\n much " * 1000))
    fault = OPENAI.decode(CHAT, 400, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert len(fault.message) < 330
    assert "\n" not in fault.message


def google_error(*quotas: str, retry: str | None = "39s", message: str | None = None) -> bytes:
    """A 429 of Gemini's OpenAI-compatible API, as users report it: a list of one error, with details."""
    said = "You exceeded your current quota, please check your plan and billing details."
    details: list[dict[str, Any]] = [
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaMetric": "generativelanguage.googleapis.com/x", "quotaId": each} for each in quotas],
        },
        {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"description": "Learn more", "url": "https://x"}]},
    ]
    if retry is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry})
    error = {"code": 429, "message": message or said, "status": "RESOURCE_EXHAUSTED", "details": details}
    return msgspec.json.encode([{"error": error}])


BY_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
TOKENS_BY_MINUTE = "GenerateContentInputTokensPerModelPerMinute-FreeTier"
BY_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
GEMINI = PROVIDERS["gemini"].wire
VERTEX = "Quota exceeded for quota metric 'Generate Content API requests per minute'"


@pytest.mark.parametrize(
    ("body", "kind", "wait"),
    [
        (google_error(BY_MINUTE), K.RATE_LIMITED, 39.0),
        (google_error(TOKENS_BY_MINUTE, BY_MINUTE, retry="11.5s"), K.RATE_LIMITED, 11.5),
        (google_error(BY_DAY), K.QUOTA, 39.0),
        (google_error(BY_MINUTE, BY_DAY), K.QUOTA, 39.0),
        (google_error(), K.QUOTA, 39.0),
        (google_error(message=VERTEX, retry=None), K.RATE_LIMITED, None),
        (google_error(BY_MINUTE, retry="soon"), K.RATE_LIMITED, None),
        (google_error(BY_MINUTE, retry="1e12s"), K.RATE_LIMITED, 86_400.0),
        (
            b'[{"error":{"code":429,"message":"Resource exhausted.","status":"RESOURCE_EXHAUSTED"}}]',
            K.RATE_LIMITED,
            None,
        ),
        (
            b'{"error":{"code":429,"message":"m","details":[1,{"violations":[2]},{"violations":3}]}}',
            K.RATE_LIMITED,
            None,
        ),
    ],
    ids=["minute", "tokens", "day", "both", "unnamed", "in words", "odd wait", "long wait", "bare", "odd details"],
)
def test_a_quota_by_the_minute_passes_and_one_by_the_day_does_not(
    body: bytes, kind: FaultKind, wait: float | None
) -> None:
    fault = GEMINI.decode(CHAT, 429, {"content-type": "application/json"}, body, 0.0)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retry_after) == (kind, wait)


def test_what_a_provider_adds_holds_for_its_accounts_alone() -> None:
    fault = OPENAI.decode(CHAT, 429, {}, google_error(BY_MINUTE), 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.QUOTA
    account = Account(name="box", provider="gemini", dialect="openai", endpoints=("http://box",))
    assert account.wire is GEMINI
    assert msgspec.structs.replace(account, provider="openai").wire is OPENAI


def test_a_header_says_better_how_long_than_the_body() -> None:
    fault = GEMINI.decode(CHAT, 429, {"retry-after": "3"}, google_error(BY_MINUTE), 0.0)
    assert isinstance(fault, Fault)
    assert fault.retry_after == 3.0


def test_the_table_of_a_provider_is_read_first() -> None:
    table = FaultTable({"odd_code": K.OVERLOADED}, (("maximum context length", K.SERVER),))
    for body, kind in ((openai_error(code="odd_code"), K.OVERLOADED), (openai_error(TOO_LONG), K.SERVER)):
        fault = OpenAI(table).decode(CHAT, 400, {}, msgspec.json.encode(body), 0.0)
        assert isinstance(fault, Fault)
        assert fault.kind is kind


WAITS: list[tuple[str, dict[str, str], float | None]] = [
    ("none", {}, None),
    ("seconds", {"retry-after": "20"}, 20.0),
    ("fraction", {"retry-after": "0.25"}, 0.25),
    ("milliseconds win", {"retry-after-ms": "1500", "retry-after": "20"}, 1.5),
    ("broken milliseconds", {"retry-after-ms": "soon", "retry-after": "20"}, 20.0),
    ("date", {"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30.0),
    ("date gone by", {"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0.0),
    ("negative", {"retry-after": "-3"}, None),
    ("not a number", {"retry-after": "nan"}, None),
    ("infinite", {"retry-after": "inf"}, None),
    ("nonsense", {"retry-after": "later"}, None),
    ("years", {"retry-after": "1e12"}, 86_400.0),
]


@pytest.mark.parametrize(("_name", "headers", "seconds"), WAITS, ids=[row[0] for row in WAITS])
def test_how_long_to_wait(_name: str, headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, 1_445_412_480.0) == seconds


def test_a_rate_limit_says_how_long_whatever_the_case_of_its_header() -> None:
    fault = ANTHROPIC.decode(CHAT, 429, {"Retry-After": "7"}, b"", 0.0)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retry_after) == (K.RATE_LIMITED, 7.0)


TOLD = [(500, "false", K.BAD_REQUEST), (400, "true", K.SERVER), (429, "false", K.RATE_LIMITED), (401, "true", K.AUTH)]


@pytest.mark.parametrize(("status", "told", "kind"), TOLD, ids=[f"{row[0]}-{row[1]}" for row in TOLD])
def test_the_server_knows_best_whether_to_try_again(status: int, told: str, kind: FaultKind) -> None:
    fault = OPENAI.decode(CHAT, status, {"X-Should-Retry": told}, b"", 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is kind
