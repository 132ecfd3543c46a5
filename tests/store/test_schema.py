"""Opening, creating, migrating and refusing database files."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest
import sqlalchemy as sa

from groundswell.errors import (
    SettingsError,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from groundswell.store.file import store_error
from groundswell.store.migrations import upgrade
from groundswell.store.open import database_path, open_database
from groundswell.store.runs import Runs
from groundswell.store.schema import REVISION

NOBODY = 65534


def schema_of(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master").fetchall()
    return {name: " ".join((sql or "").split()) for name, sql in rows}


def revision_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        [(revision,)] = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    return str(revision)


def make(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def test_a_new_store_is_what_the_migrations_make(tmp_path: Path) -> None:
    open_database(tmp_path / "new.db").close()
    migrated = sa.create_engine(f"sqlite:///{tmp_path / 'migrated.db'}", poolclass=sa.NullPool)
    with migrated.begin() as connection:
        upgrade(connection)
    assert schema_of(tmp_path / "new.db") == schema_of(tmp_path / "migrated.db")
    assert revision_of(tmp_path / "new.db") == revision_of(tmp_path / "migrated.db") == REVISION


@pytest.mark.parametrize("earlier", ["0001", "0002", "0003", "0004"])
def test_an_older_store_is_brought_up_to_date_with_what_it_holds(tmp_path: Path, earlier: str) -> None:
    path = tmp_path / "old.db"
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)
    with engine.begin() as connection:
        upgrade(connection, earlier)
        connection.exec_driver_sql("INSERT INTO outcomes (trial, fault, body) VALUES (7, NULL, '{}')")
    assert revision_of(path) == earlier
    open_database(tmp_path / "new.db").close()
    open_database(path).close()
    assert revision_of(path) == REVISION
    assert schema_of(path) == schema_of(tmp_path / "new.db")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM outcomes").fetchall() == [(7, None, "{}", None, None, None)]
        assert connection.execute("SELECT * FROM documents").fetchall() == []


def test_runs_of_early_development_versions_get_the_names_of_their_drivers(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)
    columns = "uid, status, seed, driver, options, sources, counters, cancel, created_at, updated_at, checksum"
    with engine.begin() as connection:
        upgrade(connection, "0004")
        for name in ("groundswell.experiments.secret_game.playing:play", "a_lab.study:drive"):
            row = f"'{name[:3]}', 'completed', 1, '{name}', '{{}}', '{{}}', '{{}}', 0, 1.0, 2.0, 3"
            connection.exec_driver_sql(f"INSERT INTO runs ({columns}) VALUES ({row})")
    opened = open_database(path)
    records = Runs(opened).list()
    opened.close()
    assert [(record.driver, record.release) for record in records] == [
        ("a_lab.study:drive", None),
        ("secret-game/play", None),
    ]


@pytest.mark.parametrize("number", ["0000", "000%", "00005", ""])
def test_a_schema_number_that_cannot_be_is_damage(tmp_path: Path, number: str) -> None:
    path = tmp_path / "s.db"
    open_database(path).close()
    make(path, f"UPDATE alembic_version SET version_num = '{number}'")
    with pytest.raises(StoreCorrupt, match="schema version is missing"):
        open_database(path)


def test_a_store_opens_again_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_database(path).close()
    before = path.read_bytes()
    open_database(f"sqlite:///{path}").close()
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch()
    open_database(tmp_path / "s.db").close()
    assert revision_of(tmp_path / "s.db") == REVISION


def test_many_may_create_a_store_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for engine in pool.map(open_database, [tmp_path / "s.db"] * 8):
            engine.close()
    assert revision_of(tmp_path / "s.db") == REVISION


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    open_database(path).close()
    make(path, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreTooNew, match=r"s\.db was written by a newer version of Groundswell \(schema 9999"):
        open_database(path)


@pytest.mark.parametrize(
    "content",
    [b"just some notes\n" * 100, b"SQLite format 3\x00" + b"\xff" * 4096, bytes(8192)],
    ids=["text", "a header and rubbish", "zeros"],
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"s\.db is not a valid database"):
        open_database(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE photos (id INTEGER)"],
        ["CREATE TABLE alembic_version (version_num TEXT)", "INSERT INTO alembic_version VALUES ('ae1027a6acf')"],
        ["CREATE TABLE alembic_version (version_num TEXT)", "INSERT INTO alembic_version VALUES ('0000')"],
    ],
    ids=["tables", "another user of alembic", "one with an older revision"],
)
def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path, statements: list[str]) -> None:
    path = make(tmp_path / "s.db", *statements)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="database of another program"):
        open_database(path)
    assert path.read_bytes() == before


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"the folder .*nowhere does not exist"):
        open_database(tmp_path / "nowhere" / "s.db")


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=str(tmp_path)):
        open_database(tmp_path)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, to whom permissions do not apply."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may look into, unlike those that pytest makes."""
    folder = Path(mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def test_a_folder_that_cannot_be_written_is_said(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(StoreReadOnly, match="check its permissions and those of its folder"):
        open_database(open_folder / "s.db")


def test_a_file_that_cannot_be_written_is_said(open_folder: Path) -> None:
    path = open_folder / "s.db"
    path.touch()
    path.chmod(0o444)
    with as_nobody(), pytest.raises(StoreReadOnly, match=r"s\.db cannot be written"):
        open_database(path)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("database or disk is full", StoreFull),
        ("disk I/O error: No space left on device", StoreFull),
        ("attempt to write a readonly database", StoreReadOnly),
        ("unable to open database file", StoreReadOnly),
        ("file is not a database", StoreCorrupt),
        ("database disk image is malformed", StoreCorrupt),
        ("database is locked", StoreError),
    ],
)
def test_errors_of_the_driver_become_ours(tmp_path: Path, text: str, kind: type[StoreError]) -> None:
    path = tmp_path / "s.db"
    path.touch()
    plain = sqlite3.OperationalError(text)
    wrapped = sa.exc.OperationalError("SELECT 1", None, plain)
    for error in (plain, wrapped):
        ours = store_error(error, path)
        assert type(ours) is kind
        assert str(path) in str(ours)


@pytest.mark.parametrize(
    ("given", "path"),
    [("/a/s.db", "/a/s.db"), ("sqlite:////a/s.db", "/a/s.db"), (Path("/a/s.db"), "/a/s.db")],
    ids=["path", "url", "Path"],
)
def test_stores_are_given_as_paths_or_urls(given: str | Path, path: str) -> None:
    assert database_path(given) == Path(path)


def test_other_databases_are_not_supported() -> None:
    with pytest.raises(SettingsError, match="--store mysql://u@x: give the path of a SQLite file, or postgresql://"):
        database_path("mysql://u:p@x")
