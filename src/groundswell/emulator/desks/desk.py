"""The way of a request through the emulator, the same for all providers, read from top to bottom.

    serve -> strike (faults) -> _admit (model, limits) -> make (reply, books) -> _deliver (latency, faults)

Whatever is wrong on the way is a `Rejected`, written down in the books and answered in the provider's words.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from groundswell.emulator import model
from groundswell.emulator.faults import Stage, Struck, Subject
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
HTML = b"text/html; charset=utf-8"
PAGE = b"<html><head><title>%d</title></head><body><h1>%d %b</h1><hr>gateway</body></html>"
_FORM = ("stream", "stream_options")
_canonical = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


class Visit(NamedTuple):
    """Who asks for what."""

    account: Account
    model: str
    path: str
    entry: Entry


class Made(NamedTuple):
    """What the model made of a request, and what goes with it."""

    incoming: Incoming
    replies: Sequence[Reply | Embedding]
    usage: Usage
    about: About
    cache: CacheUse
    seconds: float
    """Until the reply begins."""
    speaking: float
    """From there until it is whole."""


Write = Callable[[Made], "dict[str, Any] | Iterable[bytes]"]
Work = Callable[[Account, "Struck | None"], "Awaitable[dict[str, Any] | Answer]"]


class Desk(ABC):
    """One provider's counter."""

    provider: str
    id_prefix: str
    stream_type: bytes = b"text/event-stream; charset=utf-8"

    def __init__(self, world: World) -> None:
        self.world = world

    # What differs between the providers.

    @abstractmethod
    def identify(self, http: HttpRequest) -> Account:
        """Whose request it is; raises `Rejected` where it is nobody's."""

    @abstractmethod
    def error(self, rejected: Rejected) -> dict[str, Any]:
        """A refusal in the provider's words."""

    @abstractmethod
    def refusal(self, struck: Struck, name: str) -> Rejected:
        """What an injected fault with a status looks like here."""

    @abstractmethod
    def too_many(self, over: Over, name: str, account: Account) -> Rejected:
        """What breaking a limit looks like here."""

    @abstractmethod
    def unknown_model(self, name: str) -> Rejected:
        """What asking for a model that does not exist looks like here."""

    @abstractmethod
    def too_long(self, tokens: int, room: int) -> Rejected:
        """What a prompt that does not fit the model looks like here."""

    @abstractmethod
    def charges(self, tokens: int, incoming: Incoming) -> dict[str, int]:
        """What a request takes from the buckets before it is answered."""

    @abstractmethod
    def spoil(self, body: dict[str, Any], fault: str) -> None:
        """Empty a reply, or end it by the content filter."""

    @abstractmethod
    def stream_error(self) -> bytes:
        """What ends a stream that fails after it has begun."""

    def headers(self, account: Account, name: str) -> Headers:
        """What every answer says beside its body."""
        return ()

    def settle(  # noqa: B027  # most have nothing to correct
        self, account: Account, name: str, charged: dict[str, int], usage: Usage
    ) -> None:
        """Correct the buckets once it is known what a reply took."""

    def failed(self, account: Account, name: str) -> None:  # noqa: B027  # most count what they let in
        """A request was refused."""

    def cached(self, account: Account, incoming: Incoming, tokens: int, data: Any) -> CacheUse:
        """What of a prompt was cached."""
        return NOT_CACHED

    # What is the same.

    def serve(self, http: HttpRequest, read: Callable[[Any], Incoming], write: Write) -> Answer | Silence:
        """Answer a request to a model."""
        try:
            account = self.identify(http)
        except Rejected as rejected:
            entry = self.world.ledger.entry(NOBODY, "")
            entry.received += 1
            return self.refuse(rejected, entry, ())
        data = decode_body(http.body)
        visit = self.enter(account, named(data), http.path)
        try:
            struck = self.strike(visit, Stage.REQUEST, Stage.REPLY)
            if struck is not None and struck.kind.stage is Stage.REQUEST:
                return self.fail(struck, visit)
            incoming = read(data)
            charged = self._admit(visit, incoming)
            made = self.make(visit, incoming, data, struck)
            self.settle(account, visit.model, charged, made.usage)
            return self._deliver(visit, made, write, struck)
        except Rejected as rejected:
            self.failed(account, visit.model)
            return self.refuse(rejected, visit.entry, self.headers(account, visit.model))

    def enter(self, account: Account, name: str, path: str) -> Visit:
        """Write into the books that a request came."""
        entry = self.world.ledger.entry(account.name, name)
        entry.received += 1
        return Visit(account, name, path, entry)

    async def manage(self, http: HttpRequest, work: Work, *stages: Stage) -> Answer | Silence:
        """Answer a request that costs nothing: of files, batches and lists."""
        try:
            account = self.identify(http)
        except Rejected as rejected:
            entry = self.world.ledger.entry(NOBODY, "")
            entry.received += 1
            return self.refuse(rejected, entry, ())
        visit = self.enter(account, "", http.path)
        headers = self.headers(account, "")
        try:
            struck = self.strike(visit, Stage.REQUEST, Stage.REPLY, *stages)
            if struck is not None and struck.kind.stage is Stage.REQUEST:
                return self.fail(struck, visit)
            given = await work(account, struck)
        except Rejected as rejected:
            return self.refuse(rejected, visit.entry, headers)
        visit.entry.free += 1
        name = struck.name if struck is not None else ""
        return spoiled(given, name, headers)

    def inform(self, http: HttpRequest, tell: Callable[[], dict[str, Any]]) -> Awaitable[Answer | Silence]:
        """Answer a request that only wants to know something."""

        async def work(account: Account, struck: Struck | None) -> dict[str, Any]:
            return tell()

        return self.manage(http, work)

    def known(self, name: str) -> str:
        """A model that exists."""
        if not self.world.knows(self.provider, name):
            raise self.unknown_model(name)
        return name

    def strike(self, visit: Visit, *stages: Stage) -> Struck | None:
        """The fault that this request meets, if any."""
        struck = self.world.faults.strike(Subject(visit.path, visit.model, visit.account.name), *stages)
        if struck is not None:
            visit.entry.faults[struck.name] += 1
        return struck

    def fail(self, struck: Struck, visit: Visit) -> Answer | Silence:
        """An injected fault, in place of any work."""
        self.failed(visit.account, visit.model)
        headers = self.headers(visit.account, visit.model)
        if struck.name in ("drop", "hang"):
            visit.entry.unanswered += 1
            return Silence(hang=struck.name == "hang")
        if struck.name in ("html", "502"):
            status = 200 if struck.name == "html" else 502
            visit.entry.refused[status] += 1
            return Answer(status, PAGE % (status, status, b"Gateway"), HTML, headers)
        rejected = self.refusal(struck, visit.model)
        if struck.name == "429":
            rejected.retry_after = struck.retry_after
        return self.refuse(rejected, visit.entry, headers)

    def refuse(self, rejected: Rejected, entry: Entry, headers: Headers) -> Answer:
        """An answer that says no."""
        entry.refused[rejected.status] += 1
        if rejected.retry_after is not None:
            headers = [*headers, (b"retry-after", b"%g" % rejected.retry_after)]
        return Answer(rejected.status, encode(self.error(rejected)), headers=headers)

    def check(self, incoming: Incoming) -> int:
        """The tokens of a prompt, if the model exists and the prompt fits it."""
        self.known(incoming.request.model)
        room = self.world.settings.context
        tokens = count_request(incoming.request)
        if tokens > room:
            raise self.too_long(tokens, room)
        return tokens

    def _admit(self, visit: Visit, incoming: Incoming) -> dict[str, int]:
        """Let a request in if the model exists, the prompt fits it, and no limit is broken."""
        charged = self.charges(self.check(incoming), incoming)
        meter = self.world.meter(visit.account, self.provider, visit.model)
        over = meter.admit(charged, self.world.real())
        if over is not None:
            visit.entry.limits_broken[over.name] += 1
            rejected = self.too_many(over, visit.model, visit.account)
            rejected.retry_after = max(1, math.ceil(over.wait)) if math.isfinite(over.wait) else None
            raise rejected
        return charged

    def make(
        self, visit: Visit, incoming: Incoming, data: Any, struck: Struck | None = None, *, batch: bool = False
    ) -> Made:
        """Let the model answer, and write it into the books: from here on it is paid."""
        request, settings = incoming.request, self.world.settings
        print_ = fingerprint(data)
        sample = 0 if isinstance(request, Chat) and request.seed is not None else visit.entry.paid.get(print_, 0)
        replies = [
            model.answer(request, seed=settings.seed, sample=sample * incoming.choices + number)
            for number in range(incoming.choices)
        ]
        if struck is not None and struck.name == "refusal":
            replies = [refused(reply) for reply in replies]
        cache = self.cached(visit.account, incoming, replies[0].usage.input_tokens, data)
        usage = summed(replies, cache)
        visit.entry.pay(print_, usage, self.price(visit.model), cache.written, batch=batch)
        length = sum(len(reply.text) for reply in replies if isinstance(reply, Reply))
        first = settings.latency.first(settings.seed, print_, sample)
        about = About(self.world.new_id(self.id_prefix), self.world.clock.now(), visit.model)
        return Made(incoming, replies, usage, about, cache, first, settings.latency.per_char * length)

    def _deliver(self, visit: Visit, made: Made, write: Write, struck: Struck | None) -> Answer | Silence:
        """Send what was made, or what a fault makes of it."""
        name = struck.name if struck is not None else ""
        if name == "drop-after":
            return Silence()
        delay = self.delay(visit, made)
        headers = self.headers(visit.account, visit.model)
        ended = None
        if delay > 0 or made.incoming.stream:
            visit.entry.enter()
            ended = visit.entry.leave
        written = write(made)
        if not isinstance(written, dict):
            chunks = spoil_stream(list(written), name, self.stream_error())
            pause = made.speaking / max(1, len(chunks))
            cut = sum(map(len, chunks)) - 1 if name == "truncated" else None
            first = delay - made.speaking
            return Answer(200, b"", self.stream_type, headers, first, cut, paced(chunks, pause), ended)
        if name in ("empty", "filter"):
            self.spoil(written, name)
        answer = spoiled(written, name, headers)
        return answer if isinstance(answer, Silence) else answer._replace(delay=delay, ended=ended)

    def price(self, name: str) -> Price:
        """What a model costs here."""
        return price_of(name, self.world.settings.prices)

    def delay(self, visit: Visit, made: Made) -> float:
        """Seconds until the whole reply is there."""
        return made.seconds + made.speaking


def spoiled(given: dict[str, Any] | Answer, fault: str, headers: Headers) -> Answer | Silence:
    """An answer, or what a fault makes of it on its way."""
    if fault == "drop-after":
        return Silence()
    answer = given if isinstance(given, Answer) else Answer(body=encode(given))
    answer = answer._replace(headers=headers)
    match fault:
        case "malformed":
            return answer._replace(body=answer.body[: len(answer.body) // 2])
        case "wrong-type":
            return answer._replace(content_type=b"text/plain")
        case "truncated" | "stream-error" | "results-cut":
            return answer._replace(cut=len(answer.body) // 2)
    return answer


def decode_body(body: bytes) -> Any:
    """The JSON of a body; None where it is none."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def named(data: Any) -> str:
    """The model that a body names."""
    name = data.get("model") if isinstance(data, dict) else None
    return name if isinstance(name, str) else ""


def fingerprint(data: Any) -> bytes:
    """The same for requests that ask the same, whether streamed or not."""
    return blake2b(_canonical({key: data[key] for key in data if key not in _FORM}), digest_size=16).digest()


def refused(reply: Reply | Embedding) -> Reply | Embedding:
    """The same reply as a refusal."""
    if isinstance(reply, Embedding):
        return reply
    usage = msgspec.structs.replace(reply.usage, output_tokens=count(REFUSAL))
    return Reply(REFUSAL, usage, "refusal", reply.model)


def summed(replies: Sequence[Reply | Embedding], cache: CacheUse) -> Usage:
    """What a request is charged for: its input once, and all output."""
    first = replies[0].usage
    output = sum(reply.usage.output_tokens for reply in replies)
    return msgspec.structs.replace(first, output_tokens=output, cached_tokens=cache.read)


def spoil_stream(chunks: list[bytes], fault: str, error: bytes) -> list[bytes]:
    """The chunks that are sent when a fault strikes a stream."""
    half = chunks[: max(1, len(chunks) // 2)]
    match fault:
        case "stream-error":
            return [*half, error]
        case "truncated":
            return [*half, b"-"]
        case "malformed":
            return [*half, chunks[-1][:-3] + b"{\n\n"]
        case "empty":
            return chunks[-1:]
    return chunks


async def paced(chunks: Sequence[bytes], pause: float) -> AsyncIterator[bytes]:
    """The chunks, with a pause after each."""
    for chunk in chunks:
        yield chunk
        if pause:
            await asyncio.sleep(pause)
