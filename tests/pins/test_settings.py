"""Settings of groundswell.toml and environment variables: users' files and environments go on to work.

The files that these tests read are written by hand.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.pins.conftest import CommandLine
from tests.pins.expectations import FOLDER

TOML = FOLDER / "groundswell.toml"
SETTINGS = sorted({name for account in tomllib.loads(TOML.read_text())["accounts"].values() for name in account})
REFUSED = "there is no such"
ASK = ("ask", "Hello", "-m")


def pairs(name: str) -> list[tuple[str, str]]:
    """Accounts and the variables that are read for them."""
    lines = (FOLDER / name).read_text().splitlines()
    return [(account, variable) for account, variable in map(str.split, lines)]


def accounts(cli: CommandLine) -> dict[str, dict[str, Any]]:
    """What `models list` says of every account."""
    return {row["model"].partition("/")[0]: row for row in cli.json("models", "list")["accounts"]}


def test_every_setting_of_the_file_is_taken(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(TOML, "groundswell.toml")
    monkeypatch.setenv("WORK_OPENAI_KEY", "a-key")
    found = cli.json("models", "list")
    assert found["problems"] == []
    assert found["aliases"]["fast"] == "openai/gpt-4o-mini"
    assert {row["model"]: row["key"] for row in found["accounts"]}["openai/MODEL"] == "WORK_OPENAI_KEY"
    assert accounts(cli)["work"]["address"] == ["https://one.example/v1", "https://two.example/v1"]


def test_a_setting_that_does_not_exist_is_refused(cli: CommandLine) -> None:
    Path("groundswell.toml").write_text(TOML.read_text().replace("batch_poll", "batch_pool"))
    (problem,) = cli.json("models", "list")["problems"]
    assert REFUSED in problem


@pytest.mark.parametrize("place", ["folder", "XDG_CONFIG_HOME", "home"])
def test_where_the_file_is(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    if place == "home":
        monkeypatch.delenv("XDG_CONFIG_HOME")
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(cli.folder / "config"))
    folders = {"folder": "", "XDG_CONFIG_HOME": "config/groundswell", "home": ".config/groundswell"}
    path = cli.folder / folders[place] / "groundswell.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[models]\nmine = "emulated/echo"\n')
    assert cli.json("models", "list")["aliases"]["mine"] == "emulated/echo"


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_as_variables(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    """A value that cannot be right is refused under the name of the variable, so the variable is read."""
    name = f"GROUNDSWELL_OPENAI_{setting.upper()}"
    monkeypatch.setenv(name, "sk-0123456789abcdef0123456789abcdef")
    (told,) = cli.json("models", "list")["problems"]
    assert name in told
    assert REFUSED not in told


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_as_flags(cli: CommandLine, setting: str) -> None:
    told = cli(
        *ASK, "openai/gpt-4o-mini", "--account", f"openai.{setting}=sk-0123456789abcdef0123456789abcdef", status=2
    ).stderr
    assert f"openai.{setting}" in told
    assert REFUSED not in told


@pytest.mark.parametrize(("account", "variable"), pairs("key-variables.txt"))
def test_variables_of_keys(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, account: str, variable: str) -> None:
    for _, other in pairs("key-variables.txt"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, "a-key")
    found = accounts(cli)[account]
    assert (found["key"], found["usable"]) == (variable, True)


def test_a_key_in_the_dotenv_file(cli: CommandLine) -> None:
    Path(".env").write_text("OPENAI_API_KEY=a-key\n")
    assert accounts(cli)["openai"]["usable"]


@pytest.mark.parametrize(("account", "variable"), pairs("address-variables.txt"))
def test_variables_of_addresses(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, account: str, variable: str) -> None:
    for _, other in pairs("address-variables.txt"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, "http://other.example:9/v1")
    (address,) = accounts(cli)[account]["address"]
    assert address.startswith("http://other.example:9")


def test_the_variable_of_the_store(cli: CommandLine) -> None:
    cli(*ASK, "emulated/echo")
    assert Path("runs.db").exists()


def test_weights_are_looked_for_in_the_folder_for_data(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(cli.folder / "data"))
    path = cli.folder / "data/groundswell/models/smollm2/tiny.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    assert cli.json("models", "list")["local"][0]["path"] == str(path)
