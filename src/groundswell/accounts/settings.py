"""What can be set about an account, and what is wrong with a value. Pure."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from groundswell.accounts.account import Key
from groundswell.accounts.addresses import Unfit, host_of
from groundswell.providers.registry import PROVIDERS, WIRE_FORMATS

NO_KEYS = "keys come from the environment or .env only: name the variable that holds it with key_env"
KEY_NAMES = {"key", "api_key", "apikey", "token", "api_token", "auth_token", "secret", "password", "bearer"}
OPTIONS = {name: option for wire in WIRE_FORMATS.values() for name, option in wire.options.items()}
"""Settings that only one wire format has."""
OFF = "off"

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SENDABLE = re.compile(r"[ -~]+")
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_PROXY = re.compile(r"(https?|socks5h?)://[!-~]+")
_KEY = re.compile(
    r"(Bearer\s+)?("
    r"(sk[-_]|gsk_|csk-|xai-|fw_|hf_|tgp_|nvapi-)[A-Za-z0-9_-]{8,}"
    r"|AIza[A-Za-z0-9_-]{16,}"
    r"|(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{32,}"
    r")|Bearer\s+\S+"
)


class Variable(NamedTuple):
    """What stands in a variable, written as `env:NAME`."""

    name: str


def looks_like_key(text: str) -> bool:
    """Whether a text, or a part of an address, has the form of a provider's key."""
    parts = re.split(r"[/\s,;=:@?&]+", text)
    return bool(_KEY.fullmatch(text.strip())) or any(_KEY.fullmatch(part) for part in parts if re.search(r"\d", part))


def shown(name: str) -> str:
    """A name in a message; where somebody wrote a key for a name, it is not shown."""
    return "(not shown: it looks like a key)" if looks_like_key(name) else repr(name)


def suggestion(word: str, known: Iterable[str]) -> str:
    """What may have been meant, or else what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(word.lower(), names, 1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise Unfit("must be a number above 0")
    return float(value)


def count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Unfit("must be a whole number of at least 1")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unfit("must be a text in quotes")
    if looks_like_key(value):
        raise Unfit(f"looks like a key; {NO_KEYS}")
    return value.strip()


def models(value: Any) -> tuple[str, ...]:
    """Models, each by name: all models of all accounts cannot be meant."""
    if not isinstance(value, list):
        raise Unfit('must be a list of models, such as ["lab/guarded", "work/*"]')
    named = tuple(text(each) for each in value)
    if any("*" in each.partition("/")[0] for each in named):
        raise Unfit('must name the account before the slash: a * may stand after it, as in "work/*"')
    return named


def provider(value: Any) -> str:
    if (name := text(value)) not in PROVIDERS:
        raise Unfit(f"no such provider is built in; {suggestion(name, PROVIDERS)}")
    return name


def dialect(value: Any) -> str:
    return _one_of(tuple(WIRE_FORMATS), value)


def _one_of(choices: tuple[str, ...], value: Any) -> str:
    if (name := text(value)) not in choices:
        raise Unfit(f"must be one of: {', '.join(choices)}")
    return name


def switch(value: Any) -> bool:
    if value not in (True, False, "on", OFF):
        raise Unfit("must be true or false")
    return value in (True, "on")


def base_url(value: Any) -> tuple[str, ...]:
    """The addresses as written; what they mean depends on the dialect."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Unfit("must be an address in quotes, or a list of them")
    return tuple(text(each) for each in value if each.strip())


def variable(value: Any) -> str:
    if not isinstance(value, str) or looks_like_key(value) or not _VARIABLE.fullmatch(value.strip()):
        raise Unfit(f"must be the NAME of a variable, in capitals, such as WORK_OPENAI_KEY; {NO_KEYS}")
    return value.strip()


def proxy(value: Any) -> Key | Variable:
    meant = _private(value)
    return meant if isinstance(meant, Variable) else proxy_address(meant)


def proxy_address(address: Key) -> Key:
    """A proxy's address, checked and never shown: it may hold a password."""
    if not _PROXY.fullmatch(address.reveal()) or "\\" in address.reveal() or not host_of(address.reveal()):
        raise Unfit("must be the address of a proxy, such as http://host:3128, or env:NAME")
    return address


def headers(value: Any) -> dict[str, Key | Variable]:
    if not isinstance(value, dict):
        raise Unfit('must be a table, such as { X-Team = "blue", X-Pass = "env:TEAM_PASS" }')
    return {_header_name(name): _header(name, each) for name, each in value.items()}


def _header_name(name: str) -> str:
    if not _HEADER.fullmatch(name) or looks_like_key(name):
        raise Unfit(f"{shown(name)} cannot be the name of a header")
    if name.lower() == "host":
        raise Unfit("Host cannot be set: it follows from base_url")
    return name.lower()


def _header(name: str, value: Any) -> Key | Variable:
    try:
        meant = _private(value)
    except Unfit as wrong:
        raise Unfit(f"{name}: {wrong}") from None
    if isinstance(meant, Variable):
        return meant
    if _SECRET_HEADER.search(name):
        raise Unfit(f'{name}: carries a secret by its name: write it as "env:NAME", the NAME of a variable')
    if not _SENDABLE.fullmatch(meant.reveal()):
        raise Unfit(f"{name}: holds a character that cannot be sent in a header")
    return meant


def _private(value: Any) -> Key | Variable:
    """A text that is held back from all reports, or the variable that it stands in."""
    if isinstance(value, str) and value.startswith("env:"):
        return Variable(variable(value.removeprefix("env:")))
    return Key(text(value))


SETTINGS: dict[str, Callable[[Any], Any]] = {
    "provider": provider,
    "dialect": dialect,
    "base_url": base_url,
    "key_env": variable,
    "max_concurrent_requests": count,
    "rate_limit_per_minute": number,
    "token_limit_per_minute": number,
    "output_token_limit_per_minute": number,
    "timeout": number,
    "connect_timeout": number,
    "proxy": proxy,
    "headers": headers,
    **{name: partial(_one_of, option.choices) for name, option in OPTIONS.items()},
    "batch": switch,
    "batch_queue": count,
    "batch_poll": number,
    "batch_patience": number,
}


def read(name: str, value: Any) -> Any:
    """The value of a setting in a file."""
    if (reader := SETTINGS.get(name)) is None:
        raise Unfit(unknown(name))
    return reader(value)


def read_words(name: str, words: str) -> Any:
    """The value of a setting in a variable or a flag, where everything is text."""
    reader = SETTINGS.get(name)
    if reader is headers:
        raise Unfit("is a table: set it in groundswell.toml")
    if reader in (count, number):
        return read(name, _as_number(words))
    if reader is switch:
        return read(name, {"true": True, "false": False}.get(words.lower(), words))
    return read(name, words)


def unknown(name: str) -> str:
    """What to say of a setting that there is not."""
    if name.lower().replace("-", "_") in KEY_NAMES:
        return NO_KEYS
    return f"there is no such setting; {suggestion(name, SETTINGS)}"


def _as_number(words: str) -> float | int | str:
    try:
        value = float(words)
    except ValueError:
        return words
    return int(value) if value.is_integer() else value
