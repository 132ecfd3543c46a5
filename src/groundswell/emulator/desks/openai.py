"""OpenAI's desk: chat completions, embeddings and models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groundswell.emulator.desks.delivery import encode
from groundswell.emulator.desks.desk import Desk, Errand, Made
from groundswell.emulator.faults import EMBED, Struck
from groundswell.emulator.http import Answer, Headers, HttpRequest, Silence
from groundswell.emulator.limits import REQUESTS, TOKENS, Over
from groundswell.emulator.prompt_cache import NOT_CACHED, CacheUse
from groundswell.emulator.wire import Incoming, Rejected
from groundswell.emulator.wire import openai as wire
from groundswell.emulator.world import Account
from groundswell.program.request import Chat, Embedding, Reply

INVALID = "invalid_request_error"
HEADER_NAMES = {REQUESTS: (b"requests",), TOKENS: (b"tokens", b"project-tokens")}
"""A project may use the whole limit of its organisation."""

FAULTS: dict[str, tuple[str, str, str | None]] = {
    "400": ("Your request was malformed.", INVALID, None),
    "401": ("Incorrect API key provided.", INVALID, "invalid_api_key"),
    "403": ("You are not allowed to sample from this model.", INVALID, "unsupported_country_region_territory"),
    "404": ("The requested resource was not found.", INVALID, None),
    "408": ("The request timed out.", "timeout", None),
    "409": ("The resource was changed by another request.", INVALID, "conflict"),
    "413": ("The request is too large.", INVALID, None),
    "429": ("Rate limit reached. Please try again later.", "requests", "rate_limit_exceeded"),
    "429-bare": ("Rate limit reached. Please try again later.", "requests", "rate_limit_exceeded"),
    "500": ("The server had an error while processing your request.", "server_error", None),
    "503": ("The engine is currently overloaded, please try again later.", "server_error", None),
    "504": ("The upstream server did not answer in time.", "server_error", None),
    "529": ("The service is overloaded.", "server_error", None),
}


class OpenAIDesk(Desk):
    """Behaves like api.openai.com."""

    provider = "openai"
    id_prefix = "chatcmpl-"

    def identify(self, http: HttpRequest) -> Account:
        key = http.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not key:
            raise Rejected(401, "You didn't provide an API key.", kind=INVALID)
        account = self.world.account(key)
        if account is None:
            raise Rejected(401, "Incorrect API key provided.", kind=INVALID, code="invalid_api_key")
        return account

    def error(self, rejected: Rejected) -> dict[str, Any]:
        return wire.write_error(rejected)

    def refusal(self, struck: Struck, name: str) -> Rejected:
        if struck.name == "quota":
            told = "You exceeded your current quota, please check your plan and billing details."
            return Rejected(429, told, kind="insufficient_quota", code="insufficient_quota")
        if struck.name == "context":
            return self.too_long(self.world.settings.context + 1, self.world.settings.context)
        message, kind, code = FAULTS[struck.name]
        return Rejected(struck.kind.status or 500, message, kind=kind, code=code)

    def too_many(self, over: Over, name: str, account: Account) -> Rejected:
        unit = "requests per min (RPM)" if over.name == REQUESTS else "tokens per min (TPM)"
        told = f"Limit {over.limit}, Used {over.used}, Requested {over.wanted}."
        again = f" Please try again in {duration(over.wait)}." if over.wait < float("inf") else ""
        message = f"Rate limit reached for {name} in organization org-{account.name} on {unit}: {told}{again}"
        return Rejected(429, message, kind=over.name, code="rate_limit_exceeded")

    def unknown_model(self, name: str) -> Rejected:
        message = f"The model `{name}` does not exist or you do not have access to it.{self.world.hint(name)}"
        return Rejected(404, message, kind=INVALID, code="model_not_found")

    def too_long(self, tokens: int, room: int) -> Rejected:
        message = (
            f"This model's maximum context length is {room} tokens. However, your messages resulted in {tokens} "
            "tokens. Please reduce the length of the messages."
        )
        return Rejected(400, message, kind=INVALID, param="messages", code="context_length_exceeded")

    def charges(self, tokens: int, incoming: Incoming) -> dict[str, int]:
        asked = incoming.request.max_tokens if isinstance(incoming.request, Chat) else None
        return {REQUESTS: 1, TOKENS: max(asked or 0, tokens)}

    def failed(self, account: Account, name: str) -> None:
        """Failed requests also count, but never take the bucket below zero, so a client that waits is admitted."""
        if self.world.knows(self.provider, name):
            self.world.meter(account, self.provider, name).admit({REQUESTS: 1}, self.world.real())

    def cached(self, account: Account, incoming: Incoming, tokens: int, data: Any) -> CacheUse:
        if not isinstance(incoming.request, Chat):
            return NOT_CACHED
        return account.prompts.automatic(incoming.request, tokens, self.world.clock.now())

    def headers(self, account: Account, name: str) -> Headers:
        headers = [(b"x-request-id", self.world.new_id("req_").encode())]
        for standing in self.world.standings(account, self.provider, name):
            for of in HEADER_NAMES[standing.name]:
                headers += (
                    (b"x-ratelimit-limit-" + of, b"%d" % standing.limit),
                    (b"x-ratelimit-remaining-" + of, b"%d" % standing.remaining),
                    (b"x-ratelimit-reset-" + of, duration(standing.reset).encode()),
                )
        return headers

    def empty(self, body: dict[str, Any]) -> None:
        body["choices" if "choices" in body else "data"] = []

    def stream_error(self) -> bytes:
        message = "The server had an error while processing your request."
        failed = wire.write_error(Rejected(500, message, kind="server_error"))
        return b"data: " + encode(failed) + b"\n\n"

    # The endpoints.

    def chat(self, http: HttpRequest) -> Answer | Silence:
        """POST /v1/chat/completions"""
        return self.serve(http, wire.read_chat, self.write_chat)

    def embeddings(self, http: HttpRequest) -> Answer | Silence:
        """POST /v1/embeddings"""
        return self.serve(http, wire.read_embed, self.write_embeddings, EMBED)

    def write_chat(self, made: Made) -> dict[str, Any] | Iterable[bytes]:
        """A reply, whole or streamed."""
        replies = [reply for reply in made.replies if isinstance(reply, Reply)]
        if made.incoming.stream:
            return wire.stream_chat(replies, made.about, made.incoming.usage_in_stream)
        return wire.write_chat(replies, made.about)

    def write_embeddings(self, made: Made) -> dict[str, Any]:
        """Vectors."""
        (embedding,) = made.replies
        assert isinstance(embedding, Embedding)
        return wire.write_embed(embedding, made.about, made.incoming.base64)

    def models(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/models"""
        return wire.write_models(self.world.listed(self.provider), self.world.clock.now())

    def model(self, errand: Errand) -> dict[str, Any]:
        """GET /v1/models/{id}"""
        return wire.write_model(self.known(errand.id), self.world.clock.now())


def duration(seconds: float) -> str:
    """Seconds in Go's format: 12ms, 1.5s, 6m0s."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    minutes, rest = divmod(seconds, 60)
    shown = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    return f"{minutes:.0f}m{shown}" if minutes else shown
