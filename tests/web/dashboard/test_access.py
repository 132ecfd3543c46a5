"""Who may open the dashboard: with a token, after a login, by a share link, and from which pages."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Iterator

import httpx
import pytest

from groundswell.engine.monitor import LaneSample, LimiterDecision, Sample, WaveTimes
from groundswell.reporting.progress import Reading
from groundswell.web.access import LONGEST_DELAY, SESSION, SESSION_SECONDS, SHARE, Signer, WrongLogins, may_read
from groundswell.web.dashboard.login import local_address
from tests.web.scene import Api, serving

TOKEN = "of-a-test-and-of-no-worth"
PAGE = {"Accept": "text/html"}
NOW = 1_000_000.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("access"), token=TOKEN) as api:
        api.server.services.wrong_logins = WrongLogins(sleep=no_sleep)
        yield api


async def no_sleep(seconds: float) -> None:
    """Tests do not wait."""


@pytest.fixture
def browser(server: Api) -> Iterator[httpx.Client]:
    """A client that keeps cookies, as a browser does."""
    with httpx.Client(base_url=server.server.url, headers=PAGE) as client:
        yield client


def log_in(browser: httpx.Client, token: str = TOKEN) -> httpx.Response:
    return browser.post(
        "/login?next=/runs", data={"token": token}, headers={"Origin": str(browser.base_url).rstrip("/")}
    )


def test_a_page_sends_to_the_login_and_back(browser: httpx.Client) -> None:
    asked = browser.get("/runs")
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=/runs")
    assert "Log in" in browser.get("/login?next=/runs").text
    answer = log_in(browser)
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs")
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "samesite=lax" in answer.headers["set-cookie"].lower()
    assert TOKEN not in answer.headers["set-cookie"]
    assert browser.get("/runs").status_code == 200
    assert browser.get("/api/runs").status_code == 200
    assert browser.post("/logout", headers={"Origin": str(browser.base_url).rstrip("/")}).status_code == 303
    assert browser.get("/runs").status_code == 303


FORWARDED = pytest.mark.parametrize(
    ("forwarded", "scheme"),
    [
        (None, "http"),
        ("http", "http"),
        ("https", "https"),
        ("https, http", "https"),
        ("http, https", "http"),
        ("HTTPS", "https"),
        ("javascript", "http"),
        ("", "http"),
    ],
)
"""The header of a proxy, and the scheme that the client uses."""


@FORWARDED
def test_cookies_are_only_sent_over_tls_if_the_client_uses_it(
    browser: httpx.Client, forwarded: str | None, scheme: str
) -> None:
    if forwarded is not None:
        browser.headers["X-Forwarded-Proto"] = forwarded
    link = browser.get(f"/share/{Signer(TOKEN).share('one', 100)}")
    for answer, name in ((log_in(browser), SESSION), (link, SHARE)):
        cookie, *flags = answer.headers["set-cookie"].split("; ")
        assert cookie.startswith(f"{name}=")
        wanted = {"HttpOnly", "SameSite=lax", "Path=/", f"Max-Age={SESSION_SECONDS}"}
        assert {*flags} - {each for each in flags if each.startswith("expires")} == wanted | (
            {"Secure"} if scheme == "https" else set()
        )
        assert TOKEN not in cookie


@FORWARDED
def test_a_copied_command_uses_the_scheme_of_the_client(server: Api, forwarded: str | None, scheme: str) -> None:
    headers = {} if forwarded is None else {"X-Forwarded-Proto": forwarded}
    body = {"models": ["emulated/keeper"], "interactions": 2}
    found = server("POST", "/experiments/secret-game/play/check", json=body, headers=headers)
    assert server.server.url.replace("http:", f"{scheme}:") in found["curl"]


def test_a_wrong_token_is_refused(browser: httpx.Client) -> None:
    answer = log_in(browser, "of-another-server-and-wrong")
    assert answer.status_code == 401
    assert "This is not the token" in answer.text
    assert "set-cookie" not in answer.headers
    assert browser.get("/runs").status_code == 303


def test_a_wrong_token_is_logged_with_the_address_and_delayed(
    server: Api, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(server.server.services, "wrong_logins", WrongLogins(sleep=sleep))
    log_in(browser)
    assert (slept, caplog.messages) == ([], [])
    log_in(browser, "of-another-server-and-wrong")
    browser.headers["X-Forwarded-For"] = "10.0.0.9, 10.0.0.1"
    log_in(browser, "of-another-server-and-wrong")
    assert slept == [0.1, 0.2]
    assert caplog.messages == [
        "wrong token at the login from 127.0.0.1",
        "wrong token at the login from 127.0.0.1, forwarded for '10.0.0.9, 10.0.0.1'",
    ]


def test_delays_of_wrong_logins_grow_to_a_limit_and_end_after_a_minute() -> None:
    now, slept = [NOW], list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def guess(many: int) -> list[float]:
        slept.clear()
        for _ in range(many):
            await logins.wait()
        return slept

    logins = WrongLogins(lambda: now[0], sleep)
    assert asyncio.run(guess(1000))[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3, 3]
    assert slept[-1] == LONGEST_DELAY
    now[0] += 60
    assert asyncio.run(guess(1)) == [0.1]


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://example.org"}, {"Origin": "null"}])
def test_other_sites_cannot_act_with_the_cookie(browser: httpx.Client, headers: dict[str, str]) -> None:
    log_in(browser)
    for path in ("/api/runs/x/cancel", "/api/experiments/secret-game/play"):
        assert browser.post(path, json={}, headers=headers).status_code == 403
    assert browser.delete("/api/runs/x", headers=headers).status_code == 403
    assert browser.post("/login", data={"token": TOKEN}, headers=headers).status_code == 403


def test_our_own_pages_act_with_the_cookie(browser: httpx.Client) -> None:
    log_in(browser)
    own = {"Origin": str(browser.base_url).rstrip("/")}
    assert browser.post("/api/runs/x/cancel", json={}, headers=own).status_code == 404
    assert browser.post("/api/runs/x/cancel", json={}, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 404


def test_a_wrong_header_is_not_made_up_for_by_a_cookie(browser: httpx.Client) -> None:
    log_in(browser)
    assert browser.get("/api/runs", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_share_link_shows_one_run_and_changes_nothing(server: Api, browser: httpx.Client) -> None:
    runs = server.server.services.store.runs
    shared, other = runs.create("shared", 1), runs.create("other", 1)
    with_token = {"Authorization": f"Bearer {TOKEN}"}
    link = browser.post(f"/api/runs/{shared.id}/share", json={"days": 2}, headers=with_token).json()["data"]["path"]
    opened = browser.get(link)
    assert (opened.status_code, opened.headers["location"]) == (303, f"/runs/{shared.id}/results")
    assert browser.get(f"/api/runs/{shared.id}").status_code == 200
    assert browser.get(f"/api/runs/{shared.id}/trials").status_code == 200
    for path in ("/runs", f"/runs/{other.id}", f"/runs/{shared.id}x", "/models"):
        assert browser.get(path).status_code == 303, path
    for path in (f"/api/runs/{other.id}", "/api/runs", "/api/models"):
        assert browser.get(path).status_code == 401, path
    own = {"Origin": str(browser.base_url).rstrip("/")}
    assert browser.delete(f"/api/runs/{shared.id}", headers=own).status_code == 401
    assert browser.post(f"/api/runs/{shared.id}/share", json={}, headers=own).status_code == 401
    page = browser.get(f"/runs/{shared.id}").text
    assert "read only" in page
    assert "data-call" not in page


def test_a_share_link_shows_nothing_of_accounts_and_other_runs(
    server: Api, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, account = server.server.services, "account-of-the-team"
    run = services.store.runs.create("of a team", 1)
    waits, lane = (f"waiting 9 s for {account}",), LaneSample(account, "gpt", 3, 64, 1.5, "rate limit")
    reading = Reading("of a team", 0, 0, 1, 1, 4, 2.0, 1, 0, "$0.00", None, False, waits)
    sample = Sample(NOW, 4, 0, 3, 64, 0.0, (lane,))
    decision = LimiterDecision(NOW, account, "gpt", "cut from 64 to 51")
    monkeypatch.setattr(services.background, "reading", lambda run: reading)
    monkeypatch.setattr(services.background.monitor, "samples", lambda run: (sample,))
    monkeypatch.setattr(services.background.monitor, "decisions", lambda run: (decision,))
    monkeypatch.setattr(services.background.monitor, "waves", lambda run: (WaveTimes(1, account, "live", 4, NOW),))
    browser.get(f"/share/{Signer(TOKEN).share(run.id, 100)}")
    guest = browser.get(f"/runs/{run.id}").text
    log_in(browser)
    owner = browser.get(f"/runs/{run.id}").text
    for words in (account, f"waiting 9 s for {account}", "<h2>Limits</h2>", "cut from 64 to 51"):
        assert words in owner
        assert words not in guest
    assert f"<td>{account} live</td>" in owner
    assert "<td>live</td>" in guest


def test_only_who_is_logged_in_sees_the_navigation(server: Api, browser: httpx.Client) -> None:
    run = server.server.services.store.runs.create("navigated", 1)
    offered = ('<nav aria-label="Main">', "Log out", "All runs")
    for path in ("/login", "/share/wrong"):
        page = browser.get(path).text
        assert not [each for each in (*offered, "read only") if each in page], path
    browser.get(f"/share/{Signer(TOKEN).share(run.id, 100)}")
    missing = browser.get(f"/runs/{run.id}/trials/nothing")
    assert missing.status_code == 404
    assert "read only" in missing.text
    assert not [each for each in offered if each in missing.text]
    log_in(browser)
    assert all(each in browser.get("/share/wrong").text for each in offered)
    assert "All runs" in browser.get("/runs/nothing").text


def test_a_link_that_was_changed_is_refused(browser: httpx.Client) -> None:
    signed = Signer(TOKEN).share("one", 100)
    changed = signed[:-1] + ("1" if signed.endswith("0") else "0")
    for wrong in (changed, signed.replace("one", "two"), "one.99999999999.x", "x", "one..", "ü.1.2"):
        assert browser.get(f"/share/{wrong}").status_code == 403, wrong


def test_a_server_without_a_token_has_no_links(shared: Api) -> None:
    run = shared.server.services.store.runs.create(None, 1)
    answer = httpx.post(f"{shared.server.url}/api/runs/{run.id}/share", json={})
    assert answer.status_code == 409
    assert "token" in answer.json()["message"]
    assert httpx.get(f"{shared.server.url}/login", headers=PAGE).status_code == 303


def test_sessions_and_links_end() -> None:
    signer = Signer(TOKEN)
    session, link = signer.session(NOW), signer.share("run", 60, NOW)
    assert signer.is_session(session, NOW + SESSION_SECONDS - 1)
    assert not signer.is_session(session, NOW + SESSION_SECONDS)
    assert signer.shared_run(link, NOW + 59) == "run"
    assert signer.shared_run(link, NOW + 60) is None


def test_sessions_and_links_belong_to_their_token() -> None:
    other = Signer("another-token-of-no-worth")
    assert not other.is_session(Signer(TOKEN).session(NOW), NOW)
    assert other.shared_run(Signer(TOKEN).share("run", 60, NOW), NOW) is None
    assert not Signer(TOKEN).is_session(Signer(TOKEN).share("run", 60, NOW), NOW)


def test_a_signature_does_not_allow_trying_tokens_quickly() -> None:
    run, until, signature = Signer(TOKEN).share("run", 60, NOW).split(".")
    words = "\0".join(("groundswell", "share", run, until)).encode()
    slow = hashlib.scrypt(TOKEN.encode(), salt=b"groundswell share links", n=2**14, r=8, p=1)
    assert signature == hmac.new(slow, words, "sha256").hexdigest()
    assert signature != hmac.new(TOKEN.encode(), words, "sha256").hexdigest()


@pytest.mark.parametrize("value", ["", ".", "x", "1.", "1e9.x", "nan.x", "9" * 400 + ".x", "99999999999.é"])
def test_made_up_sessions_are_refused(value: str) -> None:
    assert not Signer(TOKEN).is_session(value, NOW)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/runs/a", True),
        ("/runs/a/trials/x", True),
        ("/api/runs/a/export", True),
        ("/runs/ab", False),
        ("/runs", False),
        ("/runs/b", False),
        ("/api/runs", False),
        ("/api/experiments", False),
    ],
)
def test_what_a_link_allows(path: str, allowed: bool) -> None:
    assert may_read(path, "a") is allowed


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("/runs?q=1", "/runs?q=1"),
        ("//example.org", "/"),
        ("/\\example.org", "/"),
        ("https://example.org", "/"),
        ("javascript:alert(1)", "/"),
        ("/x\r\ny", "/"),
        ("", "/"),
    ],
)
def test_the_login_leads_to_this_server_only(address: str, local: str) -> None:
    assert local_address(address) == local


@pytest.mark.parametrize("other", ['x={"a":1}', "x=1 2", "k[1]=2", "bad cookie", "a=b,c d", "=", ";", 'q="\\"'])
def test_cookies_of_other_programs_do_not_matter(server: Api, other: str) -> None:
    cookie = f"{other}; groundswell_session={Signer(TOKEN).session()}"
    assert httpx.get(f"{server.server.url}/api/runs", headers={"Cookie": cookie}).status_code == 200


@pytest.mark.parametrize("value", ['"' + "\\" * 50_000 + '"', '"' + '\\"' * 25_000 + '"', '"' + "\\1" * 25_000 + '"'])
@pytest.mark.parametrize("name", ["groundswell_session", "theme"])
def test_hostile_cookies_are_read_in_linear_time(server: Api, name: str, value: str) -> None:
    for path in ("/runs", "/login"):
        answer = httpx.get(f"{server.server.url}{path}", headers={**PAGE, "Cookie": f"{name}={value}"}, timeout=5)
        assert answer.status_code in (200, 303)


def test_headers_have_a_limit(server: Api) -> None:
    answer = httpx.get(f"{server.server.url}/login", headers={"X-Long": "x" * 65_000})
    assert answer.status_code == 431
    assert answer.json()["status"] == "error"


@pytest.mark.parametrize("path", ["/login?next=//%5Bx", "/login?next=http://%5Bx", f"/static/{'a' * 300}.js"])
def test_odd_addresses_are_no_internal_errors(server: Api, path: str) -> None:
    assert httpx.get(f"{server.server.url}{path}", headers=PAGE, timeout=60).status_code in (200, 404)


def test_a_form_with_many_fields_is_a_wrong_token(browser: httpx.Client) -> None:
    own = {"Origin": str(browser.base_url).rstrip("/")}
    assert browser.post("/login", data={f"f{n}": "x" for n in range(50)}, headers=own).status_code == 401


def test_the_login_keeps_the_whole_address(browser: httpx.Client) -> None:
    location = browser.get("/compare?run=a&run=b").headers["location"]
    assert location == "/login?next=/compare%3Frun%3Da%26run%3Db"


def test_labels_are_not_shared() -> None:
    assert not may_read("/api/runs/a/labels", "a")
    assert not may_read("/api/runs/a/labels/export", "a")
