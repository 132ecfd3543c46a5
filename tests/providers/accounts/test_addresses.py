"""The forms in which people write where a server is."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.providers.accounts.addresses import (
    InvalidValue,
    endpoint,
    endpoints,
    host_address,
    is_loopback,
    same_place,
)
from groundswell.providers.openai import OPENAI
from tests.properties import examples

PORT = 11434


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("localhost", "http://localhost:11434"),
        ("gpu2:8080", "http://gpu2:8080"),
        ("http://gpu1", "http://gpu1"),
        ("https://gpu1", "https://gpu1"),
        ("http://gpu1:11434/", "http://gpu1:11434"),
        ("https://example.org/ollama/", "https://example.org/ollama"),
        ("example.org/ollama", "http://example.org:11434/ollama"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("::1", "http://[::1]:11434"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("[::]:11434", "http://[::1]:11434"),
        ("http://[fd00::7]:8080", "http://[fd00::7]:8080"),
    ],
)
def test_hosts_as_ollama_takes_them(written: str, meant: str) -> None:
    assert host_address(written, PORT) == meant


@pytest.mark.parametrize("written", ["gpu1:port", "gpu1:99999", "gpu1:0", "unix:///run/ollama.sock", "a b", "[::1"])
def test_hosts_that_are_none(written: str) -> None:
    with pytest.raises(InvalidValue):
        host_address(written, PORT)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("HTTPS://API.OpenAI.com/v1//", "https://api.openai.com/v1"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_base_urls(written: str, meant: str) -> None:
    assert endpoint(written) == meant


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("localhost:8000/v1", "must begin with http"),
        ("ftp://host", "must begin with http"),
        ("http://ho st/v1", "no spaces"),
        ("http://höst/v1", "must begin with http"),
        ("http://", "has no host"),
        ("http://:8000/v1", "has no host"),
        ("http://host:eighty/v1", "check its host and port"),
        ("http://host:70000/v1", "check its host and port"),
        ("http://me:pass@host/v1", "must not contain a user name or password"),
        ("http://host/v1?key=1", "must not contain ? or #"),
    ],
)
def test_base_urls_that_cannot_be_used(written: str, problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem.replace("?", r"\?")):
        endpoint(written)


def test_several_addresses_stand_once_and_in_order() -> None:
    assert endpoints(["http://b/v1/", " http://a/v1", "", "http://b/v1"], OPENAI) == ("http://b/v1", "http://a/v1")
    with pytest.raises(InvalidValue, match="at least one"):
        endpoints([" ", ""], OPENAI)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1", True),
        ("https://api.openai.com:443/v1/", "https://api.openai.com/v1", True),
        ("http://api.openai.com/v1", "https://api.openai.com/v1", False),
        ("https://api.openai.com.example.org/v1", "https://api.openai.com/v1", False),
        ("https://api.openai.com/v2", "https://api.openai.com/v1", False),
    ],
)
def test_same_place(one: str, other: str, same: bool) -> None:
    assert same_place(one, other, OPENAI) is same


HOSTS = st.text("abgpu1-.", max_size=8).map(lambda text: f"h{text}h")


@settings(max_examples=examples(50))
@given(HOSTS, st.integers(1, 65535), st.sampled_from(["", "/v1", "/a/b/v1"]), st.sampled_from(["http", "https"]))
def test_an_address_that_was_read_reads_the_same_again(host: str, port: int, path: str, scheme: str) -> None:
    once = endpoint(f"{scheme}://{host}:{port}{path}/")
    assert endpoint(once) == host_address(once, PORT) == once == f"{scheme}://{host}:{port}{path}"


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_unfit(text: str) -> None:
    for read in (endpoint, partial(host_address, default_port=PORT)):
        try:
            said = read(text)
        except InvalidValue as problem:
            said = f"http://{problem}" if len(text) < 6 or text not in str(problem) else text
        assert said.startswith(("http://", "https://"))


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:11434", True),
        ("http://127.9.9.9", True),
        ("http://localhost:8000/v1", True),
        ("http://LOCALHOST.:8000", True),
        ("http://a.localhost", True),
        ("http://[::1]:8080", True),
        ("http://0.0.0.0:8000", True),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://10.0.0.1", False),
        ("http://169.254.1.1", False),
        ("http://gpu1:11434", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_what_this_machine_is(url: str, here: bool) -> None:
    assert is_loopback(url) is here
