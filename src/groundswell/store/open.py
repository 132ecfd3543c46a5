"""Opens the database that `--store` names."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from groundswell.errors import SettingsError
from groundswell.store.database import Database
from groundswell.store.names import is_postgres, revealed, shown


def open_database(store: str | Path) -> Database:
    """Open a store, creating or migrating it as needed."""
    if is_postgres(store):
        if importlib.util.find_spec("psycopg") is None:
            raise SettingsError(
                f"--store {shown(store)}: needs PostgreSQL's driver: pip install 'groundswell[postgres]'"
            )
        from groundswell.store.postgres import PostgresDatabase

        return PostgresDatabase(revealed(store))
    from groundswell.store.sqlite import SqliteDatabase

    return SqliteDatabase(database_path(store))


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
    return look_at(store)[0] is not None if is_postgres(store) else database_path(store).exists()


def look_at(url: str | Path) -> tuple[str | None, bool]:
    """The schema of a store in PostgreSQL, None if there is none, and whether it may be written. Nothing is changed."""
    from groundswell.store.postgres import look_at

    return look_at(revealed(url))
