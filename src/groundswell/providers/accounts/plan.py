"""An account without its secrets, and which secrets may be sent to which hosts.

A working directory may come from somebody else, so its files and its .env are not trusted. A secret that the user
exported is sent to a host without confirmation only if one of these holds:

- The host is this machine.
- The directory chose neither the secret nor the host. The provider's own hosts do not count as chosen by the directory,
  nor do the provider's own variables: those that are built in, or that contain the provider's name.
- The user has trusted the host with this variable: `groundswell trust`.

A proxy set by the directory is treated like any other host: without TLS it can read everything. Variables in the
directory's own .env are not secrets of the user and may be sent wherever the settings say.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from groundswell.errors import NotTrusted, SettingsError
from groundswell.providers.accounts.account import WORKERS, Account, Key
from groundswell.providers.accounts.addresses import InvalidValue, endpoints, is_own_machine, origin, same_place
from groundswell.providers.accounts.environment import Variables
from groundswell.providers.accounts.settings import (
    OFF,
    OPTIONS,
    Layer,
    SettingValue,
    SettingValues,
    Variable,
    base_url,
    proxy_address,
)
from groundswell.providers.provider import Provider, WireFormat
from groundswell.providers.registry import PROVIDERS, wire_format
from groundswell.trust import Trust

PLAIN = (
    "max_concurrent_requests",
    "rate_limit_per_minute",
    "token_limit_per_minute",
    "output_token_limit_per_minute",
    "timeout",
    "connect_timeout",
    "batch",
    "batch_queue",
    "batch_poll",
    "batch_patience",
)
BUILT_IN = "built in"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """An account without its secrets. `key_env` are the variables that may hold its key."""

    account: Account
    provider: Provider | None
    sheet: SettingValues
    address: SettingValue | None
    key_env: tuple[str, ...]
    key_needed: bool
    keyless: bool
    """The provider's key is not used, because the account has the address of another server."""

    @property
    def address_place(self) -> str:
        return BUILT_IN if self.address is None else self.address.place

    @property
    def headers(self) -> Mapping[str, Key | Variable]:
        given = self.sheet.get("headers")
        return {} if given is None else given.value

    def key(self, variables: Variables) -> Key | None:
        """The key, from the first of its variables that is set."""
        return next((key for name in self.key_env if (key := variables.key(name)) is not None), None)

    def proxy_address(self, variables: Variables) -> Key | None:
        if (given := self.sheet.get("proxy")) is None or isinstance(given.value, Key):
            return None if given is None else given.value
        try:
            return proxy_address(Key(variables.get(given.value.name) or ""))
        except InvalidValue as wrong:
            raise SettingsError(f"{variables.place(given.value.name)}: {given.value.name}: {wrong}") from None

    def missing(self, variables: Variables) -> list[str]:
        """The required variables that are not set; of several for one key, the first."""
        needed = [value.name for value in self.headers.values() if isinstance(value, Variable)]
        if (given := self.sheet.get("proxy")) is not None and isinstance(given.value, Variable):
            needed.append(given.value.name)
        lacking = [name for name in needed if variables.get(name) is None]
        if self.key_needed and all(variables.get(name) is None for name in self.key_env):
            lacking.insert(0, self.key_env[0])
        return list(dict.fromkeys(lacking))

    def lacks(self, missing: list[str]) -> str:
        """The message for variables that are not set."""
        if missing[0] not in self.key_env:
            return f"account {self.account.name!r} needs {' and '.join(missing)} in the environment or in .env"
        hint = f" ({self.provider.hint})" if self.provider is not None and self.provider.hosted else ""
        others = f", and {' and '.join(missing[1:])}" if missing[1:] else ""
        names = " or ".join(self.key_env)
        return f"account {self.account.name!r} has no key: set {names}{others} in the environment or in .env{hint}"

    def describe(self, variables: Variables) -> dict[str, Any]:
        """The facts that may be shown."""
        account, key = self.account, next((name for name in self.key_env if variables.get(name) is not None), None)
        hosted = self.provider is not None and self.provider.hosted
        return {
            "provider": account.provider,
            "hint": None if self.provider is None else self.provider.hint,
            "dialect": account.dialect,
            "endpoints": list(account.endpoints) or [WORKERS],
            "official": account.official,
            "key": None if key is None else {"variable": key, "from": variables.place(key)},
            "key_left_out": self.keyless,
            "key_unset": self.key_env[0] if hosted and key is None and self.key_env else None,
            "settings": {"base_url": self.address_place}
            | {name: given.place for name, given in self.sheet.items() if name != "base_url"},
            "limits": {name: value for name in PLAIN if (value := getattr(account, name)) is not None},
            "headers": sorted(self.headers),
            "proxy": "proxy" in self.sheet,
        }


def plan(name: str, sheet: SettingValues, variables: Variables) -> Plan:
    """Build an account from its settings. The error names the invalid setting."""
    provider = PROVIDERS.get(sheet["provider"].value if "provider" in sheet else name)
    wire = _wire(sheet, provider)
    given = _address(name, sheet, provider, variables)
    if wire is None or (given is None and provider is None):
        raise _unfinished(name, sheet)
    by_workers = given is not None and given is sheet.get("base_url") and given.value == (WORKERS,)
    found = () if by_workers else _endpoints(given, provider, wire)
    if by_workers:
        _refuse_secrets(sheet)
    official = bool(found) and provider is not None and provider.hosted and _own(found, provider)
    named: tuple[str, ...] = (sheet["key_env"].value,) if "key_env" in sheet else ()
    keyless = not named and provider is not None and (by_workers or _elsewhere(given, provider, official))
    usual = () if provider is None or keyless else provider.key_env
    values: dict[str, Any] = {setting: sheet[setting].value for setting in PLAIN if setting in sheet}
    options = {name: None if sheet[name].value == OFF else sheet[name].value for name in OPTIONS if name in sheet}
    return Plan(
        account=Account(
            name=name,
            provider=None if provider is None else provider.name,
            dialect=wire.name,
            endpoints=found,
            official=official,
            options=options,
            **values,
        ),
        provider=provider,
        sheet=sheet,
        address=given,
        key_env=named or usual,
        key_needed=bool(named) or official,
        keyless=keyless,
    )


def _wire(sheet: SettingValues, provider: Provider | None) -> WireFormat | None:
    if "dialect" in sheet:
        return wire_format(sheet["dialect"].value, None if provider is None else provider.name)
    return None if provider is None else provider.wire


def _address(name: str, sheet: SettingValues, provider: Provider | None, variables: Variables) -> SettingValue | None:
    """The address of an account. For the account named after the provider, the provider's own variable takes precedence
    over files; for other accounts it replaces the built-in address.
    """
    given = sheet.get("base_url")
    if provider is None or provider.base_url_env is None:
        return given
    wins = given is None or (name == provider.name and given.layer is Layer.FILE)
    return (_in_variable(provider.base_url_env, variables) or given) if wins else given


def _in_variable(name: str, variables: Variables) -> SettingValue | None:
    if (words := variables.get(name)) is None:
        return None
    place = variables.place(name)
    try:
        return SettingValue(base_url(words), Layer.VARIABLE, place, name, variables.in_folder(name))
    except InvalidValue as wrong:
        raise SettingsError(f"{place}: {name}: {wrong}") from None


def _endpoints(given: SettingValue | None, provider: Provider | None, wire: WireFormat) -> tuple[str, ...]:
    if given is None:
        assert provider is not None  # otherwise the account would be incomplete
        return provider.base_urls[:1]
    try:
        return endpoints(given.value, wire)
    except InvalidValue as wrong:
        raise given.wrong(wrong) from None


def _refuse_secrets(sheet: SettingValues) -> None:
    """Whoever can write to the store can name servers, so they get no secrets."""
    for name in ("key_env", "headers", "proxy"):
        if name in sheet:
            raise sheet[name].wrong(f'cannot be used with base_url = "{WORKERS}": servers of workers get no secrets')


def _own(found: tuple[str, ...], provider: Provider) -> bool:
    return all(any(same_place(each, own, provider.wire) for own in provider.base_urls) for each in found)


def _elsewhere(given: SettingValue | None, provider: Provider, official: bool) -> bool:
    """Whether a file sets an address that is not the provider's. The provider's key is not sent there."""
    return provider.hosted and not official and given is not None and given.layer is Layer.FILE


def _unfinished(name: str, sheet: SettingValues) -> SettingsError:
    source = next(given.source for given in sheet.values())
    known = ", ".join(PROVIDERS)
    return SettingsError(f"{source}: [accounts.{name}]: set provider (one of: {known}), or both dialect and base_url")


class Secret(NamedTuple):
    """An exported variable that an account sends; `chosen` if the working directory selected it."""

    variable: str
    chosen: bool


class Host(NamedTuple):
    """A host that an account's requests reach, and the source of its address; `chosen` if the directory set it."""

    origin: str
    chosen: bool
    place: str


def not_trusted(plan: Plan, variables: Variables, trust: Trust) -> NotTrusted | None:
    """The error for an account that would send a secret to a host that the user has not trusted."""
    refused: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for host in _hosts(plan, variables):
        for secret in _secrets(plan, variables):
            if (host.chosen or secret.chosen) and not trust.has_host(host.origin, secret.variable):
                refused.setdefault(host.origin, []).append(secret.variable)
                places[host.origin] = host.place
    if not refused:
        return None
    sent = {host: f"{' and '.join(names)} to {host}" for host, names in refused.items()}
    named = [f"{words} ({places[host]})" for host, words in sent.items()]
    commands = [shlex.join(_command(host, names)) for host, names in refused.items()]
    return NotTrusted(
        f"account {plan.account.name!r} would send {', and '.join(named)}. The files of this folder request this, and "
        f"you have not confirmed it, so nothing was sent. If you trust the host, run: {' && '.join(commands)}",
        f"Send {', and '.join(sent.values())}?",
        hosts=refused,
    )


def _command(host: str, names: list[str]) -> list[str]:
    return ["groundswell", "trust", host, *(word for name in names for word in ("--variable", name))]


def _secrets(plan: Plan, variables: Variables) -> Iterator[Secret]:
    """The exported variables that are sent with requests."""
    key = next((name for name in plan.key_env if variables.get(name) is not None), None)
    if key is not None and not variables.in_folder(key):
        named = plan.sheet.get("key_env")
        yield Secret(key, named is not None and named.folder and not _belongs(key, plan.provider))
    given = plan.sheet.get("headers")
    for value in plan.headers.values():
        if given is not None and isinstance(value, Variable) and not variables.in_folder(value.name):
            yield Secret(value.name, given.folder)


def _belongs(variable: str, provider: Provider | None) -> bool:
    """Whether a variable holds a key of the provider, judged by its name."""
    if provider is None:
        return False
    return variable in provider.key_env or provider.name.upper() in variable.split("_")


def _hosts(plan: Plan, variables: Variables) -> Iterator[Host]:
    """The hosts that receive requests, except this machine."""
    own = {origin(url) for url in plan.provider.base_urls} if plan.provider is not None else set()
    for url in plan.account.endpoints:
        if not is_own_machine(url):
            by_folder = plan.address is not None and plan.address.folder
            yield Host(origin(url), by_folder and origin(url) not in own, plan.address_place)
    given = plan.sheet.get("proxy")
    if given is None:
        return
    by_folder = given.folder if isinstance(given.value, Key) else variables.in_folder(given.value.name)
    address = plan.proxy_address(variables) if by_folder else None
    if address is not None and not is_own_machine(address.reveal()):
        yield Host(origin(address.reveal()), chosen=True, place=f"the proxy, {given.place}")
