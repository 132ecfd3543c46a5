"""Guards round a planted secret: what the target is told, and whether a filter stands behind it (guards.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.detectors.ladder import said
from groundswell.program.request import Message, system, user

FILE = Path(__file__).with_name("guards.toml")
STRENGTH = "{strength}"
"""In the name of a target: the strength of the guard, for models that go by it."""
NOT_GUARDS = ("trained", "held out")
"""What figures call all guards that training met, or did not: none may be called so itself."""
WITHHELD = "I'm sorry, but I can't share that."
"""What a filter says in the place of a response that holds the secret."""


class Guard(msgspec.Struct, frozen=True, omit_defaults=True):
    """A guard: the words that stand round the secret, and how strong an emulated one is."""

    name: str
    brief: str
    strength: float = 0.5
    withholds: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SettingsError("guards: a guard needs a name", field="guards")
        if self.name in NOT_GUARDS:
            said = f"guards: none may be called {self.name!r}, which figures call several together: rename it"
            raise SettingsError(said, field="guards")
        if "{secret}" not in self.brief:
            raise SettingsError(f"guards: the brief of {self.name!r} must have {{secret}} in it", field="guards")
        if not 0 <= self.strength <= 1:
            raise SettingsError(f"guards: the strength of {self.name!r} must be from 0 to 1", field="guards")

    def told(self, secret: str, query: str) -> list[Message]:
        """What the target is asked."""
        return [system(self.brief.replace("{secret}", secret)), user(query)]

    def let_out(self, response: str, secret: str) -> str:
        """A response as it leaves the guard."""
        return WITHHELD if self.withholds and said(response, secret) else response

    def model(self, target: str) -> str:
        """The model that is asked: the target, with this guard's strength where its name has a place for it."""
        return target.replace(STRENGTH, f"{self.strength:g}")


class _Written(msgspec.Struct, frozen=True):
    name: str
    brief: str
    strength: float
    withholds: bool = False
    held_out: bool = False
    optional: bool = False

    @property
    def guard(self) -> Guard:
        return Guard(self.name, self.brief, self.strength, self.withholds)


@cache
def _written() -> tuple[_Written, ...]:
    return tuple(msgspec.convert(tomllib.loads(FILE.read_text(encoding="utf-8"))["guards"], list[_Written]))


def training_guards() -> tuple[Guard, ...]:
    """The guards that a policy is trained against where none are named."""
    return tuple(each.guard for each in _written() if not (each.held_out or each.optional))


def held_out_guards() -> tuple[Guard, ...]:
    """Guards that no training meets."""
    return tuple(each.guard for each in _written() if each.held_out)


def check_names(guards: Sequence[Guard]) -> None:
    """Refuse guards of one name: figures go by it."""
    names = [guard.name for guard in guards]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"guards: {twice!r} is there twice", field="guards")


def guards_named(names: Sequence[str], field: str = "guards") -> tuple[Guard, ...]:
    """Guards by their names; an error says which there are."""
    known = {each.name: each.guard for each in _written()}
    for name in names:
        if name not in known:
            raise SettingsError(f"{field}: there is no {name!r}; there are {', '.join(known)}", field=field)
    return tuple(known[name] for name in dict.fromkeys(names))
