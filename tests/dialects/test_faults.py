"""Every error that the providers document, and what it means here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import msgspec
import pytest

from groundswell.dialects import anthropic, ollama, openai
from groundswell.dialects.faults import retry_after
from groundswell.engine.retry import PASSING
from groundswell.program.request import Chat, Embed, Fault, FaultKind, Reply, Request, user

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

ERRORS: list[tuple[ModuleType, int, Any, FaultKind]] = [
    (openai, 400, openai_error(kind="invalid_request_error"), K.BAD_REQUEST),
    (openai, 400, openai_error(TOO_LONG, "invalid_request_error", "context_length_exceeded"), K.CONTEXT),
    (openai, 400, openai_error(TOO_LONG), K.CONTEXT),
    (openai, 400, openai_error(code="content_policy_violation"), K.FILTERED),
    (openai, 400, openai_error(code="content_filter"), K.FILTERED),
    (openai, 400, openai_error("Invalid prompt: flagged as potentially violating our usage policy"), K.FILTERED),
    (openai, 401, openai_error(code="invalid_api_key"), K.AUTH),
    (openai, 402, openai_error("Insufficient Balance"), K.QUOTA),
    (openai, 403, openai_error("Country not supported"), K.AUTH),
    (openai, 403, openai_error("Your input was flagged", code="content_policy_violation"), K.FILTERED),
    (openai, 404, openai_error(code="model_not_found"), K.NOT_FOUND),
    (openai, 408, openai_error(), K.TIMEOUT),
    (openai, 409, openai_error(), K.SERVER),
    (openai, 413, openai_error(), K.CONTEXT),
    (openai, 422, {"detail": "Unprocessable"}, K.BAD_REQUEST),
    (openai, 429, openai_error(kind="requests", code="rate_limit_exceeded"), K.RATE_LIMITED),
    (openai, 429, openai_error(kind="tokens", code="rate_limit_exceeded"), K.RATE_LIMITED),
    (openai, 429, openai_error(TPM, "tokens", "rate_limit_exceeded"), K.CONTEXT),
    (openai, 429, openai_error(kind="insufficient_quota", code="insufficient_quota"), K.QUOTA),
    (openai, 429, openai_error("You exceeded your current quota, please check your plan"), K.QUOTA),
    (openai, 500, openai_error("maximum context length", "server_error"), K.SERVER),
    (openai, 502, "<html>Bad gateway</html>", K.SERVER),
    (openai, 503, openai_error(), K.OVERLOADED),
    (openai, 504, "", K.TIMEOUT),
    (openai, 301, "", K.BAD_REQUEST),
    (openai, 200, openai_error("Rate limit", "rate_limit_error"), K.RATE_LIMITED),
    (openai, 200, openai_error("strange"), K.SERVER),
    (openai, 200, {"object": "error", "message": TOO_LONG, "code": 400}, K.CONTEXT),
    (anthropic, 400, anthropic_error("invalid_request_error"), K.BAD_REQUEST),
    (anthropic, 400, anthropic_error("invalid_request_error", LOW), K.QUOTA),
    (anthropic, 400, anthropic_error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), K.CONTEXT),
    (
        anthropic,
        400,
        anthropic_error("invalid_request_error", BLOCKED),
        K.FILTERED,
    ),
    (anthropic, 401, anthropic_error("authentication_error"), K.AUTH),
    (anthropic, 402, anthropic_error("billing_error"), K.QUOTA),
    (anthropic, 403, anthropic_error("permission_error"), K.AUTH),
    (anthropic, 404, anthropic_error("not_found_error"), K.NOT_FOUND),
    (anthropic, 413, anthropic_error("request_too_large"), K.CONTEXT),
    (anthropic, 429, anthropic_error("rate_limit_error"), K.RATE_LIMITED),
    (anthropic, 500, anthropic_error("api_error"), K.SERVER),
    (anthropic, 504, anthropic_error("timeout_error"), K.TIMEOUT),
    (anthropic, 529, anthropic_error("overloaded_error"), K.OVERLOADED),
    (anthropic, 200, anthropic_error("overloaded_error"), K.OVERLOADED),
    (anthropic, 200, anthropic_error("billing_error"), K.QUOTA),
    (anthropic, 200, anthropic_error("api_error"), K.SERVER),
    (ollama, 400, {"error": "model is required"}, K.BAD_REQUEST),
    (ollama, 400, {"error": "input length exceeds the context length"}, K.CONTEXT),
    (ollama, 404, {"error": "model 'x' not found"}, K.NOT_FOUND),
    (ollama, 499, {"error": "context canceled"}, K.SERVER),
    (ollama, 500, {"error": "llama runner process has terminated"}, K.SERVER),
    (ollama, 503, {"error": BUSY}, K.OVERLOADED),
    (ollama, 200, {"error": BUSY}, K.OVERLOADED),
    (ollama, 200, {"error": "model 'x' not found"}, K.NOT_FOUND),
    (ollama, 200, {"error": "unexpected EOF"}, K.SERVER),
]


def name(row: tuple[ModuleType, int, Any, FaultKind]) -> str:
    return f"{row[0].__name__.rpartition('.')[2]}-{row[1]}-{row[3]}"


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("dialect", "status", "body", "kind"), ERRORS, ids=map(name, ERRORS))
def test_an_error_is_classified(dialect: ModuleType, status: int, body: Any, kind: FaultKind) -> None:
    written = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    fault = dialect.decode(CHAT, status, {"Content-Type": "application/json"}, written, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is kind
    assert fault.message.startswith(f"HTTP {status}: ")


GARBLED: list[tuple[str, ModuleType, Request, bytes]] = [
    ("empty", openai, CHAT, b""),
    ("html", openai, CHAT, b"<html></html>"),
    ("cut short", openai, CHAT, b'{"choices":[{"message":{"content":"hel'),
    ("not utf-8", openai, CHAT, b'{"choices":"\xff"}'),
    ("a list", openai, CHAT, b"[]"),
    ("no choices", openai, CHAT, b'{"choices":[]}'),
    ("no message", openai, CHAT, b'{"choices":[{}]}'),
    ("null content", openai, CHAT, b'{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}'),
    ("bad call", openai, CHAT, b'{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a"}]}}]}'),
    ("too few vectors", openai, EMBED, b'{"data":[{"index":0,"embedding":[1.0]}]}'),
    ("null vector", openai, EMBED, b'{"data":[{"index":0,"embedding":[1.0]},{"index":1,"embedding":null}]}'),
    ("uneven", openai, EMBED, b'{"data":[{"index":0,"embedding":[1.0]},{"index":1,"embedding":[1,2]}]}'),
    ("infinite", openai, EMBED, b'{"data":[{"index":0,"embedding":[1.0]},{"index":1,"embedding":[1e300]}]}'),
    ("infinite base64", openai, EMBED, b'{"data":[{"embedding":"AACAfw=="},{"embedding":"AACAPw=="}]}'),
    ("bad base64", openai, EMBED, b'{"data":[{"embedding":"AACA"},{"embedding":"AACAPw=="}]}'),
    ("same index", openai, EMBED, b'{"data":[{"index":0,"embedding":[1.0]},{"index":0,"embedding":[1.0]}]}'),
    ("no content", anthropic, CHAT, b'{"type":"message","stop_reason":"end_turn"}'),
    ("nothing said", anthropic, CHAT, b'{"content":[],"stop_reason":null}'),
    ("bad use", anthropic, CHAT, b'{"content":[{"type":"tool_use","id":"a"}],"stop_reason":"tool_use"}'),
    ("unfinished", ollama, CHAT, b'{"message":{"content":"hel"},"done":false}'),
    ("only loaded", ollama, CHAT, b'{"message":{"content":""},"done":true,"done_reason":"load"}'),
    ("stream cut short", ollama, CHAT, b'{"message":{"content":"a"},"done":false}\n{"message":{"content":"b"},"do'),
    (
        "stream ended",
        ollama,
        CHAT,
        b'{"message":{"content":"a"},"done":false}\n{"message":{"content":"b"},"done":false}',
    ),
    ("no vectors", ollama, EMBED, b'{"model":"m"}'),
    ("too many vectors", ollama, EMBED, b'{"embeddings":[[1.0],[1.0],[1.0]]}'),
]


@pytest.mark.parametrize(("_name", "dialect", "asked", "body"), GARBLED, ids=[row[0] for row in GARBLED])
def test_a_good_status_with_a_bad_body_is_garbled(_name: str, dialect: ModuleType, asked: Request, body: bytes) -> None:
    fault = dialect.decode(asked, 200, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.GARBLED
    assert fault.kind in PASSING


def test_a_page_of_a_proxy_is_garbled_even_if_it_is_json() -> None:
    body = b'{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}'
    fault = openai.decode(CHAT, 200, {"Content-Type": "text/html; charset=utf-8"}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.GARBLED
    assert "text/html" in fault.message


def test_an_error_inside_a_stream_is_that_error() -> None:
    body = b'{"message":{"content":"a"},"done":false}\n{"error":"server busy, please try again."}\n'
    fault = ollama.decode(CHAT, 200, {"content-type": "application/x-ndjson"}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.OVERLOADED


def test_a_filtered_choice_is_a_fault() -> None:
    body = b'{"choices":[{"message":{"content":"half"},"finish_reason":"content_filter"}]}'
    fault = openai.decode(CHAT, 200, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is K.FILTERED


SECRETS = [
    (401, "Incorrect API key provided: sk-proj-abc123********wxyz. Find yours at platform.openai.com."),
    (400, "Invalid header: Authorization: Bearer abcdefghij"),
    (500, "could not use key-0123456789abcdef for this"),
]


@pytest.mark.parametrize(("status", "message"), SECRETS, ids=["openai", "bearer", "other"])
def test_no_piece_of_a_key_is_repeated(status: int, message: str) -> None:
    fault = openai.decode(CHAT, status, {}, msgspec.json.encode(openai_error(message)), 0.0)
    assert isinstance(fault, Fault)
    assert not any(piece in fault.message for piece in ("abc123", "wxyz", "abcdefghij", "0123456789"))


def test_a_refused_key_says_what_the_provider_calls_it() -> None:
    body = msgspec.json.encode(openai_error("Incorrect API key provided: abc", code="invalid_api_key"))
    fault = openai.decode(CHAT, 401, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert fault.message.endswith("(invalid_api_key)")


def test_an_error_that_is_empty_is_none() -> None:
    body = b'{"error":{},"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
    assert openai.decode(CHAT, 200, {}, body, 0.0) == Reply("hi")


def test_a_long_message_is_cut_and_stands_on_one_line() -> None:
    body = msgspec.json.encode(openai_error("too\n much " * 1000))
    fault = openai.decode(CHAT, 400, {}, body, 0.0)
    assert isinstance(fault, Fault)
    assert len(fault.message) < 330
    assert "\n" not in fault.message


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
    fault = anthropic.decode(CHAT, 429, {"Retry-After": "7"}, b"", 0.0)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retry_after) == (K.RATE_LIMITED, 7.0)


TOLD = [(500, "false", K.BAD_REQUEST), (400, "true", K.SERVER), (429, "false", K.RATE_LIMITED), (401, "true", K.AUTH)]


@pytest.mark.parametrize(("status", "told", "kind"), TOLD, ids=[f"{row[0]}-{row[1]}" for row in TOLD])
def test_the_server_knows_best_whether_to_try_again(status: int, told: str, kind: FaultKind) -> None:
    fault = openai.decode(CHAT, status, {"X-Should-Retry": told}, b"", 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is kind
