"""HTTP for the live transports. The only file that knows which client makes the requests.

It makes one attempt. Whether there is another, and when, is the engine's to say; redirects are not followed, since a
key would go along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import (
    BodyDecodeError,
    DecodeError,
    DetailedPyreqwestError,
    PyreqwestError,
    RequestTimeoutError,
)
from pyreqwest.http import Url
from pyreqwest.proxy import ProxyBuilder

from groundswell.accounts.account import Account
from groundswell.errors import SettingsError
from groundswell.program.request import Fault, FaultKind

IDLE = timedelta(seconds=50)
"""Less than the minute after which many servers close a connection that nobody uses."""
PROBE = timedelta(seconds=5)

Usual = Callable[[str | None], Mapping[str, str]]
"""The headers that go along with every request, by the key."""


class Answer(NamedTuple):
    """What came back, whatever its status. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(Exception):
    """Nothing came back, or not all of it; carries the fault that this is."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Http:
    """The connections of one account."""

    def __init__(self, account: Account, usual: Usual) -> None:
        self._timeout = account.timeout
        self._connect_timeout = account.connect_timeout
        self._client = _client(account, usual)

    async def post(self, url: Url, body: bytes) -> Answer:
        """Make one attempt; raises `NoAnswer`."""
        try:
            response = await self._client.post(url).body_bytes(body).build().send()
            return Answer(response.status, response.headers, (await response.bytes()).to_bytes())
        except PyreqwestError as error:
            raise NoAnswer(self._fault(error)) from None

    async def alive(self, url: str) -> bool:
        """Whether a server answers there at all."""
        try:
            response = await self._client.get(url).timeout(PROBE).build().send()
        except PyreqwestError:
            return False
        return response.status < 500

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _fault(self, error: PyreqwestError) -> Fault:
        said = _causes(error)
        connecting = any("(Connect)" in one for one in said)
        if isinstance(error, RequestTimeoutError):
            if connecting:
                return Fault(FaultKind.CONNECTION, f"no connection within {self._connect_timeout:g} s")
            return Fault(FaultKind.TIMEOUT, f"no answer within {self._timeout:g} s")
        why = said[-1] if said else type(error).__name__
        if isinstance(error, BodyDecodeError):
            return Fault(FaultKind.CONNECTION, f"the answer broke off or could not be decoded: {why}")
        if isinstance(error, DecodeError):
            return Fault(FaultKind.GARBLED, f"the answer is no HTTP: {why}")
        return Fault(FaultKind.CONNECTION, f"{'no connection' if connecting else 'the connection broke'}: {why}")


def parsed(url: str) -> Url:
    """A URL, read once instead of with every request."""
    return Url(url)


__all__ = ["Answer", "Http", "NoAnswer", "Url", "parsed"]


def _causes(error: PyreqwestError) -> list[str]:
    """What led to an error, without the words that name the URL, which may hold credentials."""
    details = error.details if isinstance(error, DetailedPyreqwestError) else None
    causes = (details["causes"] if details else None) or []
    return [one["message"] for one in causes if "://" not in one["message"]]


def _client(account: Account, usual: Usual) -> Client:
    """A client with everything that an account says. No secret is in a variable here: tracebacks may show those."""
    builder = (
        ClientBuilder()
        .user_agent("groundswell")
        .timeout(timedelta(seconds=account.timeout))
        .connect_timeout(timedelta(seconds=account.connect_timeout))
        .pool_idle_timeout(IDLE)
        .follow_redirects(False)
        .referer(False)
    )
    try:
        builder = builder.default_headers(_headers(account, usual))
        if account.proxy is not None:
            builder = builder.proxy(ProxyBuilder.all(account.proxy.reveal()))
        elif all(_on_this_machine(url) for url in account.endpoints):
            builder = builder.no_proxy()
        return builder.build()
    except (ValueError, PyreqwestError) as error:
        problem = type(error).__name__
    raise SettingsError(
        f"account {account.name}: its proxy or its headers cannot be used ({problem}): "
        "a proxy looks like http://host:port, a header's value is plain text"
    )


def _on_this_machine(url: str) -> bool:
    """Whether an address is one's own: then a proxy that the environment names is not for it."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _headers(account: Account, usual: Usual) -> dict[str, str]:
    said = {name: value.reveal() for name, value in account.headers.items()}
    return {**usual(None if account.key is None else account.key.reveal()), **said}
