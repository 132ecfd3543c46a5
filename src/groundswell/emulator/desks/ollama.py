"""Ollama's desk: chat, generate, embed, and the list of models. There are no keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groundswell.emulator.desks.delivery import encode
from groundswell.emulator.desks.desk import Desk, Errand, Made, Visit, decode_body, named
from groundswell.emulator.faults import EMBED, Struck
from groundswell.emulator.http import Answer, HttpRequest, Silence
from groundswell.emulator.limits import REQUESTS, TOKENS, Over
from groundswell.emulator.prices import FREE, Price, price_of
from groundswell.emulator.prompt_cache import NOT_CACHED
from groundswell.emulator.wire import About, Incoming, Rejected
from groundswell.emulator.wire import ollama as wire
from groundswell.emulator.world import Account
from groundswell.program.request import Chat, Embedding, Reply

VERSION = "0.12.0"
BUSY = "server busy, please try again.  maximum pending requests exceeded"
AT_ONCE = (0, "0", "0s")
"""Values of `keep_alive` that unload a model at once."""

FAULTS = {
    "400": "invalid request",
    "401": "unauthorized",
    "403": "forbidden",
    "404": "not found",
    "408": "request timed out",
    "409": "conflict",
    "413": "request too large",
    "429": "too many requests",
    "429-bare": "too many requests",
    "quota": "usage limit reached",
    "500": "llama runner process has terminated",
    "503": BUSY,
    "504": "timed out waiting for llama runner to start",
    "529": BUSY,
}


class OllamaDesk(Desk):
    """Behaves like an Ollama server."""

    provider = "ollama"
    id_prefix = "ollama-"
    stream_type = b"application/x-ndjson"

    def identify(self, http: HttpRequest) -> Account:
        return self.world.named("ollama")

    def error(self, rejected: Rejected) -> dict[str, Any]:
        return wire.write_error(rejected)

    def refusal(self, struck: Struck, name: str) -> Rejected:
        if struck.name == "context":
            return self.too_long(self.world.settings.context + 1, self.world.settings.context)
        if struck.name == "404":
            return self.unknown_model(name)
        return Rejected(struck.kind.status or 429, FAULTS[struck.name], kind=struck.name)

    def too_many(self, over: Over, name: str, account: Account) -> Rejected:
        return Rejected(429, f"too many requests: {over.limit} {over.name} per minute", kind=over.name)

    def unknown_model(self, name: str) -> Rejected:
        return Rejected(404, f"model '{name}' not found", kind="not_found")

    def too_long(self, tokens: int, room: int) -> Rejected:
        return Rejected(400, "the input length exceeds the context length", kind="context")

    def charges(self, tokens: int, incoming: Incoming) -> dict[str, int]:
        return {REQUESTS: 1, TOKENS: tokens}

    def delay(self, made: Made) -> float:
        """Requests wait for a free slot."""
        return self.world.slots.enter(super().delay(made), self.world.real())

    def price(self, name: str) -> Price:
        """Zero, unless the user set a price."""
        return price_of(name, self.world.settings.prices, FREE)

    def make(
        self, visit: Visit, incoming: Incoming, data: Any, struck: Struck | None = None, *, batch: bool = False
    ) -> Made:
        """Without a prompt, the model is loaded, or unloaded if `keep_alive` says so; that is free."""
        if not isinstance(incoming.request, Chat) or incoming.request.messages:
            return super().make(visit, incoming, data, struck, batch=batch)
        visit.entry.free += 1
        reply = Reply("", finish="unload" if data.get("keep_alive") in AT_ONCE else "load")
        about = About(self.world.new_id(self.id_prefix), self.world.clock.now(), visit.model)
        return Made(incoming, (reply,), reply.usage, about, NOT_CACHED, 0.0, 0.0)

    def empty(self, body: dict[str, Any]) -> None:
        if "embeddings" in body:
            body["embeddings"] = []
        elif "message" in body:
            body["message"]["content"] = ""
        else:
            body["response"] = ""

    def stream_error(self) -> bytes:
        return encode({"error": "an error was encountered while running the model: unexpected EOF"}) + b"\n"

    # The endpoints.

    def chat(self, http: HttpRequest) -> Answer | Silence:
        """POST /api/chat"""
        return self.serve(http, wire.read_chat, self.write_chat)

    def generate(self, http: HttpRequest) -> Answer | Silence:
        """POST /api/generate"""
        return self.serve(http, wire.read_generate, self.write_chat)

    def embed(self, http: HttpRequest) -> Answer | Silence:
        """POST /api/embed"""
        return self.serve(http, wire.read_embed, self.write_embeddings, EMBED)

    def check(self, incoming: Incoming) -> int:
        tokens = super().check(incoming)
        if self.world.slots.full(self.world.real()):
            raise Rejected(503, BUSY, kind="busy")
        return tokens

    def write_chat(self, made: Made) -> dict[str, Any] | Iterable[bytes]:
        """A reply, whole or streamed."""
        (reply,) = made.replies
        assert isinstance(reply, Reply)
        if reply.finish in ("load", "unload"):
            return self._write_loaded(reply, made)
        write = wire.stream_chat if made.incoming.stream else wire.write_chat
        return write(reply, made.about, made.incoming.legacy, made.seconds + made.speaking)

    def _write_loaded(self, reply: Reply, made: Made) -> dict[str, Any] | Iterable[bytes]:
        body = wire.write_chat(reply, made.about, made.incoming.legacy, 0.0) | {"done_reason": reply.finish}
        body.pop("context", None)
        return [encode(body) + b"\n"] if made.incoming.stream else body

    def write_embeddings(self, made: Made) -> dict[str, Any]:
        """Vectors."""
        (embedding,) = made.replies
        assert isinstance(embedding, Embedding)
        return wire.write_embed(embedding, made.about, made.seconds)

    def tags(self, errand: Errand) -> dict[str, Any]:
        """GET /api/tags"""
        return wire.write_tags(self.world.listed(self.provider), self.world.clock.now())

    def running(self, errand: Errand) -> dict[str, Any]:
        """GET /api/ps"""
        return wire.write_ps(self.world.listed(self.provider), self.world.clock.now())

    def show(self, errand: Errand) -> dict[str, Any]:
        """POST /api/show"""
        name = named(decode_body(errand.http.body))
        if not name:
            raise Rejected(400, "model is required", kind="invalid")
        return wire.write_show(self.known(name), self.world.clock.now())
