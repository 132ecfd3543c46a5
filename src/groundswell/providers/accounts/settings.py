"""Settings of accounts: names, readers and validation, from files, variables and flags.

`SETTINGS` has a reader for each setting. `read_file`, `from_variables` and `from_flags` return settings together with
their source. `Rates` are the user's own prices.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from groundswell.errors import SettingsError
from groundswell.providers.accounts.account import Key
from groundswell.providers.accounts.addresses import InvalidValue, host_of
from groundswell.providers.accounts.environment import Variables, read_text
from groundswell.providers.application import PLACEHOLDERS
from groundswell.providers.provider import Option
from groundswell.providers.registry import IN_PROCESS, PROVIDERS, WIRE_FORMATS

NO_KEYS = "keys are read from the environment or .env only: set key_env to the name of the variable"
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
    """The value of an environment variable, written as `env:NAME`."""

    name: str


def looks_like_key(text: str) -> bool:
    """Whether a text, or a part of an address, has the form of a provider's key."""
    parts = re.split(r"[/\s,;=:@?&]+", text)
    return bool(_KEY.fullmatch(text.strip())) or any(_KEY.fullmatch(part) for part in parts if re.search(r"\d", part))


def show_name(name: str) -> str:
    """A name for a message. If it looks like a key, it is not shown."""
    return "(not shown: it looks like a key)" if looks_like_key(name) else repr(name)


def suggestion(word: str, known: Iterable[str]) -> str:
    """A close match, or else the list of known names."""
    names = sorted(known)
    close = difflib.get_close_matches(word.lower(), names, 1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidValue("must be a number above 0")
    return float(value)


def count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidValue("must be a whole number of at least 1")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue("must be a text in quotes")
    if looks_like_key(value):
        raise InvalidValue(f"looks like a key; {NO_KEYS}")
    return value.strip()


def models(value: Any) -> tuple[str, ...]:
    """A list of models. Each must name its account, so a pattern cannot match every account."""
    if not isinstance(value, list):
        raise InvalidValue('must be a list of models, such as ["lab/guarded", "work/*"]')
    named = tuple(text(each) for each in value)
    if any("*" in each.partition("/")[0] for each in named):
        raise InvalidValue('must name the account before the slash; a * is allowed only after it, as in "work/*"')
    return named


def provider(value: Any) -> str:
    if (name := text(value)) not in PROVIDERS:
        raise InvalidValue(f"is not a built-in provider; {suggestion(name, PROVIDERS)}")
    return name


def dialect(value: Any) -> str:
    return _one_of(tuple(WIRE_FORMATS), value)


def _one_of(choices: tuple[str, ...], value: Any) -> str:
    if (name := text(value)) not in choices:
        raise InvalidValue(f"must be one of: {', '.join(choices)}")
    return name


def switch(value: Any) -> bool:
    if value not in (True, False, "on", OFF):
        raise InvalidValue("must be true or false")
    return value in (True, "on")


def base_url(value: Any) -> tuple[str, ...]:
    """The addresses as written. The dialect decides how they are read."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidValue("must be an address in quotes, or a list of them")
    return tuple(text(each) for each in value if each.strip())


def variable(value: Any) -> str:
    if not isinstance(value, str) or looks_like_key(value) or not _VARIABLE.fullmatch(value.strip()):
        raise InvalidValue(f"must be the NAME of a variable, in capitals, such as WORK_OPENAI_KEY; {NO_KEYS}")
    return value.strip()


def proxy(value: Any) -> Key | Variable:
    meant = _private(value)
    return meant if isinstance(meant, Variable) else proxy_address(meant)


def proxy_address(address: Key) -> Key:
    """A proxy's address, validated. It is never shown, because it may hold a password."""
    if not _PROXY.fullmatch(address.reveal()) or "\\" in address.reveal() or not host_of(address.reveal()):
        raise InvalidValue("must be the address of a proxy, such as http://host:3128, or env:NAME")
    return address


def headers(value: Any) -> dict[str, Key | Variable]:
    if not isinstance(value, dict):
        raise InvalidValue('must be a table, such as { X-Team = "blue", X-Pass = "env:TEAM_PASS" }')
    return {_header_name(name): _header(name, each) for name, each in value.items()}


def _header_name(name: str) -> str:
    if not _HEADER.fullmatch(name) or looks_like_key(name):
        raise InvalidValue(f"{show_name(name)} cannot be the name of a header")
    if name.lower() == "host":
        raise InvalidValue("Host cannot be set; it is derived from base_url")
    return name.lower()


def _header(name: str, value: Any) -> Key | Variable:
    try:
        meant = _private(value)
    except InvalidValue as wrong:
        raise InvalidValue(f"{name}: {wrong}") from None
    if isinstance(meant, Variable):
        return meant
    if _SECRET_HEADER.search(name):
        raise InvalidValue(f'{name}: may carry a secret: write "env:NAME" with the NAME of an environment variable')
    if not _SENDABLE.fullmatch(meant.reveal()):
        raise InvalidValue(f"{name}: has a character that is not allowed in a header")
    return meant


def _private(value: Any) -> Key | Variable:
    """A text that is never shown, or the variable that holds it."""
    if isinstance(value, str) and value.startswith("env:"):
        return Variable(variable(value.removeprefix("env:")))
    return Key(text(value))


def template(value: Any) -> str:
    """The body of a request to an application, as JSON. It may hold no secret, since it is shown."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            value = None
    if not isinstance(value, dict):
        raise InvalidValue('must be a table, such as { message = "{query}" }')
    try:
        written = msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        raise InvalidValue("must contain only texts, numbers, true, false, lists and tables") from None
    if any(looks_like_key(each) for each in _texts(value)):
        raise InvalidValue(f'contains what looks like a key; {NO_KEYS}, or use headers with "env:NAME"')
    if not any(each in written for each in PLACEHOLDERS[:2]):
        raise InvalidValue(f"must contain {PLACEHOLDERS[0]} or {PLACEHOLDERS[1]}")
    return written


def statuses(value: Any) -> str:
    """HTTP statuses from 400 to 499, as texts or numbers."""
    parts = value if isinstance(value, list) else str(value).split(",")
    found = [str(part).strip() for part in parts]
    if not found or not all(re.fullmatch("4[0-9][0-9]", each) for each in found):
        raise InvalidValue('must be a status from 400 to 499, or several, such as "400,403"')
    return ",".join(found)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(each)


def _option(name: str, option: Option) -> Callable[[Any], Any]:
    """The reader of a setting that only one wire format has."""
    if option.choices:
        return partial(_one_of, option.choices)
    return {"body": template, "refusal_status": statuses}.get(name, text)


class Setting(NamedTuple):
    """A setting of an account: the function that reads its value, and what it means."""

    read: Callable[[Any], Any]
    description: str


SETTINGS: dict[str, Setting] = {
    "provider": Setting(provider, "Built-in account that supplies the other settings. Default: the one of this name."),
    "dialect": Setting(dialect, f"Wire format of the server: {', '.join(f'`{name}`' for name in WIRE_FORMATS)}."),
    "base_url": Setting(
        base_url,
        "Address of the server, or a list of addresses that share the work. `workers`: the servers that workers start.",
    ),
    "key_env": Setting(variable, "NAME of the environment variable that holds the key."),
    "max_concurrent_requests": Setting(count, "Maximum number of requests in flight."),
    "rate_limit_per_minute": Setting(number, "Requests per minute."),
    "token_limit_per_minute": Setting(number, "Tokens per minute. For Anthropic, input tokens."),
    "output_token_limit_per_minute": Setting(number, "Output tokens per minute, if limited separately (Anthropic)."),
    "timeout": Setting(number, "Time limit of a live request, in seconds (600). Batches have their own time limits."),
    "connect_timeout": Setting(number, "Time limit for connecting, in seconds (10)."),
    "proxy": Setting(
        proxy,
        "Address of a proxy, or `env:NAME`. Default: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the environment.",
    ),
    "headers": Setting(
        headers,
        "Headers of every request. `env:NAME` takes the value from a variable, which is required for secrets. "
        "`Host` cannot be set.",
    ),
    **{name: Setting(_option(name, option), option.description) for name, option in OPTIONS.items()},
    "batch": Setting(
        switch,
        "Whether to use the batch API. Default: true for "
        f"{' and '.join(f'`{name}`' for name, one in PROVIDERS.items() if one.batch)}. "
        "Set it for another provider that has OpenAI's batch API.",
    ),
    "batch_queue": Setting(
        count,
        "How much may wait in the provider's batch queue: prompt tokens per model (OpenAI) or requests (Anthropic). "
        "Default: learnt when a batch is refused.",
    ),
    "batch_poll": Setting(number, "Longest interval between two polls of a batch, in seconds (30)."),
    "batch_patience": Setting(
        number,
        "How long to search for a batch that the provider does not list before it counts as lost, in seconds (3,600).",
    ),
}


def read(name: str, value: Any) -> Any:
    """Read the value of a setting in a file."""
    if (setting := SETTINGS.get(name)) is None:
        raise InvalidValue(unknown_setting(name))
    return setting.read(value)


def read_words(name: str, words: str) -> Any:
    """Read the value of a setting in a variable or a flag, where everything is text."""
    setting = SETTINGS.get(name)
    reader = None if setting is None else setting.read
    if reader is headers:
        raise InvalidValue("is a table and can only be set in groundswell.toml")
    if reader in (count, number):
        return read(name, _as_number(words))
    if reader is switch:
        return read(name, {"true": True, "false": False}.get(words.lower(), words))
    return read(name, words)


def unknown_setting(name: str) -> str:
    """The message for an unknown setting."""
    if name.lower().replace("-", "_") in KEY_NAMES:
        return NO_KEYS
    return f"there is no such setting; {suggestion(name, SETTINGS)}"


def _as_number(words: str) -> float | int | str:
    try:
        value = float(words)
    except ValueError:
        return words
    return int(value) if value.is_integer() else value


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars per million tokens. A missing `cached` or `cache_write` price equals the input price.

    `batch` is the batch price as a fraction of the live price; None if it is unknown.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    batch: float | None = None


PRICE_FIELDS = Rates.__struct_fields__
PRICE_EXAMPLE = "{ input = 0.10, output = 0.40 }"


def read_rates(value: Any) -> Rates:
    """Read the prices of a model. The error names the wrong one."""
    if not isinstance(value, dict):
        raise InvalidValue(f"must be a table of dollars per million tokens, such as {PRICE_EXAMPLE}")
    for name, price in value.items():
        if name not in PRICE_FIELDS:
            raise InvalidValue(f"there is no price {show_name(name)}; {suggestion(name, PRICE_FIELDS)}")
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < math.inf:
            raise InvalidValue(f"{name}: must be a finite number, 0 or more")
    for name in ("input", "output"):
        if name not in value:
            raise InvalidValue(f"{name} is missing: write it as {PRICE_EXAMPLE}, in dollars per million tokens")
    if value.get("batch", 0) > 1:
        raise InvalidValue("batch: must be a fraction of the live price, such as 0.5")
    return Rates(**{name: float(price) for name, price in value.items()})


PREFIX = "GROUNDSWELL_"
FLAG = "--account"
TABLES = ("models", "accounts", "prices", "mutation")

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r"""(['"]).{2,}\1""")


class Layer(IntEnum):
    """The kind of source of a setting. Later ones take precedence."""

    FILE = 1
    VARIABLE = 2
    FLAG = 3


class SettingValue(NamedTuple):
    """The value of a setting and its source. `folder` means a file of the working directory, or its .env."""

    value: Any
    layer: Layer
    source: str
    field: str
    folder: bool = False

    def wrong(self, problem: object) -> SettingsError:
        return _error(self.source, self.field, problem)

    @property
    def place(self) -> str:
        """The source of the value, in a few words."""
        return self.source if self.layer is Layer.FILE else f"{self.field} ({self.source})"


SettingValues = dict[str, SettingValue]
"""The settings of one account, by name."""


class SettingsFile(NamedTuple):
    """A settings file: settings by account, aliases, prices by pattern, and models that may be tested."""

    accounts: dict[str, SettingValues]
    aliases: SettingValues
    prices: SettingValues
    targets: SettingValue | None = None


def read_file(path: Path) -> SettingsFile | None:
    """Read a groundswell.toml. Return None if there is none."""
    if (text := read_text(path)) is None:
        return None
    tables = _decoded(text, path)
    for name in tables:
        if name not in TABLES:
            raise _error(path, f"[{_quoted(name)}]", f"there is no such table; {suggestion(name, TABLES)}")
    accounts = _table(tables, "accounts", path)
    return SettingsFile(
        {name: _account(name, _table(accounts, name, path, "accounts."), path) for name in accounts},
        {name: _alias(name, target, path) for name, target in _table(tables, "models", path).items()},
        {name: _price(name, value, path) for name, value in _table(tables, "prices", path).items()},
        _targets(_table(tables, "mutation", path), path),
    )


def _decoded(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = _QUOTED.sub("…", str(error))
    raise SettingsError(f"{path}: is not valid TOML: {problem}")


def _table(tables: dict[str, Any], name: str, path: Path, above: str = "") -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise _error(path, f"[{above}{_quoted(name)}]", "must be a table")
    return table


def _account(name: str, table: dict[str, Any], path: Path) -> SettingValues:
    field = f"[accounts.{name}]"
    if not _NAME.fullmatch(name) or looks_like_key(name):
        raise _error(path, f"[accounts] {show_name(name)}", "an account name may contain only letters, digits, - and _")
    if name in IN_PROCESS:
        raise _error(path, field, "this name is reserved for models that need no account; choose another")
    if not table and name not in PROVIDERS:
        raise _error(path, field, "has no settings: set provider, or both dialect and base_url")
    return {setting: _setting(name, setting, value, path) for setting, value in table.items()}


def _setting(account: str, setting: str, value: Any, path: Path) -> SettingValue:
    field = f"[accounts.{account}] {_quoted(setting)}"
    try:
        return SettingValue(read(setting, value), Layer.FILE, str(path), field)
    except InvalidValue as wrong:
        raise _error(path, field, wrong) from None


def _alias(name: str, target: Any, path: Path) -> SettingValue:
    field = f"[models] {_quoted(name)}"
    if "/" in name or not name.strip() or looks_like_key(name):
        raise _error(path, field, "an alias must not be empty or contain a slash")
    try:
        return SettingValue(text(target), Layer.FILE, str(path), field)
    except InvalidValue as wrong:
        raise _error(path, field, wrong) from None


def _price(pattern: str, value: Any, path: Path) -> SettingValue:
    field = f"[prices] {show_name(pattern)}"
    if not pattern.strip() or looks_like_key(pattern):
        raise _error(path, field, 'must be a model, or a pattern such as "lab/*"')
    try:
        return SettingValue(read_rates(value), Layer.FILE, str(path), field)
    except InvalidValue as wrong:
        raise _error(path, field, wrong) from None


def _targets(table: dict[str, Any], path: Path) -> SettingValue | None:
    """The models that query mutation may test."""
    for name in table:
        if name != "targets":
            raise _error(path, f"[mutation] {_quoted(name)}", "there is no such setting; the only one is targets")
    if "targets" not in table:
        return None
    field = "[mutation] targets"
    try:
        return SettingValue(models(table["targets"]), Layer.FILE, str(path), field)
    except InvalidValue as wrong:
        raise _error(path, field, wrong) from None


def from_variables(accounts: Iterable[str], variables: Variables) -> Iterator[tuple[str, str, SettingValue]]:
    """Settings from variables such as GROUNDSWELL_OPENAI_TIMEOUT: account, setting and value."""
    tokens = {name: _token(name) for name in accounts}
    for variable in variables:
        words = variables.get(variable) if variable.startswith(PREFIX) else None
        if words is None:
            continue
        rest = variable.removeprefix(PREFIX)
        meant = {name: rest[len(token) :].lower() for name, token in tokens.items() if rest.startswith(token)}
        if meant:
            account, setting = _find_account(meant, variable, variables.place(variable))
            said = _parse(setting, words, Layer.VARIABLE, variables.place(variable), variable)
            yield account, setting, said._replace(folder=variables.in_folder(variable))


def unused_variables(accounts: Iterable[str], variables: Variables) -> list[str]:
    """Variables that look like settings of accounts that do not exist."""
    tokens = [_token(name) for name in accounts]
    endings = tuple(f"_{setting.upper()}" for setting in SETTINGS)
    ours = [name for name in variables if name.startswith(PREFIX) and name.endswith(endings)]
    return [name for name in ours if not any(name.removeprefix(PREFIX).startswith(token) for token in tokens)]


def _token(account: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", account.upper()) + "_"


def _find_account(meant: dict[str, str], variable: str, source: str) -> tuple[str, str]:
    """The account that a variable refers to."""
    fit = {account: setting for account, setting in meant.items() if setting in SETTINGS}
    if not fit:
        account, setting = max(meant.items(), key=lambda pair: len(pair[0]))
        if setting in KEY_NAMES:
            problem = f"does not set the key of {account}: set the variable that key_env names"
            raise _error(source, variable, problem)
        raise _error(source, variable, unknown_setting(setting))
    if len(fit) > 1:
        raise _error(source, variable, f"matches several accounts ({', '.join(sorted(fit))}); rename one of them")
    return next(iter(fit.items()))


def from_flags(accounts: Sequence[str], flags: Sequence[str]) -> Iterator[tuple[str, str, SettingValue]]:
    """Settings from flags such as `openai.timeout=30`: account, setting and value."""
    for flag in flags:
        path, equals, words = flag.partition("=")
        account, dot, setting = path.strip().partition(".")
        if not equals or not dot:
            raise SettingsError(f"{FLAG}: write it as NAME.SETTING=VALUE, such as openai.rate_limit_per_minute=3500")
        if account not in accounts:
            raise SettingsError(f"{FLAG}: there is no account {show_name(account)}; {suggestion(account, accounts)}")
        yield (
            account,
            setting,
            _parse(setting, words.strip(), Layer.FLAG, FLAG, f"{account}.{_quoted(setting)}"),
        )


def _parse(setting: str, words: str, layer: Layer, source: str, field: str) -> SettingValue:
    try:
        return SettingValue(read_words(setting, words), layer, source, field)
    except InvalidValue as wrong:
        raise _error(source, field, wrong) from None


def _quoted(name: str) -> str:
    """A name for a message, in quotes only if needed."""
    return name if _NAME.fullmatch(name) and not looks_like_key(name) else show_name(name)


def _error(source: object, field: str, problem: object) -> SettingsError:
    return SettingsError(f"{source}: {field}: {problem}")
