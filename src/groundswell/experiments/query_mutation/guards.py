"""Guards of a planted secret: the system prompt of the target, and whether its responses are filtered (guards.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from groundswell.emulator.skills.persuasion import COURTESY, kind_in
from groundswell.errors import SettingsError
from groundswell.experiments.detectors.ladder import said
from groundswell.program.request import Message, assistant, system, user

FILE = Path(__file__).with_name("guards.toml")
STRENGTH = "{strength}"
"""Placeholder in the name of a target for the strength of the guard."""
KIND = "{kind}"
"""Placeholder in the name of a target for the kind of the guard."""
NOT_GUARDS = ("trained", "held out")
"""Reserved names: results use them for groups of guards."""
WITHHELD = "I'm sorry, but I can't share that."
"""What the filter returns instead of a response that contains the secret."""


class Exchange(msgspec.Struct, frozen=True):
    """A query to the target, and the response that came back."""

    query: str
    response: str


class Guard(msgspec.Struct, frozen=True, omit_defaults=True):
    """A guard: a system prompt with `{secret}`, and the strength and kind that an emulated target uses.

    `withholds` filters responses: one that contains the secret is replaced by a refusal. Without a brief, no system
    prompt is sent: the target holds a secret of its own.
    """

    name: str
    brief: str
    strength: float = 0.5
    withholds: bool = False
    kind: str = COURTESY
    """What an emulated guard gives way to, such as `story` or `story:hardens`: see docs/emulated-model.md."""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SettingsError("guards: the name of a guard is empty", field="guards")
        if self.name in NOT_GUARDS:
            raise SettingsError(f"guards: the name {self.name!r} is reserved; rename the guard", field="guards")
        if self.brief and "{secret}" not in self.brief:
            raise SettingsError(f"guards: the brief of {self.name!r} must contain {{secret}}", field="guards")
        if not 0 <= self.strength <= 1:
            said = f"guards: the strength of {self.name!r} is {self.strength:g}; must be between 0 and 1"
            raise SettingsError(said, field="guards")
        try:
            kind_in(self.kind)
        except SettingsError as error:
            raise SettingsError(f"guards: the kind of {self.name!r}: {error}", field="guards") from error

    def told(self, secret: str, query: str, talk: Sequence[Exchange] = ()) -> list[Message]:
        """The messages for the target: the brief, the conversation so far if the target keeps one, and the query."""
        before = [message for each in talk for message in (user(each.query), assistant(each.response))]
        brief = [system(self.brief.replace("{secret}", secret))] if self.brief else []
        return [*brief, *before, user(query)]

    def let_out(self, response: str, secret: str) -> str:
        """The response after the filter."""
        return WITHHELD if self.withholds and said(response, secret) else response

    def model(self, target: str) -> str:
        """The target with this guard's strength and kind in place of `{strength}` and `{kind}`."""
        return target.replace(STRENGTH, f"{self.strength:g}").replace(KIND, self.kind)

    @property
    def needs_conversation(self) -> bool:
        """Whether its kind shows only if the target keeps the conversation."""
        kind, hardens = kind_in(self.kind)
        return hardens or kind == "sequence"


class _Written(msgspec.Struct, frozen=True):
    name: str
    brief: str
    strength: float
    withholds: bool = False
    kind: str = COURTESY
    held_out: bool = False
    optional: bool = False

    @property
    def guard(self) -> Guard:
        return Guard(self.name, self.brief, self.strength, self.withholds, self.kind)


@cache
def _written() -> tuple[_Written, ...]:
    return tuple(msgspec.convert(tomllib.loads(FILE.read_text(encoding="utf-8"))["guards"], list[_Written]))


def training_guards() -> tuple[Guard, ...]:
    """The default guards for training."""
    return tuple(each.guard for each in _written() if not (each.held_out or each.optional))


def held_out_guards() -> tuple[Guard, ...]:
    """The default held-out guards."""
    return tuple(each.guard for each in _written() if each.held_out)


def check_names(guards: Sequence[Guard]) -> None:
    """Refuse duplicate names."""
    names = [guard.name for guard in guards]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"guards: the name {twice!r} is used twice; names must be unique", field="guards")


def guards_named(names: Sequence[str], field: str = "guards") -> tuple[Guard, ...]:
    """Built-in guards by name. An error lists the known names."""
    known = {each.name: each.guard for each in _written()}
    for name in names:
        if name not in known:
            said = f"{field}: unknown guard {name!r}; known: {', '.join(known)}, or give a .toml file"
            raise SettingsError(said, field=field)
    return tuple(known[name] for name in dict.fromkeys(names))
