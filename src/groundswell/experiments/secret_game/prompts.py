"""What agents are told: variants of the prompt as data, each known by its name and by a hash of its words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from string import Formatter

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.modes import GameMode, Points

FOLDER = Path(__file__).with_name("prompts")
RULES = "rules"
PLAIN = "plain"
FIELDS = {"name", "other", "secret", "rules"}


class Prompt(msgspec.Struct, frozen=True):
    """A variant of the prompt, whole: a record of a game says what its agents were told."""

    name: str
    system: str
    opening: str
    private: str = ""

    @property
    def digest(self) -> str:
        """A hash of the words; a variant that was changed has another one."""
        told = "\0".join((self.system, self.opening, self.private))
        return blake2b(told.encode(), digest_size=6).hexdigest()

    def checked(self, whence: str | None = None) -> Prompt:
        """The prompt, if its fields in braces can be filled in."""
        whence = whence or repr(self.name)
        for field in ("system", "opening", "private"):
            _check(whence, field, getattr(self, field))
        if "{secret}" not in self.system:
            raise SettingsError(
                f"prompt {whence}: system: has no {{secret}} in it, so the agent would not know its own", field="prompt"
            )
        return self


def variants() -> tuple[str, ...]:
    """The variants that come with the game."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != RULES))


@cache
def load_prompt(name: str) -> Prompt:
    """A variant by its name, or from a TOML file with the same fields."""
    if name in variants():
        return _read(name, FOLDER / f"{name}.toml")
    path = Path(name)
    if path.suffix != ".toml":
        raise SettingsError(
            f"prompt {name!r}: there are {', '.join(variants())}; for one of your own, give a file as mine.toml"
        )
    if path.stem in variants():
        raise SettingsError(f"prompt {name!r}: {path.stem} is one that comes with the game; give the file another name")
    return _read(path.stem, path)


def rules_of(mode: GameMode, points: Points) -> str:
    """How the points of a mode are told to an agent."""
    numbers = {field: f"{value:g}" for field, value in msgspec.structs.asdict(points).items()}
    return _rules()[mode].format(**numbers)


def fill(template: str, values: Mapping[str, str]) -> str:
    """A text with its {fields} filled in."""
    return template.strip().format(**values)


@cache
def _rules() -> Mapping[str, str]:
    return tomllib.loads((FOLDER / f"{RULES}.toml").read_text(encoding="utf-8"))


def _read(name: str, path: Path) -> Prompt:
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
        found = msgspec.convert({"private": "", **told, "name": name}, Prompt)
    except OSError as error:
        raise SettingsError(f"prompt {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise SettingsError(f"prompt {path}: {error}; it must have `system` and `opening`, as text") from error
    return found.checked(str(path))


def _check(whence: str, field: str, text: str) -> None:
    """Refuse fields in braces that nobody fills in."""
    try:
        names = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise SettingsError(f"prompt {whence}: {field}: {error}; write {{{{ for a brace") from error
    if strange := sorted(names - FIELDS):
        raise SettingsError(
            f"prompt {whence}: {field}: nobody fills in {{{strange[0]}}}; there are {', '.join(sorted(FIELDS))}"
        )
    try:
        fill(text, dict.fromkeys(FIELDS, ""))
    except (ValueError, KeyError, IndexError) as error:
        raise SettingsError(
            f"prompt {whence}: {field}: cannot be filled in: {error}; write fields as {{name}}"
        ) from error
