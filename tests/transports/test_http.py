"""One attempt over real HTTP: what comes back, and what it is called when nothing does."""

from __future__ import annotations

import asyncio
import base64
import gzip
import socket
import ssl
import time
import traceback
from collections.abc import Callable, Coroutine
from contextlib import suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any, TypeVar

import pytest

from groundswell.engine.records import AskId, Item, Wave
from groundswell.errors import SettingsError
from groundswell.program.request import Chat, Fault, FaultKind, Settlement, user
from groundswell.providers.accounts.account import Account, Key
from groundswell.providers.openai import OPENAI
from groundswell.transports.http import CA_BUNDLES, Answer, Http, NoAnswer, parse_url
from groundswell.transports.live import Live
from tests.transports.little import CUT, Answering, Got, Little, answer, closed_port, serving

T = TypeVar("T")
SECRET = "sk-PLANTED-in-a-header"


def account(**settings: Any) -> Account:
    given: dict[str, Any] = {"name": "box", "dialect": "openai", "endpoints": ("http://127.0.0.1:1/v1",)}
    given |= {"key": Key(SECRET), **settings}
    return Account(**given)


def with_http(use: Callable[[Http], Coroutine[Any, Any, T]], of: Account | None = None) -> T:
    async def main() -> T:
        http = Http(of or account(), OPENAI.headers)
        try:
            return await use(http)
        finally:
            await http.close()

    return asyncio.run(main())


def post(url: str, of: Account | None = None) -> Answer | Fault:
    async def use(http: Http) -> Answer | Fault:
        try:
            return await http.post(parse_url(url), b'{"a": 1}')
        except NoAnswer as none:
            return none.fault

    return with_http(use, of)


def fixed(bytes_: bytes | None) -> Answering:
    return lambda got: bytes_


def test_what_is_sent_and_what_comes_back() -> None:
    with serving(fixed(answer(b"[1]", "418 Teapot", X_Big="A"))) as little:
        came = post(f"{little.url}/v1/x", account(headers={"x-team": Key("blue")}))
    assert isinstance(came, Answer)
    assert (came.status, came.headers["x-big"], came.body) == (418, "A", b"[1]")
    (got,) = little.got
    assert (got.line, got.body) == ("POST /v1/x HTTP/1.1", b'{"a": 1}')
    assert (got.headers["authorization"], got.headers["x-team"]) == (f"Bearer {SECRET}", "blue")
    assert got.headers["user-agent"] == "groundswell"


@pytest.mark.parametrize(
    ("sent", "kind", "told"),
    [
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhalf" + CUT,
            FaultKind.CONNECTION,
            "the answer was interrupted",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf" + CUT,
            FaultKind.CONNECTION,
            "was interrupted",
        ),
        (b"HTTP/1.1 2" + CUT, FaultKind.CONNECTION, "the connection was lost"),
        (CUT, FaultKind.CONNECTION, "the connection was lost"),
        (b"\x00\x01 nothing that is HTTP\r\n\r\n" + CUT, FaultKind.GARBLED, "is not HTTP"),
        (answer(b"no gzip", content_encoding="gzip"), FaultKind.CONNECTION, "could not be decoded"),
    ],
    ids=["cut body", "cut chunk", "cut head", "closed", "junk", "bad gzip"],
)
def test_answers_that_are_none(sent: bytes, kind: FaultKind, told: str) -> None:
    with serving(fixed(sent)) as little:
        fault = post(little.url)
    assert isinstance(fault, Fault)
    assert fault.kind is kind
    assert told in fault.message
    assert "://" not in fault.message


def test_no_answer_in_time() -> None:
    with serving(fixed(None)) as little:
        fault = post(little.url, account(timeout=0.2))
    assert fault == Fault(FaultKind.TIMEOUT, "no answer within 0.2 s")


def test_half_an_answer_in_time() -> None:
    with serving(fixed(b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhalf")) as little:
        assert post(little.url, account(timeout=0.2)) == Fault(FaultKind.TIMEOUT, "no answer within 0.2 s")


def test_nobody_is_there() -> None:
    with closed_port() as port:
        fault = post(f"http://127.0.0.1:{port}/v1")
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.CONNECTION
    assert fault.message.startswith("could not connect: ")
    assert "refused" in fault.message


def test_a_name_that_there_is_not() -> None:
    fault = post("http://nobody.invalid/v1")
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.CONNECTION
    assert fault.message.startswith("could not connect")


def test_a_connection_that_is_never_made() -> None:
    """A server that never answers the TLS handshake: to be connected takes more than a socket."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        fault = post(f"https://127.0.0.1:{port}", account(connect_timeout=0.2, timeout=5.0))
    assert fault == Fault(FaultKind.CONNECTION, "could not connect within 0.2 s")


def test_gzip_is_unpacked() -> None:
    with serving(fixed(answer(gzip.compress(b'{"a": "long"}'), content_encoding="gzip"))) as little:
        came = post(little.url)
    assert isinstance(came, Answer)
    assert came.body == b'{"a": "long"}'
    assert "gzip" in little.got[0].headers["accept-encoding"]


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_redirects_are_not_followed_and_no_key_goes_elsewhere(status: str) -> None:
    with serving(fixed(answer())) as elsewhere:
        with serving(fixed(answer(b"", status, location=f"{elsewhere.url}/v1"))) as little:
            came = post(little.url)
        assert isinstance(came, Answer)
        assert came.status == int(status[:3])
        assert elsewhere.got == []


def test_connections_are_kept() -> None:
    async def use(http: Http) -> None:
        for _ in range(20):
            await http.post(parse_url(little.url), b"{}")

    with serving(fixed(answer())) as little:
        with_http(use)
        assert (len(little.got), little.connections) == (20, 1)


def test_many_at_once_need_no_more_connections_than_that() -> None:
    async def use(http: Http) -> None:
        for _ in range(5):
            await asyncio.gather(*[http.post(parse_url(little.url), b"{}") for _ in range(8)])

    with serving(fixed(answer())) as little:
        with_http(use)
        assert len(little.got) == 40
        assert little.connections <= 8


@pytest.mark.xfail(reason="pyreqwest goes on with a request whose task was cancelled, until its timeout")
def test_what_is_cancelled_frees_its_connection() -> None:
    async def use(http: Http) -> None:
        waiting = asyncio.create_task(http.post(parse_url(little.url), b"{}"))
        await asyncio.to_thread(little.came.wait, 10)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(little.gone.wait, 1)

    with serving(fixed(None)) as little:
        with_http(use)


def seen_by_a_proxy(url: str, scheme: str = "http") -> Got:
    """The request that a proxy gets for a request to a URL."""
    with serving(fixed(answer() if url.startswith("http:") else answer(b"", "403 No"))) as proxy:
        post(url, account(proxy=Key(f"{scheme}://me:pass%20word@127.0.0.1:{proxy.port}"), connect_timeout=5.0))
    return proxy.got[0]


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://far.invalid/v1/x", "POST http://far.invalid/v1/x HTTP/1.1"),
        ("https://far.invalid/v1/x", "CONNECT far.invalid:443 HTTP/1.1"),
    ],
)
def test_a_proxy_is_asked_with_its_credentials(url: str, line: str) -> None:
    got = seen_by_a_proxy(url)
    assert got.line == line
    assert base64.b64decode(got.headers["proxy-authorization"].removeprefix("Basic ")) == b"me:pass word"


def test_a_proxy_that_connects_does_not_see_the_key() -> None:
    got = seen_by_a_proxy("https://far.invalid/v1/x")
    assert not any(SECRET in value for value in got.headers.values())


@pytest.mark.parametrize(
    ("endpoint", "proxied"),
    [
        ("http://127.0.0.1:{port}/v1", False),
        ("http://localhost:{port}/v1", False),
        ("http://[::1]:{port}/v1", False),
        ("http://far.invalid/v1", True),
    ],
)
def test_the_proxy_of_the_environment_is_for_other_machines(
    endpoint: str, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(fixed(answer(b"near"))) as little, serving(fixed(answer(b"by proxy"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        url = endpoint.format(port=little.port)
        came = post(url, account(endpoints=(url,)))
    assert len(proxy.got) == proxied
    assert not proxied or (isinstance(came, Answer) and came.body == b"by proxy")


CERTIFICATES = Path(__file__).with_name("certificates")
"""An authority, and a server's certificate that it signed. Nobody trusts them."""


def post_with_tls() -> Answer | Fault:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATES / "server.pem")
    with serving(fixed(answer()), tls) as little:
        return post(f"{little.url}/v1", account(endpoints=(f"{little.url}/v1",)))


@pytest.mark.parametrize("variable", CA_BUNDLES)
@pytest.mark.parametrize("name", ["ca.pem", ""], ids=["file", "folder"])
def test_certificates_that_the_environment_names_are_trusted(
    monkeypatch: pytest.MonkeyPatch, variable: str, name: str
) -> None:
    for each in CA_BUNDLES:
        monkeypatch.delenv(each, raising=False)
    refused = post_with_tls()
    assert isinstance(refused, Fault)
    assert "UnknownIssuer" in refused.message
    monkeypatch.setenv(variable, str(CERTIFICATES / name))
    got = post_with_tls()
    assert isinstance(got, Answer)
    assert got.status == 200


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "No such file or directory"),
        ("nothing", "it contains no certificate"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "a certificate in it is invalid"),
    ],
    ids=["missing", "empty", "broken"],
)
def test_certificates_that_cannot_be_read_are_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, problem: str
) -> None:
    path = tmp_path / "bundle.pem"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(path))
    with pytest.raises(SettingsError, match=f"REQUESTS_CA_BUNDLE names .*bundle.pem.*{problem}"):
        post("https://127.0.0.1:1", account(endpoints=("https://127.0.0.1:1/v1",)))
    assert isinstance(post("http://127.0.0.1:1"), Fault), "without TLS they are not needed"


def test_a_proxy_that_is_down() -> None:
    with closed_port() as port:
        fault = post("http://far.invalid/", account(proxy=Key(f"http://me:PLANTED@127.0.0.1:{port}")))
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.CONNECTION
    assert "PLANTED" not in fault.message


@pytest.mark.parametrize(
    "settings",
    [{"proxy": Key("http://PLANTED word@")}, {"headers": {"x-team": Key("PLANTED\nword")}}],
    ids=["proxy", "header"],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="account box: invalid proxy or headers") as raised:
        post("http://far.invalid/", account(**settings))
    assert raised.value.__context__ is None
    seen = "".join(traceback.TracebackException.from_exception(raised.value, capture_locals=True).format())
    assert not [word for word in (SECRET, "PLANTED") if word in seen]


@pytest.mark.parametrize(
    ("status", "alive"), [("200 OK", True), ("404 Not Found", True), ("401 No", True), ("500 Oh", False)]
)
def test_whether_a_server_is_there(status: str, alive: bool) -> None:
    with serving(fixed(answer(b"", status))) as little:
        assert with_http(lambda http: http.alive(f"{little.url}/v1/models")) is alive
    assert little.got[0].line == "GET /v1/models HTTP/1.1"


def test_a_server_that_is_not_there() -> None:
    with closed_port() as port:
        assert with_http(lambda http: http.alive(f"http://127.0.0.1:{port}/")) is False


def asked(little: Little) -> Settlement:
    """What comes of one chat over the transport."""

    async def main() -> Settlement:
        live = Live(account(endpoints=(f"{little.url}/v1",)))
        ask = AskId(1, "0")
        wave = Wave(1, "r", "box", "live", (ask,), 0.0, items=(Item(ask, Chat("m", (user("hi"),)), 0),))
        try:
            (settled,) = [settled async for settled in live.collect(wave, await live.dispatch(wave))]
            return settled.settlement
        finally:
            await live.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry_After": "7"}, 7, 7),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5, 1.5),
        ({"retry_after": "soon"}, None, None),
        ({}, None, None),
    ],
    ids=["seconds", "milliseconds", "nonsense", "nothing"],
)
def test_how_long_to_wait_reaches_the_fault(headers: dict[str, str], least: float | None, most: float | None) -> None:
    with serving(fixed(answer(b'{"error": {"message": "slow down"}}', "429 Too Many", **headers))) as little:
        fault = asked(little)
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.RATE_LIMITED
    assert fault.retry_after == least == most


def test_a_date_to_wait_for_reaches_the_fault() -> None:
    date = formatdate(time.time() + 3600, usegmt=True)
    with serving(fixed(answer(b"{}", "429 Too Many", retry_after=date))) as little:
        fault = asked(little)
    assert isinstance(fault, Fault)
    assert fault.retry_after is not None
    assert 3000 < fault.retry_after < 3601


async def look(http: Http, url: str) -> None:
    await http.get(parse_url(url), 5.0)


async def read(http: Http, url: str) -> None:
    async for _ in http.lines(parse_url(url)):
        pass


async def probe(http: Http, url: str) -> None:
    await http.alive(url)


@pytest.mark.parametrize("work", [look, read, probe])
def test_who_was_asked_to_end_does_so_though_an_answer_comes(
    work: Callable[[Http, str], Coroutine[Any, Any, None]],
) -> None:
    """The client forgets it where both happen at once, and a run that waits for a batch would never end."""

    async def asked_to_end(http: Http, url: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        await work(http, url)

    async def use(http: Http) -> None:
        with serving(lambda got: answer(b"{}\n")) as little, pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(asked_to_end(http, little.url))

    with_http(use)


def test_an_order_that_is_answered_while_its_task_ends_is_not_lost() -> None:
    async def ordered(http: Http, url: str) -> Answer:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return await http.post(parse_url(url), b"{}")

    async def use(http: Http) -> int:
        with serving(lambda got: answer(b"{}")) as little:
            return (await asyncio.create_task(ordered(http, little.url))).status

    assert with_http(use) == 200
