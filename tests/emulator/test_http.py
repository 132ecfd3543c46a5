"""HTTP by the byte: what a client sees of every kind of answer, on both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from groundswell.emulator.http import Answer, Application, HttpRequest, HttpServer, Silence
from groundswell.loop import new_event_loop

Play = Callable[[int], Coroutine[Any, Any, Any]]


@pytest.fixture(params=["asyncio", "uvloop"])
def serve(request: pytest.FixtureRequest) -> Callable[[Application, Play], Any]:
    """Run a client against an application, and give what the client gives."""
    make = new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run(application: Application, play: Play) -> Any:
        async def main() -> Any:
            server = HttpServer(application)
            port = await server.listen("127.0.0.1", 0)
            try:
                async with asyncio.timeout(10):
                    return await play(port)
            finally:
                await server.close()

        with asyncio.Runner(loop_factory=make) as runner:
            return runner.run(main())

    return run


async def exchange(port: int, *sent: bytes) -> bytes:
    """Send bytes, one write each, and read until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for each in sent:
            writer.write(each)
            await writer.drain()
            await asyncio.sleep(0)
        return await reader.read()
    except ConnectionResetError:
        return b"RESET"
    finally:
        writer.close()


GET = b"GET /a?b=c HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
KEPT = b"GET /kept HTTP/1.1\r\nhost: x\r\n\r\n"


def echo(http: HttpRequest) -> Answer:
    """Says what it was asked."""
    return Answer(body=f"{http.method} {http.path} {http.query} {len(http.body)}".encode())


def split(raw: bytes) -> tuple[bytes, bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    return head, body


def test_a_request_and_its_answer(serve: Any) -> None:
    head, body = split(serve(echo, lambda port: exchange(port, GET)))
    assert body == b"GET /a {'b': 'c'} 0"
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert b"content-length: 19" in lines
    assert b"content-type: application/json" in lines
    assert b"connection: close" in lines


def test_a_body_may_come_in_pieces(serve: Any) -> None:
    post = b"POST /p%20q HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\nconnection: close\r\n\r\nab"
    _, body = split(serve(echo, lambda port: exchange(port, post, b"cd", b"ef")))
    assert body == b"POST /p q {} 6"


def test_a_chunked_body_and_100_continue(serve: Any) -> None:
    head = (
        b"POST /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
        b"expect: 100-continue\r\nconnection: close\r\n\r\n"
    )
    raw = serve(echo, lambda port: exchange(port, head, b"3\r\nabc\r\n0\r\n\r\n"))
    assert raw.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert raw.endswith(b"POST /c {} 3")


def test_requests_of_one_connection_are_answered_in_order(serve: Any) -> None:
    asked: list[str] = []

    def slower_first(http: HttpRequest) -> Answer:
        asked.append(http.path)
        return Answer(body=http.path.encode(), delay=0.01 if len(asked) == 1 else 0)

    raw = serve(slower_first, lambda port: exchange(port, KEPT + KEPT.replace(b"kept", b"2") + GET))
    assert asked == ["/kept", "/2", "/a"]
    assert raw.index(b"/kept") < raw.index(b"/2") < raw.index(b"/a")


def test_head_has_no_body(serve: Any) -> None:
    head, body = split(serve(echo, lambda port: exchange(port, GET.replace(b"GET", b"HEAD"))))
    assert body == b""
    assert b"content-length: 20" in head


def test_an_answer_that_has_to_be_awaited(serve: Any) -> None:
    async def later(http: HttpRequest) -> Answer:
        await asyncio.sleep(0)
        return echo(http)

    _, body = split(serve(later, lambda port: exchange(port, KEPT + GET)))
    assert body.endswith(b"GET /a {'b': 'c'} 0")


def test_a_cut_body_ends_before_its_length(serve: Any) -> None:
    head, body = split(serve(lambda http: Answer(body=b"0123456789", cut=4), lambda port: exchange(port, KEPT)))
    assert b"content-length: 10" in head
    assert body == b"0123"


def test_a_dropped_connection_ends_without_a_byte(serve: Any) -> None:
    assert serve(lambda http: Silence(), lambda port: exchange(port, KEPT)) in (b"", b"RESET")


def test_a_hung_connection_stays_open_until_the_client_gives_up(serve: Any) -> None:
    async def play(port: int) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(exchange(port, KEPT), 0.05)

    serve(lambda http: Silence(hang=True), play)


async def words(*given: bytes) -> AsyncIterator[bytes]:
    for word in given:
        yield word


def test_a_stream_is_chunked_and_the_connection_goes_on(serve: Any) -> None:
    def stream(http: HttpRequest) -> Answer:
        return Answer(chunks=words(b"ab", b"cde")) if http.path == "/kept" else echo(http)

    raw = serve(stream, lambda port: exchange(port, KEPT + GET))
    assert b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\nHTTP/1.1 200 OK" in raw


def test_a_cut_stream_has_no_end(serve: Any) -> None:
    raw = serve(lambda http: Answer(chunks=words(b"ab", b"cde"), cut=4), lambda port: exchange(port, KEPT))
    assert raw.endswith(b"2\r\nab\r\n")


def test_it_is_told_whether_an_answer_was_sent(serve: Any) -> None:
    told: list[bool] = []
    ended = asyncio.Event()

    def note(sent: bool) -> None:
        told.append(sent)
        ended.set()

    async def play(port: int) -> None:
        await exchange(port, GET)
        assert told == [True]
        ended.clear()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(KEPT)
        await arrived.wait()
        writer.close()
        await ended.wait()
        assert told == [True, False], "the client had gone before the answer was due"

    arrived = asyncio.Event()

    def application(http: HttpRequest) -> Answer:
        if http.path != "/kept":
            return Answer(ended=note)
        arrived.set()
        return Answer(delay=30, ended=note)

    serve(application, play)


@pytest.mark.parametrize(
    "junk",
    [b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\ncontent-length: many\r\n\r\n"],
    ids=["not http", "tls", "bad length"],
)
def test_what_is_not_http_is_refused(serve: Any, junk: bytes) -> None:
    head, body = split(serve(echo, lambda port: exchange(port, junk)))
    assert head.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"HTTP/1.1" in body


OFFER = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"


def test_an_offer_of_another_protocol_is_declined_and_the_request_answered(serve: Any) -> None:
    post = b"POST /p HTTP/1.1\r\nhost: x\r\n" + OFFER + b"content-length: 6\r\n\r\n"
    get = KEPT.replace(b"host: x\r\n", b"host: x\r\n" + OFFER)
    raw = serve(echo, lambda port: exchange(port, post + b"abc", b"def" + get + GET))
    assert raw.count(b"HTTP/1.1 200 OK") == raw.count(b"HTTP/1.1") == 3
    assert raw.index(b"POST /p {} 6") < raw.index(b"GET /kept {} 0") < raw.index(b"GET /a {'b': 'c'} 0")


def test_it_is_no_proxy_but_understands_clients_that_take_it_for_one(serve: Any) -> None:
    whole = GET.replace(b"/a?b=c", b"http://x:80/a?b=c")
    _, body = split(serve(echo, lambda port: exchange(port, whole)))
    assert body == b"GET /a {'b': 'c'} 0"
    raw = serve(echo, lambda port: exchange(port, b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n"))
    assert raw.startswith(b"HTTP/1.1 400 Bad Request")
    assert raw.count(b"HTTP/1.1 ") == 1


def test_work_is_finished_for_a_client_that_has_gone(serve: Any) -> None:
    begun, let_go, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(http: HttpRequest) -> Answer:
        begun.set()
        await let_go.wait()
        done.set()
        return echo(http)

    async def play(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(KEPT)
        await begun.wait()
        writer.close()
        await writer.wait_closed()
        let_go.set()
        await done.wait()

    serve(slow, play)


def test_junk_is_refused_after_what_came_before_it_is_answered(serve: Any) -> None:
    def late(http: HttpRequest) -> Answer:
        return Answer(body=b"first", delay=0.01)

    raw = serve(late, lambda port: exchange(port, KEPT + b"junk\r\n\r\n"))
    assert raw.index(b"first") < raw.index(b"400 Bad Request")


def test_a_client_that_does_not_read_is_not_written_to_for_ever(serve: Any) -> None:
    answered: list[str] = []
    full = asyncio.Event()

    def large(http: HttpRequest) -> Answer:
        answered.append(http.path)
        full.set()
        return Answer(body=b"x" * 1_000_000)

    async def play(port: int) -> tuple[int, int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(KEPT * 60 + GET)
        await full.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        before = len(answered)
        received = 0
        while data := await reader.read(1 << 20):
            received += len(data)
        writer.close()
        return before, received

    before, received = serve(large, play)
    assert before < 61, "the rest waits until the client reads"
    assert len(answered) == 61
    assert received > 61_000_000


def test_a_head_without_end_is_refused(serve: Any) -> None:
    endless = b"GET / HTTP/1.1\r\n" + b"x-filler: " + b"y" * 300_000 + b"\r\n\r\n"
    head, _ = split(serve(echo, lambda port: exchange(port, endless)))
    assert head.startswith(b"HTTP/1.1 431 ")


def test_an_old_client_gets_its_stream_without_chunks(serve: Any) -> None:
    old = b"GET / HTTP/1.0\r\nhost: x\r\n\r\n"
    head, body = split(serve(lambda http: Answer(chunks=words(b"ab", b"cde")), lambda port: exchange(port, old)))
    assert b"chunked" not in head
    assert body == b"abcde"


def test_closing_ends_what_is_still_worked_on_for_clients_that_have_gone() -> None:
    async def main() -> bool:
        begun, given_up = asyncio.Event(), asyncio.Event()

        async def endless(http: HttpRequest) -> Answer:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                given_up.set()
            return echo(http)

        server = HttpServer(endless)
        port = await server.listen("127.0.0.1", 0)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(KEPT)
        await begun.wait()
        writer.close()
        await writer.wait_closed()
        await server.close()
        async with asyncio.timeout(10):
            await given_up.wait()
        return given_up.is_set()

    assert asyncio.run(main())
