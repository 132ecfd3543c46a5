"""Files over real HTTP: sent and read a piece at a time, and what it is called when that breaks off."""

from __future__ import annotations

import asyncio
import gzip
import io
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.program.request import Fault, FaultKind
from groundswell.transports.http import PIECE, Answer, FileBody, FileRefused, Http, NoAnswer, _split, parse_url
from tests.properties import examples
from tests.transports.little import CUT, Got, answer, closed_port, serving
from tests.transports.test_http import SECRET, account, fixed, with_http


def lines_of(url: str, timeout: float = 5.0) -> list[bytes]:
    async def use(http: Http) -> list[bytes]:
        return [line async for line in http.lines(parse_url(url))]

    return with_http(use, account(timeout=timeout))


def send(url: str, content: bytes, timeout: float = 5.0) -> Answer:
    enclosed = FileBody(io.BytesIO(content), "text/x-test", b"<<", b">>")
    return with_http(lambda http: http.post_file(parse_url(url), enclosed), account(timeout=timeout))


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, 3 * PIECE + 5])
def test_a_file_is_sent_whole(size: int) -> None:
    content = bytes(at % 251 for at in range(size))
    with serving(fixed(answer(b"[1]", "201 Made"))) as little:
        came = send(little.url, content)
    assert (came.status, came.body) == (201, b"[1]")
    (got,) = little.got
    assert got.body == b"<<" + content + b">>"
    assert got.headers["content-length"] == str(size + 4)
    assert got.headers["content-type"] == "text/x-test"
    assert got.headers["authorization"] == f"Bearer {SECRET}"


def test_a_file_is_sent_again_from_its_beginning() -> None:
    enclosed = FileBody(io.BytesIO(b"content"), "text/x-test")

    async def use(http: Http) -> None:
        for _ in range(2):
            await http.post_file(parse_url(little.url), enclosed)

    with serving(fixed(answer())) as little:
        with_http(use)
    assert [got.body for got in little.got] == [b"content"] * 2


def test_a_file_that_gets_no_answer() -> None:
    with serving(fixed(None)) as little, pytest.raises(NoAnswer) as raised:
        send(little.url, b"content", timeout=0.2)
    assert raised.value.sent
    assert raised.value.fault.kind is FaultKind.TIMEOUT


def test_whether_anything_was_sent() -> None:
    with serving(fixed(CUT)) as little, pytest.raises(NoAnswer) as raised:
        send(little.url, b"content")
    assert raised.value.sent
    with closed_port() as port, pytest.raises(NoAnswer) as raised:
        send(f"http://127.0.0.1:{port}", b"content")
    assert not raised.value.sent


def test_giving_up_in_the_middle_of_a_file() -> None:
    """Whoever sends it may close it at once."""

    async def use(http: Http) -> None:
        with io.BytesIO(bytes(50_000_000)) as file:
            sending = asyncio.create_task(http.post_file(parse_url(f"{little.url}"), FileBody(file, "text/x-test")))
            while not file.tell():
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    with serving(fixed(None)) as little:
        with_http(use)


def test_something_is_looked_at() -> None:
    with serving(fixed(answer(b"[1]"))) as little:
        came = with_http(lambda http: http.get(parse_url(f"{little.url}/x?y=z"), 5.0))
    assert (came.status, came.body) == (200, b"[1]")
    assert little.got[0].line == "GET /x?y=z HTTP/1.1"


def test_something_that_is_not_seen_in_time() -> None:
    with serving(fixed(None)) as little, pytest.raises(NoAnswer) as raised:
        with_http(lambda http: http.get(parse_url(little.url), 0.2))
    assert raised.value.fault == Fault(FaultKind.TIMEOUT, "no answer within 0.2 s")


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one", [b"one"]),
        (b"one\n", [b"one"]),
        (b"one\n\ntwo\r\nthr", [b"one", b"", b"two\r", b"thr"]),
        (b"\xff\n" + b"x" * 300_000 + b"\n", [b"\xff", b"x" * 300_000]),
    ],
)
def test_the_lines_of_a_file(content: bytes, lines: list[bytes]) -> None:
    with serving(fixed(answer(content))) as little:
        assert lines_of(little.url) == lines


def test_a_file_that_is_packed() -> None:
    with serving(fixed(answer(gzip.compress(b"a\nb\n"), content_encoding="gzip"))) as little:
        assert lines_of(little.url) == [b"a", b"b"]


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\none\ntwo\nthr" + CUT,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\none\ntwo\nt\r\n" + CUT,
        answer(gzip.compress(bytes(range(256)) * 50)[:-20], content_encoding="gzip"),
        CUT,
    ],
    ids=["length", "chunks", "packed", "nothing"],
)
def test_a_file_that_breaks_off(sent: bytes) -> None:
    with serving(fixed(sent)) as little, pytest.raises(NoAnswer) as raised:
        lines_of(little.url)
    assert raised.value.fault.kind is FaultKind.CONNECTION
    assert "://" not in raised.value.fault.message


def test_a_file_that_stops_coming() -> None:
    """What came until then was given, and nobody waits for ever."""
    rows = b"".join(b"%06d\n" % at for at in range(50_000))
    came: list[bytes] = []

    async def use(http: Http) -> None:
        async for line in http.lines(parse_url(little.url)):
            came.append(line)

    head = b"HTTP/1.1 200 OK\r\ncontent-length: 900000\r\n\r\n"
    with serving(fixed(head + rows)) as little, pytest.raises(NoAnswer) as raised:
        with_http(use, account(timeout=0.5))
    assert raised.value.fault.kind is FaultKind.TIMEOUT
    assert came[:3] == [b"000000", b"000001", b"000002"]


def test_a_file_that_never_begins() -> None:
    with serving(fixed(None)) as little, pytest.raises(NoAnswer) as raised:
        lines_of(little.url, timeout=0.2)
    assert raised.value.fault.kind is FaultKind.TIMEOUT


@pytest.mark.parametrize("status", ["404 Not Found", "302 Found", "206 Partial", "500 No"])
def test_a_file_that_is_refused(status: str) -> None:
    with serving(fixed(answer(b"why", status, location="/there"))) as little, pytest.raises(FileRefused) as raised:
        lines_of(little.url)
    assert (str(raised.value.answer.status), raised.value.answer.body) == (status[:3], b"why")
    assert len(little.got) == 1


def test_nobody_needs_to_read_to_the_end() -> None:
    rows = b"line\n" * 2_000_000

    def answering(got: Got) -> bytes:
        return answer(rows)

    async def use(http: Http) -> bytes:
        async with aclosing(http.lines(parse_url(little.url))) as lines:
            async for line in lines:
                return line
        return b""

    with serving(answering) as little:
        assert with_http(use) == b"line"
        assert little.gone.wait(5), "the connection was kept"


@settings(max_examples=examples(100))
@given(st.lists(st.binary(max_size=6) | st.sampled_from([b"\n", b"\n\n", b"a\nb"]), max_size=8))
def test_pieces_make_the_same_lines_however_they_come(pieces: list[bytes]) -> None:
    async def main() -> list[bytes]:
        async def coming() -> object:
            for piece in pieces:
                yield piece

        return [line async for line in _split(coming())]  # type: ignore[arg-type]

    whole = b"".join(pieces).split(b"\n")
    assert asyncio.run(main()) == (whole if whole[-1] else whole[:-1])
