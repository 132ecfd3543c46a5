"""The accepted forms of server addresses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from groundswell.providers.provider import WireFormat

LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""The address to connect to when a server listens on all interfaces."""

_PLAIN = re.compile(r"[!-~]+")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""Excludes characters that other URL parsers treat as the end of the host name."""
_BRACKETED = re.compile(r"\[([^]]*)\](?::(.*))?")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class InvalidValue(ValueError):
    """What is wrong with a value; shown after the name of its setting. It never contains the value."""


def endpoints(written: Iterable[str], wire: WireFormat) -> tuple[str, ...]:
    """Normalised base URLs, without duplicates. At least one."""
    port = wire.default_port
    texts = [each.strip() for each in written if each.strip()]
    found = tuple(dict.fromkeys(endpoint(each) if port is None else host_address(each, port) for each in texts))
    if not found:
        raise InvalidValue("must name at least one address")
    return found


def endpoint(text: str) -> str:
    """A base URL without a trailing slash. It is shown in reports, so it may not contain a password or a query."""
    if not _PLAIN.fullmatch(text) or not text.lower().startswith(("http://", "https://")):
        raise InvalidValue("must begin with http:// or https:// and contain no spaces, as in https://host/v1")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidValue("is not an address: check its host and port") from None
    if (host := host_of(text)) is None or port == 0:
        raise InvalidValue("has no host or an invalid port: write https://host/v1 or http://host:8000/v1")
    if "@" in parts.netloc:
        raise InvalidValue("must not contain a user name or password: use key_env, or headers with env:NAME")
    if parts.query or parts.fragment:
        raise InvalidValue("must not contain ? or #")
    return f"{parts.scheme}://{_joined(host, port)}{parts.path.rstrip('/')}"


def host_of(url: str) -> str | None:
    """The host of an address. None if it has none, or if URL parsers could disagree about it."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    return host if host and _HOST.fullmatch(host) else None


def host_address(text: str, default_port: int) -> str:
    """An address in the forms that Ollama accepts: scheme, host and port are optional."""
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "http", text
    authority, slash, path = rest.partition("/")
    name, port = _split(authority)
    if not port and not found:
        port = str(default_port)
    name = LOOPBACK.get(name, name)
    bracketed = f"[{name}]" if ":" in name else name
    return endpoint(f"{scheme}://{bracketed}{':' if port else ''}{port}{slash}{path}")


def same_place(one: str, other: str, wire: WireFormat) -> bool:
    """Whether two base URLs refer to the same place; the version at the end is optional."""
    return _place(one, wire) == _place(other, wire)


def is_loopback(url: str) -> bool:
    """Whether a base URL refers to this machine, judged by its text. Names are not resolved."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(LOOPBACK.get(host, host)).is_loopback
    except ValueError:
        return False


def origin(url: str) -> str:
    """Scheme, host and port of an address, without the default port. Trust is given to exactly this."""
    parts = urlsplit(url)
    usual = parts.port == _DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{_joined(parts.hostname or '', None if usual else parts.port)}"


def is_own_machine(url: str) -> bool:
    """As `is_loopback`, but for secrets: names below `localhost` do not count, since DNS may resolve them elsewhere."""
    return is_loopback(url) and not (urlsplit(url).hostname or "").rstrip(".").endswith(".localhost")


def _place(base: str, wire: WireFormat) -> tuple[str, str | None, int | None, str]:
    parts = urlsplit(wire.url(base, f"{wire.version}/"))
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme), parts.path


def _split(authority: str) -> tuple[str, str]:
    """Host and port. An IPv6 address may lack its brackets if it has no port."""
    if bracketed := _BRACKETED.fullmatch(authority):
        return bracketed[1], bracketed[2] or ""
    if authority.count(":") > 1:
        return authority, ""
    host, _, port = authority.partition(":")
    return host, port


def _joined(host: str, port: int | None) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port is None else f"{bracketed}:{port}"
