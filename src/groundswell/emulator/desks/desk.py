"""The path of a request through the emulator, the same for all providers. Read it from top to bottom.

serve -> strike (faults) -> _admit (model, limits) -> make (reply, ledger) -> _deliver (latency, faults)

Free requests (files, batches, lists) are errands and go through `run`.

Every refusal is a `Rejected`, which is recorded in the ledger and written in the provider's format.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from groundswell.emulator import model
from groundswell.emulator.desks.delivery import advice, encode, page, streamed, whole
from groundswell.emulator.faults import CHAT, ERRAND, Stage, Struck, Subject
from groundswell.emulator.http import Answer, Headers, HttpRequest, Silence
from groundswell.emulator.ledger import Entry
from groundswell.emulator.limits import Over
from groundswell.emulator.prices import Price, price_of
from groundswell.emulator.prompt_cache import NOT_CACHED, CacheUse
from groundswell.emulator.tokens import count, count_request
from groundswell.emulator.wire import About, Incoming, Rejected
from groundswell.emulator.world import Account, World
from groundswell.program.request import Chat, Embedding, Reply, Usage

NOBODY = "unknown"
REFUSAL = "I'm sorry, but I can't help with that."
FILTERED = 10
"""Characters of a reply that pass the content filter."""
_FORM = ("stream", "stream_options")
_canonical = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode


class Visit(NamedTuple):
    """Who asks for what."""

    account: Account
    model: str
    path: str
    entry: Entry
    method: str = "POST"


class Made(NamedTuple):
    """The model's reply to a request, with its cost and timing."""

    incoming: Incoming
    replies: Sequence[Reply | Embedding]
    usage: Usage
    about: About
    cache: CacheUse
    seconds: float
    """Until the reply starts."""
    speaking: float
    """From there until it is complete."""


class Errand(NamedTuple):
    """A free request: its account, its target, and the fault to inject."""

    account: Account
    http: HttpRequest
    id: str
    struck: Struck | None


Write = Callable[[Made], "dict[str, Any] | Iterable[bytes]"]
Do = Callable[[Errand], "dict[str, Any] | Answer"]


class Desk(ABC):
    """The desk of one provider."""

    provider: str
    id_prefix: str
    stream_type: bytes = b"text/event-stream; charset=utf-8"

    def __init__(self, world: World) -> None:
        self.world = world

    # Differences between the providers.

    @abstractmethod
    def identify(self, http: HttpRequest) -> Account:
        """The account of a request; raises `Rejected` if there is none."""

    @abstractmethod
    def error(self, rejected: Rejected) -> dict[str, Any]:
        """A refusal in the provider's format."""

    @abstractmethod
    def refusal(self, struck: Struck, name: str) -> Rejected:
        """The answer of an injected fault with a status."""

    @abstractmethod
    def too_many(self, over: Over, name: str, account: Account) -> Rejected:
        """The answer to a request over a limit."""

    @abstractmethod
    def unknown_model(self, name: str) -> Rejected:
        """The answer to a request for an unknown model."""

    @abstractmethod
    def too_long(self, tokens: int, room: int) -> Rejected:
        """The answer to a prompt that is too long."""

    @abstractmethod
    def charges(self, tokens: int, incoming: Incoming) -> dict[str, int]:
        """The amounts that a request takes from the buckets before it is answered."""

    @abstractmethod
    def empty(self, body: dict[str, Any]) -> None:
        """Remove all content from a reply."""

    @abstractmethod
    def stream_error(self) -> bytes:
        """The event that ends a stream that fails midway."""

    def headers(self, account: Account, name: str) -> Headers:
        """The headers of every answer."""
        return ()

    def settle(  # noqa: B027  # most have nothing to correct
        self, account: Account, name: str, charged: dict[str, int], usage: Usage
    ) -> None:
        """Correct the buckets once the usage of a reply is known."""

    def failed(self, account: Account, name: str) -> None:  # noqa: B027  # most count what they let in
        """A request was refused."""

    def cached(self, account: Account, incoming: Incoming, tokens: int, data: Any) -> CacheUse:
        """The cached part of a prompt."""
        return NOT_CACHED

    # Requests to the model.

    def serve(
        self, http: HttpRequest, read: Callable[[Any], Incoming], write: Write, able: frozenset[str] = CHAT
    ) -> Answer | Silence:
        """Answer a request to a model; `able` are the faults that it can get."""
        account = self._account(http)
        if isinstance(account, Answer):
            return account
        data = decode_body(http.body)
        visit = self._enter(account, named(data), http)
        try:
            struck = self.strike(visit, able)
            if struck is not None and struck.kind.stage is Stage.REQUEST:
                return self._fail(struck, visit)
            incoming = read(data)
            charged = self._admit(visit, incoming)
            made = self.make(visit, incoming, data, struck)
            self.settle(account, visit.model, charged, made.usage)
            return self._deliver(visit, made, write, struck)
        except Rejected as rejected:
            self.failed(account, visit.model)
            return self._refuse(rejected, visit.entry, self.headers(account, visit.model))
        except Exception:
            visit.entry.break_off()
            raise

    def _account(self, http: HttpRequest) -> Account | Answer:
        """The account of a request, or the answer to one without an account."""
        try:
            return self.identify(http)
        except Rejected as rejected:
            entry = self.world.ledger.entry(NOBODY, "")
            entry.received += 1
            return self._refuse(rejected, entry, ())

    def _enter(self, account: Account, name: str, http: HttpRequest) -> Visit:
        """Record a request in the ledger."""
        entry = self.world.ledger.entry(account.name, name)
        entry.received += 1
        return Visit(account, name, http.path, entry, http.method)

    def strike(self, visit: Visit, able: frozenset[str]) -> Struck | None:
        """The fault of this request, if any."""
        subject = Subject(visit.path, visit.model, visit.account.name, visit.method)
        struck = self.world.faults.strike(subject, able)
        if struck is not None:
            visit.entry.faults[struck.name] += 1
        return struck

    def _admit(self, visit: Visit, incoming: Incoming) -> dict[str, int]:
        """Admit a request if the model exists, the prompt fits, and no limit is exceeded."""
        charged = self.charges(self.check(incoming), incoming)
        meter = self.world.meter(visit.account, self.provider, visit.model)
        over = meter.admit(charged, self.world.real())
        if over is not None:
            visit.entry.limits_broken[over.name] += 1
            rejected = self.too_many(over, visit.model, visit.account)
            rejected.retry_after = max(1, math.ceil(over.wait)) if math.isfinite(over.wait) else None
            raise rejected
        return charged

    def check(self, incoming: Incoming) -> int:
        """The tokens of a prompt, if the model exists and the prompt fits."""
        self.known(incoming.request.model)
        room = self.world.settings.context
        tokens = count_request(incoming.request)
        if tokens > room:
            raise self.too_long(tokens, room)
        return tokens

    def known(self, name: str) -> str:
        """A model that exists."""
        if not self.world.knows(self.provider, name):
            raise self.unknown_model(name)
        return name

    def make(
        self, visit: Visit, incoming: Incoming, data: Any, struck: Struck | None = None, *, batch: bool = False
    ) -> Made:
        """Let the model answer, and record it in the ledger: from here on it is charged."""
        request, settings = incoming.request, self.world.settings
        print_ = fingerprint(data)
        sample = 0 if isinstance(request, Chat) and request.seed is not None else visit.entry.paid.get(print_, 0)
        replies: list[Reply | Embedding] = [
            model.answer(request, seed=settings.seed, sample=sample * incoming.choices + number)
            for number in range(incoming.choices)
        ]
        if struck is not None:
            replies = [ended(reply, struck.name) for reply in replies]
        cache = self.cached(visit.account, incoming, replies[0].usage.input_tokens, data)
        if cache is not NOT_CACHED:
            replies = [with_cache(reply, cache) for reply in replies]
        usage = summed(replies)
        visit.entry.pay(print_, usage, self.price(visit.model), hour=cache.hour, batch=batch)
        length = sum(len(reply.text) for reply in replies if isinstance(reply, Reply))
        first = settings.latency.first(settings.seed, print_, sample)
        about = About(self.world.new_id(self.id_prefix), self.world.clock.now(), visit.model)
        return Made(incoming, replies, usage, about, cache, first, settings.latency.per_char * length)

    def price(self, name: str) -> Price:
        """The price of a model."""
        return price_of(name, self.world.settings.prices)

    def delay(self, made: Made) -> float:
        """Seconds until the reply is complete."""
        return made.seconds + made.speaking

    def _deliver(self, visit: Visit, made: Made, write: Write, struck: Struck | None) -> Answer | Silence:
        """Send the reply, or what a fault makes of it."""
        fault = struck.name if struck is not None else ""
        delay, headers = self.delay(made), self.headers(visit.account, visit.model)
        written = write(made)
        if isinstance(written, dict):
            if fault == "empty":
                self.empty(written)
            answer = whole(written, fault, headers)
        elif fault == "drop-after":
            answer = Silence()
        else:
            chunks = list(written)
            pause = made.speaking / max(1, len(chunks))
            answer = streamed(chunks, fault, self.stream_error(), self.stream_type, pause)
            delay -= made.speaking
        if isinstance(answer, Silence):
            return answer
        if delay <= 0 and answer.chunks is None:
            return answer
        visit.entry.enter()
        return answer._replace(headers=headers, delay=delay, ended=visit.entry.leave)

    # Answers without a reply.

    def _fail(self, struck: Struck, visit: Visit) -> Answer | Silence:
        """An injected fault, before any work is done."""
        self.failed(visit.account, visit.model)
        headers = self.headers(visit.account, visit.model)
        if struck.name in ("drop", "hang"):
            visit.entry.unanswered += 1
            return Silence(hang=struck.name == "hang")
        if struck.name in ("html", "502"):
            answer = page(200 if struck.name == "html" else 502, headers)
            visit.entry.refused[answer.status] += 1
            return answer
        rejected = self.refusal(struck, visit.model)
        return self._refuse(rejected, visit.entry, [*headers, *advice(struck, self.world.real())])

    def _refuse(self, rejected: Rejected, entry: Entry, headers: Headers) -> Answer:
        """A refusal as an answer."""
        entry.refused[rejected.status] += 1
        if rejected.retry_after is not None:
            headers = [*headers, (b"retry-after", b"%g" % rejected.retry_after)]
        return Answer(rejected.status, encode(self.error(rejected)), headers=headers)

    # Free requests.

    def run(self, http: HttpRequest, id: str, do: Do, able: frozenset[str] = ERRAND) -> Answer | Silence:
        """Handle a free request: files, batches and lists. `id` is the one in the path."""
        account = self._account(http)
        if isinstance(account, Answer):
            return account
        visit = self._enter(account, "", http)
        try:
            struck = self.strike(visit, able)
            if struck is not None and struck.kind.stage is Stage.REQUEST:
                return self._fail(struck, visit)
            given = do(Errand(account, http, id, struck))
            answer = whole(given, struck.name if struck is not None else "", self.headers(account, ""))
        except Rejected as rejected:
            return self._refuse(rejected, visit.entry, self.headers(account, ""))
        except Exception:
            visit.entry.break_off()
            raise
        visit.entry.free += 1
        return answer


def decode_body(body: bytes) -> Any:
    """The JSON of a body; None if it is invalid."""
    try:
        return _decode(body)
    except (ValueError, RecursionError):  # invalid UTF-8 is also a ValueError, but not one of msgspec's
        return None


def named(data: Any) -> str:
    """The model that a body names."""
    name = data.get("model") if isinstance(data, dict) else None
    return name if isinstance(name, str) else ""


def fingerprint(data: Any) -> bytes:
    """Equal for requests with the same content, streamed or not."""
    try:
        plain = _canonical({key: data[key] for key in data if key not in _FORM})
    except RecursionError:  # JSON can be read slightly deeper than it can be written
        raise Rejected(400, "The JSON body is nested too deeply.", kind="invalid_request_error") from None
    return blake2b(plain, digest_size=16).digest()


def ended(reply: Reply | Embedding, fault: str) -> Reply | Embedding:
    """A reply turned into a refusal, or truncated by the content filter, if that is the fault."""
    if isinstance(reply, Embedding) or fault not in ("refusal", "filter", "line-filter"):
        return reply
    text, finish = (REFUSAL, "refusal") if fault == "refusal" else (reply.text[:FILTERED], "content_filter")
    usage = msgspec.structs.replace(reply.usage, output_tokens=count(text))
    return Reply(text, usage, finish, reply.model)


def with_cache(reply: Reply | Embedding, cache: CacheUse) -> Reply | Embedding:
    """A reply with the prompt cache's figures."""
    usage = msgspec.structs.replace(reply.usage, cached_tokens=cache.read, cache_write_tokens=cache.written)
    return msgspec.structs.replace(reply, usage=usage)


def summed(replies: Sequence[Reply | Embedding]) -> Usage:
    """The usage that is charged: the input once, and all output."""
    if len(replies) == 1:
        return replies[0].usage
    output = sum(reply.usage.output_tokens for reply in replies)
    return msgspec.structs.replace(replies[0].usage, output_tokens=output)
