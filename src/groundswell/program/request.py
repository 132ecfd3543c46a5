"""Requests, replies and faults as plain data, and the fingerprint of a request."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class Data(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of the data types here. Defaults are not encoded, so a new optional field changes no fingerprint."""


class Text(Data, frozen=True, tag="text"):
    """A piece of text in a message that has several parts.

    Attributes:
        text: The text.
    """

    text: str


class Image(Data, frozen=True, tag="image"):
    """An image in a message, given as a URL or as base64 data.

    Attributes:
        url: Address of the image.
        data: The image as base64, if there is no URL.
        media_type: Media type of `data`.
    """

    url: str | None = None
    data: str | None = None
    media_type: str = "image/png"


class ToolCall(Data, frozen=True):
    """A call of a tool that the model requests.

    Attributes:
        id: Id of the call. Give it as `tool_call_id` of the message that answers the call.
        name: Name of the tool.
        arguments: Arguments as JSON text.
    """

    id: str
    name: str
    arguments: str


class Tool(Data, frozen=True):
    """A tool that the model may call.

    Attributes:
        name: Name of the tool.
        description: What the tool does, for the model.
        parameters: JSON schema of the arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any]


class Message(Data, frozen=True):
    """One message of a conversation. `system`, `user` and `assistant` create messages.

    Attributes:
        role: `system`, `user`, `assistant` or `tool`.
        content: Text, or a tuple of `Text` and `Image` parts.
        tool_calls: Tool calls that the model requested in this message.
        tool_call_id: In a `tool` message, the id of the call that it answers.
    """

    role: Role
    content: str | tuple[Text | Image, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


def system(content: str) -> Message:
    """Create a system message."""
    return Message("system", content)


def user(content: str | tuple[Text | Image, ...]) -> Message:
    """Create a user message, from text or from a tuple of `Text` and `Image` parts."""
    return Message("user", content)


def assistant(content: str) -> Message:
    """Create an assistant message, as the model would write it."""
    return Message("assistant", content)


class ChatOptions(TypedDict, total=False):
    """Options of a chat request. Options that are left out have the provider's default."""

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
    """A chat request. `trial.ask` creates it from its arguments.

    Attributes:
        model: Model as `provider/model`, or an alias.
        messages: The conversation.
        max_tokens: Maximum number of tokens in the reply.
        temperature: Sampling temperature.
        top_p: Nucleus sampling threshold.
        seed: Seed for the provider's sampling, where it supports one.
        stop: Strings at which the reply ends.
        schema: JSON schema of the reply.
        tools: Tools that the model may call.
        tool_choice: `auto`, `none`, `required` or the name of a tool.
        reasoning: Reasoning effort, as the provider names it.
        logprobs: Number of log probabilities to return for each token.
        extra: Further fields, sent to the provider unchanged.
    """

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
    """An embedding request. `trial.embed` creates it from its arguments.

    Attributes:
        model: Model as `provider/model`, or an alias.
        texts: Texts to embed.
        dimensions: Length of the vectors, where the model supports it.
        extra: Further fields, sent to the provider unchanged.
    """

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
    """Number of tokens, as the provider counted them.

    Attributes:
        input_tokens: Tokens of the prompt, including those read from and written to a prompt cache.
        output_tokens: Tokens of the reply, including reasoning.
        cached_tokens: Prompt tokens that were read from the provider's prompt cache.
        reasoning_tokens: Output tokens that were spent on reasoning.
        cache_write_tokens: Prompt tokens that were written to the provider's prompt cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0


NO_USAGE = Usage()


class Reply(Data, frozen=True, tag="reply"):
    """The reply of a model to a chat request.

    Attributes:
        text: The text of the reply.
        usage: Tokens, as the provider counted them.
        finish: Why the reply ended: `stop`, `length`, `tool_calls` or another reason that the provider gave.
        model: Exact model that replied, if the provider reported it.
        tool_calls: Tool calls that the model requested.
        reasoning: Text of the reasoning, if the provider returned it.
        logprobs: Log probabilities, as the provider returned them.
    """

    text: str
    usage: Usage = NO_USAGE
    finish: str = "stop"
    model: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    logprobs: Any = None


class Embedding(Data, frozen=True, tag="embedding"):
    """The reply to an embedding request: one vector per text.

    Attributes:
        packed: All vectors as 32-bit floats, end to end. Use `vectors` to read them.
        width: Length of each vector.
        usage: Tokens, as the provider counted them.
        model: Exact model that replied, if the provider reported it.
    """

    packed: bytes
    width: int
    usage: Usage = NO_USAGE
    model: str | None = None

    @classmethod
    def of(cls, vectors: Sequence[Sequence[float]], usage: Usage = NO_USAGE) -> Embedding:
        """Create an embedding from vectors. Raises `ValueError` if they differ in length."""
        width = len(vectors[0]) if vectors else 0
        if any(len(vector) != width for vector in vectors):
            raise ValueError("all vectors of an embedding must have the same length")
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
    """Why a request or a trial failed. The kind determines whether a request is retried (see `RetryPolicy`)."""

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
    UNUSABLE = "unusable_input"


class Fault(Data, frozen=True, tag="fault"):
    """A request or trial that failed.

    Attributes:
        kind: Kind of the failure.
        message: What went wrong.
        retry_after: Seconds to wait before a retry, if the provider asked for that.
        attempts: How often the request was sent.
        sent: False if the request certainly never left this machine and so was not billed.
    """

    kind: FaultKind
    message: str
    retry_after: float | None = None
    attempts: int = 1
    sent: bool = True


Settlement = Reply | Embedding | Returned | Fault


class Standing(NamedTuple):
    """One rate limit as a provider reports it: its size, what remains, and the seconds until it is full again."""

    resource: Literal["requests", "tokens", "input_tokens", "output_tokens", "project_tokens"]
    limit: float
    remaining: float
    reset: float | None = None


UNSENDABLE = Fault(FaultKind.BAD_REQUEST, "the request holds text that is not valid Unicode")
"""The fault of a request that cannot be encoded. It is not journalled, because a replay gives the same fault."""

_canonical = msgspec.json.Encoder(order="deterministic")
_settlements: msgspec.json.Decoder[Settlement] = msgspec.json.Decoder(Settlement)


def fingerprint(request: Request | Invoke) -> bytes:
    """Hash the content of a request.

    Returns:
        Sixteen bytes. Equal requests have equal fingerprints.
    """
    if type(request) is Chat and int in (type(request.temperature), type(request.top_p)):
        request = _with_floats(request)
    return blake2b(_canonical.encode(request), digest_size=16).digest()


def _with_floats(chat: Chat) -> Chat:
    """The same request with `temperature` and `top_p` as floats, so that 0 and 0.0 encode the same."""
    temperature = None if chat.temperature is None else float(chat.temperature)
    top_p = None if chat.top_p is None else float(chat.top_p)
    return msgspec.structs.replace(chat, temperature=temperature, top_p=top_p)


def canonical(data: object) -> bytes:
    """Plain data as JSON. Equal data gives equal bytes."""
    return _canonical.encode(data)


def encode_settlement(settlement: Settlement) -> bytes:
    """A settlement as JSON."""
    return _canonical.encode(settlement)


def decode_settlement(text: str | bytes) -> Settlement:
    """The settlement that `encode_settlement` wrote."""
    return _settlements.decode(text)
