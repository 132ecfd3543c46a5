"""Map the status, headers and body of an error answer to a fault.

The tables here apply to every provider. A provider adds its own `FaultTable`, which is read first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from groundswell.program.request import Fault, FaultKind

LONGEST_WAIT = 86_400.0
"""Seconds. A header that asks for a longer wait than a day is treated as a mistake."""
LONGEST_MESSAGE = 300

STATUSES = {
    401: FaultKind.AUTH,
    402: FaultKind.QUOTA,
    403: FaultKind.AUTH,
    404: FaultKind.NOT_FOUND,
    408: FaultKind.TIMEOUT,
    409: FaultKind.SERVER,
    413: FaultKind.CONTEXT,
    429: FaultKind.RATE_LIMITED,
    499: FaultKind.SERVER,
    503: FaultKind.OVERLOADED,
    504: FaultKind.TIMEOUT,
    529: FaultKind.OVERLOADED,
}
FALLBACK_CODES = {
    "authentication_error": FaultKind.AUTH,
    "permission_error": FaultKind.AUTH,
    "invalid_api_key": FaultKind.AUTH,
    "not_found_error": FaultKind.NOT_FOUND,
    "model_not_found": FaultKind.NOT_FOUND,
    "rate_limit_error": FaultKind.RATE_LIMITED,
    "rate_limit_exceeded": FaultKind.RATE_LIMITED,
    "overloaded_error": FaultKind.OVERLOADED,
    "timeout_error": FaultKind.TIMEOUT,
    "invalid_request_error": FaultKind.BAD_REQUEST,
}
"""Kinds by `type` or `code`, for error bodies that arrive with status 200."""

EXACT_CODES = {
    "insufficient_quota": FaultKind.QUOTA,
    "billing_error": FaultKind.QUOTA,
    "billing_hard_limit_reached": FaultKind.QUOTA,
    "billing_not_active": FaultKind.QUOTA,
    "context_length_exceeded": FaultKind.CONTEXT,
    "exceed_context_size_error": FaultKind.CONTEXT,
    "request_too_large": FaultKind.CONTEXT,
    "content_policy_violation": FaultKind.FILTERED,
    "content_filter": FaultKind.FILTERED,
}
"""Kinds by `type` or `code` that take precedence over the status."""

EXACT_PHRASES = (
    ("credit balance is too low", FaultKind.QUOTA),
    ("exceeded your current quota", FaultKind.QUOTA),
    ("prompt is too long", FaultKind.CONTEXT),
    ("maximum context length", FaultKind.CONTEXT),
    ("exceeds the available context size", FaultKind.CONTEXT),
    ("exceeds the context length", FaultKind.CONTEXT),
    ("exceeds maximum context length", FaultKind.CONTEXT),
    ("request too large", FaultKind.CONTEXT),
    ("content management policy", FaultKind.FILTERED),
    ("violating our usage policy", FaultKind.FILTERED),
    ("output blocked by content filtering policy", FaultKind.FILTERED),
)
"""Kinds by a phrase in the message, where neither status nor code is specific."""

_SECRET = re.compile(
    r"(?i)\b(?:"
    r"bearer\s+\S+"
    r"|(?:sk|key|gsk|xai|pk|hf|r8|pplx|nvapi|fw|csk)[-_][\w*.\-]{6,}"
    r"|AIza[\w*.\-]{6,}"
    r"|(?P<named>(?:(?:x-)?api[-_ ]?key|authorization)[\"']?\s*[:=]\s*[\"']?)(?:(?:basic|bearer)\s+)?[\w*.+/=\-]{6,}"
    r")"
)
"""Matches keys by their usual prefixes, and values that follow a header name such as `api-key`."""
_NAME = re.compile(r"[a-z]+(_[a-z]+)+")
JSON_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions that decoding arbitrary bytes as JSON may raise."""


class FaultTable(NamedTuple):
    """Kinds of a provider's errors. It is read before the tables that all providers share.

    codes    by the `type`, `code` or `status` of an error body
    phrases  by a phrase in its message or in the names of exhausted quotas; in lower case
    """

    codes: Mapping[str, FaultKind] = MappingProxyType({})
    phrases: tuple[tuple[str, FaultKind], ...] = ()


SHARED = FaultTable()
"""An empty table: only the shared tables apply."""
EXACT = FaultTable(EXACT_CODES, EXACT_PHRASES)


class ErrorBody(NamedTuple):
    """The fields of an error body. Google puts `quotas` and `retry_after` into its details."""

    message: str = ""
    kind: str = ""
    code: str = ""
    quotas: str = ""
    retry_after: float | None = None


def load_json(body: bytes | str) -> Any:
    """Decode a body as JSON. Return `...` if it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except JSON_ERRORS:
        return ...


def read_error(data: object) -> ErrorBody | None:
    """Read the error object from an answer, in any of the known shapes, or None."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]  # Google's OpenAI-compatible API wraps errors in a list
    if not isinstance(data, dict):
        return None
    error = data.get("error")
    if error and isinstance(error, str):
        return ErrorBody(error)
    if error and isinstance(error, dict):
        kind = _text(error, "type") or _text(error, "status")
        details = error.get("details")
        if not isinstance(details, list):
            return ErrorBody(_text(error, "message"), kind, _text(error, "code"))
        parts = [one for one in details if isinstance(one, dict)]
        return ErrorBody(_text(error, "message"), kind, _text(error, "code"), _quotas(parts), _retry_delay(parts))
    if data.get("object") == "error" or data.get("type") == "error":
        return ErrorBody(_text(data, "message"), _text(data, "type"), _text(data, "code"))
    return None


def _text(error: dict[str, Any], key: str) -> str:
    value = error.get(key)
    return value if isinstance(value, str) else ""


def _quotas(details: list[dict[str, Any]]) -> str:
    """The quotas that a google.rpc.QuotaFailure lists, such as `GenerateRequestsPerMinutePerProjectPerModel`."""
    listed = [one["violations"] for one in details if isinstance(one.get("violations"), list)]
    found = [_text(one, "quotaId") for violations in listed for one in violations if isinstance(one, dict)]
    return " ".join(found)


def _retry_delay(details: list[dict[str, Any]]) -> float | None:
    """The delay of a google.rpc.RetryInfo in seconds, such as `39s`."""
    delays = (_number(_text(one, "retryDelay").removesuffix("s")) for one in details)
    return next((seconds for seconds in delays if seconds is not None), None)


def fault_of_answer(
    status: int, headers: Mapping[str, str], body: bytes, now: float, faults: FaultTable = SHARED
) -> Fault:
    """The fault of an answer with an error status."""
    data = load_json(body)
    said = read_error(data) or ErrorBody(_message_beside(data))
    return _fault(_classify(status, said, faults), status, said, headers, now)


def fault_of_error(said: ErrorBody, headers: Mapping[str, str], now: float, faults: FaultTable = SHARED) -> Fault:
    """The fault of an error body that arrived with a success status."""
    kind = _exact_kind(said, faults) or _fallback_kind(said) or FaultKind.SERVER
    return _fault(kind, 200, said, headers, now)


def garbled(problem: str) -> Fault:
    """The fault of an answer that cannot be read."""
    return Fault(FaultKind.GARBLED, problem)


def _message_beside(data: object) -> str:
    """The message of a body without an error object. Some servers use `detail` or `message`."""
    if isinstance(data, dict):
        return _text(data, "message") or _text(data, "detail")
    return ""


def _classify(status: int, said: ErrorBody, faults: FaultTable) -> FaultKind:
    telling = _exact_kind(said, faults)
    if telling and status != 401 and status < 500:
        return telling
    if status in STATUSES:
        return STATUSES[status]
    if status >= 500:
        return FaultKind.SERVER
    return FaultKind.BAD_REQUEST if status >= 300 else FaultKind.GARBLED


def _exact_kind(said: ErrorBody, faults: FaultTable) -> FaultKind | None:
    """The kind by code or phrase, from the provider's own table, then from the shared one."""
    return _by_table(said, faults, f"{said.message}\n{said.quotas}") or _by_table(said, EXACT, said.message)


def _by_table(said: ErrorBody, faults: FaultTable, text: str) -> FaultKind | None:
    named = faults.codes.get(said.code) or faults.codes.get(said.kind)
    if named or not faults.phrases:
        return named
    text = text.lower()
    return next((kind for words, kind in faults.phrases if words in text), None)


def _fallback_kind(said: ErrorBody) -> FaultKind | None:
    """The kind of an error that arrived with a success status. Ollama's errors have neither type nor code."""
    if named := FALLBACK_CODES.get(said.kind) or FALLBACK_CODES.get(said.code):
        return named
    if "server busy" in said.message:
        return FaultKind.OVERLOADED
    if said.message.endswith("not found"):
        return FaultKind.NOT_FOUND
    return None


def _fault(kind: FaultKind, status: int, said: ErrorBody, headers: Mapping[str, str], now: float) -> Fault:
    lowered = {name.lower(): value for name, value in headers.items()}
    return Fault(_heed_should_retry(kind, lowered), _message(kind, status, said), _wait(lowered, said, now))


def _wait(headers: Mapping[str, str], said: ErrorBody, now: float) -> float | None:
    """How long to wait, from the headers, else from the body."""
    wait = retry_after(headers, now)
    return wait if wait is not None or said.retry_after is None else min(said.retry_after, LONGEST_WAIT)


def _heed_should_retry(kind: FaultKind, headers: Mapping[str, str]) -> FaultKind:
    """`x-should-retry` overrides the kind that the status suggests, except for rate limits and overload."""
    told = headers.get("x-should-retry", "").strip().lower()
    if told == "true" and kind is FaultKind.BAD_REQUEST:
        return FaultKind.SERVER
    if told == "false" and kind in (FaultKind.SERVER, FaultKind.TIMEOUT):
        return FaultKind.BAD_REQUEST
    return kind


def _message(kind: FaultKind, status: int, said: ErrorBody) -> str:
    if kind is FaultKind.AUTH:
        # The provider's message may contain part of the key. The error code does not.
        named = next((name for name in (said.code, said.kind) if _NAME.fullmatch(name)), "no reason given")
        return f"HTTP {status}: the provider rejected the key, or the key lacks permission ({named})"
    return f"HTTP {status}: {shorten(said.message) or 'no reason given'}"


def shorten(message: str) -> str:
    """A provider's message on one line, shortened, without anything that looks like a key."""
    words = " ".join(_SECRET.sub(lambda found: (found["named"] or "") + "[key]", message).split())
    return words if len(words) <= LONGEST_MESSAGE else words[: LONGEST_MESSAGE - 1] + "…"


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The wait in seconds that the server asks for. Header names are lower case; `now` is Unix time."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, ""))
        if seconds is not None:
            return min(seconds * unit, LONGEST_WAIT)
    try:
        date = parsedate_tz(headers.get("retry-after", ""))
        return None if date is None else min(max(0.0, mktime_tz(date) - now), LONGEST_WAIT)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
