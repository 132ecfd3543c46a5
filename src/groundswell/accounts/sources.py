"""What files, variables and flags say of accounts, and where they say it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from groundswell.accounts import settings
from groundswell.accounts.addresses import Unfit
from groundswell.accounts.rates import rates
from groundswell.accounts.settings import SETTINGS, looks_like_key, shown, suggestion
from groundswell.accounts.variables import Variables, read_text
from groundswell.errors import SettingsError
from groundswell.providers.registry import IN_PROCESS, PROVIDERS

PREFIX = "GROUNDSWELL_"
FLAG = "--account"
TABLES = ("models", "accounts", "prices", "mutation")

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r"""(['"]).{2,}\1""")


class Layer(IntEnum):
    """Who says something: a later one wins."""

    FILE = 1
    VARIABLE = 2
    FLAG = 3


class Given(NamedTuple):
    """The value of a setting, and where it was said: `folder` if by a file of the working folder, or by its .env."""

    value: Any
    layer: Layer
    source: str
    field: str
    folder: bool = False

    def wrong(self, problem: object) -> SettingsError:
        return _wrong(self.source, self.field, problem)

    @property
    def place(self) -> str:
        """Where it was said, in as few words as say it."""
        return self.source if self.layer is Layer.FILE else f"{self.field} ({self.source})"


Sheet = dict[str, Given]
"""The settings of one account, by name."""


class Written(NamedTuple):
    """What a file says: settings by account, aliases, prices by pattern, and models that may be tested."""

    accounts: dict[str, Sheet]
    aliases: Sheet
    prices: Sheet
    targets: Given | None = None


def read_file(path: Path) -> Written | None:
    """What a groundswell.toml says; None where there is no such file."""
    if (text := read_text(path)) is None:
        return None
    tables = _decoded(text, path)
    for name in tables:
        if name not in TABLES:
            raise _wrong(path, f"[{_plain(name)}]", f"there is no such table; {suggestion(name, TABLES)}")
    accounts = _table(tables, "accounts", path)
    return Written(
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
        raise _wrong(path, f"[{above}{_plain(name)}]", "must be a table")
    return table


def _account(name: str, table: dict[str, Any], path: Path) -> Sheet:
    field = f"[accounts.{name}]"
    if not _NAME.fullmatch(name) or looks_like_key(name):
        raise _wrong(path, f"[accounts] {shown(name)}", "an account's name has letters, digits, - and _ only")
    if name in IN_PROCESS:
        raise _wrong(path, field, "this name is taken by models that need no account; give it another one")
    if not table and name not in PROVIDERS:
        raise _wrong(path, field, "has no settings: set provider, or both dialect and base_url")
    return {setting: _setting(name, setting, value, path) for setting, value in table.items()}


def _setting(account: str, setting: str, value: Any, path: Path) -> Given:
    field = f"[accounts.{account}] {_plain(setting)}"
    try:
        return Given(settings.read(setting, value), Layer.FILE, str(path), field)
    except Unfit as wrong:
        raise _wrong(path, field, wrong) from None


def _alias(name: str, target: Any, path: Path) -> Given:
    field = f"[models] {_plain(name)}"
    if "/" in name or not name.strip() or looks_like_key(name):
        raise _wrong(path, field, "an alias is a word without a slash")
    try:
        return Given(settings.text(target), Layer.FILE, str(path), field)
    except Unfit as wrong:
        raise _wrong(path, field, wrong) from None


def _price(pattern: str, value: Any, path: Path) -> Given:
    field = f"[prices] {shown(pattern)}"
    if not pattern.strip() or looks_like_key(pattern):
        raise _wrong(path, field, 'must be a model, or a pattern such as "lab/*"')
    try:
        return Given(rates(value), Layer.FILE, str(path), field)
    except Unfit as wrong:
        raise _wrong(path, field, wrong) from None


def _targets(table: dict[str, Any], path: Path) -> Given | None:
    """The models that query mutation may test."""
    for name in table:
        if name != "targets":
            raise _wrong(path, f"[mutation] {_plain(name)}", "there is no such setting; there is: targets")
    if "targets" not in table:
        return None
    field = "[mutation] targets"
    try:
        return Given(settings.models(table["targets"]), Layer.FILE, str(path), field)
    except Unfit as wrong:
        raise _wrong(path, field, wrong) from None


def from_variables(accounts: Iterable[str], variables: Variables) -> Iterator[tuple[str, str, Given]]:
    """What variables like GROUNDSWELL_OPENAI_TIMEOUT say: account, setting and value."""
    tokens = {name: _token(name) for name in accounts}
    for variable in variables:
        words = variables.get(variable) if variable.startswith(PREFIX) else None
        if words is None:
            continue
        rest = variable.removeprefix(PREFIX)
        meant = {name: rest[len(token) :].lower() for name, token in tokens.items() if rest.startswith(token)}
        if meant:
            account, setting = _one_meant(meant, variable, variables.place(variable))
            said = _said(setting, words, Layer.VARIABLE, variables.place(variable), variable)
            yield account, setting, said._replace(folder=variables.in_folder(variable))


def unused_variables(accounts: Iterable[str], variables: Variables) -> list[str]:
    """Variables that look like settings of accounts that there are not."""
    tokens = [_token(name) for name in accounts]
    endings = tuple(f"_{setting.upper()}" for setting in SETTINGS)
    ours = [name for name in variables if name.startswith(PREFIX) and name.endswith(endings)]
    return [name for name in ours if not any(name.removeprefix(PREFIX).startswith(token) for token in tokens)]


def _token(account: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", account.upper()) + "_"


def _one_meant(meant: dict[str, str], variable: str, source: str) -> tuple[str, str]:
    """The one account that a variable can be about."""
    fit = {account: setting for account, setting in meant.items() if setting in SETTINGS}
    if not fit:
        account, setting = max(meant.items(), key=lambda pair: len(pair[0]))
        if setting in settings.KEY_NAMES:
            problem = f"is not where a key is looked for: {account}'s is in a variable that key_env names"
            raise _wrong(source, variable, problem)
        raise _wrong(source, variable, settings.unknown(setting))
    if len(fit) > 1:
        raise _wrong(source, variable, f"could be about any of the accounts {', '.join(sorted(fit))}: rename one")
    return next(iter(fit.items()))


def from_flags(accounts: Sequence[str], flags: Sequence[str]) -> Iterator[tuple[str, str, Given]]:
    """What flags like `openai.timeout=30` say: account, setting and value."""
    for flag in flags:
        path, equals, words = flag.partition("=")
        account, dot, setting = path.strip().partition(".")
        if not equals or not dot:
            raise SettingsError(f"{FLAG}: write it as NAME.SETTING=VALUE, such as openai.rate_limit_per_minute=3500")
        if account not in accounts:
            raise SettingsError(f"{FLAG}: there is no account {shown(account)}; {suggestion(account, accounts)}")
        yield account, setting, _said(setting, words.strip(), Layer.FLAG, FLAG, f"{account}.{_plain(setting)}")


def _said(setting: str, words: str, layer: Layer, source: str, field: str) -> Given:
    try:
        return Given(settings.read_words(setting, words), layer, source, field)
    except Unfit as wrong:
        raise _wrong(source, field, wrong) from None


def _plain(name: str) -> str:
    """A name in a message, in quotes only where it needs them."""
    return name if _NAME.fullmatch(name) and not looks_like_key(name) else shown(name)


def _wrong(source: object, field: str, problem: object) -> SettingsError:
    return SettingsError(f"{source}: {field}: {problem}")
