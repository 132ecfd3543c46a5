"""Answers that are too large, mostly once they are decompressed: given up early, as a fault that says so."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from groundswell.engine.records import AskId, Item, Wave
from groundswell.program.request import Chat, Fault, FaultKind, user
from groundswell.providers.openai import OPENAI
from groundswell.transports import http as http_module
from groundswell.transports.http import Answer, FileRefused, Http, NoAnswer, parse_url
from groundswell.transports.live import Live
from tests.transports.little import answer, serving
from tests.transports.test_http import account, fixed

T = TypeVar("T")
MOST = 100_000
ENDLESS = 50_000_000
"""So much is never sent to a client that stops reading: the buffers on the way hold a few megabytes."""


def with_limits(use: Callable[[Http], Coroutine[Any, Any, T]], **limits: int) -> T:
    async def main() -> T:
        http = Http(account(timeout=60.0), OPENAI.headers, **{"largest_answer": MOST, **limits})
        try:
            return await use(http)
        finally:
            await http.close()

    return asyncio.run(main())


async def post(http: Http, url: str) -> Answer:
    return await http.post(parse_url(url), b"{}")


async def get(http: Http, url: str) -> Answer:
    return await http.get(parse_url(url), 60.0)


async def lines(http: Http, url: str) -> int:
    return sum([1 async for _ in http.lines(parse_url(url))])


def packed(content_encoding: str, size: int) -> bytes:
    """So many zeros."""
    if content_encoding == "gzip":
        return gzip.compress(bytes(size))
    if content_encoding == "zstd":
        return _zstd(size)
    return zlib.compress(bytes(size))


def _zstd(size: int) -> bytes:
    """A frame with a window of a megabyte, and blocks that each repeat one byte."""
    blocks = [100_000] * (size // 100_000)
    marks = [(at == len(blocks) - 1) | 1 << 1 | block << 3 for at, block in enumerate(blocks)]
    return b"\x28\xb5\x2f\xfd\x00\x50" + b"".join(mark.to_bytes(3, "little") + b"\0" for mark in marks)


class Fountain:
    """Sends a head, and then the same piece until the client has gone or `ENDLESS` bytes are sent."""

    def __init__(self, head: bytes, piece: bytes) -> None:
        self._head, self._piece = head, piece
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.sent = 0
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.recv(65_536)
            try:
                connection.sendall(self._head)
                while self.sent < ENDLESS:
                    connection.sendall(self._piece)
                    self.sent += len(self._piece)
            except OSError:
                pass

    def close(self) -> None:
        self._listener.close()
        self._thread.join()


@contextmanager
def pouring(head: bytes, piece: bytes) -> Iterator[Fountain]:
    fountain = Fountain(head, piece)
    try:
        yield fountain
    finally:
        fountain.close()


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n"
CHUNK = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("how", [post, get], ids=["post", "get"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("status", ["200 OK", "500 No"])
def test_an_answer_that_is_too_large_once_it_is_decompressed(how: Any, encoding: str, status: str) -> None:
    bomb = answer(packed(encoding, 100 * MOST), status, content_encoding=encoding)
    with serving(fixed(bomb)) as little, pytest.raises(NoAnswer) as raised:
        with_limits(lambda http: how(http, little.url))
    assert raised.value.fault == Fault(
        FaultKind.GARBLED, "the answer is too large: more than 100,000 bytes when decompressed"
    )
    assert raised.value.sent


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_an_answer_of_the_largest_size_is_taken(encoding: str) -> None:
    with serving(fixed(answer(packed(encoding, MOST), content_encoding=encoding))) as little:
        came = with_limits(lambda http: post(http, little.url))
    assert (came.status, came.body) == (200, bytes(MOST))


@pytest.mark.parametrize("how", [post, get, lines], ids=["post", "get", "lines"])
@pytest.mark.parametrize(
    ("head", "piece"),
    [(CHUNKED, CHUNK), (UNTIL_CLOSED, b"x" * 0x4000), (SIZED, b"x" * 0x4000)],
    ids=["chunked", "until closed", "sized"],
)
def test_reading_an_endless_answer_stops_at_the_limit(how: Any, head: bytes, piece: bytes) -> None:
    with pouring(head, piece) as fountain, pytest.raises(NoAnswer, match="more than 100,000 bytes") as raised:
        with_limits(lambda http: how(http, fountain.url))
    assert raised.value.fault.kind is FaultKind.GARBLED
    assert fountain.sent < ENDLESS / 2


def test_an_endless_head_is_no_answer() -> None:
    line = b"x-more: " + b"y" * 1_000 + b"\r\n"
    with pouring(b"HTTP/1.1 200 OK\r\n", line) as fountain, pytest.raises(NoAnswer) as raised:
        with_limits(lambda http: post(http, fountain.url))
    assert raised.value.fault.kind is FaultKind.GARBLED
    assert fountain.sent < ENDLESS / 2


def test_a_line_of_a_file_that_is_too_large_once_it_is_decompressed() -> None:
    content = b"one\n" + bytes(100 * MOST) + b"\nthree\n"
    came: list[bytes] = []

    async def use(http: Http) -> None:
        async for line in http.lines(parse_url(little.url)):
            came.append(line)

    packed_lines = answer(gzip.compress(content), content_encoding="gzip")
    with serving(fixed(packed_lines)) as little, pytest.raises(NoAnswer, match="a line of the file is too large: more"):
        with_limits(use)
    assert came == [b"one"]


def test_a_file_of_too_many_lines() -> None:
    content = gzip.compress(b"line\n" * 100_000)
    with serving(fixed(answer(content, content_encoding="gzip"))) as little:
        assert with_limits(lambda http: lines(http, little.url)) == 100_000
        with pytest.raises(NoAnswer, match="the file is too large: more than 300,000 bytes"):
            with_limits(lambda http: lines(http, little.url), largest_file=300_000)


def test_a_refusal_of_a_file_that_is_too_large() -> None:
    bomb = answer(packed("gzip", 100 * MOST), "404 Not Found", content_encoding="gzip")
    with serving(fixed(bomb)) as little, pytest.raises((NoAnswer, FileRefused), match="the answer is too large"):
        with_limits(lambda http: lines(http, little.url))


def test_a_health_check_reads_no_body() -> None:
    with pouring(CHUNKED, CHUNK) as fountain:
        assert with_limits(lambda http: http.alive(fountain.url))
    assert fountain.sent < ENDLESS / 2


def test_an_ask_ends_as_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module.Http.__init__, "__kwdefaults__", {"largest_answer": MOST, "largest_file": MOST})

    async def main(url: str) -> Any:
        live = Live(account(endpoints=(url,)))
        ask = AskId(1, "0")
        wave = Wave(1, "r", "box", "live", (ask,), 0.0, items=(Item(ask, Chat("m", (user("hi"),)), 0),))
        try:
            receipt = await live.dispatch(wave)
            return [settled async for settled in live.collect(wave, receipt)]
        finally:
            await live.close()

    with serving(fixed(answer(packed("gzip", 100 * MOST), content_encoding="gzip"))) as little:
        (settled,) = asyncio.run(main(little.url))
    assert isinstance(settled.settlement, Fault)
    assert settled.settlement.kind is FaultKind.GARBLED


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"choices": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"choices": [], "usage": {"prompt_tokens": ' + b"9" * 100_000 + b"}}",
        b'{"choices": [{"message": {"content": "' + b"\\u0000" * 10_000,
    ],
    ids=["never closed", "deep", "digits", "cut"],
)
def test_an_answer_that_is_hard_to_read_is_a_fault(body: bytes) -> None:
    found = OPENAI.decode(Chat("m", (user("hi"),)), 200, {}, body, 0.0)
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.GARBLED
