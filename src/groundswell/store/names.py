"""The names of stores: paths of SQLite files, and URLs of PostgreSQL databases, which are shown without a password."""

from __future__ import annotations

import re
from pathlib import Path

POSTGRES = ("postgresql://", "postgres://")

_urls: dict[str, str] = {}
"""URLs with a password, by what is shown of them."""


def is_postgres(store: str | Path) -> bool:
    """Whether a `--store` value is the URL of a PostgreSQL database, and not a file."""
    return str(store).startswith(POSTGRES)


def shown(store: str | Path) -> str:
    """A `--store` value without its password."""
    text = re.sub(r"(://[^:/?@]*):[^?]*@", r"\1@", str(store))
    return re.sub(r"([?&])password=[^&]*&?", r"\1", text).rstrip("?&")


def hide(store: str) -> str:
    """What to print and pass on instead of a `--store` value. This process can open it; the password is remembered."""
    if not is_postgres(store):
        return store
    public = shown(store)
    if public != store:
        _urls[public] = store
    return public


def revealed(store: str | Path) -> str:
    """The URL with the password, if this process was given one."""
    return _urls.get(str(store), str(store))
