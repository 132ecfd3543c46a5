"""Anthropic's desk: messages, token counts and models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from groundswell.emulator.desks.delivery import encode
from groundswell.emulator.desks.desk import Desk, Errand, Made, decode_body
from groundswell.emulator.faults import Struck
from groundswell.emulator.http import Answer, Headers, HttpRequest, Silence
from groundswell.emulator.limits import INPUT, OUTPUT, REQUESTS, Over, Standing
from groundswell.emulator.prompt_cache import CacheUse
from groundswell.emulator.wire import Incoming, Rejected
from groundswell.emulator.wire import anthropic as wire
from groundswell.emulator.wire.pieces import timestamp
from groundswell.emulator.world import Account
from groundswell.program.request import Chat, Reply, Usage

INVALID = "invalid_request_error"
HEADER_NAMES = {REQUESTS: b"requests", INPUT: b"input-tokens", OUTPUT: b"output-tokens"}
UNITS = {REQUESTS: "requests", INPUT: "input tokens", OUTPUT: "output tokens"}
MAX_BODY = 32 * 1024 * 1024
MOST_RESERVED = 2**53
"""Tokens of output. A larger max_tokens is equivalent, and too large to compute with."""

FAULTS: dict[str, tuple[str, str]] = {
    "400": (INVALID, "Your request was malformed."),
    "401": ("authentication_error", "invalid x-api-key"),
    "403": ("permission_error", "Your API key does not have permission to use the specified resource."),
    "404": ("not_found_error", "The requested resource could not be found."),
    "408": ("timeout_error", "The request timed out."),
    "409": (INVALID, "The resource was changed by another request."),
    "413": ("request_too_large", "Request exceeds the maximum size"),
    "429": ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    "429-bare": ("rate_limit_error", "Number of concurrent connections has exceeded your rate limit."),
    "500": ("api_error", "Internal server error"),
    "503": ("api_error", "Service unavailable"),
    "504": ("timeout_error", "The upstream server did not answer in time."),
    "529": ("overloaded_error", "Overloaded"),
}
LOW_BALANCE = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade."


class AnthropicDesk(Desk):
    """Behaves like api.anthropic.com."""

    provider = "anthropic"
    id_prefix = "msg_"

    def identify(self, http: HttpRequest) -> Account:
        bearer = http.headers.get("authorization", "").removeprefix("Bearer ").strip()
        key = http.headers.get("x-api-key", "").strip() or bearer
        if not key:
            raise Rejected(401, "x-api-key header is required", kind="authentication_error")
        account = self.world.account(key)
        if account is None:
            raise Rejected(401, "invalid x-api-key", kind="authentication_error")
        if "anthropic-version" not in http.headers:
            raise Rejected(400, "anthropic-version: header is required", kind=INVALID)
        return account

    def error(self, rejected: Rejected) -> dict[str, Any]:
        return wire.write_error(rejected, self.world.new_id("req_"))

    def refusal(self, struck: Struck, name: str) -> Rejected:
        if struck.name == "quota":
            return Rejected(400, LOW_BALANCE, kind=INVALID)
        if struck.name == "context":
            return self.too_long(self.world.settings.context + 1, self.world.settings.context)
        kind, message = FAULTS[struck.name]
        return Rejected(struck.kind.status or 500, message, kind=kind)

    def too_many(self, over: Over, name: str, account: Account) -> Rejected:
        message = (
            f"This request would exceed your organization's rate limit of {over.limit:,} {UNITS[over.name]} per minute "
            f"(organization {account.name}, model {name}). Please try again later."
        )
        return Rejected(429, message, kind="rate_limit_error")

    def unknown_model(self, name: str) -> Rejected:
        return Rejected(404, f"model: {name}{self.world.hint(name)}", kind="not_found_error")

    def too_long(self, tokens: int, room: int) -> Rejected:
        return Rejected(400, f"prompt is too long: {tokens} tokens > {room} maximum", kind=INVALID)

    def charges(self, tokens: int, incoming: Incoming) -> dict[str, int]:
        asked = incoming.request.max_tokens if isinstance(incoming.request, Chat) else None
        return {REQUESTS: 1, INPUT: tokens, OUTPUT: min(asked or 0, MOST_RESERVED)}

    def settle(self, account: Account, name: str, charged: dict[str, int], usage: Usage) -> None:
        """Output was reserved by max_tokens, and cached input does not count."""
        meter, now = self.world.meter(account, self.provider, name), self.world.real()
        meter.correct(OUTPUT, usage.output_tokens - charged[OUTPUT], now)
        meter.correct(INPUT, -usage.cached_tokens, now)

    def cached(self, account: Account, incoming: Incoming, tokens: int, data: Any) -> CacheUse:
        return account.prompts.marked(wire.cache_points(data), self.world.clock.now())

    def headers(self, account: Account, name: str) -> Headers:
        headers = [(b"request-id", self.world.new_id("req_").encode())]
        now = self.world.real()
        standings = self.world.standings(account, self.provider, name)
        for standing in standings:
            headers += _ratelimit(HEADER_NAMES[standing.name], standing, now)
        of_tokens = [standing for standing in standings if standing.name != REQUESTS]
        if of_tokens:
            headers += _ratelimit(b"tokens", min(of_tokens, key=_left), now)
        return headers

    def empty(self, body: dict[str, Any]) -> None:
        body["content"] = []

    def stream_error(self) -> bytes:
        failed = self.error(Rejected(529, "Overloaded", kind="overloaded_error"))
        return b"event: error\ndata: " + encode(failed) + b"\n\n"

    # The endpoints.

    def messages(self, http: HttpRequest) -> Answer | Silence:
        """POST /v1/messages"""
        read = wire.read_chat if len(http.body) <= MAX_BODY else too_large
        return self.serve(http, read, self.write_message)

    def write_message(self, made: Made) -> dict[str, Any] | Iterable[bytes]:
        """A reply, whole or streamed."""
        (reply,) = made.replies
        assert isinstance(reply, Reply)
        write = wire.stream_message if made.incoming.stream else wire.write_message
        return write(reply, made.about, for_an_hour=made.cache.hour)

    def count_tokens(self, errand: Errand) -> dict[str, Any]:
        """POST /v1/messages/count_tokens"""
        data = decode_body(errand.http.body)
        counted = dict(data, max_tokens=1) if isinstance(data, dict) else data
        return {"input_tokens": self.check(wire.read_chat(counted))}

    def models(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/models"""
        return wire.write_models(self.world.listed(self.provider), self.world.clock.now())

    def model(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/models/{id}"""
        return wire.write_model(self.known(errand.id), self.world.clock.now())


def _left(standing: Standing) -> int:
    return standing.remaining


def _ratelimit(of: bytes, standing: Standing, now: float) -> Headers:
    """One limit in three headers; `tokens` is the token limit that is nearest."""
    of = b"anthropic-ratelimit-" + of
    left = standing.remaining if standing.name == REQUESTS else round(standing.remaining, -3)
    return (
        (of + b"-limit", b"%d" % standing.limit),
        (of + b"-remaining", b"%d" % left),
        (of + b"-reset", timestamp(now + standing.reset).encode()),
    )


def too_large(data: object) -> NoReturn:
    """Refuse a body that is too large."""
    raise Rejected(413, "Request exceeds the maximum size", kind="request_too_large")
