"""What is said when something is wrong: every message names the place, and what would be right."""

from __future__ import annotations

import pytest

from groundswell.errors import SettingsError
from groundswell.providers.accounts.settings import NO_KEYS
from tests.providers.accounts.desk import Desk


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("opnai/x", "model 'opnai/x': there is no provider or account 'opnai'; did you mean 'openai'?"),
        ("OpenAI/x", "model 'OpenAI/x': there is no provider or account 'OpenAI'; did you mean 'openai'?"),
        ("emulatd/x", "model 'emulatd/x': there is no provider or account 'emulatd'; did you mean 'emulated'?"),
        (
            "quux/x",
            "model 'quux/x': there is no provider or account 'quux'; there are: anthropic, box, deepseek, emulated,",
        ),
        ("gpt-9", "model 'gpt-9': not an alias; write a model as provider/model, or as"),
        ("fst", "did you mean 'fast'?"),
        ("openai/", "model 'openai/': the model name is missing; write openai/model"),
        (
            "anthropic/x",
            "model 'anthropic/x': account 'anthropic' has no key: set ANTHROPIC_API_KEY in the environment or in .env",
        ),
        ("fast", "model 'fast' ('groq/llama'): account 'groq' has no key: set GROQ_API_KEY in the environment"),
        ("gemini/x", "set GEMINI_API_KEY or GOOGLE_API_KEY in the environment or in .env (create a key at https"),
        ("box/x", "account 'box' needs BOX_TOKEN and BOX_PROXY in the environment or in .env"),
        ("work/x", "account 'work' has no key: set WORK_KEY, and WORK_PASS in the environment or in .env"),
        ("gateway/x", "account 'gateway' has no key: set GATEWAY_KEY in the environment or in .env"),
        ("odd/x", "environment: ODD_PROXY: must be the address of a proxy"),
        ("mistral/x", "model 'mistral/x': environment: MISTRAL_API_KEY: has a line break"),
        ("lmstudio/x", "model 'lmstudio/x': environment: LMSTUDIO_BASE_URL: must begin with http:// or https://"),
    ],
)
def test_what_is_said_when_a_model_cannot_be_asked(model: str, message: str, desk: Desk) -> None:
    desk.write(
        "[models]\nfast = 'groq/llama'\n"
        "[accounts.box]\nprovider = 'vllm'\nheaders = { X-Token = 'env:BOX_TOKEN' }\nproxy = 'env:BOX_PROXY'\n"
        "[accounts.work]\nprovider = 'openai'\nkey_env = 'WORK_KEY'\nheaders = { X-Pass = 'env:WORK_PASS' }\n"
        "[accounts.gateway]\nprovider = 'vllm'\nkey_env = 'GATEWAY_KEY'\n"
        "[accounts.odd]\nprovider = 'vllm'\nproxy = 'env:ODD_PROXY'\n"
    )
    environment = {"ODD_PROXY": "proxy", "MISTRAL_API_KEY": "a\nb", "LMSTUDIO_BASE_URL": "localhost"}
    with pytest.raises(SettingsError) as raised:
        desk.load(environment).find(model)
    assert message in str(raised.value)


WRONG: list[tuple[str, str]] = [
    ("[acounts.x]", "[acounts]: there is no such table; did you mean 'accounts'?"),
    ("accounts = 3", "[accounts]: must be a table"),
    ("[accounts]\nopenai = 3", "[accounts.openai]: must be a table"),
    (
        "[accounts.'a b']\nprovider = 'vllm'",
        "[accounts] 'a b': an account name may contain only letters, digits, - and _",
    ),
    ("[accounts.emulated]\nprovider = 'vllm'", "[accounts.emulated]: this name is reserved"),
    ("[accounts.box]", "[accounts.box]: has no settings"),
    ("prices = 3", "[prices]: must be a table"),
    ("[prices]\n'lab/*' = 3", "[prices] 'lab/*': must be a table of dollars per million tokens, such as { input"),
    ("[prices]\n'lab/*' = { input = 1 }", "[prices] 'lab/*': output is missing: write it as { input = 0.10, output"),
    ("[prices]\nx = { input = 1, output = -1 }", "[prices] 'x': output: must be a finite number, 0 or more"),
    ("[prices]\nx = { input = true, output = 1 }", "[prices] 'x': input: must be a finite number, 0 or more"),
    ("[prices]\nx = { input = 1, output = inf }", "[prices] 'x': output: must be a finite number, 0 or more"),
    ("[prices]\nx = { inputs = 1 }", "[prices] 'x': there is no price 'inputs'; did you mean 'input'?"),
    (
        "[prices]\nx = { input = 1, output = 1, batch = 50 }",
        "[prices] 'x': batch: must be a fraction of the live price",
    ),
    ("[prices]\n' ' = { input = 1, output = 1 }", "[prices] ' ': must be a model, or a pattern"),
    ("mutation = 3", "[mutation]: must be a table"),
    ("[mutation]\ntarget = []", "[mutation] target: there is no such setting; the only one is targets"),
    ("[mutation]\ntargets = 'lab/x'", "[mutation] targets: must be a list of models, such as"),
    ("[mutation]\ntargets = [3]", "[mutation] targets: must be a text in quotes"),
    ("[mutation]\ntargets = ['*']", "[mutation] targets: must name the account before the slash"),
    ("[mutation]\ntargets = ['*/x']", "[mutation] targets: must name the account before the slash"),
    ("[mutation]\ntargets = ['nobody']", "[mutation] targets: 'nobody' is not an alias; write a model as"),
    ("[accounts.box]\ntimeout = 3", "[accounts.box]: set provider (one of: openai, anthropic,"),
    ("[accounts.box]\ndialect = 'openai'", "[accounts.box]: set provider (one of: openai, anthropic,"),
    (
        "[accounts.openai]\nrate_limit = 3",
        "rate_limit: there is no such setting; did you mean 'rate_limit_per",
    ),
    ("[accounts.openai]\nzzz = 3", "[accounts.openai] zzz: there is no such setting; there are: base_url, batch"),
    ("[accounts.openai]\nkey = 'x'", f"[accounts.openai] key: {NO_KEYS}"),
    ("[accounts.openai]\nAPI-KEY = 'x'", f"[accounts.openai] API-KEY: {NO_KEYS}"),
    ("[accounts.openai]\ntoken = 3", f"[accounts.openai] token: {NO_KEYS}"),
    ("[accounts.openai]\nkey_env = 'sk-1'", "[accounts.openai] key_env: must be the NAME of a variable"),
    ("[accounts.openai]\nkey_env = 'sk_live_abcdefgh'", "[accounts.openai] key_env: must be the NAME of a variable"),
    (f"[accounts.openai]\nkey_env = '{'A1' * 16}'", "[accounts.openai] key_env: must be the NAME of a variable"),
    ("[accounts.openai]\nbase_url = 'sk-abcdefgh12'", f"[accounts.openai] base_url: looks like a key; {NO_KEYS}"),
    ("[accounts.openai]\nbase_url = 'http://h/sk-abcdefgh12/v1'", "[accounts.openai] base_url: looks like a key"),
    ("[accounts.openai]\nbase_url = 3", "[accounts.openai] base_url: must be an address in quotes, or a list"),
    ("[accounts.openai]\nbase_url = [3]", "[accounts.openai] base_url: must be an address in quotes, or a list"),
    ("[accounts.openai]\nbase_url = []", "[accounts.openai] base_url: must name at least one address"),
    ("[accounts.openai]\nbase_url = 'host/v1'", "[accounts.openai] base_url: must begin with http:// or https://"),
    ("[accounts.openai]\nprovider = 'opnai'", "[accounts.openai] provider: is not a built-in provider; did you mean"),
    ("[accounts.openai]\ndialect = 'gemini'", "[accounts.openai] dialect: must be one of: openai, anthropic, ollama"),
    ("[accounts.openai]\nprompt_cache = '2h'", "[accounts.openai] prompt_cache: must be one of: 5m, 1h, off"),
    ("[accounts.openai]\ntimeout = '3'", "[accounts.openai] timeout: must be a number above 0"),
    ("[accounts.openai]\ntimeout = true", "[accounts.openai] timeout: must be a number above 0"),
    ("[accounts.openai]\ntimeout = nan", "[accounts.openai] timeout: must be a number above 0"),
    ("[accounts.openai]\nrate_limit_per_minute = 0", "rate_limit_per_minute: must be a number above 0"),
    ("[accounts.openai]\ntoken_limit_per_minute = inf", "token_limit_per_minute: must be a number above 0"),
    ("[accounts.openai]\nmax_concurrent_requests = 1.5", "max_concurrent_requests: must be a whole number of at least"),
    ("[accounts.openai]\nmax_concurrent_requests = 0", "max_concurrent_requests: must be a whole number of at least"),
    ("[accounts.openai]\nproxy = 'proxy:3128'", "[accounts.openai] proxy: must be the address of a proxy"),
    ("[accounts.openai]\nheaders = 'x'", "[accounts.openai] headers: must be a table"),
    ("[accounts.openai]\nheaders = { 'a b' = 'x' }", "headers: 'a b' cannot be the name of a header"),
    ("[accounts.openai]\nheaders = { X-A = 3 }", "[accounts.openai] headers: X-A: must be a text in quotes"),
    ("[accounts.openai]\nheaders = { X-A = 'é' }", "headers: X-A: has a character that is not allowed"),
    ("[accounts.openai]\nheaders = { X-A = 'env:lower' }", "headers: X-A: must be the NAME of a variable"),
    ("[accounts.openai]\nheaders = { X-Api-Key = 'x' }", "headers: X-Api-Key: may carry a secret"),
    ("[models]\na = 3", "[models] a: must be a text in quotes"),
    ("[models]\n'a/b' = 'openai/x'", "[models] 'a/b': an alias must not be empty or contain a slash"),
    ("[models]\na = 'b'", "[models] a: its value is not an alias"),
    ("[models]\na = 'b'\nb = 'c'\nc = 'b'", "[models] b: the aliases form a cycle: a -> b -> c -> b"),
    ("[models]\na = 'sk-abcdefgh12'", "[models] a: looks like a key"),
    ("[models\n", "is not valid TOML: Expected ']'"),
    ("[models]\na = 'x\n", "is not valid TOML: "),
]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("user", [False, True], ids=["folder", "user"])
@pytest.mark.parametrize(("toml", "message"), WRONG)
def test_what_is_wrong_in_a_file(toml: str, message: str, user: bool, desk: Desk) -> None:
    desk.write(None if user else toml, user=toml if user else None)
    with pytest.raises(SettingsError) as raised:
        desk.load()
    assert str(raised.value).startswith(f"{desk.user_toml if user else desk.toml}: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("OPENAI_TIMEOUT", "soon", "must be a number above 0"),
        ("OPENAI_TIMEOUT", "-1", "must be a number above 0"),
        ("OPENAI_MAX_CONCURRENT_REQUESTS", "1.5", "must be a whole number of at least 1"),
        ("OPENAI_TIMOUT", "3", "there is no such setting; did you mean 'timeout'?"),
        ("OPENAI_API_KEY", "planted", "does not set the key of openai: set the variable that key_env names"),
        ("OPENAI_HEADERS", "a", "is a table and can only be set in groundswell.toml"),
        ("OPENAI_BASE_URL", "host", "must begin with http:// or https://"),
        ("MY_BOX_TIMEOUT", "3", "matches several accounts (my-box, my_box); rename one of them"),
    ],
)
def test_what_is_wrong_in_a_variable(name: str, value: str, message: str, desk: Desk) -> None:
    desk.write("[accounts.my-box]\nprovider = 'vllm'\n[accounts.my_box]\nprovider = 'vllm'\n")
    name = f"GROUNDSWELL_{name}"
    with pytest.raises(SettingsError) as raised:
        desk.load({name: value})
    assert str(raised.value).startswith(f"environment: {name}: {message}")
    desk.write(dotenv=f"{name}={value}\n")
    with pytest.raises(SettingsError) as raised:
        desk.load()
    assert str(raised.value).startswith(f"{desk.dotenv}: {name}: {message}")


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("openai.timeout", "--account: write it as NAME.SETTING=VALUE"),
        ("timeout=3", "--account: write it as NAME.SETTING=VALUE"),
        ("opnai.timeout=3", "--account: there is no account 'opnai'; did you mean 'openai'?"),
        ("openai.timeout=soon", "--account: openai.timeout: must be a number above 0"),
        ("openai.timout=3", "--account: openai.timout: there is no such setting; did you mean 'timeout'?"),
        ("openai.key=planted", f"--account: openai.key: {NO_KEYS}"),
        ("openai.base_url=host", "--account: openai.base_url: must begin with http:// or https://"),
        ("openai.headers=a", "--account: openai.headers: is a table and can only be set in groundswell.toml"),
    ],
)
def test_what_is_wrong_in_a_flag(flag: str, message: str, desk: Desk) -> None:
    with pytest.raises(SettingsError) as raised:
        desk.load(flags=[flag])
    assert str(raised.value).startswith(message)
