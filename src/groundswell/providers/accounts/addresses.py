"""The forms in which people write where a server is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from groundswell.providers.provider import WireFormat

LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where to connect when a server was told to listen everywhere."""

_PLAIN = re.compile(r"[!-~]+")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""Without characters that another reader of addresses may take for the end of the name."""
_BRACKETED = re.compile(r"\[([^]]*)\](?::(.*))?")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class InvalidValue(ValueError):
    """What is wrong with a value, to be put behind the name of its setting. It never holds the value."""


def endpoints(written: Iterable[str], wire: WireFormat) -> tuple[str, ...]:
    """Base URLs as they are used: each one once, and at least one."""
    port = wire.default_port
    texts = [each.strip() for each in written if each.strip()]
    found = tuple(dict.fromkeys(endpoint(each) if port is None else host_address(each, port) for each in texts))
    if not found:
        raise InvalidValue("must name at least one address")
    return found


def endpoint(text: str) -> str:
    """A base URL, without a slash at its end. It is shown in reports, so it may not hold a password or a query."""
    if not _PLAIN.fullmatch(text) or not text.lower().startswith(("http://", "https://")):
        raise InvalidValue("must begin with http:// or https:// and have no spaces in it, as https://host/v1")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidValue("is not an address: check its host and port") from None
    if (host := host_of(text)) is None or port == 0:
        raise InvalidValue("names no host, or an odd port: write it as https://host/v1 or http://host:8000/v1")
    if "@" in parts.netloc:
        raise InvalidValue("must not hold a user or a password: use key_env, or headers with env:NAME")
    if parts.query or parts.fragment:
        raise InvalidValue("must end with its path: no ? and no # in it")
    return f"{parts.scheme}://{_joined(host, port)}{parts.path.rstrip('/')}"


def host_of(url: str) -> str | None:
    """The name or number of the host of an address; None where it has none that every reader takes for the same."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    return host if host and _HOST.fullmatch(host) else None


def host_address(text: str, default_port: int) -> str:
    """An address in the forms that Ollama itself takes: scheme, host and port may be missing."""
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
    """Whether requests to two base URLs go to the same place; a base URL may end in its version, or not."""
    return _place(one, wire) == _place(other, wire)


def is_loopback(url: str) -> bool:
    """Whether a base URL leads to this very machine, by what is written there: names are not looked up."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(LOOPBACK.get(host, host)).is_loopback
    except ValueError:
        return False


def origin(url: str) -> str:
    """Scheme, host and port of an address, without a port that is the usual one: what the user trusts, exactly."""
    parts = urlsplit(url)
    usual = parts.port == _DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{_joined(parts.hostname or '', None if usual else parts.port)}"


def is_own_machine(url: str) -> bool:
    """As `is_loopback`, for secrets: a name below `localhost` is left to a name server, which may lead elsewhere."""
    return is_loopback(url) and not (urlsplit(url).hostname or "").rstrip(".").endswith(".localhost")


def _place(base: str, wire: WireFormat) -> tuple[str, str | None, int | None, str]:
    parts = urlsplit(wire.url(base, f"{wire.version}/"))
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme), parts.path


def _split(authority: str) -> tuple[str, str]:
    """Host and port; an IPv6 address may stand without its brackets if no port follows."""
    if bracketed := _BRACKETED.fullmatch(authority):
        return bracketed[1], bracketed[2] or ""
    if authority.count(":") > 1:
        return authority, ""
    host, _, port = authority.partition(":")
    return host, port


def _joined(host: str, port: int | None) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port is None else f"{bracketed}:{port}"
