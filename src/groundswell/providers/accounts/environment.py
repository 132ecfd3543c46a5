"""The environment, filled in from .env."""

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
    """The variables of a process. A report that shows the values of names does not show these."""

    def __repr__(self) -> str:
        return f"Environment({len(self)} names)"


class Variables:
    """Variables by name, and where each of them is set. What they hold is shown nowhere."""

    __slots__ = ("_environment", "_filled", "_path")

    def __init__(self, environment: Mapping[str, str], filled: Mapping[str, str], path: Path) -> None:
        self._environment = dict(environment)
        self._filled = {name: text for name, text in filled.items() if name not in environment}
        self._path = path

    def get(self, name: str) -> str | None:
        """What a variable holds; None if it is not set, or empty."""
        return self._environment.get(name, self._filled.get(name, "")).strip() or None

    def key(self, name: str) -> Key | None:
        """What a variable holds, to be sent in a header."""
        if self.get(name) is None:
            return None
        if not _SENDABLE.fullmatch(self.get(name) or ""):
            raise SettingsError(
                f"{self.place(name)}: {name}: holds a line break or another character that cannot be sent in a "
                f"header; copy the key again"
            )
        return Key(self.get(name) or "", name)

    def place(self, name: str) -> str:
        """Where a variable is set."""
        return str(self._path) if name in self._filled else ENVIRONMENT

    def in_folder(self, name: str) -> bool:
        """Whether a variable is set in .env, and so by whoever wrote the folder."""
        return name in self._filled

    def __iter__(self) -> Iterator[str]:
        yield from sorted({*self._environment, *self._filled})

    def __repr__(self) -> str:
        return f"Variables({len(set(self))} names)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("variables are not written anywhere: they may hold keys")


def read_variables(environment: Mapping[str, str], path: Path) -> Variables:
    """The environment, and for what it does not have, a .env file if there is one."""
    filled = parse(text, path) if (text := read_text(path)) is not None else {}
    return Variables(environment, filled, path)


def read_text(path: Path) -> str | None:
    """A file of settings; None where there is none."""
    problem = ""
    try:
        return path.read_text("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError as error:
        if not os.access(path.parent, os.X_OK):  # as in a container whose home is somebody else's
            return None
        problem = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        problem = "is not text in UTF-8"
    raise SettingsError(f"{path}: {problem}")


def parse(text: str, path: Path) -> dict[str, str]:
    """The variables of a .env file, as python-dotenv reads it. Nothing is interpolated.

    python-dotenv skips a line that it cannot read. Here such a line is an error, and so is a name without a value.
    """
    found: dict[str, str] = {}
    for name, value, (source, line), unreadable in parse_stream(StringIO(text)):
        if unreadable or (name is not None and (value is None or not _NAME.fullmatch(name))):
            blank = source[: len(source) - len(source.lstrip())]
            number = line + blank.count("\n")
            raise SettingsError(f"{path}: line {number}: write it as NAME=value, and close quotes that are opened")
        if name is not None and value is not None:
            found[name] = value
    return found
