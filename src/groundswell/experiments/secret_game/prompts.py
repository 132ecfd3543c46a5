"""The prompts of agents: built-in TOML files or your own, each identified by its name and a hash of its text."""

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
    """A prompt in full, as the record of a run stores it."""

    name: str
    system: str
    opening: str
    private: str = ""

    @property
    def digest(self) -> str:
        """A hash of the text."""
        told = "\0".join((self.system, self.opening, self.private))
        return blake2b(told.encode(), digest_size=6).hexdigest()

    def checked(self, whence: str | None = None) -> Prompt:
        """Validate the fields in braces and return the prompt."""
        whence = whence or repr(self.name)
        for field in ("system", "opening", "private"):
            _check(whence, field, getattr(self, field))
        if "{secret}" not in self.system:
            raise SettingsError(
                f"prompt {whence}: system: {{secret}} is missing, so the agent would not know its secret; add it",
                field="prompt",
            )
        return self


def variants() -> tuple[str, ...]:
    """Names of the built-in prompts."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != RULES))


@cache
def load_prompt(name: str) -> Prompt:
    """Load a built-in prompt by name, or a prompt from a TOML file."""
    if name in variants():
        return _read(name, FOLDER / f"{name}.toml")
    path = Path(name)
    if path.suffix != ".toml":
        raise SettingsError(f"prompt {name!r}: unknown; use {', '.join(variants())}, or the path of a .toml file")
    if path.stem in variants():
        raise SettingsError(f"prompt {name!r}: {path.stem} is the name of a built-in prompt; rename the file")
    return _read(path.stem, path)


def rules_of(mode: GameMode, points: Points) -> str:
    """The rules of a mode as agents are given them."""
    numbers = {field: f"{value:g}" for field, value in msgspec.structs.asdict(points).items()}
    return _rules()[mode].format(**numbers)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Fill in the {fields} of a template."""
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
        raise SettingsError(f"prompt {path}: {error}; the file needs the strings `system` and `opening`") from error
    return found.checked(str(path))


def _check(whence: str, field: str, text: str) -> None:
    """Raise `SettingsError` for unknown fields in braces."""
    try:
        names = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise SettingsError(f"prompt {whence}: {field}: {error}; write {{{{ for a literal brace") from error
    if strange := sorted(names - FIELDS):
        raise SettingsError(
            f"prompt {whence}: {field}: unknown field {{{strange[0]}}}; use {', '.join(sorted(FIELDS))}"
        )
    try:
        fill(text, dict.fromkeys(FIELDS, ""))
    except (ValueError, KeyError, IndexError) as error:
        raise SettingsError(
            f"prompt {whence}: {field}: cannot be filled in: {error}; write fields as {{name}}"
        ) from error
