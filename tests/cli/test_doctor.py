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
        "size_bytes": cli.store.stat().st_size,
        "log_bytes": 0,
        "mode": "0600",
        "notes": [],
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
        (garbage, "not a valid database"),
        (other_database, "a database of another program"),
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
    told = cli("doctor", status=1).stdout
    assert "PROBLEM" in told
    assert "WRITABLE" not in told
    assert cli.store.read_bytes() == before


@pytest.mark.parametrize(
    ("store", "problem"),
    [
        ("/nowhere/at/all.db", "does not exist"),
        ("mysql://x/y", "give the path of a SQLite file"),
        ("postgresql://127.0.0.1:1/y", "cannot be reached"),
    ],
    ids=["no folder", "another database", "no server"],
)
def test_a_store_that_cannot_be_made_is_a_problem(cli: CommandLine, store: str, problem: str) -> None:
    assert problem in cli.json("doctor", "--store", store, status=1)["problems"][0]
    told = cli("doctor", "--store", store, status=1).stdout
    assert (f"{store}, does not exist" in told) == (problem == "does not exist")
    assert "WRITABLE" not in told


def test_a_package_that_is_needed_and_gone(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NEEDED", ("msgspec", "no-such-package"))
    assert cli.json("doctor", status=1)["problems"] == ["no-such-package is not installed: pip install groundswell"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of its own, with a home that has no settings."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "GROQ_API_KEY", "MISTRAL_API_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    return work


ACCOUNTS = """
[models]
fast = "openai/gpt-4o-mini"
[accounts.work]
provider = "openai"
key_env = "WORK_KEY"
[accounts.gateway]
provider = "openai"
base_url = ["http://a:1/v1", "http://b:1/v1"]
"""


def test_a_provider_at_another_address_without_its_key_is_not_said_to_need_none(
    cli: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    shown = cli("doctor").stdout
    assert "account   openai: uses http://127.0.0.1:1/v1, no key is sent, because OPENAI_API_KEY is not set" in shown
    assert "account   vllm: uses http://127.0.0.1:8000/v1, no key needed" in shown


def test_accounts_that_are_ready_and_what_the_others_lack(cli: CommandLine, folder: Path) -> None:
    (folder / "groundswell.toml").write_text(ACCOUNTS)
    (folder / ".env").write_text("OPENAI_API_KEY=planted\nGROUNDSWELL_WRK_TIMEOUT=3\n")
    found = cli.json("doctor")
    accounts = {account["name"]: account for account in found["accounts"]["accounts"]}
    assert {name for name, account in accounts.items() if account["ready"]} >= {"openai", "ollama", "gateway"}
    assert (accounts["work"]["ready"], accounts["work"]["missing"]) == (False, ["WORK_KEY"])
    assert (found["ok"], found["accounts"]["files"]) == (True, [str(folder / "groundswell.toml")])
    shown = cli("doctor").stdout
    assert f"settings  {folder / 'groundswell.toml'}" in shown
    assert f"account   openai: ready, OPENAI_API_KEY from {folder / '.env'}" in shown
    assert "account   ollama: uses http://127.0.0.1:11434, no key needed\n" in shown
    assert "account   work: NOT READY, account 'work' has no key: set WORK_KEY in the environment or in .env" in shown
    assert "account   gateway: uses http://a:1/v1 and http://b:1/v1, no key is sent" in shown
    assert f"provider and base_url from {folder / 'groundswell.toml'}" in shown or "base_url and provider from" in shown
    assert "groq (GROQ_API_KEY), mistral (MISTRAL_API_KEY)" in shown
    assert "alias     fast: openai/gpt-4o-mini" in shown
    assert "unused    GROUNDSWELL_WRK_TIMEOUT: no account uses this variable" in shown
    assert "planted" not in shown + str(found)


def test_settings_of_accounts_that_cannot_be_read_are_a_problem(cli: CommandLine, folder: Path) -> None:
    (folder / "groundswell.toml").write_text("[accounts.openai]\napi_key = 'planted'\n")
    assert "api_key: keys are read from the environment or .env only" in cli.json("doctor", status=1)["problems"][0]
    assert "planted" not in cli("doctor", status=1).stdout


def test_a_variable_that_cannot_be_read_spoils_its_own_account_only(
    cli: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "gpu1:port")
    assert cli.json("doctor")["ok"]
    assert "account   ollama: NOT READY, environment: OLLAMA_HOST: is not an address" in cli("doctor").stdout
