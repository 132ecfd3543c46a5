"""The names of stores: paths of SQLite files, and URLs of PostgreSQL databases, which are shown without a password."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

POSTGRES = ("postgresql://", "postgres://")
SECRET = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")

_urls: dict[str, str] = {}
"""URLs with a password, by what is shown of them."""


def is_postgres(store: str | Path) -> bool:
    """Whether a `--store` value is the URL of a PostgreSQL database, and not a file."""
    return str(store).startswith(POSTGRES)


def shown(store: str | Path) -> str:
    """A `--store` value without its password. Of a URL that makes no sense, only the scheme is shown."""
    scheme, mark, rest = str(store).partition("://")
    if not mark:
        return scheme
    place, question, query = rest, "", ""
    user, at, host = rest.partition("@")
    if at and "/" not in user:
        user, place = user.partition(":")[0] + at, host
    else:
        user = ""
    place, question, query = place.partition("?")
    if "@" in place:
        return f"{scheme}://..."
    kept = [part for part in query.split("&") if unquote(part.partition("=")[0]) not in SECRET]
    return f"{scheme}://{user}{place}" + (question + "&".join(kept) if any(kept) else "")


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
