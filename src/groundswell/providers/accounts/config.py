"""Accounts and aliases, from the built-in table, groundswell.toml, the environment, .env and flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec

from groundswell.errors import KeyMissing, NotTrusted, SettingsError
from groundswell.providers.accounts.account import Account, Key, Target
from groundswell.providers.accounts.environment import Environment, Variables, read_variables
from groundswell.providers.accounts.plan import Plan, not_trusted, plan
from groundswell.providers.accounts.settings import (
    Rates,
    SettingsFile,
    SettingValue,
    SettingValues,
    Variable,
    from_flags,
    from_variables,
    read_file,
    show_name,
    suggestion,
    unused_variables,
)
from groundswell.providers.registry import IN_PROCESS, PROVIDERS
from groundswell.trust import Trust, config_folder

FILE = "groundswell.toml"
DOTENV = ".env"
DEFAULT_ALIAS = "default"
DEFAULT_MODEL = "local/smollm2"


class Accounts:
    """All accounts and model aliases. Keys are read when an account is first used."""

    def __init__(
        self,
        sheets: Mapping[str, SettingValues],
        aliases: Mapping[str, SettingValue],
        variables: Variables,
        files: Sequence[Path] = (),
        prices: Mapping[str, SettingValue] = MappingProxyType({}),
        targets: SettingValue | None = None,
        *,
        trust: Trust,
    ) -> None:
        self._sheets = sheets
        self._aliases = aliases
        self._variables = variables
        self._trust = trust
        self._files = files
        self._prices = prices
        self._tested = targets
        self._built: dict[str, Account] = {}
        self._targets: dict[str, Target] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all accounts, including those without a key."""
        return tuple(self._sheets)

    @property
    def aliases(self) -> Mapping[str, str]:
        """The aliases and their targets, as written."""
        return MappingProxyType({name: given.value for name, given in self._aliases.items()})

    @property
    def prices(self) -> Mapping[str, Rates]:
        """The user's own prices by pattern. The first pattern that matches a model applies."""
        return MappingProxyType({pattern: given.value for pattern, given in self._prices.items()})

    @property
    def targets(self) -> tuple[str, ...]:
        """The models that may be tested, as full names. Patterns such as `work/*` are kept as written."""
        return () if self._tested is None else tuple(map(self.resolve, self._tested.value))

    @property
    def default_model(self) -> str:
        """The model to use if none is named: the alias `default`, else the embedded model."""
        return self.resolve(DEFAULT_ALIAS) if DEFAULT_ALIAS in self._aliases else DEFAULT_MODEL

    def whose(self, model: str) -> Target:
        """As `find`, without secrets. Used for estimates, which need no key."""
        name, _, rest = self.resolve(model).partition("/")
        return Target(plan(name, self._sheet(name), self._variables).account, rest)

    def find(self, model: str) -> Target:
        """The account of a model string, and the provider's name for the model."""
        if (known := self._targets.get(model)) is None:
            known = self._targets[model] = self._find(model)
        return known

    def resolve(self, model: str) -> str:
        """The full name of a model, `account/model`, after following aliases."""
        passed: list[str] = []
        while "/" not in model:
            if model not in self._aliases:
                if model in (known := short_names()):
                    return known[model]
                raise self._unknown_alias(model, passed)
            if model in passed:
                raise self._aliases[model].wrong(f"the aliases form a cycle: {' -> '.join([*passed, model])}")
            passed.append(model)
            model = self._aliases[model].value
        return model

    def account(self, name: str) -> Account:
        """An account with its key. The error names what is missing."""
        sheet = self._sheet(name)
        if (known := self._built.get(name)) is None:
            known = self._built[name] = self._build(plan(name, sheet, self._variables))
        return known

    def check(self) -> None:
        """Check all aliases and accounts, whether they are used or not."""
        for alias in self._aliases:
            self.resolve(alias)
        if self._tested is not None:
            unknown = {each for each in self._tested.value if "/" not in each} - {*short_names(), *self._aliases}
            for each in sorted(unknown):
                raise self._tested.wrong(f"{show_name(each)} is not an alias; write a model as account/model")
        for name, sheet in self._sheets.items():
            if sheet or name not in PROVIDERS:
                plan(name, sheet, self._variables)

    def describe(self) -> dict[str, Any]:
        """Everything about accounts that may be shown: names and sources, never keys."""
        return {
            "files": [str(path) for path in self._files],
            "accounts": [self._describe(name) for name in self._sheets],
            "aliases": dict(self.aliases),
            "unused_variables": unused_variables(self._sheets, self._variables),
        }

    def __repr__(self) -> str:
        return f"Accounts({', '.join(self._sheets)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("accounts hold keys and cannot be serialised")

    def _sheet(self, name: str) -> SettingValues:
        if name not in self._sheets:
            there_are = suggestion(name, {*self._sheets, *IN_PROCESS})
            raise SettingsError(f"there is no provider or account {show_name(name)}; {there_are}")
        return self._sheets[name]

    def _find(self, model: str) -> Target:
        full = self.resolve(model)
        name, _, rest = full.partition("/")
        asked = f"model {show_name(model)}" if model == full else f"model {show_name(model)} ({show_name(full)})"
        if not rest and name in self._sheets:
            raise SettingsError(f"{asked}: the model name is missing; write {name}/model")
        try:
            return Target(self.account(name), rest)
        except KeyMissing as error:
            raise KeyMissing(f"{asked}: {error}") from None
        except NotTrusted as error:
            raise error.about(asked) from None
        except SettingsError as error:
            problem = str(error)
        raise SettingsError(f"{asked}: {problem}")

    def _unknown_alias(self, model: str, passed: Sequence[str]) -> SettingsError:
        known = f", or as an alias ({suggestion(model, {**short_names(), **self._aliases})})"
        problem = f"is not an alias; write a model as provider/model{known}"
        if passed:
            return self._aliases[passed[-1]].wrong(f"its value {problem}")
        return SettingsError(f"model {show_name(model)}: {problem.removeprefix('is ')}")

    def _build(self, made: Plan) -> Account:
        if missing := made.missing(self._variables):
            raise KeyMissing(made.lacks(missing))
        if (refused := not_trusted(made, self._variables, self._trust)) is not None:
            raise refused
        return msgspec.structs.replace(
            made.account,
            key=made.key(self._variables),
            proxy=made.proxy_address(self._variables),
            headers={name: self._held(value) for name, value in made.headers.items()},
        )

    def _held(self, value: Key | Variable) -> Key:
        found = self._variables.key(value.name) if isinstance(value, Variable) else value
        assert found is not None  # missing variables were reported before
        return found

    def _describe(self, name: str) -> dict[str, Any]:
        try:
            made = plan(name, self._sheets[name], self._variables)
            missing = made.missing(self._variables)
            refused = not_trusted(made, self._variables, self._trust)
            told = {"trusted": refused is None, **made.describe(self._variables)}
            problem = made.lacks(missing) if missing else None if refused is None else str(refused)
            if problem is None:
                self.account(name)
        except SettingsError as error:
            return {"name": name, "ready": False, "missing": [], "problem": str(error), "trusted": True}
        return {"name": name, "ready": problem is None, "missing": missing, "problem": problem, **told}


@cache
def short_names() -> Mapping[str, str]:
    """Built-in aliases. The user's own take precedence."""
    written = read_file(Path(__file__).with_name("short_names.toml"))
    assert written is not None
    return MappingProxyType({name: given.value for name, given in written.aliases.items()})


def load_here(overrides: Sequence[str] = ()) -> Accounts:
    """The accounts of this process, from its environment and working directory."""
    return load(Environment(os.environ), Path.cwd(), Path(os.path.expanduser("~")), overrides)


def load(environment: Mapping[str, str], folder: Path, home: Path, overrides: Sequence[str] = ()) -> Accounts:
    """The accounts of a working directory.

    Later sources take precedence, setting by setting: the built-in table, the user's file, the directory's file, the
    environment (completed by .env), flags.
    """
    try:
        return _load(environment, folder, home, overrides)
    except SettingsError as error:
        problem = str(error)
    raise SettingsError(problem)  # raised here, because a traceback would show frames that held secrets


def _load(environment: Mapping[str, str], folder: Path, home: Path, overrides: Sequence[str]) -> Accounts:
    variables = read_variables(environment, folder / DOTENV)
    own = config_folder(environment, home)
    paths = list(dict.fromkeys((own / FILE, folder / FILE)))
    read = {path: written for path in paths if (written := read_file(path)) is not None}
    sheets: dict[str, SettingValues] = {name: {} for name in PROVIDERS}
    aliases: SettingValues = {}
    prices: SettingValues = {}
    targets: SettingValue | None = None
    for path, written in read.items():
        _merge(sheets, aliases, written, folder=path != own / FILE)
        targets = written.targets or targets
        prices = {**written.prices, **{name: given for name, given in prices.items() if name not in written.prices}}
    said = [*from_variables(sheets, variables), *from_flags(list(sheets), overrides)]
    for account, setting, given in said:
        sheets[account][setting] = given
    accounts = Accounts(sheets, aliases, variables, list(read), prices, targets, trust=Trust(own))
    accounts.check()
    return accounts


def _merge(sheets: dict[str, SettingValues], aliases: SettingValues, written: SettingsFile, *, folder: bool) -> None:
    for name, sheet in written.accounts.items():
        said = {setting: given._replace(folder=folder) for setting, given in sheet.items()}
        sheets[name] = {**sheets.get(name, {}), **said}
    aliases.update(written.aliases)
