"""An account: a provider's endpoints with the credentials and limits that go with them, and redaction of those."""

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
"""So many characters of a secret in a row are taken out, wherever they stand."""
REDACTED = "[secret]"


class Key:
    """A credential. It can be revealed to a transport, and shows itself in no other way. `variable` is where it was."""

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
        raise TypeError("a key is not written anywhere")


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's endpoints, all of them good for the same models.

    `provider` is the one whose models are asked, where that is known: an account may have a name of its own.
    `official` says that the endpoints are the provider's own. `headers` go along with every request; like the key
    and the proxy, which may name a password, they are shown nowhere. None for a limit means that it is not known:
    then it is learnt from what the provider says. `options` are settings that only its wire format has. `batch` says
    whether its batch API may be used, `batch_queue` how much may wait there, `batch_poll` how often to look, and
    `batch_patience` how long to look for a batch that the provider does not show before it counts as lost, both in
    seconds.
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
        """Whose replies these are. A stand-in at another address is not the provider it stands in for."""
        return (self.provider or self.name) if self.official else " ".join(sorted(self.endpoints))

    @property
    def wire(self) -> WireFormat:
        """How its server is spoken to."""
        return wire_format(self.dialect, self.provider)

    @property
    def encode_options(self) -> dict[str, str | None]:
        """The options of its wire format, for `encode`: as set, else their defaults."""
        return {name: self.options.get(name, option.default) for name, option in self.wire.options.items()}

    @property
    def batch_format(self) -> BatchFormat | None:
        """The batch API that it may use, if any: that of its provider unless told otherwise."""
        provider = PROVIDERS.get(self.provider or "")
        able = provider is not None and provider.batch if self.batch is None else self.batch
        return self.wire.batch if able else None

    @property
    def owner(self) -> str:
        """Tells this account's batches from those of other keys and addresses, and nothing of the key."""
        key = "" if self.key is None else self.key.reveal()
        return blake2b(f"{self.origin}\0{key}".encode(), digest_size=8, person=b"groundswell").hexdigest()


class Target(NamedTuple):
    """Where a model string leads: an account, and the provider's own name for the model."""

    account: Account
    model: str


def redact(text: str, account: Account) -> str:
    """A text without anything of the account's key, headers and proxy."""
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
    """The fault without what the other side repeated of our secrets; and whether there was a key to be refused."""
    message = redact(fault.message, account)
    if fault.kind is FaultKind.AUTH:
        key = account.key
        message += f": no key was sent, since none is set for this account{_wanted(account)}" * (key is None)
        message += f": is the key in {key.variable} right?" if key is not None and key.variable else ""
    return msgspec.structs.replace(fault, message=message)


def _wanted(account: Account) -> str:
    """The variable that a provider's key is looked for in."""
    provider = PROVIDERS.get(account.provider or "")
    return f": set {provider.key_env[0]}" if provider is not None and provider.key_env else ""
