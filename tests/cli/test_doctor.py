"""`groundswell doctor`: what it finds, and that looking changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from groundswell.cli import doctor
from groundswell.store.schema import REVISION
from tests.cli.conftest import CommandLine


def test_a_store_that_works(cli: CommandLine) -> None:
    cli.run()
    found = cli.json("doctor")
    assert (found["ok"], found["problems"]) == (True, [])
    assert found["store"].pop("free_bytes") > 0
    assert found["store"] == {
        "path": str(cli.store),
        "exists": True,
        "writable": True,
        "revision": REVISION,
        "runs": 1,
    }
    assert found["sqlite"] == sqlite3.sqlite_version
    assert all(found["packages"].values())


def test_a_store_that_will_be_made(cli: CommandLine) -> None:
    assert "will be created by the first run" in cli("doctor").stdout
    assert not cli.store.exists()
    assert list(cli.folder.iterdir()) == []


def test_extras_are_listed_with_what_to_install(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"here": ("json",), "gone": ("no_such_module", "csv")})
    assert cli.json("doctor")["extras"] == {
        "here": {"installed": True, "missing": []},
        "gone": {"installed": False, "missing": ["no_such_module"]},
    }
    assert "gone: needs no_such_module: pip install 'groundswell[gone]'" in cli("doctor").stdout


def garbage(path: Path) -> None:
    path.write_text("no database at all, but long enough to be looked at " * 20)


def other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE poems (line TEXT)")
    connection.close()


def newer_store(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
    connection.execute("INSERT INTO alembic_version VALUES ('9999')")
    connection.execute("CREATE TABLE runs (id INTEGER, cancel INTEGER)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (garbage, "not a usable database"),
        (other_database, "a database of something else"),
        (newer_store, "has schema 9999"),
    ],
    ids=["garbage", "another database", "newer"],
)
def test_a_store_that_cannot_be_used_is_a_problem(cli: CommandLine, make: Callable[[Path], None], problem: str) -> None:
    make(cli.store)
    before = cli.store.read_bytes()
    found = cli.json("doctor", status=1)
    assert not found["ok"]
    assert problem in found["problems"][0]
    assert "PROBLEM" in cli("doctor", status=1).stdout
    assert cli.store.read_bytes() == before


@pytest.mark.parametrize(
    ("store", "problem"),
    [("/nowhere/at/all.db", "does not exist"), ("postgresql://x/y", "only SQLite files")],
    ids=["no folder", "url"],
)
def test_a_store_that_cannot_be_made_is_a_problem(cli: CommandLine, store: str, problem: str) -> None:
    assert problem in cli.json("doctor", "--store", store, status=1)["problems"][0]


def test_a_package_that_is_needed_and_gone(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NEEDED", ("msgspec", "no-such-package"))
    assert cli.json("doctor", status=1)["problems"] == ["no-such-package is not installed: pip install groundswell"]
