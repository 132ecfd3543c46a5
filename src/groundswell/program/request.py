"""What a program asks for and what it gets: plain data, with one canonical fingerprint."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class Data(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of all plain data here. Defaults are not written, so a new optional field changes no fingerprint."""


class Text(Data, frozen=True, tag="text"):
    """A piece of text inside a message that has several parts."""

    text: str


class Image(Data, frozen=True, tag="image"):
    """An image inside a message: a URL, or base64 data with its media type."""

    url: str | None = None
    data: str | None = None
    media_type: str = "image/png"


class ToolCall(Data, frozen=True):
    """A tool that the model wants called, with its arguments as JSON text."""

    id: str
    name: str
    arguments: str


class Tool(Data, frozen=True):
    """A tool offered to the model; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class Message(Data, frozen=True):
    """One message of a conversation."""

    role: Role
    content: str | tuple[Text | Image, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


def system(content: str) -> Message:
    """A system message."""
    return Message("system", content)


def user(content: str | tuple[Text | Image, ...]) -> Message:
    """A message from the user's side."""
    return Message("user", content)


def assistant(content: str) -> Message:
    """A message from the model's side."""
    return Message("assistant", content)


class ChatOptions(TypedDict, total=False):
    """The settings of a chat request; those left out are the provider's defaults."""

    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    seed: int | None
    stop: tuple[str, ...]
    schema: dict[str, Any] | None
    tools: tuple[Tool, ...]
    tool_choice: str | None
    reasoning: str | None
    logprobs: int | None
    extra: dict[str, Any] | None


class Chat(Data, frozen=True, tag="chat"):
    """A chat request. `extra` is passed through to the provider as it is."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: str | None = None
    reasoning: str | None = None
    logprobs: int | None = None
    extra: dict[str, Any] | None = None


class Embed(Data, frozen=True, tag="embed"):
    """An embedding request for one or more texts."""

    model: str
    texts: tuple[str, ...]
    dimensions: int | None = None
    extra: dict[str, Any] | None = None


class Invoke(Data, frozen=True, tag="invoke"):
    """A call of a registered function, with its arguments as plain data."""

    function: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] | None = None


Request = Chat | Embed


class Usage(Data, frozen=True):
    """Tokens as the provider counted them: input holds what was read from a prompt cache and written to it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0


NO_USAGE = Usage()


class Reply(Data, frozen=True, tag="reply"):
    """What a model answered."""

    text: str
    usage: Usage = NO_USAGE
    finish: str = "stop"
    model: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    logprobs: Any = None


class Embedding(Data, frozen=True, tag="embedding"):
    """One vector per text, as packed 32-bit floats."""

    packed: bytes
    width: int
    usage: Usage = NO_USAGE
    model: str | None = None

    @classmethod
    def of(cls, vectors: Sequence[Sequence[float]], usage: Usage = NO_USAGE) -> Embedding:
        """Pack vectors of equal width."""
        width = len(vectors[0]) if vectors else 0
        if any(len(vector) != width for vector in vectors):
            raise ValueError("the vectors of one embedding must all have the same width")
        packed = array("f", [number for vector in vectors for number in vector])
        return cls(packed.tobytes(), width, usage)

    @property
    def vectors(self) -> list[list[float]]:
        """The vectors, in the order of the texts."""
        flat = array("f")
        flat.frombytes(self.packed)
        return [flat[at : at + self.width].tolist() for at in range(0, len(flat), self.width or 1)]


class Returned(Data, frozen=True, tag="returned"):
    """What a registered function returned."""

    value: Any


class FaultKind(StrEnum):
    """Why something failed; what to do about it follows from the kind (engine/retry.py)."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER = "server"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    GARBLED = "garbled"
    EXPIRED = "expired"
    UNSENT = "unsent"
    UNREACHABLE = "unreachable"
    AUTH = "auth"
    QUOTA = "quota"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    CONTEXT = "context_overflow"
    FILTERED = "content_filter"
    CANCELLED = "cancelled"
    CALL = "call_failed"
    MALFORMED = "malformed_reply"
    PROGRAM = "program_error"


class Fault(Data, frozen=True, tag="fault"):
    """A failure as data. `retry_after` is what the other side asked for, in seconds.

    `sent` is False where the request surely never left, so that nobody can have billed it.
    """

    kind: FaultKind
    message: str
    retry_after: float | None = None
    attempts: int = 1
    sent: bool = True


Settlement = Reply | Embedding | Returned | Fault


class Standing(NamedTuple):
    """What a provider says of one of its rate limits: how much it allows, what is left, and seconds until all is."""

    resource: Literal["requests", "tokens", "input_tokens", "output_tokens", "project_tokens"]
    limit: float
    remaining: float
    reset: float | None = None


UNSENDABLE = Fault(FaultKind.BAD_REQUEST, "the request holds text that is not valid Unicode")
"""What an ask gets that cannot be written down. It is not journalled: a replay comes to the same."""

_canonical = msgspec.json.Encoder(order="deterministic")
_settlements: msgspec.json.Decoder[Settlement] = msgspec.json.Decoder(Settlement)


def fingerprint(request: Request | Invoke) -> bytes:
    """Sixteen bytes that are equal exactly when two requests are."""
    if type(request) is Chat and int in (type(request.temperature), type(request.top_p)):
        request = _with_floats(request)
    return blake2b(_canonical.encode(request), digest_size=16).digest()


def _with_floats(chat: Chat) -> Chat:
    """The same request as JSON writes it when its numbers are what their types say: 0.0, not 0."""
    temperature = None if chat.temperature is None else float(chat.temperature)
    top_p = None if chat.top_p is None else float(chat.top_p)
    return msgspec.structs.replace(chat, temperature=temperature, top_p=top_p)


def canonical(data: object) -> bytes:
    """Plain data as JSON, the same bytes for equal data."""
    return _canonical.encode(data)


def encode_settlement(settlement: Settlement) -> bytes:
    """A settlement as JSON."""
    return _canonical.encode(settlement)


def decode_settlement(text: str | bytes) -> Settlement:
    """The settlement that `encode_settlement` wrote."""
    return _settlements.decode(text)
