"""The environment, completed by .env."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import NoReturn

from dotenv.parser import parse_stream

from groundswell.errors import SettingsError
from groundswell.providers.accounts.account import Key

ENVIRONMENT = "environment"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SENDABLE = re.compile(r"[ -~]+")


class Environment(dict[str, str]):
    """The variables of a process. Its repr does not show their values."""

    def __repr__(self) -> str:
        return f"Environment({len(self)} names)"


class Variables:
    """Variables by name, and the source of each. Their values are never shown."""

    __slots__ = ("_environment", "_filled", "_path")

    def __init__(self, environment: Mapping[str, str], filled: Mapping[str, str], path: Path) -> None:
        self._environment = dict(environment)
        self._filled = {name: text for name, text in filled.items() if name not in environment}
        self._path = path

    def get(self, name: str) -> str | None:
        """The value of a variable. None if it is not set or empty."""
        return self._environment.get(name, self._filled.get(name, "")).strip() or None

    def key(self, name: str) -> Key | None:
        """The value of a variable, checked to be valid in a header."""
        if self.get(name) is None:
            return None
        if not _SENDABLE.fullmatch(self.get(name) or ""):
            raise SettingsError(
                f"{self.place(name)}: {name}: has a line break or another character that is not allowed in a "
                f"header; copy the key again"
            )
        return Key(self.get(name) or "", name)

    def place(self, name: str) -> str:
        """The source of a variable."""
        return str(self._path) if name in self._filled else ENVIRONMENT

    def in_folder(self, name: str) -> bool:
        """Whether a variable is set in .env, and therefore by the author of the directory."""
        return name in self._filled

    def __iter__(self) -> Iterator[str]:
        yield from sorted({*self._environment, *self._filled})

    def __repr__(self) -> str:
        return f"Variables({len(set(self))} names)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("variables may hold keys and cannot be serialised")


def read_variables(environment: Mapping[str, str], path: Path) -> Variables:
    """The environment, completed by a .env file if there is one."""
    filled = parse(text, path) if (text := read_text(path)) is not None else {}
    return Variables(environment, filled, path)


def read_text(path: Path) -> str | None:
    """The text of a settings file. None if it does not exist."""
    problem = ""
    try:
        return path.read_text("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError as error:
        if not os.access(path.parent, os.X_OK):  # for example a container whose home directory is not accessible
            return None
        problem = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        problem = "is not text in UTF-8"
    raise SettingsError(f"{path}: {problem}")


def parse(text: str, path: Path) -> dict[str, str]:
    """The variables of a .env file, parsed by python-dotenv without interpolation.

    python-dotenv skips a line that it cannot read. Here such a line is an error, and so is a name without a value.
    """
    found: dict[str, str] = {}
    for name, value, (source, line), unreadable in parse_stream(StringIO(text)):
        if unreadable or (name is not None and (value is None or not _NAME.fullmatch(name))):
            blank = source[: len(source) - len(source.lstrip())]
            number = line + blank.count("\n")
            raise SettingsError(f"{path}: line {number}: expected NAME=value; check for an unclosed quote")
        if name is not None and value is not None:
            found[name] = value
    return found
