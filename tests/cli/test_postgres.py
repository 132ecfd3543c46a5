"""Commands on a store in PostgreSQL: the local server, copies, and passwords that stay secret."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from click.testing import CliRunner, Result

from groundswell.cli.app import app
from groundswell.store.names import hide, revealed
from tests.stores import new_database

GAME = ["play", "--models", "emulated/leaker:0.5", "--interactions", "2", "--messages", "2", "--seed", "1"]


def call(*words: str, store: str = "", status: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words), env={"GROUNDSWELL_STORE": store} if store else {})
    assert result.exit_code == status, f"{result.stdout}\n{result.stderr}\n{result.exception!r}"
    return result


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the account of the server can reach."""
    with TemporaryDirectory(prefix="gs-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.slow
def test_the_local_server_from_setup_to_its_end(folder: Path) -> None:
    place = str(folder / "pg")
    assert "there is no PostgreSQL server" in call("postgres", "status", "--folder", place, status=1).stdout
    told = call("postgres", "up", "--folder", place).stdout
    found = json.loads(call("postgres", "status", "--folder", place, "--json").stdout)
    assert f"process {found['pid']}" in told
    assert f"export GROUNDSWELL_STORE='{found['url']}'" in told
    call(*GAME, "--name", "r", "--out", str(folder / "out"), store=found["url"])
    assert json.loads(call("runs", "list", "--json", store=found["url"]).stdout)["runs"][0]["trials"]["usable"] == 2
    assert call("postgres", "down", "--folder", place).stdout.endswith("is stopped\n")
    assert call("postgres", "down", "--folder", place).stdout.endswith("was not running\n")
    assert "does not run" in call("postgres", "status", "--folder", place, status=1).stdout
    assert "cannot be reached" in call("runs", "list", store=found["url"], status=1).stderr


def test_runs_are_copied_and_checked(tmp_path: Path) -> None:
    url, file = new_database(), str(tmp_path / "s.db")
    call(*GAME, "--name", "r", "--out", str(tmp_path / "out"), store=file)
    assert "copied 1 run to" in call("store", "copy", file, url).stdout
    again = json.loads(call("store", "copy", file, url, "--json").stdout)
    assert (again["runs"], again["there"]) == ([], ["r"])
    assert "2 of 2 trials are identical" in call("runs", "verify", "r", store=url).stdout
    checked = json.loads(call("doctor", "--json", store=url).stdout)
    found = checked["store"]
    assert (found["exists"], found["runs"], checked["problems"]) == (True, 1, [])
    assert found["server"].startswith("PostgreSQL ")
    assert ", 1 run, writable, PostgreSQL" in call("doctor", store=url).stdout
    assert "give two different stores" in call("store", "copy", url, url, status=2).stderr
    assert "there is no store" in call("store", "copy", str(tmp_path / "no.db"), url, status=1).stderr
    assert "works on SQLite files" in call("doctor", "--repair", "x.db", store=url, status=2).stderr


def test_a_store_that_this_user_may_not_write_is_a_problem(tmp_path: Path) -> None:
    url = new_database()
    reader = f"postgresql://reader@{url.partition('@')[2]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE ROLE reader LOGIN")
        assert ", does not exist, NOT WRITABLE" in call("doctor", store=reader, status=1).stdout
        assert ", will be created by the first run, writable" in call("doctor", store=url).stdout
        call(*GAME, "--name", "r", "--out", str(tmp_path / "out"), store=url)
        connection.execute("GRANT USAGE ON SCHEMA public TO reader")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        told = call("doctor", store=reader, status=1).stdout
        assert ", 1 run, NOT WRITABLE, PostgreSQL" in told
        assert "PROBLEM" in told
        read_only = f"{url}&options=-cdefault_transaction_read_only%3Don"
        assert ", 1 run, NOT WRITABLE, PostgreSQL" in call("doctor", store=read_only, status=1).stdout
        connection.execute("UPDATE alembic_version SET version_num = '0008'")
        assert f"{url}, schema 0008, writable\n" in call("doctor", store=url).stdout
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        assert f"store     {url}\n" in call("doctor", store=url, status=1).stdout


def test_a_password_is_used_but_never_printed(tmp_path: Path) -> None:
    url = new_database().replace("groundswell@", "groundswell:geheim@")
    told = [
        call(*GAME, "--name", "r", "--out", str(tmp_path / "out"), store=url),
        call("runs", "show", "r", store=url),
        call("cache", "stats", store=url),
        call("doctor", store=url),
        call("runs", "list", "--store", "postgresql://u:geheim@127.0.0.1:1/x", status=1),
    ]
    assert all("geheim" not in each.stdout + each.stderr for each in told)
    assert "groundswell@/" in told[0].stdout
    assert not any("geheim" in path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())


def test_a_hidden_password_is_known_to_this_process() -> None:
    url = "postgresql://u:geheim@host/db?sslmode=require"
    assert hide(url) == "postgresql://u@host/db?sslmode=require"
    assert revealed(hide(url)) == url
    assert hide("a/path:with@.db") == "a/path:with@.db"
    assert "geheim" not in os.environ.get("GROUNDSWELL_STORE", "")
