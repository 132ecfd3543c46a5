"""An account: endpoints of a provider with their credentials and limits; and redaction of the credentials."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple, NoReturn
from urllib.parse import unquote, urlsplit

import msgspec

from groundswell.program.request import Fault, FaultKind
from groundswell.providers.provider import NO_OPTIONS, BatchFormat, Options, WireFormat
from groundswell.providers.registry import PROVIDERS, wire_format

PIECE = 8
"""Redact any this many consecutive characters of a secret."""
REDACTED = "[secret]"
WORKERS = "workers"
"""The `base_url` of an account that is served by what workers start."""


class Key:
    """A credential. Only `reveal` shows it. `variable` is the environment variable it came from."""

    __slots__ = ("_text", "variable")

    def __init__(self, text: str, variable: str | None = None) -> None:
        self._text = text
        self.variable = variable

    def reveal(self) -> str:
        """The text, for the header that carries it."""
        return self._text

    def __repr__(self) -> str:
        return "Key(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key cannot be serialised")


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoints of one provider. All of them serve the same models.

    `provider` is the provider whose models are served, if known: an account may have a name of its own.
    An account without endpoints is served by what workers start. It has no key, since the addresses come from a store.
    `official` means that the endpoints are the provider's own. `headers` are sent with every request. Like the key and
    the proxy, they are never shown. A limit of None is unknown and is learnt from the provider's headers. `options` are
    settings that only its wire format has. `batch` says whether its batch API may be used, `batch_queue` how much may
    wait there, `batch_poll` how often to poll, and `batch_patience` how long to search for a batch that the provider
    does not show before it counts as lost. Both are in seconds.
    """

    name: str
    provider: str | None = None
    dialect: str
    endpoints: tuple[str, ...]
    key: Key | None = None
    official: bool = False
    max_concurrent_requests: int | None = None
    rate_limit_per_minute: float | None = None
    token_limit_per_minute: float | None = None
    output_token_limit_per_minute: float | None = None
    timeout: float = 600.0
    connect_timeout: float = 10.0
    proxy: Key | None = None
    headers: Mapping[str, Key] = {}
    options: Options = NO_OPTIONS
    batch: bool | None = None
    batch_queue: int | None = None
    batch_poll: float = 30.0
    batch_patience: float = 3600.0

    @property
    def origin(self) -> str:
        """The source of the replies. A server at another address is not the provider that it imitates."""
        if not self.endpoints:
            return f"{WORKERS}: {self.name}"
        return (self.provider or self.name) if self.official else " ".join(sorted(self.endpoints))

    @property
    def wire(self) -> WireFormat:
        """The wire format of its server."""
        return wire_format(self.dialect, self.provider).configured(self.options)

    @property
    def encode_options(self) -> dict[str, str | None]:
        """The options for `encode`: as set, else their defaults."""
        return {name: self.options.get(name, option.default) for name, option in self.wire.options.items()}

    @property
    def batch_format(self) -> BatchFormat | None:
        """The batch format that the account may use, if any. The provider's default applies unless `batch` is set."""
        provider = PROVIDERS.get(self.provider or "")
        able = provider is not None and provider.batch if self.batch is None else self.batch
        return self.wire.batch if able and self.endpoints else None

    @property
    def owner(self) -> str:
        """Identifies the key and addresses whose batches these are, without revealing the key."""
        key = "" if self.key is None else self.key.reveal()
        return blake2b(f"{self.origin}\0{key}".encode(), digest_size=8, person=b"groundswell").hexdigest()


class Target(NamedTuple):
    """What a model string refers to: an account, and the provider's own name for the model."""

    account: Account
    model: str


def redact(text: str, account: Account) -> str:
    """The text without any part of the account's key, headers and proxy password."""
    pieces = {secret[at : at + PIECE] for secret in _secrets(account) for at in range(len(secret) - PIECE + 1)}
    found = [at for at in range(len(text) - PIECE + 1) if text[at : at + PIECE] in pieces]
    said, end = "", 0
    for at in found:
        if at > end or not said:
            said += text[end:at] + REDACTED
        end = at + PIECE
    return said + text[end:]


def _secrets(account: Account) -> Iterator[str]:
    if account.key is not None:
        yield account.key.reveal()
    yield from (value.reveal() for value in account.headers.values())
    if account.proxy is not None:
        user = urlsplit(account.proxy.reveal()).netloc.rpartition("@")[0]
        yield from (user, unquote(user), base64.b64encode(unquote(user).encode()).decode())


def redact_fault(fault: Fault, account: Account) -> Fault:
    """The fault without secrets in its message. For rejected keys, add which key was sent, if any."""
    message = redact(fault.message, account)
    if fault.kind is FaultKind.AUTH:
        key = account.key
        message += f": no key is set for this account, so none was sent{_wanted(account)}" * (key is None)
        message += f": check the key in {key.variable}" if key is not None and key.variable else ""
    return msgspec.structs.replace(fault, message=message)


def _wanted(account: Account) -> str:
    """The variable that should hold the provider's key."""
    provider = PROVIDERS.get(account.provider or "")
    return f": set {provider.key_env[0]}" if provider is not None and provider.key_env else ""
