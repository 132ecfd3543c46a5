"""Accounts from all their sources: who wins, and what is found."""

from __future__ import annotations

from typing import Any

import pytest

from groundswell.providers.accounts.account import Key
from groundswell.providers.provider import Provider
from groundswell.providers.registry import PROVIDERS
from tests.providers.accounts.desk import Desk

KEYED = {"OPENAI_API_KEY": "planted"}
USER = "[accounts.openai]\ntimeout = 1\n"
FOLDER = "[accounts.openai]\ntimeout = 2\n"
TIMEOUTS: dict[str, Any] = {
    "user": USER,
    "folder": FOLDER,
    "dotenv": "GROUNDSWELL_OPENAI_TIMEOUT=3\n",
    "environment": {"GROUNDSWELL_OPENAI_TIMEOUT": "4"},
    "flags": ["openai.timeout=5"],
}


@pytest.mark.parametrize(
    ("sources", "timeout"),
    [
        ([], 600.0),
        (["user"], 1.0),
        (["user", "folder"], 2.0),
        (["user", "folder", "dotenv"], 3.0),
        (["user", "folder", "dotenv", "environment"], 4.0),
        (["user", "folder", "dotenv", "environment", "flags"], 5.0),
        (["user", "flags"], 5.0),
        (["folder", "environment"], 4.0),
    ],
    ids=["none", "user", "folder", "dotenv", "environment", "flags", "flags over user", "environment over folder"],
)
def test_a_later_source_wins(sources: list[str], timeout: float, desk: Desk) -> None:
    said = {name: what for name, what in TIMEOUTS.items() if name in sources}
    desk.write(said.get("folder"), user=said.get("user"), dotenv=said.get("dotenv"))
    accounts = desk.load({**KEYED, **said.get("environment", {})}, said.get("flags", ()))
    assert accounts.find("openai/gpt-4o").account.timeout == timeout


def test_files_are_merged_setting_by_setting(desk: Desk) -> None:
    desk.write(
        "[accounts.openai]\ntimeout = 2\n[models]\na = 'openai/folder'\n",
        user="[accounts.openai]\ntimeout = 1\nconnect_timeout = 1\n[models]\na = 'openai/user'\nb = 'a'\n",
    )
    accounts = desk.load(KEYED)
    found = accounts.find("b")
    assert (found.model, found.account.timeout, found.account.connect_timeout) == ("folder", 2.0, 1.0)
    assert accounts.aliases == {"a": "openai/folder", "b": "a"}


def test_who_is_asked_where_nobody_is_named(desk: Desk) -> None:
    assert desk.load().default_model == "local/smollm2"
    desk.write("[models]\ndefault = 'mine'\nmine = 'openai/gpt-4o'\n")
    assert desk.load().default_model == "openai/gpt-4o"


def test_the_users_folder_may_be_elsewhere(desk: Desk) -> None:
    elsewhere = desk.home / "elsewhere"
    (elsewhere / "groundswell").mkdir(parents=True)
    (elsewhere / "groundswell" / "groundswell.toml").write_text(FOLDER)
    desk.write(user=USER)
    timeouts = [
        desk.load({**KEYED, "XDG_CONFIG_HOME": named}).find("openai/x").account.timeout
        for named in (str(elsewhere), "relative", "")
    ]
    assert timeouts == [2.0, 1.0, 1.0]


ADDRESSES: list[tuple[str, dict[str, str], list[str], str]] = [
    ("", {}, [], "https://api.openai.com/v1"),
    ("", {"OPENAI_BASE_URL": "http://variable"}, [], "http://variable"),
    ("base_url = 'http://file'", {}, [], "http://file"),
    ("base_url = 'http://file'", {"OPENAI_BASE_URL": "http://variable"}, [], "http://variable"),
    (
        "",
        {"OPENAI_BASE_URL": "http://variable", "GROUNDSWELL_OPENAI_BASE_URL": "http://ours"},
        [],
        "http://ours",
    ),
    ("", {"OPENAI_BASE_URL": "http://variable"}, ["openai.base_url=http://flag"], "http://flag"),
]


@pytest.mark.parametrize(
    ("toml", "environment", "flags", "endpoint"),
    ADDRESSES,
    ids=["built in", "variable", "file", "variable over file", "ours over theirs", "flag over all"],
)
def test_where_openai_is(toml: str, environment: dict[str, str], flags: list[str], endpoint: str, desk: Desk) -> None:
    desk.write(f"[accounts.openai]\n{toml}\n")
    assert desk.load({**KEYED, **environment}, flags).find("openai/x").account.endpoints == (endpoint,)


@pytest.mark.parametrize(
    ("toml", "endpoint"),
    [("", "http://variable"), ("base_url = 'http://file'", "http://file")],
    ids=["in place of the built-in", "the file says another"],
)
def test_a_providers_variable_for_an_account_of_another_name(toml: str, endpoint: str, desk: Desk) -> None:
    desk.write(user=f"[accounts.work]\nprovider = 'openai'\nkey_env = 'WORK_KEY'\n{toml}\n")
    environment = {"WORK_KEY": "planted", "OPENAI_BASE_URL": "http://variable"}
    assert desk.load(environment).find("work/x").account.endpoints == (endpoint,)


def test_two_accounts_at_one_provider(desk: Desk) -> None:
    desk.write(
        user="[accounts.work]\nprovider = 'openai'\nkey_env = 'WORK_KEY'\n"
        "[accounts.private]\nprovider = 'openai'\nkey_env = 'PRIVATE_KEY'\nmax_concurrent_requests = 8\n"
    )
    accounts = desk.load({**KEYED, "WORK_KEY": "w", "PRIVATE_KEY": "p"})
    work, private = accounts.find("work/gpt-4o").account, accounts.find("private/gpt-4o").account
    assert (work.key, private.key, private.max_concurrent_requests) == (Key("w"), Key("p"), 8)
    assert work.official
    assert work.origin == private.origin == "openai"


def test_an_account_is_built_once(desk: Desk) -> None:
    accounts = desk.load(KEYED)
    assert accounts.find("openai/a").account is accounts.find("openai/b").account
    assert accounts.find("openai/a") is accounts.find("openai/a")


@pytest.mark.parametrize(
    ("account", "environment", "official"),
    [
        ("openai", {}, True),
        ("openai", {"OPENAI_BASE_URL": "https://api.openai.com/"}, True),
        ("openai", {"OPENAI_BASE_URL": "https://eu.api.openai.com/v1"}, True),
        ("openai", {"OPENAI_BASE_URL": "https://api.openai.com/v1,http://127.0.0.1:8787"}, False),
        ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:8787/v1"}, False),
        ("together", {"GROUNDSWELL_TOGETHER_BASE_URL": "https://api.together.xyz/v1"}, True),
        ("ollama", {}, False),
        ("vllm", {}, False),
    ],
)
def test_whose_replies_they_are(account: str, environment: dict[str, str], official: bool, desk: Desk) -> None:
    found = desk.load({**KEYED, "TOGETHER_API_KEY": "t", **environment}).find(f"{account}/x").account
    assert (found.official, found.origin == account) == (official, official)


@pytest.mark.parametrize(
    ("toml", "environment", "key"),
    [
        ("base_url = 'https://gateway/v1'", {}, None),
        ("base_url = 'https://gateway/v1'\nkey_env = 'OPENAI_API_KEY'", {}, Key("planted")),
        ("base_url = 'https://api.openai.com/v1'", {}, Key("planted")),
        ("", {"OPENAI_BASE_URL": "https://gateway/v1"}, Key("planted")),
    ],
    ids=["a file leads away", "and names the key", "a file leads there", "a variable leads away"],
)
def test_a_key_does_not_follow_a_file(toml: str, environment: dict[str, str], key: Key | None, desk: Desk) -> None:
    desk.write(user=f"[accounts.openai]\n{toml}\n")
    assert desk.load({**KEYED, **environment}).find("openai/x").account.key == key


def test_a_stand_in_may_need_no_key(desk: Desk) -> None:
    assert desk.load({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}).find("openai/x").account.key is None


def test_of_two_variables_the_first_that_is_set_holds_the_key(desk: Desk) -> None:
    google, gemini = {"GOOGLE_API_KEY": "google"}, {"GEMINI_API_KEY": "gemini"}
    keys = [desk.load(given).find("gemini/x").account.key for given in (google, gemini, {**google, **gemini})]
    assert keys == [Key("google"), Key("gemini"), Key("gemini")]


def test_every_setting_arrives(desk: Desk) -> None:
    desk.write(
        user="[accounts.box]\ndialect = 'anthropic'\nbase_url = ['http://a', 'http://b/']\nkey_env = 'BOX_KEY'\n"
        "max_concurrent_requests = 3\nrate_limit_per_minute = 4\ntoken_limit_per_minute = 5.5\n"
        "output_token_limit_per_minute = 6\ntimeout = 7\nconnect_timeout = 8\nproxy = 'http://u:pw@proxy:3128'\n"
        "headers = { X-Team = 'blue', X-Token = 'env:BOX_TOKEN' }\nprompt_cache = '1h'\n"
    )
    account = desk.load({"BOX_KEY": "k", "BOX_TOKEN": "t"}).find("box/some/model").account
    assert (account.dialect, account.endpoints, account.key) == ("anthropic", ("http://a", "http://b"), Key("k"))
    assert (account.max_concurrent_requests, account.rate_limit_per_minute) == (3, 4.0)
    assert (account.token_limit_per_minute, account.output_token_limit_per_minute) == (5.5, 6.0)
    assert (account.timeout, account.connect_timeout, account.options) == (7.0, 8.0, {"prompt_cache": "1h"})
    assert account.proxy == Key("http://u:pw@proxy:3128")
    assert account.headers == {"x-team": Key("blue"), "x-token": Key("t")}


def test_a_prompt_cache_can_be_turned_off(desk: Desk) -> None:
    desk.write(user="[accounts.openai]\nprompt_cache = '1h'\n")
    given = [
        desk.load(KEYED, flags).find("openai/x").account.options["prompt_cache"]
        for flags in ([], ["openai.prompt_cache=off"])
    ]
    assert given == ["1h", None]


def test_a_variable_finds_an_account_with_other_characters_in_its_name(desk: Desk) -> None:
    desk.write("[accounts.my-box]\nprovider = 'vllm'\n[accounts.my]\nprovider = 'vllm'\n")
    accounts = desk.load({"GROUNDSWELL_MY_BOX_TIMEOUT": "3", "GROUNDSWELL_MY_TIMEOUT": "4", "GROUNDSWELL_STORE": "x"})
    assert [accounts.find(f"{name}/x").account.timeout for name in ("my-box", "my")] == [3.0, 4.0]


def test_an_unused_account_may_be_incomplete(desk: Desk) -> None:
    desk.write("[accounts.work]\nprovider = 'openai'\nkey_env = 'WORK_KEY'\n")
    environment = {"OLLAMA_HOST": "a:b", "ANTHROPIC_API_KEY": "two\nlines", "GROUNDSWELL_ELSE_TIMEOUT": "3"}
    accounts = desk.load({**KEYED, **environment})
    assert accounts.find("openai/x").model == "x"
    assert accounts.describe()["unused_variables"] == ["GROUNDSWELL_ELSE_TIMEOUT"]


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda provider: provider.name)
def test_what_is_built_in_is_whole(provider: Provider, desk: Desk) -> None:
    account = desk.load(dict.fromkeys(provider.key_env, "planted")).find(f"{provider.name}/some/model").account
    assert (account.provider, account.dialect, account.endpoints) == (
        provider.name,
        provider.dialect,
        provider.base_urls[:1],
    )
    assert (account.official, account.key is not None) == (provider.hosted, bool(provider.key_env))
    if provider.dialect == "openai":
        assert (
            account.wire.url(account.endpoints[0], "/v1/chat/completions") == f"{account.endpoints[0]}/chat/completions"
        )


def test_what_is_told_of_an_account(desk: Desk) -> None:
    desk.write("[accounts.openai]\ntimeout = 3\nproxy = 'http://p:1'\n", dotenv="OPENAI_API_KEY=planted\n")
    found = desk.load(flags=["openai.connect_timeout=4"]).describe()
    assert found["files"] == [str(desk.toml)]
    assert found["accounts"][0] == {
        "name": "openai",
        "ready": True,
        "missing": [],
        "problem": None,
        "trusted": True,
        "provider": "openai",
        "hint": PROVIDERS["openai"].hint,
        "dialect": "openai",
        "endpoints": ["https://api.openai.com/v1"],
        "official": True,
        "key": {"variable": "OPENAI_API_KEY", "from": str(desk.dotenv)},
        "key_left_out": False,
        "key_unset": None,
        "settings": {
            "base_url": "built in",
            "timeout": str(desk.toml),
            "proxy": str(desk.toml),
            "connect_timeout": "openai.connect_timeout (--account)",
        },
        "limits": {"timeout": 3.0, "connect_timeout": 4.0, "batch_poll": 30.0, "batch_patience": 3600.0},
        "headers": [],
        "proxy": True,
    }
    assert [account["missing"] for account in found["accounts"][1:4]] == [
        ["ANTHROPIC_API_KEY"],
        [],
        ["OPENROUTER_API_KEY"],
    ]


def test_prices_of_the_folder_come_before_those_of_the_user(desk: Desk) -> None:
    here, home = "{ input = 1, output = 2 }", "{ input = 3, output = 4 }"
    desk.write(
        f'[prices]\n"lab/a*" = {here}\n"lab/x" = {here}\n', user=f'[prices]\n"lab/*" = {home}\n"lab/x" = {home}\n'
    )
    prices = desk.load().prices
    assert [(pattern, rates.input) for pattern, rates in prices.items()] == [("lab/a*", 1), ("lab/x", 1), ("lab/*", 3)]


def test_targets_of_the_folder_hold_and_aliases_are_followed(desk: Desk) -> None:
    desk.write(
        "[models]\nmine = 'lab/x'\n[mutation]\ntargets = ['mine', 'work/*']\n", user="[mutation]\ntargets = ['a/b']"
    )
    assert desk.load().targets == ("lab/x", "work/*")
    desk.write("")
    assert desk.load().targets == ("a/b",)
    desk.write("[mutation]\ntargets = []\n")
    assert desk.load().targets == ()


def test_whose_a_model_is_can_be_told_without_a_key(desk: Desk) -> None:
    desk.write("[models]\nfast = 'work/gpt-4o'\n[accounts.work]\nprovider = 'openai'\nkey_env = 'WORK_KEY'\n")
    target = desk.load().whose("fast")
    assert (target.account.name, target.account.provider, target.model) == ("work", "openai", "gpt-4o")
    assert target.account.key is None


def test_a_short_name_needs_no_file_and_gives_way_to_one(desk: Desk) -> None:
    assert desk.load().resolve("gpt35") == "openai/gpt-3.5-turbo"
    assert desk.load().aliases == {}
    desk.write("[models]\ngpt35 = 'ollama/llama3.2'\nmine = 'gpt4o_mini'\n")
    accounts = desk.load()
    assert accounts.resolve("gpt35") == "ollama/llama3.2"
    assert accounts.resolve("mine") == "openai/gpt-4o-mini"
