"""Opens the database that `--store` names."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from groundswell.errors import SettingsError
from groundswell.store.database import Database

POSTGRES = ("postgresql://", "postgres://")


def open_database(store: str | Path) -> Database:
    """Open a store, creating or migrating it as needed."""
    if is_postgres(store):
        if importlib.util.find_spec("psycopg") is None:
            raise SettingsError(
                f"--store {shown(store)}: needs PostgreSQL's driver: pip install 'groundswell[postgres]'"
            )
        from groundswell.store.postgres import PostgresDatabase

        return PostgresDatabase(str(store))
    from groundswell.store.sqlite import SqliteDatabase

    return SqliteDatabase(database_path(store))


def is_postgres(store: str | Path) -> bool:
    """Whether a `--store` value is the URL of a PostgreSQL database, and not a file."""
    return str(store).startswith(POSTGRES)


def database_path(store: str | Path) -> Path:
    """The file behind a `--store` value."""
    text = str(store)
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    if "://" in text:
        raise SettingsError(
            f"--store {shown(text)}: give the path of a SQLite file, or postgresql://USER@HOST/DATABASE"
        )
    return Path(text).expanduser().absolute()


def exists(store: str | Path) -> bool:
    """Whether there is a store. One that is not there is not created."""
    if not is_postgres(store):
        return database_path(store).exists()
    from groundswell.store.postgres import has_tables

    return has_tables(str(store))


def shown(store: str | Path) -> str:
    """A `--store` value without its password."""
    text = re.sub(r"(://[^:/?@]*):[^?]*@", r"\1@", str(store))
    return re.sub(r"([?&])password=[^&]*&?", r"\1", text).rstrip("?&")
