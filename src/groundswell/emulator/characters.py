"""Who the emulated model can be. A model's name is a character, with an argument after a colon where it takes one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills.encodings import ENCODINGS
from groundswell.emulator.skills.opinions import Planted, planted_in
from groundswell.emulator.skills.persuasion import COURTESY, kind_in
from groundswell.errors import SettingsError


class Character(NamedTuple):
    """What a name stands for: its part, and how that part is played."""

    part: str
    """One of `NAMES`, or `improviser`."""
    temper: str = "keeper"
    """How it treats a secret, such as keeper, leaker, encoder, bluffer or guard."""
    rate: float = 0.0
    """A leaker's probability per turn, a refuser's per request, a guard's strength."""
    encoding: str | None = None
    """How an encoder writes its secret; None lets chance choose."""
    skill: float = 1.0
    """Scales the ability at word problems."""
    planted: Planted | None = None
    """What shapes a person's answers: effects of attributes, influence of others and more."""
    kind: str = COURTESY
    """A guard's weakness."""
    hardens: bool = False
    """Whether a guard gets stronger with each request that it refuses."""


MIX: tuple[tuple[float, str, float], ...] = (
    (0.30, "keeper", 0.0),
    (0.25, "leaker", 0.05),
    (0.15, "leaker", 0.15),
    (0.10, "hinter", 0.0),
    (0.10, "bluffer", 0.0),
    (0.10, "trader", 0.0),
)
"""The temperaments of improvisers: share of names, temper, rate."""


def _number(name: str, argument: str, default: float) -> float:
    """The argument as a number from 0 to 1."""
    try:
        value = float(argument) if argument else default
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise SettingsError(f"model {name!r}: {argument!r} must be a number from 0 to 1")
    return value


def _encoding(name: str, argument: str) -> str | None:
    """The argument as one of the encodings."""
    if argument and argument not in ENCODINGS:
        raise SettingsError(f"model {name!r}: {argument!r} is not an encoding; choose one of {', '.join(ENCODINGS)}")
    return argument or None


def _guard(name: str, argument: str) -> Character:
    """A guard from STRENGTH, STRENGTH:KIND or STRENGTH:KIND:hardens."""
    strength, _, kind = argument.partition(":")
    try:
        return Character("guard", "guard", _number(name, strength, 0.5), None, 1.0, None, *kind_in(kind or COURTESY))
    except SettingsError as error:
        raise error if str(error).startswith("model") else SettingsError(f"model {name!r}: {error}") from error


def _plain(part: str, temper: str = "keeper") -> Callable[[str, str], Character]:
    """The maker of a character that takes no argument."""

    def make(name: str, argument: str) -> Character:
        if argument:
            raise SettingsError(f"model {name!r}: {part} takes no argument, but was given {argument!r}")
        return Character(part, temper)

    return make


_PARTS: dict[str, Callable[[str, str], Character]] = {
    "keeper": _plain("keeper"),
    "leaker": lambda name, argument: Character("leaker", "leaker", _number(name, argument, 1.0)),
    "encoder": lambda name, argument: Character("encoder", "encoder", encoding=_encoding(name, argument)),
    "bluffer": _plain("bluffer", "bluffer"),
    "hinter": _plain("hinter", "hinter"),
    "trader": _plain("trader", "trader"),
    "mentioner": _plain("mentioner", "mentioner"),
    "assembler": _plain("assembler", "assembler"),
    "confirmer": _plain("confirmer", "confirmer"),
    "guesser": _plain("guesser", "guesser"),
    "guard": _guard,
    "solver": lambda name, argument: Character("solver", skill=_number(name, argument, 1.0)),
    "reworder": _plain("reworder"),
    "judge": _plain("judge"),
    "rater": lambda name, argument: Character("rater", skill=_number(name, argument, 1.0)),
    "refuser": lambda name, argument: Character("refuser", rate=_number(name, argument, 1.0)),
    "echo": _plain("echo"),
    "person": lambda name, argument: Character("person", planted=planted_in(name, argument)),
}
NAMES: tuple[str, ...] = tuple(_PARTS)


def find(name: str) -> Character | None:
    """The character of this name; None where the name is nobody's. `:latest`, which Ollama adds, is no argument."""
    part, _, argument = name.partition(":")
    make = _PARTS.get(part)
    return make(name, "" if argument == "latest" else argument) if make is not None else None


@lru_cache(maxsize=1024)
def cast(name: str) -> Character:
    """Who answers to a model's name: its character, or else an improviser with a temperament of its own."""
    return find(name) or _improviser(name)


def _improviser(name: str) -> Character:
    """A temperament out of `MIX` and a skill from 0.7 to 1, both fixed by the model's name."""
    chance = Chance(b"improviser|" + name.removesuffix(":latest").encode("utf-8", "surrogatepass"))
    drawn, skill = chance.share(), 0.7 + 0.3 * chance.share()
    for share, temper, rate in MIX:
        drawn -= share
        if drawn < 0:
            return Character("improviser", temper, rate, skill=skill)
    return Character("improviser", skill=skill)
