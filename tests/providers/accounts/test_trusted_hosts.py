"""Where a secret of the environment may go: which variable, to which host, on whose word."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.errors import SettingsError
from groundswell.providers.accounts.account import Key
from tests.providers.accounts.desk import Desk

EXPORTED = {"OPENAI_API_KEY": "planted", "AWS_SECRET_ACCESS_KEY": "aws", "VLLM_API_KEY": "own"}
EVIL = "https://evil.example"


def refused(desk: Desk, model: str = "openai/x", environment: dict[str, str] | None = None, *flags: str) -> str:
    """The error of an account that may not be used."""
    with pytest.raises(SettingsError, match="groundswell trust") as caught:
        desk.load({**EXPORTED, **(environment or {})}, flags).find(model)
    return str(caught.value)


def key_of(desk: Desk, model: str = "openai/x", environment: dict[str, str] | None = None, *flags: str) -> Key | None:
    """The key of an account that may be used."""
    return desk.load({**EXPORTED, **(environment or {})}, flags).find(model).account.key


def test_a_dotenv_with_another_address_gets_no_key(desk: Desk) -> None:
    desk.write(dotenv=f"OPENAI_BASE_URL={EVIL}/v1\n")
    said = refused(desk)
    assert "OPENAI_API_KEY" in said
    assert f"groundswell trust {EVIL} --variable OPENAI_API_KEY" in said
    assert str(desk.dotenv) in said


def test_a_file_of_the_folder_with_an_address_and_a_variable_gets_no_key(desk: Desk) -> None:
    desk.write(f"[accounts.openai]\nbase_url = '{EVIL}/v1'\nkey_env = 'OPENAI_API_KEY'\n")
    assert f"groundswell trust {EVIL} --variable OPENAI_API_KEY" in refused(desk)


def test_a_file_of_the_folder_gets_no_variable_in_a_header(desk: Desk) -> None:
    desk.write(
        f"[accounts.lab]\ndialect = 'openai'\nbase_url = '{EVIL}/v1'\nheaders = {{X-A = 'env:AWS_SECRET_ACCESS_KEY'}}\n"
    )
    assert f"groundswell trust {EVIL} --variable AWS_SECRET_ACCESS_KEY" in refused(desk, "lab/x")


FOLDER = {
    "toml: address and the key's variable": (f"base_url = '{EVIL}'\nkey_env = 'OPENAI_API_KEY'", ""),
    "toml: one address of two": (f"base_url = ['https://api.openai.com/v1', '{EVIL}']\nkey_env = 'OPENAI_API_KEY'", ""),
    "toml: address, .env: variable": (f"base_url = '{EVIL}'", "GROUNDSWELL_OPENAI_KEY_ENV=OPENAI_API_KEY"),
    "toml: another secret for the provider": ("key_env = 'AWS_SECRET_ACCESS_KEY'", ""),
    "toml: a header for the provider": ("headers = {X-Title = 'env:AWS_SECRET_ACCESS_KEY'}", ""),
    "toml: the key in another header": ("headers = {X-Title = 'env:OPENAI_API_KEY'}", ""),
    "toml: the provider without TLS": ("base_url = 'http://api.openai.com/v1'\nkey_env = 'OPENAI_API_KEY'", ""),
    "toml: another port": ("base_url = 'https://api.openai.com:8443/v1'\nkey_env = 'OPENAI_API_KEY'", ""),
    "toml: a proxy": ("proxy = 'http://evil.example:3128'", ""),
    "toml: a proxy before this machine": (
        "base_url = 'http://127.0.0.1:1'\nkey_env = 'OPENAI_API_KEY'\nproxy = 'http://evil.example:3128'",
        "",
    ),
    "toml: a proxy in a variable of .env": ("proxy = 'env:P'", "P=http://evil.example:3128"),
    ".env: the provider's variable": ("", f"OPENAI_BASE_URL={EVIL}"),
    ".env: our variable": ("", f"GROUNDSWELL_OPENAI_BASE_URL={EVIL}"),
    ".env: a proxy": ("", "GROUNDSWELL_OPENAI_PROXY=http://evil.example:3128"),
    ".env: another secret": ("", "GROUNDSWELL_OPENAI_KEY_ENV=AWS_SECRET_ACCESS_KEY"),
}


@pytest.mark.parametrize(("toml", "dotenv"), FOLDER.values(), ids=FOLDER)
def test_what_a_folder_may_not_send_where(toml: str, dotenv: str, desk: Desk) -> None:
    desk.write(f"[accounts.openai]\n{toml}\n", dotenv=f"{dotenv}\n")
    refused(desk)


@pytest.mark.parametrize("address", ["http://evil.example\\@127.0.0.1:3128", "http://h:port", "http://@", "http://a b"])
def test_a_proxy_that_can_be_read_in_two_ways_is_none(address: str, desk: Desk) -> None:
    desk.write(f"[accounts.openai]\nproxy = '{address}'\n")
    with pytest.raises(SettingsError, match="must be the address of a proxy"):
        desk.load(EXPORTED)


def test_a_key_of_a_server_of_ones_own_does_not_follow_a_folder_either(desk: Desk) -> None:
    desk.write(f"[accounts.vllm]\nbase_url = '{EVIL}/v1'\n")
    assert "VLLM_API_KEY" in refused(desk, "vllm/x")


def test_an_address_of_the_folder_does_not_get_a_header_of_the_user(desk: Desk) -> None:
    lab = "[accounts.lab]\ndialect = 'openai'\nbase_url = 'https://lab.example'\nheaders = {X-A = 'env:LAB_TOKEN'}\n"
    desk.write(user=lab)
    assert key_of(desk, "lab/x", {"LAB_TOKEN": "t"}) is None
    desk.write(f"[accounts.lab]\nbase_url = '{EVIL}'\n")
    assert "LAB_TOKEN" in refused(desk, "lab/x", {"LAB_TOKEN": "t"})


NOT_LOOPBACK = [
    "http://localhost.evil.example/v1",
    "http://127.0.0.1.evil.example/v1",
    "http://evil-localhost/v1",
    "http://x.localhost/v1",
    "http://128.0.0.1/v1",
    "http://2130706434/v1",
    "http://0127.0.0.1/v1",
    "http://[::2]/v1",
    "http://[::ffff:10.0.0.1]/v1",
    "http://10.0.0.1/v1",
]


@pytest.mark.parametrize("url", NOT_LOOPBACK)
def test_names_that_only_look_like_this_machine(url: str, desk: Desk) -> None:
    desk.write(dotenv=f"OPENAI_BASE_URL={url}\n")
    refused(desk)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1\\.evil.example", "http://a%2eb", "http://user@127.0.0.1", "http://127.0.0.1@evil.example"],
)
def test_an_address_that_can_be_read_in_two_ways_is_none(url: str, desk: Desk) -> None:
    desk.write(dotenv=f"OPENAI_BASE_URL={url}\n")
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL"):
        desk.load(EXPORTED).find("openai/x")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "http://127.8.9.1/v1", "http://[::1]:1", "http://LOCALHOST:1"]
)
def test_a_folder_may_lead_to_this_machine(url: str, desk: Desk) -> None:
    desk.write(dotenv=f"OPENAI_BASE_URL={url}\n")
    assert key_of(desk) == Key("planted")


MATRIX = {
    "environment, built in": ("", "", {}, ()),
    "environment, the provider's own in the folder": ("base_url = 'https://eu.api.openai.com/v1'", "", {}, ()),
    "environment, environment": ("", "", {"OPENAI_BASE_URL": EVIL}, ()),
    "environment, environment of ours": ("", "", {"GROUNDSWELL_OPENAI_BASE_URL": EVIL}, ()),
    "environment, flag": ("", "", {}, (f"openai.base_url={EVIL}",)),
    "environment, flag over the folder": ("base_url = 'https://other.example'", "", {}, (f"openai.base_url={EVIL}",)),
    "folder, built in": ("", "OPENAI_API_KEY=planted", {}, ()),
    "folder, folder": (f"base_url = '{EVIL}'\nkey_env = 'OPENAI_API_KEY'", "OPENAI_API_KEY=planted", {}, ()),
    "folder, .env": ("", f"OPENAI_API_KEY=planted\nOPENAI_BASE_URL={EVIL}", {}, ()),
    "folder, environment": ("", "OPENAI_API_KEY=planted", {"OPENAI_BASE_URL": EVIL}, ()),
    "folder, flag": ("", "OPENAI_API_KEY=planted", {}, (f"openai.base_url={EVIL}",)),
    "environment, a variable with the provider's name": ("key_env = 'WORK_OPENAI_KEY'", "", {}, ()),
    "environment, a variable that a flag names": ("", "", {}, ("openai.key_env=WORK",)),
    "environment, a proxy of the environment": ("proxy = 'env:P'", "", {"P": "http://proxy.example:3128"}, ()),
}


@pytest.mark.parametrize(("toml", "dotenv", "environment", "flags"), MATRIX.values(), ids=MATRIX)
def test_what_may_be_sent_where(
    toml: str, dotenv: str, environment: dict[str, str], flags: tuple[str, ...], desk: Desk
) -> None:
    desk.write(f"[accounts.openai]\n{toml}\n", dotenv=f"{dotenv}\n")
    exported = {"WORK_OPENAI_KEY": "planted", "WORK": "planted"} | (
        {} if "OPENAI_API_KEY" in dotenv else {"OPENAI_API_KEY": "planted"}
    )
    assert desk.load(exported | environment, flags).find("openai/x").account.key == Key("planted")


def test_the_users_own_file_is_the_users_word(desk: Desk) -> None:
    desk.write(user=f"[accounts.openai]\nbase_url = '{EVIL}'\nkey_env = 'AWS_SECRET_ACCESS_KEY'\n")
    assert key_of(desk) == Key("aws")
    desk.write(user="[accounts.openai]\nkey_env = 'AWS_SECRET_ACCESS_KEY'\nheaders = {X-A = 'env:VLLM_API_KEY'}\n")
    assert key_of(desk) == Key("aws")


def test_a_folder_does_not_choose_the_secret_for_a_host_that_the_user_names(desk: Desk) -> None:
    desk.write("[accounts.openai]\nkey_env = 'AWS_SECRET_ACCESS_KEY'\n")
    assert "AWS_SECRET_ACCESS_KEY" in refused(desk, "openai/x", {"OPENAI_BASE_URL": "https://gateway.example"})


def test_without_a_secret_nothing_is_refused(desk: Desk) -> None:
    desk.write(f"[accounts.openai]\nbase_url = '{EVIL}'\nheaders = {{X-A = 'blue'}}\n")
    assert key_of(desk) is None, "the key does not follow a file, and none is named"


def test_a_header_cannot_name_another_host(desk: Desk) -> None:
    desk.write("[accounts.openai]\nheaders = {Host = 'evil.example'}\n")
    with pytest.raises(SettingsError, match="base_url"):
        desk.load(EXPORTED)


def test_refusing_repeats_no_secret(desk: Desk) -> None:
    desk.write(dotenv=f"OPENAI_BASE_URL={EVIL}\n")
    assert "planted" not in refused(desk)


def test_an_account_that_is_not_trusted_is_described_as_such(desk: Desk) -> None:
    desk.write(dotenv=f"OPENAI_BASE_URL={EVIL}\n")
    openai, anthropic, *_ = desk.load(EXPORTED).describe()["accounts"]
    assert (openai["ready"], openai["trusted"], openai["endpoints"]) == (False, False, [EVIL])
    assert "groundswell trust" in openai["problem"]
    assert anthropic["trusted"] is True


def test_a_model_can_be_told_of_without_its_key(desk: Desk) -> None:
    desk.write(dotenv=f"OPENAI_BASE_URL={EVIL}\n")
    assert desk.load(EXPORTED).whose("openai/x").account.endpoints == (EVIL,)


def trusted_file(desk: Desk) -> Path:
    return desk.home / ".config" / "groundswell" / "trusted.json"


def test_the_folder_cannot_say_where_trust_is_kept(desk: Desk) -> None:
    elsewhere = desk.folder / "groundswell"
    elsewhere.mkdir()
    (elsewhere / "trusted.json").write_text('{"hosts": {"https://evil.example": ["*"]}, "files": []}')
    desk.write(dotenv=f"OPENAI_BASE_URL={EVIL}\nXDG_CONFIG_HOME={desk.folder}\nHOME={desk.folder}\n")
    refused(desk)
    trusted_file(desk).parent.mkdir(parents=True, exist_ok=True)
    trusted_file(desk).write_text('{"hosts": {"https://evil.example": ["*"]}, "files": []}')
    assert key_of(desk) == Key("planted")


@pytest.mark.parametrize(
    ("hosts", "ok"),
    [
        ('{"https://evil.example": ["*"]}', True),
        ('{"https://evil.example": ["OPENAI_API_KEY"]}', True),
        ('{"https://evil.example": ["AWS_SECRET_ACCESS_KEY"]}', False),
        ('{"http://evil.example": ["*"]}', False),
        ('{"https://evil.example:8443": ["*"]}', False),
        ('{"https://example": ["*"], "https://x.evil.example": ["*"]}', False),
    ],
    ids=["any variable", "this variable", "another variable", "no TLS", "another port", "no suffixes"],
)
def test_a_host_is_trusted_exactly(hosts: str, ok: bool, desk: Desk) -> None:
    desk.write(dotenv=f"OPENAI_BASE_URL={EVIL}/v1\n", user="")
    trusted_file(desk).write_text(f'{{"hosts": {hosts}, "files": []}}')
    if ok:
        assert key_of(desk) == Key("planted")
    else:
        refused(desk)
