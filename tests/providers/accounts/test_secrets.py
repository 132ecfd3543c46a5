"""Nothing of a key is shown, wherever it was put: the right variable, or a place where it should not be."""

from __future__ import annotations

import json
import pickle
import tempfile
import traceback
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.providers.accounts.account import Key
from groundswell.providers.accounts.config import Accounts
from groundswell.providers.accounts.settings import SETTINGS, looks_like_key, show_name
from groundswell.providers.registry import PROVIDERS
from tests.properties import examples
from tests.providers.accounts.desk import Desk

BODY = st.text("ABCXYZabcxyz0123456789", min_size=20, max_size=40).map(lambda text: f"{text}7q")
KEYS = st.one_of(
    BODY.map(lambda text: f"sk-{text}"),
    BODY.map(lambda text: f"sk-ant-{text}"),
    BODY.map(lambda text: f"gsk_{text}"),
    BODY.map(lambda text: f"AIza{text}"),
    BODY.map(lambda text: f"Bearer {text}"),
    BODY.map(lambda text: f"{text}x{text}"),
)
"""Of the shapes that providers give out."""


def texts_of(accounts: Accounts) -> list[str]:
    """Everything that accounts can be made to say, for models that can be asked and models that cannot."""
    said = [repr(accounts), str(accounts), json.dumps(accounts.describe()), json.dumps(dict(accounts.aliases))]
    for model in [*(f"{name}/model" for name in accounts.names), *accounts.aliases, "nobody/model", "nothing"]:
        try:
            target = accounts.find(model)
            said += [repr(target), str(target.account), f"{target.account.headers}", target.account.origin]
        except SettingsError as error:
            said += ["".join(traceback.format_exception(error)), repr(error)]
    return said


def all_said(desk: Desk, environment: dict[str, str], flags: list[str]) -> str:
    try:
        return "\n".join(texts_of(desk.load(environment, flags)))
    except SettingsError as error:
        return "".join(traceback.format_exception(error)) + repr(error)


def parts(key: str) -> list[str]:
    """Pieces of a key that are long enough to be recognised."""
    bare = key.removeprefix("Bearer ")
    return [bare[at : at + 10] for at in range(0, len(bare) - 9)]


def check(desk: Desk, key: str, environment: dict[str, str] | None = None, flags: list[str] | None = None) -> None:
    said = all_said(desk, environment or {}, flags or [])
    assert said
    assert [part for part in parts(key) if part in said] == []


VARIABLES = sorted(
    {name for provider in PROVIDERS.values() for name in (*provider.key_env, provider.base_url_env) if name}
    | {f"GROUNDSWELL_OPENAI_{setting.upper()}" for setting in SETTINGS}
    | {"GROUNDSWELL_OPENAI_API_KEY", "BOX_TOKEN", "BOX_PROXY", "BOX_KEY"}
)
BOX = (
    "[accounts.box]\nprovider = 'openai'\nkey_env = 'BOX_KEY'\nproxy = 'env:BOX_PROXY'\n"
    "headers = { X-Token = 'env:BOX_TOKEN' }\n"
)


@settings(max_examples=examples(60))
@given(KEYS, st.sampled_from(VARIABLES), st.booleans(), st.sampled_from(["", " ", "\n", "é", "@host/v1"]))
def test_in_a_variable(key: str, variable: str, in_file: bool, after: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        desk.write(BOX, dotenv=f'{variable}="{key}{after}"\n' if in_file else None)
        check(desk, key, {} if in_file else {variable: key + after})


@settings(max_examples=examples(40))
@given(KEYS, st.sampled_from(["{k}", "{k}=1", "A {k}", "A='{k}", 'B="{k}" {k}', "export {k}", "A:{k}"]))
def test_in_a_broken_line(key: str, line: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        desk.write(dotenv=f"X=1\n{line.replace('{k}', key)}\n")
        check(desk, key)


PLACES = [
    *(f"[accounts.openai]\n{setting} = '{{k}}'" for setting in (*SETTINGS, "key", "api_key", "token", "anything")),
    "[accounts.openai]\nbase_url = ['{k}']",
    "[accounts.openai]\nbase_url = 'http://host/{k}/v1'",
    "[accounts.openai]\nbase_url = 'http://me:{k}@host/v1'",
    "[accounts.openai]\nbase_url = 'http://host/v1?key={k}'",
    "[accounts.openai]\nproxy = 'http://me:{k}@host:1'",
    "[accounts.openai]\nheaders = { X-Team = '{k}' }",
    "[accounts.openai]\nheaders = { Authorization = '{k}' }",
    "[accounts.openai]\nheaders = { X-Team = 'team {k}' }",
    "[accounts.openai]\nheaders = { '{k}' = 'x' }",
    "[accounts.openai]\nheaders = { X-Team = 'env:{k}' }",
    "[accounts.openai]\n'{k}' = 3",
    "[accounts.'{k}']\nprovider = 'vllm'",
    "[accounts]\n'{k}' = 3",
    "['{k}']",
    "'{k}' = 1\n'{k}' = 2",
    "['{k}']\n['{k}']",
    "[models]\na = '{k}'",
    "[models]\n'{k}' = 'openai/x'",
    "[models]\n'{k}' = 'b'\nb = '{k}'",
    "[models]\na = '{k}",
    "{k}",
    "[accounts.openai]\ntimeout = {k}",
]


@settings(max_examples=examples(120))
@given(KEYS, st.sampled_from(PLACES))
def test_in_a_file(key: str, place: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        desk.write(place.replace("{k}", key))
        check(desk, key, {"OPENAI_API_KEY": key})


@settings(max_examples=examples(60))
@given(
    KEYS, st.sampled_from(["{k}", "{k}=1", "{k}.timeout=3", "openai.{k}=3", *(f"openai.{s}={{k}}" for s in SETTINGS)])
)
def test_in_a_flag(key: str, flag: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(Desk(Path(folder)), key, flags=[flag.replace("{k}", key)])


def test_keys_are_not_pickled(desk: Desk) -> None:
    desk.write("[accounts.openai]\nheaders = { X-Team = 'blue' }\n")
    accounts = desk.load({"OPENAI_API_KEY": "sk-planted-1234567890"})
    for holder in (accounts, accounts.find("openai/x"), accounts.find("openai/x").account):
        with pytest.raises(TypeError, match="cannot be serialised"):
            pickle.dumps(holder)


def test_a_key_is_revealed_only_when_asked() -> None:
    key = Key("planted")
    assert (repr(key), str(key), f"{key}", key.reveal()) == ("Key(…)", "Key(…)", "Key(…)", "planted")


@given(KEYS)
def test_the_shapes_of_keys_are_known(key: str) -> None:
    assert looks_like_key(key)
    assert key not in show_name(key)


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize(
    "text",
    [
        *(url for provider in PROVIDERS.values() for url in provider.base_urls),
        *(name for provider in PROVIDERS.values() for name in (provider.name, *provider.key_env)),
        *SETTINGS,
        "meta-llama/llama-3.3-70b-instruct",
        "fireworks/accounts/fireworks/models/llama-v3p1-405b-instruct",
        "openai/ft:gpt-4o-mini-2024-07-18:org::AbC123xy",
        "https://api-gateway-east-1.example.org:8443/openai/v1",
        "org-AbCdEfGh12345678",
        "0b8f5c1e-7d1c-4a57-9e0f-2f6d1a9b3c4d",
    ],
)
def test_other_words_are_no_keys(text: str) -> None:
    assert not looks_like_key(text)


@pytest.mark.parametrize("setting", ['key_env = "VLLM_API_KEY"', 'headers = { a = "b" }', 'proxy = "http://p:1"'])
def test_servers_that_workers_start_get_no_secrets(desk: Desk, setting: str) -> None:
    """Their addresses are in a store, where others may write."""
    by_workers = '[accounts.vllm]\nbase_url = "workers"\n'
    desk.write(by_workers)
    account = desk.load({"VLLM_API_KEY": "sk-not-for-a-store"}).account("vllm")
    assert (account.endpoints, account.key, account.origin) == ((), None, "workers: vllm")
    desk.write(by_workers + setting)
    with pytest.raises(SettingsError, match=r'cannot be used with base_url = "workers": servers of workers get no'):
        desk.load()


def test_a_hosted_provider_whose_servers_workers_start_is_not_the_provider(desk: Desk) -> None:
    desk.write('[accounts.openai]\nbase_url = "workers"\nbatch = true\n')
    account = desk.load({"OPENAI_API_KEY": "sk-not-for-a-store"}).account("openai")
    assert (account.official, account.key, account.batch_format) == (False, None, None)
    assert desk.load({"VLLM_BASE_URL": "http://workers/v1"}).account("vllm").endpoints == ("http://workers/v1",)
