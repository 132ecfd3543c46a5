"""Who is let in: by token, by name and by origin; and what is refused before the server listens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from groundswell.errors import SettingsError
from groundswell.web import serving as starting
from groundswell.web.settings import ServerSettings, is_loopback, prepared
from tests.web.scene import Api, serving

TOKEN = "of-a-test-and-of-no-worth"


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        ({"Authorization": "Bearer h\xe9llo".encode("latin-1")}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "example.org"}, 200),
    ],
)
def test_a_token_is_asked_for(with_token: Api, headers: Any, status: int) -> None:
    response = httpx.get(f"{with_token.server.url}/api/batch-simulations", headers=headers)
    assert response.status_code == status
    if status == 401:
        assert response.json()["status"] == "error"
        assert response.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in response.text
        told = "wrong token" if headers else "missing token"
        assert response.json()["message"].startswith(told)


@pytest.fixture(scope="module")
def with_token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("token"), token=TOKEN) as api:
        yield api


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/health", 200), ("/docs", 200), ("/openapi.json", 200), ("/api/nothing", 401), ("/apix", 401), ("/x", 401)],
)
def test_what_needs_no_token(with_token: Api, path: str, status: int) -> None:
    assert httpx.get(f"{with_token.server.url}{path}").status_code == status


@pytest.mark.sampled
@pytest.mark.parametrize("path", ["//api/runs", "/api/../api/runs", "/API/runs", "/%61pi/runs"])
def test_no_spelling_of_an_address_goes_past_the_token(with_token: Api, path: str) -> None:
    url = httpx.URL(with_token.server.url).copy_with(raw_path=path.encode())
    assert httpx.get(url).status_code in (401, 404)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost"}, 200),
        ({"Host": "localhost:1234"}, 200),
        ({"Host": "127.0.0.1:80"}, 200),
        ({"Host": "127.8.9.1"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:8000"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "10.0.0.1"}, 403),
        ({"Host": "localhost:8000", "Origin": "http://localhost:8000"}, 200),
        ({"Host": "localhost:8000", "Origin": "http://localhost:9000"}, 403),
        ({"Host": "localhost:8000", "Origin": "https://evil.example"}, 403),
        ({"Host": "localhost:8000", "Origin": "null"}, 403),
        ({"Host": "localhost:8000", "Origin": "http://[broken"}, 403),
        ({"Host": "[::1].evil.example"}, 403),
        ([("Host", "localhost"), ("Origin", "http://localhost"), ("Origin", "https://evil.example")], 403),
        ({"Host": "localhost", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "localhost", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Host": "localhost", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": "localhost", "Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_without_a_token_only_this_machine_is_let_in(
    shared: Api, headers: dict[str, str] | list[tuple[str, str]], status: int
) -> None:
    response = httpx.get(f"{shared.server.url}/api/health", headers=headers)
    assert response.status_code == status
    assert "access-control-allow-origin" not in response.headers


def test_every_answer_has_the_headers(shared: Api) -> None:
    for path, status in (("/api/health", 200), ("/api/nothing", 404), ("/docs", 200)):
        response = shared.http.get(path)
        assert response.status_code == status
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers.get("cache-control") == ("no-store" if path.startswith("/api") else None)
        assert "server" not in response.headers


def test_cors_is_open_to_those_who_were_named_alone(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN, cors_origins=("https://friend.example",)) as api:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        for origin, wanted in (("https://friend.example", "https://friend.example"), ("https://evil.example", None)):
            response = httpx.options(f"{api.server.url}/api/runs", headers={"Origin": origin, **asked})
            assert response.headers.get("access-control-allow-origin") == wanted
            given = api.http.get("/api/runs", headers={"Origin": origin})
            assert given.headers.get("access-control-allow-origin") == wanted
    with serving(tmp_path, cors_origins=("https://friend.example",)) as api:
        assert api.http.get("/api/runs", headers={"Origin": "https://friend.example"}).status_code == 200
        assert api.http.get("/api/runs", headers={"Origin": "https://evil.example"}).status_code == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "::", "example.org", ""])
def test_an_address_that_others_reach_needs_a_token(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="GROUNDSWELL_TOKEN"):
        prepared(ServerSettings(host=host, model="emulated/keeper"))
    monkeypatch.setenv("GROUNDSWELL_TOKEN", TOKEN)
    assert prepared(ServerSettings(host=host, model="emulated/keeper")).token == TOKEN


@pytest.mark.parametrize(
    "token", ["", "short", "with a blank in it, see", "umlaut-äöü-äöü-äöü", "line\nbreak-in-the-token"]
)
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(SettingsError, match="TOKEN"):
        prepared(ServerSettings(token=token, model="emulated/keeper"))


def test_the_token_is_not_shown() -> None:
    assert TOKEN not in repr(ServerSettings(token=TOKEN))


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("1.localhost", False),
    ],
)
def test_loopback(host: str, own: bool) -> None:
    assert is_loopback(host) is own


@pytest.mark.parametrize("field", ["max_body_bytes", "max_entities", "max_turns", "max_simulations", "max_running"])
def test_limits_are_at_least_one(field: str) -> None:
    with pytest.raises(SettingsError) as refused:
        msgspec.convert({field: 0}, ServerSettings)
    assert refused.value.field == field


def test_a_port_that_is_taken_is_named(shared: Api, tmp_path: Path) -> None:
    port = httpx.URL(shared.server.url).port
    with pytest.raises(SettingsError, match=f"port {port}"), serving(tmp_path, port=port):
        pass


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "NEEDED", ("fastapi", "a_package_that_nobody_has"))
    with pytest.raises(SettingsError, match=r"a_package_that_nobody_has.*pip install 'groundswell\[web\]'"):
        starting.serve(ServerSettings())


def test_the_default_model_is_that_of_ask() -> None:
    assert prepared(ServerSettings()).model == "local/smollm2"


def test_a_model_that_cannot_be_reached_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--model: .*emulated/nobody"), serving(tmp_path, model="emulated/nobody"):
        pass


def test_a_model_without_its_key_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(tmp_path, model="openai/gpt-4o-mini") as api:
        assert api("GET", "/health")["model"] == "openai/gpt-4o-mini"
    assert "account 'openai' has no key" in caplog.text
