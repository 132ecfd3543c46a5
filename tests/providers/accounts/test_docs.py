"""docs/models.md: every example works, and every table is complete."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from groundswell.cli.app import app
from groundswell.providers.accounts.environment import parse
from groundswell.providers.provider import Provider
from groundswell.providers.registry import IN_PROCESS, PROVIDERS
from tests.pins.expectations import RECORDING, recording
from tests.providers.accounts.desk import Desk

PATH = Path(__file__).parents[3] / "docs" / "models.md"
GUIDE = PATH.read_text()
TABLE = re.compile(
    r"(?<=\| account \| dialect \| address \| key variable \| address variable \|\n"
    r"\|---\|---\|---\|---\|---\|\n)(\|.*\n)+"
)
DOTENV = 'text title="\\.env"'
KEYS = {name: "planted" for provider in PROVIDERS.values() for name in provider.key_env}

CONFIRMED = {
    "http://gpu1:8000": "VLLM_API_KEY",
    "http://gpu2:8000": "VLLM_API_KEY",
    "https://llm.example.org": "GATEWAY_KEY",
    "http://lab.example.org:9000": "LAB_TOKEN",
    "https://shop.example.org": "SHOP_TOKEN",
}
"""What the user of the examples has confirmed: these hosts are named in a file of the folder."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def words(block: str) -> list[list[str]]:
    return [shlex.split(line) for line in block.splitlines()]


def variables_named(toml: str) -> dict[str, str]:
    """A value for each variable that an example wants."""
    keys = {name: "planted" for name in re.findall(r'"env:(\w+)"|key_env = "(\w+)"', toml) for name in name if name}
    return {name: "http://proxy:3128" if name.endswith("PROXY") else value for name, value in keys.items()}


def test_there_are_examples_of_each_kind() -> None:
    assert (len(blocks("toml")), len(blocks("sh")), len(blocks(DOTENV))) == (11, 8, 1)


@pytest.mark.parametrize("toml", blocks("toml"))
def test_every_account_and_alias_of_an_example_can_be_used(toml: str, desk: Desk) -> None:
    desk.write(toml)
    for host, variable in CONFIRMED.items():
        desk.trust.add_host(host, [variable])
    accounts = desk.load({**KEYS, **variables_named(toml)})
    written = re.findall(r"^\[accounts\.(\S+)\]", toml, re.MULTILINE)
    for name in written:
        assert accounts.find(f"{name}/model").account.name == name
    for alias in accounts.aliases:
        full = accounts.resolve(alias)
        assert full.partition("/")[0] in IN_PROCESS or accounts.find(alias).model
    assert written or accounts.aliases


def test_all_examples_go_together_in_one_file(desk: Desk) -> None:
    aliases: list[str] = []
    others: list[str] = []
    for toml in blocks("toml"):
        for section in re.split(r"^(?=\[)", toml, flags=re.MULTILINE):
            (aliases if section.startswith("[models]") else others).append(section)
    desk.write("[models]\n" + "".join(section.removeprefix("[models]\n") for section in aliases) + "".join(others))
    assert set(PROVIDERS) | {"work", "private", "gateway", "lab", "shop"} == set(desk.load().names)


@pytest.mark.parametrize("block", blocks("sh"))
def test_what_is_exported_is_used(block: str, desk: Desk) -> None:
    given = [pair.split("=", 1) for line in words(block) if line[0] == "export" for pair in line[1:]]
    accounts = desk.load(dict(given))
    before, after = desk.load().describe(), accounts.describe()
    assert not given or before != after
    assert after["unused_variables"] == []
    for account in after["accounts"]:
        assert account["problem"] is None or account["missing"]


@pytest.mark.parametrize("line", [line for block in blocks("sh") for line in words(block) if line[0] == "groundswell"])
def test_commands_have_the_flags_that_are_shown(line: list[str], desk: Desk) -> None:
    flags = [word for before, word in pairwise(line) if before == "--account"]
    told = desk.load(flags=flags).describe()["accounts"]
    places = {place for account in told for place in account["settings"].values()}
    assert places == {"built in", *(f"{flag.split('=')[0]} (--account)" for flag in flags)}
    assert CliRunner().invoke(app, [line[1], "--help"]).exit_code == 0
    assert "--account" not in line or flags


def test_the_example_of_a_dotenv_file() -> None:
    assert parse(blocks(DOTENV)[0], Path(".env")) == {"OPENAI_API_KEY": "your-key", "WORK_OPENAI_KEY": "another-key"}


def row(provider: Provider) -> str:
    key = " or ".join(f"`{name}`" for name in provider.key_env)
    key += " (optional)" if key and not provider.hosted else ""
    address = f"`{provider.base_url_env}`" if provider.base_url_env else ""
    cells = [f"`{provider.name}`", provider.dialect, f"`{provider.base_urls[0]}`", key, address]
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda provider: provider.name)
def test_every_provider_is_in_the_table(provider: Provider) -> None:
    assert recording() or row(provider) in GUIDE.splitlines()


def test_the_tables_are_made_from_the_registry() -> None:
    table = "".join(f"{row(provider)}\n" for provider in PROVIDERS.values())
    made = TABLE.sub(lambda _: table, GUIDE)
    if recording():
        PATH.write_text(made)
    else:
        assert made == GUIDE, f"write the tables anew: {RECORDING}=1 pytest {Path(__file__).name}"


@pytest.mark.parametrize(
    ("model", "asked"), re.findall(r"^\| `([^`/]+/[^`]+)` \| \w.*, for `([^`]+)`", GUIDE, re.MULTILINE)
)
def test_model_strings_lead_where_it_says(model: str, asked: str, desk: Desk) -> None:
    target = desk.load(KEYS).find(model)
    assert (target.account.name, target.model) == (model.partition("/")[0], asked)
